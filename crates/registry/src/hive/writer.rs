//! Writer of hives.

use super::cells::CellWriter;
use super::delta::Delta;
use super::descriptors::{self, Position};
use super::format::{
    ACCESSED, DATA_IN_PLACE, KEY_HEADER, LEAF_ENTRIES, NULL_OFFSET, PAGE, SEGMENT, SEGMENT_CELL,
    VALUE_HEADER, base, encode_name, key_flags, put, seal, utf16_len, value_flags,
};
use super::record::Record;
use super::shared_descriptors::SharedDescriptors;
use super::tree::{BaseKeyState, DeltaKey, ValueChange};
use super::{FileTime, LayerSemantics, Semantics, WriteError};
use crate::Root;
use crate::name_folding::FoldedName;

pub(super) fn write_hive(
    hive: Delta,
    tree: &DeltaKey,
    timestamp: FileTime,
) -> Result<Vec<u8>, WriteError> {
    let (root_key, bins) = contents(hive, tree, timestamp)?;
    let name = format!(r"Hives\{}", hive.file());
    Ok(assemble_file(
        root_key,
        &bins,
        MINOR_OF_DELTAS,
        base::LAYERED_KEYS,
        &name,
    ))
}

/// A hive with a root alone, for an image that contains no Windows.
pub fn empty_hive(timestamp: FileTime) -> Result<Vec<u8>, WriteError> {
    let hive = Delta::Edited(Root::System);
    let tree = DeltaKey::new("ROOT", Semantics::Merge);
    let (root_key, bins) = contents(hive, &tree, timestamp)?;
    Ok(assemble_file(root_key, &bins, MINOR_OF_WHOLE_HIVES, 0, ""))
}

/// The root key's cell and the bins.
fn contents(
    hive: Delta,
    tree: &DeltaKey,
    timestamp: FileTime,
) -> Result<(u32, Vec<u8>), WriteError> {
    let known = descriptors::known(hive)?;
    let mut writer = Writer {
        cells: CellWriter::default(),
        descriptors: SharedDescriptors::default(),
        timestamp,
    };
    let descriptors = &mut writer.descriptors;
    let (descriptor, passed_on) = match &tree.below {
        BaseKeyState::Key(security) => {
            let descriptor = descriptors.intern_bytes(security);
            (descriptor, descriptor)
        }
        BaseKeyState::Unknown | BaseKeyState::Nothing => (
            descriptors.intern(&known.root),
            descriptors.intern(&known.passed_on),
        ),
    };
    let place = KeyPlacement {
        parent: NULL_OFFSET,
        position: known.position(),
        descriptor,
        passed_on,
    };
    let root_key = writer.key(tree, &place)?;
    writer.descriptors.link(&mut writer.cells);
    Ok((root_key, writer.cells.finish()?))
}

struct Writer {
    cells: CellWriter,
    descriptors: SharedDescriptors,
    timestamp: FileTime,
}

/// Properties of a key that its parent determines.
struct KeyPlacement {
    parent: u32,
    position: Position,
    descriptor: usize,
    /// Descriptor from which subkeys inherit.
    passed_on: usize,
}

/// A list of a key: number of entries, and cell.
struct List {
    count: u32,
    cell: u32,
}

impl List {
    const EMPTY: Self = Self {
        count: 0,
        cell: NULL_OFFSET,
    };

    fn new(count: usize, cell: u32) -> Result<Self, WriteError> {
        let count = u32::try_from(count).map_err(|_| WriteError::HiveTooLarge)?;
        Ok(Self { count, cell })
    }
}

impl Writer {
    /// Writes a key with all below it and returns its cell.
    fn key(&mut self, node: &DeltaKey, place: &KeyPlacement) -> Result<u32, WriteError> {
        let (name, _) = encode_name(&node.name);
        let cell = self.cells.reserve(KEY_HEADER + name.len())?;
        let security = self.descriptors.cell(place.descriptor, &mut self.cells)?;
        let values = self.values(node)?;
        let subkeys = self.subkeys(node, cell, place)?;
        let record = self.key_node(node, place.parent, security, &values, &subkeys);
        self.cells.fill(cell, 0, record.as_bytes());
        Ok(cell)
    }

