//! The docker engine's part of `wincimg build`.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use wincimg_dockerfile::stages::Stages;
use wincimg_dockerfile::{Rendered, render};
use wincimg_engine::choice::Reason;
use wincimg_engine::delivery::{Delivered, Delivery, Destination, Made};
use wincimg_engine::docker::{BuildOptions, Daemon, DockerEngine, Endpoint, Info, Preflight};
use wincimg_engine::plans::PlannedImage;
use wincimg_oci::prefix::RegistryPrefix;

use super::Job;
use crate::cli::check_compat::IsolationArg;
use crate::cli::complete;
use crate::cli::docker_args::DockerArgs;
use crate::cli::failure::Failure;
use crate::cli::recipe_args::build_arguments;

/// How a Docker daemon builds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Docker options")]
pub(in crate::cli) struct DaemonArgs {
    #[command(flatten)]
    docker: DockerArgs,
    /// How the containers of commands are isolated [default: as the daemon does]
    #[arg(long, value_enum)]
    isolation: Option<IsolationArg>,
    /// Memory for each command's container, such as 2g
    #[arg(long, value_name = "BYTES", value_parser = read_bytes)]
    memory: Option<u64>,
    /// Let the daemon ask for the base although it has it
    #[arg(long)]
    pull: bool,
    /// Run every command although the daemon did so before; the direct engine writes every layer
    #[arg(long)]
    pub(super) no_cache: bool,
    /// Set a build argument such as `HTTP_PROXY`; without a value it is taken from the environment
    /// (repeatable)
    #[arg(long = "build-arg", value_name = "KEY[=VALUE]", add = complete::build_arguments())]
    arguments: Vec<String>,
}

impl DaemonArgs {
    /// Builds in the daemon and delivers; images that are not pushed are named after a registry all
    /// the same, where one was given.
    pub(super) async fn build(
        &self,
        destinations: &[Destination],
        named_after: Option<&RegistryPrefix>,
        reason: &Reason,
        job: Job<'_>,
    ) -> Result<Delivered, Failure> {
        let images = job.publication.images.iter();
        let dockerfiles: Vec<Rendered> = images
            .map(|image| dockerfile(image.planned, job.sent))
            .collect::<Result<_, _>>()?;
        let (daemon, info) = match (self.reach().await, reason) {
            (Ok(reached), _) => reached,
            (Err(failure), Reason::AskedFor) => return Err(failure),
            // Whoever named no engine does not know yet what for a daemon is needed.
            (Err(failure), reason) => {
                return Err(failure.context(format!("a Docker daemon is needed: {reason}")));
            }
        };
        let mut places = destinations.iter();
        let engine = DockerEngine {
            daemon: &daemon,
            info: &info,
            registry: job.registry,
            options: self.options(job.created, daemon.endpoint()),
            named_after: named_after.cloned(),
            pushes: places.any(|place| matches!(place, Destination::Registry(_))),
            progress: job.progress.as_ref(),
        };
        let making = async {
            let made = engine.make(job.publication, &dockerfiles).await?;
            Ok(made.into_iter().map(Box::new).map(Made::InDaemon).collect())
        };
        let delivery = Delivery {
            registry: job.registry,
            progress: Arc::clone(&job.progress),
            destinations,
            flavour: None,
            existing: job.existing,
            review: job.review,
        };
        Ok(Box::pin(delivery.deliver(job.publication, making)).await?)
    }

    /// A daemon that makes Windows containers.
    async fn reach(&self) -> Result<(Daemon, Info), Failure> {
        let endpoint = self.docker.endpoint()?;
        tracing::debug!("docker: {} ({})", endpoint.address, endpoint.origin);
        let daemon = Daemon::connect(endpoint).await?;
        let info = daemon.info().await?;
        Preflight::new(&daemon, &info).windows()?;
        Ok((daemon, info))
    }

    /// The build arguments with their values.
    pub(super) fn arguments(&self) -> Vec<(String, String)> {
        build_arguments(&self.arguments)
    }

    fn options(&self, created: Option<Timestamp>, endpoint: &Endpoint) -> BuildOptions {
        let mut arguments = self.arguments().into_iter().collect();
        endpoint.settings.add_proxies(&mut arguments);
        BuildOptions {
            arguments,
            pull: self.pull,
            no_cache: self.no_cache,
            isolation: self.isolation.map(Into::into),
            memory: self.memory,
            timestamp: created.and_then(|time| u64::try_from(time.as_second()).ok()),
            ..BuildOptions::default()
        }
    }
}

/// What a daemon builds an image from.
fn dockerfile(image: &PlannedImage, sent: Option<&Stages>) -> Result<Rendered, Failure> {
    let Some(stages) = sent else {
        return Ok(render(&image.plan, image.base.inside.as_ref())?);
    };
    let bases = image.stages.iter();
    let pinned = bases.map(|(name, base)| (name.to_owned(), base.label()));
    Ok(stages.sent(&pinned.collect(), &image.plan.labels)?)
}

/// Reads an amount as Docker does: bytes, or with k, m or g behind them.
fn read_bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    let (number, unit) = match lower.strip_suffix(['k', 'm', 'g']) {
        Some(number) => (number, lower.chars().next_back()),
        None => (lower, None),
    };
    let shift = match unit {
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        _ => 0,
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        // The daemon keeps it in a signed number.
        .filter(|bytes| *bytes > 0 && i64::try_from(*bytes).is_ok())
        .ok_or_else(|| format!("invalid amount of memory {text:?}: expected 512m or 2g"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_docker_reads_it() {
        for (text, expected) in [
            ("4096", Some(4096)),
            ("512m", Some(512 << 20)),
            ("2g", Some(2 << 30)),
            ("2GB", Some(2 << 30)),
            ("1k", Some(1024)),
            ("0", None),
            ("", None),
            ("g", None),
            ("-1g", None),
            ("1.5g", None),
            ("99999999999g", None),
        ] {
            assert_eq!(read_bytes(text).ok(), expected, "{text}");
        }
    }
}
