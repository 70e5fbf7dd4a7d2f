//! Reads one layer of a base. Layers are independent of each other: they can be read in any order
//! and in parallel.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use sha2::{Digest, Sha256};
use wincimg_common::files::PieceReader;
use wincimg_layer::{LayerEntry, LayerReader, Limits, TarEntryKind, TarReadError};
use wincimg_oci::document;
use wincimg_registry::Root;
use wincimg_windows::base_contents::{BaseRequirements, FileDigest};

use super::file::CollectedScope;
use super::hives::{BaseHive, HivePart};
use super::packed_hive::{PackedHive, Packer};
use super::{sort_key, stored_content};
use crate::entries::{
    Entry, FILES, FOLDER_ATTRIBUTES, HIVES, LayerChange, LayerEntries, Layout, OutsideFiles,
    SecurityRecord, UTILITY_VM, WindowsRecords, below,
};
use crate::stream::layer_limits;
use crate::unpacked::UnpackedLayer;

/// Limit on the compressed hives of a layer.
const HIVE_MEMORY: usize = 512 << 20;
/// Limit on descriptors: many times those of the largest base.
const DESCRIPTOR_MEMORY: usize = 256 << 20;
/// Limit on the problems of a layer.
const MAX_PROBLEMS: usize = 100;
/// Limit on contents that are held until it is known whether they are needed.
const CONTENT_MEMORY: usize = 32 << 20;
/// Size of an unpacked piece, and number of pieces that may wait.
const PIECE: u64 = 128 << 10;
const QUEUE_LENGTH: usize = 8;

/// Amount of facts to collect from a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// All facts.
    Everything,
    /// The facts that a plan requires.
    Part(BaseRequirements),
    /// All files and hives, without contents of files.
    Listing {
        /// True if the files of the utility VM are included.
        utility_vm: bool,
    },
}

impl Extent {
    pub(super) fn scope(&self) -> CollectedScope {
        match self {
            Self::Everything | Self::Listing { .. } => CollectedScope {
                everything: *self == Self::Everything,
                hives: BaseHive::ALL.to_vec(),
                files: true,
                contents: Vec::new(),
            },
            Self::Part(needs) => {
                let mut hives = needs.hives.clone();
                // A layer with one hive has all, whose roots keep the base's descriptors. For the
                // files, layers are read to their ends anyway.
                if needs.files && !hives.is_empty() {
                    hives.extend(Root::ALL);
                }
                CollectedScope {
                    everything: false,
                    hives: hives.into_iter().map(BaseHive::from_root).collect(),
                    files: needs.files,
                    contents: needs.contents.iter().map(sort_key::for_file).collect(),
                }
            }
        }
    }
}

/// Position of a layer in its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerPosition {
    /// Windows itself.
    Bottom,
    /// A layer with changes to those below.
    Above,
}

impl LayerPosition {
    /// Position of a layer by its number, counted from 0.
    pub fn of(number: usize) -> Self {
        match number {
            0 => Self::Bottom,
            _ => Self::Above,
        }
    }
}

/// Contents of one layer.
#[derive(Debug, Clone, Default)]
pub struct CollectedLayer {
    pub(crate) files: Vec<LayerFile>,
    pub(crate) descriptors: Vec<Arc<[u8]>>,
    pub(crate) hives: BTreeMap<BaseHive, PackedHive>,
    /// Unusable parts: path and reason.
    pub(crate) problems: Vec<(String, String)>,
    /// Digest of the uncompressed bytes, if all were read.
    pub(crate) diff_id: Option<document::Digest>,
}

type StoredContent = Option<Arc<[u8]>>;

/// An entry of the drive or, if requested, the utility VM.
#[derive(Debug, Clone)]
pub(crate) struct LayerFile {
    pub(crate) path: Box<str>,
    pub(crate) is: LayerChange,
    pub(crate) attributes: u32,
    pub(crate) descriptor: Option<u32>,
    pub(crate) content: StoredContent,
}

