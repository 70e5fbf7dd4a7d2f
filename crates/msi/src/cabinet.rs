//! Cabinets that may be damaged or hostile, unpacked folder by folder.
//!
//! The `cab` crate panics on damaged ones and unpacks the folder again for each file, which takes
//! minutes for a package of some thousand files in one folder.

use std::io::{self, Read, Seek, SeekFrom};

use flate2::{Decompress, FlushDecompress};

use super::lzx::Lzx;

/// Largest unpacked block.
const BLOCK: usize = 32 << 10;
/// Largest packed block: a block that does not compress grows a little.
const PACKED_BLOCK: usize = BLOCK + 6144;
/// Longest name in a cabinet.
const LONGEST_NAME: usize = 256;
/// Largest file whose bytes are kept for others that share them.
const LARGEST_SHARED: u32 = 16 << 20;

/// Numbers of folders of files that continue from or to another cabinet.
const CONTINUED: u16 = 0xfffd;

/// The directory of a cabinet.
#[derive(Debug)]
pub struct Cabinet {
    folders: Vec<Folder>,
    /// Bytes reserved in front of each block.
    reserved: u64,
}

#[derive(Debug)]
struct Folder {
    offset: u64,
    blocks: u16,
    compression: u16,
    /// Files in the order of their offsets.
    members: Vec<CabinetMember>,
}

/// A file in a cabinet.
#[derive(Debug)]
pub struct CabinetMember {
    /// Name.
    pub name: String,
    offset: u32,
    /// Size in bytes.
    pub size: u32,
}

fn damaged(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn unsupported(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, problem)
}

fn bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn u16_of(reader: &mut impl Read) -> io::Result<u16> {
    bytes(reader).map(u16::from_le_bytes)
}

fn u32_of(reader: &mut impl Read) -> io::Result<u32> {
    bytes(reader).map(u32::from_le_bytes)
}

/// Reads a text up to its null.
fn text(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match bytes::<1>(reader)? {
            [0] => return Ok(text),
            [byte] => text.push(byte),
        }
        if text.len() > LONGEST_NAME {
            return Err(damaged("a name in a cabinet does not end"));
        }
    }
}

impl Cabinet {
    /// Reads the directory.
    pub fn read(reader: &mut (impl Read + Seek)) -> io::Result<Self> {
        const HAS_PREVIOUS: u16 = 1;
        const HAS_NEXT: u16 = 2;
        const HAS_RESERVED: u16 = 4;
        reader.rewind()?;
        let mut directory = io::BufReader::new(reader);
        let reader = &mut directory;
        if bytes(reader)? != *b"MSCF" {
            return Err(damaged("it is not a cabinet"));
        }
        bytes::<12>(reader)?;
        let files = u32_of(reader)?;
        bytes::<6>(reader)?;
        let (folder_count, file_count, flags) = (u16_of(reader)?, u16_of(reader)?, u16_of(reader)?);
        bytes::<4>(reader)?;
        let (mut of_folder, mut reserved) = (0, 0);
        if flags & HAS_RESERVED != 0 {
            let of_header = u16_of(reader)?;
            [of_folder, reserved] = bytes::<2>(reader)?;
            io::copy(&mut reader.take(of_header.into()), &mut io::sink())?;
        }
        for neighbour in [HAS_PREVIOUS, HAS_NEXT] {
            if flags & neighbour != 0 {
                text(reader)?;
                text(reader)?;
            }
        }
        let mut folders = Vec::new();
        for _ in 0..folder_count {
            folders.push(Folder {
                offset: u32_of(reader)?.into(),
                blocks: u16_of(reader)?,
                compression: u16_of(reader)?,
                members: Vec::new(),
            });
            io::copy(&mut reader.take(of_folder.into()), &mut io::sink())?;
        }
        reader.seek(SeekFrom::Start(files.into()))?;
        for _ in 0..file_count {
            let (size, offset, folder) = (u32_of(reader)?, u32_of(reader)?, u16_of(reader)?);
            bytes::<6>(reader)?;
            let name = String::from_utf8_lossy(&text(reader)?).into_owned();
            if folder >= CONTINUED {
                return Err(unsupported(
                    "files that continue in another cabinet are not supported",
                ));
            }
            let Some(folder) = folders.get_mut(usize::from(folder)) else {
                return Err(damaged("a file is in a folder that does not exist"));
            };
            folder.members.push(CabinetMember { name, offset, size });
        }
        for folder in &mut folders {
            folder.members.sort_by_key(CabinetMember::place);
        }
        Ok(Self {
            folders,
            reserved: reserved.into(),
        })
    }

