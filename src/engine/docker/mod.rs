//! Images by a Docker daemon on Windows: for plans with commands, which only Windows can run.
//!
//! [`Endpoint`] finds the daemon, [`Daemon`] speaks with it through bollard. What would fail late is
//! asked first: whether it makes Windows containers, whether the base can run there, whether it
//! trusts the registries.

mod address;
mod answer;
mod api;
mod build;
mod client;
mod context;
mod contexts;
mod daemon;
mod endpoint;
mod error;
mod image;
mod layers;
mod make;
mod preflight;
mod push;
mod steps;
#[cfg(test)]
mod tests;
mod tls;
mod transport;
mod trust;
mod upload;

pub use address::Address;
pub use api::{ImageInfo, Info, KnownRegistry, RegistryConfig};
pub use build::{BuildError, BuildOptions, StepOutput};
pub use context::{ContextError, DOCKERFILE, Listing};
pub use daemon::Daemon;
pub use endpoint::{Endpoint, Environment, Origin};
pub use error::{ApiVersion, DockerError, EndpointError};
pub use image::{DaemonImage, SaveError};
pub use make::{DaemonError, DockerEngine};
pub use preflight::{Obstacle, Preflight};
pub use steps::Step;
pub use tls::{TlsFiles, Trust};
pub use trust::Remedy;
