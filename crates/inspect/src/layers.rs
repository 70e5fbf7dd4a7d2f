//! Reads the hives of an image's layers.
//!
//! The bottom layer of an image is Windows itself. Its registry is stored as whole hives in
//! `Files/Windows/System32/config` (the second name `Hives/System_Base` is added only when it is
//! unpacked on Windows). Changes are in the layers above, as `Hives/*_Delta`. wincimg writes
//! `Hives` before `Files`; Windows' own tools write it after.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt, stream as futures};
use serde::Serialize;
use wincimg_common::progress::Progress;
use wincimg_layer::archive::StreamCompression;
use wincimg_layer::{LayerReader, TarEntryKind, TarReadError};
use wincimg_oci::document::media_type::LayerCompression;
use wincimg_oci::document::{Descriptor, Digest, Image, media_type};
use wincimg_oci::store::Source;
use wincimg_registry::Root;
use wincimg_registry::hive::{Hive, HiveReadError, HiveState, needs_logs, recover};

use super::base::{BaseHive, HivePart, HiveParts, LayerPosition};
use super::entries::{HIVES, OutsideFiles, below};
use super::error::LayerProblem;
use super::facts::LayerFacts;
use super::inspection::PARALLEL;
use super::stream::{self, BlobReadOutcome, Depth, Input, layer_limits};
use super::unpacked::UnpackedLayer;

/// Layers up to this size are read to their end.
pub const SMALL_LAYER: u64 = 64 << 20;
/// Number of bytes that are read of larger ones, unless everything is requested.
pub const BEGINNING: u64 = 4 << 20;

/// Size limit of a hive with nothing but its root.
pub(super) const ROOT_ALONE: u64 = 64 << 10;
/// Limit on the memory of all hives.
const HIVE_MEMORY: u64 = 1 << 30;

/// Extent to which the layers above the bottom one are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ReadDepth {
    /// Nothing.
    None,
    /// All of small layers, the beginning of large ones.
    #[default]
    Small,
    /// All of every layer.
    All,
}

/// Extent to which a layer was read for its registry changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "read", rename_all = "snake_case")]
pub enum LayerReadStatus {
    /// Read to its end, and its digest matches.
    Whole,
    /// Read as far as its hives, so its digest was not checked.
    Part,
    /// Its changes are unknown.
    Skipped {
        /// Reason.
        reason: SkipReason,
    },
    /// It cannot be read.
    Failed,
}

impl LayerReadStatus {
    /// Returns true if all registry changes of the layer are known.
    pub(super) fn is_enough(self) -> bool {
        matches!(
            self,
            Self::Whole
                | Self::Part
                | Self::Skipped {
                    reason: SkipReason::Bottom
                }
        )
    }
}

/// Reason for skipping a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Not requested, or the image is not for Windows.
    NotAsked,
    /// Bottom layer, which changes nothing.
    Bottom,
    /// Large, without hives at its beginning.
    Large,
    /// Foreign, and its bytes are not stored with the image.
    ForeignBytes,
}

pub(super) struct ReadPlan {
    pub(super) reach: ReadDepth,
    /// True if the registry of the bottom layer is required too, and so everything above it.
    pub(super) over_base: bool,
    pub(super) roots: &'static [Root],
}

/// A hive of an image that was not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnclosedHive {
    /// Path in the layer.
    pub file: String,
    /// Result of its log files.
    pub state: HiveState,
}

/// The hives of one layer.
#[derive(Debug)]
pub(super) struct LayerHives {
    /// Position, counted from 0 at the bottom.
    pub(super) layer: usize,
    pub(super) digest: Digest,
    pub(super) hives: BTreeMap<Root, Result<Vec<u8>, HiveReadError>>,
    /// Names of hives with changes that are not read.
    pub(super) others: Vec<String>,
}

/// Remaining part of [`HIVE_MEMORY`].
#[derive(Clone)]
pub(super) struct Budget(Arc<AtomicU64>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(HIVE_MEMORY)))
    }
}

impl Budget {
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), LayerProblem> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            })
            .map(|_| ())
            .map_err(|_| LayerProblem::TooMuch { limit: HIVE_MEMORY })
    }
}

