//! Permissions: the challenge, the token server, and the scopes of a token.

use std::collections::HashSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::Method;
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::http::request::Parts;

use super::profile::{Login, Quirk};
use super::simulated::{
    HttpResponse, PASSWORD, SimulatedRegistry, Target, fields, lock, quirk, set, with_body,
};

/// Credential of a request.
pub enum Proof {
    None,
    Wrong,
    /// The user, with the correct password.
    Password,
    /// A token with its scopes.
    Token(HashSet<String>),
}

impl Proof {
    pub fn opens(&self, repository: &str, action: &str) -> bool {
        match self {
            Self::None | Self::Wrong => false,
            Self::Password => true,
            Self::Token(opens) => {
                let owned = opens.iter().filter_map(|name| name.strip_suffix("/*"));
                let mut owned = owned.filter_map(|owner| repository.strip_prefix(owner));
                owned.any(|rest| rest.starts_with('/'))
                    || opens.contains(&format!("{repository}:{action}"))
            }
        }
    }
}

impl SimulatedRegistry {
    pub fn proof(&self, head: &Parts) -> Proof {
        let Some(sent) = head.headers.get(AUTHORIZATION) else {
            return Proof::None;
        };
        let sent = sent.to_str().unwrap_or_default();
        match self.profile.login {
            Login::Password if sent == self.password() => Proof::Password,
            Login::Token { .. } => {
                let token = sent.strip_prefix("Bearer ").unwrap_or_default();
                let opens = lock(&self.memory).tokens.get(token).cloned();
                opens.map_or(Proof::Wrong, Proof::Token)
            }
            Login::Open | Login::Password => Proof::Wrong,
        }
    }

    pub fn password(&self) -> String {
        let pair = BASE64_STANDARD.encode(format!("{}:{PASSWORD}", self.profile.user));
        format!("Basic {pair}")
    }

    /// Returns true if the user owns a repository of this name.
    pub fn owns(&self, repository: &str) -> bool {
        let below = repository
            .strip_prefix(self.profile.prefix)
            .is_some_and(|rest| rest.starts_with('/'));
        below && !(self.has(Quirk::TwoParts) && repository.split('/').count() != 2)
    }

    /// The reason to deny this request.
    pub fn denial(&self, proof: &Proof, head: &Parts, target: &Target<'_>) -> Option<HttpResponse> {
        let reads =
            matches!(head.method, Method::GET | Method::HEAD) && target.kind != "blobs/uploads/";
        let action = if reads { "pull" } else { "push" };
        if matches!(self.profile.login, Login::Open) {
            return (!reads).then(|| self.error(405, "UNSUPPORTED"));
        }
        let exists = lock(&self.memory).repositories.contains(target.repository);
        if self.has(Quirk::CreateFirst) && !exists {
            return Some(self.error(404, "NAME_UNKNOWN"));
        }
        let hidden = reads && !exists && self.has(Quirk::UnknownNeedsPush);
        let needed = if hidden { "push" } else { action };
        if proof.opens(target.repository, needed) {
            return None;
        }
        if let (Proof::None, Some(status)) = (proof, quirk!(self, Unchallenged)) {
            return Some(self.error(status, "DENIED"));
        }
        let insufficient = matches!(proof, Proof::Token(_));
        Some(self.challenge(Some((target.repository, action)), insufficient))
    }

    /// 401 with a challenge.
    pub fn challenge(&self, wanted: Option<(&str, &str)>, insufficient: bool) -> HttpResponse {
        let mut answer = self.error(401, "UNAUTHORIZED");
        let Login::Token {
            host,
            path,
            service,
        } = self.profile.login
        else {
            let realm = format!("Basic realm=\"{}\"", self.profile.name);
            set(&mut answer, WWW_AUTHENTICATE, &realm);
            return answer;
        };
        let mut text = format!("Bearer realm=\"https://{host}{path}\",service=\"{service}\"");
        let placeholder = self.find(|quirk| match quirk {
            Quirk::PlaceholderScope(scope) => Some(scope.to_owned()),
            _ => None,
        });
        let scope = match wanted {
            _ if self.has(Quirk::ScopeStar) => Some("*".to_owned()),
            Some((repository, "pull")) => Some(format!("repository:{repository}:pull")),
            Some((repository, _)) => Some(format!("repository:{repository}:pull,push")),
            None => placeholder,
        };
        if let Some(scope) = scope {
            text += &format!(",scope=\"{scope}\"");
        }
        if insufficient {
            text += ",error=\"insufficient_scope\"";
        }
        set(&mut answer, WWW_AUTHENTICATE, &text);
        if self.has(Quirk::BasicToo) {
            let basic = format!(
                "Basic realm=\"https://{}/v2\",scope=\"*\"",
                self.profile.api
            );
            let basic = basic.parse().unwrap();
            answer.headers_mut().append(WWW_AUTHENTICATE, basic);
        }
        answer
    }

    /// The token server.
    pub fn token(&self, head: &Parts, body: &Bytes) -> HttpResponse {
        let refresh = self.has(Quirk::RefreshToken);
        let query = if head.method == Method::POST {
            String::from_utf8_lossy(body).into_owned()
        } else {
            head.uri.query().unwrap_or_default().to_owned()
        };
        let fields: Vec<(String, String)> = fields(&query);
        let field = |name: &str| {
            let mut fields = fields.iter();
            fields
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        let known = match head.headers.get(AUTHORIZATION) {
            Some(sent) if *sent == self.password() => true,
            Some(_) => return self.error(401, "UNAUTHORIZED"),
            None if head.method == Method::POST && refresh => {
                let right = field("grant_type") == Some("refresh_token")
                    && field("refresh_token") == Some(PASSWORD);
                if !right {
                    return self.error(401, "UNAUTHORIZED");
                }
                true
            }
            None if head.method == Method::POST => return self.error(404, "UNSUPPORTED"),
            None => false,
        };
        let mut scopes: Vec<&str> = fields
            .iter()
            .filter(|(key, _)| key == "scope")
            .flat_map(|(_, value)| value.split_whitespace())
            .collect();
        if self.has(Quirk::LastScopeAlone) {
            scopes.drain(..scopes.len().saturating_sub(1));
        }
        let mut opens = HashSet::new();
        if known && self.has(Quirk::ScopeStar) {
            opens.insert(format!("{}/*", self.profile.prefix));
        }
        let mut asked = 0;
        for scope in scopes {
            let mut parts = scope.rsplitn(2, ':');
            let (Some(actions), Some(thing)) = (parts.next(), parts.next()) else {
                continue;
            };
            let name = thing.trim_start_matches("repository:");
            for action in actions.split(',') {
                asked += 1;
                let public = self.has(Quirk::PublicReads) && action == "pull";
                if (known && self.owns(name)) || public {
                    opens.insert(format!("{name}:{action}"));
                }
            }
        }
        let refused = quirk!(self, TokenRefused);
        if let Some(status) = refused.filter(|_| !known && opens.len() < asked) {
            return self.error(status, "DENIED");
        }
        let mut memory = lock(&self.memory);
        let token = format!("token-{}", memory.tokens.len());
        memory.tokens.insert(token.clone(), opens);
        let answer = quirk!(self, TokenAnswer);
        let answer = answer.unwrap_or(r#"{"token":"T","expires_in":300}"#);
        with_body(200, &answer.replace("\"T\"", &format!("\"{token}\"")))
    }
}
