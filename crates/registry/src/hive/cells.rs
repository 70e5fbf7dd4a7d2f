//! Cells: the allocations in a hive's bins. The layout is that of Windows: a bin is a page, or as
//! many as one large cell needs, and its rest becomes a free cell.

use super::WriteError;
use super::format::{BIN_HEADER, PAGE, put};

/// Maximum size of a hive: the top bit of an offset means memory, not the file.
const MAX_BINS: usize = 0x7FFF_F000;

/// The bins of a hive that is written.
#[derive(Default)]
pub(super) struct CellWriter {
    bytes: Vec<u8>,
    used: usize,
}

impl CellWriter {
    pub(super) fn add(&mut self, content: &[u8]) -> Result<u32, WriteError> {
        let offset = self.reserve(content.len())?;
        self.fill(offset, 0, content);
        Ok(offset)
    }

    /// Adds a zeroed cell of this size and returns its offset.
    pub(super) fn reserve(&mut self, content: usize) -> Result<u32, WriteError> {
        let size = (content + 4).next_multiple_of(8);
        if size > self.bytes.len() - self.used {
            self.close_bin()?;
            self.open_bin(size)?;
        }
        let offset = self.used;
        self.used += size;
        put(&mut self.bytes, offset, in_reach(size)?.wrapping_neg());
        in_reach(offset)
    }

    /// Writes into the content of a cell.
    pub(super) fn fill(&mut self, cell: u32, at: usize, content: &[u8]) {
        let start = cell as usize + 4 + at;
        self.bytes[start..start + content.len()].copy_from_slice(content);
    }

    /// Writes a number into the content of a cell.
    pub(super) fn set(&mut self, cell: u32, at: usize, number: u32) {
        put(&mut self.bytes, cell as usize + 4 + at, number);
    }

    pub(super) fn finish(mut self) -> Result<Vec<u8>, WriteError> {
        self.close_bin()?;
        Ok(self.bytes)
    }

    fn open_bin(&mut self, cell: usize) -> Result<(), WriteError> {
        let start = self.bytes.len();
        let size = (BIN_HEADER + cell).next_multiple_of(PAGE);
        in_reach(start + size)?;
        self.bytes.resize(start + size, 0);
        self.bytes[start..start + 4].copy_from_slice(b"hbin");
        put(&mut self.bytes, start + 4, in_reach(start)?);
        put(&mut self.bytes, start + 8, in_reach(size)?);
        self.used = start + BIN_HEADER;
        Ok(())
    }

    fn close_bin(&mut self) -> Result<(), WriteError> {
        let free = self.bytes.len() - self.used;
        if free > 0 {
            put(&mut self.bytes, self.used, in_reach(free)?);
            self.used = self.bytes.len();
        }
        Ok(())
    }
}

/// Converts a size or offset to the format's number.
pub(super) fn in_reach(bytes: usize) -> Result<u32, WriteError> {
    u32::try_from(bytes)
        .ok()
        .filter(|_| bytes <= MAX_BINS)
        .ok_or(WriteError::HiveTooLarge)
}
