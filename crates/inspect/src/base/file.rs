//! The file as a whole: a header, the blocks of its tables, and a trailer that locates them.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wincimg_common::files::{self, FileCache};
use wincimg_common::lock;
use wincimg_oci::document::Digest;

use super::error::{FORMAT, FactsError};
use super::fields::{Fields, put_bytes};
use super::hives::BaseHive;
use super::table::{Index, SharedBlock, compressor, unpack};

const MAGIC: &[u8; 12] = b"wincimg-base";
const END_MAGIC: &[u8; 8] = b"wincend\n";
/// The format version follows the magic bytes.
pub(super) const HEADER: usize = MAGIC.len() + 4;
/// Offset of the directory, its stored size, its unpacked size.
const TRAILER: usize = 8 + 4 + 4 + END_MAGIC.len();
/// Far larger than the directory of any base.
pub(super) const LARGEST_DIRECTORY: usize = 64 << 20;
/// Limit on cached unpacked blocks.
const BLOCK_CACHE_SIZE: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Keys,
    Files,
    Descriptors,
    Contents,
}

/// Directory of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FactsHeader {
    pub(super) base: Digest,
    pub(super) os_version: Option<String>,
    pub(super) collected: CollectedScope,
    pub(super) problems: Vec<BaseProblem>,
}

/// Extent of the collected facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CollectedScope {
    /// True if all facts were collected.
    pub(super) everything: bool,
    pub(super) hives: Vec<BaseHive>,
    pub(super) files: bool,
    /// Files whose content was requested by name, as the tables spell them.
    pub(super) contents: Vec<Vec<u8>>,
}

impl CollectedScope {
    /// Returns true if it has contents of files: then all those that builds may change, as IIS reads
    /// every file of a folder.
    pub(super) fn has_contents(&self) -> bool {
        self.everything || !self.contents.is_empty()
    }
}

/// An unusable part of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseProblem {
    /// The layer, counted from 1 at the bottom.
    pub layer: usize,
    /// A path in the layer, or a key.
    pub place: String,
    /// The problem.
    pub problem: String,
}

impl BaseProblem {
    /// Returns true if it is of a hive.
    pub fn is_of(&self, hive: BaseHive) -> bool {
        let place = self.place.as_str();
        let below = place.strip_prefix(hive.short_name());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
            || hive.base_files().contains(&place)
            || hive.delta_file() == place
    }
}

impl fmt::Display for BaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            layer,
            place,
            problem,
        } = self;
        write!(f, "layer {layer}: {place}: {problem}")
    }
}

pub(super) fn header() -> Vec<u8> {
    [MAGIC.as_slice(), &FORMAT.to_le_bytes()].concat()
}

/// Appends the directory and the trailer to a file that has its blocks.
pub(super) fn finish(
    file: &mut Vec<u8>,
    about: &FactsHeader,
    tables: &[Index; 4],
) -> Result<(), FactsError> {
    let mut directory = Vec::new();
    put_bytes(
        &mut directory,
        &serde_json::to_vec(about).map_err(std::io::Error::from)?,
    );
    for table in tables {
        table.encode(&mut directory);
    }
    let stored = compressor()?.compress(&directory)?;
    let place = file.len() as u64;
    file.extend_from_slice(&stored);
    file.extend(place.to_le_bytes());
    for size in [stored.len(), directory.len()] {
        let size = u32::try_from(size).map_err(|_| std::io::ErrorKind::FileTooLarge);
        file.extend(size.map_err(std::io::Error::from)?.to_le_bytes());
    }
    file.extend_from_slice(END_MAGIC);
    Ok(())
}

#[derive(Debug)]
enum Storage {
    Memory(Bytes),
    File(Mutex<File>),
}

impl Storage {
    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>, FactsError> {
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = start.saturating_add(size);
                let part = bytes.get(start..end);
                Ok(part.ok_or(FactsError::Damaged("it is truncated"))?.to_vec())
            }
            Self::File(file) => {
                let mut file = lock(file);
                file.seek(SeekFrom::Start(offset))?;
                let mut part = Vec::new();
                (&mut *file).take(size as u64).read_to_end(&mut part)?;
                if part.len() < size {
                    return Err(FactsError::Damaged("it is truncated"));
                }
                Ok(part)
            }
        }
    }
}

/// Facts about one base: its registry, its files and their descriptors, with all layers merged.
///
/// Reads only the parts that a query requires. Threads may share it.
#[derive(Debug)]
pub struct BaseFacts {
    bytes: Storage,
    /// A file of the cache, which is removed once an answer shows that it is damaged.
    path: Option<PathBuf>,
    pub(super) about: FactsHeader,
    pub(super) tables: [Index; 4],
    /// Unpacked blocks, the most recently used last.
    blocks: Mutex<Vec<(Table, usize, SharedBlock)>>,
}

impl BaseFacts {
    /// Opens a file of the cache without reading all of it. A damaged one is removed once that shows.
    pub fn open(path: &Path) -> Result<Self, FactsError> {
        let file = files::open(path)?;
        let size = file.metadata()?.len();
        let file = Self::new(Storage::File(Mutex::new(file)), size)?;
        let path = Some(path.to_owned());
        Ok(Self { path, ..file })
    }