/// Reads the layers of an image as planned and completes their facts; returns the hives in the order
/// of the layers.
pub(super) async fn read(
    source: &Source,
    image: &Image,
    facts: &mut [LayerFacts],
    plan: &ReadPlan,
    budget: &Budget,
    progress: &Arc<dyn Progress>,
) -> Vec<LayerHives> {
    let layers = std::iter::zip(&image.manifest().layers, facts).enumerate();
    let reads: Vec<_> = layers
        .map(|(layer, (blob, facts))| {
            read_reporting_errors(
                source,
                blob,
                (layer, facts),
                plan,
                budget,
                progress.as_ref(),
            )
        })
        .collect();
    let hives: Vec<_> = futures::iter(reads).buffered(PARALLEL).collect().await;
    hives.into_iter().flatten().collect()
}

/// Returns true if a layer is foreign, and its bytes are not stored with the image.
pub(super) async fn lacks_bytes(source: &Source, blob: &Descriptor) -> Result<bool, LayerProblem> {
    Ok(media_type::is_foreign(&blob.media_type) && !source.has_blob(blob).await?)
}

async fn read_reporting_errors(
    source: &Source,
    blob: &Descriptor,
    (layer, facts): (usize, &mut LayerFacts),
    plan: &ReadPlan,
    budget: &Budget,
    progress: &dyn Progress,
) -> Option<LayerHives> {
    let problem = |problem: LayerProblem| problem.in_layer(layer, &blob.digest);
    let found = match read_layer(source, blob, layer, plan, budget, progress).await {
        Ok((reading, found)) => {
            facts.reading = reading;
            found?
        }
        Err(source) => {
            facts.reading = LayerReadStatus::Failed;
            facts.problems.push(problem(source));
            return None;
        }
    };
    let checked = LayerProblem::check_diff_id(found.diff_id.as_ref(), &facts.diff_id);
    facts.problems.extend(checked.err().map(problem));
    facts.unclosed_hives = found.unclosed;
    if facts.reading == LayerReadStatus::Whole {
        let warning = found.outside.problem();
        let warning = warning.map(|(path, why)| format!("{path}: {why}"));
        facts.warnings.extend(warning);
    }
    facts.stored_as = found.compression.and_then(|it| other_than(it, blob));
    Some(LayerHives {
        layer,
        digest: blob.digest.clone(),
        hives: found.hives,
        others: found.others,
    })
}

/// Name of a layer's compression, if its media type says another.
fn other_than(found: StreamCompression, blob: &Descriptor) -> Option<&'static str> {
    let stated = media_type::compression(&blob.media_type)?;
    let (found, name) = match found {
        StreamCompression::Gzip => (LayerCompression::Gzip, "gzip"),
        StreamCompression::Zstd => (LayerCompression::Zstd, "zstd"),
        _ => (LayerCompression::None, "plain"),
    };
    (found != stated).then_some(name)
}

