//! `BuildKit` as a worker.

use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_common::untrusted::password;
use wincimg_oci::reference::{Reference, repository_of};
use wincimg_oci::remote::DaemonCredential;
use wincimg_windows::compat::{HostBuild, Isolation, VerdictOutcome, check};
use wincimg_windows::version::WindowsVersion;

use super::worker::{NO_REPOSITORY, WindowsBuild, no_place};
use super::{CacheRepository, pushed_image};
use crate::build::{BuildContext, EngineOptions};
use crate::buildkit::{Buildctl, BuildctlBuild, BuildkitAddress, DaemonWorker};
use crate::docker::{DockerBuildOptions, check_reachable};

/// `BuildKit`'s daemon on Windows.
pub(super) struct BuildkitWorker {
    client: Buildctl,
    /// The proxies among the given build arguments.
    proxies: Vec<(String, String)>,
    no_cache: bool,
    /// The version of Windows of its host, if it is known.
    host: Option<WindowsVersion>,
}

impl BuildkitWorker {
    /// Connects to a daemon that runs Windows containers.
    pub(super) async fn connect(
        address: BuildkitAddress,
        options: &EngineOptions,
        ctx: &BuildContext<'_>,
    ) -> Result<Self, BoxError> {
        let client = Buildctl::new(address);
        let workers = client.workers().await?;
        let address = &client.address;
        let of_windows = workers.iter().find_map(|worker| {
            let mut platforms = worker.all_platforms();
            Some((worker, platforms.find(|it| it.os == "windows")?))
        });
        let Some((worker, platform)) = of_windows else {
            let platforms = workers.iter().flat_map(DaemonWorker::all_platforms);
            let mut systems: Vec<&str> = platforms.map(|it| it.os.as_str()).collect();
            systems.dedup();
            if systems.is_empty() {
                systems.push("no");
            }
            let systems = systems.join(" and ");
            let problem =
                format!("BuildKit at {address} runs {systems} containers: expected windows");
            return Err(Problem::new("windows/needed", problem)
                .blame(Blame::Windows)
                .hint("name BuildKit on Windows with --builder, or a Docker daemon with --docker-host")
                .into());
        };
        let version = worker.buildkit_version.as_ref();
        ctx.reporter.warn(&format_args!(
            "BuildKit {} at {address}: on Windows it is experimental",
            version.map_or("", |it| it.version.as_str())
        ));
        Ok(Self {
            host: platform.os_version.parse().ok(),
            client,
            proxies: proxies(&options.docker)?,
            no_cache: options.docker.no_cache,
        })
    }

    /// Checks that steps on an image can run there, as far as that is known.
    pub(super) fn check_base(&self, version: WindowsVersion) -> Result<(), Problem> {
        let host = self.host.and_then(|host| {
            // A newer base starts on no edition.
            let is_newer = version.build > host.build;
            HostBuild::of_product(host, "").or(is_newer.then(|| HostBuild::new(host)))
        });
        let verdict = check(host, Some(version), Isolation::Process);
        tracing::debug!("buildkit: {}", verdict.reason());
        if verdict.outcome != VerdictOutcome::Incompatible {
            return Ok(());
        }
        let (address, reason) = (&self.client.address, verdict.reason());
        let problem = format!("BuildKit at {address} cannot run the base: {reason}");
        Err(Problem::new("daemon/cannot-run", problem)
            .hint("build on a host of the base's version, or with a Docker daemon"))
    }

    /// Credentials for the registries of the images.
    async fn credentials(
        &self,
        build: &WindowsBuild<'_>,
        repository: &CacheRepository,
        ctx: &BuildContext<'_>,
    ) -> Result<Vec<DaemonCredential>, BoxError> {
        let mut hosts = vec![repository.registry.host()];
        let ground = build.ground.base.reference();
        hosts.extend(ground.map(Reference::registry));
        hosts.sort_unstable();
        hosts.dedup();
        let address = &self.client.address;
        let mut found = Vec::new();
        for host in hosts {
            let daemon = format!("BuildKit at {address}");
            check_reachable(host, &daemon, address.is_on_this_machine())?;
            let ping = ctx.registry.ping(host).await?;
            let readable = self.client.is_readable();
            found.extend(ctx.registry.daemon_credential(&ping, readable).await?);
        }
        Ok(found)
    }

    /// Runs the steps, pushes the result to its repository, and returns its digest.
    pub(super) async fn run(
        &self,
        build: &WindowsBuild<'_>,
        ctx: &BuildContext<'_>,
    ) -> Result<String, BoxError> {
        let base = &build.ground.base;
        let segment = build.segment;
        let dockerfile = segment.dockerfile_with_values(&base.label());
        let dockerfile = dockerfile.map_err(|name| {
            let problem = format!("the build argument {name} has several lines");
            Problem::request("dockerfile/request", problem).hint(
                "BuildKit takes arguments of one line: name a Docker daemon with --docker-host",
            )
        })?;
        let layers = segment.layer_numbers();
        let repository = build.repository.ok_or_else(|| no_place(NO_REPOSITORY))?;
        let reference = repository.reference(build.tag)?;
        let name = format!("{}:{}", repository_of(&reference), build.tag);
        let credentials = self.credentials(build, repository, ctx).await?;
        let image = BuildctlBuild {
            dockerfile: &dockerfile,
            layers: &layers,
            count: segment.instruction_count(),
            name: &name,
            arguments: &self.proxies,
            credentials: &credentials,
            no_cache: self.no_cache,
        };
        let digest = self.client.build(&image, ctx.progress.as_ref()).await?;
        // Its layers are compared by the caller.
        let pushed = repository.reference(&format!("{}@{digest}", build.tag))?;
        let made = pushed_image(&pushed, &ctx.registry).await?;
        let config = made.config();
        let (os, version) = (config.os.as_str(), config.os_version.as_deref());
        let expected = base.version_text();
        if os != "windows" || version != expected.as_deref() {
            let (version, expected) = (version.unwrap_or_default(), expected.unwrap_or_default());
            let problem =
                format!("BuildKit built an image of {os} {version}: expected windows {expected}");
            return Err(Problem::new("daemon/other-base", problem).into());
        }
        Ok(digest)
    }
}

fn proxies(options: &DockerBuildOptions) -> Result<Vec<(String, String)>, Problem> {
    let proxies = options.proxies();
    let proxies = proxies.map(|(name, value)| match password(value) {
        None => Ok((name.clone(), value.clone())),
        Some(_) => {
            let problem = format!(
                "the proxy {name} has a password, which buildctl would show in the process list"
            );
            Err(Problem::request("usage", problem)
                .hint("configure the proxy of the daemon's machine, or remove the password"))
        }
    });
    proxies.collect()
}
