//! Requests to a registry: authenticated, checked and retried.

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use wincimg_http::{AddressPolicy, Exchange, Payload, RedirectPolicy, TrustSource, host_of};

use super::auth::NOT_SENT;
use super::challenge::{Challenge, Scope};
use super::client::Inner;
use super::error::{RegistryError, check};
use super::host::Host;
use super::secret::SentSecrets;

/// Statuses by which registries hide content from anonymous clients.
const HIDDEN: [StatusCode; 3] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
];

/// A request of the distribution API.
pub(super) struct Request<'a> {
    pub(super) host: &'a Host,
    /// The repository it concerns; empty for the host.
    pub(super) repository: &'a str,
    pub(super) scope: Scope,
    /// The purpose, to follow "failed to".
    pub(super) what: String,
    pub(super) method: Method,
    pub(super) target: RequestTarget,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload<'a>,
}

pub(super) enum RequestTarget {
    /// A path below the host's `/v2/`, with its query.
    Api(String),
    /// A URL from a response of the registry.
    Url(Url),
}

impl Inner {
    /// Sends a request with retries; returns the successful response with its body unread.
    pub(super) async fn call(&self, request: &Request<'_>) -> Result<Response, RegistryError> {
        self.http.retry(|| self.once(request)).await
    }

    /// Sends a request with retries; returns the successful response with its whole body.
    pub(super) async fn fetch(
        &self,
        request: &Request<'_>,
        limit: u64,
    ) -> Result<(HeaderMap, Url, Bytes), RegistryError> {
        self.http.retry(|| self.fetch_once(request, limit)).await
    }

    /// A single attempt of [`Self::fetch`].
    pub(super) async fn fetch_once(
        &self,
        request: &Request<'_>,
        limit: u64,
    ) -> Result<(HeaderMap, Url, Bytes), RegistryError> {
        let response = self.once(request).await?;
        let headers = response.headers().clone();
        let url = response.url().clone();
        let body = self.http.read_body(response, &request.what, limit).await?;
        Ok((headers, url, body))
    }

    /// A single attempt.
    pub(super) async fn once(&self, request: &Request<'_>) -> Result<Response, RegistryError> {
        let answer = self.authorized(request).await;
        answer.map_err(|error| match request.repository {
            "" => error,
            _ => error.in_repository(),
        })
    }

    /// Answers a challenge, replaces a rejected token once, and repeats a request with the
    /// credential if the content may be hidden from anonymous clients.
    async fn authorized(&self, request: &Request<'_>) -> Result<Response, RegistryError> {
        let (host, repository) = (request.host, request.repository);
        let mut first = Box::pin(self.first_answer(request)).await;
        let base = host.base(&self.http).await?;
        let mut exchange = request.exchange(base)?;
        let at_home = exchange.url.origin() == base.origin();
        let mut scope = request.scope.clone();
        let (mut asked, mut knocked) = (false, false);
        let mut proof = None;
        if at_home && first.is_none() {
            proof = self.authorization(host, repository, &scope).await?;
        }
        loop {
            if let Some(proof) = &proof {
                exchange.headers.insert(AUTHORIZATION, proof.clone());
            }
            let response = match first.take() {
                Some(response) => response,
                None => self.http.send_following(&exchange).await?,
            };
            if !at_home || response.url().origin() != base.origin() {
                let elsewhere = host_of(response.url());
                let secrets = SentSecrets::new(proof.as_ref(), None);
                let what = &request.what;
                return check(&self.http, elsewhere, what, response, NOT_SENT, &secrets).await;
            }
            let status = response.status();
            let refused = status == StatusCode::UNAUTHORIZED;
            if refused
                && !asked
                && let Some(challenge) = host.record_challenge(&response)
            {
                asked = true;
                scope = scope.with(challenge.scope());
                Self::forget(host, proof.as_ref());
                let better = self.authorization(host, repository, &scope).await?;
                // The same password again would only count as another failed login.
                if better != proof {
                    proof = better;
                    continue;
                }
            }
            if proof.is_none() && !knocked && HIDDEN.contains(&status) {
                knocked = true;
                if self.credential(host, repository).await?.proof.is_some() {
                    self.probe_auth(host).await?;
                    proof = self.authorization(host, repository, &scope).await?;
                    if proof.is_some() {
                        continue;
                    }
                }
            }
            if refused {
                Self::forget(host, proof.as_ref());
            }
            return self
                .check_with_credential(request, base, proof.as_ref(), response)
                .await;
        }
    }

