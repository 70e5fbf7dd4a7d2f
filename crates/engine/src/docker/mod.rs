//! Docker engine: a daemon on Windows builds plans with commands, which only Windows can run.
//!
//! [`Endpoint`] selects the daemon, [`Daemon`] calls it through bollard. What would fail late is
//! checked first: that it runs Windows containers, that the base can run there, that it trusts the
//! registries.

mod address;
mod api;
mod build;
mod client;
mod daemon;
mod endpoint;
mod engine;
mod error;
mod failures;
mod layers;
mod load;
mod preflight;
mod settings;
// The test daemons listen on Unix sockets.
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod tls;
mod transport;
mod upload;

pub use api::Info;
pub(crate) use build::{BuildStep, OutputTail, StepError};
pub use build::{DockerBuildOptions, StepOutput};
pub use daemon::Daemon;
pub use endpoint::{Endpoint, Environment};
pub(crate) use engine::{DaemonImage, DockerEngine, connect_windows, deliver_by_docker};
pub use error::DockerError;
pub(crate) use failures::{advice, exit_code_in};
pub use preflight::Preflight;
pub(crate) use preflight::check_reachable;
pub(crate) use transport::one_line;
