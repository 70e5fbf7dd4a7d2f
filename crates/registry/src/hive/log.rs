//! The two formats of a hive's log files, from the public "Windows registry file format
//! specification".
//!
//! Both begin with the hive's base block. Up to Windows 8 a log has the pages of one write to the
//! hive, and a bitmap (`DIRT`) with their places. Since Windows 8.1 it has an entry (`HvLE`) for each
//! change, with hashes, and the hive itself is written later.

use super::format::{PAGE, base, checksum, number};
use super::marvin;

/// The unit of logs: their base block, their entries and an old log's pages.
pub(super) const SECTOR: usize = 512;
/// The size of an entry's header, and how much of it the second hash is of.
pub(super) const ENTRY_HEADER: usize = 40;
pub(super) const HASHED_HEADER: usize = 32;
/// The size of a page's place in an entry.
pub(super) const REFERENCE: usize = 8;

/// File types in a log's base block.
pub(super) mod file_type {
    pub(in super::super) const PRIMARY: u32 = 0;
    pub(in super::super) const OLD_LOGS: [u32; 2] = [1, 2];
    pub(in super::super) const NEW_LOG: u32 = 6;
}

/// The part of a base block that logs repeat.
#[derive(Clone, Copy)]
pub(super) struct BaseBlock<'f>(pub(super) &'f [u8; SECTOR]);

impl<'f> BaseBlock<'f> {
    /// The base block at the start of a file, whether its checksum holds or not.
    pub(super) fn new(file: &'f [u8]) -> Option<Self> {
        let block = file.first_chunk()?;
        block.starts_with(b"regf").then_some(Self(block))
    }

    pub(super) fn number(self, at: usize) -> u32 {
        number(self.0, at)
    }

    pub(super) fn is_sealed(self) -> bool {
        cfg!(fuzzing) || checksum(self.0) == self.number(base::CHECKSUM)
    }

    /// True if no write was under way.
    pub(super) fn is_settled(self) -> bool {
        self.number(base::PRIMARY_SEQUENCE) == self.number(base::SECONDARY_SEQUENCE)
    }

    pub(super) fn last_written(self) -> u64 {
        let [low, high] = [0, 4].map(|at| self.number(base::TIMESTAMP + at));
        u64::from(high) << 32 | u64::from(low)
    }
}

pub(super) struct Log<'f> {
    pub(super) block: BaseBlock<'f>,
    pub(super) changes: LoggedChanges<'f>,
}

/// The changes in a log file, by its format.
pub(super) enum LoggedChanges<'f> {
    /// All pages of one write.
    Old(Vec<Page<'f>>),
    /// The sectors with entries.
    New(&'f [u8]),
}

/// A page and its place in the bins.
pub(super) type Page<'f> = (usize, &'f [u8]);

impl<'f> Log<'f> {
    /// Reads a log; none if it is damaged, or an old one that lacks pages.
    pub(super) fn read(file: &'f [u8]) -> Option<Self> {
        let block = BaseBlock::new(file).filter(|it| it.is_sealed() && it.is_settled())?;
        let bins_size = block.number(base::BINS_SIZE);
        if !is_bins_size(bins_size) {
            return None;
        }
        let changes = match block.number(base::FILE_TYPE) {
            file_type::NEW_LOG => LoggedChanges::New(&file[SECTOR..]),
            kind if file_type::OLD_LOGS.contains(&kind) => {
                LoggedChanges::Old(dirty_pages(&file[SECTOR..], bins_size as usize)?)
            }
            _ => return None,
        };
        Some(Self { block, changes })
    }

    pub(super) fn is_new(&self) -> bool {
        matches!(self.changes, LoggedChanges::New(_))
    }

    pub(super) fn sequence(&self) -> u32 {
        self.block.number(base::PRIMARY_SEQUENCE)
    }

