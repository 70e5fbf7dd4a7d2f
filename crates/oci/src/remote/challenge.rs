//! Authentication challenges of a registry, and the tokens obtained for them.

use std::collections::HashMap;

use http_auth::ChallengeParser;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use tokio::time::Instant;

use super::secret::Secret;

/// Scopes of a request: `repository:NAME:pull` and the like, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Scope(pub(super) Vec<String>);

impl Scope {
    /// No scope, to check a login.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Read access to a repository.
    pub(super) fn pull(name: &str) -> Self {
        Self(vec![format!("repository:{name}:pull")])
    }

    /// Write access to a repository.
    pub(super) fn push(name: &str) -> Self {
        Self(vec![format!("repository:{name}:pull,push")])
    }

    /// Delete access to a repository.
    pub(super) fn delete(name: &str) -> Self {
        Self(vec![format!("repository:{name}:pull,push,delete")])
    }

    /// Write access to a repository and read access to the one to mount from.
    pub(super) fn mount(name: &str, from: &str) -> Self {
        let mut scopes = vec![
            format!("repository:{name}:pull,push"),
            format!("repository:{from}:pull"),
        ];
        scopes.sort();
        Self(scopes)
    }

    /// Adds the scope that the registry asks for: behind a proxy, names may differ.
    pub(super) fn with(mut self, asked: &str) -> Self {
        for scope in asked.split_whitespace() {
            let scope = Self(vec![scope.to_owned()]);
            if !self.covers(&scope) {
                self.0.extend(scope.0);
                self.0.sort();
            }
        }
        self
    }

    /// Returns true if a token for `self` also grants `other`.
    fn covers(&self, other: &Self) -> bool {
        let grants = |wanted: &String| self.0.iter().any(|have| grants(have, wanted));
        other.0.iter().all(grants)
    }
}

/// Returns true if a scope such as `repository:NAME:pull,push` includes another of the same
/// resource.
fn grants(have: &str, wanted: &str) -> bool {
    match (have.rsplit_once(':'), wanted.rsplit_once(':')) {
        (Some((thing, can)), Some((same, want))) if thing == same => want
            .split(',')
            .all(|action| can.split(',').any(|possible| possible == action)),
        _ => have == wanted,
    }
}

/// Authentication scheme of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A password with every request.
    Basic,
    /// A token from another server.
    Bearer {
        realm: Url,
        service: Option<String>,
        scope: String,
    },
}

impl Challenge {
    /// The scope that the registry asks for.
    pub(super) fn scope(&self) -> &str {
        match self {
            Self::Basic => "",
            Self::Bearer { scope, .. } => scope,
        }
    }

    /// Parses the challenge of a 401 response from `url`; prefers tokens to passwords.
    pub(super) fn read(headers: &HeaderMap, url: &Url) -> Option<Self> {
        let mut basic = None;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let text = in_plain_words(value);
            for challenge in ChallengeParser::new(&text).map_while(Result::ok) {
                let parameter = |name: &str| {
                    let mut params = challenge.params.iter();
                    let found = params.find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.to_unescaped())
                };
                // A challenge without a realm is unusable; another one may follow.
                let realm = parameter("realm").filter(|realm| !realm.trim().is_empty());
                if challenge.scheme.eq_ignore_ascii_case("bearer")
                    && let Some(realm) = realm.and_then(|realm| url.join(realm.trim()).ok())
                    && matches!(realm.scheme(), "http" | "https")
                {
                    return Some(Self::Bearer {
                        realm,
                        service: parameter("service"),
                        scope: parameter("scope").unwrap_or_default(),
                    });
                }
                if challenge.scheme.eq_ignore_ascii_case("basic") {
                    basic = Some(Self::Basic);
                }
            }
            // Look for a challenge after one that cannot be parsed.
            let mut words = text.split([',', ' ']);
            if words.any(|word| word.eq_ignore_ascii_case("basic")) {
                basic = Some(Self::Basic);
            }
        }
        basic
    }
}

/// Returns a header's text in ASCII, with runs of spaces collapsed.
fn in_plain_words(value: &HeaderValue) -> String {
    let mut quoted = false;
    let mut before = ' ';
    let text = String::from_utf8_lossy(value.as_bytes());
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '"' && before != '\\' {
            quoted = !quoted;
        }
        if quoted || c != ' ' || before != ' ' {
            plain.push(if c.is_ascii() { c } else { '?' });
        }
        before = c;
    }
    plain
}

/// A token and the time until which it is sent.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) text: Secret,
    pub(super) expires: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Tokens(HashMap<Scope, Token>);

