//! A sorted table in compressed blocks, with an index of their first keys.

use std::ops::Range;
use std::sync::Arc;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use super::error::FactsError;
use super::fields::{Fields, put_bytes, put_number};

/// Size at which a block is closed, so that a look-up unpacks little.
const BLOCK: usize = 48 << 10;
/// Limit on one entry; a block with a larger one is refused.
pub(super) const LARGEST_ENTRY: usize = 32 << 20;
const LARGEST_BLOCK: usize = BLOCK + LARGEST_ENTRY + 64;
/// zstd level: twice the work of the default saves a tenth.
const LEVEL: i32 = 6;

/// Creates the compressor of blocks.
pub(super) fn compressor() -> Result<Compressor<'static>, FactsError> {
    let mut compressor = Compressor::new(LEVEL)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    Ok(compressor)
}

/// Decompresses bytes of [`compressor`], which must have exactly this size.
pub(super) fn unpack(stored: &[u8], raw: usize) -> Result<Vec<u8>, FactsError> {
    let unpacked = Decompressor::new()?.decompress(stored, raw);
    unpacked
        .ok()
        .filter(|bytes| bytes.len() == raw)
        .ok_or(FactsError::Damaged("a part cannot be decompressed"))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockLocation {
    /// Not after the block's first key, and after the last one of the block before.
    pub(super) from: Vec<u8>,
    pub(super) offset: u64,
    pub(super) stored: usize,
    pub(super) raw: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Index(pub(super) Vec<BlockLocation>);

impl Index {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.0.len() as u64);
        for place in &self.0 {
            put_bytes(out, &place.from);
            put_number(out, place.offset);
            put_number(out, place.stored as u64);
            put_number(out, place.raw as u64);
        }
    }

    /// Reads an index of blocks that end before `end` in their file.
    pub(super) fn decode(fields: &mut Fields<'_>, end: u64) -> Result<Self, FactsError> {
        let mut places: Vec<BlockLocation> = Vec::new();
        for _ in 0..fields.number()? {
            let from = fields.bytes()?.to_vec();
            let place = BlockLocation {
                from,
                offset: fields.number()?,
                stored: fields.size()?,
                raw: fields.size()?,
            };
            let inside = place.offset.checked_add(place.stored as u64);
            let ascends = places.last().is_none_or(|last| last.from < place.from);
            if inside.is_none_or(|inside| inside > end) || !ascends || place.raw > LARGEST_BLOCK {
                return Err(FactsError::Damaged("an index has an invalid block"));
            }
            places.push(place);
        }
        Ok(Self(places))
    }

    /// The block that contains the key, if any.
    pub(super) fn find(&self, key: &[u8]) -> usize {
        let behind = self.0.partition_point(|place| place.from.as_slice() <= key);
        behind.saturating_sub(1)
    }

    /// Reads a block and checks it against the index.
    pub(super) fn read(&self, block: usize, stored: &[u8]) -> Result<Block, FactsError> {
        let place = self.0.get(block);
        let place = place.ok_or(FactsError::Damaged("a block is missing"))?;
        let block_read = Block::decode(unpack(stored, place.raw)?)?;
        let within = |key: &[u8]| {
            let before_next = |next: &BlockLocation| key < next.from.as_slice();
            place.from.as_slice() <= key && self.0.get(block + 1).is_none_or(before_next)
        };
        let (first, last) = (block_read.entries.first(), block_read.entries.last());
        if [first, last]
            .into_iter()
            .flatten()
            .all(|entry| within(block_read.key_of(entry)))
        {
            Ok(block_read)
        } else {
            Err(FactsError::Damaged("a block has keys of another block"))
        }
    }
}

/// A decompressed block: its entries ascend.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    entries: Vec<TableEntry>,
}

#[derive(Debug)]
struct TableEntry {
    key: Range<u32>,
    value: Range<u32>,
}

impl Block {
    fn decode(bytes: Vec<u8>) -> Result<Self, FactsError> {
        let mut entries = Vec::new();
        let mut fields = Fields::new(&bytes);
        let mut last: Option<&[u8]> = None;
        while !fields.is_empty() {
            let (key, value) = (fields.span()?, fields.span()?);
            let bytes = &bytes[key.start as usize..key.end as usize];
            if last.is_some_and(|last| last >= bytes) {
                return Err(FactsError::Damaged("a block is not sorted"));
            }
            last = Some(bytes);
            entries.push(TableEntry { key, value });
        }
        Ok(Self { bytes, entries })
    }

    fn key_of(&self, entry: &TableEntry) -> &[u8] {
        &self.bytes[entry.key.start as usize..entry.key.end as usize]
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<TableEntry>()
    }

    /// Number of the first entry not before the key.
    pub(super) fn seek(&self, key: &[u8]) -> usize {
        self.entries
            .partition_point(|entry| self.key_of(entry) < key)
    }

    pub(super) fn entry(&self, number: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(number)?;
        let value = &self.bytes[entry.value.start as usize..entry.value.end as usize];
        Some((self.key_of(entry), value))
    }
}

/// Appends sorted entries to a file in blocks.
pub(super) struct TableWriter<'f> {
    file: &'f mut Vec<u8>,
    compressor: Compressor<'static>,
    places: Vec<BlockLocation>,
    block: Vec<u8>,
    /// First key of the current block.
    from: Vec<u8>,
    last: Option<Vec<u8>>,
}

impl<'f> TableWriter<'f> {
    pub(super) fn new(file: &'f mut Vec<u8>) -> Result<Self, FactsError> {
        Ok(Self {
            file,
            compressor: compressor()?,
            places: Vec::new(),
            block: Vec::with_capacity(BLOCK),
            from: Vec::new(),
            last: None,
        })
    }

    /// Adds an entry; false if it is not after the last one or is too large.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<bool, FactsError> {
        let follows = self.last.as_deref().is_none_or(|last| last < key);
        if !follows || key.len() + value.len() > LARGEST_ENTRY {
            return Ok(false);
        }
        if self.block.len() >= BLOCK {
            self.close()?;
        }
        if self.block.is_empty() {
            self.from = between(self.last.as_deref().unwrap_or_default(), key);
        }
        put_bytes(&mut self.block, key);
        put_bytes(&mut self.block, value);
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(true)
    }

    fn close(&mut self) -> Result<(), FactsError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let stored = self.compressor.compress(&self.block)?;
        self.places.push(BlockLocation {
            from: std::mem::take(&mut self.from),
            offset: self.file.len() as u64,
            stored: stored.len(),
            raw: self.block.len(),
        });
        self.file.extend_from_slice(&stored);
        self.block.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Index, FactsError> {
        self.close()?;
        Ok(Index(self.places))
    }
}

/// The shortest key after `last` and not after `next`.
fn between(last: &[u8], next: &[u8]) -> Vec<u8> {
    let common = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    next[..next.len().min(common + 1)].to_vec()
}

/// A block that several look-ups share.
pub(super) type SharedBlock = Arc<Block>;
