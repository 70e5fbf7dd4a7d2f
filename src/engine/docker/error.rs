//! What can go wrong between this program and a Docker daemon.

use std::fmt;
use std::io;

use super::endpoint::EndpointError;

use crate::diagnose::Diagnose;

/// Why a daemon did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// No daemon could be told.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Nobody answers.
    #[error("no Docker daemon answers at {daemon} ({origin})")]
    Unreachable {
        /// Where it should be.
        daemon: String,
        /// Who named it.
        origin: String,
        /// Why not.
        source: io::Error,
    },
    /// The connection ended too early.
    #[error("the connection to the Docker daemon broke: it was to {what}")]
    Broken {
        /// What was asked.
        what: String,
        /// How it broke.
        source: hyper::Error,
    },
    /// The daemon ended its answer too early.
    #[error("the Docker daemon stopped in the middle: it was to {what}")]
    Stopped {
        /// What was asked.
        what: String,
    },
    /// The daemon took its time.
    #[error("the Docker daemon did not {what} within {seconds} seconds")]
    Slow {
        /// What was asked.
        what: String,
        /// How long it had.
        seconds: u64,
    },
    /// The daemon says no.
    #[error("the Docker daemon did not {what}: {message}")]
    Refused {
        /// What was asked.
        what: String,
        /// The answer's status, where the refusal was the answer.
        status: Option<u16>,
        /// Its words.
        message: String,
    },
    /// The answer is not one of Docker's.
    #[error("the Docker daemon's answer makes no sense: it was to {what}: {problem}")]
    Answer {
        /// What was asked.
        what: String,
        /// What is wrong with the answer.
        problem: String,
    },
    /// The daemon's API is older than what is used.
    #[error("the Docker daemon speaks version {found} of the API: expected {oldest} or newer")]
    TooOld {
        /// What it speaks.
        found: String,
        /// The oldest version that will do.
        oldest: ApiVersion,
    },
}

impl Diagnose for DockerError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }
}

impl DockerError {
    /// Whether what was asked about is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: Some(404),
                ..
            }
        )
    }

    /// What to type or do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Endpoint(error) => error.hint(),
            Self::Unreachable { source, .. } => Some(match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "the user must be allowed to use the daemon: in the group docker on Linux, in \
                     docker-users or an administrator on Windows"
                        .to_owned()
                }
                _ => "start the daemon, or name another one with --docker-host; --engine direct \
                      needs none unless the recipe has commands"
                    .to_owned(),
            }),
            Self::TooOld { .. } => Some("install a newer Docker on that machine".to_owned()),
            Self::Refused { message, .. } if message.contains("HTTP response to HTTPS client") => {
                Some(
                    "the registry is plain HTTP and the daemon does not trust it: list it under \
                     insecure-registries in its daemon.json and restart it"
                        .to_owned(),
                )
            }
            _ => None,
        }
    }
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
