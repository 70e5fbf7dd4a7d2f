//! HTTP exchanges: streamed bodies, redirects checked at each hop, time limits, and errors that
//! name host and purpose.

use std::collections::BTreeSet;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use reqwest::header::{CONTENT_LENGTH, LOCATION};
use reqwest::{Body, Client, Request, Response, Url};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_common::shell::command_line;

use super::addresses::AddressPolicy;
use super::certificates::CertificateFiles;
use super::clients::{Clients, Trust};
use super::error::HttpError;
use super::exchange::{Exchange, Payload, SourceRange, TrustSource, location};
use super::insecure_hosts::InsecureHosts;
use super::retry::{RetryBudget, RetryPolicy, Transient, retry_after};
use super::urls::{host_of, is_loopback, redacted};

/// HTTP client with a connection pool.
pub struct HttpClient {
    clients: Clients,
    insecure: InsecureHosts,
    /// Hosts on this machine that the user named, by name and port.
    local: Mutex<BTreeSet<(String, Option<u16>)>>,
    idle_timeout: Duration,
    /// The deadline of all requests, and the time limit it was derived from.
    limit: Option<(Instant, Duration)>,
    retries: RetryPolicy,
    progress: Arc<dyn Progress>,
}

/// Default for the maximum time without a byte before a connection counts as broken.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

const MOST_REDIRECTS: usize = 10;
/// Bytes read from a source at once; at most two such chunks are buffered.
const CHUNK: usize = 128 * 1024;
const CHUNKS_WAITING: usize = 2;
/// Factor for the idle timeout while a server commits a large upload.
const COMMIT_TIMEOUT_FACTOR: u32 = 10;

