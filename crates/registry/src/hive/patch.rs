//! Sets a value in a whole hive, such as a user's: everything else stays as Windows wrote it.
//!
//! New records go into a bin of their own at the end, and cells that nothing refers to any more
//! become free.

use super::bins::Cells;
use super::cells::{CellWriter, in_reach};
use super::format::{
    BIN_HEADER, DATA_IN_PLACE, PAGE, SEGMENT, base, encode_name, number, put, seal, utf16_len,
    value_flags,
};
use super::reader::{Fields, HiveReader};
use super::record::Record;
use super::{FileTime, Hive, WriteError};
use crate::name_folding::eq_ignore_case;
use crate::{DataType, RegistryData};

/// Offset of a bin's own offset in its header.
const BIN_OFFSET: usize = 4;

/// Returns the hive with a value set in a key, which exists; `key` is its path below the root.
pub fn set_value(
    file: &[u8],
    key: &str,
    name: &str,
    data: &RegistryData,
    time: FileTime,
) -> Result<Vec<u8>, WriteError> {
    if Hive::read(file)?.layered {
        let problem = "a delta hive has no values of its own";
        return Err(WriteError::Refused(problem.to_owned()));
    }
    if data.bytes().len() > SEGMENT {
        let problem = format!("registry values of more than {SEGMENT} bytes are unsupported");
        return Err(WriteError::Refused(problem));
    }
    let size = number(file, base::BINS_SIZE) as usize;
    let mut patch = Patch {
        bytes: file[..PAGE + size].to_vec(),
        added: CellWriter::default(),
        start: size,
    };
    let mut reader = HiveReader::new(Cells::new(&file[PAGE..PAGE + size])?);
    let node = find(&mut reader, number(file, base::ROOT), key)?;
    let known = reader.value_cells(&node)?;
    let found = known.iter().find(|it| eq_ignore_case(&it.1, name));
    let (place, inline) = patch.data(data.bytes())?;
    let length = in_reach(data.bytes().len())?;
    match found {
        Some((cell, _)) => {
            patch.free_data(*cell);
            patch.put(*cell, 4, length | inline);
            patch.put_bytes(*cell, 8, &place);
            patch.put(*cell, 12, data.kind().0);
        }
        None => {
            let record = value_record(name, length | inline, place, data.kind());
            let value = patch.add(record.as_bytes())?;
            let cells = known.iter().map(|(cell, _)| *cell).chain([value]);
            let list: Vec<u8> = cells.flat_map(u32::to_le_bytes).collect();
            if !known.is_empty() {
                patch.free(patch.number(node.offset, 40));
            }
            let list = patch.add(&list)?;
            patch.put(node.offset, 36, in_reach(known.len() + 1)?);
            patch.put(node.offset, 40, list);
        }
    }
    patch.put_bytes(node.offset, 4, &time.0.to_le_bytes());
    patch.raise(node.offset, 60, in_reach(utf16_len(name))?);
    patch.raise(node.offset, 64, length);
    patch.finish(time)
}

fn value_record(name: &str, size: u32, place: [u8; 4], kind: DataType) -> Record {
    let (written, is_ascii) = encode_name(name);
    let flags = u16::from(is_ascii) * value_flags::ASCII_NAME;
    Record::new(*b"vk")
        .name_length(written.len())
        .u32(size)
        .bytes(&place)
        .u32(kind.0)
        .u16(flags)
        .u16(0)
        .bytes(&written)
}

fn find<'h>(reader: &mut HiveReader<'h>, root: u32, key: &str) -> Result<Fields<'h>, WriteError> {
    let mut node = reader.record(root, *b"nk")?;
    for name in key.split('\\') {
        let mut found = None;
        for offset in reader.subkeys(&node)? {
            let below = reader.record(offset, *b"nk")?;
            if eq_ignore_case(&below.key_name()?, name) {
                found = Some(below);
            }
        }
        let missing = || WriteError::Refused(format!("registry key {key} not found"));
        node = found.ok_or_else(missing)?;
    }
    Ok(node)
}

/// A hive with a bin to be added.
struct Patch {
    bytes: Vec<u8>,
    added: CellWriter,
    /// Offset of the new bin.
    start: usize,
}

impl Patch {
    /// Adds a cell and returns its offset in the hive.
    fn add(&mut self, content: &[u8]) -> Result<u32, WriteError> {
        let offset = self.added.add(content)? as usize;
        in_reach(self.start + offset)
    }

    /// The place of a value's data, and the flag of its size: up to four bytes are stored in place.
    fn data(&mut self, data: &[u8]) -> Result<([u8; 4], u32), WriteError> {
        if data.len() > 4 {
            return Ok((self.add(data)?.to_le_bytes(), 0));
        }
        let mut place = [0; 4];
        place[..data.len()].copy_from_slice(data);
        Ok((place, DATA_IN_PLACE))
    }

    fn at(cell: u32, field: usize) -> usize {
        PAGE + cell as usize + 4 + field
    }

    fn number(&self, cell: u32, field: usize) -> u32 {
        number(&self.bytes, Self::at(cell, field))
    }

    fn put(&mut self, cell: u32, field: usize, number: u32) {
        put(&mut self.bytes, Self::at(cell, field), number);
    }

    fn put_bytes(&mut self, cell: u32, field: usize, bytes: &[u8]) {
        let at = Self::at(cell, field);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Raises a maximum of a key.
    fn raise(&mut self, cell: u32, field: usize, number: u32) {
        let known = self.number(cell, field);
        self.put(cell, field, known.max(number));
    }

    /// Frees a cell: its size becomes positive.
    fn free(&mut self, cell: u32) {
        let at = PAGE + cell as usize;
        let size = number(&self.bytes, at).cast_signed().unsigned_abs();
        put(&mut self.bytes, at, size);
    }

    /// Frees the data of a value, unless it is in several cells.
    fn free_data(&mut self, value: u32) {
        let size = self.number(value, 4);
        if size & DATA_IN_PLACE == 0 && (1..=SEGMENT).contains(&(size as usize)) {
            self.free(self.number(value, 8));
        }
    }

    fn finish(self, time: FileTime) -> Result<Vec<u8>, WriteError> {
        let (mut bytes, start) = (self.bytes, self.start);
        let mut added = self.added.finish()?;
        // A bin's header has its offset in the hive.
        let mut bin = 0;
        while bin < added.len() {
            put(&mut added, bin + BIN_OFFSET, in_reach(start + bin)?);
            bin += (number(&added, bin + 8) as usize).max(BIN_HEADER);
        }
        let size = in_reach(start + added.len())?;
        bytes.append(&mut added);
        put(&mut bytes, base::BINS_SIZE, size);
        bytes[base::TIMESTAMP..][..8].copy_from_slice(&time.0.to_le_bytes());
        seal(&mut bytes);
        Ok(bytes)
    }
}
