//! Reader of hives.

use std::borrow::Cow;
use std::collections::HashMap;

use super::bins::Cells;
use super::format::{
    DATA_IN_PLACE, KEY_HEADER, MAX_DEPTH, NULL_OFFSET, PAGE, SECURITY_HEADER, SEGMENT,
    VALUE_HEADER, base, checksum, key_flags, value_flags,
};
use super::{FileTime, HiveReadError, Key, LayerSemantics, Value, ValueContent, damaged};
use crate::DataType;

const NOT_A_HIVE: &str = "not a registry hive: expected \"regf\" and a base block of 4096 bytes";

/// A hive that was read completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hive<'h> {
    /// The second number of the format's version, 3 to 6.
    pub minor_version: u32,
    /// True if the file has the flag for layered keys.
    pub layered: bool,
    /// End of the path of the file when Windows wrote it.
    pub file_name: String,
    /// The root key.
    pub root: Key<'h>,
}

impl<'h> Hive<'h> {
    /// Reads a primary or delta hive. Data after its last bin is ignored.
    pub fn read(file: &'h [u8]) -> Result<Self, HiveReadError> {
        let header = file
            .get(..PAGE)
            .filter(|header| header.starts_with(b"regf"))
            .ok_or_else(|| HiveReadError(NOT_A_HIVE.to_owned()))?;
        let block = Fields {
            bytes: header,
            offset: 0,
        };
        let (expected, found) = (checksum(header), block.u32(base::CHECKSUM)?);
        // A fuzzer does not find checksums and hashes, here and in the logs.
        if expected != found && !cfg!(fuzzing) {
            return Err(HiveReadError::checksum(expected, found));
        }
        let (major, minor) = (block.u32(base::MAJOR)?, block.u32(base::MINOR)?);
        let kind = (block.u32(base::FILE_TYPE)?, block.u32(base::FILE_FORMAT)?);
        if major != 1 || !(3..=6).contains(&minor) || kind != (0, 1) {
            return Err(HiveReadError(format!(
                "unsupported registry hive of version {major}.{minor} or another type: expected a primary hive of version 1.3 to 1.6"
            )));
        }
        if block.u32(base::PRIMARY_SEQUENCE)? != block.u32(base::SECONDARY_SEQUENCE)? {
            return Err(HiveReadError::unfinished());
        }
        let declared = block.u32(base::BINS_SIZE)?;
        let bins = file[PAGE..].get(..declared as usize).ok_or_else(|| {
            let actual = file.len() - PAGE;
            HiveReadError(format!(
                "truncated registry hive: it has {actual} of {declared} bytes of data"
            ))
        })?;
        let mut reader = HiveReader {
            cells: Cells::new(bins)?,
            descriptors: HashMap::new(),
            big_data: minor > 3,
        };
        let name = block.bytes(base::FILE_NAME, base::FILE_NAME_SIZE)?;
        Ok(Self {
            minor_version: minor,
            layered: minor > 5 && block.u32(base::FLAGS)? & base::LAYERED_KEYS != 0,
            file_name: utf16_lossy(name)
                .split('\0')
                .next()
                .unwrap_or_default()
                .to_owned(),
            root: reader.key(block.u32(base::ROOT)?, 1)?,
        })
    }
}

pub(super) struct HiveReader<'h> {
    cells: Cells<'h>,
    /// Descriptors, the only cells with several references.
    descriptors: HashMap<u32, &'h [u8]>,
    big_data: bool,
}

impl<'h> HiveReader<'h> {
    /// Reads single records of a hive that was read completely before.
    pub(super) fn new(cells: Cells<'h>) -> Self {
        Self {
            cells,
            descriptors: HashMap::new(),
            big_data: true,
        }
    }

    /// The cells of a key's values, with their names.
    pub(super) fn value_cells(
        &mut self,
        node: &Fields<'h>,
    ) -> Result<Vec<(u32, String)>, HiveReadError> {
        let cells = self.value_list(node)?;
        cells
            .map(|cell| Ok((cell, self.record(cell, *b"vk")?.value_name()?)))
            .collect()
    }

