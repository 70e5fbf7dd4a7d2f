//! Proving to a registry who asks: its challenge, the answer to it, and tokens kept per scope.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_auth::ChallengeParser;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use tokio::time::Instant;

use super::credentials::{Credential, Proof, Secret};
use super::host::Host;
use super::transport::{Exchange, Payload};
use super::{Inner, RegistryError};
use crate::net::{host_of, shown};

/// What a request needs to be allowed: `repository:NAME:pull` and the like, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Scope(Vec<String>);

impl Scope {
    /// Nothing in particular: the check whether a login works.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Reading from a repository.
    pub(super) fn pull(name: &str) -> Self {
        Self(vec![format!("repository:{name}:pull")])
    }

    /// Writing to a repository.
    pub(super) fn push(name: &str) -> Self {
        Self(vec![format!("repository:{name}:pull,push")])
    }

    /// Writing to a repository what another one has.
    pub(super) fn mount(name: &str, from: &str) -> Self {
        let mut scopes = vec![
            format!("repository:{name}:pull,push"),
            format!("repository:{from}:pull"),
        ];
        scopes.sort();
        Self(scopes)
    }

    /// The same, and what the registry itself asks for: behind a proxy names may differ.
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

    /// Whether a token for `self` also opens what `other` opens.
    fn covers(&self, other: &Self) -> bool {
        let grants = |wanted: &String| self.0.iter().any(|have| grants(have, wanted));
        other.0.iter().all(grants)
    }
}

/// Whether `repository:NAME:pull,push` allows all that another scope wants of the same thing.
fn grants(have: &str, wanted: &str) -> bool {
    match (have.rsplit_once(':'), wanted.rsplit_once(':')) {
        (Some((thing, can)), Some((same, want))) if thing == same => want
            .split(',')
            .all(|action| can.split(',').any(|possible| possible == action)),
        _ => have == wanted,
    }
}

/// How a registry wants to be convinced.
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
    /// What the registry wants a token to be for.
    pub(super) fn scope(&self) -> &str {
        match self {
            Self::Basic => "",
            Self::Bearer { scope, .. } => scope,
        }
    }

    /// The challenge of a 401 answer that this client can meet; tokens are preferred to passwords.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut basic = None;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            for challenge in ChallengeParser::new(value.to_str().ok()?).map_while(Result::ok) {
                let parameter = |name: &str| {
                    let found = challenge
                        .params
                        .iter()
                        .find(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.to_unescaped())
                };
                if challenge.scheme.eq_ignore_ascii_case("bearer") {
                    let realm = parameter("realm").and_then(|realm| Url::parse(&realm).ok())?;
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
        }
        basic
    }
}

/// A token and the time after which it is not worth sending.
#[derive(Debug, Clone)]
struct Token {
    text: Secret,
    expires: Instant,
}

/// The tokens of one host.
#[derive(Debug, Default)]
pub(super) struct Tokens(HashMap<Scope, Token>);

impl Tokens {
    fn get(&self, scope: &Scope) -> Option<Secret> {
        let now = Instant::now();
        let fits = |(have, token): &(&Scope, &Token)| token.expires > now && have.covers(scope);
        self.0
            .iter()
            .find(fits)
            .map(|(_, token)| token.text.clone())
    }

    /// Drops a token that the registry refused, under whatever scope it is kept.
    pub(super) fn forget(&mut self, refused: &HeaderValue) {
        let refused = refused.as_bytes();
        self.0
            .retain(|_, token| bearer(&token.text).as_bytes() != refused);
    }
}

/// The answer of a token server.
#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(alias = "access_token")]
    token: Option<String>,
    expires_in: Option<u64>,
}

/// The specification's lifetime of a token that does not say its own.
const DEFAULT_LIFETIME: u64 = 60;
/// A token is not sent any more this long before its end, so that it does not expire on the way.
const MARGIN: Duration = Duration::from_secs(5);
const TOKEN_LIMIT: u64 = 1024 * 1024;

impl Inner {
    /// The header that proves who asks, as far as the host has asked for proof.
    pub(super) async fn authorization(
        &self,
        host: &Host,
        scope: &Scope,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let Some(challenge) = host.challenge() else {
            return Ok(None);
        };
        let credential = self.credential(host).await?;
        let base = host.base(self).await?;
        if credential.proof.is_some() {
            self.check_protected(&base.url, credential)?;
        }
        match (&challenge, &credential.proof) {
            (Challenge::Basic, Some(Proof::Password { user, password })) => {
                sensitive(&basic(user, password)).map(Some)
            }
            (Challenge::Basic, _) => Ok(None),
            (Challenge::Bearer { realm, service, .. }, _) => {
                // Held while a token is fetched: requests that need the same one wait for it.
                let mut tokens = host.tokens.lock().await;
                let token = if let Some(token) = tokens.get(scope) {
                    token
                } else {
                    let fetched = self
                        .fetch_token(host, realm, service.as_deref(), scope, credential)
                        .await?;
                    tokens.0.insert(scope.clone(), fetched.clone());
                    fetched.text
                };
                sensitive(&bearer(&token)).map(Some)
            }
        }
    }

