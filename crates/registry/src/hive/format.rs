//! The numbers of the file format, from the public "Windows registry file format specification".
//! All offsets inside a hive count from the end of the base block.

/// The size of the base block, and the unit of everything after it.
pub(super) const PAGE: usize = 4096;
pub(super) const BIN_HEADER: usize = 32;
/// The time of the last write in the header of the first bin.
pub(super) const BIN_TIME: usize = 20;
/// The null offset.
pub(super) const NULL_OFFSET: u32 = 0xFFFF_FFFF;
/// Maximum size of data in one cell.
pub(super) const SEGMENT: usize = 16_344;
/// Cell size of every segment, including the last one; readers rely on the four extra bytes.
pub(super) const SEGMENT_CELL: usize = SEGMENT + 4;
/// Maximum number of entries of a subkey list: as many as fit on a page with its headers.
pub(super) const LEAF_ENTRIES: usize = (PAGE - BIN_HEADER - 4 - 4) / 8;
/// Maximum depth of keys on Windows.
pub(super) const MAX_DEPTH: usize = 512;
/// Flag of a value's size: the data is stored instead of its offset.
pub(super) const DATA_IN_PLACE: u32 = 0x8000_0000;

/// Offsets in the base block.
pub(super) mod base {
    pub(in super::super) const PRIMARY_SEQUENCE: usize = 4;
    pub(in super::super) const SECONDARY_SEQUENCE: usize = 8;
    pub(in super::super) const TIMESTAMP: usize = 12;
    pub(in super::super) const MAJOR: usize = 20;
    pub(in super::super) const MINOR: usize = 24;
    pub(in super::super) const FILE_TYPE: usize = 28;
    pub(in super::super) const FILE_FORMAT: usize = 32;
    pub(in super::super) const ROOT: usize = 36;
    pub(in super::super) const BINS_SIZE: usize = 40;
    pub(in super::super) const CLUSTERING: usize = 44;
    pub(in super::super) const FILE_NAME: usize = 48;
    /// In bytes, with the terminating null.
    pub(in super::super) const FILE_NAME_SIZE: usize = 64;
    pub(in super::super) const FLAGS: usize = 144;
    pub(in super::super) const CHECKSUM: usize = 508;
    /// A flag, in the first byte of them: transactions are pending.
    pub(in super::super) const TRANSACTIONS: u8 = 0x1;
    /// A flag: the hive may have layered keys.
    pub(in super::super) const LAYERED_KEYS: u32 = 0x2;
}

/// Flags of a key node.
pub(super) mod key_flags {
    pub(in super::super) const HIVE_ENTRY: u16 = 0x04;
    pub(in super::super) const NO_DELETE: u16 = 0x08;
    pub(in super::super) const ASCII_NAME: u16 = 0x20;
    pub(in super::super) const PREDEFINED_HANDLE: u16 = 0x40;
}

/// Flags of a value.
pub(super) mod value_flags {
    pub(in super::super) const ASCII_NAME: u16 = 0x1;
    pub(in super::super) const TOMBSTONE: u16 = 0x2;
}

/// The sizes of a key node and a value up to their names.
pub(super) const KEY_HEADER: usize = 76;
pub(super) const VALUE_HEADER: usize = 20;
/// The size of a security cell up to its descriptor.
pub(super) const SECURITY_HEADER: usize = 20;

/// The access bits that every key of a used hive has: opened since Windows started.
pub(super) const ACCESSED: u8 = 0x02;

/// The exclusive or of the base block's first 127 words, with the two reserved values replaced.
pub(super) fn checksum(base_block: &[u8]) -> u32 {
    let (words, _) = base_block[..base::CHECKSUM].as_chunks::<4>();
    match words
        .iter()
        .fold(0, |sum, &word| sum ^ u32::from_le_bytes(word))
    {
        0 => 1,
        0xFFFF_FFFF => 0xFFFF_FFFE,
        sum => sum,
    }
}

/// Reads a number of a file or a cell.
pub(super) fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]))
}

/// Writes a number into a file or a cell.
pub(super) fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Writes the checksum of a file's base block.
pub(super) fn seal(file: &mut [u8]) {
    let sum = checksum(file);
    put(file, base::CHECKSUM, sum);
}

/// A name as it is stored: one byte a character where all are below U+0100, UTF-16 otherwise.
pub(super) fn encode_name(name: &str) -> (Vec<u8>, bool) {
    let narrow: Option<Vec<u8>> = name.chars().map(|c| u8::try_from(c).ok()).collect();
    match narrow {
        Some(bytes) => (bytes, true),
        None => (
            name.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            false,
        ),
    }
}

/// The length of a name in bytes of UTF-16, the unit of a key's "longest name" fields.
pub(super) fn utf16_len(name: &str) -> usize {
    2 * name.encode_utf16().count()
}