impl LayerFile {
    /// Position in a merge: deletions are first; hard links are last, as one may come before its
    /// file.
    pub(crate) fn merge_pass(&self) -> u8 {
        match self.is {
            LayerChange::Deleted => 0,
            LayerChange::HardLink(_) => 2,
            _ => 1,
        }
    }
}

impl CollectedLayer {
    pub(crate) fn in_merge_order(&self) -> impl Iterator<Item = &LayerFile> {
        let of_pass = |pass| {
            let files = self.files.iter();
            files.filter(move |file| file.merge_pass() == pass)
        };
        (0..3).flat_map(of_pass)
    }
}

/// Reads a layer as far as the extent requires. The bytes can be compressed with gzip or zstd.
///
/// The input has to fail at its end unless the bytes match the layer's digest; the results of a
/// failed input are invalid. With [`Extent::Part`] the input may not be read to its end.
pub fn collect_layer(
    input: impl Read + Send,
    place: LayerPosition,
    extent: &Extent,
) -> Result<CollectedLayer, TarReadError> {
    let limits = layer_limits();
    let collector = Collector::new(place, extent);
    if collector.may_stop() {
        // No unpacking ahead: a thread that waits for more input could not be stopped.
        return collector.collect(LayerReader::new(input, limits)?);
    }
    let mut unpacked = UnpackedLayer::new(input, true).map_err(TarReadError::Io)?;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<io::Result<Vec<u8>>>(QUEUE_LENGTH);
        let unpacking = scope.spawn(move || {
            loop {
                let mut piece = Vec::new();
                let read = (&mut unpacked).take(PIECE).read_to_end(&mut piece);
                let is_last = !matches!(read, Ok(1..));
                if sender.send(read.map(|_| piece)).is_err() || is_last {
                    return unpacked;
                }
            }
        });
        let pieces = PieceReader::new(move || receiver.recv().ok().transpose());
        let mut found = collector.collect(LayerReader::new_uncompressed(pieces, limits))?;
        let unpacked = unpacking
            .join()
            .map_err(|_| TarReadError::Io(io::Error::other("a thread panicked")))?;
        found.diff_id = unpacked.finish()?;
        Ok(found)
    })
}

struct Collector {
    place: LayerPosition,
    scope: CollectedScope,
    utility_vm: bool,
    found: CollectedLayer,
    /// Numbers of the descriptors by their text.
    descriptors: HashMap<Vec<u8>, Option<u32>>,
    descriptor_memory: usize,
    content_memory: usize,
    hive_memory: usize,
}

impl Collector {
    fn new(place: LayerPosition, extent: &Extent) -> Self {
        Self {
            place,
            scope: extent.scope(),
            utility_vm: *extent == Extent::Listing { utility_vm: true },
            found: CollectedLayer::default(),
            descriptors: HashMap::new(),
            descriptor_memory: DESCRIPTOR_MEMORY,
            content_memory: CONTENT_MEMORY,
            hive_memory: HIVE_MEMORY,
        }
    }

    /// Returns true if everything can be found before the layer's end.
    fn may_stop(&self) -> bool {
        // Only the end shows what a layer does not delete.
        let contents = self.scope.contents.is_empty() || self.place == LayerPosition::Bottom;
        !self.scope.files && contents
    }

    fn collect(mut self, reader: LayerReader<'_>) -> Result<CollectedLayer, TarReadError> {
        let mut entries = LayerEntries::new(reader, Layout::Windows);
        let may_stop = self.may_stop();
        let mut among_hives = false;
        let mut outside = OutsideFiles::default();
        while let Some(entry) = entries.next_entry()? {
            outside.note(&entry.raw);
            let is_hives = below(&entry.raw.path, HIVES).is_some();
            if may_stop && among_hives && !is_hives && self.place == LayerPosition::Above {
                break;
            }
            among_hives |= is_hives;
            if let Some((hive, part)) = self.hive_of(&entry.raw) {
                self.keep_hive(hive, part, &entry, &mut entries)?;
            } else if let Some(path) = self.listed_path(&entry) {
                self.keep_file(path, entry, &mut entries)?;
            }
            if may_stop && self.place == LayerPosition::Bottom && self.is_all_found() {
                break;
            }
        }
        if let Some((first, problem)) = outside.problem().filter(|_| !may_stop) {
            self.problem(&first, problem);
        }
        Ok(self.found)
    }

