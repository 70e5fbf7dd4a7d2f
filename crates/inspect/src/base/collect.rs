//! Reads one layer of a base. Layers are independent of each other: they can be read in any order
//! and in parallel.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use wincimg_layer::{
    LayerEntry, LayerReader, Limits, TarEntryKind, TarReadError, Whiteout, decompress,
};
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};
use wincimg_windows::base_contents::BaseRequirements;

use super::hives::{BaseHive, HivePart};
use super::packed_hive::{PackedHive, Packer};
use super::{sort_key, stored_content};
use crate::stream::layer_limits;

/// Limit on the compressed hives of a layer.
const HIVE_MEMORY: usize = 512 << 20;
/// Limit on names and descriptors: several times those of the largest base.
const NAME_MEMORY: usize = 1 << 30;
/// Memory of an entry besides its name.
const ENTRY_MEMORY: usize = 256;
/// Limit on the problems of a layer.
const MAX_PROBLEMS: usize = 100;
/// Limit on contents that are held until it is known whether they are needed.
const CONTENT_MEMORY: usize = 32 << 20;
/// Size of an unpacked piece, and number of pieces that may wait.
const PIECE: u64 = 128 << 10;
const WAITING: usize = 8;

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

/// Position of a layer in its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerPosition {
    /// Windows itself.
    Bottom,
    /// A layer with changes to those below.
    Above,
}

/// Contents of one layer.
#[derive(Debug, Clone, Default)]
pub struct CollectedLayer {
    pub(crate) files: Vec<LayerFile>,
    /// Files of the utility VM, if requested: paths below `UtilityVM`.
    pub(crate) utility_vm: Vec<LayerFile>,
    pub(crate) descriptors: Vec<Vec<u8>>,
    pub(crate) hives: BTreeMap<BaseHive, PackedHive>,
    /// Unusable parts: path and reason.
    pub(crate) problems: Vec<(String, String)>,
}

/// An entry below `Files`.
#[derive(Debug, Clone)]
pub(crate) struct LayerFile {
    pub(crate) path: Box<str>,
    pub(crate) is: LayerFileKind,
    pub(crate) attributes: u32,
    pub(crate) descriptor: Option<u32>,
}

#[derive(Debug, Clone)]
pub(crate) enum LayerFileKind {
    Folder,
    File {
        size: u64,
        sha256: [u8; 32],
        content: Option<Arc<[u8]>>,
    },
    /// A hard link: the target's path below `Files`; in the utility VM, in the layer.
    HardLink(Box<str>),
    Link {
        target: Option<Box<str>>,
        is_junction: bool,
    },
    Deleted,
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
    let unpacked = decompress(input).map_err(TarReadError::Io)?;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING);
        scope.spawn(move || {
            let mut unpacked = unpacked;
            loop {
                let mut piece = Vec::new();
                let read = (&mut unpacked).take(PIECE).read_to_end(&mut piece);
                let is_last = !matches!(read, Ok(1..));
                if sender.send(read.map(|_| piece)).is_err() || is_last {
                    return;
                }
            }
        });
        collector.collect(LayerReader::new_uncompressed(
            ChannelReader::new(receiver),
            limits,
        ))
    })
}

const TOO_MANY_NAMES: TarReadError =
    TarReadError::Malformed("it has more names and descriptors than any version of Windows");

