//! Builds planned images with a daemon, while their destinations are checked.

use std::fmt;

use jiff::Timestamp;
use wincimg_common::diagnose::{BoxError, Problem, error_chain};
use wincimg_common::progress::Progress;
use wincimg_dockerfile::stages::Stages;
use wincimg_dockerfile::{RenderedDockerfile, render};
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{Reference, ReferenceError, parse_reference, repository_of};
use wincimg_oci::remote::{DaemonCredential, RegistryClient};

use super::api::{ImageInfo, Info};
use super::build::DockerBuildOptions;
use super::daemon::Daemon;
use super::endpoint::{Endpoint, Environment};
use super::error::DockerError;
use super::preflight::Preflight;
use super::upload::ContextListing;
use crate::build::{BuildContext, EngineOptions};
use crate::delivery::{BuiltImage, Delivery, DeliveryReport, DeliveryTarget};
use crate::error::not_built;
use crate::plans::{BuildRequest, PlannedBase, PlannedImage};
use crate::publication::Publication;

/// Approximate ratio of the size of Windows layers on disk to their compressed size.
const EXPANSION: u64 = 3;

/// An image built by a daemon, with its name there.
pub(crate) struct DaemonImage<'a> {
    pub(crate) daemon: &'a Daemon,
    pub(crate) info: ImageInfo,
    name: String,
    tag: String,
    credential: Option<DaemonCredential>,
}

impl fmt::Display for DaemonImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.tag)
    }
}

impl DaemonImage<'_> {
    /// Lets the daemon push the image to the registry in its name; returns its digest there.
    pub(crate) async fn push(&self, progress: &dyn Progress) -> Result<String, DockerError> {
        let (daemon, credential) = (self.daemon, self.credential.as_ref());
        daemon
            .push(&self.name, &self.tag, credential, progress)
            .await
    }
}

/// The engine that lets a daemon on Windows build images.
pub(crate) struct DockerEngine<'a> {
    pub(crate) daemon: &'a Daemon,
    pub(crate) info: &'a Info,
    /// The client for all registries, with the credentials that the daemon needs.
    pub(crate) registry: &'a RegistryClient,
    pub(crate) options: DockerBuildOptions,
    /// The registry of the images' names, as a push requires it.
    pub(crate) named_after: Option<RegistryPrefix>,
    /// True if the daemon pushes the images there.
    pub(crate) pushes: bool,
    /// Display of transfers.
    pub(crate) progress: &'a dyn Progress,
}

