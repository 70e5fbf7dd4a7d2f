//! What was built and where it is, in the shape that the command line's contract promises.

use serde::Serialize;

use super::order::PlannedImage;
use crate::oci::document::Image;

/// Everything that was asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Delivered {
    /// The images, in the order of the hosts.
    pub images: Vec<DeliveredImage>,
    /// The index over them, where there are several.
    pub index: Option<DeliveredIndex>,
}

/// One image that arrived.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredImage {
    /// Where it is.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// Who made it.
    pub engine: &'static str,
    /// The host that it is for.
    pub host_build: String,
    /// Its version of Windows.
    pub os_version: String,
    /// What it is built on.
    pub base: DeliveredBase,
    /// Its layers, the base's first.
    pub layers: Vec<DeliveredLayer>,
    /// Whether it is in a registry now.
    pub pushed: bool,
    /// Whether the target had all of it before.
    pub up_to_date: bool,
    /// Where else it is.
    pub copies: Vec<DeliveredCopy>,
}

/// The same image or index in another place, where other words may give it another digest.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredCopy {
    /// Where it is.
    pub reference: String,
    /// Its digest there.
    pub digest: String,
}

/// The base of an image.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredBase {
    /// Where it is, pinned.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// Its version of Windows.
    pub os_version: String,
    /// Whether that is the host's: exact or nearest.
    #[serde(rename = "match")]
    pub matched: &'static str,
}

/// One layer of an image.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredLayer {
    /// The digest of the blob; a daemon has none until the image leaves it.
    pub digest: Option<String>,
    /// The digest of the uncompressed tar.
    pub diff_id: String,
    /// The blob's size in bytes, where there is one.
    pub size: Option<u64>,
    /// The blob's type.
    pub media_type: String,
    /// base or recipe.
    pub from: &'static str,
}

/// The index over several images.
#[derive(Debug, Clone, Serialize)]
pub struct DeliveredIndex {
    /// Where it is.
    pub reference: String,
    /// Its digest.
    pub digest: String,
    /// Where else it is.
    pub copies: Vec<DeliveredCopy>,
}

impl Delivered {
    /// Takes in what became of the same images at their next destination. What they are is told of
    /// the first.
    pub(super) fn add(&mut self, next: Self) {
        if self.images.is_empty() {
            *self = next;
            return;
        }
        for (image, copy) in self.images.iter_mut().zip(next.images) {
            image.copies.push(DeliveredCopy {
                reference: copy.reference,
                digest: copy.digest,
            });
        }
        if let (Some(index), Some(copy)) = (&mut self.index, next.index) {
            index.copies.push(DeliveredCopy {
                reference: copy.reference,
                digest: copy.digest,
            });
        }
    }
}

pub(super) fn base_of(image: &PlannedImage) -> DeliveredBase {
    let base = &image.base;
    DeliveredBase {
        reference: base.reference.to_string(),
        digest: base.digest().to_string(),
        os_version: base.os_version.os_version(),
        matched: base.matched.name(),
    }
}

/// The layers of an image that has blobs.
pub(super) fn layers_of(image: &Image, base_layers: usize) -> Vec<DeliveredLayer> {
    let blobs = image.manifest().layers.iter();
    let diff_ids = &image.config().rootfs.diff_ids;
    blobs
        .zip(diff_ids)
        .enumerate()
        .map(|(index, (blob, diff_id))| DeliveredLayer {
            digest: Some(blob.digest.to_string()),
            diff_id: diff_id.to_string(),
            size: Some(blob.size),
            media_type: blob.media_type.clone(),
            from: if index < base_layers {
                "base"
            } else {
                "recipe"
            },
        })
        .collect()
}
