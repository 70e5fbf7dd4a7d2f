//! Reuse of layers that a replaced tag, or an image named by the user, already has.
//!
//! A large layer that this program writes has a note in its image's history, like those of
//! `BuildKit`: a digest of the tar, its compression and the writer. Histories survive every
//! manifest format and transfer; annotations do not: Docker's manifests have none, and some
//! registries reject them.
//!
//! If an image has such notes, the tar of a wanted layer is hashed before anything is compressed,
//! and an existing layer with that digest is reused. The digest goes into the new image's
//! configuration, and runtimes verify what they unpack with it: a blob with other content keeps the
//! image from being unpacked, and adds no other file.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use wincimg_common::diagnose::error_chain;
use wincimg_common::progress::Progress;
use wincimg_layer::{
    Compression, DiffIdCache, LayerError, LayerStamp, SortedLayer, WriteOptions, inputs,
};
use wincimg_oci::document::{Descriptor, Digest, Document, Image, ManifestFormat, media_type};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source, StoreError};

use super::write::{AddedLayer, LayerBytes};
use crate::inputs::INPUTS;

/// Smaller layers are made and sent faster than they are found.
pub(super) const MIN_REUSE_SIZE: u64 = 1 << 20;

/// Maximum number of images of an index to read, and to read concurrently.
const MAX_IMAGES: usize = 16;
const AT_ONCE: usize = 4;

/// Sources of reusable layers. They are queried when the first large layer is needed.
#[derive(Default)]
pub(crate) struct LayerReuse {
    pub(super) asked: Option<Arc<ReuseSources>>,
    pub(super) found: OnceLock<Vec<Arc<AddedLayer>>>,
    pub(super) remembered: DiffIdCache,
}

pub(super) struct ReuseSources {
    /// The tags that the build replaces.
    pub(super) tags: Vec<Location>,
    /// Images named by the user; unreadable ones are reported.
    pub(super) named: Vec<Location>,
    pub(super) registry: RegistryClient,
    pub(super) progress: Arc<dyn Progress>,
}

/// Result of a search for a layer.
pub(super) enum LayerMatch {
    There(Arc<AddedLayer>),
    /// The known images have another one.
    Changed,
    /// There is no image to compare with.
    Unknown,
}

/// The history note of a layer made of this tar.
pub(super) fn note(diff_id: &Digest, compression: Compression) -> String {
    format!("{INPUTS}={}", inputs(diff_id, compression))
}

impl LayerReuse {
    pub(super) fn remember(&self, stamp: Option<&LayerStamp>, diff_id: &Digest) {
        if let Some(stamp) = stamp {
            self.remembered.insert(stamp, diff_id);
        }
    }

    /// Searches for a layer that is worth it, and returns the stamp to store it by. This waits for
    /// the network: call it outside of asynchronous code.
    pub(super) fn find(
        &self,
        layer: &mut SortedLayer<'_>,
        options: &WriteOptions<'_>,
    ) -> Result<(LayerMatch, Option<LayerStamp>), LayerError> {
        let asked = self.asked.as_ref();
        let Some(asked) = asked.filter(|_| layer.is_larger_than(MIN_REUSE_SIZE)) else {
            return Ok((LayerMatch::Unknown, None));
        };
        // Taken before a file is read: one that changes meanwhile gets another stamp.
        let stamp = self.remembered.stamp(layer);
        let found = self.find_by(asked, layer, stamp.as_ref(), options)?;
        Ok((found, stamp))
    }

    fn find_by(
        &self,
        asked: &Arc<ReuseSources>,
        layer: &SortedLayer<'_>,
        stamp: Option<&LayerStamp>,
        options: &WriteOptions<'_>,
    ) -> Result<LayerMatch, LayerError> {
        let Ok(runtime) = Handle::try_current() else {
            return Ok(LayerMatch::Unknown);
        };
        let found = self.found.get_or_init(|| {
            let asked = Arc::clone(asked);
            let looking = wait_for(&runtime, async move { asked.find_layers().await });
            looking.unwrap_or_default()
        });
        let alike = |held: &&Arc<AddedLayer>| held.compression == options.compression;
        let alike: Vec<_> = found.iter().filter(alike).collect();
        if alike.is_empty() {
            return Ok(LayerMatch::Unknown);
        }
        let diff_id = match stamp.and_then(|stamp| self.remembered.get(stamp)) {
            Some(diff_id) => diff_id,
            None => {
                let diff_id = layer.diff_id(options)?;
                self.remember(stamp, &diff_id);
                diff_id
            }
        };
        let mut same = alike.into_iter().filter(|held| held.diff_id == diff_id);
        let found = same.find(|held| {
            let held = Arc::clone(held);
            wait_for(&runtime, async move { held.exists().await }) == Some(true)
        });
        Ok(found.map_or(LayerMatch::Changed, |held| {
            LayerMatch::There(Arc::clone(held))
        }))
    }
}

/// Waits on a plain thread for a future on the runtime; `None` if the runtime ends.
fn wait_for<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    runtime.spawn(async move {
        // The receiver is gone if the build was cancelled.
        let _ = sender.send(work.await);
    });
    receiver.blocking_recv().ok()
}

