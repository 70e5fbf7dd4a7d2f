//! Contents of any Windows image: the files and registry keys of each layer, and the merged view of
//! a container.
//!
//! [`ContentReader`] reads the layers, each once, also for several images. A layer of Windows whose
//! bytes are not stored with the image is left out, and so is Windows itself on request. Then the
//! merged view keeps the deletions of what lies in those layers.

mod diff;
mod keys;
mod tree;
mod waste;

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

pub(crate) use diff::normalized;
pub use diff::{
    ContentChange, FileAspect, FileDifference, KeyDifference, ValueDifference, diff_files,
    diff_keys, diff_layers, differing_hives, sddl,
};
use futures_util::{StreamExt, TryStreamExt, stream as futures};
pub use keys::{ContentKey, list_keys};
use serde::Serialize;
use tokio::sync::OnceCell;
pub use tree::{FileEntry, FileTree, display_path};
pub use waste::{ImageWaste, WastedFile, find_waste};
use wincimg_common::diagnose::Problem;
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_oci::document::{Descriptor, Digest, Image};
use wincimg_oci::store::Source;
use wincimg_registry::hive::{self, Hive, Key};
use wincimg_registry::{RegistryEdit, Root};

use crate::base::{BaseHive, CollectedLayer, Extent, LayerPosition, collect_layer};
use crate::error::LayerProblem;
use crate::extract::unreadable;
use crate::facts::ImageFacts;
use crate::layers::{UnclosedHive, lacks_bytes};
use crate::own_contents::windows_layers;
use crate::stream::read_blob;

/// Number of layers that are read in parallel.
const PARALLEL_LAYERS: usize = 2;
/// Limit on the entries of all layers of an image, several times those of the largest.
const MOST_ENTRIES: usize = 5_000_000;

/// Extent of the contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentOptions {
    /// True if the files of the utility VM are included.
    pub utility_vm: bool,
    /// True if the layers of Windows itself are not read.
    pub skip_windows: bool,
}

/// Extent to which a layer was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentStatus {
    /// Read to its end, and its digest matches.
    Read,
    /// Windows itself, which was not requested.
    Windows,
    /// Foreign, and its bytes are not stored with the image.
    ForeignBytes,
}

/// A layer with its contents.
#[derive(Debug, Clone)]
pub struct ContentLayer {
    /// Number, counted from 1 at the bottom.
    pub number: usize,
    /// Digest of its blob.
    pub digest: Digest,
    /// Size of its blob.
    pub size: u64,
    /// The build step that created it.
    pub created_by: Option<String>,
    /// Extent to which it was read.
    pub status: ContentStatus,
    /// Digest of its uncompressed bytes, according to the configuration.
    diff_id: Digest,
    is_windows: bool,
    collected: Arc<CollectedLayer>,
}

/// An image with the contents of its layers.
#[derive(Debug, Clone)]
pub struct ImageContents {
    /// The layers, the bottom one first.
    pub layers: Vec<ContentLayer>,
}

/// The contents of a layer, once they are read.
type SharedLayer = Arc<OnceCell<Arc<CollectedLayer>>>;

/// Reader of the contents of images.
pub struct ContentReader {
    options: ContentOptions,
    progress: Arc<dyn Progress>,
    known: Mutex<HashMap<(Digest, LayerPosition), SharedLayer>>,
}

impl ContentReader {
    /// Creates a reader that knows no layer yet.
    pub fn new(options: ContentOptions, progress: Arc<dyn Progress>) -> Self {
        Self {
            options,
            progress,
            known: Mutex::default(),
        }
    }

