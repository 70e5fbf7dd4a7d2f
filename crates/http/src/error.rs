//! Errors of HTTP exchanges.

use std::error::Error;
use std::io;
use std::iter;
use std::path::Path;
use std::time::Duration;

use reqwest::header::InvalidHeaderValue;
use reqwest::{StatusCode, Url};
use rustls::{CertificateError, InvalidMessage};
use wincimg_common::diagnose::{Diagnose, Problem};

use super::addresses::RefusedAddress;
use super::proxy::named_for;
use super::retry::{Transient, wait_hint};
use super::urls::{host_of, is_metadata};
use super::verifier::PinnedCa;

/// How webpki prints a certificate of X.509 version 1 or 2.
const OLD_VERSION: &str = "UnsupportedCertVersion";

/// An error of an HTTP exchange. `what` is the purpose of the request, to follow "failed to".
#[derive(Debug, thiserror::Error, Diagnose)]
#[non_exhaustive]
#[diagnose(code = "network/answer")]
pub enum HttpError {
    /// A header would contain invalid characters.
    #[error("cannot make the request")]
    Header(#[from] InvalidHeaderValue),
    /// A URL of plain HTTP to a host that is not listed, or of another protocol.
    #[error("{}", insecure_url(url))]
    #[diagnose(code = "network/plain-http", hint = self.insecure_hint())]
    InsecureUrl {
        /// The URL without its query.
        url: String,
        /// Host and port.
        host: String,
    },
    /// HTTPS was tried, but the host does not use TLS.
    #[error("{host} does not use TLS, and plain HTTP is allowed only for hosts listed as insecure")]
    #[diagnose(code = "network/plain-http", hint = self.insecure_hint())]
    PlainHttp {
        /// Host and port.
        host: String,
    },
    /// The certificate is not signed by a trusted CA, or is for another name.
    #[error("cannot trust the certificate of {host}: {}", distrust(problem))]
    #[diagnose(code = "network/certificate", hint = self.insecure_hint())]
    Certificate {
        /// Host and port.
        host: String,
        /// Problem found by the verifier.
        problem: CertificateError,
    },
    /// The connection failed or broke before the response.
    #[error("cannot reach {host} to {what}{}", of_proxy(proxy.as_deref(), source))]
    #[diagnose(
        code = "network/unreachable",
        hint = Some(unreachable_hint(host, proxy.as_deref(), source))
    )]
    Unreachable {
        /// Host and port.
        host: String,
        /// The operation that failed.
        what: String,
        /// The environment's proxy for it: `127.0.0.1:3128 of HTTPS_PROXY`.
        proxy: Option<String>,
        /// The transport's error.
        source: reqwest::Error,
    },
    /// A response with a status other than success.
    #[error("{host} failed to {what}: {status}{detail}")]
    #[diagnose(hint = retry_after.map(|wait| wait_hint(Some(wait))))]
    Status {
        /// Host and port.
        host: String,
        /// The operation that failed.
        what: String,
        /// The HTTP status.
        status: StatusCode,
        /// The server's message, with a leading colon.
        detail: String,
        /// Wait requested by the server.
        retry_after: Option<Duration>,
    },
    /// The time limit expired.
    #[error("reached the time limit of {} s while trying to {what}", limit.as_secs_f32())]
    #[diagnose(code = "network/time-limit", hint = "raise the limit with --timeout")]
    TimeLimit {
        /// The operation that failed.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The content to send could not be read.
    #[error("cannot {what}: its content cannot be read")]
    Source {
        /// The operation, with the content's name.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// Other errors that may pass: the server stalled, broke the connection or is overloaded.
    #[error(transparent)]
    #[diagnose(forward)]
    Passing(Problem),
    /// Other errors.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

/// What a proxy answered in place of a connection. The library keeps neither the status nor the
/// message of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyRefusal {
    /// 407: it requires a user and a password.
    Login,
    Other,
}

impl ProxyRefusal {
    fn of(error: &reqwest::Error) -> Option<Self> {
        chain(error).find_map(|error| match error.to_string().as_str() {
            "tunnel error: proxy authorization required" => Some(Self::Login),
            "tunnel error: unsuccessful" => Some(Self::Other),
            _ => None,
        })
    }
}

/// A proxy's refusal, to follow the host that it was to connect to.
fn of_proxy(proxy: Option<&str>, error: &reqwest::Error) -> String {
    let proxy = proxy.unwrap_or("of the environment");
    match ProxyRefusal::of(error) {
        Some(ProxyRefusal::Login) => format!(": the proxy {proxy} requires a user and a password"),
        Some(ProxyRefusal::Other) => format!(": the proxy {proxy} does not connect to it"),
        None => String::new(),
    }
}

fn unreachable_hint(host: &str, proxy: Option<&str>, error: &reqwest::Error) -> String {
    match ProxyRefusal::of(error) {
        Some(ProxyRefusal::Login) => {
            "set HTTPS_PROXY to http://USER:PASSWORD@HOST:PORT, with special characters of the password as %XX".to_owned()
        }
        Some(ProxyRefusal::Other) => {
            format!("let the proxy allow {host}, or list it in NO_PROXY to connect directly")
        }
        None => {
            let proxy = proxy.map_or("HTTPS_PROXY".to_owned(), |proxy| format!("the proxy {proxy}"));
            format!("check the name {host} and the connection to it: DNS, firewall, {proxy}, NO_PROXY")
        }
    }
}

impl HttpError {
    /// The HTTP status of the server's response, if any.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// A response that violates the protocol.
    pub fn protocol(host: &str, what: &str, reason: &str) -> Self {
        let problem = format!("{host} sent an invalid response to the request to {what}: {reason}");
        Problem::new("network/answer", problem).into()
    }

    /// A body exceeds its size limit.
    pub fn too_large(what: &str, limit: u64) -> Self {
        let problem = format!("{what} is larger than the limit of {limit} bytes");
        Problem::new("network/answer", problem).into()
    }

    /// The idle timeout expired.
    pub fn stalled(host: &str, what: &str, after: Duration) -> Self {
        let after = after.as_secs_f32();
        let problem = format!("received nothing from {host} for {after} s while trying to {what}");
        Self::Passing(Problem::new("network/interrupted", problem))
    }

    /// The connection broke during a transfer.
    pub fn interrupted(what: &str, at: u64, size: u64) -> Problem {
        let problem = format!("lost the connection after {at} of {size} bytes of {what}");
        Problem::new("network/interrupted", problem)
    }

    /// An error of a request to an address that it may not go to.
    pub(super) fn address(host: &str, refused: &RefusedAddress, what: &str) -> Self {
        let reason = refused.reason();
        let problem = format!("did not connect to {host} to {what}: it has {reason}");
        Problem::new("network/address", problem)
            .hint_if(refused.hint(host))
            .into()
    }

    /// An error of a request to `url` without a response.
    pub(super) fn no_answer(url: &Url, what: &str, error: reqwest::Error) -> Self {
        let host = host_of(url);
        let source = error.without_url();
        if let Some(refused) = cause::<RefusedAddress>(&source) {
            return Self::address(&host, refused, what);
        }
        if let Some(error) =
            cause::<rustls::Error>(&source).and_then(|it| Self::of_tls(&host, what, it))
        {
            return error;
        }
        if let Some(problem) = invalid_head(&source) {
            return Self::protocol(&host, what, &problem);
        }
        Self::Unreachable {
            host,
            what: what.to_owned(),
            proxy: named_for(url),
            source,
        }
    }

    /// An error of TLS, except for a broken connection.
    fn of_tls(host: &str, what: &str, error: &rustls::Error) -> Option<Self> {
        let host = host.to_owned();
        match error {
            // The first byte of "HTTP/1.1 400" is none of TLS.
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Some(Self::PlainHttp { host })
            }
            rustls::Error::InvalidMessage(_) => {
                let problem = "it breaks the TLS connection";
                Some(Self::protocol(&host, what, problem))
            }
            rustls::Error::InvalidCertificate(problem) => Some(Self::Certificate {
                host,
                problem: problem.clone(),
            }),
            _ => None,
        }
    }
}