    /// The members, folder by folder.
    pub fn members(&self) -> impl Iterator<Item = &CabinetMember> {
        self.folders.iter().flat_map(|folder| &folder.members)
    }

    /// Unpacks the members that are wanted, each through `sink`.
    pub fn unpack(
        &self,
        reader: &mut (impl Read + Seek),
        is_wanted: &dyn Fn(&CabinetMember) -> bool,
        sink: &mut dyn FnMut(&CabinetMember, &mut dyn Read) -> io::Result<()>,
    ) -> io::Result<()> {
        for folder in &self.folders {
            let wanted = folder.members.iter().filter(|member| is_wanted(member));
            let wanted: Vec<&CabinetMember> = wanted.collect();
            if wanted.is_empty() {
                continue;
            }
            let mut content = FolderReader::open(reader, folder, self.reserved)?;
            for equal in wanted.chunk_by(|one, other| one.place() == other.place()) {
                if equal.len() > 1 && equal[0].size <= LARGEST_SHARED {
                    let mut bytes = Vec::new();
                    content.member(equal[0], &mut |_, source| {
                        source.read_to_end(&mut bytes).map(drop)
                    })?;
                    for member in equal {
                        sink(member, &mut bytes.as_slice())?;
                    }
                    continue;
                }
                for (index, member) in equal.iter().enumerate() {
                    if index > 0 {
                        content = FolderReader::open(content.inner, folder, self.reserved)?;
                    }
                    content.member(member, sink)?;
                }
            }
        }
        Ok(())
    }
}

impl CabinetMember {
    /// Offset and size in the folder. Equal files share them: a cabinet may store these once.
    fn place(&self) -> (u32, u32) {
        (self.offset, self.size)
    }
}

enum Unpacker {
    Stored,
    MsZip(MsZip),
    Lzx(Box<Lzx>),
}

/// The unpacked bytes of a folder.
struct FolderReader<'a, R> {
    inner: &'a mut R,
    blocks: u16,
    reserved: u64,
    unpacker: Unpacker,
    block: Vec<u8>,
    at: usize,
    position: u64,
}

impl<'a, R: Read + Seek> FolderReader<'a, R> {
    fn open(inner: &'a mut R, folder: &Folder, reserved: u64) -> io::Result<Self> {
        inner.seek(SeekFrom::Start(folder.offset))?;
        let unpacker = match folder.compression & 0xf {
            0 => Unpacker::Stored,
            1 => Unpacker::MsZip(MsZip::new()),
            3 => Unpacker::Lzx(Box::new(Lzx::new(folder.compression >> 8 & 0x1f)?)),
            _ => return Err(unsupported("Quantum compression is not supported")),
        };
        Ok(Self {
            inner,
            blocks: folder.blocks,
            reserved,
            unpacker,
            block: Vec::new(),
            at: 0,
            position: 0,
        })
    }

    /// Unpacks up to a member, and hands it over.
    fn member(
        &mut self,
        member: &CabinetMember,
        sink: &mut dyn FnMut(&CabinetMember, &mut dyn Read) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(skipped) = u64::from(member.offset).checked_sub(self.position) else {
            return Err(damaged("files in a cabinet overlap"));
        };
        let copied = io::copy(&mut self.by_ref().take(skipped), &mut io::sink())?;
        if copied != skipped {
            return Err(damaged("a file begins beyond its folder"));
        }
        let mut bytes = self.by_ref().take(member.size.into());
        sink(member, &mut bytes)?;
        io::copy(&mut bytes, &mut io::sink())?;
        if bytes.limit() != 0 {
            return Err(damaged("a file ends beyond its folder"));
        }
        Ok(())
    }

