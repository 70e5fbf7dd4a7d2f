//! What can go wrong between this program and a Docker daemon.

use std::path::Path;
use std::{fmt, io};

use wincimg_common::diagnose::{Blame, Diagnose, Problem};

use super::failures::Failure;

/// An answer without an end.
pub(super) const CUT_OFF: &str = "the Docker daemon's answer ends too early";
/// The context of Docker Desktop for its daemon on Windows, behind a named pipe.
const DESKTOP_WINDOWS: &str = "desktop-windows";

/// How a daemon on Windows answers to more than its named pipe; on its own machine alone, because
/// whoever reaches the port is master there.
const LISTEN: &str = concat!(
    r"in C:\ProgramData\docker\config\daemon.json set ",
    r#"{"hosts": ["npipe://", "tcp://127.0.0.1:2375"]} (keep its other settings) and run "#,
    "`Restart-Service docker`"
);

/// What to do about the pipe of a daemon on Windows, on another system.
fn from_elsewhere() -> String {
    format!(
        "run wincimg.exe on Windows; or there {LISTEN}, then here {}",
        tunnel("ssh://HOST")
    )
}

/// The way through SSH to a machine that `ssh://bob@build01:22` names.
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
    format!(
        "run `ssh {port}-NL 2375:127.0.0.1:2375 {host}` and give --docker-host tcp://127.0.0.1:2375"
    )
}

/// A file of Docker's that could not be used.
pub(super) fn unusable(path: &Path, problem: &dyn fmt::Display) -> Problem {
    Problem::new(
        "file/io",
        format!("cannot use {}: {problem}", path.display()),
    )
}

/// A call that came to no answer, and why.
pub(super) fn unanswered(what: &str, problem: &str) -> Problem {
    Problem::new("daemon/answer", format!("cannot {what}: {problem}"))
}

/// An answer that is not one of Docker's.
pub(super) fn unexpected(what: &str, problem: &dyn fmt::Display) -> Problem {
    let problem = format!("unexpected answer from the Docker daemon: {problem}");
    unanswered(what, &problem)
}

/// An address of a kind that is not known.
pub(super) fn invalid_address(text: &str, problem: &str) -> Problem {
    let problem = format!("invalid Docker address {text:?}: {problem}");
    Problem::new("daemon/address", problem)
        .blame(Blame::Request)
        .hint(address_hint(text))
}

/// A context that is not there, and the one that was probably meant.
pub(super) fn no_context(name: &str, folder: &Path, nearest: Option<&str>) -> Problem {
    let problem = format!("no Docker context {name:?} in {}", folder.display());
    Problem::new("daemon/context", problem)
        .blame(Blame::Request)
        .hint(context_hint(name, nearest))
}

fn address_hint(text: &str) -> String {
    if text.starts_with("ssh://") {
        format!("on that machine {LISTEN}; then {}", tunnel(text))
    } else if text.contains('@') {
        "give --docker-host tcp://HOST:PORT; for a daemon that requires a client certificate, set \
         DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH to the folder that has it"
            .to_owned()
    } else {
        "expected unix:///var/run/docker.sock, npipe:////./pipe/docker_engine or tcp://HOST:PORT"
            .to_owned()
    }
}

fn context_hint(name: &str, nearest: Option<&str>) -> String {
    if name == DESKTOP_WINDOWS && !cfg!(windows) {
        return from_elsewhere();
    }
    let list = "`docker context ls` lists them";
    nearest.map_or_else(
        || list.to_owned(),
        |near| format!("did you mean {near:?}? {list}"),
    )
}

/// Why a daemon did not do what it was asked.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "daemon/answer")]
pub enum DockerError {
    /// Nobody answers.
    #[error("cannot connect to the Docker daemon at {daemon} ({origin})")]
    #[diagnose(code = "daemon/unreachable", hint = Some(unreachable_hint(source)))]
    Unreachable {
        /// Where it should be.
        daemon: String,
        /// Who named it.
        origin: String,
        /// Why not.
        source: io::Error,
    },
    /// The connection ended too early.
    #[error("cannot {what}: lost connection to the Docker daemon")]
    Broken {
        /// What was asked.
        what: String,
        /// How it broke.
        source: hyper::Error,
    },
    /// The daemon says no.
    #[error("the Docker daemon failed to {what}: {message}")]
    #[diagnose(code = "daemon/refused", hint = refused_hint(message, image.as_deref()))]
    Refused {
        /// What was asked.
        what: String,
        /// The answer's status, where the refusal was the answer.
        status: Option<u16>,
        /// Its words.
        message: String,
        /// The image that it is about, where it is one with a name.
        image: Option<String>,
    },
    /// It is not known which daemon is meant, or its answer cannot be used.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

impl DockerError {
    /// The same, of an image.
    pub(super) fn about(self, name: &str) -> Self {
        match self {
            Self::Refused {
                what,
                status,
                message,
                image: None,
            } => Self::Refused {
                what,
                status,
                message,
                image: Some(name.to_owned()),
            },
            other => other,
        }
    }

    /// Returns true if what was asked about is not there.
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

fn unreachable_hint(source: &io::Error) -> String {
    let hint = match source.kind() {
        io::ErrorKind::PermissionDenied if cfg!(windows) => {
            "add yourself to the group docker-users with `net localgroup docker-users \
             %USERNAME% /add`, or run as an administrator"
        }
        io::ErrorKind::PermissionDenied => {
            "add yourself to the group docker with `sudo usermod -aG docker $USER`, and log in again"
        }
        io::ErrorKind::Unsupported if !cfg!(windows) => return from_elsewhere(),
        _ => {
            "start the daemon, or name another one with --docker-host; --engine direct requires \
             none unless the recipe has commands"
        }
    };
    hint.to_owned()
}

fn refused_hint(message: &str, image: Option<&str>) -> Option<String> {
    let failure = Failure {
        message,
        image,
        ..Failure::default()
    };
    failure.hint()
}

/// A version of Docker's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion {
    /// The first number, which was never another than 1.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl ApiVersion {
    /// Reads `1.41`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
