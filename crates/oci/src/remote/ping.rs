//! Checks the connection to a registry, and provides the credential that a Docker daemon needs for
//! pushes and pulls.

use std::fmt;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use wincimg_common::diagnose::Problem;
use wincimg_http::{HttpError, content_type};

use super::challenge::Challenge;
use super::client::RegistryClient;
use super::credentials::{Authentication, server};
use super::error::RegistryError;
use super::request::Request;

/// A reachable registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    /// The host.
    pub host: String,
    /// Its protocol.
    pub connection: Protocol,
    /// Its login method.
    pub login: AuthScheme,
    /// The credential and its origin, without the secret.
    pub credential: String,
}

/// Protocol of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTPS with a certificate that this machine trusts.
    Https,
    /// HTTPS to a host listed as insecure; its certificate was not verified.
    UnverifiedHttps,
    /// Plain HTTP to a host listed as insecure.
    PlainHttp,
}

/// Login method of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthScheme {
    /// None.
    NotNeeded,
    /// User and password, which were accepted.
    Basic,
    /// A token, which was issued and accepted.
    Token,
}

/// A credential in the Docker daemon's format; hidden from Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct DaemonCredential {
    /// The name under which Docker stores it.
    pub server: String,
    document: Value,
}

impl DaemonCredential {
    /// The document, for use in the header only.
    pub fn expose_secret(&self) -> &Value {
        &self.document
    }
}

impl fmt::Debug for DaemonCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaemonCredential")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// The answer of another server.
fn no_registry(answer: HttpError) -> RegistryError {
    let hint = "check host and port: no registry answers there at /v2/";
    let problem = Problem::from_diagnosed(answer).hint(hint);
    RegistryError::Http(problem.into())
}

/// Returns true for a web page. Quay's API calls its answer `text/html`, too.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = content_type(headers).unwrap_or_default();
    kind.to_ascii_lowercase().starts_with("text/html")
        && !headers.contains_key("docker-distribution-api-version")
}

impl RegistryClient {
    /// Connects to a registry and returns its protocol, login method and credential. Fails if it is
    /// unreachable or refuses the credential.
    pub async fn ping(&self, host: &str) -> Result<Ping, RegistryError> {
        let inner = &self.0;
        let host = inner.host(host);
        let what = "open its API".to_owned();
        let request = Request::new(&host, "", Method::GET, String::new(), what);
        let answer = inner.call(&request).await.map_err(|error| match error {
            // About the host, not about a repository.
            RegistryError::Http(answer) if answer.status() == Some(StatusCode::NOT_FOUND) => {
                no_registry(answer)
            }
            other => other,
        })?;
        if is_page(answer.headers()) {
            let page = HttpError::protocol(&host.name, &request.what, "it is a web page");
            return Err(no_registry(page));
        }
        let url = host.base(&inner.http).await?;
        let connection = match (url.scheme(), inner.http.is_listed(url)) {
            ("https", false) => Protocol::Https,
            ("https", true) => Protocol::UnverifiedHttps,
            _ => Protocol::PlainHttp,
        };
        let login = match host.challenge() {
            None => AuthScheme::NotNeeded,
            Some(Challenge::Basic) => AuthScheme::Basic,
            Some(Challenge::Bearer { .. }) => AuthScheme::Token,
        };
        Ok(Ping {
            connection,
            login,
            credential: inner.credential(&host, "").await?.to_string(),
            host: host.name.clone(),
        })
    }

    /// Returns the credential of a reachable registry for a Docker daemon. A registry may require
    /// none before a push, so it is included in any case, unless it would be sent unencrypted, to
    /// the daemon (`readable`) or to the registry; fails if the registry requires one then.
    pub async fn daemon_credential(
        &self,
        ping: &Ping,
        readable: bool,
    ) -> Result<Option<DaemonCredential>, RegistryError> {
        let inner = &self.0;
        let host = inner.host(&ping.host);
        let credential = inner.credential(&host, "").await?;
        let Some(proof) = &credential.proof else {
            return Ok(None);
        };
        let unprotected = readable || ping.connection == Protocol::PlainHttp;
        if unprotected && !inner.options.plain_credentials {
            return match ping.login {
                AuthScheme::NotNeeded => Ok(None),
                AuthScheme::Basic | AuthScheme::Token => Err(RegistryError::PlainCredentials {
                    host: "the Docker daemon".to_owned(),
                    credential: credential.to_string(),
                }),
            };
        }
        let server = server(&host.name);
        let document = match proof {
            Authentication::Password { user, password } => json!({
                "username": user,
                "password": password.expose_secret(),
                "serveraddress": server,
            }),
            Authentication::IdentityToken(token) => json!({
                "identitytoken": token.expose_secret(),
                "serveraddress": server,
            }),
        };
        Ok(Some(DaemonCredential {
            server: server.to_owned(),
            document,
        }))
    }
}
