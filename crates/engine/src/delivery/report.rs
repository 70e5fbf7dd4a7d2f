//! Report of delivered images, with the fields of the published JSON.

use serde::Serialize;
use wincimg_inspect::provenance::AttachmentReport;
use wincimg_oci::document::{Descriptor, Digest, Image};
use wincimg_oci::store::Location;

use super::BuiltImage;
use super::destination_writer::DestinationImage;
use super::existing_tag::TagEntry;
use crate::base_contents::has_known_files;
use crate::docker::DaemonImage;
use crate::publication::{Publication, TaggedImage};
use crate::unserved::UnservedHost;

/// Media type reported for a layer that is only in the daemon.
const IN_DAEMON: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// Report of a build.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DeliveryReport {
    /// The images, in the order of the hosts.
    pub images: Vec<DeliveredImage>,
    /// The index over them, if there are several.
    pub index: Option<DeliveredIndex>,
    /// Hosts without an image.
    pub failed: Vec<UnservedHost>,
}

/// A delivered image.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DeliveredImage {
    /// Its location.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// Media type of its manifest; none while it is in a daemon.
    pub media_type: Option<String>,
    /// Size of its manifest in bytes.
    pub size: Option<u64>,
    /// Digest of its configuration, which is Docker's image ID.
    pub config_digest: Option<String>,
    /// The engine that made it.
    pub engine: &'static str,
    /// The build of its host; none if it serves any.
    pub host_build: Option<String>,
    /// Its version of Windows, if it has one.
    pub os_version: Option<String>,
    /// Its architecture: `amd64` or `arm64`.
    pub architecture: String,
    /// Its base.
    pub base: DeliveredBase,
    /// Its layers, the base's first.
    pub layers: Vec<DeliveredLayer>,
    /// True if it is in a registry.
    pub pushed: bool,
    /// True if the destination already had all of it.
    pub up_to_date: bool,
    /// The other destinations.
    pub copies: Vec<DeliveredCopy>,
    /// The documents attached to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<AttachmentReport>,
}

/// The same image or index at another destination, where another format may give it another digest.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredCopy {
    /// Its location.
    pub reference: String,
    /// Its digest there.
    pub digest: String,
    /// The documents attached to it there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<AttachmentReport>,
}

/// The base of an image.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DeliveredBase {
    /// Its pinned reference; its name if wincimg made it.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// The tag it was found under; none if wincimg made it.
    pub tag: Option<String>,
    /// Its version of Windows, if it has one.
    pub os_version: Option<String>,
    /// Match with the host's version: exact or nearest; any if there is no host.
    #[serde(rename = "match")]
    pub matched: &'static str,
    /// True if its files are known, on which the bytes of a layer depend.
    #[serde(skip)]
    pub is_indexed: bool,
}

/// One layer of an image.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredLayer {
    /// Digest of the blob; none while it is in a daemon.
    pub digest: Option<String>,
    /// The digest of the uncompressed tar.
    pub diff_id: String,
    /// Size of the blob in bytes, if there is one.
    pub size: Option<u64>,
    /// Media type of the blob.
    pub media_type: String,
    /// base or recipe; image for an existing layer of a rebased image.
    pub from: &'static str,
}

/// The index over several images.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredIndex {
    /// Its location.
    pub reference: String,
    /// Its digest.
    pub digest: String,
    /// Its media type; none if another build published it at the same time.
    pub media_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Its other entries, which were kept: `linux/amd64`, `windows/amd64:10.0.17763.973`.
    pub kept: Vec<String>,
    /// The other destinations.
    pub copies: Vec<DeliveredCopy>,
    /// True if the tag already had all of it.
    #[serde(skip)]
    pub up_to_date: bool,
}

impl DeliveryReport {
    /// Adds the report of the next destination of the same images, whose details stay those of the
    /// first.
    pub(super) fn add(&mut self, next: Self) {
        if self.images.is_empty() {
            *self = next;
            return;
        }
        for (image, copy) in self.images.iter_mut().zip(next.images) {
            image.copies.push(DeliveredCopy {
                reference: copy.reference,
                digest: copy.digest,
                documents: copy.documents,
            });
        }
        if let (Some(index), Some(copy)) = (&mut self.index, next.index) {
            index.copies.push(DeliveredCopy {
                reference: copy.reference,
                digest: copy.digest,
                documents: Vec::new(),
            });
        }
    }
}