    fn is_all_found(&self) -> bool {
        let has = |wanted: &Vec<u8>| {
            self.found.files.iter().any(|file| {
                let path = below(&file.path, FILES).filter(|_| file.content.is_some());
                path.is_some_and(|path| sort_key::for_layer_path(path) == *wanted)
            })
        };
        let hives = self.found.hives.values();
        hives.filter(|hive| hive.is_complete()).count() == self.scope.hives.len()
            && self.scope.contents.iter().all(has)
    }

    /// The hive that an entry contains or changes, or is a log of.
    fn hive_of(&self, entry: &LayerEntry) -> Option<(BaseHive, HivePart)> {
        if entry.kind != TarEntryKind::File {
            return None;
        }
        let mut hives = self.scope.hives.iter();
        hives.find_map(|&hive| Some((hive, hive.part(&entry.path, self.place)?)))
    }

    fn keep_hive(
        &mut self,
        hive: BaseHive,
        part: HivePart,
        entry: &Entry,
        entries: &mut LayerEntries<'_>,
    ) -> Result<(), TarReadError> {
        let mut hasher = Sha256::new();
        let mut packer = Packer::new().map_err(TarReadError::Io)?;
        let known = self.found.hives.get(&hive);
        let is_new = known.is_none_or(|known| known.lacks(part));
        let size = entry.raw.size;
        let keep = is_new && size <= Limits::default().file;
        let listed = self.listed_path(entry).filter(|_| self.scope.files);
        let mut failed = Ok(());
        entries.reader.each_piece(|piece| {
            if listed.is_some() {
                hasher.update(piece);
            }
            if keep && failed.is_ok() {
                failed = packer.add(piece);
            }
        })?;
        let (file, needs_logs) = failed
            .and_then(|()| packer.finish())
            .map_err(TarReadError::Io)?;
        let left = self.hive_memory.checked_sub(file.memory());
        if let Some(left) = left.filter(|_| keep) {
            self.hive_memory = left;
            let found = self.found.hives.entry(hive).or_default();
            found.insert(part, file, needs_logs);
        } else if is_new {
            let problem = format!("{size} bytes are too many for a hive");
            self.problem(&entry.raw.path, problem);
        }
        if let Some(path) = listed {
            let sha256 = hasher.finalize().into();
            let is = LayerChange::File(FileDigest { size, sha256 });
            self.push(path, is, None, entries);
        }
        Ok(())
    }

    /// Path in the layer of an entry whose file may be listed, below the usual name of its top
    /// folder.
    fn listed_path(&self, entry: &Entry) -> Option<String> {
        let mut tops = [FILES, UTILITY_VM]
            .into_iter()
            .take(1 + usize::from(self.utility_vm));
        match tops.find_map(|top| Some((top, below(entry.path(), top)?)))? {
            (_, "") if entry.change == Some(LayerChange::Deleted) => None,
            (top, "") => Some(top.to_owned()),
            (top, below) => Some([top, below].join("/")),
        }
    }

