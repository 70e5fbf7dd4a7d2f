//! Hives of the layers of rebased images: all layers have all five, or none has any.
//!
//! containerd's CIM snapshotters open every hive of the layer below one that has hives. Builds
//! write layers that way; images of older builds, or of several tools, may be otherwise.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_layer::{Compression, Layer};
use wincimg_oci::document::{Digest, Image, media_type};
use wincimg_recipe::add_hives;
use wincimg_registry::UnknownBase;
use wincimg_registry::hive::{FileTime, unchanged_hives};

use super::{ImageLayer, PlannedUpdate, UpdatePlan, UpdateVerdict};
use crate::build::BuildContext;
use crate::direct::{AddedLayer, blob_buffer};

/// Layers that were written again, by the digests of the old ones.
pub(super) type CompletedLayers = HashMap<Digest, Arc<AddedLayer>>;

pub(super) fn note_missing(own: &mut [ImageLayer]) -> Result<(), Problem> {
    if own.iter().all(|layer| layer.hives.is_empty()) {
        return Ok(());
    }
    let all = unchanged_hives(&UnknownBase, FileTime::from_unix_seconds(0)).map_err(invalid)?;
    for layer in own {
        let names = all.iter().map(|hive| hive.name);
        layer.added_hives = names.filter(|name| !layer.hives.has(name)).collect();
    }
    Ok(())
}

/// Writes the layers that lack hives again, each once.
pub(super) async fn complete(
    updates: &UpdatePlan,
    ctx: &BuildContext<'_>,
) -> Result<CompletedLayers, BoxError> {
    let moving = updates.planned.iter();
    let moving = moving.filter(|update| update.verdict == UpdateVerdict::Moves);
    let mut seen = HashSet::new();
    let mut writes = Vec::new();
    for update in moving {
        for layer in &update.own {
            if !layer.added_hives.is_empty() && seen.insert(&layer.descriptor.digest) {
                ctx.reporter.note(&note(layer));
                writes.push(write(layer, update, updates, ctx));
            }
        }
    }
    Ok(try_join_all(writes).await?.into_iter().collect())
}

fn note(layer: &ImageLayer) -> String {
    let instruction = layer.instruction.as_deref();
    let instruction = instruction.map_or_else(String::new, |text| format!(" ({text})"));
    format!(
        "layer {}{instruction} gets hives without changes ({}): containerd's CIM snapshotters \
         require all hives in every layer, or none",
        layer.layer,
        layer.added_hives.join(", ")
    )
}

async fn write(
    layer: &ImageLayer,
    update: &PlannedUpdate,
    updates: &UpdatePlan,
    ctx: &BuildContext<'_>,
) -> Result<(Digest, Arc<AddedLayer>), BoxError> {
    let blob = (&updates.source, &layer.descriptor);
    let added = missing_hives(layer, &update.from)?;
    let compression = match media_type::compression(&layer.descriptor.media_type) {
        Some(media_type::LayerCompression::Zstd) => Compression::Zstd,
        _ => Compression::Gzip,
    };
    let written = ctx
        .library
        .add_hives(blob, &layer.hives, added, (blob_buffer(), compression));
    let (written, sink) = written
        .await
        .map_err(|problem| problem.in_layer(layer.layer - 1, &layer.descriptor.digest))?;
    let made = AddedLayer::from_blob(written, sink.finish());
    Ok((layer.descriptor.digest.clone(), Arc::new(made)))
}

/// The missing hives, with the time of the image: a build gives its layers the same.
fn missing_hives(layer: &ImageLayer, image: &Image) -> Result<Layer, BoxError> {
    let created = image.config().created.as_deref();
    let created = created.and_then(|text| text.parse::<Timestamp>().ok());
    let seconds = created.map_or(0, |time| time.as_second().max(0));
    let mut added = Layer::new(seconds.unsigned_abs());
    let hives = unchanged_hives(&UnknownBase, FileTime::from_unix_seconds(seconds));
    let mut hives = hives.map_err(invalid)?;
    hives.retain(|hive| layer.added_hives.contains(&hive.name));
    add_hives(&mut added, hives).map_err(invalid)?;
    Ok(added)
}

fn invalid(error: impl Error + Send + Sync + 'static) -> Problem {
    Problem::from_error("image/layer", error)
}