    /// Reads the layers of an image, except those of another one.
    pub async fn read(&self, source: &Source, image: &Image) -> Result<ImageContents, Problem> {
        let layers = self.layers(source, image).await?.into_iter();
        let reads = layers
            .zip(&image.manifest().layers)
            .map(async |(mut layer, blob)| {
                if layer.status == ContentStatus::Read {
                    layer.collected = self.collected(source, blob, layer.position()).await?;
                }
                Ok::<_, Problem>(layer)
            });
        let reads: Vec<_> = reads.collect();
        let layers: Vec<ContentLayer> = futures::iter(reads)
            .buffered(PARALLEL_LAYERS)
            .try_collect()
            .await?;
        let entries = layers.iter().map(|it| &it.collected);
        let entries: usize = entries.map(|it| it.files.len()).sum();
        if entries > MOST_ENTRIES {
            let problem = format!("the image has more than {MOST_ENTRIES} files in its layers");
            return Err(Problem::new("image/layer", problem));
        }
        Ok(ImageContents { layers })
    }

    /// The contents of a layer. What several images need at the same time is read once.
    async fn collected(
        &self,
        source: &Source,
        blob: &Descriptor,
        position: LayerPosition,
    ) -> Result<Arc<CollectedLayer>, Problem> {
        let key = (blob.digest.clone(), position);
        let cell = Arc::clone(lock(&self.known).entry(key).or_default());
        let read = async || {
            let read = self.read_layer(source, blob, position).await;
            read.map(Arc::new)
                .map_err(|problem| unreadable(&blob.digest, problem))
        };
        cell.get_or_try_init(read).await.cloned()
    }

    /// The layers without their contents.
    async fn layers(&self, source: &Source, image: &Image) -> Result<Vec<ContentLayer>, Problem> {
        let windows = windows_layers(source, image, &self.progress).await?;
        let blobs = std::iter::zip(&image.manifest().layers, ImageFacts::new(image).layers);
        let mut layers = Vec::new();
        for (number, ((blob, facts), is_windows)) in (1..).zip(blobs.zip(windows)) {
            let failed = |problem| unreadable(&blob.digest, problem);
            let status = if is_windows && self.options.skip_windows {
                ContentStatus::Windows
            } else if lacks_bytes(source, blob).await.map_err(failed)? {
                ContentStatus::ForeignBytes
            } else {
                ContentStatus::Read
            };
            layers.push(ContentLayer {
                number,
                digest: facts.digest,
                size: facts.size,
                created_by: facts.created_by,
                status,
                diff_id: facts.diff_id,
                is_windows,
                collected: Arc::default(),
            });
        }
        Ok(layers)
    }

    async fn read_layer(
        &self,
        source: &Source,
        blob: &Descriptor,
        position: LayerPosition,
    ) -> Result<CollectedLayer, LayerProblem> {
        let extent = Extent::Listing {
            utility_vm: self.options.utility_vm,
        };
        let task = self
            .progress
            .task(&format!("layer {}", blob.digest), Some(blob.size));
        let reader = source.open_blob(blob).await?;
        let work =
            move |input: &mut (dyn Read + Send)| Ok(collect_layer(input, position, &extent)?);
        read_blob(reader, task.as_ref(), work).await
    }
}

impl ContentLayer {
    /// Changes of its delta hives that edits can express.
    pub fn registry_edits(&self) -> Result<Vec<RegistryEdit>, Problem> {
        let mut edits = Vec::new();
        if self.position() == LayerPosition::Bottom {
            return Ok(edits);
        }
        for root in Root::ALL {
            let found = with_keys(&[self], BaseHive::from_root(root), |keys| {
                keys.first().map(|key| hive::edits(root, key)).transpose()
            })?;
            let found = found.map_err(|error| {
                Problem::new("image/layer", "a layer has an invalid registry key").source(error)
            })?;
            edits.extend(found.unwrap_or_default());
        }
        Ok(edits)
    }

    /// One of its hives, if that was not closed.
    pub fn unclosed_hive(&self, wanted: BaseHive) -> Result<Option<UnclosedHive>, Problem> {
        let packed = self.collected.hives.get(&wanted);
        let Some(packed) = packed.filter(|packed| packed.needs_logs()) else {
            return Ok(None);
        };
        let unpacked = packed.unpack();
        let Some(files) = unpacked.map_err(|error| damaged(self, wanted, error))? else {
            return Ok(None);
        };
        let recovered = files.recover();
        let recovered =
            recovered.map_err(|error| damaged(self, wanted, io::Error::other(error)))?;
        let file = match self.position() {
            LayerPosition::Bottom => wanted.base_files()[0],
            LayerPosition::Above => wanted.delta_file(),
        };
        Ok(Some(UnclosedHive {
            file: file.to_owned(),
            state: recovered.state,
        }))
    }