    fn keep_file(
        &mut self,
        path: String,
        entry: Entry,
        entries: &mut LayerEntries<'_>,
    ) -> Result<(), TarReadError> {
        if entry.leads_outside() {
            let problem = "its path leads outside the layer".to_owned();
            self.problem(&entry.raw.path, problem);
            return Ok(());
        }
        let on_drive = below(&path, FILES);
        let wants_content = on_drive.is_some_and(|path| self.wants_content(path));
        let mut content = None;
        let is = match entry.change {
            Some(LayerChange::Deleted) => LayerChange::Deleted,
            _ if !self.scope.files && !wants_content => return Ok(()),
            Some(LayerChange::Folder(())) => LayerChange::Folder(()),
            Some(LayerChange::Link(target)) => LayerChange::Link(target),
            Some(LayerChange::HardLink(target))
                if on_drive.is_some() && below(&target, FILES).is_none() =>
            {
                let problem = format!("hard link target {target:?} is not in Files");
                self.problem(&entry.raw.path, problem);
                return Ok(());
            }
            Some(LayerChange::HardLink(target)) => LayerChange::HardLink(target),
            Some(LayerChange::File(())) => {
                let digest;
                (digest, content) = self.file(entry.raw.size, wants_content, entries)?;
                LayerChange::File(digest)
            }
            None => return Ok(()),
        };
        self.push(path, is, content, entries);
        Ok(())
    }

    fn wants_content(&self, path: &str) -> bool {
        self.scope.has_contents()
            && (stored_content::has_stored_content(path)
                || stored_content::may_have_stored_content(path)
                || (!self.scope.contents.is_empty()
                    && self
                        .scope
                        .contents
                        .contains(&sort_key::for_layer_path(path))))
    }

    fn file(
        &mut self,
        size: u64,
        wants_content: bool,
        entries: &mut LayerEntries<'_>,
    ) -> Result<(FileDigest, StoredContent), TarReadError> {
        let mut hasher = Sha256::new();
        let memory = usize::try_from(size).unwrap_or(usize::MAX);
        let left = self.content_memory.checked_sub(memory);
        let mut content = match left {
            Some(left) if wants_content && size <= stored_content::LONGEST => {
                self.content_memory = left;
                Some(Vec::new())
            }
            _ => None,
        };
        entries.reader.each_piece(|piece| {
            hasher.update(piece);
            if let Some(content) = &mut content {
                content.extend_from_slice(piece);
            }
        })?;
        let sha256 = hasher.finalize().into();
        Ok((FileDigest { size, sha256 }, content.map(Arc::from)))
    }

    fn push(
        &mut self,
        path: String,
        is: LayerChange,
        content: StoredContent,
        entries: &LayerEntries<'_>,
    ) {
        let (usual, records) = match is {
            LayerChange::Folder(()) => (FOLDER_ATTRIBUTES, entries.records()),
            LayerChange::Link(_) => (0x400, entries.records()),
            LayerChange::File(_) | LayerChange::HardLink(_) => (0x20, entries.records()),
            LayerChange::Deleted => (0, WindowsRecords::default()),
        };
        let security = records.security;
        let descriptor = security.and_then(|record| self.descriptor(&path, record));
        self.found.files.push(LayerFile {
            path: path.into(),
            is,
            attributes: records.attributes.unwrap_or(usual),
            descriptor,
            content,
        });
    }

    /// Number of the descriptor with this text. Most texts repeat, so few are decoded more than
    /// once.
    fn descriptor(&mut self, path: &str, record: SecurityRecord<'_>) -> Option<u32> {
        if let Some(known) = self.descriptors.get(record.text) {
            return *known;
        }
        let number = record.read().and_then(|bytes| {
            self.descriptor_memory = self.descriptor_memory.checked_sub(2 * record.text.len())?;
            let number = u32::try_from(self.found.descriptors.len()).ok()?;
            self.found.descriptors.push(bytes.into());
            Some(number)
        });
        if number.is_none() {
            let problem = "its security descriptor cannot be read".to_owned();
            self.problem(path, problem);
        }
        self.descriptors.insert(record.text.to_vec(), number);
        number
    }

    fn problem(&mut self, place: &str, problem: String) {
        if self.found.problems.len() < MAX_PROBLEMS {
            self.found.problems.push((place.to_owned(), problem));
        }
    }
}
