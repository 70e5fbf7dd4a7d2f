//! Planned images, built by a daemon and brought to where they belong.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;

use super::api::{ImageInfo, Info};
use super::build::{BuildError, BuildOptions};
use super::context::{ContextError, Listing};
use super::daemon::Daemon;
use super::error::DockerError;
use super::outgoing::Moved;
use super::preflight::{Obstacle, Preflight};
use crate::diagnose::Diagnose;
use crate::dockerfile::Rendered;
use crate::engine::delivered::{Delivered, DeliveredImage, DeliveredLayer, base_of, layers_of};
use crate::engine::delivery::{DeliveryError, Destination, Naming, check_tags, deliver_index};
use crate::engine::order::PlannedImage;
use crate::oci::base::BaseImage;
use crate::oci::copy::CopyError;
use crate::oci::document::{DocumentError, Flavour};
use crate::oci::reference::ReferenceError;
use crate::oci::remote::{DaemonCredential, Registry, RegistryError};
use crate::oci::store::{Location, Sink, StoreError};
use crate::progress::Progress;

/// How a layer looks that has not left the daemon.
const IN_DAEMON: &str = "application/vnd.docker.image.rootfs.diff.tar";
/// How much larger Windows' layers are on disk than on their way, about.
const EXPANSION: u64 = 3;

/// Why a daemon's image did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The build would fail, or the push after it.
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
    /// The context cannot be built from.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The build failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The daemon failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// The image is not of the plan's version.
    #[error("the daemon built an image of {built}: expected {expected}")]
    OtherVersion {
        /// What the daemon says of the image.
        built: String,
        /// What the plan says.
        expected: String,
    },
    /// The image's lower layers are not the plan's base.
    #[error("the daemon built on other layers than those of the base {base}")]
    OtherBase {
        /// What it should be built on.
        base: String,
    },
    /// What was pushed is no image.
    #[error("{reference} is an index now: expected the image that was pushed")]
    Index {
        /// Where it is.
        reference: String,
    },
    /// The image could not be taken out of the daemon.
    #[error("the image could not be saved on disk")]
    Save(#[source] io::Error),
    /// A registry failed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The image could not be copied from the daemon.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The image's documents do not fit together.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl Diagnose for DaemonError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }
}

impl DaemonError {
    /// What to type or do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Obstacle(error) => error.hint(),
            Self::Build(error) => error.hint(),
            Self::Docker(error) => error.hint(),
            Self::OtherVersion { .. } | Self::OtherBase { .. } => {
                Some("the daemon has another image under the base's name: add --pull".to_owned())
            }
            Self::Registry(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Copy(error) => error.hint(),
            _ => None,
        }
    }
}

/// An image with what it is built from.
#[derive(Debug, Clone)]
pub struct Prepared<'a> {
    /// The image.
    pub planned: &'a PlannedImage,
    /// Its Dockerfile and what that copies.
    pub rendered: Rendered,
}

/// Builds images in a daemon and brings them to their destinations.
pub struct DaemonDelivery<'a> {
    /// The daemon.
    pub daemon: &'a Daemon,
    /// What it says of itself.
    pub info: &'a Info,
    /// The client for all registries, which looks at what the daemon pushed.
    pub registry: &'a Registry,
    /// How the daemon builds.
    pub options: BuildOptions,
    /// The registry that images are named after which are not pushed.
    pub named_after: Option<String>,
    /// Who is told.
    pub progress: Arc<dyn Progress>,
}

/// An image that the daemon has.
pub(super) struct Built<'a> {
    pub(super) planned: &'a PlannedImage,
    pub(super) info: ImageInfo,
    /// Its name in the daemon.
    pub(super) name: String,
    pub(super) tag: String,
}