impl<'a> DockerEngine<'a> {
    /// Builds the images of a publication from their Dockerfiles, one after the other, as they
    /// share the daemon's machine.
    pub(crate) async fn build_images(
        &self,
        publication: &Publication<'_>,
        dockerfiles: &[RenderedDockerfile],
    ) -> Result<Vec<DaemonImage<'a>>, BoxError> {
        let prepared = self.prepare(publication).await;
        let (options, credential) =
            prepared.map_err(|error| not_built(&publication.name, error))?;
        let mut made = Vec::with_capacity(dockerfiles.len());
        for (image, dockerfile) in publication.images.iter().zip(dockerfiles) {
            let building = async {
                let name = self.name_in_daemon(&publication.name)?;
                let info = self.build(image.planned, dockerfile, &options).await?;
                self.daemon.tag(&info.id, &name, &image.tag).await?;
                Ok::<_, BoxError>((name, info))
            };
            let built = Box::pin(building).await;
            let (name, info) = built.map_err(|error| {
                not_built(format_args!("{}:{}", publication.name, image.tag), error)
            })?;
            made.push(DaemonImage {
                daemon: self.daemon,
                info,
                name,
                tag: image.tag.clone(),
                credential: credential.clone(),
            });
        }
        Ok(made)
    }

    /// Checks everything that would make the builds fail late, and finds the credentials for them
    /// and for the push.
    async fn prepare(
        &self,
        publication: &Publication<'_>,
    ) -> Result<(DockerBuildOptions, Option<DaemonCredential>), BoxError> {
        let preflight = Preflight::new(self.daemon, self.info);
        preflight.check_windows()?;
        let bases = || publication.images.iter().map(|image| &image.planned.base);
        for base in bases() {
            if let Some(version) = base.os_version {
                let verdict = preflight.check_base(version, self.options.isolation)?;
                tracing::debug!("docker: {}", verdict.reason());
            }
        }
        let of_stages = publication.images.iter();
        let of_stages = of_stages.flat_map(|image| image.planned.stages.bases.values());
        let mut hosts: Vec<&str> = bases()
            .chain(of_stages)
            .filter_map(PlannedBase::reference)
            .map(Reference::registry)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        let mut options = self.options.clone();
        for host in hosts {
            let credential = self.ask_registry(host).await?;
            options.credentials.extend(credential);
        }
        let credential = match &self.named_after {
            Some(registry) if self.pushes => self.ask_registry(registry.host()).await?,
            _ => None,
        };
        Ok((options, credential))
    }

    pub(super) async fn ask_registry(
        &self,
        host: &str,
    ) -> Result<Option<DaemonCredential>, BoxError> {
        let ping = self.registry.ping(host).await?;
        let preflight = Preflight::new(self.daemon, self.info);
        preflight.check_registry(host, ping.connection).await?;
        let readable = self.daemon.endpoint().is_readable();
        Ok(self.registry.daemon_credential(&ping, readable).await?)
    }

    async fn build(
        &self,
        image: &PlannedImage,
        dockerfile: &RenderedDockerfile,
        options: &DockerBuildOptions,
    ) -> Result<ImageInfo, BoxError> {
        let listing = ContextListing::new(dockerfile)?;
        let base = &image.base;
        let needed = self.bytes_needed(base, listing.bytes).await?;
        Preflight::new(self.daemon, self.info).check_disk(needed)?;
        let options = DockerBuildOptions {
            timestamp: options.timestamp.or_else(|| created(base)),
            // No registry has an image between steps.
            pull: options.pull && base.interim.is_none(),
            ..options.clone()
        };
        let info = self.daemon.build(listing, &options, self.progress).await?;
        let expected = base.version_text().unwrap_or_default();
        if info.os != "windows" || info.os_version != expected {
            return Err(other_base(format!(
                "the daemon built an image of {} {}: expected windows {expected}",
                info.os, info.os_version
            )));
        }
        if !info.is_on(&base.image) {
            return Err(other_base(format!(
                "the daemon built on layers that are not those of the base {}",
                image.plan.base.name
            )));
        }
        Ok(info)
    }

    /// Bytes a build needs: the context counts twice, as received and as a layer, and the base if
    /// the daemon has to pull it.
    pub(super) async fn bytes_needed(
        &self,
        base: &PlannedBase,
        context: u64,
    ) -> Result<u64, BoxError> {
        let layers = match self.daemon.find_image(&base.label()).await? {
            Some(_) => 0,
            None => {
                let layers = base.image.manifest().layers.iter();
                layers.map(|layer| layer.size).sum::<u64>()
            }
        };
        let base = layers.saturating_mul(EXPANSION);
        Ok(context.saturating_mul(2).saturating_add(base))
    }

    /// Name of an image in the daemon: as in the registry, so that it can be pushed.
    fn name_in_daemon(&self, name: &str) -> Result<String, ReferenceError> {
        let Some(registry) = &self.named_after else {
            return Ok(name.to_owned());
        };
        Ok(repository_of(&registry.join(name)?))
    }
}

fn other_base(problem: String) -> BoxError {
    Problem::new("daemon/other-base", problem)
        .hint("the daemon has another image under the base's name: add --pull")
        .into()
}

