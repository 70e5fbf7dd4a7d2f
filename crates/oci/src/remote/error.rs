//! Errors of registry operations, with hints.

use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode};
use wincimg_common::diagnose::{Diagnose, Excerpt, Problem, error_chain};
use wincimg_http::{HttpClient, HttpError, Transient, is_metadata, retry_after, wait_hint};

use super::error_message::error_message;
use super::secret::SentSecrets;
use crate::document::{self, Digest, Hasher, ManifestFormat, WEB_PAGE_HINT};
use crate::reference::DOCKER_HUB;

/// Maximum size of an error's body that is read.
const ERROR_LIMIT: u64 = 64 * 1024;

/// Hint for content that its source does not have, or has damaged.
const ELSEWHERE: &str = "use another registry, which has the image with all of its layers";

/// Error of a registry operation.
#[derive(Debug, thiserror::Error, Diagnose)]
#[non_exhaustive]
#[diagnose(code = "registry/answer")]
pub enum RegistryError {
    /// An HTTP error, or an error of the server without a case of its own.
    #[error(transparent)]
    #[diagnose(forward, hint = http_hint(_0))]
    Http(#[from] HttpError),
    /// 401: no credential, or one that the registry rejects; 403: one without the permission.
    #[error(
        "{host} refused to {what} ({}): tried {credential}{detail}",
        status.to_string().to_lowercase()
    )]
    #[diagnose(code = "registry/denied", hint = Some(access_hint(host, *known, flags)))]
    Denied {
        /// Host and port.
        host: String,
        /// 401 or 403.
        status: StatusCode,
        /// The operation that failed.
        what: String,
        /// The credential that was tried, and its origin.
        credential: Box<str>,
        /// The registry's message, with a leading colon.
        detail: Box<str>,
        /// True if the credential was sent, and is valid but insufficient.
        known: bool,
        /// The user's flags for connections to the host, which a login requires too.
        flags: Box<str>,
    },
    /// 404 of a repository, or of something in it.
    #[error("{answer}")]
    #[diagnose(code = "registry/not-found", hint = hint.clone())]
    NotFound {
        /// The registry's response.
        answer: Box<HttpError>,
        /// True if the registry states that the repository does not exist.
        is_repository_missing: bool,
        /// A suggestion, or what to check.
        hint: Option<String>,
    },
    /// A credential exists but would be sent unencrypted.
    #[error("{host} uses plain HTTP, and {credential} would be sent unencrypted")]
    #[diagnose(
        code = "registry/plain-credentials",
        hint = "serve {host} over TLS, or add --plain-credentials to send it anyway"
    )]
    PlainCredentials {
        /// Host and port.
        host: String,
        /// The credential that was tried, and its origin.
        credential: String,
    },
    /// A token server of another site would get the credential.
    #[error(
        "{host} names the token server {server}, of another site: {credential} is not sent to it"
    )]
    #[diagnose(
        code = "registry/token-server",
        hint = (!is_metadata(server))
            .then(|| format!("if {host} really uses it, add --token-server {server}"))
    )]
    TokenServer {
        /// Host and port of the registry.
        host: String,
        /// Host and port of the token server.
        server: String,
        /// The credential, and its origin.
        credential: String,
    },
    /// Docker's `config.json` or a credential helper failed.
    #[error("cannot use {origin} for the credential of {host}: {reason}")]
    #[diagnose(code = "registry/credential", hint = "correct {origin}, or name another file with --registry-config FILE", excerpt = excerpt.as_deref().cloned())]
    Credential {
        /// Host and port.
        host: String,
        /// The file or helper.
        origin: String,
        /// The problem.
        reason: String,
        /// The line of the file, without possible secrets.
        excerpt: Option<Box<Excerpt>>,
    },
    /// The token server named by a registry failed.
    #[error("cannot get a token for {host} from {realm}")]
    #[diagnose(forward, blame = Circumstances)]
    Token {
        /// Host and port of the registry.
        host: String,
        /// The token server's URL.
        realm: String,
        /// The token server's error.
        source: Box<RegistryError>,
    },
    /// The registry rejects manifests of this type.
    #[error("{repository} does not accept manifests of type {media_type}")]
    #[diagnose(code = "registry/manifest-format", hint = Some(other_format(media_type)))]
    Manifest {
        /// The repository.
        repository: String,
        /// The manifest's media type.
        media_type: String,
        /// The registry's response.
        source: Box<RegistryError>,
    },
    /// Several attempts failed.
    #[error("{}, after {attempts} attempts", error_chain(last))]
    #[diagnose(forward = last, blame = Circumstances)]
    GaveUp {
        /// Number of attempts.
        attempts: usize,
        /// The last failure.
        last: Box<RegistryError>,
    },
    /// The content does not match its digest.
    #[error("{what} is damaged: expected digest {expected}, got {actual}")]
    #[diagnose(code = "registry/changed", hint = Some(ELSEWHERE.to_owned()))]
    Digest {
        /// Name of the content.
        what: String,
        /// The expected digest.
        expected: String,
        /// The actual digest.
        actual: String,
    },
    /// The size differs from the descriptor's.
    #[error("{what} has the wrong length: expected {expected} bytes, got {actual}")]
    #[diagnose(code = "registry/changed", hint = Some(ELSEWHERE.to_owned()))]
    Length {
        /// Name of the content.
        what: String,
        /// The size in the descriptor.
        expected: u64,
        /// The announced or received size.
        actual: u64,
    },
    /// A digest in an algorithm other than SHA-2.
    #[error("cannot check the digest {0}: expected sha256, sha384 or sha512")]
    DigestAlgorithm(String),
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnose(forward)]
    File(#[from] Problem),
}

