//! Extraction of files from an image: the merged contents of its layers at some paths and below
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use wincimg_common::diagnose::Problem;
use wincimg_common::files::{SpoolPart, SpoolWriter};
use wincimg_common::progress::Progress;
use wincimg_layer::{LayerReader, Limits, TarEntryKind};
use wincimg_oci::document::{Descriptor, Digest, Image};
use wincimg_oci::store::Source;
use wincimg_registry::Root;
use wincimg_registry::hive::HiveReadError;
use wincimg_windows::base_contents::FileKind;

use super::entries::{HIVES, LayerChange, LayerEntries, Layout, below, file_of_stream, last_name};
use super::error::LayerProblem;
use super::layers::{Budget, LayerHives};
use super::stream::{layer_limits, read_blob};

/// Limit on the unpacked size of layers that are extracted completely.
const MOST: u64 = 16 << 30;

/// Contents of an image at a path.
pub type ExtractedEntry = FileKind<SpoolPart>;

/// Error for a layer whose files cannot be read.
pub(super) fn unreadable(layer: &Digest, problem: LayerProblem) -> Problem {
    let what = format!("cannot read files of the image from layer {layer}");
    Problem::new("base/unreadable", what).source(problem)
}

/// Contents of a layer at a path.
#[derive(Debug, Clone)]
pub(super) enum FoundEntry {
    Taken(ExtractedEntry),
    /// Hard link to the file at this path, as the layer with this number has it.
    Again {
        target: String,
        layer: usize,
    },
}

