//! Errors of the communication with a Docker daemon.

use std::path::Path;
use std::{fmt, io};

use rustls::{AlertDescription, InvalidMessage};
use wincimg_cluster::live::ProgramError;
use wincimg_common::diagnose::{Diagnose, Diagnosis, Problem};
use wincimg_common::shell::quote;
use wincimg_common::untrusted::QuotedText;

use super::failures::advice;
use crate::buildkit::BuildkitAddress;

/// Message for an incomplete answer.
pub(super) const TRUNCATED: &str = "the Docker daemon's answer ends too early";
/// Docker Desktop's context for its daemon on Windows, behind a named pipe.
const DESKTOP_WINDOWS: &str = "desktop-windows";

/// Makes a daemon on Windows listen on TCP; on its own machine alone, because the port gives full
/// control of it.
const LISTEN_ON_TCP: &str = concat!(
    r"in C:\ProgramData\docker\config\daemon.json set ",
    r#"{"hosts": ["npipe://", "tcp://127.0.0.1:2375"]} (keep its other settings) and run "#,
    "`Restart-Service docker`"
);

const CERTIFICATE: &str =
    "put the client certificate, cert.pem and key.pem, into the folder of DOCKER_CERT_PATH";

/// Hint for the pipe of a daemon on Windows, on another system.
fn from_elsewhere() -> String {
    let tunnel = tunnel("ssh://HOST");
    format!("run wincimg.exe on Windows; or there {LISTEN_ON_TCP}, then here {tunnel}")
}

/// Command for an SSH tunnel to the machine in `ssh://bob@build01:22`.
fn tunnel(address: &str) -> String {
    let host = address.trim_start_matches("ssh://");
    let host = host.split('/').next().filter(|host| !host.is_empty());
    let host = host.unwrap_or("HOST");
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, format!("-p {port} "))
        }
        _ => (host, String::new()),
    };
    let host = quote(host);
    format!(
        "run `ssh {port}-NL 2375:127.0.0.1:2375 {host}` and give --docker-host tcp://127.0.0.1:2375"
    )
}

/// Error for an unusable file of Docker's.
pub(super) fn unusable(path: &Path, problem: &dyn fmt::Display) -> Problem {
    let problem = format!("cannot use {}: {problem}", path.display());
    Problem::new("file/io", problem)
}

/// Error for a call without an answer.
pub(super) fn unanswered(what: &str, problem: &str) -> Problem {
    Problem::new("daemon/answer", format!("cannot {what}: {problem}"))
}

/// Error for an answer that is not Docker's.
pub(super) fn unexpected(what: &str, problem: &dyn fmt::Display) -> Problem {
    let problem = format!("unexpected answer from the Docker daemon: {problem}");
    unanswered(what, &problem)
}

pub(super) fn invalid_address(text: &str, problem: &str) -> Problem {
    let problem = format!("invalid Docker address {}: {problem}", QuotedText(text));
    Problem::request("daemon/address", problem).hint(address_hint(text))
}

pub(super) fn no_context(name: &str, folder: &Path, nearest: Option<&str>) -> Problem {
    let problem = format!("no Docker context {name:?} in {}", folder.display());
    let list = "`docker context ls` lists them";
    let hint = match nearest {
        _ if name == DESKTOP_WINDOWS && !cfg!(windows) => from_elsewhere(),
        Some(near) => format!("did you mean {near:?}? {list}"),
        None => list.to_owned(),
    };
    Problem::request("daemon/context", problem).hint(hint)
}

fn address_hint(text: &str) -> String {
    if BuildkitAddress::is_meant(text) {
        "name it with --builder, for a Dockerfile and without --engine docker; or give \
         --docker-host tcp://HOST:PORT"
            .to_owned()
    } else if text.starts_with("ssh://") {
        format!("on that machine {LISTEN_ON_TCP}; then {}", tunnel(text))
    } else if text.contains('@') {
        "give --docker-host tcp://HOST:PORT; for a daemon that requires a client certificate, set \
         DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder that has it"
            .to_owned()
    } else {
        "expected unix:///var/run/docker.sock, npipe:////./pipe/docker_engine or tcp://HOST:PORT"
            .to_owned()
    }
}