    fn key_node(
        &self,
        node: &DeltaKey,
        parent: u32,
        security: u32,
        values: &List,
        subkeys: &List,
    ) -> Record {
        let root = parent == NULL_OFFSET;
        let (name, ascii) = encode_name(&node.name);
        let mut flags = if ascii { key_flags::ASCII_NAME } else { 0 };
        if root {
            flags |= key_flags::HIVE_ENTRY | key_flags::NO_DELETE;
        }
        let layer = LayerSemantics {
            inherit_class: !root && node.semantics == Semantics::Merge,
            semantics: node.semantics,
        };
        let subkey_names = node.subkeys.values().map(|key| utf16_len(&key.name));
        let value_names = node.values.values().map(|value| utf16_len(&value.name));
        let value_data = node.values.values().filter_map(|value| value.data.as_ref());
        Record::new(*b"nk")
            .u16(flags)
            .bytes(&self.timestamp.0.to_le_bytes())
            .bytes(&[ACCESSED, layer.to_byte(), 0, 0])
            .u32(parent)
            .u32(subkeys.count)
            .u32(0)
            .u32(subkeys.cell)
            .u32(NULL_OFFSET)
            .u32(values.count)
            .u32(values.cell)
            .u32(security)
            .u32(NULL_OFFSET)
            .longest(subkey_names)
            .u32(0)
            .longest(value_names)
            .longest(value_data.map(|data| data.bytes().len()))
            .u32(0)
            .name_length(name.len())
            .u16(0)
            .bytes(&name)
    }

    fn values(&mut self, node: &DeltaKey) -> Result<List, WriteError> {
        if node.values.is_empty() {
            return Ok(List::EMPTY);
        }
        let list = self.cells.reserve(4 * node.values.len())?;
        for (index, value) in node.values.values().enumerate() {
            let cell = self.value(value)?;
            self.cells.set(list, 4 * index, cell);
        }
        List::new(node.values.len(), list)
    }

    fn value(&mut self, value: &ValueChange) -> Result<u32, WriteError> {
        let (name, ascii) = encode_name(&value.name);
        let cell = self.cells.reserve(VALUE_HEADER + name.len())?;
        // Windows omits the flag for an empty name.
        let mut flags = if ascii && !name.is_empty() {
            value_flags::ASCII_NAME
        } else {
            0
        };
        let (size, place, kind) = if let Some(data) = &value.data {
            let (size, place) = self.data(data.bytes())?;
            (size, place, data.kind().0)
        } else {
            flags |= value_flags::TOMBSTONE;
            (0, NULL_OFFSET, 0)
        };
        let record = Record::new(*b"vk")
            .name_length(name.len())
            .u32(size)
            .u32(place)
            .u32(kind)
            .u16(flags)
            .u16(0)
            .bytes(&name);
        self.cells.fill(cell, 0, record.as_bytes());
        Ok(cell)
    }

    /// Stores data and returns the size and offset fields of its value.
    fn data(&mut self, data: &[u8]) -> Result<(u32, u32), WriteError> {
        let size = u32::try_from(data.len()).map_err(|_| WriteError::HiveTooLarge)?;
        if data.len() <= 4 {
            let mut word = [0; 4];
            word[..data.len()].copy_from_slice(data);
            return Ok((size | DATA_IN_PLACE, u32::from_le_bytes(word)));
        }
        if data.len() <= SEGMENT {
            return Ok((size, self.cells.add(data)?));
        }
        let segments = data.chunks(SEGMENT);
        let count = u16::try_from(segments.len()).map_err(|_| WriteError::HiveTooLarge)?;
        let list = self.cells.reserve(4 * segments.len())?;
        let record = Record::new(*b"db").u16(count).u32(list).u32(0);
        let big = self.cells.add(record.as_bytes())?;
        for (index, segment) in segments.enumerate() {
            let cell = self.cells.reserve(SEGMENT_CELL)?;
            self.cells.fill(cell, 0, segment);
            self.cells.set(list, 4 * index, cell);
        }
        Ok((size, big))
    }

