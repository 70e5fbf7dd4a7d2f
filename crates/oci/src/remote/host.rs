//! State of a registry host: its protocol, its challenge and its tokens.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode, Url};
use tokio::sync::OnceCell;
use wincimg_common::lock;
use wincimg_http::{AddressPolicy, Exchange, HttpClient, HttpError, header_text};

use super::capabilities::HostCapabilities;
use super::challenge::{Challenge, Scope, Tokens};
use super::credentials::Credentials;
use super::error::RegistryError;

/// Known state of a host.
#[derive(Default)]
pub(super) struct Host {
    /// Its name in references: `docker.io`, `repo.lan:5000`.
    pub(super) name: String,
    tokens: Mutex<Tokens>,
    /// One lock for each scope: requests for the same token wait for it, others do not.
    fetching: Mutex<HashMap<Scope, Arc<tokio::sync::Mutex<()>>>>,
    pub(super) credentials: OnceCell<Credentials>,
    /// Set once the API's root was requested for a challenge.
    pub(super) knocked: OnceCell<()>,
    pub(super) takes: HostCapabilities,
    base: OnceCell<Url>,
    /// Error of the first request, if it was sent before the protocol was known.
    unanswered: Mutex<Option<HttpError>>,
    challenge: Mutex<Option<Challenge>>,
}

/// Time limit to detect the protocol of a listed host.
const PROBE_TIME: Duration = Duration::from_secs(10);

impl Host {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// The tokens obtained so far.
    pub(super) fn tokens(&self) -> MutexGuard<'_, Tokens> {
        lock(&self.tokens)
    }

    /// Returns the lock held while a token of this scope is fetched.
    pub(super) fn token_lock(&self, scope: &Scope) -> Arc<tokio::sync::Mutex<()>> {
        let mut fetching = lock(&self.fetching);
        Arc::clone(fetching.entry(scope.clone()).or_default())
    }

    /// The last challenge that the host sent.
    pub(super) fn challenge(&self) -> Option<Challenge> {
        lock(&self.challenge).clone()
    }

    /// Records the challenge of a 401 response, if it is supported.
    pub(super) fn record_challenge(&self, answer: &Response) -> Option<Challenge> {
        let challenge = Challenge::read(answer.headers(), answer.url())?;
        let mut known = lock(&self.challenge);
        Some(known.insert(challenge).clone())
    }

    /// Returns the API's URL: always HTTPS, unless the host is listed as insecure or is this machine;
    /// then the protocol is probed once. A host with an explicit port is probed with plain HTTP first, which
    /// is the cheaper request. No credential is sent.
    pub(super) async fn base(&self, connections: &HttpClient) -> Result<&Url, RegistryError> {
        self.base
            .get_or_try_init(|| self.find_base(connections))
            .await
    }

    /// Returns the probable URL of a listed host's API while its protocol is unknown: the first
    /// real request can replace the probe.
    pub(super) fn likely_base(&self, connections: &HttpClient) -> Option<Url> {
        let http = self.url("http").ok()?;
        let is_open = !self.base.initialized() && self.unanswered().is_none();
        (is_open && http.port().is_some() && connections.allow_named(&http)).then_some(http)
    }

    /// Sends a request to the probable URL and returns the response if it confirms the URL. No
    /// credential is sent.
    pub(super) async fn try_base(
        &self,
        connections: &HttpClient,
        exchange: &Exchange<'_>,
        likely: Url,
    ) -> Option<Response> {
        match self.first_answer(connections, exchange).await {
            Ok(response) if !wants_tls(&response) => {
                // A concurrent request may have set it.
                let _ = self.base.set(likely);
                (!response.status().is_redirection()).then_some(response)
            }
            Ok(_) => None,
            Err(error) => {
                *self.unanswered() = Some(error);
                None
            }
        }
    }

    fn unanswered(&self) -> MutexGuard<'_, Option<HttpError>> {
        lock(&self.unanswered)
    }

    async fn find_base(&self, connections: &HttpClient) -> Result<Url, RegistryError> {
        let https = self.url("https")?;
        let http = self.url("http")?;
        if !connections.is_listed(&http) {
            let is_plain =
                connections.allow_named(&http) && self.is_plain(connections, &http).await;
            return Ok(if is_plain { http } else { https });
        }
        let order = if https.port().is_some() {
            [&http, &https]
        } else {
            [&https, &http]
        };
        let mut failure = None;
        let mut refused_plain = None;
        for url in order {
            let unanswered = self.unanswered().take_if(|_| url == &http);
            let probed = match unanswered {
                Some(error) => Err(error),
                None => self.probe(connections, url).await,
            };
            match probed {
                Ok(true) => return Ok(url.clone()),
                Ok(false) => refused_plain = Some(url.clone()),
                Err(HttpError::PlainHttp { .. }) => {}
                Err(error) => failure = Some(error),
            }
        }
        // Not TLS, despite the HTTP server's response.
        if let (Some(url), None) = (refused_plain, &failure) {
            return Ok(url);
        }
        Err(match failure {
            Some(error) => error.into(),
            None => RegistryError::protocol(
                &self.name,
                "find its API",
                "it speaks neither HTTP nor TLS",
            ),
        })
    }

    /// Returns true if a registry on this machine answers plain HTTP. A TLS server gets two requests
    /// that it cannot read, and no other: one that is just starting may drop the first.
    async fn is_plain(&self, connections: &HttpClient, http: &Url) -> bool {
        let unanswered = self.unanswered().take();
        let mut probed = match unanswered {
            Some(error) => Err(error),
            None => self.probe(connections, http).await,
        };
        if let Err(HttpError::Unreachable { .. }) = probed {
            probed = self.probe(connections, http).await;
        }
        probed.unwrap_or(false)
    }

    /// Docker Hub's API has another host name than references.
    fn url(&self, scheme: &str) -> Result<Url, RegistryError> {
        let api = match self.name.as_str() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            name => name,
        };
        Url::parse(&format!("{scheme}://{api}/")).map_err(|error| {
            RegistryError::protocol(&self.name, "make a URL of it", error.to_string())
        })
    }

    pub(super) fn root(base: &Url) -> Url {
        base.join("v2/").unwrap_or_else(|_| base.clone())
    }

    /// Returns true if a registry answers at this URL.
    async fn probe(&self, connections: &HttpClient, url: &Url) -> Result<bool, HttpError> {
        let what = format!("find the protocol of {}", self.name);
        let mut exchange = Exchange::get(what, Self::root(url));
        exchange.addresses = AddressPolicy::ThisMachineToo;
        let response = self.first_answer(connections, &exchange).await?;
        if url.scheme() == "http" && wants_tls(&response) {
            return Ok(false);
        }
        if response.status() == StatusCode::UNAUTHORIZED {
            self.record_challenge(&response);
        }
        let _ = self.knocked.set(());
        Ok(true)
    }

    async fn first_answer(
        &self,
        connections: &HttpClient,
        exchange: &Exchange<'_>,
    ) -> Result<Response, HttpError> {
        let answer = tokio::time::timeout(PROBE_TIME, connections.send(exchange)).await;
        answer.map_err(|_| HttpError::stalled(&self.name, &exchange.what, PROBE_TIME))?
    }
}

/// Returns true for a TLS server's response to plain HTTP: 400, or a redirect to its `https` URL.
fn wants_tls(response: &Response) -> bool {
    let redirected = response.status().is_redirection()
        && header_text(response.headers(), LOCATION)
            .is_some_and(|location| location.starts_with("https:"));
    redirected || response.status() == StatusCode::BAD_REQUEST
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.name).finish()
    }
}
