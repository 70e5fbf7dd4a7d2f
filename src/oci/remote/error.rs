//! What can go wrong between this process and a registry, in words that tell what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;

use crate::diagnose::{Blame, Diagnose};
use crate::net::{ClientError, NotAHost};

/// The cause of an error, of whatever library it comes from.
pub(super) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a registry did not give, take or prove what was asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No connection, or one that broke before the answer.
    #[error("cannot reach {host} to {what}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// The transport's error.
        source: Cause,
    },
    /// HTTPS was tried and something that is not TLS answered.
    #[error(
        "{host} does not speak TLS, and plain HTTP is allowed only to hosts listed as insecure"
    )]
    PlainHttp {
        /// Host and port.
        host: String,
    },
    /// A URL that would be fetched without TLS although its host is not listed.
    #[error("{url} is plain HTTP, which is allowed only to hosts listed as insecure")]
    InsecureUrl {
        /// The URL without its query.
        url: String,
        /// Host and port.
        host: String,
    },
    /// The certificate is not signed by a CA that this machine trusts, or is for another name.
    #[error("the certificate of {host} cannot be trusted")]
    Certificate {
        /// Host and port.
        host: String,
        /// What the verifier found.
        source: Cause,
    },
    /// A host in the list of insecure ones is not a host.
    #[error(transparent)]
    InsecureHost(#[from] NotAHost),
    /// The HTTP client or a request of it could not be made.
    #[error("cannot set up the HTTP client")]
    Client(#[source] Cause),
    /// There is no HTTP client to be had.
    #[error(transparent)]
    NoClient(#[from] ClientError),
    /// 401: no credential, or one that the registry does not take.
    #[error("{host} refused to {what} (401 unauthorized): tried {tried}{detail}")]
    Unauthorized {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// Which credential from where.
        tried: String,
        /// The registry's own words, with a leading colon.
        detail: String,
    },
    /// 403: the credential is known, but not allowed to do this.
    #[error("{host} refused to {what} (403 forbidden): tried {tried}{detail}")]
    Forbidden {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// Which credential from where.
        tried: String,
        /// The registry's own words, with a leading colon.
        detail: String,
    },
    /// A credential exists, but would go over the wire readable.
    #[error("{host} is plain HTTP, and {tried} would be sent to it unprotected")]
    PlainCredentials {
        /// Host and port.
        host: String,
        /// Which credential from where.
        tried: String,
    },
    /// Docker's `config.json` or a credential helper failed.
    #[error("cannot get the credential for {host} from {origin}: {reason}")]
    Credential {
        /// Host and port.
        host: String,
        /// The file or helper.
        origin: String,
        /// What it said.
        reason: String,
    },
    /// The token server named by a registry failed.
    #[error("cannot get a token for {host} from {realm}")]
    Token {
        /// Host and port of the registry.
        host: String,
        /// The token server's URL.
        realm: String,
        /// What happened there.
        source: Box<RegistryError>,
    },
    /// An answer with a status that is neither success nor one of the above.
    #[error("{host} failed to {what}: {status}{detail}")]
    Status {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// The HTTP status.
        status: StatusCode,
        /// The registry's own words, with a leading colon.
        detail: String,
        /// How long the registry asks to wait.
        retry_after: Option<Duration>,
    },
    /// A redirect that must not or cannot be followed.
    #[error("{host} redirected the request to {what} to {target}, which is not followed: {reason}")]
    Redirect {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// Where to, without the query.
        target: String,
        /// Why not.
        reason: &'static str,
    },
    /// An answer that the distribution specification does not allow.
    #[error("{host} gave a broken answer to the request to {what}: {reason}")]
    Protocol {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The connection broke while bytes were under way.
    #[error("the connection broke after {at} of {size} bytes of {what}")]
    Interrupted {
        /// The bytes' name.
        what: String,
        /// How far it came.
        at: u64,
        /// How long the whole is.
        size: u64,
        /// The transport's error, where there was one.
        source: Option<Cause>,
    },
    /// The registry does not know an upload any more, or not where it stands.
    #[error("{host} lost the upload of {what}")]
    UploadLost {
        /// Host and port.
        host: String,
        /// The bytes' name.
        what: String,
        /// How it said so.
        source: Box<RegistryError>,
    },
    /// Nothing moved for too long.
    #[error("nothing came from {host} for {} seconds while trying to {what}", after.as_secs_f32())]
    Stalled {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// How long nothing came.
        after: Duration,
    },
    /// The total time bound is over.
    #[error("the time limit of {} seconds is over while trying to {what}", limit.as_secs_f32())]
    TimeLimit {
        /// What was asked.
        what: String,
        /// The bound.
        limit: Duration,
    },
    /// Several attempts failed; the cause is the last one.
    #[error("gave up after {attempts} attempts")]
    GaveUp {
        /// How many there were.
        attempts: usize,
        /// The last failure.
        source: Box<RegistryError>,
    },
    /// Bytes that are not what their digest says.
    #[error("{what} is damaged: expected digest {expected}, got {actual}")]
    Digest {
        /// The bytes' name.
        what: String,
        /// The digest that names them.
        expected: String,
        /// The digest that they have.
        actual: String,
    },
    /// Bytes that are fewer or more than their descriptor says.
    #[error("{what} has the wrong length: expected {expected} bytes, got {actual}")]
    Length {
        /// The bytes' name.
        what: String,
        /// The length that the descriptor says.
        expected: u64,
        /// The length that was announced or came.
        actual: u64,
    },
    /// A document that is larger than anything sane.
    #[error("{what} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The bytes' name.
        what: String,
        /// The limit.
        limit: u64,
    },
    /// A digest in an algorithm other than SHA-2.
    #[error(
        "digest {0} is in an algorithm that is not supported: expected sha256, sha384 or sha512"
    )]
    DigestAlgorithm(String),
    /// The bytes to upload could not be read.
    #[error("cannot {what}: its content could not be read")]
    Source {
        /// What was asked, with the bytes' name.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// "create", "write", …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Diagnose for RegistryError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }

    fn blame(&self) -> Blame {
        match self {
            Self::InsecureHost(_) => Blame::Request,
            _ => Blame::Circumstances,
        }
    }
}

impl RegistryError {
    /// The HTTP status that the registry answered with, where it did.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::Unauthorized { .. } => Some(StatusCode::UNAUTHORIZED),
            Self::Forbidden { .. } => Some(StatusCode::FORBIDDEN),
            Self::GaveUp { source, .. } => source.status(),
            _ => None,
        }
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }

    /// Whether the same request may well succeed a moment later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Interrupted { .. }
            | Self::Stalled { .. }
            | Self::UploadLost { .. } => true,
            Self::Status { status, .. } => match *status {
                StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => false,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => true,
                other => other.is_server_error(),
            },
            Self::Token { source, .. } => source.is_transient(),
            _ => false,
        }
    }

    /// How long the registry asked to wait before the next attempt.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Token { source, .. } => source.retry_after(),
            _ => None,
        }
    }

    /// What to type or do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::PlainHttp { host } | Self::InsecureUrl { host, .. } => Some(format!(
                "if {host} is a registry you trust without TLS, add --insecure-registry {host}"
            )),
            Self::Certificate { host, .. } => Some(format!(
                "name the file of its CA in SSL_CERT_FILE, or allow an unverified certificate with --insecure-registry {host}"
            )),
            Self::Unauthorized { host, .. } | Self::Forbidden { host, .. } => Some(format!(
                "log in with `docker login {host}`, or name another file with --registry-config FILE"
            )),
            Self::Credential { origin, .. } => Some(format!(
                "mend {origin}, or name another file with --registry-config FILE"
            )),
            Self::Unreachable { host, .. } => Some(format!(
                "check that {host} is right, and the way to it: DNS, firewall, HTTPS_PROXY, NO_PROXY"
            )),
            Self::Status { status, .. } if *status == StatusCode::NOT_FOUND => Some(
                "check the name and the tag or digest; some registries say this of what you may not see, too"
                    .to_owned(),
            ),
            Self::PlainCredentials { host, .. } => Some(format!(
                "serve {host} over TLS, or add --plain-credentials to send them anyway"
            )),
            Self::TimeLimit { .. } => Some("raise the limit with --timeout".to_owned()),
            Self::Status { status, .. } if *status == StatusCode::PAYLOAD_TOO_LARGE => Some(
                "a proxy before the registry limits the size of requests (nginx: client_max_body_size 0)"
                    .to_owned(),
            ),
            Self::Status { status, detail, .. }
                if *status == StatusCode::BAD_REQUEST && detail.contains("DIGEST_INVALID") =>
            {
                Some(
                    "the place that it was read from has other bytes than the image says: take the image from elsewhere"
                        .to_owned(),
                )
            }
            Self::Token { source, .. } | Self::GaveUp { source, .. } => source.hint(),
            // What another host said while it was read from; not what is missing there, which is
            // no name or tag of anybody's.
            Self::Source { source, .. } => source
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<Self>())
                .filter(|inner| !inner.is_not_found())
                .and_then(Self::hint),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn source(inner: RegistryError) -> RegistryError {
        RegistryError::Source {
            what: "upload blob sha256:00 to mirror.lan/app".to_owned(),
            source: io::Error::other(inner),
        }
    }

    fn status(status: StatusCode, detail: &str) -> RegistryError {
        RegistryError::Status {
            host: "cdn.lan".to_owned(),
            what: "do it".to_owned(),
            status,
            detail: detail.to_owned(),
            retry_after: None,
        }
    }

    #[test]
    fn what_stops_the_reading_of_an_upload_is_said_with_its_own_mend() {
        let insecure = source(RegistryError::InsecureUrl {
            url: "http://cdn.lan/layer".to_owned(),
            host: "cdn.lan".to_owned(),
        });
        assert_eq!(
            insecure.to_string(),
            "cannot upload blob sha256:00 to mirror.lan/app: its content could not be read"
        );
        let hint = insecure.hint().unwrap();
        assert!(hint.contains("--insecure-registry cdn.lan"), "{hint}");
        let gone = source(status(StatusCode::NOT_FOUND, ""));
        assert_eq!(gone.hint(), None, "no name or tag is wrong");
    }

    #[test]
    fn bytes_that_a_registry_finds_wrong_are_the_fault_of_where_they_came_from() {
        let wrong = ": provided digest did not match uploaded content (DIGEST_INVALID)";
        let hint = status(StatusCode::BAD_REQUEST, wrong).hint().unwrap();
        assert!(hint.contains("take the image from elsewhere"), "{hint}");
        assert_eq!(status(StatusCode::BAD_REQUEST, "").hint(), None);
    }
}