/// Reader of the pieces that another thread unpacks. An empty piece is the end.
struct ChannelReader {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl ChannelReader {
    fn new(pieces: Receiver<io::Result<Vec<u8>>>) -> Self {
        Self {
            pieces,
            piece: Vec::new(),
            at: 0,
        }
    }
}

impl Read for ChannelReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            self.piece = match self.pieces.recv() {
                Ok(piece) => piece?,
                Err(_) => Vec::new(),
            };
            self.at = 0;
        }
        let rest = &self.piece[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Part of a layer whose files are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LayerPart {
    Drive,
    UtilityVm,
}

struct Collector {
    place: LayerPosition,
    hives: Vec<BaseHive>,
    files: bool,
    /// Files whose content is requested by name, as the tables spell them.
    contents: Vec<Vec<u8>>,
    everything: bool,
    utility_vm: bool,
    part: LayerPart,
    found: CollectedLayer,
    /// Numbers of the descriptors by their text.
    descriptors: HashMap<Vec<u8>, Option<u32>>,
    name_memory: usize,
    content_memory: usize,
    hive_memory: usize,
}

impl Collector {
    fn new(place: LayerPosition, extent: &Extent) -> Self {
        let (hives, files, contents) = match extent {
            Extent::Everything | Extent::Listing { .. } => {
                (BaseHive::ALL.to_vec(), true, Vec::new())
            }
            Extent::Part(needs) => (
                needs
                    .hives
                    .iter()
                    .map(|&root| BaseHive::from_root(root))
                    .collect(),
                needs.files,
                needs.contents.iter().map(sort_key::for_file).collect(),
            ),
        };
        Self {
            place,
            hives,
            files,
            contents,
            everything: *extent == Extent::Everything,
            utility_vm: *extent == Extent::Listing { utility_vm: true },
            part: LayerPart::Drive,
            found: CollectedLayer::default(),
            descriptors: HashMap::new(),
            name_memory: NAME_MEMORY,
            content_memory: CONTENT_MEMORY,
            hive_memory: HIVE_MEMORY,
        }
    }

    /// Returns true if everything can be found before the layer's end.
    fn may_stop(&self) -> bool {
        // Only the end shows what a layer does not delete.
        let contents = self.contents.is_empty() || self.place == LayerPosition::Bottom;
        !self.files && contents
    }

    fn collect(mut self, mut reader: LayerReader<'_>) -> Result<CollectedLayer, TarReadError> {
        let may_stop = self.may_stop();
        let mut among_hives = false;
        while let Some(entry) = reader.next_entry()? {
            let taken = entry.path.len() + ENTRY_MEMORY;
            self.name_memory = self.name_memory.checked_sub(taken).ok_or(TOO_MANY_NAMES)?;
            let (top, below) = entry.path.split_once('/').unwrap_or((&entry.path, ""));
            let is_hives = top.eq_ignore_ascii_case("Hives");
            if may_stop && among_hives && !is_hives && self.place == LayerPosition::Above {
                break;
            }
            among_hives |= is_hives;
            if let Some((hive, part)) = self.hive_of(&entry) {
                self.keep_hive(hive, part, &entry, &mut reader)?;
            } else if top.eq_ignore_ascii_case("Files") {
                let below = below.to_owned();
                self.keep_file(&entry, &below, &mut reader)?;
            } else if self.utility_vm && top.eq_ignore_ascii_case("UtilityVM") {
                let below = below.to_owned();
                self.part = LayerPart::UtilityVm;
                self.keep_file(&entry, &below, &mut reader)?;
                self.part = LayerPart::Drive;
            }
            if may_stop && self.place == LayerPosition::Bottom && self.is_all_found() {
                break;
            }
        }
        Ok(self.found)
    }

    fn is_all_found(&self) -> bool {
        let has = |wanted: &Vec<u8>| {
            self.found.files.iter().any(|file| {
                matches!(
                    file.is,
                    LayerFileKind::File {
                        content: Some(_),
                        ..
                    }
                ) && sort_key::for_layer_path(&file.path) == *wanted
            })
        };
        let hives = self.found.hives.values();
        hives.filter(|hive| hive.is_complete()).count() == self.hives.len()
            && self.contents.iter().all(has)
    }

    /// The hive that an entry contains or changes, or is a log of.
    fn hive_of(&self, entry: &LayerEntry) -> Option<(BaseHive, HivePart)> {
        if entry.kind != TarEntryKind::File {
            return None;
        }
        let part = |file: &str| HivePart::from_path(&entry.path, file);
        self.hives.iter().find_map(|&hive| {
            let part = match self.place {
                LayerPosition::Bottom => hive.base_files().into_iter().find_map(part),
                LayerPosition::Above => part(hive.delta_file()),
            };
            Some((hive, part?))
        })
    }

    fn keep_hive(
        &mut self,
        hive: BaseHive,
        part: HivePart,
        entry: &LayerEntry,
        reader: &mut LayerReader<'_>,
    ) -> Result<(), TarReadError> {
        let mut hasher = Sha256::new();
        let mut packer = Packer::new().map_err(TarReadError::Io)?;
        let known = self.found.hives.get(&hive);
        let is_new = known.is_none_or(|known| known.lacks(part));
        let fits = entry.size <= Limits::default().file;
        let keep = is_new && fits;
        let is_listed = self.files && !entry.path.to_ascii_lowercase().starts_with("hives/");
        let mut failed = Ok(());
        reader.each_piece(|piece| {
            if is_listed {
                hasher.update(piece);
            }
            if keep && failed.is_ok() {
                failed = packer.add(piece);
            }
        })?;
        let file = failed
            .and_then(|()| packer.finish())
            .map_err(TarReadError::Io)?;
        let left = self.hive_memory.checked_sub(file.memory());
        if let Some(left) = left.filter(|_| keep) {
            self.hive_memory = left;
            let found = self.found.hives.entry(hive).or_default();
            found.insert(part, file);
        } else if is_new {
            let problem = format!("{} bytes are too many for a hive", entry.size);
            self.problem(&entry.path, problem);
        }
        if let Some((_, below)) = entry.path.split_once('/')
            && is_listed
        {
            let is = LayerFileKind::File {
                size: entry.size,
                sha256: hasher.finalize().into(),
                content: None,
            };
            self.push(below, is, reader);
        }
        Ok(())
    }

    fn keep_file(
        &mut self,
        entry: &LayerEntry,
        path: &str,
        reader: &mut LayerReader<'_>,
    ) -> Result<(), TarReadError> {
        if path.split('/').any(|name| matches!(name, "." | "..")) {
            self.problem(&entry.path, "its path leads outside the layer".to_owned());
            return Ok(());
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(mark) = Whiteout::from_name(name) {
            if let Whiteout::Deletion(deleted) = mark {
                let path = [folder, deleted].join("/");
                self.push(path.trim_start_matches('/'), LayerFileKind::Deleted, reader);
            }
            return Ok(());
        }
        let wants_content = self.wants_content(path);
        if !self.files && !wants_content {
            return Ok(());
        }
        let is = match entry.kind {
            TarEntryKind::Directory => LayerFileKind::Folder,
            TarEntryKind::Symlink => LayerFileKind::Link {
                target: entry.target.as_deref().map(Box::from),
                is_junction: reader.pax().any(|(key, _)| key == b"MSWINDOWS.mountpoint"),
            },
            TarEntryKind::HardLink => {
                let target = entry.target.as_deref().unwrap_or_default();
                match target.split_once('/') {
                    _ if self.part == LayerPart::UtilityVm => {
                        LayerFileKind::HardLink(target.into())
                    }
                    Some((top, below)) if top.eq_ignore_ascii_case("Files") => {
                        LayerFileKind::HardLink(below.into())
                    }
                    _ => {
                        let problem = format!("hard link target {target:?} is not in Files");
                        self.problem(&entry.path, problem);
                        return Ok(());
                    }
                }
            }
            TarEntryKind::File => self.file(entry, wants_content, reader)?,
            TarEntryKind::Other => return Ok(()),
        };
        self.push(path, is, reader);
        Ok(())
    }

    fn wants_content(&self, path: &str) -> bool {
        let by_pattern = self.everything && stored_content::has_stored_content(path);
        let looks_for_contents = self.everything || !self.contents.is_empty();
        by_pattern
            || (looks_for_contents && stored_content::may_have_stored_content(path))
            || (!self.contents.is_empty()
                && self.contents.contains(&sort_key::for_layer_path(path)))
    }

    fn file(
        &mut self,
        entry: &LayerEntry,
        wants_content: bool,
        reader: &mut LayerReader<'_>,
    ) -> Result<LayerFileKind, TarReadError> {
        let mut hasher = Sha256::new();
        let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
        let left = self.content_memory.checked_sub(size);
        let mut content = match left {
            Some(left) if wants_content && entry.size <= stored_content::LONGEST => {
                self.content_memory = left;
                Some(Vec::new())
            }
            _ => None,
        };
        reader.each_piece(|piece| {
            hasher.update(piece);
            if let Some(content) = &mut content {
                content.extend_from_slice(piece);
            }
        })?;
        Ok(LayerFileKind::File {
            size: entry.size,
            sha256: hasher.finalize().into(),
            content: content.map(Arc::from),
        })
    }

    fn push(&mut self, path: &str, is: LayerFileKind, reader: &LayerReader<'_>) {
        let mut attributes = None;
        let mut descriptor = None;
        for (key, value) in reader.pax() {
            match key {
                b"MSWINDOWS.fileattr" => {
                    let text = std::str::from_utf8(value).ok();
                    attributes = text.and_then(|text| text.parse().ok());
                }
                b"MSWINDOWS.rawsd" => descriptor = self.descriptor(path, value, raw),
                b"MSWINDOWS.sd" if descriptor.is_none() => {
                    descriptor = self.descriptor(path, value, sddl);
                }
                _ => {}
            }
        }
        let attributes = attributes.unwrap_or(match is {
            LayerFileKind::Folder => 0x10,
            LayerFileKind::Link { .. } => 0x400,
            LayerFileKind::File { .. } | LayerFileKind::HardLink(_) | LayerFileKind::Deleted => {
                0x20
            }
        });
        let files = if self.part == LayerPart::UtilityVm {
            &mut self.found.utility_vm
        } else {
            &mut self.found.files
        };
        files.push(LayerFile {
            path: path.into(),
            is,
            attributes,
            descriptor,
        });
    }

    /// Number of the descriptor with this text. Most texts repeat, so few are decoded more than
    /// once.
    fn descriptor(
        &mut self,
        path: &str,
        text: &[u8],
        read: fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Option<u32> {
        if let Some(known) = self.descriptors.get(text) {
            return *known;
        }
        let number = read(text).and_then(|bytes| {
            self.name_memory = self.name_memory.checked_sub(2 * text.len())?;
            let number = u32::try_from(self.found.descriptors.len()).ok()?;
            self.found.descriptors.push(bytes);
            Some(number)
        });
        if number.is_none() {
            let problem = "its security descriptor cannot be read".to_owned();
            self.problem(&format!("Files/{path}"), problem);
        }
        self.descriptors.insert(text.to_vec(), number);
        number
    }
}

impl Collector {
    fn problem(&mut self, place: &str, problem: String) {
        if self.found.problems.len() < MAX_PROBLEMS {
            self.found.problems.push((place.to_owned(), problem));
        }
    }
}

fn raw(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

fn sddl(text: &[u8]) -> Option<Vec<u8>> {
    let descriptor: SecurityDescriptor = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(descriptor.to_bytes(DescriptorLayout::OwnerFirst))
}
