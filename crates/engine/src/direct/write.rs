//! Writes a layer: compressed, hashed and streamed to its registry, or reused where it exists.
//!
//! Each is written once for all images. Images for several hosts differ in their bases. With the same
//! timestamp, as set by `SOURCE_DATE_EPOCH`, their layers are identical: one is compressed, sent and
//! stored instead of four.

use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use wincimg_common::diagnose::Problem;
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_layer::{BlobBuffer, BufferedBlob, Compression, Layer, WriteOptions, WrittenLayer};
use wincimg_oci::document::{Descriptor, Digest, Image, ManifestFormat};
use wincimg_oci::remote::{BlobReader, BlobSource};
use wincimg_oci::store::Source;

use super::error::DirectError;
use super::layer_reuse::{self, LayerMatch, LayerReuse, MIN_REUSE_SIZE};
use super::streamed::{LayerStreams, StreamedLayer};

/// A layer up to this size stays in memory.
const MAX_IN_MEMORY: usize = 4 << 20;

/// Options for building an image.
#[derive(Clone, Default)]
pub(crate) struct AssembleOptions {
    /// Compression of new layers.
    pub compression: Compression,
    /// Timestamp of new content; the base's own where absent.
    pub created: Option<Timestamp>,
    /// Stops the work when set.
    pub cancelled: Arc<AtomicBool>,
    /// Sources of reusable layers.
    pub held: Arc<LayerReuse>,
    /// Streams of large layers.
    pub streams: Option<Arc<LayerStreams>>,
}

/// A finished layer, to be sent to as many destinations as need it.
#[derive(Debug)]
pub(crate) struct AddedLayer {
    /// Digest of the compressed bytes.
    pub(crate) digest: Digest,
    pub(super) size: u64,
    /// Digest of the tar.
    pub(crate) diff_id: Digest,
    pub(super) compression: Compression,
    /// True if the layer gets a note to be found by.
    pub(super) is_noted: bool,
    /// Location of the compressed bytes.
    pub(crate) bytes: LayerBytes,
}

/// Location of a layer's compressed bytes.
#[derive(Debug)]
pub(crate) enum LayerBytes {
    Here(BufferedBlob),
    /// At an existing location.
    There(Source),
}

impl AddedLayer {
    /// A layer whose blob is here.
    pub(crate) fn from_blob(written: WrittenLayer, blob: BufferedBlob) -> Self {
        Self {
            digest: written.digest,
            size: written.size,
            diff_id: written.diff_id,
            compression: written.compression,
            is_noted: written.uncompressed_size > MIN_REUSE_SIZE,
            bytes: LayerBytes::Here(blob),
        }
    }

    pub(crate) fn descriptor(&self, format: ManifestFormat) -> Descriptor {
        let media_type = match (self.compression, format) {
            (Compression::Gzip, ManifestFormat::Docker) => ManifestFormat::Docker.layer_gzip(),
            (compression, _) => compression.oci_media_type(),
        };
        Descriptor::new(media_type, self.digest.clone(), self.size)
    }

    /// The history note of the layer, if it gets one.
    pub(super) fn note(&self) -> Option<String> {
        self.is_noted
            .then(|| layer_reuse::note(&self.diff_id, self.compression))
    }

    /// The image in a format with a media type for the layer: Docker has none for zstd, and skopeo
    /// rejects OCI's in a manifest of Docker's.
    pub(super) fn to_supported_format(&self, image: Image) -> Result<Image, Problem> {
        match self.compression {
            Compression::Gzip => Ok(image),
            Compression::Zstd => image.in_format(ManifestFormat::Oci),
        }
    }

    /// Opens the bytes if they are here, for a reader on another thread.
    pub(crate) fn open(&self) -> Option<io::Result<Box<dyn Read + Send>>> {
        match &self.bytes {
            LayerBytes::Here(blob) => Some(blob.open()),
            LayerBytes::There(_) => None,
        }
    }
}

impl BlobSource for AddedLayer {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        match &self.bytes {
            LayerBytes::Here(BufferedBlob::Memory(bytes)) => bytes.open(offset),
            LayerBytes::Here(BufferedBlob::Disk(spool)) => spool.open(offset),
            LayerBytes::There(source) => Box::pin(async move {
                let blob = source.blob(&self.descriptor(ManifestFormat::Oci));
                let blob = blob.map_err(io::Error::other)?;
                blob.open(offset).await
            }),
        }
    }
}

/// A buffer for the compressed bytes of a layer.
pub(crate) fn blob_buffer() -> BlobBuffer {
    BlobBuffer::new(MAX_IN_MEMORY, std::env::temp_dir())
}

