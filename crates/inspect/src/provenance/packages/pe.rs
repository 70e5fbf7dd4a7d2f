//! Reader for executables and libraries of Windows.

use super::bytes::{part, u16_at, u32_at, usize_at};

/// Indexes of the directories that are read.
pub(super) const RESOURCES: usize = 2;
pub(super) const CLR: usize = 14;

/// Limit on sections; real files have at most some dozens.
const MAX_SECTIONS: usize = 96;
const MAX_DIRECTORIES: usize = 16;
/// Flags of sections with writable data.
const WRITABLE_DATA: u32 = 0x8000_0040;

/// A portable executable, possibly truncated.
pub(super) struct Pe<'a> {
    data: &'a [u8],
    sections: Vec<Section>,
    directories: Vec<(u32, u32)>,
    image_base: u64,
}

struct Section {
    address: u32,
    offset: usize,
    size: usize,
    flags: u32,
}

impl<'a> Pe<'a> {
    /// Parses a file; none if it is of another kind.
    pub(super) fn parse(data: &'a [u8]) -> Option<Self> {
        if !data.starts_with(b"MZ") {
            return None;
        }
        let header = usize_at(data, 0x3c)?;
        if part(data, header, 4)? != b"PE\0\0" {
            return None;
        }
        let count = usize::from(u16_at(data, header.checked_add(6)?)?);
        let optional = header.checked_add(24)?;
        let optional_size = usize::from(u16_at(data, header.checked_add(20)?)?);
        // PE32 and PE32+, where the base has eight bytes.
        let (image_base, directories_at) = match u16_at(data, optional)? {
            0x10b => (u64::from(u32_at(data, optional + 28)?), optional + 92),
            0x20b => (super::bytes::u64_at(data, optional + 24)?, optional + 108),
            _ => return None,
        };
        let directory_count = usize_at(data, directories_at)?.min(MAX_DIRECTORIES);
        let directories = (0..directory_count)
            .map_while(|number| {
                let at = directories_at + 4 + number * 8;
                Some((u32_at(data, at)?, u32_at(data, at + 4)?))
            })
            .collect();
        let first = optional.checked_add(optional_size)?;
        let sections = (0..count.min(MAX_SECTIONS))
            .map_while(|number| {
                let at = first + number * 40;
                Some(Section {
                    address: u32_at(data, at + 12)?,
                    size: usize_at(data, at + 16)?,
                    offset: usize_at(data, at + 20)?,
                    flags: u32_at(data, at + 36)?,
                })
            })
            .collect();
        Some(Self {
            data,
            sections,
            directories,
            image_base,
        })
    }

    /// A directory's bytes, if the file has it.
    pub(super) fn directory(&self, which: usize) -> Option<&'a [u8]> {
        let &(address, size) = self.directories.get(which)?;
        if address == 0 || size == 0 {
            return None;
        }
        let bytes = self.at(address)?;
        Some(bytes.get(..usize::try_from(size).ok()?).unwrap_or(bytes))
    }

    /// The bytes at an address, up to the end of its section.
    pub(super) fn at(&self, address: u32) -> Option<&'a [u8]> {
        self.sections.iter().find_map(|section| {
            let inside = usize::try_from(address.checked_sub(section.address)?).ok()?;
            self.bytes(section)?
                .get(inside..)
                .filter(|it| !it.is_empty())
        })
    }

    /// The bytes at the address in a pointer.
    pub(super) fn at_pointer(&self, pointer: u64) -> Option<&'a [u8]> {
        self.at(u32::try_from(pointer.checked_sub(self.image_base)?).ok()?)
    }

    pub(super) fn writable_data(&self) -> impl Iterator<Item = &'a [u8]> {
        let sections = self.sections.iter();
        let writable = sections.filter(|it| it.flags & WRITABLE_DATA == WRITABLE_DATA);
        writable.filter_map(|section| self.bytes(section))
    }

    fn bytes(&self, section: &Section) -> Option<&'a [u8]> {
        let rest = self.data.get(section.offset..)?;
        Some(rest.get(..section.size).unwrap_or(rest))
    }
}