impl Tokens {
    /// Returns the token with the narrowest sufficient scope: of a token for two repositories, as
    /// for a mount, some registries honour only one.
    pub(super) fn get(&self, scope: &Scope) -> Option<Secret> {
        let now = Instant::now();
        let fits = |(have, token): &(&Scope, &Token)| token.expires > now && have.covers(scope);
        self.0
            .iter()
            .filter(fits)
            .min_by_key(|(have, _)| have.0.len())
            .map(|(_, token)| token.text.clone())
    }

    pub(super) fn insert(&mut self, scope: &Scope, token: Token) {
        self.0.insert(scope.clone(), token);
    }

    /// Removes a token that the registry refused, whatever its scope.
    pub(super) fn remove(&mut self, refused: &HeaderValue) {
        let refused = refused.as_bytes();
        self.0
            .retain(|_, token| bearer(&token.text).as_bytes() != refused);
    }
}

/// The `Authorization` value for a token.
pub(super) fn bearer(token: &Secret) -> String {
    format!("Bearer {}", token.expose_secret())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(challenges: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for challenge in challenges {
            let value = HeaderValue::from_bytes(challenge.as_bytes()).unwrap();
            headers.append(WWW_AUTHENTICATE, value);
        }
        Challenge::read(&headers, &"https://repo.lan/v2/".parse().unwrap())
    }

    #[test]
    fn the_token_for_the_least_is_taken() {
        // Map order differs between runs.
        for _ in 0..32 {
            let mut tokens = Tokens::default();
            for (scope, text) in [(Scope::mount("a", "b"), "both"), (Scope::push("a"), "one")] {
                let expires = Instant::now() + Duration::from_mins(1);
                let text = Secret::new(text.to_owned());
                tokens.insert(&scope, Token { text, expires });
            }
            let taken = tokens.get(&Scope::pull("a")).unwrap();
            assert_eq!(taken.expose_secret(), "one");
        }
    }

    #[test]
    fn tokens_are_preferred_to_passwords() {
        let bearer = r#"Bearer realm="https://auth/token",service="x",scope="repository:a:pull""#;
        let expected = Challenge::Bearer {
            realm: "https://auth/token".parse().unwrap(),
            service: Some("x".to_owned()),
            scope: "repository:a:pull".to_owned(),
        };
        assert_eq!(read(&["Basic realm=\"r\"", bearer]), Some(expected));
        let basic = read(&["Negotiate", "basic realm=\"r\""]);
        assert_eq!(basic, Some(Challenge::Basic));
    }

    #[test]
    fn challenges_that_cannot_be_met_are_none() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["Digest realm=\"r\", nonce=\"n\""]), None);
        assert_eq!(read(&["Bearer realm=\"mailto:me\""]), None);
        assert_eq!(read(&["Bearer realm=\"\""]), None);
        assert_eq!(read(&["Bearer service=\"x\""]), None);
    }

    #[test]
    fn an_invalid_challenge_leaves_the_others() {
        for challenges in [
            &["Bearer", "Basic realm=\"r\""][..],
            &["Bearer realm=\"\", Basic realm=\"r\""],
            &["Bearer realm=, Basic realm=\"r\""],
            &["Basic realm=\"r\"", "Bearer realm=\"ftp://x\""],
            &["Basic realm=\"Zugang für alle\""],
            &["Basic  realm=\"two spaces\""],
            &["Basic"],
        ] {
            assert_eq!(read(challenges), Some(Challenge::Basic), "{challenges:?}");
        }
    }

    #[test]
    fn a_realm_may_be_relative_and_spaces_and_words_unusual() {
        let realm = |challenge: &str| match read(&[challenge]) {
            Some(Challenge::Bearer { realm, service, .. }) => {
                Some((String::from(realm), service.unwrap_or_default()))
            }
            _ => None,
        };
        let expected = |realm: &str, service: &str| Some((realm.to_owned(), service.to_owned()));
        assert_eq!(
            realm(r#"Bearer realm="/service/token",service="harbor-registry""#),
            expected("https://repo.lan/service/token", "harbor-registry")
        );
        assert_eq!(
            realm(r#"Bearer   realm="https://auth/token",  service="a  b""#),
            expected("https://auth/token", "a  b")
        );
        assert_eq!(
            realm("Bearer realm=\"https://auth/token\",service=\"Über\""),
            expected("https://auth/token", "?ber")
        );
    }

    #[test]
    fn a_scope_covers_what_is_less() {
        let push = Scope::push("a");
        assert!(push.covers(&Scope::pull("a")) && push.covers(&Scope::none()));
        assert!(!Scope::pull("a").covers(&push) && !push.covers(&Scope::pull("b")));
        assert!(Scope::mount("a", "b").covers(&Scope::pull("b")));
    }

    #[test]
    fn what_the_registry_asks_for_is_added_once() {
        let scope = Scope::push("a").with("repository:a:pull repository:prefix/a:pull");
        let expected = ["repository:a:pull,push", "repository:prefix/a:pull"];
        assert_eq!(scope.0, expected);
    }
}