/// Writes a layer, unless it exists already.
pub(super) fn write(
    layer: &Layer,
    what: &str,
    options: &AssembleOptions,
    progress: &dyn Progress,
) -> Result<Arc<AddedLayer>, DirectError> {
    let task = progress.task(&format!("layer of {what}"), None);
    let how = WriteOptions {
        compression: options.compression,
        threads: None,
        cancelled: &options.cancelled,
        progress: task.as_ref(),
    };
    let mut layer = layer.sort_entries()?;
    let (found, stamp) = options.held.find(&mut layer, &how)?;
    let is_changed = match found {
        LayerMatch::There(held) => {
            task.done("unchanged");
            return Ok(held);
        }
        LayerMatch::Changed => true,
        LayerMatch::Unknown => false,
    };
    task.set_position(0);
    let mut blob = StreamedLayer::new(blob_buffer(), options.streams.clone(), is_changed);
    let written = layer.write(&mut blob, &how)?;
    options.held.remember(stamp.as_ref(), &written.diff_id);
    task.done("written");
    let blob = blob.finish(&written.digest);
    Ok(Arc::new(AddedLayer::from_blob(written, blob)))
}

/// The layers written so far.
#[derive(Default)]
pub(super) struct AddedLayers(Mutex<Vec<(Arc<Layer>, Slot)>>);

/// A layer's lock is held while it is written, so that other users wait for it.
type Slot = Arc<Mutex<Option<Arc<AddedLayer>>>>;

impl AddedLayers {
    /// A layer, written unless it exists.
    pub(super) fn get_or_write(
        &self,
        layer: &Arc<Layer>,
        what: &str,
        options: &AssembleOptions,
        progress: &dyn Progress,
    ) -> Result<Arc<AddedLayer>, DirectError> {
        let slot = self.slot(layer);
        let mut slot = lock(&slot);
        Ok(match &*slot {
            Some(added) => Arc::clone(added),
            None => Arc::clone(slot.insert(write(layer, what, options, progress)?)),
        })
    }

    fn slot(&self, layer: &Arc<Layer>) -> Slot {
        let mut known = lock(&self.0);
        if let Some((_, slot)) = known.iter().find(|(known, _)| known == layer) {
            return Arc::clone(slot);
        }
        let slot = Slot::default();
        known.push((Arc::clone(layer), Arc::clone(&slot)));
        slot
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;
    use wincimg_oci::document::{Image, ManifestFormat, Platform};
    use wincimg_recipe::{Plan, PlanBase, Recipe, RecipeInputs};
    use wincimg_registry::UnknownBase;

    use super::super::describe::describe_steps;
    use super::*;

    fn pause_for(host: &str) -> Plan {
        let base = PlanBase {
            name: format!("mcr.microsoft.com/windows/nanoserver:{host}"),
            digest: format!("sha256:{host:0>64}"),
            os_version: Some(host.parse().unwrap()),
            ..PlanBase::default()
        };
        let recipe = Recipe::find("pause").unwrap();
        let values = std::collections::BTreeMap::new();
        let settings = RecipeInputs {
            values: &values,
            context: std::path::Path::new("."),
        };
        let version = base.os_version;
        recipe.plan(base, version, &settings).unwrap()
    }

    fn of(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Vec<Arc<AddedLayer>> {
        let options = AssembleOptions::default();
        let base = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
        let steps = describe_steps(plan, &base, &UnknownBase, timestamp, false).unwrap();
        let described = steps.into_iter().filter_map(|step| step.layer);
        described
            .map(|layer| layers.get_or_write(&layer, "x", &options, &Silent))
            .collect::<Result<_, _>>()
            .unwrap()
    }

    fn added(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Arc<AddedLayer> {
        of(layers, plan, timestamp).remove(0)
    }

    #[test]
    fn images_for_several_hosts_share_a_layer_of_the_same_time() {
        let layers = AddedLayers::default();
        let first = added(&layers, &pause_for("17763.973"), 1);
        let other = added(&layers, &pause_for("20348.2402"), 1);
        assert!(Arc::ptr_eq(&first, &other));
        let later = added(&layers, &pause_for("20348.2402"), 2);
        assert_ne!(first.diff_id, later.diff_id);
    }

    #[test]
    fn a_layer_that_several_ask_for_at_once_is_written_once() {
        let known = AddedLayers::default();
        let plan = pause_for("17763.973");
        let layers: Vec<_> = std::thread::scope(|scope| {
            let workers = [(); 4].map(|()| scope.spawn(|| added(&known, &plan, 1)));
            workers.map(|worker| worker.join().unwrap()).into()
        });
        assert!(layers.iter().all(|layer| Arc::ptr_eq(layer, &layers[0])));
    }

    #[test]
    fn a_plan_that_changes_nothing_in_a_layer_adds_none() {
        let plan = Plan {
            files: Vec::new(),
            registry: Vec::new(),
            shutdown_timeout: None,
            ..pause_for("17763.973")
        };
        assert!(of(&AddedLayers::default(), &plan, 1).is_empty());
    }
}
