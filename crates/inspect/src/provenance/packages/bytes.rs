//! Numbers and strings from untrusted bytes, which can end anywhere and have wrong lengths.

/// The bytes at an offset, if all of them are there.
pub(super) fn part(data: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    data.get(at..at.checked_add(length)?)
}

fn array<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

pub(super) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    array(data, at).map(u16::from_le_bytes)
}

pub(super) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    array(data, at).map(u32::from_le_bytes)
}

pub(super) fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    array(data, at).map(u64::from_le_bytes)
}

/// A length or an offset in a file.
pub(super) fn usize_at(data: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(data, at)?).ok()
}

/// A UTF-16 string up to its end or a zero, and its size in bytes including the zero.
pub(super) fn utf16_at(data: &[u8], at: usize) -> Option<(String, usize)> {
    let units: Vec<u16> = data
        .get(at..)?
        .as_chunks::<2>()
        .0
        .iter()
        .map(|unit| u16::from_le_bytes(*unit))
        .take_while(|unit| *unit != 0)
        .collect();
    let taken = (units.len() + 1) * 2;
    Some((String::from_utf16_lossy(&units), taken))
}

/// A UTF-8 string up to a zero.
pub(super) fn text_at(data: &[u8], at: usize) -> Option<&str> {
    let rest = data.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}