impl DaemonDelivery<'_> {
    /// Asks everything that would make the builds fail late, and finds the credentials they need.
    pub async fn prepare(
        &mut self,
        images: &[PlannedImage],
        target: Option<&str>,
    ) -> Result<Option<DaemonCredential>, DaemonError> {
        let preflight = Preflight::new(self.daemon, self.info);
        preflight.windows()?;
        for image in images {
            let base = image.base.os_version;
            let verdict = preflight.base(base, self.options.isolation)?;
            tracing::debug!("docker: {}", verdict.reason());
        }
        let mut hosts: Vec<&str> = images
            .iter()
            .map(|image| image.base.reference.registry())
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let credential = self.ask_registry(host).await?;
            self.options.credentials.extend(credential);
        }
        match target {
            Some(host) => self.ask_registry(host).await,
            None => Ok(None),
        }
    }

    async fn ask_registry(&self, host: &str) -> Result<Option<DaemonCredential>, DaemonError> {
        let ping = self.registry.ping(host).await?;
        let preflight = Preflight::new(self.daemon, self.info);
        preflight.registry(host, ping.connection).await?;
        let readable = self.daemon.endpoint().is_readable();
        Ok(self.registry.daemon_credential(&ping, readable).await?)
    }

    /// Builds all images, one after the other as the daemon's machine has to, and delivers them.
    /// Without a destination they stay in the daemon. The first destination is the one reported.
    pub async fn deliver(
        &mut self,
        images: &[Prepared<'_>],
        destinations: &[Destination],
        naming: &Naming,
    ) -> Result<Delivered, DeliveryError> {
        let planned: Vec<PlannedImage> = images.iter().map(|one| one.planned.clone()).collect();
        check_tags(&planned, naming)?;
        let target = destinations
            .iter()
            .find_map(|destination| match destination {
                Destination::Registry(registry) => Some(registry.as_str()),
                _ => None,
            });
        let several = images.len() > 1;
        let host = target.map(|target| target.split('/').next().unwrap_or(target));
        let failed = |source: DaemonError| DeliveryError::Daemon {
            image: naming.name.clone(),
            source: Box::new(source),
        };
        let credential = self.prepare(&planned, host).await.map_err(failed)?;
        let mut built = Vec::new();
        for image in images {
            let tag = naming.tag_of(image.planned, several);
            let prefix = target.or(self.named_after.as_deref());
            let name = name_in_daemon(prefix, naming, &tag)?;
            let made = self.build(image, name, tag.clone()).await;
            built.push(made.map_err(|source| DeliveryError::Daemon {
                image: format!("{}:{tag}", naming.name),
                source: Box::new(source),
            })?);
        }
        if destinations.is_empty() {
            return Ok(Delivered {
                images: built.iter().map(Built::in_daemon).collect(),
                index: None,
            });
        }
        let mut delivered = Delivered::default();
        for destination in destinations {
            let credential = credential.as_ref();
            delivered.add(self.bring(&built, destination, naming, credential).await?);
        }
        Ok(delivered)
    }

    async fn build<'a>(
        &self,
        image: &Prepared<'a>,
        name: String,
        tag: String,
    ) -> Result<Built<'a>, DaemonError> {
        let listing = Listing::new(&image.rendered)?;
        let base = &image.planned.base;
        let needed = self.bytes_needed(image.planned, listing.bytes()).await?;
        Preflight::new(self.daemon, self.info).disk(needed)?;
        let progress = self.progress.as_ref();
        let options = BuildOptions {
            timestamp: self.options.timestamp.or_else(|| created(base)),
            ..self.options.clone()
        };
        let info = self.daemon.build(listing, &options, progress).await?;
        let expected = base.os_version.os_version();
        if info.os != "windows" || info.os_version != expected {
            return Err(DaemonError::OtherVersion {
                built: format!("{} {}", info.os, info.os_version),
                expected: format!("windows {expected}"),
            });
        }
        let below = base.image.config().rootfs.diff_ids.iter();
        let above = info.layers.iter().map(String::as_str);
        if !below
            .map(AsRef::as_ref)
            .eq(above.take(base_layers(image.planned)))
        {
            return Err(DaemonError::OtherBase {
                base: image.planned.plan.base.name.clone(),
            });
        }
        self.daemon.tag(&info.id, &name, &tag).await?;
        Ok(Built {
            planned: image.planned,
            info,
            name,
            tag,
        })
    }

    /// The context is there twice for a while, as it came and as a layer, and the base has to come
    /// first where the daemon has not got it.
    async fn bytes_needed(&self, image: &PlannedImage, context: u64) -> Result<u64, DaemonError> {
        let has_base = match self.daemon.image(&image.base.reference.to_string()).await {
            Ok(_) => true,
            Err(error) if error.is_not_found() => false,
            Err(error) => return Err(error.into()),
        };
        let layers = image.base.image.manifest().layers.iter();
        let base: u64 = layers.map(|layer| layer.size).sum();
        let base = if has_base {
            0
        } else {
            base.saturating_mul(EXPANSION)
        };
        Ok(context.saturating_mul(2).saturating_add(base))
    }

    async fn bring(
        &self,
        built: &[Built<'_>],
        destination: &Destination,
        naming: &Naming,
        credential: Option<&DaemonCredential>,
    ) -> Result<Delivered, DeliveryError> {
        let mut delivered = Vec::new();
        let mut entries = Vec::new();
        let first = built.first().map_or(naming.index_tag(), |one| &one.tag);
        let sink = Sink::create(&destination.location(naming, first)?, self.registry).await?;
        for one in built {
            let location = destination.location(naming, &one.tag)?;
            let moved = match &sink {
                Sink::Registry(repository) => self.push(one, repository, credential).await,
                Sink::Layout(_) => self.save(one, &location, &sink, Some(Flavour::Oci)).await,
                Sink::Archive(_) => self.save(one, &location, &sink, None).await,
            };
            let moved = moved.map_err(|source| DeliveryError::Daemon {
                image: location.to_string(),
                source: Box::new(source),
            })?;
            entries.push(moved.entry.clone());
            delivered.push(one.delivered(location.to_string(), &moved, destination));
        }
        let index = if built.len() > 1 {
            let none_is_new = delivered.iter().all(|image| image.up_to_date);
            Some(deliver_index(entries, none_is_new, destination, naming, &sink).await?)
        } else {
            None
        };
        sink.finish().await?;
        Ok(Delivered {
            images: delivered,
            index,
        })
    }
}

