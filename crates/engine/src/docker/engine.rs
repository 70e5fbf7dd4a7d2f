//! Builds planned images with a daemon.

use std::fmt;

use jiff::Timestamp;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_dockerfile::RenderedDockerfile;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{Reference, ReferenceError, repository_of};
use wincimg_oci::remote::{DaemonCredential, RegistryClient};

use super::api::{ImageInfo, Info};
use super::build::DockerBuildOptions;
use super::context::ContextListing;
use super::daemon::Daemon;
use super::error::DockerError;
use super::preflight::Preflight;
use crate::error::not_built;
use crate::plans::{PlannedBase, PlannedImage};
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