    /// The host's credential, looked up once.
    pub(super) async fn credential<'h>(
        &self,
        host: &'h Host,
    ) -> Result<&'h Credential, RegistryError> {
        host.credential
            .get_or_try_init(|| async {
                let name = host.name.clone();
                let file = self.options.config_file.clone();
                let lookup = move || super::credentials::look_up(&name, file.as_deref());
                let what = format!("find the credential for {}", host.name);
                self.bounded(&what, async {
                    let found = tokio::task::spawn_blocking(lookup).await;
                    found.unwrap_or_else(|error| Err(RegistryError::Client(error.into())))
                })
                .await
            })
            .await
    }

    fn check_protected(&self, url: &Url, credential: &Credential) -> Result<(), RegistryError> {
        if url.scheme() == "https" || self.options.plain_credentials {
            return Ok(());
        }
        Err(RegistryError::PlainCredentials {
            host: host_of(url),
            tried: credential.to_string(),
        })
    }

    async fn fetch_token(
        &self,
        host: &Host,
        realm: &Url,
        service: Option<&str>,
        scope: &Scope,
        credential: &Credential,
    ) -> Result<Token, RegistryError> {
        let answer = self.ask_for_token(realm, service, scope, credential).await;
        let body = answer.map_err(|error| match error.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => RegistryError::Unauthorized {
                host: host.name.clone(),
                what: format!("give a token at {}", shown(realm)),
                tried: credential.to_string(),
                detail: String::new(),
            },
            _ if matches!(error, RegistryError::PlainCredentials { .. }) => error,
            _ => RegistryError::Token {
                host: host.name.clone(),
                realm: shown(realm),
                source: Box::new(error),
            },
        })?;
        let broken = |reason: &str| RegistryError::Protocol {
            host: host_of(realm),
            what: format!("give a token for {}", host.name),
            reason: reason.to_owned(),
        };
        // The parser's own message would quote the answer, and with it perhaps a token.
        let answer: TokenAnswer = serde_json::from_slice(&body)
            .map_err(|_| broken("it is no JSON object with a token"))?;
        let text = answer
            .token
            .filter(|token| !token.is_empty())
            .ok_or_else(|| broken("it has neither token nor access_token"))?;
        let lifetime = answer
            .expires_in
            .unwrap_or(DEFAULT_LIFETIME)
            .clamp(10, 24 * 3600);
        Ok(Token {
            text: Secret::new(text),
            expires: Instant::now() + Duration::from_secs(lifetime) - MARGIN,
        })
    }

    /// The OAuth refresh for an identity token, else the specification's GET, with the password
    /// where there is one.
    async fn ask_for_token(
        &self,
        realm: &Url,
        service: Option<&str>,
        scope: &Scope,
        credential: &Credential,
    ) -> Result<bytes::Bytes, RegistryError> {
        if credential.proof.is_some() {
            self.check_protected(realm, credential)?;
        }
        let mut url = realm.clone();
        let mut headers = HeaderMap::new();
        let mut fields: Vec<(&str, &str)> =
            service.map(|name| ("service", name)).into_iter().collect();
        let joined = scope.0.join(" ");
        let (method, payload) = match &credential.proof {
            Some(Proof::IdentityToken(token)) => {
                fields.extend([
                    ("grant_type", "refresh_token"),
                    ("client_id", "wincimg"),
                    ("refresh_token", token.reveal()),
                ]);
                if !joined.is_empty() {
                    fields.push(("scope", &joined));
                }
                headers.insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static("application/x-www-form-urlencoded"),
                );
                let body = form(realm, &fields);
                (Method::POST, Payload::Bytes(body.into()))
            }
            proof => {
                if let Some(Proof::Password { user, password }) = proof {
                    fields.push(("account", user));
                    headers.insert(AUTHORIZATION, sensitive(&basic(user, password))?);
                }
                fields.extend(scope.0.iter().map(|scope| ("scope", scope.as_str())));
                url.query_pairs_mut().extend_pairs(&fields);
                (Method::GET, Payload::Empty)
            }
        };
        let exchange = Exchange {
            what: "give a token".to_owned(),
            method,
            url,
            headers,
            payload,
        };
        self.fetch_outside(&exchange, TOKEN_LIMIT).await
    }
}

/// Fields in the encoding of HTML forms, which is the one of a URL's query.
fn form(realm: &Url, fields: &[(&str, &str)]) -> String {
    let mut url = realm.clone();
    url.set_query(None);
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

fn basic(user: &str, password: &Secret) -> String {
    let pair = format!("{user}:{}", password.reveal());
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

fn bearer(token: &Secret) -> String {
    format!("Bearer {}", token.reveal())
}

/// A header value that neither Debug nor logs show.
fn sensitive(text: &str) -> Result<HeaderValue, RegistryError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        RegistryError::Client("a credential has a character that no HTTP header may have".into())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn read(challenges: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for challenge in challenges {
            headers.append(WWW_AUTHENTICATE, challenge.parse().unwrap());
        }
        Challenge::read(&headers)
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
        assert_eq!(
            read(&["Negotiate", "basic realm=\"r\""]),
            Some(Challenge::Basic)
        );
    }

    #[test]
    fn challenges_that_cannot_be_met_are_none() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["Digest realm=\"r\", nonce=\"n\""]), None);
        assert_eq!(read(&["Bearer realm=\"no URL\""]), None);
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

    #[test]
    fn no_secret_shows_itself() {
        let shown = format!("{:?}", sensitive("Bearer abc").unwrap());
        assert!(!shown.contains("abc"), "{shown}");
        assert!(!format!("{:?}", Secret::new("abc".into())).contains("abc"));
    }
}
