//! Images by a Docker daemon on Windows: for plans with commands, which only Windows can run.
//!
//! [`Endpoint`] finds the daemon, [`Daemon`] speaks with it. What would fail late is asked first:
//! whether it makes Windows containers, whether the base can run there, whether it trusts the
//! registries.

mod api;
mod build;
mod context;
mod contexts;
mod daemon;
mod endpoint;
mod error;
mod layers;
mod push;
mod steps;
mod tls;
mod transport;
mod upload;

pub use api::{ImageInfo, Info, KnownRegistry, RegistryConfig, RootFs};
pub use build::{BuildError, BuildOptions, StepOutput};
pub use context::{BuildContext, ContextError, ContextFile, DOCKERFILE, Listing};
pub use daemon::Daemon;
pub use endpoint::{Address, Endpoint, EndpointError, Environment, Origin};
pub use error::{ApiVersion, DockerError};
pub use steps::Step;
pub use tls::{TlsFiles, Trust};