impl Transient for HttpError {
    fn is_transient(&self) -> bool {
        match self {
            // An invalid request stays invalid, and so does a password.
            Self::Unreachable { source, .. } => {
                !source.is_builder() && ProxyRefusal::of(source) != Some(ProxyRefusal::Login)
            }
            Self::Passing(_) => true,
            Self::Status { status, .. } => match status.as_u16() {
                408 | 425 | 429 => true,
                // Not implemented, and HTTP version not supported.
                501 | 505 => false,
                _ => status.is_server_error(),
            },
            _ => false,
        }
    }

    fn is_settled(&self) -> bool {
        matches!(self, Self::Unreachable { source, .. }
            if is_host_unreachable(source) || ProxyRefusal::of(source).is_some())
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

fn insecure_url(url: &str) -> String {
    if url.starts_with("http:") {
        format!("{url} uses plain HTTP, which is allowed only for hosts listed as insecure")
    } else {
        format!("{url} is not the URL of an HTTP server")
    }
}

/// The problem of a response whose status or headers are not those of HTTP, which no retry changes.
fn invalid_head(error: &reqwest::Error) -> Option<String> {
    const OF_HEAD: [&str; 6] = [
        "invalid HTTP header parsed",
        "invalid HTTP status-code parsed",
        "invalid content-length parsed",
        "invalid transfer-encoding parsed",
        "unexpected transfer-encoding parsed",
        "message head is too large",
    ];
    let mut printed = chain(error).map(ToString::to_string);
    printed.find(|printed| OF_HEAD.contains(&printed.as_str()))
}

/// Returns true if the port is closed or the name unknown, which a retry seldom fixes.
fn is_host_unreachable(error: &reqwest::Error) -> bool {
    let mut of_name = false;
    for error in chain(error) {
        let printed = error.to_string();
        of_name |= printed.starts_with("dns error");
        if let Some(io) = error.downcast_ref::<io::Error>() {
            let passing = ["Temporary failure", "try again"];
            return io.kind() == io::ErrorKind::ConnectionRefused
                || of_name && !passing.iter().any(|words| printed.contains(words));
        }
    }
    false
}

impl HttpError {
    /// Returns a hint to trust or allow an insecure host.
    fn insecure_hint(&self) -> Option<String> {
        match self {
            Self::InsecureUrl { url, .. } if !url.starts_with("http://") => None,
            Self::PlainHttp { host }
            | Self::InsecureUrl { host, .. }
            | Self::Certificate { host, .. }
                if is_metadata(host) =>
            {
                None
            }
            // Microsoft's registry has TLS: what answers without is not it.
            Self::PlainHttp { host } if host.ends_with(".microsoft.com") => None,
            Self::PlainHttp { host } | Self::InsecureUrl { host, .. } => Some(format!(
                "if you trust {host} without TLS, add --insecure-registry {host}"
            )),
            Self::Certificate { host, problem } if is_of_another_name(problem) => Some(format!(
                "use a certificate with the name of {host}; to trust this one for {host} alone, put it into DIR/{host}/server.crt and add --certs-dir DIR"
            )),
            Self::Certificate { host, problem } if is_of_another_time(problem) => Some(format!(
                "renew the certificate of {host}, or correct the clock of this machine"
            )),
            Self::Certificate { host, problem } if is_of_pinned_ca(problem) => Some(format!(
                "if it is a CA, put its certificate into DIR/{host}/ca.crt and add --certs-dir DIR"
            )),
            Self::Certificate { host, problem } if is_of_old_version(problem) => Some(format!(
                "make one of version 3 with the name of {host}: openssl req -x509 -newkey rsa:2048 -nodes -keyout NAME.key -out NAME.crt -subj /CN=NAME -addext subjectAltName=DNS:NAME (or IP:ADDRESS)"
            )),
            Self::Certificate { host, .. } => Some(format!(
                "trust its CA, or the certificate itself, with --ca-file FILE, or allow an unverified certificate with --insecure-registry {host}"
            )),
            _ => None,
        }
    }
}

fn is_of_another_name(problem: &CertificateError) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(problem, NotValidForName | NotValidForNameContext { .. })
}

fn is_of_pinned_ca(problem: &CertificateError) -> bool {
    matches!(problem, CertificateError::Other(other) if other.0.is::<PinnedCa>())
}

/// Returns true for a certificate without extensions, which has no name of its host.
fn is_of_old_version(problem: &CertificateError) -> bool {
    matches!(problem, CertificateError::Other(other) if other.to_string() == OLD_VERSION)
}

fn is_of_another_time(problem: &CertificateError) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    matches!(
        problem,
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }
    )
}