    /// Reads facts from bytes.
    pub fn read(bytes: impl Into<Bytes>) -> Result<Self, FactsError> {
        let bytes: Bytes = bytes.into();
        let size = bytes.len() as u64;
        Self::new(Storage::Memory(bytes), size)
    }

    fn new(bytes: Storage, size: u64) -> Result<Self, FactsError> {
        let end = size
            .checked_sub(TRAILER as u64)
            .filter(|end| *end >= HEADER as u64)
            .ok_or(FactsError::NotFacts)?;
        let header = bytes.read(0, HEADER)?;
        let mut fields = Fields::new(&header);
        if fields.array()? != *MAGIC {
            return Err(FactsError::NotFacts);
        }
        match u32::from_le_bytes(fields.array()?) {
            FORMAT => {}
            other => return Err(FactsError::Format(other)),
        }
        let trailer = bytes.read(end, TRAILER)?;
        let mut fields = Fields::new(&trailer);
        let place = u64::from_le_bytes(fields.array()?);
        let stored = u32::from_le_bytes(fields.array()?);
        let raw = u32::from_le_bytes(fields.array()?) as usize;
        let fits = place.checked_add(stored.into()) == Some(end) && raw <= LARGEST_DIRECTORY;
        if fields.array()? != *END_MAGIC || !fits {
            return Err(FactsError::Damaged("invalid trailer"));
        }
        let directory = unpack(&bytes.read(place, stored as usize)?, raw)?;
        let mut fields = Fields::new(&directory);
        let about = serde_json::from_slice(fields.bytes()?)
            .map_err(|_| FactsError::Damaged("invalid directory"))?;
        let mut index = || Index::decode(&mut fields, place);
        let tables = [index()?, index()?, index()?, index()?];
        Ok(Self {
            bytes,
            path: None,
            about,
            tables,
            blocks: Mutex::default(),
        })
    }

    fn block(&self, table: Table, block: usize) -> Result<Option<SharedBlock>, FactsError> {
        let index = &self.tables[table as usize];
        let Some(place) = index.0.get(block) else {
            return Ok(None);
        };
        let mut kept = lock(&self.blocks);
        let known = kept
            .iter()
            .rposition(|(of, number, _)| (*of, *number) == (table, block));
        if let Some(at) = known {
            let found = kept.remove(at);
            let shared = Arc::clone(&found.2);
            kept.push(found);
            return Ok(Some(shared));
        }
        drop(kept);
        let stored = self.bytes.read(place.offset, place.stored)?;
        let shared = Arc::new(index.read(block, &stored)?);
        let mut kept = lock(&self.blocks);
        kept.push((table, block, Arc::clone(&shared)));
        let mut size: usize = kept.iter().map(|(_, _, block)| block.size()).sum();
        while size > BLOCK_CACHE_SIZE && kept.len() > 1 {
            size -= kept.remove(0).2.size();
        }
        Ok(Some(shared))
    }

    /// The entry with exactly this key.
    pub(super) fn get<T>(
        &self,
        table: Table,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, FactsError>,
    ) -> Result<Option<T>, FactsError> {
        let found = self
            .seek(table, key)
            .and_then(|cursor| match cursor.entry() {
                Some((found, value)) if found == key => read(value).map(Some),
                _ => Ok(None),
            });
        self.checked(found)
    }

    /// Passes on an answer; after an error, a file of the cache is removed.
    pub(super) fn checked<T>(&self, answer: Result<T, FactsError>) -> Result<T, FactsError> {
        // The file may be whole if it only cannot be read at the moment.
        let is_bad = matches!(&answer, Err(error) if !matches!(error, FactsError::Io(_)));
        if let Some(path) = self.path.as_ref().filter(|_| is_bad) {
            FileCache::remove(path);
        }
        answer
    }

    /// The first entry not before the key.
    pub(super) fn seek(&self, table: Table, key: &[u8]) -> Result<Cursor<'_>, FactsError> {
        let number = self.tables[table as usize].find(key);
        let block = self.block(table, number)?;
        let entry = block.as_ref().map_or(0, |block| block.seek(key));
        let mut cursor = Cursor {
            file: self,
            table,
            number,
            block,
            entry,
        };
        cursor.skip_finished_block()?;
        Ok(cursor)
    }
}

/// A position in a table. Its entries always ascend.
pub(super) struct Cursor<'f> {
    pub(super) file: &'f BaseFacts,
    table: Table,
    number: usize,
    block: Option<SharedBlock>,
    entry: usize,
}

impl Cursor<'_> {
    pub(super) fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.block.as_ref()?.entry(self.entry)
    }

    pub(super) fn advance(&mut self) -> Result<(), FactsError> {
        self.entry += 1;
        self.skip_finished_block()
    }

    /// Moves to the next block at the end of this one.
    fn skip_finished_block(&mut self) -> Result<(), FactsError> {
        while let Some(block) = &self.block
            && block.entry(self.entry).is_none()
        {
            self.number += 1;
            self.entry = 0;
            self.block = self.file.block(self.table, self.number)?;
        }
        Ok(())
    }
}

pub(super) fn descriptor_key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}
