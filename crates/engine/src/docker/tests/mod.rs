//! The Docker engine against a real daemon, and against a replayed one for what only Windows does.

mod connect;
mod endpoint;
mod engine;
mod info;
mod registries;
mod replay;

use wincimg_common::diagnose::BoxError;
use wincimg_common::progress::Silent;
use wincimg_dockerfile::RenderedDockerfile;

use super::api::ImageInfo;
use super::build::DockerBuildOptions;
use super::daemon::Daemon;
use super::endpoint::{Endpoint, Environment};
use super::upload::ContextListing;

async fn connect(host: &str) -> Daemon {
    let endpoint = Endpoint::find(Some(host), &Environment::default()).unwrap();
    Daemon::connect(endpoint).await.unwrap()
}

/// A Dockerfile without other files.
fn text(dockerfile: &str) -> RenderedDockerfile {
    RenderedDockerfile {
        dockerfile: dockerfile.to_owned(),
        ..RenderedDockerfile::default()
    }
}

async fn build(
    daemon: &Daemon,
    context: &RenderedDockerfile,
    options: &DockerBuildOptions,
) -> Result<ImageInfo, BoxError> {
    let listing = ContextListing::new(context).unwrap();
    daemon.build(listing, options, &Silent).await
}
