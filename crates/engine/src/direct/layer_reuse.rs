//! Layers that need not be written, because a tag that is about to be replaced, or an image that was
//! named, has them.
//!
//! A large layer that this program writes has a note in its image's history, as `BuildKit` leaves one
//! there: which writer made it, and what of. Histories stay what they are in every form of manifest
//! and on every way; annotations are not in Docker's manifests, and not every registry takes them.
//!
//! Where an image has such notes, the tar of the layer that is wanted is hashed before anything is
//! compressed, and a layer with that digest is taken as it is. The digest goes into the new image's
//! configuration, and runtimes hold what they unpack against it: a blob that is something else keeps
//! the image from being unpacked, and brings no other file in.

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
use wincimg_oci::document::{Descriptor, Digest, Document, Image, media_type};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source, StoreError};

use crate::inputs::INPUTS;

/// A layer with less in it is made and sent sooner than it is looked for.
pub(super) const WORTH_A_LOOK: u64 = 1 << 20;

/// How many images of an index are looked into, and how many at once.
const MOST_IMAGES: usize = 16;
const AT_ONCE: usize = 4;

/// Where layers may be already. Nobody is asked before there is a layer that is worth it.
#[derive(Default)]
pub(crate) struct LayerReuse {
    asked: Option<Arc<ReuseSources>>,
    found: OnceLock<Vec<ReusableLayer>>,
    remembered: DiffIdCache,
}

/// Who is asked for layers.
struct ReuseSources {
    /// The tags that a build is about to replace.
    tags: Vec<Location>,
    /// Images that were named.
    named: Vec<Location>,
    registry: RegistryClient,
    progress: Arc<dyn Progress>,
}

/// A layer that is somewhere, as this program writes it.
#[derive(Debug, Clone)]
pub(super) struct ReusableLayer {
    /// As its image describes it.
    pub(super) descriptor: Descriptor,
    pub(super) diff_id: Digest,
    pub(super) compression: Compression,
    pub(super) source: Source,
}

/// What a look for a layer came to.
pub(super) enum LayerMatch {
    /// It is somewhere.
    There(Box<ReusableLayer>),
    /// Those that were looked at have another one.
    Changed,
    /// Nothing was found to compare it with.
    Unknown,
}

/// What an image's history says of a layer that was made of this tar.
pub(super) fn note(diff_id: &Digest, compression: Compression) -> String {
    format!("{INPUTS}={}", inputs(diff_id, compression))
}

impl LayerReuse {
    /// What tags have that are about to be replaced, and images that were named. Of those that were
    /// named it is said where one cannot be read.
    pub(super) fn by(
        tags: Vec<Location>,
        named: Vec<Location>,
        remembered: DiffIdCache,
        registry: RegistryClient,
        progress: Arc<dyn Progress>,
    ) -> Self {
        let asked = ReuseSources {
            tags,
            named,
            registry,
            progress,
        };
        Self {
            asked: Some(Arc::new(asked)),
            found: OnceLock::new(),
            remembered,
        }
    }

    /// Remembers what a layer's tar came to.
    pub(super) fn remember(&self, stamp: Option<&LayerStamp>, diff_id: &Digest) {
        if let Some(stamp) = stamp {
            self.remembered.insert(stamp, diff_id);
        }
    }

    /// Looks for a layer that is worth it, and says what it is remembered by. This waits for the network:
    /// call it outside of asynchronous code.
    pub(super) fn find(
        &self,
        layer: &mut SortedLayer<'_>,
        options: &WriteOptions<'_>,
    ) -> Result<(LayerMatch, Option<LayerStamp>), LayerError> {
        let asked = self.asked.as_ref();
        let Some(asked) = asked.filter(|_| layer.is_larger_than(WORTH_A_LOOK)) else {
            return Ok((LayerMatch::Unknown, None));
        };
        // Before a file is read: one that is changed meanwhile has another stamp.
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
        let alike = |held: &&ReusableLayer| held.compression == options.compression;
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
            let held = (*held).clone();
            wait_for(&runtime, async move { held.exists().await }) == Some(true)
        });
        Ok(found.map_or(LayerMatch::Changed, |held| {
            LayerMatch::There(Box::new(held.clone()))
        }))
    }
}

