//! Authentication: with a password, or with a token from the token server that the registry names.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{StatusCode, Url};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wincimg_http::{AddressPolicy, Exchange, HttpError, RedirectPolicy, host_of, redacted};

use super::challenge::{Challenge, Scope, Token, bearer};
use super::client::Inner;
use super::credentials::{Authentication, Credential, lookup_error};
use super::error::{RegistryError, check};
use super::host::Host;
use super::secret::{Secret, SentSecrets};

/// Reported in place of a credential for requests to another host.
pub(super) const NOT_SENT: &str = "no credential (none is sent to another host)";

/// The specification's default lifetime of a token.
const DEFAULT_LIFETIME: Duration = Duration::from_mins(1);
const SHORTEST_LIFETIME: Duration = Duration::from_secs(10);
const LONGEST_LIFETIME: Duration = Duration::from_hours(24);
/// A token is no longer sent this long before it expires.
const MARGIN: Duration = Duration::from_secs(5);
const TOKEN_LIMIT: u64 = 1024 * 1024;

impl Inner {
    /// Returns the `Authorization` header, if the host has asked for one.
    pub(super) async fn authorization(
        &self,
        host: &Host,
        repository: &str,
        scope: &Scope,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let Some(challenge) = host.challenge() else {
            return Ok(None);
        };
        let credential = self.credential(host, repository).await?;
        let base = host.base(&self.http).await?;
        if credential.proof.is_some() {
            self.check_protected(base, credential)?;
        }
        match (&challenge, &credential.proof) {
            (Challenge::Basic, Some(Authentication::Password { user, password })) => {
                Ok(Some(sensitive(&basic(user, password))?))
            }
            (Challenge::Basic, _) => Ok(None),
            (Challenge::Bearer { realm, service, .. }, _) => {
                let fetching = host.token_lock(scope);
                let _held = fetching.lock().await;
                let known = host.tokens().get(scope);
                let token = if let Some(token) = known {
                    token
                } else {
                    let fetched = self
                        .fetch_token(host, realm, service.as_deref(), scope, credential)
                        .await?;
                    let text = fetched.text.clone();
                    host.tokens().insert(scope, fetched);
                    text
                };
                Ok(Some(sensitive(&bearer(&token))?))
            }
        }
    }

    /// Returns the credential for a repository of the host, or without a name for the host itself.
    /// Looked up once.
    pub(super) async fn credential<'h>(
        &self,
        host: &'h Host,
        repository: &str,
    ) -> Result<&'h Credential, RegistryError> {
        let all = host.credentials.get_or_try_init(|| async {
            let name = host.name.clone();
            let file = self.options.config_file.clone();
            // Stops the helper when this future is dropped.
            let stopped = CancellationToken::new();
            let _guard = stopped.clone().drop_guard();
            let lookup = move || super::credentials::find(&name, file.as_deref(), &stopped);
            let what = format!("find the credential for {}", host.name);
            self.http
                .with_deadline(&what, async {
                    let found = tokio::task::spawn_blocking(lookup).await;
                    found.unwrap_or_else(|error| {
                        let origin = "Docker's config.json".to_owned();
                        Err(lookup_error(&host.name, origin, error.to_string()))
                    })
                })
                .await
        });
        Ok(all.await?.for_repository(repository))
    }

    /// Requests the root of the API, once, to learn how the host authenticates: it may hide private
    /// content from anonymous clients without a challenge.
    pub(super) async fn probe_auth(&self, host: &Host) -> Result<(), RegistryError> {
        let base = host.base(&self.http).await?;
        let knocking = host.knocked.get_or_try_init(|| async {
            let mut exchange = Exchange::get("open its API", Host::root(base));
            exchange.redirects = RedirectPolicy::Anywhere;
            exchange.addresses = AddressPolicy::ThisMachineToo;
            let response = self.http.send_following(&exchange).await?;
            if response.status() == StatusCode::UNAUTHORIZED
                && response.url().origin() == base.origin()
            {
                host.record_challenge(&response);
            }
            Ok::<_, RegistryError>(())
        });
        knocking.await.copied()
    }

    fn check_protected(&self, url: &Url, credential: &Credential) -> Result<(), RegistryError> {
        if url.scheme() == "https" || self.options.plain_credentials {
            return Ok(());
        }
        Err(RegistryError::PlainCredentials {
            host: host_of(url),
            credential: credential.to_string(),
        })
    }

    /// Checks that a token server may get the credential of a host: it is of the same site, as
    /// Docker Hub's is, or the user named it.
    fn check_site(
        &self,
        name: &str,
        own: &Url,
        realm: &Url,
        credential: &Credential,
    ) -> Result<(), RegistryError> {
        let named = &self.options.token_servers;
        if are_of_one_site(own, realm) || named.contains(&host_of(realm)) {
            return Ok(());
        }
        Err(RegistryError::TokenServer {
            host: name.to_owned(),
            server: host_of(realm),
            credential: credential.to_string(),
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
        let own = host.base(&self.http).await?;
        if credential.proof.is_some() {
            self.check_site(&host.name, own, realm, credential)?;
        }
        let asking = self.ask_for_token(host, realm, service, scope, credential);
        // Boxed, because every request contains it.
        let answer = Box::pin(asking).await;
        let body = answer.map_err(|error| match error.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => RegistryError::Denied {
                host: host.name.clone(),
                status: StatusCode::UNAUTHORIZED,
                what: format!("issue a token at {}", redacted(realm)),
                credential: credential.to_string().into(),
                detail: Box::default(),
                known: false,
                flags: self.http.flags_for(own, &host.name).into(),
            },
            _ if matches!(error, RegistryError::PlainCredentials { .. }) => error,
            _ => RegistryError::Token {
                host: host.name.clone(),
                realm: redacted(realm),
                source: Box::new(error),
            },
        })?;
        let broken = |reason: &str| {
            let what = format!("issue a token for {}", host.name);
            RegistryError::protocol(host_of(realm), &what, reason)
        };
        // The parser's own message would quote the response, which may contain a token.
        let Ok(Value::Object(answer)) = serde_json::from_slice(&body) else {
            return Err(broken("it is not a JSON object with a token"));
        };
        let text = ["token", "access_token"]
            .into_iter()
            .find_map(|key| answer.get(key)?.as_str().filter(|token| !token.is_empty()))
            .ok_or_else(|| broken("it has neither token nor access_token"))?
            .to_owned();
        if HeaderValue::from_str(&text).is_err() {
            return Err(broken(
                "its token contains a line break or another invalid character",
            ));
        }
        let lifetime = answer
            .get("expires_in")
            .and_then(seconds)
            .unwrap_or(DEFAULT_LIFETIME)
            .clamp(SHORTEST_LIFETIME, LONGEST_LIFETIME);
        Ok(Token {
            text: Secret::new(text),
            expires: Instant::now() + lifetime - MARGIN,
        })
    }

    /// Requests a token: an OAuth refresh with an identity token, else the specification's GET,
    /// with a password if there is one.
    async fn ask_for_token(
        &self,
        host: &Host,
        realm: &Url,
        service: Option<&str>,
        scope: &Scope,
        credential: &Credential,
    ) -> Result<Bytes, RegistryError> {
        if credential.proof.is_some() {
            self.check_protected(realm, credential)?;
        }
        let what = "issue a token";
        let mut fields = Vec::new();
        let mut field = |name: &str, value: &str| fields.push((name.to_owned(), value.to_owned()));
        if let Some(name) = service {
            field("service", name);
        }
        let mut exchange = match &credential.proof {
            Some(Authentication::IdentityToken(token)) => {
                field("grant_type", "refresh_token");
                field("client_id", "wincimg");
                field("refresh_token", token.expose_secret());
                let scopes = scope.0.join(" ");
                if !scopes.is_empty() {
                    field("scope", &scopes);
                }
                Exchange::form(what, realm.clone(), &fields)
            }
            proof => {
                let mut exchange = Exchange::get(what, realm.clone());
                // Unlike form fields, the password stays with this host.
                exchange.redirects = RedirectPolicy::Anywhere;
                if let Some(Authentication::Password { user, password }) = proof {
                    field("account", user);
                    let proof = sensitive(&basic(user, password))?;
                    exchange.headers.insert(AUTHORIZATION, proof);
                }
                for scope in &scope.0 {
                    field("scope", scope);
                }
                exchange.url.query_pairs_mut().extend_pairs(&fields);
                exchange
            }
        };
        let own = host.base(&self.http).await?;
        exchange.addresses = AddressPolicy::for_link(own, realm);
        let secrets = SentSecrets::new(None, credential.proof.as_ref());
        self.http
            .retry(|| async {
                let response = self.http.send_following(&exchange).await?;
                let server = host_of(response.url());
                let response =
                    check(&self.http, server, what, response, NOT_SENT, &secrets).await?;
                Ok(self.http.read_body(response, what, TOKEN_LIMIT).await?)
            })
            .await
    }
}

