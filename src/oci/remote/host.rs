//! One registry host: how it is spoken to, how it wants to be convinced, and what it gave us.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::OnceCell;

use super::auth::{Challenge, Tokens};
use super::credentials::Credential;
use super::transport::{Exchange, Payload};
use super::{Inner, RegistryError};

/// What this process has learnt about a host.
pub(super) struct Host {
    /// As references name it: `docker.io`, `repo.lan:5000`.
    pub(super) name: String,
    pub(super) tokens: tokio::sync::Mutex<Tokens>,
    pub(super) credential: OnceCell<Credential>,
    base: OnceCell<Base>,
    challenge: Mutex<Option<Challenge>>,
}

/// Where a host's API begins.
pub(super) struct Base {
    /// Scheme, host and port.
    pub(super) url: Url,
}

/// How long a listed host may take to show which protocol it speaks.
const PROBE_TIME: Duration = Duration::from_secs(10);

impl Host {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            tokens: tokio::sync::Mutex::default(),
            credential: OnceCell::new(),
            base: OnceCell::new(),
            challenge: Mutex::new(None),
        }
    }

    /// The last challenge that the host sent.
    pub(super) fn challenge(&self) -> Option<Challenge> {
        self.challenge
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Remembers the challenge of a 401 answer, where there is one that can be met.
    pub(super) fn learn(&self, headers: &HeaderMap) -> Option<Challenge> {
        let challenge = Challenge::read(headers)?;
        let mut known = self
            .challenge
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Some(known.insert(challenge).clone())
    }

    /// Where the API is: always HTTPS, unless the host is listed as insecure. Then it is tried,
    /// and the outcome remembered. A host with a port of its own gets plain HTTP first: one port
    /// speaks one of the two, and asking an HTTP server for a page is the cheaper question. No
    /// credential goes along with it.
    pub(super) async fn base(&self, inner: &Inner) -> Result<&Base, RegistryError> {
        self.base.get_or_try_init(|| self.find_base(inner)).await
    }

    async fn find_base(&self, inner: &Inner) -> Result<Base, RegistryError> {
        let https = self.url("https")?;
        let http = self.url("http")?;
        if !inner.insecure.allows(&http) {
            return Ok(Base { url: https });
        }
        let order = if https.port().is_some() {
            [&http, &https]
        } else {
            [&https, &http]
        };
        let mut failure = None;
        let mut refused_plain = None;
        for url in order {
            match self.probe(inner, url).await {
                Ok(true) => return Ok(Base { url: url.clone() }),
                Ok(false) => refused_plain = Some(url.clone()),
                Err(RegistryError::PlainHttp { .. }) => {}
                Err(error) => failure = Some(error),
            }
        }
        // No TLS there after all, whatever the HTTP server meant by its answer.
        if let (Some(url), None) = (refused_plain, &failure) {
            return Ok(Base { url });
        }
        Err(failure.unwrap_or_else(|| RegistryError::Protocol {
            host: self.name.clone(),
            what: "find its API".to_owned(),
            reason: "it speaks neither HTTP nor TLS".to_owned(),
        }))
    }

    /// Docker Hub's API is not at the name that references give it.
    fn url(&self, scheme: &str) -> Result<Url, RegistryError> {
        let api = match self.name.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            name => name,
        };
        Url::parse(&format!("{scheme}://{api}/")).map_err(|error| RegistryError::Protocol {
            host: self.name.clone(),
            what: "make a URL of it".to_owned(),
            reason: error.to_string(),
        })
    }

    /// Whether a registry answers at this URL.
    async fn probe(&self, inner: &Inner, url: &Url) -> Result<bool, RegistryError> {
        let exchange = Exchange {
            what: format!("find out how {} is spoken to", self.name),
            method: Method::GET,
            url: url.join("v2/").unwrap_or_else(|_| url.clone()),
            headers: HeaderMap::new(),
            payload: Payload::Empty,
        };
        let answer = tokio::time::timeout(PROBE_TIME, inner.send(&exchange)).await;
        let response = answer.map_err(|_| RegistryError::Stalled {
            host: self.name.clone(),
            what: exchange.what.clone(),
            after: PROBE_TIME,
        })??;
        if url.scheme() == "http" && wants_tls(&response) {
            return Ok(false);
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            self.learn(response.headers());
        }
        Ok(true)
    }
}

/// TLS servers answer a plain request with 400, or send it to their `https` URL.
fn wants_tls(response: &Response) -> bool {
    let redirected = response.status().is_redirection()
        && response
            .headers()
            .get(LOCATION)
            .and_then(|location| location.to_str().ok())
            .is_some_and(|location| location.starts_with("https:"));
    redirected || response.status() == StatusCode::BAD_REQUEST
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.name).finish()
    }
}