/// Waits on a thread of its own for what the runtime's do; nothing where that ends meanwhile.
fn wait_for<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (tell, told) = oneshot::channel();
    runtime.spawn(async move {
        // Nobody waits any more where the build was given up.
        let _ = tell.send(work.await);
    });
    told.blocking_recv().ok()
}

impl ReuseSources {
    /// All layers that are noted.
    async fn find_layers(&self) -> Vec<ReusableLayer> {
        let tags = self.tags.iter().map(|place| (place, true));
        let named = self.named.iter().map(|place| (place, false));
        let mut looks = Vec::new();
        for (place, is_target) in tags.chain(named) {
            looks.push(self.find_layers_in(place, is_target));
        }
        join_all(looks).await.into_iter().flatten().collect()
    }

    /// Those of one place. Whoever brings an image to a tag tells what is wrong with it.
    async fn find_layers_in(&self, place: &Location, is_target: bool) -> Vec<ReusableLayer> {
        match self.layers_of(place, is_target).await {
            Ok(Some(layers)) => return layers,
            Ok(None) if is_target => {}
            Ok(None) => self.pass_over(place, &"image not found"),
            Err(error) if is_target => {
                tracing::debug!("layers of {place}: {}", error_chain(&error));
            }
            Err(error) => self.pass_over(place, &error_chain(&error)),
        }
        Vec::new()
    }

    fn pass_over(&self, place: &Location, why: &dyn Display) {
        let note = format!("no layers reused from {place}: {why}");
        self.progress.note(&note);
    }

    /// Those of one image, or of the images of one index; nothing where there is neither.
    async fn layers_of(
        &self,
        place: &Location,
        is_target: bool,
    ) -> Result<Option<Vec<ReusableLayer>>, StoreError> {
        let Some((source, document)) = Source::find(place, is_target, &self.registry).await? else {
            return Ok(None);
        };
        let manifests = match document {
            Document::Manifest(manifest) => vec![*manifest],
            Document::Index(index) => {
                let entries = index.manifests.iter().filter(|it| is_for_windows(it));
                let mut reads = Vec::new();
                for entry in entries.take(MOST_IMAGES) {
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
        for manifest in manifests.into_iter().filter(|it| it.is_image()) {
            reads.push(source.image(manifest));
        }
        let images: Vec<_> = stream::iter(reads).buffered(AT_ONCE).collect().await;
        // An image of which the documents contradict each other has nothing to give.
        let images = images.into_iter().filter_map(Result::ok);
        let layers = images.flat_map(|image| noted_layers(&image, &source));
        Ok(Some(layers.collect()))
    }
}

fn is_for_windows(entry: &Descriptor) -> bool {
    let platform = entry.platform.as_ref();
    platform.is_some_and(|platform| platform.os == "windows")
}

/// The layers of an image that this program wrote as it would now.
fn noted_layers(image: &Image, source: &Source) -> Vec<ReusableLayer> {
    let config = image.config();
    let steps = config.history.iter();
    let comments: Vec<&str> = steps.filter_map(|step| step.comment.as_deref()).collect();
    let layers = image.manifest().layers.iter();
    let layers = layers.zip(&config.rootfs.diff_ids);
    let held = layers.filter_map(|(descriptor, diff_id)| {
        let compression = compression_of(descriptor)?;
        let is_noted = comments.contains(&note(diff_id, compression).as_str());
        is_noted.then(|| ReusableLayer {
            descriptor: descriptor.clone(),
            diff_id: diff_id.clone(),
            compression,
            source: source.clone(),
        })
    });
    held.collect()
}

/// How a layer is compressed that this program may have written.
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

impl ReusableLayer {
    /// Returns true if its bytes are still where it is. Those of a layout are read, which anybody
    /// may have changed.
    async fn exists(&self) -> bool {
        let there = match &self.source {
            Source::Layout(layout) => layout.has_blob(&self.descriptor).await.ok(),
            source => source.has_blob(&self.descriptor).await.ok(),
        };
        there == Some(true)
    }
}
