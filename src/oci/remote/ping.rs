//! What a registry shows of itself to somebody who only knocks: for `doctor`.

use reqwest::Method;
use reqwest::header::HeaderMap;

use super::auth::{Challenge, Scope};
use super::request::{Request, Target};
use super::transport::Payload;
use super::{Registry, RegistryError};

/// A registry that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    /// The host that was asked.
    pub host: String,
    /// How it is reached.
    pub connection: Connection,
    /// What it wants to know of who asks.
    pub login: Login,
    /// The credential that there is for it and where it is kept, never the secret.
    pub credential: String,
}

/// How a registry is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// HTTPS with a certificate that this machine trusts.
    Https,
    /// HTTPS to a host listed as insecure; its certificate was not verified.
    UnverifiedHttps,
    /// Plain HTTP to a host listed as insecure.
    PlainHttp,
}

/// What a registry wants to know of who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Nothing.
    NotNeeded,
    /// A name and a password, and they were accepted.
    Basic,
    /// A token, and one was given and accepted.
    Token,
}

impl Registry {
    /// Knocks at a registry: reachable, by what protocol, with which credential. An error where it
    /// is not reachable or the credential is refused.
    pub async fn ping(&self, host: &str) -> Result<Ping, RegistryError> {
        let inner = &self.0;
        let host = inner.host(host);
        let request = Request {
            host: &host,
            scope: Scope::none(),
            what: "open its API".to_owned(),
            method: Method::GET,
            target: Target::Api(String::new()),
            headers: HeaderMap::new(),
            payload: Payload::Empty,
        };
        inner.call(&request).await?;
        let url = &host.base(inner).await?.url;
        let connection = match (url.scheme(), inner.insecure.allows(url)) {
            ("https", false) => Connection::Https,
            ("https", true) => Connection::UnverifiedHttps,
            _ => Connection::PlainHttp,
        };
        let login = match host.challenge() {
            None => Login::NotNeeded,
            Some(Challenge::Basic) => Login::Basic,
            Some(Challenge::Bearer { .. }) => Login::Token,
        };
        Ok(Ping {
            connection,
            login,
            credential: inner.credential(&host).await?.to_string(),
            host: host.name.clone(),
        })
    }
}