    fn subkeys(
        &mut self,
        node: &DeltaKey,
        cell: u32,
        place: &KeyPlacement,
    ) -> Result<List, WriteError> {
        if node.subkeys.is_empty() {
            return Ok(List::EMPTY);
        }
        let mut entries = Vec::with_capacity(node.subkeys.len());
        for (name, subkey) in &node.subkeys {
            let position = place.position.below(name);
            let descriptor = match (&subkey.below, position.own()) {
                (BaseKeyState::Key(security), _) => self.descriptors.intern_bytes(security),
                (BaseKeyState::Unknown, Some(own)) => self.descriptors.intern(own),
                (BaseKeyState::Unknown | BaseKeyState::Nothing, _) => {
                    self.descriptors.inherited(place.passed_on)
                }
            };
            let descriptor = match &subkey.security {
                Some(security) => self.descriptors.replaced(descriptor, security),
                None => descriptor,
            };
            let passed_on = if self.descriptors.is_readable(descriptor) {
                descriptor
            } else {
                place.passed_on
            };
            let place = KeyPlacement {
                parent: cell,
                position,
                descriptor,
                passed_on,
            };
            entries.push((name, self.key(subkey, &place)?));
        }
        let list = if entries.len() <= LEAF_ENTRIES {
            self.leaf(&entries)?
        } else {
            self.index(&entries)?
        };
        List::new(entries.len(), list)
    }

    /// Writes a hash leaf. The tree has the keys in the required order.
    fn leaf(&mut self, entries: &[(&FoldedName, u32)]) -> Result<u32, WriteError> {
        let head = Record::new(*b"lh").name_length(entries.len());
        let record = entries.iter().fold(head, |record, (name, cell)| {
            record.u32(*cell).u32(name.hash37())
        });
        self.cells.add(record.as_bytes())
    }

    /// Writes an index root over the leaves.
    fn index(&mut self, entries: &[(&FoldedName, u32)]) -> Result<u32, WriteError> {
        let leaves = entries.chunks(LEAF_ENTRIES);
        let count = u16::try_from(leaves.len()).map_err(|_| WriteError::HiveTooLarge)?;
        let mut record = Record::new(*b"ri").u16(count);
        for leaf in leaves {
            record = record.u32(self.leaf(leaf)?);
        }
        self.cells.add(record.as_bytes())
    }
}

/// Minor version that introduced layered keys.
const MINOR_OF_DELTAS: u32 = 6;
const MINOR_OF_WHOLE_HIVES: u32 = 5;

/// A file with these contents; its base block repeats its name, which may be empty.
fn assemble_file(root_key: u32, bins: &[u8], minor: u32, flags: u32, name: &str) -> Vec<u8> {
    let mut file = vec![0; PAGE];
    file[..4].copy_from_slice(b"regf");
    let [a, b, c, d, ..] = bins.len().to_le_bytes();
    for (at, number) in [
        (base::PRIMARY_SEQUENCE, 1),
        (base::SECONDARY_SEQUENCE, 1),
        (base::MAJOR, 1),
        (base::MINOR, minor),
        (base::FILE_TYPE, 0),
        (base::FILE_FORMAT, 1),
        (base::ROOT, root_key),
        (base::BINS_SIZE, u32::from_le_bytes([a, b, c, d])),
        (base::CLUSTERING, 1),
        (base::FLAGS, flags),
    ] {
        put(&mut file, at, number);
    }
    let name = name.encode_utf16().flat_map(u16::to_le_bytes);
    let field = &mut file[base::FILE_NAME..][..base::FILE_NAME_SIZE - 2];
    field.iter_mut().zip(name).for_each(|(to, byte)| *to = byte);
    seal(&mut file);
    file.extend_from_slice(bins);
    file
}