/// Creation time of a base, in seconds since 1970.
fn created(base: &PlannedBase) -> Option<u64> {
    let time: Timestamp = base.image.config().created.as_ref()?.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

/// Lets a daemon build the images of a publication. Images that are not pushed are named after the
/// given registry too.
pub(crate) async fn deliver_by_docker(
    request: &BuildRequest,
    publication: &Publication<'_>,
    obstacle: Option<&Problem>,
    target: &DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<DeliveryReport, BoxError> {
    let images = publication.images.iter();
    let dockerfiles = images.map(|image| dockerfile(request, image.planned));
    let dockerfiles: Vec<RenderedDockerfile> = dockerfiles.collect::<Result<_, _>>()?;
    let options = &request.options;
    let reached = connect_windows(options, &only_build(publication)).await;
    let (daemon, info) = reached.map_err(|error| match obstacle {
        None => error,
        Some(why) => Problem::context(format!("a Docker daemon is required: {why}"), error).into(),
    })?;
    let mut docker = options.for_daemon();
    let settings = &daemon.endpoint().settings;
    settings.add_proxies(&mut docker.arguments);
    let mut engine = DockerEngine {
        daemon: &daemon,
        info: &info,
        registry: &ctx.registry,
        options: docker,
        named_after: target.named_after.clone(),
        pushes: target.registry().is_some(),
        progress: ctx.progress.as_ref(),
    };
    let making = async {
        add_login(&mut engine, request).await;
        let made = engine.build_images(publication, &dockerfiles).await?;
        Ok(made
            .into_iter()
            .map(Box::new)
            .map(BuiltImage::InDaemon)
            .collect())
    };
    let delivery = Delivery::new(target, ctx);
    Box::pin(delivery.deliver(publication, making)).await
}

/// Adds the login for the registry of the bases, if a Dockerfile copies from an image there, which may
/// be sent as written.
async fn add_login(engine: &mut DockerEngine<'_>, request: &BuildRequest) {
    let host = request.base_registry.0.host();
    let mut copied = request
        .daemon_stages()
        .into_iter()
        .flat_map(Stages::copied_images);
    if !copied.any(|(_, name)| parse_reference(name).is_ok_and(|image| image.registry() == host)) {
        return;
    }
    let login = engine.ask_registry(host).await;
    match login {
        Ok(login) => engine.options.credentials.extend(login),
        // The daemon may have the image.
        Err(error) => tracing::debug!("docker: {}", error_chain(error.as_ref())),
    }
}

/// The build of Windows of the images, if they have one in common.
fn only_build(publication: &Publication<'_>) -> Vec<u32> {
    let images = publication.images.iter();
    let mut builds: Vec<u32> = images
        .filter_map(|image| Some(image.planned.base.os_version?.build))
        .collect();
    builds.dedup();
    if builds.len() > 1 {
        builds.clear();
    }
    builds
}

/// Connects to a daemon that runs Windows containers; of a builder, to that for the first of
/// the builds.
pub(crate) async fn connect_windows(
    options: &EngineOptions,
    builds: &[u32],
) -> Result<(Daemon, Info), BoxError> {
    let host = options.docker_host.as_deref();
    let endpoint = Endpoint::find(host, &Environment::from_env())?;
    let endpoint = endpoint.for_builds(builds, &options.cluster);
    tracing::debug!("docker: {} ({})", endpoint.address, endpoint.origin);
    let daemon = Daemon::connect(endpoint).await?;
    let info = daemon.info().await?;
    Preflight::new(&daemon, &info).check_windows()?;
    Ok((daemon, info))
}

/// The Dockerfile of an image and its context.
fn dockerfile(
    request: &BuildRequest,
    image: &PlannedImage,
) -> Result<RenderedDockerfile, BoxError> {
    let Some(stages) = request.daemon_stages() else {
        return Ok(render(&image.plan, image.base.inside.as_ref())?);
    };
    let bases = image.stages.bases.iter();
    let pinned = bases.map(|(name, base)| (name.clone(), base.label()));
    let sent = stages.for_daemon(&pinned.collect(), &image.plan.labels);
    Ok(sent?)
}