/// A failed call to a daemon.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "daemon/answer")]
pub enum DockerError {
    /// The connection failed.
    #[error("cannot connect to the Docker daemon at {daemon} ({origin})")]
    #[diagnose(code = unreachable_code(source), hint = Some(unreachable_hint(daemon, source)))]
    Unreachable {
        /// Address of the daemon.
        daemon: String,
        /// Source of the address.
        origin: String,
        /// Cause.
        source: io::Error,
    },
    /// The connection ended too early.
    #[error("cannot {what}: lost connection to the Docker daemon")]
    #[diagnose(hint = "see the daemon's log, and run the same command again")]
    Broken {
        /// The operation.
        what: String,
        /// Cause.
        source: hyper::Error,
    },
    /// The daemon rejected the request or failed.
    #[error("the Docker daemon failed to {what}: {message}")]
    #[diagnose(code = "daemon/refused", hint = refused_hint(message, image.as_deref()))]
    Refused {
        /// The operation.
        what: String,
        /// HTTP status, if the answer itself was an error.
        status: Option<u16>,
        /// The daemon's message.
        message: String,
        /// Name of the image in question, if any.
        image: Option<String>,
    },
    /// Another error, such as an unknown daemon or an unusable answer.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

impl DockerError {
    /// The same error, with the name of an image.
    pub(super) fn about(mut self, name: &str) -> Self {
        if let Self::Refused { image, .. } = &mut self {
            image.get_or_insert_with(|| name.to_owned());
        }
        self
    }

    /// Returns true if the object was not found.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: Some(404),
                ..
            }
        )
    }
}

fn refused_hint(message: &str, image: Option<&str>) -> Option<String> {
    // The answer of a port with TLS, whatever was asked.
    if message.starts_with("Client sent an HTTP request to an HTTPS server") {
        return Some(format!("set DOCKER_TLS_VERIFY=1, and {CERTIFICATE}"));
    }
    advice(message, image)
}

/// Hint for a connection that TLS does not let come about.
fn tls_hint(error: &rustls::Error) -> Option<String> {
    match error {
        rustls::Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA,
        ) => Some(format!("{CERTIFICATE}: the daemon requires one of its CA")),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Some(
            "unset DOCKER_TLS_VERIFY and DOCKER_TLS, or name the daemon's port with TLS".to_owned(),
        ),
        rustls::Error::InvalidCertificate(_) => Some(
            "ca.pem in the folder of DOCKER_CERT_PATH must be the CA of the daemon's certificate, \
             which must be valid today and for the host of the address"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The diagnosis of a builder that cannot be reached.
fn of_builder(source: &io::Error) -> Option<Diagnosis> {
    let error = source.get_ref()?.downcast_ref::<Problem>()?;
    Some(error.diagnosis())
}

fn unreachable_code(source: &io::Error) -> &'static str {
    of_builder(source).map_or("daemon/unreachable", |diagnosis| diagnosis.code)
}

fn unreachable_hint(daemon: &str, source: &io::Error) -> String {
    if let Some(diagnosis) = of_builder(source) {
        return diagnosis.hint.unwrap_or_else(|| {
            let namespace = daemon.trim_start_matches("kube://").split('/').next();
            format!(
                "check the builder with `kubectl get pods --namespace {}`, and run the same command again",
                namespace.unwrap_or_default()
            )
        });
    }
    let inner = source.get_ref();
    let is_in_pod = inner.and_then(|inner| inner.downcast_ref::<ProgramError>());
    if is_in_pod.is_some() {
        return "see the daemon's messages: `kubectl logs`; `docker` and `dockerd` must be on the \
                pod's PATH, and DOCKER_HOST must be the daemon's pipe"
            .to_owned();
    }
    let of_tls = inner.and_then(|inner| inner.downcast_ref());
    if let Some(hint) = of_tls.and_then(tls_hint) {
        return hint;
    }
    let hint = match source.kind() {
        io::ErrorKind::PermissionDenied if cfg!(windows) => {
            "add yourself to the group docker-users with `net localgroup docker-users \
             %USERNAME% /add`, or run as an administrator"
        }
        io::ErrorKind::PermissionDenied => {
            "add yourself to the group docker with `sudo usermod -aG docker $USER`, and log in again"
        }
        io::ErrorKind::Unsupported if !cfg!(windows) => return from_elsewhere(),
        _ => "start the daemon, or name another one with --docker-host",
    };
    hint.to_owned()
}

/// A version of Docker's API: the major number, which was always 1, and the minor one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion(pub(super) u32, pub(super) u32);

impl ApiVersion {
    /// Parses `1.41`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}