impl RegistryError {
    /// The HTTP status of the registry's response, if any.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Http(error) => error.status(),
            Self::Denied { status, .. } => Some(*status),
            Self::GaveUp { last: source, .. } | Self::Manifest { source, .. } => source.status(),
            Self::NotFound { answer, .. } => answer.status(),
            _ => None,
        }
    }

    /// Returns true for a not-found response.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }

    /// Returns true if the registry states that the repository does not exist.
    pub fn is_repository_missing(&self) -> bool {
        matches!(self, Self::NotFound { is_repository_missing, .. } if *is_repository_missing)
    }

    /// Returns true if access was denied to a known or anonymous user.
    pub fn is_not_allowed(&self) -> bool {
        matches!(self, Self::Denied { status, known, .. }
            if *status == StatusCode::FORBIDDEN || *known)
    }

    /// Returns true if a manifest may have been rejected because of its format.
    pub(super) fn is_format_rejected(&self) -> bool {
        matches!(self.answer(), Some(HttpError::Status { status, detail, .. })
            if *status == StatusCode::UNSUPPORTED_MEDIA_TYPE
                || status.is_client_error() && detail.contains("MANIFEST_INVALID"))
    }

    /// Returns true if a manifest was rejected because of a missing blob.
    pub(crate) fn is_blob_missing(&self) -> bool {
        match self {
            Self::Manifest { source, .. } | Self::GaveUp { last: source, .. } => {
                source.is_blob_missing()
            }
            other => matches!(other.answer(), Some(HttpError::Status { detail, .. })
                if detail.contains("BLOB_UNKNOWN")),
        }
    }

    /// Returns true if a registry, or a proxy in front of it, does not support HEAD.
    pub(super) fn is_head_unsupported(&self) -> bool {
        self.status()
            .is_some_and(|status| matches!(status.as_u16(), 400 | 405 | 501))
    }

    /// The status of any response, including the token server's.
    pub(super) fn response_status(&self) -> Option<StatusCode> {
        match self {
            Self::Token { source, .. } | Self::GaveUp { last: source, .. } => {
                source.response_status()
            }
            other => other.status(),
        }
    }

    /// The error as that of a request in a repository: a 404 is then about what was requested, and
    /// not about the registry.
    pub(super) fn in_repository(self) -> Self {
        match self {
            Self::Http(answer) if answer.status() == Some(StatusCode::NOT_FOUND) => {
                Self::NotFound {
                    is_repository_missing: matches!(&answer, HttpError::Status { detail, .. }
                        if detail.contains("NAME_UNKNOWN")),
                    hint: http_hint(&answer),
                    answer: Box::new(answer),
                }
            }
            other => other,
        }
    }

    /// The error as that of a blob that a manifest names: the name and tag of the image are right.
    pub(super) fn of_blob(mut self) -> Self {
        if let Self::NotFound { hint, .. } = &mut self {
            let lost = "the registry lost a part of the image: push it again, or use another registry; \
                        if steps on Windows made it, `wincimg build IMAGE --no-cache` runs them again";
            *hint = Some(lost.to_owned());
        }
        self
    }

    /// The error as that of a foreign layer at its URL, which the user did not type.
    pub(super) fn of_foreign_layer(self) -> Self {
        let mut error = self.in_repository();
        if let Self::NotFound { hint, .. } = &mut error {
            *hint = Some(ELSEWHERE.to_owned());
        }
        error
    }

    /// The response or the transport's error.
    fn answer(&self) -> Option<&HttpError> {
        match self {
            Self::Http(answer) => Some(answer),
            Self::NotFound { answer, .. } => Some(answer),
            _ => None,
        }
    }

    /// The HTTP error, also of the token server.
    fn http_error(&self) -> Option<&HttpError> {
        match self {
            Self::Http(error) => Some(error),
            Self::Token { source, .. } => source.http_error(),
            _ => None,
        }
    }

    pub(super) fn hasher_of(expected: &Digest) -> Result<Hasher, Self> {
        document::hasher_of(expected).map_err(|_| Self::DigestAlgorithm(expected.to_string()))
    }

    /// Compares two digests; `what` names the content in the error.
    pub(super) fn verify(actual: &Digest, expected: &Digest, what: &str) -> Result<(), Self> {
        if actual == expected {
            return Ok(());
        }
        Err(Self::Digest {
            what: what.to_owned(),
            expected: expected.to_string(),
            actual: actual.to_string(),
        })
    }

    /// An error for a web page in place of a registry's response.
    pub(super) fn web_page(host: impl AsRef<str>, what: &str) -> Self {
        let host = host.as_ref();
        let problem = format!("{host} sent a web page in response to the request to {what}");
        HttpError::from(Problem::new("network/answer", problem).hint(WEB_PAGE_HINT)).into()
    }

    /// An error for a response that violates the distribution specification.
    pub(super) fn protocol(host: impl AsRef<str>, what: &str, reason: impl AsRef<str>) -> Self {
        HttpError::protocol(host.as_ref(), what, reason.as_ref()).into()
    }
}