/// Returns true if two URLs have one host, or hosts of one registrable domain.
fn are_of_one_site(one: &Url, other: &Url) -> bool {
    let (Some(one_name), Some(other_name)) = (one.domain(), other.domain()) else {
        return one.host_str() == other.host_str();
    };
    let site = psl::domain_str(one_name);
    one_name == other_name || site.is_some() && site == psl::domain_str(other_name)
}

/// Parses a lifetime, which some servers write as a string or with a fraction; `None` if invalid.
fn seconds(value: &Value) -> Option<Duration> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    Duration::try_from_secs_f64(number?)
        .ok()
        .filter(|time| !time.is_zero())
}

fn basic(user: &str, password: &Secret) -> String {
    let pair = format!("{user}:{}", password.expose_secret());
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// A header value hidden from Debug and logs.
fn sensitive(text: &str) -> Result<HeaderValue, HttpError> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_what_one_owner_registers() {
        let one = |one: &str, other: &str| {
            are_of_one_site(&one.parse().unwrap(), &other.parse().unwrap())
        };
        for (registry, server) in [
            ("https://registry-1.docker.io/v2/", "https://auth.docker.io"),
            ("https://registry.gitlab.com/", "https://gitlab.com/jwt/a"),
            ("http://127.0.0.1:5000/", "http://127.0.0.1:5001/token"),
            ("https://registry:5000/", "https://registry/token"),
            ("https://a.shop.co.uk/", "https://b.shop.co.uk/"),
        ] {
            assert!(one(registry, server), "{registry} {server}");
        }
        for (registry, server) in [
            ("https://repo.lan/", "https://other.lan/token"),
            ("https://shop.co.uk/", "https://other.co.uk/token"),
            ("https://docker.io/", "https://docker.io.example.com/token"),
            ("https://one/", "https://other/"),
            ("http://127.0.0.1/", "http://127.0.0.2/"),
            ("http://127.0.0.1/", "http://localhost/"),
        ] {
            assert!(!one(registry, server), "{registry} {server}");
        }
    }

    #[test]
    fn no_secret_shows_itself() {
        let shown = format!("{:?}", sensitive("Bearer abc").unwrap());
        assert!(!shown.contains("abc"), "{shown}");
        assert!(!format!("{:?}", Secret::new("abc".into())).contains("abc"));
    }
}
