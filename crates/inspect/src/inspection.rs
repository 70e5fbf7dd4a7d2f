//! What a reference names: its images with their facts, and the other entries of its index.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde::Serialize;
use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_common::progress::Progress;
use wincimg_layer::{LayerReader, Limits, TarReadError};
use wincimg_oci::copy::PlatformFilter;
use wincimg_oci::document::{Digest, Document, Image};
use wincimg_oci::store::{Source, StoreError};
use wincimg_registry::Root;

use super::facts::ImageFacts;
use super::layers::{self, Budget, LayerReadStatus, ReadDepth, ReadPlan};
use super::registry::{self, RegistryFormat};
use super::select::{self, OtherEntry, StatedEntry};
use super::shutdown::ShutdownTimes;

/// Number of images that are inspected in parallel.
pub(super) const PARALLEL: usize = 4;

/// Options of an inspection.
#[derive(Debug, Clone, Default)]
pub struct InspectOptions {
    /// Platforms to select from an index; without any, Windows.
    pub platforms: Vec<PlatformFilter>,
    /// Extent to which the layers are read.
    pub reach: ReadDepth,
    /// Form of the registry changes, if they are requested.
    pub registry: Option<RegistryFormat>,
    /// True if the base's own registry is read too, with the changes applied. All layers are
    /// required for that.
    pub over_base: bool,
}

/// Facts about everything that a reference names.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The digest of the image or index.
    pub digest: Digest,
    /// Its media type.
    pub media_type: String,
    /// The annotations of an index.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The entries of an index and of those in it, as the index has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<StatedEntry>>,
    /// The selected images; one if the reference names an image.
    pub images: Vec<ImageFacts>,
    /// The other entries of an index.
    pub others: Vec<OtherEntry>,
}

/// An image that cannot be inspected.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "image/not-an-image")]
pub enum InspectError {
    /// The source failed.
    #[error(transparent)]
    #[diagnose(forward)]
    Store(#[from] StoreError),
    /// A chart, a signature or another artifact.
    #[error("{digest} in {place} is not an image: its configuration is of type {media_type:?}")]
    NotAnImage {
        /// Source.
        place: String,
        /// Requested digest.
        digest: Digest,
        /// Type of its configuration.
        media_type: String,
    },
    /// Anything else.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

/// Inspects the image or index that a tag or digest names, as [`Source::resolve`] understands it.
///
/// A problem of one layer or one entry of an index is part of the result and does not stop the
/// rest.
pub async fn inspect(
    source: &Source,
    name: Option<&str>,
    wanted: &InspectOptions,
    progress: &Arc<dyn Progress>,
) -> Result<Inspection, InspectError> {
    let document = source.resolve(name).await?;
    let (digest, media_type) = (document.digest().clone(), document.media_type().to_owned());
    let annotations = match &document {
        Document::Index(index) => index.annotations(),
        Document::Manifest(_) => BTreeMap::new(),
    };
    let chosen = select::choose(source, document, &wanted.platforms).await?;
    let budget = Budget::default();
    let images = stream::iter(&chosen.images)
        .map(|image| image_facts(source, image, wanted, &budget, progress))
        .buffered(PARALLEL)
        .collect()
        .await;
    Ok(Inspection {
        digest,
        media_type,
        annotations,
        entries: chosen.entries,
        images,
        others: chosen.others,
    })
}

/// The images that a tag or digest names: those for the given platforms, by default Windows. A
/// single image is returned whatever its platform.
pub async fn windows_images(
    source: &Source,
    name: Option<&str>,
    platforms: &[PlatformFilter],
) -> Result<Vec<Image>, InspectError> {
    let document = source.resolve(name).await?;
    windows_images_in(source, document, platforms).await
}

/// Same as [`windows_images`], for a document that was already read.
pub async fn windows_images_in(
    source: &Source,
    document: Document,
    platforms: &[PlatformFilter],
) -> Result<Vec<Image>, InspectError> {
    let chosen = select::choose(source, document, platforms).await?;
    if chosen.images.is_empty() {
        // An unreadable entry may be the requested one.
        for other in chosen.others {
            if let Some(problem) = other.kind.into_problem() {
                return Err(problem.into());
            }
        }
    }
    Ok(chosen.images)
}

/// The times that a container of this image gets to stop; none if it is not for Windows. Reads
/// small layers completely and large ones as far as wincimg places hives.
pub async fn shutdown_times(
    source: &Source,
    image: &Image,
    progress: &Arc<dyn Progress>,
) -> Option<ShutdownTimes> {
    let wanted = InspectOptions::default();
    let facts = image_facts(source, image, &wanted, &Budget::default(), progress).await;
    facts.shutdown
}

/// Returns true if the bottom layer of an image contains Windows; none if it cannot be read or has
/// more than `most` bytes.
pub async fn contains_windows(source: &Source, image: &Image, most: u64) -> Option<bool> {
    let bottom = image.manifest().layers.first()?;
    let bytes = source.bytes(bottom, most).await.ok()?;
    let read = tokio::task::spawn_blocking(move || -> Result<bool, TarReadError> {
        let limits = Limits {
            stream: most.saturating_mul(64),
            ..Limits::default()
        };
        let mut layer = LayerReader::new(bytes.as_ref(), limits)?;
        while let Some(entry) = layer.next_entry()? {
            if entry
                .path
                .eq_ignore_ascii_case("Files/Windows/System32/ntdll.dll")
            {
                return Ok(true);
            }
        }
        Ok(false)
    });
    read.await.ok()?.ok()
}

async fn image_facts(
    source: &Source,
    image: &Image,
    wanted: &InspectOptions,
    budget: &Budget,
    progress: &Arc<dyn Progress>,
) -> ImageFacts {
    let mut facts = ImageFacts::new(image);
    if !facts.is_windows() || wanted.reach == ReadDepth::None {
        return facts;
    }
    let plan = ReadPlan {
        reach: wanted.reach,
        over_base: wanted.over_base && wanted.registry.is_some(),
        roots: match wanted.registry {
            Some(_) => &Root::ALL,
            None => &[Root::System],
        },
    };
    let layers = &mut facts.layers;
    let hives = layers::read(source, image, layers, &plan, budget, progress).await;
    let form = wanted.registry;
    let found = tokio::task::spawn_blocking(move || registry::analyse(&hives, form)).await;
    // It fails only while the program is being terminated, and then the result is not used.
    let Ok(found) = found else { return facts };
    for problem in found.problems {
        if let Some(layer) = facts.layers.get_mut(problem.layer) {
            layer.reading = LayerReadStatus::Failed;
            layer.problems.push(problem);
        }
    }
    let complete = facts.layers.iter().all(|layer| layer.reading.is_enough());
    facts.shutdown = Some(ShutdownTimes::new(found.shutdown, complete));
    facts.registry = found.registry;
    facts
}
