//! Options of the docker engine in `wincimg build`.

use wincimg_cluster::builder::BuilderName;
use wincimg_common::untrusted::without_password;
use wincimg_engine::buildkit::BuildkitAddress;
use wincimg_engine::docker::DockerBuildOptions;
use wincimg_windows::compat::Isolation;

use crate::cli::cache_args::read_size;
use crate::cli::hosts::CLUSTER_SOURCE;
use crate::cli::image_source::DockerArgs;
use crate::cli::prelude::*;
use crate::cli::recipe_args::{build_argument, build_arguments};

/// Build options of a Docker daemon.
#[derive(Debug, Args)]
#[command(next_help_heading = "Docker options")]
pub(in crate::cli) struct DaemonArgs {
    #[command(flatten)]
    docker: DockerArgs,
    /// Daemon for the lines that require Windows: `kube://NAMESPACE/NAME` or `buildkit://HOST:PORT`
    ///
    /// `kube://NAMESPACE/NAME`, from `node builder`, has Docker daemons on nodes of a cluster: lines
    /// run in the pod for the build of Windows of the image's base, by exec with the rights of the
    /// kubeconfig. `buildkit://HOST:PORT` is BuildKit's daemon, which is experimental on Windows. It
    /// requires buildctl, whose other addresses follow `buildkit+`, as in
    /// `buildkit+npipe:////./pipe/buildkitd`; TLS files are those of `DOCKER_CERT_PATH` with
    /// `DOCKER_TLS_VERIFY`.
    #[arg(long, value_name = "ADDRESS", value_parser = builder, conflicts_with = "docker_host", group = CLUSTER_SOURCE)]
    builder: Option<String>,
    /// Isolation of the containers that run commands [default: the daemon's]
    #[arg(long, value_enum, hide_short_help = true)]
    isolation: Option<Isolation>,
    /// Memory limit of the containers that run commands, such as 2g
    #[arg(long, value_name = "BYTES", value_parser = read_bytes, hide_short_help = true)]
    memory: Option<u64>,
    /// Pull the base even if the daemon has it
    #[arg(long, hide_short_help = true)]
    pull: bool,
    /// Do not reuse layers: run every command and write every layer again
    #[arg(long, hide_short_help = true)]
    pub(super) no_cache: bool,
    /// Set a build argument; without a value, take it from the environment (repeatable)
    #[arg(long = "build-arg", help_heading = "Dockerfile options", value_name = "KEY[=VALUE]", value_parser = build_argument, add = complete::build_arguments())]
    arguments: Vec<String>,
}

/// Checks the address of pods on nodes, or of `BuildKit`'s daemon.
fn builder(text: &str) -> Result<String, String> {
    if BuildkitAddress::is_meant(text) {
        let address: BuildkitAddress = text.parse()?;
        return Ok(address.to_string());
    }
    let nodes: Result<BuilderName, String> = text.parse();
    let nodes = nodes.map_err(|error| format!("{error} or buildkit://HOST:PORT"))?;
    Ok(nodes.to_string())
}

impl DaemonArgs {
    /// Rejects options that the named daemon does not have.
    pub(super) fn check(&self) -> Result<()> {
        let given = [
            ("--isolation", self.isolation.is_some()),
            ("--memory", self.memory.is_some()),
        ];
        let given = given.into_iter().find(|(_, is_given)| *is_given);
        let buildkit = self.host().filter(|host| BuildkitAddress::is_meant(host));
        match (buildkit, given) {
            (Some(address), Some((flag, _))) => {
                let problem = format!("BuildKit at {address} has no {flag}");
                Err(Failure::usage(problem).hint(format!(
                    "remove {flag}, or name a Docker daemon with --docker-host"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The daemon that runs steps on Windows, as a plan shows it.
    pub(super) fn worker(&self) -> Option<Worker> {
        let host = self.host()?;
        let kind = if BuildkitAddress::is_meant(&host) {
            "buildkit"
        } else {
            "docker"
        };
        let address = without_password(&host).into_owned();
        Some(Worker { kind, address })
    }

    pub(super) fn host(&self) -> Option<String> {
        self.docker
            .docker_host
            .as_ref()
            .or(self.builder.as_ref())
            .cloned()
    }

    /// The given flags that are errors without a daemon. A Dockerfile has build arguments with any
    /// engine, and settings of containers have no effect without one.
    pub(super) fn flags(&self, is_recipe: bool) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--builder", self.builder.is_some()),
            ("--build-arg", is_recipe && !self.arguments.is_empty()),
            ("--docker-host", self.docker.docker_host.is_some()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(flag, _)| flag)
    }

    /// The build arguments with their values.
    pub(super) fn arguments(&self) -> Vec<(String, String)> {
        build_arguments(&self.arguments)
    }

    pub(super) fn options(&self) -> DockerBuildOptions {
        DockerBuildOptions {
            arguments: self.arguments().into_iter().collect(),
            pull: self.pull,
            no_cache: self.no_cache,
            isolation: self.isolation,
            memory: self.memory,
            ..DockerBuildOptions::default()
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Worker {
    kind: &'static str,
    address: String,
}

impl Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, address } = self;
        write!(f, "{kind} at {address}")?;
        if *kind == "buildkit" {
            f.write_str(", experimental")?;
        }
        Ok(())
    }
}

/// Parses an amount of memory, which the daemon stores in a signed number.
fn read_bytes(text: &str) -> Result<u64, String> {
    let bytes = read_size(text).ok();
    bytes
        .filter(|bytes| *bytes > 0 && i64::try_from(*bytes).is_ok())
        .ok_or_else(|| format!("invalid amount of memory {text:?}: expected 512m or 2g"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_builder_names_both_kinds() {
        let error = builder("foo").unwrap_err();
        assert!(error.contains("kube://"), "{error}");
        assert!(error.contains("buildkit://"), "{error}");
        assert!(builder("kube://apps/windows").is_ok() && builder("buildkit://a:1").is_ok());
    }

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