    fn position(&self) -> LayerPosition {
        LayerPosition::of(self.number - 1)
    }

    /// Parts that cannot be read or have no effect: a path in the layer, and the reason.
    pub fn problems(&self) -> &[(String, String)] {
        &self.collected.problems
    }

    /// Compares its uncompressed bytes, if they were read, with the image's configuration: runtimes
    /// refuse others.
    pub fn check_diff_id(&self) -> Result<(), LayerProblem> {
        LayerProblem::check_diff_id(self.collected.diff_id.as_ref(), &self.diff_id)
    }
}

impl ImageContents {
    /// Returns true if all layers were read.
    pub fn is_complete(&self) -> bool {
        let mut layers = self.layers.iter();
        layers.all(|layer| layer.status == ContentStatus::Read)
    }

    /// The same contents without Windows itself.
    #[must_use]
    pub fn without_windows(mut self) -> Self {
        for layer in self.layers.iter_mut().filter(|layer| layer.is_windows) {
            layer.collected = Arc::default();
            if layer.status == ContentStatus::Read {
                layer.status = ContentStatus::Windows;
            }
        }
        self
    }

    /// The files of all layers, merged.
    pub fn files(&self) -> FileTree {
        FileTree::merge(&self.layers, !self.is_complete())
    }

    /// Passes the merged keys of a hive to a function; if a layer is missing, those of the others as
    /// one delta.
    fn with_hive<T>(
        &self,
        wanted: BaseHive,
        work: impl FnOnce(Option<&Key<'_>>) -> T,
    ) -> Result<T, Problem> {
        let layers: Vec<&ContentLayer> = self.layers.iter().collect();
        let is_complete = self.is_complete();
        with_keys(&layers, wanted, |keys| {
            let root = if is_complete {
                hive::merge(None, keys)
            } else {
                hive::combine(keys)
            };
            work(root.as_ref())
        })
    }

    /// Digests of the layers with a hive, which determine its contents.
    fn hive_layers(&self, hive: BaseHive) -> Vec<&Digest> {
        let layers = self.layers.iter();
        let layers = layers.filter(|layer| layer.collected.hives.contains_key(&hive));
        layers.map(|layer| &layer.digest).collect()
    }
}

/// Reads a hive of several layers.
fn with_keys<T>(
    layers: &[&ContentLayer],
    wanted: BaseHive,
    work: impl FnOnce(Vec<Key<'_>>) -> T,
) -> Result<T, Problem> {
    let mut files = Vec::new();
    for layer in layers {
        if let Some(packed) = layer.collected.hives.get(&wanted) {
            let unpacked = packed
                .unpack()
                .map_err(|error| damaged(layer, wanted, error))?;
            files.extend(unpacked.map(|files| (*layer, files)));
        }
    }
    let mut recovered = Vec::new();
    for (layer, files) in &files {
        let hive = files.recover();
        let hive = hive.map_err(|error| damaged(layer, wanted, io::Error::other(error)))?;
        recovered.push((*layer, hive));
    }
    let mut roots = Vec::new();
    for (layer, hive) in &recovered {
        let read: Hive<'_> = hive
            .read()
            .map_err(|error| damaged(layer, wanted, io::Error::other(error)))?;
        roots.push(read.root);
    }
    Ok(work(roots))
}

fn damaged(layer: &ContentLayer, hive: BaseHive, error: io::Error) -> Problem {
    let (number, name) = (layer.number, hive.short_name());
    Problem::new(
        "image/layer",
        format!("cannot read {name} of layer {number}"),
    )
    .source(error)
}
