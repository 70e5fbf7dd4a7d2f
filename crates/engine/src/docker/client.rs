//! bollard on the transport of this crate.
//!
//! bollard 0.21 writes every request and reads the documents of the API. Its gaps are filled here.
//! With a foreign transport it leaves the version out of the path; it encodes credentials in a
//! base64 alphabet of which the daemon drops a part; a build has no isolation and at most 2 GiB of
//! memory. So each request is amended before it is sent.
//!
//! It also loses parts of some answers: a build's exit code, an `error` without `errorDetail`, the
//! layer and the digest of a push, and all of `/info` if one word is unknown. [`Client::call_raw`]
//! bypasses it for those answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bollard::auth::DockerCredentials;
use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use hyper::StatusCode;
use hyper::header::{HOST, HeaderValue};
use hyper::http::Error as HttpError;
use tokio::sync::mpsc;
use wincimg_cluster::live::ProgramError;
use wincimg_common::diagnose::Problem;
use wincimg_oci::remote::DaemonCredential;

use super::endpoint::Endpoint;
use super::error::{ApiVersion, DockerError, TRUNCATED, unanswered, unexpected};
use super::transport::{BodyTooLong, DaemonResponse, Transport, one_line};

/// Time limit for an answer that needs no work.
const TIME_LIMIT: Duration = Duration::from_secs(30);
const CREDENTIALS: [&str; 2] = ["x-registry-auth", "x-registry-config"];

/// A client of a daemon's API.
pub(super) struct Client {
    pub(super) endpoint: Endpoint,
    pub(super) transport: Arc<Transport>,
    pub(super) version: ApiVersion,
}

impl Client {
    pub(super) fn new(endpoint: Endpoint, version: ApiVersion) -> Result<Self, Problem> {
        Ok(Self {
            transport: Arc::new(Transport::new(&endpoint)?),
            endpoint,
            version,
        })
    }

    /// Makes a call whose answer bollard reads.
    pub(super) async fn call<T>(
        &self,
        what: &str,
        call: impl AsyncFnOnce(Docker) -> Result<T, Error>,
    ) -> Result<T, DockerError> {
        let work = async {
            let called = call(self.docker("", None)?).await;
            called.map_err(|error| self.explain(what, error))
        };
        within(what, work).await
    }

    /// Makes a call and returns the raw answer; bollard only reads errors. `more` is appended to
    /// the query.
    pub(super) async fn call_raw<T>(
        &self,
        what: &str,
        more: &str,
        call: impl AsyncFnOnce(Docker) -> Result<T, Error>,
    ) -> Result<DaemonResponse, DockerError> {
        let (tap, mut tapped) = mpsc::unbounded_channel();
        let called = call(self.docker(more, Some(tap))?).await;
        match (tapped.try_recv(), called) {
            (Ok(answer), _) => Ok(answer),
            (Err(_), Err(error)) => Err(self.explain(what, error)),
            (Err(_), Ok(_)) => Err(unanswered(what, TRUNCATED).into()),
        }
    }

    fn docker(
        &self,
        more: &str,
        tap: Option<mpsc::UnboundedSender<DaemonResponse>>,
    ) -> Result<Docker, DockerError> {
        let transport = Arc::clone(&self.transport);
        let version = self.version;
        let more = more.to_owned();
        let headers = self.endpoint.settings.headers.clone();
        let send = move |mut request: BollardRequest| {
            let amended = extend_request(&mut request, version, &more);
            for (name, value) in &headers {
                let entry = request.headers_mut().entry(name);
                entry.or_insert_with(|| value.clone());
            }
            let transport = Arc::clone(&transport);
            let tap = tap.clone();
            async move {
                amended?;
                // Not the query: build arguments may be secrets.
                tracing::debug!("docker: {} {}", request.method(), request.uri().path());
                let answer = transport.send(request).await?;
                match tap {
                    Some(tap) if answer.response.status().is_success() => {
                        // The receiver is gone if the caller stopped waiting.
                        drop(tap.send(answer.unbounded()));
                        Err(io::Error::other("the answer is read elsewhere").into())
                    }
                    _ => Ok(answer.into_response()),
                }
            }
        };
        // bollard's timeout runs until the head of the answer, which a build sends after it
        // received its whole context. So there is none.
        let docker = Docker::connect_with_custom_transport(
            send,
            Some("http://docker"),
            u64::MAX,
            API_DEFAULT_VERSION,
        );
        docker.map_err(|error| self.explain("connect", error))
    }

    fn unreachable(&self, source: io::Error) -> DockerError {
        DockerError::Unreachable {
            daemon: self.endpoint.address.to_string(),
            origin: self.endpoint.origin.clone(),
            source,
        }
    }

    fn explain(&self, what: &str, error: Error) -> DockerError {
        let what = what.to_owned();
        match error {
            Error::IOError { err: source } => self.unreachable(source),
            Error::HyperResponseError { err: source } => match connection_error(&source) {
                Some(error) => self.unreachable(error),
                None if is_too_long(&source) => unexpected(&what, &BodyTooLong).into(),
                None => DockerError::Broken { what, source },
            },
            Error::DockerResponseServerError {
                status_code: status,
                message,
            } => DockerError::Refused {
                what,
                status: Some(status),
                message: match StatusCode::from_u16(status) {
                    Ok(status) if message.is_empty() => status.to_string(),
                    _ => one_line(&message),
                },
                image: None,
            },
            other => unexpected(&what, &other).into(),
        }
    }
}

