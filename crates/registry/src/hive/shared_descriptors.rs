//! Security cells: one for each descriptor, shared by its keys, linked into a ring.

use std::collections::HashMap;

use super::cells::CellWriter;
use super::format::SECURITY_HEADER;
use super::record::Record;
use super::{WriteError, descriptors};
use crate::security::{DescriptorLayout, SecurityDescriptor};

/// The descriptors of a hive that is written, by index.
#[derive(Default)]
pub(super) struct SharedDescriptors {
    all: Vec<DescriptorCell>,
    by_bytes: HashMap<Vec<u8>, usize>,
}

struct DescriptorCell {
    /// The parsed descriptor, if it is valid.
    value: Option<SecurityDescriptor>,
    bytes: Vec<u8>,
    /// Inherited descriptor of keys below, computed on first use.
    inherited: Option<usize>,
    /// The cell, allocated on first use.
    cell: Option<u32>,
    keys: u32,
}

impl SharedDescriptors {
    /// The index of a descriptor.
    pub(super) fn intern(&mut self, descriptor: &SecurityDescriptor) -> usize {
        let bytes = descriptor.to_bytes(DescriptorLayout::ListsFirst);
        self.index(bytes, |_| Some(descriptor.clone()))
    }

    /// The index of a descriptor of the base, kept byte for byte.
    pub(super) fn intern_bytes(&mut self, bytes: &[u8]) -> usize {
        self.index(bytes.to_vec(), |bytes| {
            SecurityDescriptor::from_bytes(bytes).ok()
        })
    }

    fn index(
        &mut self,
        bytes: Vec<u8>,
        read: impl FnOnce(&[u8]) -> Option<SecurityDescriptor>,
    ) -> usize {
        if let Some(&index) = self.by_bytes.get(&bytes) {
            return index;
        }
        self.by_bytes.insert(bytes.clone(), self.all.len());
        self.all.push(DescriptorCell {
            value: read(&bytes),
            bytes,
            inherited: None,
            cell: None,
            keys: 0,
        });
        self.all.len() - 1
    }

    /// Returns true if a descriptor could be parsed, so that it can be inherited.
    pub(super) fn is_readable(&self, index: usize) -> bool {
        self.all[index].value.is_some()
    }

    /// The index of the descriptor that a key inherits; of the parent's own if that is invalid.
    pub(super) fn inherited(&mut self, parent: usize) -> usize {
        if let Some(inherited) = self.all[parent].inherited {
            return inherited;
        }
        let index = match self.all[parent].value.as_ref().map(descriptors::inherited) {
            Some(inherited) => self.intern(&inherited),
            None => parent,
        };
        self.all[parent].inherited = Some(index);
        index
    }

    /// The index of a descriptor that another one replaces.
    pub(super) fn replaced(&mut self, index: usize, other: &SecurityDescriptor) -> usize {
        let after = self.all[index].value.as_ref();
        let after = after.map_or_else(|| other.clone(), |it| it.replaced_by(other));
        self.intern(&after)
    }

    /// The cell of a descriptor, with one more reference.
    pub(super) fn cell(&mut self, index: usize, cells: &mut CellWriter) -> Result<u32, WriteError> {
        let shared = &mut self.all[index];
        shared.keys += 1;
        if let Some(cell) = shared.cell {
            return Ok(cell);
        }
        let cell = cells.reserve(SECURITY_HEADER + shared.bytes.len())?;
        shared.cell = Some(cell);
        Ok(cell)
    }

    /// Writes the used cells with their final reference counts.
    pub(super) fn link(&self, cells: &mut CellWriter) {
        let ring: Vec<(u32, &DescriptorCell)> = self
            .all
            .iter()
            .filter_map(|shared| Some((shared.cell?, shared)))
            .collect();
        let at = |index: usize| ring[index % ring.len()].0;
        for (index, (cell, shared)) in ring.iter().enumerate() {
            let size = u32::try_from(shared.bytes.len()).unwrap_or(u32::MAX);
            let record = Record::new(*b"sk")
                .u16(0)
                .u32(at(index + 1))
                .u32(at(index + ring.len() - 1))
                .u32(shared.keys)
                .u32(size)
                .bytes(&shared.bytes);
            cells.fill(*cell, 0, record.as_bytes());
        }
    }
}