/// Reason not to trust a certificate: rustls prints some by the names of its types.
fn distrust(problem: &CertificateError) -> String {
    let text = match problem {
        CertificateError::UnknownIssuer => return "no trusted CA signed it".to_owned(),
        CertificateError::Expired => return "it has expired".to_owned(),
        CertificateError::NotValidYet => return "it is not valid yet".to_owned(),
        // As after a CA was created again.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            return "its CA has the name of a trusted one, but another key".to_owned();
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            return "it is signed with an unsupported algorithm, such as SHA-1".to_owned();
        }
        CertificateError::Other(other) => other.to_string(),
        known => return known.to_string(),
    };
    match text.as_str() {
        OLD_VERSION => "its X.509 version is not 3".to_owned(),
        // `openssl req -x509` makes a CA's certificate.
        "CaUsedAsEndEntity" => "it is self-signed, or a CA's own".to_owned(),
        "EndEntityUsedAsCa" => "a certificate that is not a CA's signed it".to_owned(),
        _ => text,
    }
}

/// Error of a file, with the diagnosis of its cause: `action` is "create", "write", …
pub fn file_error(action: &str, path: &Path) -> impl FnOnce(io::Error) -> Problem + use<> {
    let problem = format!("cannot {action} {}", path.display());
    move |source| Problem::context(problem, source)
}