/// The error of a connection that never stood: of the program in a pod, or the alert of a daemon that
/// rejects a client after the handshake.
fn connection_error(error: &hyper::Error) -> Option<io::Error> {
    let cause = io_cause(error)?;
    match cause.downcast_ref::<ProgramError>() {
        Some(program) => Some(io::Error::other(program.clone())),
        None => match cause.downcast_ref::<rustls::Error>() {
            Some(alert @ rustls::Error::AlertReceived(_)) => Some(io::Error::other(alert.clone())),
            _ => None,
        },
    }
}

/// Returns true if the transport cut an answer off at its limit.
fn is_too_long(error: &hyper::Error) -> bool {
    io_cause(error).is_some_and(<dyn std::error::Error + Send + Sync>::is::<BodyTooLong>)
}

/// The error inside the transport's. A request that was not sent has hyper's error in hyper's error.
fn io_cause(error: &hyper::Error) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
    let first = std::error::Error::source(error);
    let mut causes = std::iter::successors(first, |error| error.source());
    let cause: &io::Error = causes.find_map(|error| error.downcast_ref())?;
    cause.get_ref()
}

/// A credential for a registry, as bollard takes it.
pub(super) fn credentials(credential: &DaemonCredential) -> DockerCredentials {
    let document = credential.expose_secret();
    let field = |name: &str| document[name].as_str().map(str::to_owned);
    DockerCredentials {
        username: field("username"),
        password: field("password"),
        identitytoken: field("identitytoken"),
        serveraddress: field("serveraddress"),
        ..DockerCredentials::default()
    }
}

/// Applies the time limit for calls that need no work.
pub(super) async fn within<T>(
    what: &str,
    work: impl Future<Output = Result<T, DockerError>>,
) -> Result<T, DockerError> {
    match tokio::time::timeout(TIME_LIMIT, work).await {
        Ok(result) => result,
        Err(_) => {
            let seconds = TIME_LIMIT.as_secs();
            let problem = format!("no answer from the Docker daemon within {seconds} seconds");
            Err(unanswered(what, &problem).into())
        }
    }
}

/// Adds to a request what bollard lacks.
fn extend_request(
    request: &mut BollardRequest,
    version: ApiVersion,
    more: &str,
) -> Result<(), Error> {
    let mut target = match request.uri().path() {
        // It reports the version, so it has none in its path.
        "/_ping" => "/_ping".to_owned(),
        path => format!("/v{version}{path}"),
    };
    let queries = [request.uri().query().unwrap_or_default(), more];
    let queries = queries.into_iter().filter(|query| !query.is_empty());
    for (query, mark) in queries.zip(['?', '&']) {
        target.push(mark);
        target.push_str(query);
    }
    *request.uri_mut() = target.parse()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("docker"));
    for name in CREDENTIALS {
        if let Some(value) = headers.get_mut(name) {
            let url_safe = value.as_bytes().iter().map(|byte| match byte {
                b'+' => b'-',
                b'/' => b'_',
                other => *other,
            });
            let url_safe = url_safe.collect::<Vec<_>>();
            *value = HeaderValue::from_bytes(&url_safe).map_err(HttpError::from)?;
            value.set_sensitive(true);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use bytes::Bytes;
    use futures_util::stream;
    use hyper::Request;
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use tokio::io::join;
    use tokio_util::io::StreamReader;

    use super::*;

    const VERSION: ApiVersion = ApiVersion(1, 41);

    fn request(uri: &str) -> BollardRequest {
        let body = bollard::body_full(Bytes::new());
        Request::get(uri).body(body).unwrap()
    }

    #[test]
    async fn the_cause_is_found_in_the_error_of_a_request_that_was_not_sent() {
        let broken = stream::iter([Err::<Bytes, _>(io::Error::other(BodyTooLong))]);
        let input = StreamReader::new(broken);
        let connection = TokioIo::new(join(input, tokio::io::sink()));
        let (mut sender, work) = http1::handshake(connection).await.unwrap();
        let sending = sender.send_request(request("http://docker/info"));
        drop(work.await);
        let error = sending.await.unwrap_err();
        assert!(error.is_canceled() && is_too_long(&error), "{error:?}");
    }

    #[test]
    fn credentials_are_in_the_alphabet_that_the_daemon_reads_and_do_not_show_themselves() {
        let secret = "{\"password\": \"??>>\u{fe}~~ÿÿ\"}";
        let written = STANDARD.encode(secret);
        assert!(written.contains('+') && written.contains('/'), "{written}");
        for name in CREDENTIALS {
            let mut request = request("http://docker/build");
            let value = HeaderValue::from_str(&written).unwrap();
            request.headers_mut().insert(name, value);
            extend_request(&mut request, VERSION, "").unwrap();
            let header = &request.headers()[name];
            assert_eq!(URL_SAFE.decode(header).unwrap(), secret.as_bytes());
            assert_eq!(format!("{header:?}"), "Sensitive");
        }
    }

    #[test]
    fn the_version_comes_before_the_path_and_what_is_missing_behind_the_query() {
        for (uri, more, expected) in [
            ("http://docker/_ping", "", "/_ping"),
            ("http://docker/info", "", "/v1.41/info"),
            ("http://docker/build?rm=true", "", "/v1.41/build?rm=true"),
            ("http://docker/build", "memory=1", "/v1.41/build?memory=1"),
            (
                "http://docker/build?rm=true",
                "isolation=hyperv&memory=1",
                "/v1.41/build?rm=true&isolation=hyperv&memory=1",
            ),
        ] {
            let mut request = request(uri);
            extend_request(&mut request, VERSION, more).unwrap();
            assert_eq!(request.uri().to_string(), expected);
            assert_eq!(request.headers()[HOST], "docker");
        }
    }
}
