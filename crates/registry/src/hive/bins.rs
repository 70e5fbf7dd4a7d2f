//! The allocated cells of a hive that is read, each of which may be used once.
//!
//! Bins and cells must cover the file without gaps before their content is read, and a cell cannot
//! be referenced twice. That excludes overlaps and cycles, and bounds all further work by the size
//! of the file.

use super::format::{BIN_HEADER, PAGE, number};
use super::{HiveReadError, damaged};

/// The unused cells.
pub(super) struct Cells<'h> {
    bins: &'h [u8],
    unused: Vec<u64>,
}

impl<'h> Cells<'h> {
    pub(super) fn new(bins: &'h [u8]) -> Result<Self, HiveReadError> {
        let mut cells = Self {
            bins,
            unused: vec![0; (bins.len() / 8).div_ceil(64)],
        };
        let mut start = 0;
        while start < bins.len() {
            start = cells.walk_bin(start)?;
        }
        Ok(cells)
    }

    /// Takes the content of the cell at this offset, which must be allocated and unused.
    pub(super) fn take(&mut self, offset: u32) -> Result<&'h [u8], HiveReadError> {
        let start = offset as usize;
        let (word, bit) = (start / 8 / 64, 1 << (start / 8 % 64));
        let unused = self
            .unused
            .get_mut(word)
            .filter(|_| start.is_multiple_of(8));
        match unused {
            Some(bits) if *bits & bit != 0 => *bits &= !bit,
            _ => {
                return Err(damaged(start, "no allocated cell that is unused"));
            }
        }
        let size = i32::from_le_bytes(self.array(start)?).unsigned_abs() as usize;
        self.bins
            .get(start + 4..start + size)
            .ok_or_else(|| damaged(start, "a cell extends beyond the end"))
    }

    /// Records the cells of the bin at an offset; returns the offset of the next one.
    fn walk_bin(&mut self, start: usize) -> Result<usize, HiveReadError> {
        let header: [u8; BIN_HEADER] = self.array(start)?;
        let size = number(&header, 8) as usize;
        let fits = size >= PAGE && size.is_multiple_of(PAGE) && size <= self.bins.len() - start;
        if !header.starts_with(b"hbin") || number(&header, 4) as usize != start || !fits {
            return Err(damaged(start, "a missing bin header"));
        }
        let end = start + size;
        let mut cell = start + BIN_HEADER;
        while cell < end {
            let signed = i32::from_le_bytes(self.array(cell)?);
            let size = signed.unsigned_abs() as usize;
            if size < 8 || !size.is_multiple_of(8) || size > end - cell {
                return Err(damaged(cell, "a cell with an impossible size"));
            }
            if signed < 0 {
                self.unused[cell / 8 / 64] |= 1 << (cell / 8 % 64);
            }
            cell += size;
        }
        Ok(end)
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], HiveReadError> {
        self.bins
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .copied()
            .ok_or_else(|| damaged(at, "a record truncated by the end of the bins"))
    }
}