impl Built<'_> {
    fn delivered(
        &self,
        reference: String,
        moved: &Moved,
        destination: &Destination,
    ) -> DeliveredImage {
        DeliveredImage {
            reference,
            digest: moved.entry.digest.to_string(),
            layers: moved.layers.clone(),
            pushed: matches!(destination, Destination::Registry(_)),
            up_to_date: moved.up_to_date,
            ..self.in_daemon()
        }
    }

    /// The image as the daemon has it: by its id, with layers that are no blobs yet unless the base
    /// brought them along.
    fn in_daemon(&self) -> DeliveredImage {
        let base = &self.planned.base;
        let mut layers = layers_of(&base.image, base_layers(self.planned));
        let own = self.info.layers.iter().skip(layers.len());
        layers.extend(own.map(|diff_id| DeliveredLayer {
            digest: None,
            diff_id: diff_id.clone(),
            size: None,
            media_type: IN_DAEMON.to_owned(),
            from: "recipe",
        }));
        DeliveredImage {
            reference: format!("{}:{}", self.name, self.tag),
            digest: self.info.id.clone(),
            engine: "docker",
            host_build: self.planned.plan.host_build.to_string(),
            os_version: base.os_version.os_version(),
            base: base_of(self.planned),
            layers,
            pushed: false,
            up_to_date: false,
            copies: Vec::new(),
        }
    }
}

pub(super) fn base_layers(image: &PlannedImage) -> usize {
    image.base.image.manifest().layers.len()
}

/// When a base was made, in seconds since 1970.
fn created(base: &BaseImage) -> Option<u64> {
    let time: Timestamp = base.image.config().created.as_ref()?.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

/// What a daemon calls an image: as the registry will, so that it can be pushed.
fn name_in_daemon(
    target: Option<&str>,
    naming: &Naming,
    tag: &str,
) -> Result<String, ReferenceError> {
    let Some(registry) = target else {
        return Ok(naming.name.clone());
    };
    let location = Destination::Registry(registry.to_owned()).location(naming, tag)?;
    Ok(match location {
        Location::Registry(reference) => {
            format!("{}/{}", reference.registry(), reference.repository())
        }
        _ => naming.name.clone(),
    })
}