async fn read_layer(
    source: &Source,
    blob: &Descriptor,
    layer: usize,
    plan: &ReadPlan,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(LayerReadStatus, Option<FoundHives>), LayerProblem> {
    let skipped = |reason| Ok((LayerReadStatus::Skipped { reason }, None));
    let bottom = layer == 0;
    let depth = match (plan.over_base, plan.reach) {
        (false, _) if bottom => return skipped(SkipReason::Bottom),
        _ if blob.size <= SMALL_LAYER => Depth::ToTheEnd,
        (true, _) if bottom => Depth::UntilFound,
        (true, _) | (false, ReadDepth::All) => Depth::ToTheEnd,
        (false, _) => Depth::Beginning(BEGINNING),
    };
    if lacks_bytes(source, blob).await? {
        if bottom {
            return Err(LayerProblem::ForeignBase);
        }
        return skipped(SkipReason::ForeignBytes);
    }
    let search = Search {
        bottom,
        roots: plan.roots,
        to_the_end: depth == Depth::ToTheEnd,
        budget: budget.clone(),
    };
    let task = progress.task(&format!("layer {}", blob.digest), Some(blob.size));
    let reader = source.open_blob(blob).await?;
    let work = move |input: &mut Input| search.hives(input);
    let outcome = stream::read(reader, depth, task.as_ref(), work).await?;
    match outcome {
        BlobReadOutcome::Whole(found) => Ok((LayerReadStatus::Whole, Some(found))),
        BlobReadOutcome::Part(found) => Ok((LayerReadStatus::Part, Some(found))),
        BlobReadOutcome::OutOfReach => skipped(SkipReason::Large),
    }
}

/// The hives to find in a layer.
struct Search {
    bottom: bool,
    roots: &'static [Root],
    to_the_end: bool,
    budget: Budget,
}

#[derive(Default)]
struct FoundHives {
    hives: BTreeMap<Root, Result<Vec<u8>, HiveReadError>>,
    unclosed: Vec<UnclosedHive>,
    others: Vec<String>,
    outside: OutsideFiles,
    compression: Option<StreamCompression>,
    /// Digest of the uncompressed bytes, if all were read.
    diff_id: Option<Digest>,
}

/// The files of a hive that were found, with their paths.
type HiveFiles = HiveParts<(String, Vec<u8>)>;

impl FoundHives {
    /// Completes a hive from its logs.
    fn add(&mut self, root: Root, files: HiveFiles) {
        let Some(((file, primary), needs_logs)) = files.primary else {
            return;
        };
        let recovered = if needs_logs {
            let logs = files.logs.each_ref();
            let logs = logs.map(|log| log.as_ref().map_or(&[][..], |(_, log)| log));
            recover(&primary, logs).map(|hive| {
                let state = hive.state;
                self.unclosed.push(UnclosedHive { file, state });
                hive.bytes.into_owned()
            })
        } else {
            Ok(primary)
        };
        self.hives.insert(root, recovered);
    }
}

impl Search {
    fn hives(&self, input: &mut Input) -> Result<FoundHives, LayerProblem> {
        let mut unpacked = UnpackedLayer::new(input, self.to_the_end).map_err(TarReadError::Io)?;
        let mut found = FoundHives {
            compression: Some(unpacked.compression),
            ..FoundHives::default()
        };
        let mut files: BTreeMap<Root, HiveFiles> = BTreeMap::new();
        let mut reader = LayerReader::new_uncompressed(&mut unpacked, layer_limits());
        let mut among_hives = false;
        while let Some(entry) = reader.next_entry()? {
            found.outside.note(&entry);
            let hive_name = below(&entry.path, HIVES);
            if entry.kind == TarEntryKind::File
                && let Some((root, part)) = self.part_of(&entry.path)
            {
                if self.roots.contains(&root) {
                    self.budget.reserve(entry.size)?;
                    let bytes = reader.content()?;
                    let needs_logs = needs_logs(&bytes);
                    let files = files.entry(root).or_default();
                    files.insert(part, (entry.path.clone(), bytes), needs_logs);
                }
            } else if let (TarEntryKind::File, Some(name)) = (entry.kind, hive_name) {
                let name = name.to_owned();
                let is_unspecified = entry.size <= ROOT_ALONE && {
                    self.budget.reserve(entry.size)?;
                    has_root_alone(&reader.content()?)
                };
                if !is_unspecified {
                    found.others.push(name);
                }
            }
            let past_hives = among_hives && hive_name.is_none() && entry.path.contains('/');
            among_hives |= hive_name.is_some();
            let complete = files.values().filter(|files| files.is_complete()).count();
            let complete = self.bottom && complete == self.roots.len();
            let done = complete || (!self.bottom && past_hives);
            if done && !self.to_the_end {
                break;
            }
        }
        drop(reader);
        found.diff_id = unpacked.finish()?;
        for (root, files) in files {
            found.add(root, files);
        }
        Ok(found)
    }

    /// The root of the hive that a file of the layer contains or changes, or is a log of.
    fn part_of(&self, path: &str) -> Option<(Root, HivePart)> {
        let (roots, place) = if self.bottom {
            (self.roots, LayerPosition::Bottom)
        } else {
            (Root::ALL.as_slice(), LayerPosition::Above)
        };
        let part = |&root| Some((root, BaseHive::from_root(root).part(path, place)?));
        roots.iter().find_map(part)
    }
}

/// Returns true if a hive changes nothing, like most hives that Windows adds to every layer.
pub(super) fn has_root_alone(bytes: &[u8]) -> bool {
    Hive::read(bytes).is_ok_and(|hive| hive.root.values.is_empty() && hive.root.subkeys.is_empty())
}

/// Paths of a hive in the bottom layer.
pub(super) const fn base_files(root: Root) -> [&'static str; 2] {
    BaseHive::from_root(root).base_files()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hives_of_all_layers_share_one_bound_on_memory() {
        let budget = Budget::default();
        let is_refused = |size| {
            let reserved = budget.reserve(size);
            matches!(reserved, Err(LayerProblem::TooMuch { .. }))
        };
        budget.reserve(HIVE_MEMORY - 10).unwrap();
        assert!(is_refused(11));
        budget.reserve(10).unwrap();
        assert!(is_refused(1));
    }
}