impl DeliveredIndex {
    /// A published index; without its own descriptor, another build published it.
    pub(super) fn new(
        location: &Location,
        digest: &Digest,
        own: Option<Descriptor>,
        kept: &[TagEntry],
    ) -> Self {
        let kept = kept.iter().map(|entry| &entry.line.platform);
        // An attestation has no platform.
        let kept = kept.filter(|platform| !matches!(platform.os.as_str(), "" | "unknown"));
        Self {
            reference: location.to_string(),
            digest: digest.to_string(),
            size: own.as_ref().map(|own| own.size),
            media_type: own.map(|own| own.media_type),
            kept: kept.map(ToString::to_string).collect(),
            copies: Vec::new(),
            up_to_date: false,
        }
    }

    pub(super) fn up_to_date(self) -> Self {
        Self {
            up_to_date: true,
            ..self
        }
    }
}

/// Reports a delivered image, once for each of its hosts.
pub(super) fn add_published(
    image: &TaggedImage<'_>,
    made: &BuiltImage<'_>,
    arrived: &DestinationImage,
    location: &Location,
) -> Vec<DeliveredImage> {
    let base_layers = image.planned.base.image.manifest().layers.len();
    let own = match made.updated() {
        Some(_) => "image",
        None => "recipe",
    };
    let delivered = DeliveredImage {
        reference: location.to_string(),
        digest: arrived.image.digest().to_string(),
        media_type: Some(arrived.image.manifest().media_type().to_owned()),
        size: Some(arrived.image.manifest().size()),
        config_digest: Some(arrived.image.config().digest().to_string()),
        layers: layers_of(&arrived.image, base_layers, own),
        pushed: matches!(location, Location::Registry(_)),
        up_to_date: arrived.up_to_date,
        ..report_without_location(image, made)
    };
    for_each_host(image, &delivered)
}

/// Reports the images that stay in the daemon that made them.
pub(super) fn kept_in_daemon(
    publication: &Publication<'_>,
    made: &[BuiltImage<'_>],
) -> DeliveryReport {
    let images = publication.images.iter().zip(made);
    DeliveryReport {
        failed: Vec::new(),
        images: images
            .flat_map(|(image, made)| match made {
                BuiltImage::InDaemon(in_daemon) => {
                    let delivered = DeliveredImage {
                        reference: in_daemon.to_string(),
                        digest: in_daemon.info.id.clone(),
                        config_digest: Some(in_daemon.info.id.clone()),
                        layers: layers_in_daemon(&image.planned.base.image, in_daemon),
                        ..report_without_location(image, made)
                    };
                    for_each_host(image, &delivered)
                }
                BuiltImage::Assembled(_) => Vec::new(),
            })
            .collect(),
        index: None,
    }
}

fn for_each_host(image: &TaggedImage<'_>, delivered: &DeliveredImage) -> Vec<DeliveredImage> {
    let hosts = image.for_hosts.iter();
    hosts
        .map(|planned| DeliveredImage {
            host_build: planned.host_build(),
            base: DeliveredBase {
                matched: planned.base.match_name(),
                ..delivered.base.clone()
            },
            ..delivered.clone()
        })
        .collect()
}

fn report_without_location(image: &TaggedImage<'_>, made: &BuiltImage<'_>) -> DeliveredImage {
    let TaggedImage { planned, .. } = image;
    let base = &planned.base;
    DeliveredImage {
        engine: made.engine(planned),
        os_version: base.version_text(),
        architecture: base.image.config().architecture.clone(),
        base: DeliveredBase {
            reference: base.label(),
            digest: base.digest().to_string(),
            tag: base.reference().and_then(|it| it.tag().map(str::to_owned)),
            os_version: base.version_text(),
            matched: base.match_name(),
            is_indexed: has_known_files(base.inside.as_ref()),
        },
        ..DeliveredImage::default()
    }
}

/// Layers of an image that has blobs.
fn layers_of(image: &Image, base_layers: usize, own: &'static str) -> Vec<DeliveredLayer> {
    let blobs = image.manifest().layers.iter();
    let diff_ids = &image.config().rootfs.diff_ids;
    blobs
        .zip(diff_ids)
        .enumerate()
        .map(|(place, (blob, diff_id))| DeliveredLayer {
            digest: Some(blob.digest.to_string()),
            diff_id: diff_id.to_string(),
            size: Some(blob.size),
            media_type: blob.media_type.clone(),
            from: if place < base_layers { "base" } else { own },
        })
        .collect()
}

/// Layers of an image in a daemon: only those of the base have blobs.
fn layers_in_daemon(base: &Image, image: &DaemonImage<'_>) -> Vec<DeliveredLayer> {
    let mut layers = layers_of(base, base.manifest().layers.len(), "recipe");
    let own = image.info.layers.iter().skip(layers.len());
    layers.extend(own.map(|diff_id| DeliveredLayer {
        digest: None,
        diff_id: diff_id.clone(),
        size: None,
        media_type: IN_DAEMON.to_owned(),
        from: "recipe",
    }));
    layers
}