/// Returns false for a layout or an archive that does not exist.
fn may_exist(place: &Location) -> bool {
    match place {
        Location::Registry(_) => true,
        Location::Layout { dir: path, .. } | Location::Archive { file: path, .. } => path.exists(),
    }
}

impl ReuseSources {
    /// Leaves out named files that do not exist, and reports them: without a large layer, nothing is
    /// queried.
    pub(super) fn report_missing(mut self) -> Self {
        for place in self.named.iter().filter(|place| !may_exist(place)) {
            self.skip_source(place, &"image not found");
        }
        self.named.retain(may_exist);
        self
    }

    /// All layers with a note.
    async fn find_layers(&self) -> Vec<Arc<AddedLayer>> {
        let tags = self.tags.iter().map(|place| (place, true));
        let named = self.named.iter().map(|place| (place, false));
        let mut looks = Vec::new();
        for (place, is_target) in tags.chain(named) {
            looks.push(self.find_layers_in(place, is_target));
        }
        join_all(looks).await.into_iter().flatten().collect()
    }

    /// The layers of one location. Errors of a target are left to its delivery.
    async fn find_layers_in(&self, place: &Location, is_target: bool) -> Vec<Arc<AddedLayer>> {
        match self.layers_of(place, is_target).await {
            Ok(Some(layers)) => return layers,
            Ok(None) if is_target => {}
            Ok(None) => self.skip_source(place, &"image not found"),
            Err(error) if is_target => {
                tracing::debug!("layers of {place}: {}", error_chain(&error));
            }
            Err(error) => self.skip_source(place, &error_chain(&error)),
        }
        Vec::new()
    }

    fn skip_source(&self, place: &Location, why: &dyn Display) {
        let note = format!("no layers reused from {place}: {why}");
        self.progress.note(&note);
    }

    /// The layers of one image, or of the images of one index; none if it is neither.
    async fn layers_of(
        &self,
        place: &Location,
        is_target: bool,
    ) -> Result<Option<Vec<Arc<AddedLayer>>>, StoreError> {
        let Some((source, document)) = Source::find(place, is_target, &self.registry).await? else {
            return Ok(None);
        };
        let manifests = match document {
            Document::Manifest(manifest) => vec![*manifest],
            Document::Index(index) => {
                let entries = index.manifests.iter().filter(|it| it.is_for_windows());
                let mut reads = Vec::new();
                for entry in entries.take(MAX_IMAGES) {
                    reads.push(source.document(entry));
                }
                let read: Vec<_> = stream::iter(reads).buffered(AT_ONCE).collect().await;
                let images = read.into_iter().filter_map(|read| match read {
                    Ok(Document::Manifest(manifest)) => Some(*manifest),
                    _ => None,
                });
                images.collect()
            }
        };
        let mut reads = Vec::new();
        let images = manifests.into_iter();
        for manifest in images.filter(|it| it.is_image_by_type() == Some(true)) {
            reads.push(source.image(manifest));
        }
        let images: Vec<_> = stream::iter(reads).buffered(AT_ONCE).collect().await;
        // Images with inconsistent documents are skipped.
        let images = images.into_iter().filter_map(Result::ok);
        let layers = images.flat_map(|image| noted_layers(&image, &source));
        Ok(Some(layers.collect()))
    }
}

/// The layers of an image that this program wrote in the current way.
fn noted_layers(image: &Image, source: &Source) -> Vec<Arc<AddedLayer>> {
    let config = image.config();
    let steps = config.history.iter();
    let comments = steps.filter_map(|step| step.comment.as_deref());
    let notes: Vec<&str> = comments.flat_map(str::split_whitespace).collect();
    let layers = image.manifest().layers.iter();
    let layers = layers.zip(&config.rootfs.diff_ids);
    let held = layers.filter_map(|(descriptor, diff_id)| {
        let compression = compression_of(descriptor)?;
        let is_noted = notes.contains(&note(diff_id, compression).as_str());
        is_noted.then(|| {
            Arc::new(AddedLayer {
                digest: descriptor.digest.clone(),
                size: descriptor.size,
                diff_id: diff_id.clone(),
                compression,
                is_noted,
                bytes: LayerBytes::There(source.clone()),
            })
        })
    });
    held.collect()
}

/// Compression of a layer that this program may have written.
fn compression_of(layer: &Descriptor) -> Option<Compression> {
    if media_type::is_foreign(&layer.media_type) || !layer.urls.is_empty() {
        return None;
    }
    match media_type::compression(&layer.media_type)? {
        media_type::LayerCompression::Gzip => Some(Compression::Gzip),
        media_type::LayerCompression::Zstd => Some(Compression::Zstd),
        media_type::LayerCompression::None => None,
    }
}

impl AddedLayer {
    /// Returns true if its bytes still exist. Those of a layout are verified, as anyone may have
    /// changed them.
    async fn exists(&self) -> bool {
        let descriptor = self.descriptor(ManifestFormat::Oci);
        match &self.bytes {
            LayerBytes::Here(_) => true,
            LayerBytes::There(Source::Layout(layout)) => {
                layout.has_blob(&descriptor).await.is_ok_and(|it| it)
            }
            LayerBytes::There(source) => source.has_blob(&descriptor).await.is_ok_and(|it| it),
        }
    }
}
