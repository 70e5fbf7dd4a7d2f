//! Builder of a cell's content, field by field in the format's order.

/// A growing record; numbers are little-endian.
#[derive(Default)]
pub(super) struct Record(Vec<u8>);

impl Record {
    pub(super) fn new(signature: [u8; 2]) -> Self {
        Self(signature.to_vec())
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u16(self, number: u16) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Appends the length of a name, which always fits 16 bits.
    pub(super) fn name_length(self, length: usize) -> Self {
        self.u16(u16::try_from(length).unwrap_or(u16::MAX))
    }

    /// Appends the maximum of several lengths; 0 if there are none.
    pub(super) fn longest(self, lengths: impl Iterator<Item = usize>) -> Self {
        let longest = lengths.max().unwrap_or(0);
        self.u32(u32::try_from(longest).unwrap_or(u32::MAX))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