    /// Checks the last response of the request's own host: an error names the credential.
    async fn check_with_credential(
        &self,
        request: &Request<'_>,
        base: &Url,
        proof: Option<&HeaderValue>,
        response: Response,
    ) -> Result<Response, RegistryError> {
        let (host, status) = (request.host, response.status());
        let (credential, is_anonymous) = self
            .describe_credential(request, status, proof.is_some())
            .await?;
        // A token may be issued to anybody.
        let is_user = proof.is_some() && !is_anonymous;
        // The name known to the user and to `docker login`.
        let name = host.name.clone();
        let sent = match proof {
            Some(_) => {
                let credential = self.credential(host, request.repository).await?;
                credential.proof.as_ref()
            }
            None => None,
        };
        let secrets = SentSecrets::new(proof, sent);
        let what = &request.what;
        let checked = check(&self.http, name, what, response, &credential, &secrets).await;
        checked.map_err(|mut error| {
            if let RegistryError::Denied { known, flags, .. } = &mut error {
                *flags = self.http.flags_for(base, &host.name).into();
                let by_token = matches!(host.challenge(), Some(Challenge::Bearer { .. }));
                *known = is_user && (status != StatusCode::UNAUTHORIZED || by_token);
            }
            error
        })
    }

    /// Returns the response to the first request to a listed host, which also detects its protocol.
    async fn first_answer(&self, request: &Request<'_>) -> Option<Response> {
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        if !reads || matches!(request.target, RequestTarget::Url(_)) {
            return None;
        }
        let likely = request.host.likely_base(&self.http)?;
        let exchange = request.exchange(&likely).ok()?;
        request.host.try_base(&self.http, &exchange, likely).await
    }

    fn forget(host: &Host, proof: Option<&HeaderValue>) {
        if let Some(refused) = proof {
            host.tokens().remove(refused);
        }
    }

    /// Describes the credential used in a refused request; true if there is none.
    async fn describe_credential(
        &self,
        request: &Request<'_>,
        status: StatusCode,
        sent: bool,
    ) -> Result<(String, bool), RegistryError> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok((NOT_SENT.to_owned(), true));
        }
        let credential = self.credential(request.host, request.repository).await?;
        let is_anonymous = credential.proof.is_none();
        let description = if sent || is_anonymous {
            credential.to_string()
        } else {
            format!("no credential (the registry asks for none, so {credential} was not sent)")
        };
        Ok((description, is_anonymous))
    }
}

impl<'a> Request<'a> {
    /// Creates a request without headers and body.
    pub(super) fn new(
        host: &'a Host,
        repository: &'a str,
        method: Method,
        path: String,
        what: String,
    ) -> Self {
        Self {
            host,
            repository,
            scope: Scope::none(),
            what,
            method,
            target: RequestTarget::Api(path),
            headers: HeaderMap::new(),
            payload: Payload::Bytes(Bytes::new()),
        }
    }

    fn exchange(&self, base: &Url) -> Result<Exchange<'a>, RegistryError> {
        let url = match &self.target {
            RequestTarget::Url(url) => url.clone(),
            RequestTarget::Api(path) => {
                base.join("v2/")
                    .and_then(|v2| v2.join(path))
                    .map_err(|error| {
                        RegistryError::protocol(host_of(base), &self.what, error.to_string())
                    })?
            }
        };
        let addresses = AddressPolicy::for_link(base, &url);
        Ok(Exchange {
            what: self.what.clone(),
            method: self.method.clone(),
            url,
            headers: self.headers.clone(),
            payload: self.payload.clone(),
            redirects: RedirectPolicy::Anywhere,
            vouched: TrustSource::ByConnection,
            addresses,
            commits: !matches!(self.method, Method::GET | Method::HEAD),
        })
    }
}