impl Transient for RegistryError {
    fn is_transient(&self) -> bool {
        // Docker's registry answers 500 if it refuses the URLs of foreign layers.
        !self.is_blob_missing() && self.http_error().is_some_and(Transient::is_transient)
    }

    fn is_settled(&self) -> bool {
        self.http_error().is_some_and(Transient::is_settled)
    }

    fn retry_after(&self) -> Option<Duration> {
        self.http_error()?.retry_after()
    }

    fn after(self, attempts: usize) -> Self {
        Self::GaveUp {
            attempts,
            last: Box::new(self),
        }
    }
}

fn access_hint(host: &str, is_known: bool, flags: &str) -> String {
    let host = login_name(host);
    let login = format!("wincimg login {host} {flags}");
    let login = format!("`{}`", login.trim_end());
    if is_known {
        format!(
            "ask the owner of the repository for access, or log in as another user with {login}"
        )
    } else {
        format!("log in with {login}, or name another file with --registry-config FILE")
    }
}

fn other_format(media_type: &str) -> String {
    let (name, flag) = match ManifestFormat::from_media_type(media_type) {
        ManifestFormat::Oci => ("Docker", "docker"),
        ManifestFormat::Docker => ("OCI", "oci"),
    };
    format!(
        "publish it in {name}'s format: `wincimg build IMAGE --manifest-format {flag}`, or for an \
         image that exists `wincimg copy SRC DST --manifest-format {flag} --ordinary-layers`"
    )
}

