//! Selection of the Docker daemon.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use wincimg_common::diagnose::Problem;
use wincimg_engine::docker::{Endpoint, Environment};

/// The daemon of the docker engine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Docker options")]
pub(super) struct DockerArgs {
    /// Docker daemon to use [default: `DOCKER_HOST`, then Docker's context, then the platform's
    /// default]
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(super) docker_host: Option<String>,
}

impl DockerArgs {
    /// Finds the daemon as Docker's own command line would.
    pub(super) fn endpoint(&self) -> Result<Endpoint, Problem> {
        Endpoint::find(self.docker_host.as_deref(), &Environment::from_env())
    }
}