    fn cell(&mut self, offset: u32) -> Result<Fields<'h>, HiveReadError> {
        let bytes = self.cells.take(offset)?;
        Ok(Fields { bytes, offset })
    }

    pub(super) fn record(
        &mut self,
        offset: u32,
        signature: [u8; 2],
    ) -> Result<Fields<'h>, HiveReadError> {
        let fields = self.cell(offset)?;
        if fields.bytes.starts_with(&signature) {
            Ok(fields)
        } else {
            Err(fields.damaged("a record of the wrong kind"))
        }
    }

    fn key(&mut self, offset: u32, depth: usize) -> Result<Key<'h>, HiveReadError> {
        let node = self.record(offset, *b"nk")?;
        if depth > MAX_DEPTH {
            return Err(node.damaged("a key nested deeper than Windows allows"));
        }
        let mut key = self.key_alone(&node)?;
        let subkeys = self.subkeys(&node)?;
        key.subkeys.reserve_exact(subkeys.len());
        for subkey in subkeys {
            key.subkeys.push(self.key(subkey, depth + 1)?);
        }
        Ok(key)
    }

    fn key_alone(&mut self, node: &Fields<'h>) -> Result<Key<'h>, HiveReadError> {
        let flags = node.u16(2)?;
        let [_, layer, ..] = node.array::<4>(12)?;
        Ok(Key {
            name: node.key_name()?,
            layer: LayerSemantics::from_byte(layer),
            flags,
            timestamp: FileTime(u64::from(node.u32(4)?) | u64::from(node.u32(8)?) << 32),
            class: self.class(node)?,
            security: self.descriptor(node.u32(44)?)?,
            values: self.values(node, flags)?,
            subkeys: Vec::new(),
        })
    }

    fn class(&mut self, node: &Fields<'h>) -> Result<Option<String>, HiveReadError> {
        let (offset, length) = (node.u32(48)?, usize::from(node.u16(74)?));
        if offset == NULL_OFFSET || length == 0 {
            return Ok(None);
        }
        let class = self.cell(offset)?;
        Ok(Some(utf16_lossy(class.bytes(0, length)?)))
    }

    fn descriptor(&mut self, offset: u32) -> Result<&'h [u8], HiveReadError> {
        if let Some(descriptor) = self.descriptors.get(&offset) {
            return Ok(descriptor);
        }
        let record = self.record(offset, *b"sk")?;
        let descriptor = record.bytes(SECURITY_HEADER, record.u32(16)? as usize)?;
        self.descriptors.insert(offset, descriptor);
        Ok(descriptor)
    }

    fn values(&mut self, node: &Fields<'h>, flags: u16) -> Result<Vec<Value<'h>>, HiveReadError> {
        // In such a key the count is an old handle of a process.
        if flags & key_flags::PREDEFINED_HANDLE != 0 {
            return Ok(Vec::new());
        }
        let cells = self.value_list(node)?;
        cells.map(|cell| self.value(cell)).collect()
    }

    fn value_list(
        &mut self,
        node: &Fields<'h>,
    ) -> Result<impl Iterator<Item = u32> + use<'h>, HiveReadError> {
        let count = node.u32(36)? as usize;
        let list = match count {
            0 => None,
            _ => Some(self.cell(node.u32(40)?)?.words(0, count, 1)?),
        };
        Ok(list.into_iter().flatten())
    }

    fn value(&mut self, offset: u32) -> Result<Value<'h>, HiveReadError> {
        let record = self.record(offset, *b"vk")?;
        let name = record.value_name()?;
        let content = if record.u16(16)? & value_flags::TOMBSTONE != 0 {
            ValueContent::Tombstone
        } else {
            ValueContent::Data {
                kind: DataType(record.u32(12)?),
                bytes: self.data(&record)?,
            }
        };
        Ok(Value { name, content })
    }

    fn data(&mut self, record: &Fields<'h>) -> Result<Cow<'h, [u8]>, HiveReadError> {
        let (size, place) = (record.u32(4)?, record.u32(8)?);
        let length = (size & !DATA_IN_PLACE) as usize;
        if size & DATA_IN_PLACE != 0 {
            return match record.bytes(8, 4)?.get(..length) {
                Some(data) => Ok(Cow::Borrowed(data)),
                None => Err(record.damaged("a value with more than four bytes in place")),
            };
        }
        if length == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        if length > SEGMENT && self.big_data {
            return self.segments(place, length).map(Cow::Owned);
        }
        let cell = self.cell(place)?;
        cell.bytes(0, length).map(Cow::Borrowed)
    }

    fn segments(&mut self, offset: u32, length: usize) -> Result<Vec<u8>, HiveReadError> {
        let big = self.record(offset, *b"db")?;
        let (count, place) = (usize::from(big.u16(2)?), big.u32(4)?);
        if count != length.div_ceil(SEGMENT) {
            return Err(big.damaged("a big value with the wrong number of segments"));
        }
        let list = self.cell(place)?;
        let mut data = Vec::new();
        for place in list.words(0, count, 1)? {
            let segment = self.cell(place)?;
            data.extend_from_slice(segment.bytes(0, SEGMENT.min(length - data.len()))?);
        }
        Ok(data)
    }

    /// The offsets of the keys below.
    pub(super) fn subkeys(&mut self, node: &Fields<'h>) -> Result<Vec<u32>, HiveReadError> {
        let count = node.u32(20)? as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let list = self.cell(node.u32(28)?)?;
        let mut subkeys = Vec::new();
        if list.bytes.starts_with(b"ri") {
            for offset in list.words(4, usize::from(list.u16(2)?), 1)? {
                subkeys.extend(self.cell(offset)?.leaf_entries()?);
            }
        } else {
            subkeys.extend(list.leaf_entries()?);
        }
        if subkeys.len() == count {
            Ok(subkeys)
        } else {
            Err(node.damaged("a key whose subkey list has the wrong length"))
        }
    }
}