/// Returns a hint specific to registries.
fn http_hint(error: &HttpError) -> Option<String> {
    let hint = match error {
        HttpError::Status {
            status: StatusCode::TOO_MANY_REQUESTS,
            host,
            retry_after,
            ..
        } => return Some(rate_limit_hint(host, *retry_after)),
        // Some registries add a code such as `DIGEST_INVALID`.
        HttpError::Status { detail, .. } if detail.contains("MANIFEST_BLOB_UNKNOWN") => {
            "the registry lost content of the image, as it may while other clients push the same: run the same command again"
        }
        HttpError::Status { detail, .. } if detail.to_lowercase().contains("immutab") => {
            "the repository's tags cannot be overwritten: push another tag; for the tags windows-… of \
             a build, name another repository with `wincimg build IMAGE --cache-to REPOSITORY`"
        }
        HttpError::Status { status, detail, .. } => match *status {
            StatusCode::NOT_FOUND => {
                "check the name and the tag or digest; some registries also return this if access is denied"
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                "a proxy before the registry limits the size of requests (nginx: client_max_body_size 0)"
            }
            StatusCode::BAD_REQUEST if detail.contains("DIGEST_INVALID") => {
                "the source's content does not match the image's digest: copy the image from another source"
            }
            _ => return None,
        },
        // The source of an upload failed, not the registry.
        HttpError::Source { source, .. } => {
            let inner = source.get_ref()?.downcast_ref::<RegistryError>()?;
            return inner.diagnosis().hint;
        }
        HttpError::Unreachable { host, .. } if login_name(host) == DOCKER_HUB => {
            let check = error.diagnosis().hint.unwrap_or_default();
            return Some(format!(
                "a name without a host is on Docker Hub: write HOST/NAME for another registry; or \
                 {check}"
            ));
        }
        other => return other.diagnosis().hint,
    };
    Some(hint.to_owned())
}

/// The host name for login: Docker Hub's API has another one.
fn login_name(host: &str) -> &str {
    if host.ends_with(DOCKER_HUB) {
        DOCKER_HUB
    } else {
        host
    }
}

/// Returns a hint after too many requests: when to retry, and how to raise the limit.
fn rate_limit_hint(host: &str, retry_after: Option<Duration>) -> String {
    let when = wait_hint(retry_after);
    if host.ends_with("docker.io") {
        format!("log in with `wincimg login docker.io` for a higher limit, or {when}")
    } else {
        format!("{when}; some registries have a higher limit after `wincimg login {host}`")
    }
}

