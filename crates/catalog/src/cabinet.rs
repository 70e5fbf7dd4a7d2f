//! Extraction of one file from a cabinet that may be damaged.
//!
//! The `cab` crate seeks to the start of a file and panics if a damaged cabinet ends before it. So
//! it gets a cabinet whose file starts at its folder, and the bytes before the file are read and
//! dropped, which costs as much as the seek.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use cab::Cabinet;

/// Maximum length of a member's name.
const NAME_LIMIT: u64 = 256;

/// Names of all members.
pub(super) fn names(mut cabinet: impl Read + Seek) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    find(&mut cabinet, |name| {
        names.push(name.to_owned());
        false
    })?;
    Ok(names)
}

/// Content of the first member whose name in lower case matches, up to `limit` bytes.
pub(super) fn read_member(
    mut cabinet: impl Read + Seek,
    limit: u64,
    is_wanted: impl FnMut(&str) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let Some(entry) = find(&mut cabinet, is_wanted)? else {
        return Ok(None);
    };
    let size = u64::from(entry.offset) + u64::from(entry.size).min(limit);
    let size = u32::try_from(size).map_err(|_| damaged("a member reaches beyond 4 GiB"))?;
    let mut patch = [0; 8];
    patch[..4].copy_from_slice(&size.to_le_bytes());
    cabinet.rewind()?;
    let patched = HeaderPatch {
        inner: cabinet,
        position: 0,
        at: entry.position,
        patch,
    };
    let mut cabinet = Cabinet::new(BufReader::new(patched))?;
    let mut member = cabinet.read_file(&entry.name)?;
    io::copy(
        &mut (&mut member).take(entry.offset.into()),
        &mut io::sink(),
    )?;
    let mut content = Vec::new();
    member.read_to_end(&mut content)?;
    Ok(Some(content))
}

/// A file's entry in a cabinet's directory.
struct MemberHeader {
    /// Position of the entry.
    position: u64,
    size: u32,
    /// Offset of the file in its unpacked folder.
    offset: u32,
    name: String,
}

fn find(
    cabinet: &mut (impl Read + Seek),
    mut is_wanted: impl FnMut(&str) -> bool,
) -> io::Result<Option<MemberHeader>> {
    cabinet.rewind()?;
    let mut header = [0; 36];
    cabinet.read_exact(&mut header)?;
    let [a, b, c, d] = [header[16], header[17], header[18], header[19]];
    let mut position = u64::from(u32::from_le_bytes([a, b, c, d]));
    cabinet.seek(SeekFrom::Start(position))?;
    let mut directory = BufReader::new(cabinet);
    for _ in 0..u16::from_le_bytes([header[28], header[29]]) {
        let mut fixed = [0; 16];
        directory.read_exact(&mut fixed)?;
        let mut name = Vec::new();
        io::BufRead::read_until(&mut (&mut directory).take(NAME_LIMIT), 0, &mut name)?;
        if name.pop() != Some(0) {
            return Err(damaged("a member's name does not end"));
        }
        let [s0, s1, s2, s3, o0, o1, o2, o3, ..] = fixed;
        let length = fixed.len() + name.len() + 1;
        let name = String::from_utf8_lossy(&name).into_owned();
        if is_wanted(&name.to_ascii_lowercase()) {
            return Ok(Some(MemberHeader {
                position,
                size: u32::from_le_bytes([s0, s1, s2, s3]),
                offset: u32::from_le_bytes([o0, o1, o2, o3]),
                name,
            }));
        }
        position += length as u64;
    }
    Ok(None)
}

fn damaged(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// A reader that replaces eight bytes.
struct HeaderPatch<R> {
    inner: R,
    position: u64,
    at: u64,
    patch: [u8; 8],
}

impl<R: Read> Read for HeaderPatch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for (at, patched) in (self.at..).zip(self.patch) {
            let index = at
                .checked_sub(self.position)
                .and_then(|index| usize::try_from(index).ok());
            if let Some(byte) = index.and_then(|index| buffer[..count].get_mut(index)) {
                *byte = patched;
            }
        }
        self.position += count as u64;
        Ok(count)
    }
}

impl<R: Seek> Seek for HeaderPatch<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.inner.seek(to)?;
        Ok(self.position)
    }
}