/// The content of a cell, with its offset for error messages.
pub(super) struct Fields<'h> {
    bytes: &'h [u8],
    pub(super) offset: u32,
}

impl<'h> Fields<'h> {
    pub(super) fn key_name(&self) -> Result<String, HiveReadError> {
        let name = self.bytes(KEY_HEADER, usize::from(self.u16(72)?))?;
        Ok(decode_name(name, self.u16(2)? & key_flags::ASCII_NAME != 0))
    }

    fn value_name(&self) -> Result<String, HiveReadError> {
        let name = self.bytes(VALUE_HEADER, usize::from(self.u16(2)?))?;
        let is_ascii = self.u16(16)? & value_flags::ASCII_NAME != 0;
        Ok(decode_name(name, is_ascii))
    }

    fn damaged(&self, problem: &'static str) -> HiveReadError {
        damaged(self.offset as usize, problem)
    }

    fn cut(&self) -> HiveReadError {
        self.damaged("a record that is longer than its cell")
    }

    fn bytes(&self, at: usize, length: usize) -> Result<&'h [u8], HiveReadError> {
        self.bytes
            .get(at..)
            .and_then(|rest| rest.get(..length))
            .ok_or_else(|| self.cut())
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], HiveReadError> {
        let rest = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        rest.copied().ok_or_else(|| self.cut())
    }

    fn u16(&self, at: usize) -> Result<u16, HiveReadError> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Result<u32, HiveReadError> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Reads `count` numbers, each the first of a group of `stride` numbers.
    fn words(
        &self,
        at: usize,
        count: usize,
        stride: usize,
    ) -> Result<impl Iterator<Item = u32> + use<'h>, HiveReadError> {
        let length = count.checked_mul(4 * stride).ok_or_else(|| self.cut())?;
        let (words, _) = self.bytes(at, length)?.as_chunks::<4>();
        Ok(words
            .iter()
            .step_by(stride)
            .map(|&word| u32::from_le_bytes(word)))
    }

    fn leaf_entries(&self) -> Result<impl Iterator<Item = u32> + use<'h>, HiveReadError> {
        let stride = match self.bytes.first_chunk() {
            Some(b"lh" | b"lf") => 2,
            Some(b"li") => 1,
            _ => return Err(self.damaged("a subkey list of an unknown kind")),
        };
        self.words(4, usize::from(self.u16(2)?), stride)
    }
}

/// Decodes a name in one of its two forms. Unpaired surrogates, which Windows allows, become
/// replacement characters.
fn decode_name(bytes: &[u8], ascii: bool) -> String {
    if ascii {
        bytes.iter().copied().map(char::from).collect()
    } else {
        utf16_lossy(bytes)
    }
}

fn utf16_lossy(bytes: &[u8]) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    char::decode_utf16(units.iter().map(|&unit| u16::from_le_bytes(unit)))
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