/// An error and its causes.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Finds a cause, which may be hidden inside `io::Error`s.
fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let inner = |error: &&'e (dyn Error + 'static)| match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => (*error).source(),
    };
    iter::successors(Some(error), inner).find_map(|error| error.downcast_ref())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    #[test]
    fn a_file_is_not_called_plain_http() {
        let insecure = |url: &str| {
            let (url, host) = (url.to_owned(), "repo.lan".to_owned());
            HttpError::InsecureUrl { url, host }.to_string()
        };
        let printed = insecure("file:/etc/passwd");
        assert_eq!(printed, "file:/etc/passwd is not the URL of an HTTP server");
        assert!(insecure("http://repo.lan/a").contains("uses plain HTTP"));
    }

    #[test]
    fn only_what_begins_like_http_is_called_a_server_without_tls() {
        let of_tls = |host: &str, message| {
            let error = rustls::Error::InvalidMessage(message);
            HttpError::of_tls(host, "fetch the manifest", &error).unwrap()
        };
        let plain = of_tls("repo.lan:5000", InvalidMessage::InvalidContentType);
        assert!(matches!(plain, HttpError::PlainHttp { .. }), "{plain}");
        assert!(plain.insecure_hint().is_some());
        let plain = of_tls("mcr.microsoft.com", InvalidMessage::InvalidContentType);
        assert_eq!(plain.insecure_hint(), None);
        let noise = of_tls("repo.lan:5000", InvalidMessage::MessageTooLarge);
        assert!(matches!(noise, HttpError::Other(_)), "{noise}");
        assert_eq!(noise.insecure_hint(), None);
    }

    #[test]
    fn problems_of_certificates_have_words_of_their_own() {
        for (problem, words, hint) in [
            (CertificateError::Expired, "it has expired", "renew"),
            (
                CertificateError::NotValidYet,
                "it is not valid yet",
                "clock",
            ),
            (CertificateError::BadSignature, "another key", "--ca-file"),
            (
                CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                    signature_algorithm_id: vec![6],
                    public_key_algorithm_id: vec![6],
                },
                "another key",
                "--ca-file",
            ),
            (
                CertificateError::UnsupportedSignatureAlgorithmContext {
                    signature_algorithm_id: vec![6],
                    supported_algorithms: Vec::new(),
                },
                "SHA-1",
                "--ca-file",
            ),
            (
                CertificateError::Other(OtherError(Arc::new(io::Error::other(
                    "EndEntityUsedAsCa",
                )))),
                "not a CA's",
                "--ca-file",
            ),
            (
                CertificateError::Other(OtherError(Arc::new(io::Error::other(OLD_VERSION)))),
                "X.509 version",
                "-addext",
            ),
        ] {
            let host = "repo.lan".to_owned();
            let error = HttpError::Certificate { host, problem };
            assert!(error.to_string().contains(words), "{error}");
            let found = error.insecure_hint().unwrap();
            assert!(found.contains(hint), "{found}");
        }
    }
}