impl HttpClient {
    /// Creates a client. `insecure` lists the hosts (`HOST` or `HOST:PORT`) that may use plain HTTP
    /// or an unverified certificate.
    pub fn new(
        user_agent: &'static str,
        insecure: &[String],
        retries: RetryPolicy,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            clients: Clients::new(user_agent, CertificateFiles::default()),
            insecure: InsecureHosts::parse(insecure)?,
            local: Mutex::default(),
            idle_timeout: IDLE_TIMEOUT,
            limit: None,
            retries,
            progress,
        })
    }

    /// Sets the idle timeout.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets a time limit for all requests, from now on.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        self
    }

    /// Replaces the default certificate folders.
    #[must_use]
    pub fn with_certificates(mut self, files: CertificateFiles) -> Self {
        self.clients = Clients::new(self.clients.user_agent, files);
        self
    }

    /// Returns true if the user listed the URL's host as insecure.
    pub fn is_listed(&self, url: &Url) -> bool {
        self.insecure.allows(url)
    }

    /// The user's flags for connections to the host of a URL, for the command line of a hint.
    pub fn flags_for(&self, url: &Url, host: &str) -> String {
        if self.is_listed(url) {
            command_line(&["--insecure-registry", host])
        } else {
            command_line(&self.clients.certificates.to_words())
        }
    }

    /// Returns true if plain HTTP to the URL's host is allowed: it is listed, or it is this machine
    /// and the user named it. Others may lead here with a redirect, which stays refused.
    pub fn allow_named(&self, url: &Url) -> bool {
        if is_loopback(url) {
            lock(&self.local).insert(host_and_port(url));
        }
        self.allows_plain(url)
    }

    fn allows_plain(&self, url: &Url) -> bool {
        self.is_listed(url) || lock(&self.local).contains(&host_and_port(url))
    }

    /// The progress display.
    pub fn progress(&self) -> &dyn Progress {
        self.progress.as_ref()
    }

    /// The progress display, to be kept.
    pub fn shared_progress(&self) -> Arc<dyn Progress> {
        Arc::clone(&self.progress)
    }

    /// A new retry budget for one operation.
    pub fn attempts(&self) -> RetryBudget {
        let deadline = self.limit.map(|(deadline, _)| deadline);
        RetryBudget::new(self.retries, deadline, Arc::clone(&self.progress))
    }

    /// Repeats an operation while its errors are transient.
    pub async fn retry<T, E: Transient, F>(&self, mut operation: impl FnMut() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut attempts = self.attempts();
        loop {
            match operation().await {
                Ok(value) => return Ok(value),
                Err(error) => attempts.backoff(error).await?,
            }
        }
    }

    /// Sends a request and follows redirects; a status other than success is an error.
    pub async fn send_checked(&self, exchange: &Exchange<'_>) -> Result<Response, HttpError> {
        let response = self.send_following(exchange).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if response.headers().contains_key(LOCATION) {
            let target = location(&exchange.what, &response)?;
            return Err(exchange.not_followed(&target, "the request cannot be repeated there"));
        }
        Err(HttpError::Status {
            host: host_of(response.url()),
            what: exchange.what.clone(),
            status,
            detail: String::new(),
            retry_after: retry_after(response.headers(), SystemTime::now()),
        })
    }

    /// Fetches a text by GET.
    pub async fn page(&self, exchange: &Exchange<'_>, limit: u64) -> Result<String, HttpError> {
        let response = self.send_checked(exchange).await?;
        let body = self.read_body(response, &exchange.what, limit).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends a request and follows redirects; any final status is a response.
    pub async fn send_following(&self, exchange: &Exchange<'_>) -> Result<Response, HttpError> {
        let mut next = exchange.clone();
        for _ in 0..MOST_REDIRECTS {
            let response = self.send(&next).await?;
            if !next.follow_redirect(&response)? {
                return Ok(response);
            }
        }
        Err(exchange.not_followed(&next.url, "more than ten redirects"))
    }

    /// Sends a request once; any status is a response.
    pub async fn send(&self, exchange: &Exchange<'_>) -> Result<Response, HttpError> {
        let url = &exchange.url;
        let client = self
            .clients
            .get(url, self.trust(exchange)?, self.addresses(exchange)?)?;
        let mut request = Request::new(exchange.method.clone(), url.clone());
        *request.headers_mut() = exchange.headers.clone();
        let started = Instant::now();
        let sending = async {
            match &exchange.payload {
                Payload::Stream(piece) => self.stream(exchange, piece, client, request).await,
                Payload::Bytes(bytes) => {
                    if !exchange.is_safe() {
                        let length = bytes.len().into();
                        request.headers_mut().insert(CONTENT_LENGTH, length);
                        *request.body_mut() = Some(Body::from(bytes.clone()));
                    }
                    self.answer(exchange, client.execute(request)).await
                }
            }
        };
        let sent = self.with_deadline(&exchange.what, sending).await;
        let status = sent.as_ref().ok().map(|answer| answer.status().as_u16());
        tracing::debug!(
            method = %exchange.method,
            url = %redacted(url),
            status,
            ms = started.elapsed().as_millis(),
            "HTTP request"
        );
        sent
    }

    fn trust(&self, exchange: &Exchange<'_>) -> Result<Trust, HttpError> {
        let url = &exchange.url;
        let is_by_digest = exchange.vouched == TrustSource::ByDigest;
        match url.scheme() {
            "https" if self.is_listed(url) => Ok(Trust::AnyCertificate),
            "https" => Ok(Trust::SystemRoots),
            "http" if is_by_digest || self.allows_plain(url) => Ok(Trust::PlainHttp),
            _ => Err(HttpError::InsecureUrl {
                url: redacted(url),
                host: host_of(url),
            }),
        }
    }

    /// The addresses that a request may go to; an error if its URL has another one.
    fn addresses(&self, exchange: &Exchange<'_>) -> Result<AddressPolicy, HttpError> {
        let policy = if self.insecure.allows(&exchange.url) {
            AddressPolicy::Any
        } else {
            exchange.addresses
        };
        policy
            .check(&exchange.url)
            .map_err(|refused| HttpError::address(&refused.host, &refused, &exchange.what))?;
        Ok(policy)
    }

    /// Checks that the exchange uses TLS, or that its host may be reached without.
    pub fn check(&self, exchange: &Exchange<'_>) -> Result<(), HttpError> {
        self.trust(exchange).map(drop)
    }

    /// Sends a request whose body is streamed from a source.
    async fn stream(
        &self,
        exchange: &Exchange<'_>,
        piece: &SourceRange<'_>,
        client: Client,
        mut request: Request,
    ) -> Result<Response, HttpError> {
        let unreadable = |source| HttpError::Source {
            what: exchange.what.clone(),
            source,
        };
        let kept = lock(piece.reader).take();
        let mut reader = match kept {
            Some((offset, reader)) if offset == piece.offset => reader,
            _ => piece.source.open(piece.offset).await.map_err(unreadable)?,
        };
        piece.task.set_position(piece.offset);

        let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(CHUNKS_WAITING);
        let chunks = stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        request
            .headers_mut()
            .insert(CONTENT_LENGTH, piece.length.into());
        *request.body_mut() = Some(Body::wrap_stream(chunks));

        let idle = self.idle_timeout;
        let mut answer = pin!(client.execute(request));
        tokio::select! {
            answer = &mut answer => {
                return answer.map_err(|error| exchange.no_answer(error));
            }
            pumped = pump(&mut reader, piece, sender, idle) => match pumped {
                UploadEnd::All => {
                    *lock(piece.reader) = Some((piece.offset + piece.length, reader));
                }
                UploadEnd::Refused => {}
                UploadEnd::Stalled => return Err(exchange.stall_error(idle)),
                UploadEnd::Unreadable(error) => return Err(unreadable(error)),
            },
        }
        self.answer(exchange, answer).await
    }

    /// Waits for the response to a request that needs nothing more to be sent.
    async fn answer(
        &self,
        exchange: &Exchange<'_>,
        answer: impl Future<Output = reqwest::Result<Response>>,
    ) -> Result<Response, HttpError> {
        let times = if exchange.commits {
            COMMIT_TIMEOUT_FACTOR
        } else {
            1
        };
        let limit = self.idle_timeout.saturating_mul(times);
        match timeout(limit, answer).await {
            Ok(answer) => answer.map_err(|error| exchange.no_answer(error)),
            Err(_) => Err(exchange.stall_error(limit)),
        }
    }

    /// Reads a whole body of at most `limit` bytes into memory.
    pub async fn read_body(
        &self,
        mut response: Response,
        what: &str,
        limit: u64,
    ) -> Result<Bytes, HttpError> {
        let too_large = || {
            let what = format!("the response to the request to {what}");
            HttpError::too_large(&what, limit)
        };
        let announced = response.content_length();
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        loop {
            let at = body.len() as u64;
            let Some(chunk) = self.next_chunk(&mut response, what, at, announced).await? else {
                return Ok(body.freeze());
            };
            if at + chunk.len() as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Reads the next bytes of a body; `at` and `size` give the position for errors.
    pub async fn next_chunk(
        &self,
        response: &mut Response,
        what: &str,
        at: u64,
        size: Option<u64>,
    ) -> Result<Option<Bytes>, HttpError> {
        let idle = self.idle_timeout;
        let next = async { Ok::<_, HttpError>(timeout(idle, response.chunk()).await) };
        let next = self.with_deadline(what, next).await?;
        let host = || host_of(response.url());
        match next {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => {
                let what = format!("the response of {}", host());
                let problem = HttpError::interrupted(&what, at, size.unwrap_or(at));
                Err(HttpError::Passing(problem.source(error.without_url())))
            }
            Err(_) => Err(HttpError::stalled(&host(), what, idle)),
        }
    }

    /// Runs a future until the time limit.
    pub async fn with_deadline<T, E: From<HttpError>>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some((deadline, limit)) = self.limit else {
            return work.await;
        };
        let what = what.to_owned();
        tokio::time::timeout_at(deadline, work)
            .await
            .unwrap_or_else(|_| Err(HttpError::TimeLimit { what, limit }.into()))
    }
}

/// Result of reading the source of an upload.
enum UploadEnd {
    All,
    /// The connection accepts no more data; the response or its error has the reason.
    Refused,
    Stalled,
    Unreadable(io::Error),
}

async fn pump(
    reader: impl AsyncRead,
    piece: &SourceRange<'_>,
    sender: mpsc::Sender<io::Result<Bytes>>,
    idle: Duration,
) -> UploadEnd {
    let mut reader = pin!(reader.take(piece.length));
    let mut sent = 0;
    while sent < piece.length {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        match reader.read_buf(&mut chunk).await {
            Ok(0) => {
                let reason = format!("it ended after {} bytes", piece.offset + sent);
                return UploadEnd::Unreadable(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            }
            Ok(_) => {}
            Err(error) => return UploadEnd::Unreadable(error),
        }
        let length = chunk.len() as u64;
        match timeout(idle, sender.send(Ok(chunk.freeze()))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return UploadEnd::Refused,
            Err(_) => return UploadEnd::Stalled,
        }
        sent += length;
        piece.task.advance(length);
    }
    UploadEnd::All
}

fn host_and_port(url: &Url) -> (String, Option<u16>) {
    let host = url.host_str().unwrap_or_default();
    (host.to_ascii_lowercase(), url.port_or_known_default())
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;

    use super::*;

    fn checked(insecure: &[&str], url: &str, vouched: TrustSource) -> Result<(), HttpError> {
        let insecure: Vec<String> = insecure.iter().map(|&entry| entry.to_owned()).collect();
        let http =
            HttpClient::new("test", &insecure, RetryPolicy::default(), Arc::new(Silent)).unwrap();
        let mut exchange = Exchange::get("read it", url.parse().unwrap());
        exchange.vouched = vouched;
        http.check(&exchange)
    }

    #[test]
    fn plain_http_is_for_listed_hosts_and_for_bytes_that_a_digest_vouches_for() {
        use TrustSource::{ByConnection, ByDigest};

        let allowed = |url: &str, vouched| checked(&["catalog.lan:8080"], url, vouched).is_ok();
        assert!(allowed("http://catalog.lan:8080/x", ByConnection));
        assert!(!allowed("http://catalog.lan:8081/x", ByConnection));
        assert!(!allowed("http://127.0.0.1/x", ByConnection));
        assert!(allowed("http://elsewhere/x", ByDigest));
        assert!(!allowed("ftp://elsewhere/x", ByDigest));
    }

    #[test]
    fn this_machine_is_reached_by_plain_http_once_the_user_named_it() {
        let http = HttpClient::new("test", &[], RetryPolicy::default(), Arc::new(Silent)).unwrap();
        let check = |url: &str| http.check(&Exchange::get("read it", url.parse().unwrap()));
        for url in [
            "http://127.0.0.2:5000/", "http://localhost:5000/", "http://[::1]:5000/",
        ] {
            assert!(check(url).is_err(), "{url}");
            assert!(http.allow_named(&url.parse().unwrap()), "{url}");
            assert!(check(url).is_ok(), "{url}");
        }
        // Another port may be another service.
        assert!(check("http://localhost:5001/").is_err());
        for url in [
            "http://repo.lan:5000/",
            "http://localhost.evil.lan/",
            "http://10.0.0.1/",
        ] {
            assert!(!http.allow_named(&url.parse().unwrap()), "{url}");
            assert!(check(url).is_err(), "{url}");
        }
    }

    #[test]
    fn link_local_and_file_addresses_get_no_trust_hint() {
        use wincimg_common::diagnose::Diagnose as _;

        let hint = |url: &str| {
            let error = checked(&[], url, TrustSource::ByConnection).unwrap_err();
            error.diagnosis().hint
        };
        for url in [
            "http://169.254.169.254/latest/meta-data",
            "http://[fe80::1]:5000/x",
            "file:///etc/passwd",
            "file://server/share",
            "ftp://elsewhere/x",
        ] {
            assert_eq!(hint(url), None, "{url}");
        }
        assert!(hint("http://repo.lan/x").is_some());
    }

    #[test]
    fn the_error_names_the_host_as_the_list_takes_it() {
        let url = "http://user:secret@catalog.lan:8080/x?token=secret";
        let error = checked(&[], url, TrustSource::ByConnection).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(matches!(error, HttpError::InsecureUrl { host, .. } if host == "catalog.lan:8080"));
    }
}