/// Returns a successful response, or the error of `host` with its message. `credential` describes the
/// credential that was sent; `secrets` are hidden in the message.
pub(super) async fn check(
    http: &HttpClient,
    host: String,
    what: &str,
    response: Response,
    credential: &str,
    secrets: &SentSecrets,
) -> Result<Response, RegistryError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let retry_after = retry_after(response.headers(), SystemTime::now());
    let body = http.read_body(response, what, ERROR_LIMIT).await;
    let detail = body
        .map(|body| error_message(&body, secrets))
        .unwrap_or_default();
    let what = what.to_owned();
    Err(match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RegistryError::Denied {
            host,
            status,
            what,
            credential: credential.into(),
            detail: detail.into(),
            known: false,
            flags: Box::default(),
        },
        _ => RegistryError::Http(HttpError::Status {
            host,
            what,
            status,
            detail,
            retry_after,
        }),
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn source(inner: RegistryError) -> RegistryError {
        RegistryError::Http(HttpError::Source {
            what: "upload blob sha256:00 to mirror.lan/app".to_owned(),
            source: io::Error::other(inner),
        })
    }

    fn status(status: StatusCode, detail: &str) -> RegistryError {
        RegistryError::Http(HttpError::Status {
            host: "cdn.lan".to_owned(),
            what: "do it".to_owned(),
            status,
            detail: detail.to_owned(),
            retry_after: None,
        })
    }

    #[test]
    fn a_404_of_a_repository_is_told_as_such_whatever_the_registry_says() {
        for detail in ["", ": gone (MANIFEST_UNKNOWN)", ": gone (NAME_UNKNOWN)"] {
            let error = status(StatusCode::NOT_FOUND, detail).in_repository();
            let diagnosis = error.diagnosis();
            assert_eq!(diagnosis.code, "registry/not-found");
            assert!(diagnosis.hint.is_some(), "{detail}");
            assert!(error.is_not_found(), "{detail}");
            let is_missing = detail.contains("NAME_UNKNOWN");
            assert_eq!(error.is_repository_missing(), is_missing);
            let expected = format!("cdn.lan failed to do it: 404 Not Found{detail}");
            assert_eq!(error.to_string(), expected);
        }
        let other = status(StatusCode::BAD_GATEWAY, "").in_repository();
        assert_eq!(other.diagnosis().code, "network/answer");
        let lost = status(StatusCode::NOT_FOUND, ": lost (BLOB_UNKNOWN)").in_repository();
        assert!(lost.is_blob_missing());
    }

    #[test]
    fn what_stops_the_reading_of_an_upload_is_said_with_its_own_hint() {
        let insecure = source(RegistryError::Http(HttpError::InsecureUrl {
            url: "http://cdn.lan/layer".to_owned(),
            host: "cdn.lan".to_owned(),
        }));
        let expected = "cannot upload blob sha256:00 to mirror.lan/app: its content cannot be read";
        assert_eq!(insecure.to_string(), expected);
        let hint = insecure.diagnosis().hint.unwrap();
        assert!(hint.contains("--insecure-registry cdn.lan"), "{hint}");
        let gone = || status(StatusCode::NOT_FOUND, "").of_foreign_layer();
        let damaged = || RegistryError::Length {
            what: "layer sha256:00 of cdn.lan".to_owned(),
            expected: 2,
            actual: 1,
        };
        // A layout has no upload.
        for error in [gone(), source(gone()), damaged(), source(damaged())] {
            assert_eq!(error.diagnosis().hint.as_deref(), Some(ELSEWHERE));
        }
        let lost = status(StatusCode::NOT_FOUND, "").in_repository().of_blob();
        let hint = source(lost).diagnosis().hint.unwrap();
        assert!(hint.contains("lost a part"), "{hint}");
        assert!(hint.contains("--no-cache"), "{hint}");
    }

    #[test]
    fn too_many_requests_say_when_to_come_back() {
        let hint = |host: &str, seconds: Option<u64>| {
            let error = HttpError::Status {
                host: host.to_owned(),
                what: "do it".to_owned(),
                status: StatusCode::TOO_MANY_REQUESTS,
                detail: String::new(),
                retry_after: seconds.map(Duration::from_secs),
            };
            RegistryError::Http(error).diagnosis().hint.unwrap()
        };
        let hub = hint("registry-1.docker.io", Some(1_655));
        assert!(hub.contains("wincimg login docker.io"), "{hub}");
        assert!(hub.contains("try again in 28 minutes"), "{hub}");
        let other = hint("repo.lan:5000", Some(30));
        assert!(other.starts_with("try again in 30 s"), "{other}");
        assert!(other.contains("wincimg login repo.lan:5000"), "{other}");
        assert!(hint("repo.lan", None).starts_with("try again later"));
    }

    #[test]
    fn bytes_that_a_registry_finds_wrong_are_the_fault_of_where_they_came_from() {
        let wrong = ": provided digest did not match uploaded content (DIGEST_INVALID)";
        let hint = status(StatusCode::BAD_REQUEST, wrong)
            .diagnosis()
            .hint
            .unwrap();
        let expected = "copy the image from another source";
        assert!(hint.contains(expected), "{hint}");
        assert_eq!(status(StatusCode::BAD_REQUEST, "").diagnosis().hint, None);
    }

    #[test]
    fn a_tag_that_cannot_be_overwritten_goes_elsewhere() {
        for (code, detail) in [
            (
                StatusCode::BAD_REQUEST,
                ": cannot be overwritten because the repository is immutable (TAG_INVALID)",
            ),
            (
                StatusCode::PRECONDITION_FAILED,
                ": Failed to process request due to 'app:1.4' configured as immutable.",
            ),
        ] {
            let hint = status(code, detail).diagnosis().hint.unwrap();
            assert!(hint.contains("--cache-to REPOSITORY"), "{hint}");
        }
    }

    #[test]
    fn a_blob_that_a_registry_lost_is_no_fault_of_the_source() {
        let lost = ": invalid checksum digest format (DIGEST_INVALID); \
                    blob unknown to registry (MANIFEST_BLOB_UNKNOWN)";
        let error = status(StatusCode::BAD_REQUEST, lost);
        assert!(error.is_blob_missing());
        let hint = error.diagnosis().hint.unwrap();
        assert!(hint.contains("run the same command again"), "{hint}");
    }
}