    /// The entries of a new log up to the first that does not follow.
    pub(super) fn entries(&self) -> Entries<'f> {
        let rest = match self.changes {
            LoggedChanges::New(sectors) => sectors,
            LoggedChanges::Old(_) => &[],
        };
        let next = self.sequence();
        Entries { rest, next }
    }
}

/// The pages of an old log, from what is after its base block; none unless all of them are there.
fn dirty_pages(sectors: &[u8], bins_size: usize) -> Option<Vec<Page<'_>>> {
    const SIGNATURE: &[u8] = b"DIRT";
    let length = bins_size / SECTOR / 8;
    let bitmap = sectors.strip_prefix(SIGNATURE)?.get(..length)?;
    let start = (SIGNATURE.len() + length).next_multiple_of(SECTOR);
    let (stored, _) = sectors.get(start..)?.as_chunks::<SECTOR>();
    let mut stored = stored.iter();
    let mut pages = Vec::new();
    for (at, &byte) in bitmap.iter().enumerate() {
        for bit in (0..8).filter(|bit| byte & 1 << bit != 0) {
            pages.push(((at * 8 + bit) * SECTOR, stored.next()?.as_slice()));
        }
    }
    Some(pages)
}

/// True for a size that bins can have.
pub(super) fn is_bins_size(size: u32) -> bool {
    size > 0 && (size as usize).is_multiple_of(PAGE)
}

pub(super) struct Entries<'f> {
    rest: &'f [u8],
    /// Sequence number of the next entry.
    next: u32,
}

/// A change of a hive.
pub(super) struct LogEntry<'f> {
    pub(super) sequence: u32,
    pub(super) flags: u32,
    pub(super) bins_size: u32,
    pub(super) pages: Vec<Page<'f>>,
}

impl<'f> Iterator for Entries<'f> {
    type Item = LogEntry<'f>;

    fn next(&mut self) -> Option<LogEntry<'f>> {
        let header: &[u8; ENTRY_HEADER] = self.rest.first_chunk()?;
        let size = word(header, 4)? as usize;
        let whole = self.rest.get(..size)?;
        let is_sound = header.starts_with(b"HvLE")
            && size.is_multiple_of(SECTOR)
            && size > ENTRY_HEADER
            && word(header, 12) == Some(self.next)
            && (cfg!(fuzzing)
                || marvin::hash(&header[..HASHED_HEADER]) == hash_at(header, 32)?
                    && marvin::hash(&whole[ENTRY_HEADER..]) == hash_at(header, 24)?);
        let entry = is_sound.then(|| LogEntry::read(whole)).flatten()?;
        self.rest = &self.rest[size..];
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }
}

impl Entries<'_> {
    /// True if the log goes on with an entry that is not whole.
    pub(super) fn are_torn(&self) -> bool {
        let is_next = self.rest.starts_with(b"HvLE")
            && word(self.rest, 12).is_none_or(|number| number == self.next);
        is_next || !self.rest.len().is_multiple_of(SECTOR)
    }
}

impl<'f> LogEntry<'f> {
    fn read(whole: &'f [u8]) -> Option<Self> {
        let bins_size = word(whole, 16).filter(|&size| is_bins_size(size))?;
        let count = word(whole, 20)? as usize;
        let references = whole
            .get(ENTRY_HEADER..)?
            .get(..count.checked_mul(REFERENCE)?)?;
        let mut rest = &whole[ENTRY_HEADER + references.len()..];
        let mut pages = Vec::with_capacity(count);
        for reference in references.chunks_exact(REFERENCE) {
            let (place, size) = (word(reference, 0)? as usize, word(reference, 4)? as usize);
            let page = rest.get(..size)?;
            if place.checked_add(size)? > bins_size as usize {
                return None;
            }
            rest = &rest[size..];
            pages.push((place, page));
        }
        Some(Self {
            sequence: word(whole, 12)?,
            flags: word(whole, 8)?,
            bins_size,
            pages,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

fn hash_at(bytes: &[u8], at: usize) -> Option<u64> {
    let hash = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*hash))
}