    /// Unpacks the next block; false at the end.
    fn next_block(&mut self) -> io::Result<bool> {
        let Some(blocks) = self.blocks.checked_sub(1) else {
            return Ok(false);
        };
        self.blocks = blocks;
        bytes::<4>(self.inner)?;
        let (packed, size) = (u16_of(self.inner)?, u16_of(self.inner)?);
        let (packed, size) = (usize::from(packed), usize::from(size));
        if packed > PACKED_BLOCK || size > BLOCK {
            return Err(damaged("a block in a cabinet is too large"));
        }
        if size == 0 {
            return Err(unsupported(
                "files that continue in another cabinet are not supported",
            ));
        }
        io::copy(
            &mut self.inner.by_ref().take(self.reserved),
            &mut io::sink(),
        )?;
        let mut data = vec![0; packed];
        self.inner.read_exact(&mut data)?;
        self.block = match &mut self.unpacker {
            Unpacker::Stored => data,
            Unpacker::MsZip(mszip) => mszip.block(&data, size)?,
            Unpacker::Lzx(lzx) => lzx.frame(&data, size)?,
        };
        if self.block.len() != size {
            return Err(damaged("a block in a cabinet has another size"));
        }
        self.at = 0;
        Ok(true)
    }
}

impl<R: Read + Seek> Read for FolderReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let rest = &self.block[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        self.position += count as u64;
        Ok(count)
    }
}

/// State between blocks of MSZIP, each of which is a stream that refers to the blocks before it.
struct MsZip {
    inflater: Decompress,
    window: Vec<u8>,
}

impl MsZip {
    fn new() -> Self {
        Self {
            inflater: Decompress::new(false),
            window: Vec::new(),
        }
    }

    /// Unpacks the next block.
    fn block(&mut self, data: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let Some(data) = data.strip_prefix(b"CK") else {
            return Err(damaged("a block of MSZIP has no signature"));
        };
        let failed = |error: flate2::DecompressError| damaged(&error.to_string());
        self.inflater.reset(false);
        if !self.window.is_empty() {
            self.inflater.set_dictionary(&self.window).map_err(failed)?;
        }
        let mut block = Vec::with_capacity(size + 1);
        self.inflater
            .decompress_vec(data, &mut block, FlushDecompress::Finish)
            .map_err(failed)?;
        self.window.extend(&block);
        self.window.drain(..self.window.len().saturating_sub(BLOCK));
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use wincimg_testkit::cabinet::cabinet;

    use super::*;

    #[test]
    fn equal_files_may_be_stored_once() {
        let large = vec![7; LARGEST_SHARED as usize + 1];
        let files: [(&str, &[u8]); 7] = [
            ("a", b"one"),
            ("b", b"two"),
            ("c", b"one"),
            ("d", b""),
            ("e", &large),
            ("f", &large),
            ("g", b"three"),
        ];
        let mut reader = Cursor::new(cabinet(&files));
        assert!(reader.get_ref().len() < 2 * large.len());
        let read = Cabinet::read(&mut reader).unwrap();
        for skipped in ["", "a", "e"] {
            let mut unpacked = Vec::new();
            let is_wanted = |member: &CabinetMember| member.name != skipped;
            let unpack = read.unpack(&mut reader, &is_wanted, &mut |member, source| {
                let mut bytes = Vec::new();
                source.read_to_end(&mut bytes)?;
                unpacked.push((member.name.clone(), bytes));
                Ok(())
            });
            unpack.unwrap();
            unpacked.sort();
            let expected = files.iter().filter(|(name, _)| *name != skipped);
            let expected = expected.map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
            assert!(
                unpacked == expected.collect::<Vec<_>>(),
                "without {skipped:?}"
            );
        }
    }
}