/// Extracts some paths and everything below them; paths start at the drive's root and have slashes.
/// Layers are read from the top, and no more of them than necessary; each is read to its end, to
/// check its digest. Alternate data streams are left out, with a note.
pub async fn extract(
    source: &Source,
    image: &Image,
    paths: &BTreeSet<String>,
    progress: &Arc<dyn Progress>,
) -> Result<BTreeMap<String, ExtractedEntry>, Problem> {
    let layers: Vec<(usize, &Descriptor)> = image.manifest().layers.iter().enumerate().collect();
    let mut found = extract_from(source, image, &layers, paths, progress).await?;
    if layout_of(image) == Layout::Windows {
        let is_stream = |path: &String, _: &mut ExtractedEntry| file_of_stream(path).is_some();
        let streams: Vec<_> = found.extract_if(.., is_stream).collect();
        if let Some((first, _)) = streams.first() {
            let first = first.replace('/', r"\");
            progress.note(&format!(
                r"alternate data streams are not copied, such as C:\{first}"
            ));
        }
    }
    Ok(found)
}

fn layout_of(image: &Image) -> Layout {
    match image.config().os.as_str() {
        "windows" => Layout::Windows,
        _ => Layout::Other,
    }
}

/// Same as [`extract`], from some layers of an image.
pub(super) async fn extract_from(
    source: &Source,
    image: &Image,
    layers: &[(usize, &Descriptor)],
    paths: &BTreeSet<String>,
    progress: &Arc<dyn Progress>,
) -> Result<BTreeMap<String, ExtractedEntry>, Problem> {
    let layout = layout_of(image);
    let seen = search(source, layers, layout, paths, progress)
        .await?
        .entries;
    resolve_links(source, layers, layout, seen, progress).await
}

/// Replaces hard links by their targets in the layer of the link and those below it: what layers
/// above do to a target leaves its other names, and a target can be a link of a layer below. A link
/// without a target remains a link.
pub(super) async fn resolve_links(
    source: &Source,
    layers: &[(usize, &Descriptor)],
    layout: Layout,
    entries: BTreeMap<String, FoundEntry>,
    progress: &Arc<dyn Progress>,
) -> Result<BTreeMap<String, ExtractedEntry>, Problem> {
    // Windows' own layers have many files of System32 as hard links.
    let mut targets: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for seen in entries.values() {
        if let FoundEntry::Again { target, layer } = seen {
            targets.entry(*layer).or_default().insert(target.clone());
        }
    }
    let mut behind: BTreeMap<(usize, String), FoundEntry> = BTreeMap::new();
    while let Some((top, targets_here)) = targets.pop_last() {
        let below = layers.partition_point(|(number, _)| *number <= top);
        let found = search(source, &layers[..below], layout, &targets_here, progress).await?;
        for (path, seen) in found.entries {
            if let FoundEntry::Again { target, layer } = &seen
                && *layer < top
            {
                targets.entry(*layer).or_default().insert(target.clone());
            }
            behind.insert((top, path.to_lowercase()), seen);
        }
    }
    let entries = entries.into_iter();
    let resolved = entries.map(|(path, seen)| (path, file_behind(seen, &behind)));
    Ok(resolved.collect())
}

/// Follows a hard link to the targets of links, each in a lower layer than the one before.
fn file_behind(
    mut seen: FoundEntry,
    behind: &BTreeMap<(usize, String), FoundEntry>,
) -> ExtractedEntry {
    let mut top = usize::MAX;
    loop {
        match seen {
            FoundEntry::Taken(taken) => return taken,
            FoundEntry::Again { target, layer } if layer < top => {
                top = layer;
                let found = behind.get(&(layer, target.to_lowercase())).cloned();
                seen = found.unwrap_or(FoundEntry::Taken(ExtractedEntry::Link(())));
            }
            FoundEntry::Again { .. } => return ExtractedEntry::Link(()),
        }
    }
}

/// Contents of layers, before hard links are resolved.
#[derive(Default)]
pub(super) struct SearchedLayers {
    pub(super) entries: BTreeMap<String, FoundEntry>,
    /// Deleted paths in lower case.
    pub(super) gone: Vec<String>,
    /// Hives from the lowest layer up, if everything is searched for.
    pub(super) hives: Vec<LayerHives>,
}

/// Contents of layers, merged from the top.
#[derive(Default)]
struct LayerMerger {
    found: SearchedLayers,
    /// Found paths in lower case.
    known: BTreeSet<String>,
    /// Paths in lower case that lower layers no longer have.
    hidden: BTreeSet<String>,
    /// Folders by their paths in lower case, as the lowest layer spells them.
    folders: BTreeMap<String, String>,
}

impl LayerMerger {
    /// Adds the next lower layer.
    fn add(&mut self, layer: LayerFiles, number: usize, digest: &Digest, layout: Layout) {
        // Anything but a folder hides everything that lower layers have at its path and below.
        let mut hides: Vec<String> = Vec::new();
        // Of several entries of a tar at one path, the last one counts.
        for (path, seen) in layer.entries.into_iter().rev() {
            let key = path.to_lowercase();
            // A file comes with its streams from one layer.
            let is_stale = layout == Layout::Windows
                && file_of_stream(&key).is_some_and(|file| is_below_any(file, &self.hidden));
            if is_stale || is_below_any(&key, &self.hidden) {
                continue;
            }
            let is_new = self.known.insert(key.clone());
            if matches!(seen, FoundEntry::Taken(ExtractedEntry::Folder)) {
                self.folders.insert(key, path.clone());
            } else if is_new {
                hides.push(key);
            }
            if is_new {
                self.found.entries.insert(path, seen);
            }
        }
        self.hidden.extend(hides);
        if !layer.hives.is_empty() {
            self.found.hives.push(LayerHives {
                layer: number,
                digest: digest.clone(),
                hives: layer.hives,
                others: Vec::new(),
            });
        }
        self.found.gone.extend(layer.gone.iter().cloned());
        self.hidden.extend(layer.gone);
    }
}

/// Searches layers, counted from 0 at the bottom of their image, for paths; the empty path matches
/// everything, including hives.
pub(super) async fn search(
    source: &Source,
    layers: &[(usize, &Descriptor)],
    layout: Layout,
    paths: &BTreeSet<String>,
    progress: &Arc<dyn Progress>,
) -> Result<SearchedLayers, Problem> {
    let mut merger = LayerMerger::default();
    let budget = Budget::default();
    let mut left = layer_limits().stream;
    if paths.contains("") {
        left = left.min(MOST);
    }
    let mut wanted: BTreeSet<String> = paths.iter().map(|path| path.to_lowercase()).collect();
    for &(number, blob) in layers.iter().rev() {
        if wanted.is_empty() {
            break;
        }
        let failed = |problem| unreadable(&blob.digest, problem);
        let task = progress.task(&format!("layer {}", blob.digest), Some(blob.size));
        let reader = source.open_blob(blob).await;
        let reader = reader.map_err(|error| failed(error.into()))?;
        let (here, budget) = (wanted.clone(), budget.clone());
        let limits = Limits {
            stream: left,
            ..layer_limits()
        };
        let work = move |input: &mut (dyn Read + Send)| {
            search_layer(input, number, layout, &here, limits, &budget)
        };
        let layer = read_blob(reader, task.as_ref(), work).await;
        let layer = layer.map_err(failed)?;
        if paths.contains("") {
            left = left.saturating_sub(layer.size);
        }
        merger.add(layer, number, &blob.digest, layout);
        wanted.retain(|path| !is_below_any(path, &merger.hidden));
    }
    let mut found = merger.found;
    if layout == Layout::Windows {
        let entries = std::mem::take(&mut found.entries).into_iter();
        let spelled = entries.map(|(path, seen)| (spelled(&path, &merger.folders), seen));
        found.entries = spelled.collect();
    }
    found.hives.reverse();
    Ok(found)
}

/// A path with folders as on Windows, where they keep their original spelling.
fn spelled(path: &str, folders: &BTreeMap<String, String>) -> String {
    let names = with_folders(path).map(|own| {
        let known = folders.get(&own.to_lowercase());
        last_name(known.map_or(own, String::as_str))
    });
    names.collect::<Vec<_>>().join("/")
}

#[derive(Default)]
struct LayerFiles {
    size: u64,
    entries: Vec<(String, FoundEntry)>,
    gone: Vec<String>,
    hives: BTreeMap<Root, Result<Vec<u8>, HiveReadError>>,
}

impl LayerFiles {
    /// Replaces hard links to files that were found in the same layer.
    fn resolve_links(&mut self) {
        let files = self.entries.iter().filter_map(|(path, seen)| match seen {
            FoundEntry::Taken(file @ ExtractedEntry::File(_)) => {
                Some((path.to_lowercase(), file.clone()))
            }
            _ => None,
        });
        let files: BTreeMap<String, ExtractedEntry> = files.collect();
        for (_, seen) in &mut self.entries {
            if let FoundEntry::Again { target, .. } = seen
                && let Some(file) = files.get(&target.to_lowercase())
            {
                *seen = FoundEntry::Taken(file.clone());
            }
        }
    }
}

fn search_layer(
    input: &mut (dyn Read + Send),
    number: usize,
    layout: Layout,
    wanted: &BTreeSet<String>,
    limits: Limits,
    budget: &Budget,
) -> Result<LayerFiles, LayerProblem> {
    let mut entries = LayerEntries::new(LayerReader::new(input, limits)?, layout);
    let mut parts = SpoolWriter::in_folder(&std::env::temp_dir())?;
    let mut found = LayerFiles::default();
    let is_everything = wanted.contains("");
    while let Some(entry) = entries.next_entry()? {
        let raw = &entry.raw;
        if is_everything
            && raw.kind == TarEntryKind::File
            && let Some(root) = below(&raw.path, HIVES).and_then(Root::from_delta_name)
        {
            budget.reserve(raw.size)?;
            found.hives.insert(root, Ok(entries.reader.content()?));
        }
        let Some(path) = layout.inside(entry.path()) else {
            continue;
        };
        let key = path.to_lowercase();
        let file = file_of_stream(&key).filter(|_| layout == Layout::Windows);
        let is_wanted = is_everything || is_below_any(file.unwrap_or(&key), wanted);
        let seen = match &entry.change {
            Some(LayerChange::Deleted) => {
                found.gone.push(key);
                continue;
            }
            _ if !is_wanted => continue,
            Some(LayerChange::File(())) => {
                FoundEntry::Taken(ExtractedEntry::File(parts.append(|out| {
                    let mut written = Ok(());
                    entries.reader.each_piece(|piece| {
                        if written.is_ok() {
                            written = out.write_all(piece);
                        }
                    })?;
                    Ok::<(), LayerProblem>(written?)
                })?))
            }
            Some(LayerChange::Folder(())) => FoundEntry::Taken(ExtractedEntry::Folder),
            Some(LayerChange::HardLink(target)) => FoundEntry::Again {
                target: layout.inside(target).unwrap_or(target).to_owned(),
                layer: number,
            },
            Some(LayerChange::Link(_)) | None => FoundEntry::Taken(ExtractedEntry::Link(())),
        };
        found.size += raw.size;
        found.entries.push((path.to_owned(), seen));
    }
    found.resolve_links();
    Ok(found)
}

/// Returns true if a path is one of these or below one; all in lower case.
fn is_below_any(path: &str, folders: &BTreeSet<String>) -> bool {
    !folders.is_empty() && with_folders(path).any(|path| folders.contains(path))
}

/// The folders above a path from the top, and the path.
fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.chain([path.len()]).map(move |end| &path[..end])
}
