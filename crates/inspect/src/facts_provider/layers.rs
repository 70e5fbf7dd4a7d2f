//! Reads the layers of a base from their sources.

use futures_util::{StreamExt, TryStreamExt, stream as futures};
use wincimg_common::progress::Progress;
use wincimg_oci::document::{Descriptor, Image};
use wincimg_oci::remote::{BlobReader, BlobSource, RegistryClient};
use wincimg_oci::store::Source;

use crate::base::{CollectedLayer, Extent, LayerPosition, collect_layer};
use crate::error::{LayerProblem, LayerReadError};
use crate::layers::lacks_bytes;
use crate::stream;
use crate::stream::{BlobReadOutcome, Depth, Input};

/// Number of layers that are read in parallel. Each requires a processor, and memory for its
/// contents.
pub(super) const PARALLEL_LAYERS: usize = 2;

/// Reads the layers of an image, the bottom one first.
pub(super) async fn read(
    registry: &RegistryClient,
    place: &Source,
    image: &Image,
    extent: &Extent,
    progress: &dyn Progress,
) -> Result<Vec<CollectedLayer>, LayerReadError> {
    let depth = match extent {
        Extent::Everything | Extent::Listing { .. } => Depth::ToTheEnd,
        Extent::Part(_) => Depth::UntilFound,
    };
    let layers = image.manifest().layers.iter();
    let layers = layers.zip(&image.config().rootfs.diff_ids).enumerate();
    let reads: Vec<_> = layers
        .map(|(number, (blob, diff_id))| async move {
            let wanted = (extent, depth);
            let found = read_layer(
                registry,
                place,
                blob,
                LayerPosition::of(number),
                wanted,
                progress,
            );
            let found = found.await.and_then(|found| {
                LayerProblem::check_diff_id(found.diff_id.as_ref(), diff_id)?;
                Ok(found)
            });
            found.map_err(|problem| problem.in_layer(number, &blob.digest))
        })
        .collect();
    futures::iter(reads)
        .buffered(PARALLEL_LAYERS)
        .try_collect()
        .await
}

pub(super) async fn read_layer(
    registry: &RegistryClient,
    place: &Source,
    blob: &Descriptor,
    layer: LayerPosition,
    (extent, depth): (&Extent, Depth),
    progress: &dyn Progress,
) -> Result<CollectedLayer, LayerProblem> {
    let reader = open(registry, place, blob).await?;
    let task = progress.task(&format!("layer {}", blob.digest), Some(blob.size));
    let extent = extent.clone();
    let work = move |input: &mut Input| Ok(collect_layer(input, layer, &extent)?);
    match stream::read(reader, depth, task.as_ref(), work).await? {
        BlobReadOutcome::Whole(found) => {
            task.done("read");
            Ok(found)
        }
        BlobReadOutcome::Part(found) => {
            task.done("read as far as needed");
            Ok(found)
        }
        // Only if no more than a beginning is read.
        BlobReadOutcome::OutOfReach => Err(LayerProblem::ForeignBase),
    }
}

/// The bytes of a layer; those of a foreign one come from its URL.
pub(super) async fn open(
    registry: &RegistryClient,
    place: &Source,
    blob: &Descriptor,
) -> Result<BlobReader, LayerProblem> {
    if !lacks_bytes(place, blob).await? {
        return Ok(place.open_blob(blob).await?);
    }
    if blob.urls.is_empty() {
        return Err(LayerProblem::ForeignBase);
    }
    // Read from its beginning, it is checked at its end.
    let bytes = registry.url_source(&blob.urls, blob);
    Ok(bytes.open(0).await?)
}
