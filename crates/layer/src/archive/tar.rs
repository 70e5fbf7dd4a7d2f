//! Reader of tar streams, layers and archives, entry by entry.
//!
//! A stream is untrusted, so nothing in it determines how much memory is used. That is why the
//! `tar` crate only decodes the headers here: its archive reader loads whole extension headers of
//! any stated size.

use std::io::{self, Cursor, Read};

use ::tar::{EntryType, Header, PaxExtensions};

use super::format::StreamCompression;

/// Block size of tar.
pub(crate) const BLOCK: usize = 512;

/// Maximum size of PAX headers and long names, far larger than Windows needs.
const LARGEST_EXTENSION: u64 = 1 << 20;

/// Maximum size of a piece of content.
const PIECE: usize = 128 << 10;

/// Message for sparse files, whose content begins with a map and has another name and size.
pub const NO_SPARSE_FILES: &str = "it has sparse files of GNU tar, which are not supported";

/// Limits of a reader.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum size of a file that is read into memory, in bytes.
    pub file: u64,
    /// Maximum length of the decompressed stream, in bytes.
    pub stream: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file: 256 << 20,
            stream: 256 << 30,
        }
    }
}

/// Error of reading a stream.
#[derive(Debug, thiserror::Error)]
pub enum TarReadError {
    /// The source failed, or its compressed data is damaged.
    #[error("cannot read the tar stream")]
    Io(#[source] io::Error),
    /// The stream ends inside an entry.
    #[error("the tar stream is truncated inside an entry")]
    Truncated,
    /// Invalid tar header.
    #[error("it is not a tar stream: {0}")]
    Malformed(&'static str),
    /// A file or header above the limit, or names that no layer of Windows has.
    #[error("{0}")]
    Refused(String),
    /// A stream above the limit.
    #[error("the tar stream is longer than {0} bytes when decompressed")]
    TooLong(u64),
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TarEntryKind {
    /// A directory.
    Directory,
    /// A file; its content can be read.
    File,
    /// A symbolic link or mount point.
    Symlink,
    /// A hard link to an earlier file.
    HardLink,
    /// A device, a pipe or another kind that Windows does not have.
    Other,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarEntry {
    /// The full path, `Files/Windows/win.ini` in a layer, without slashes around it.
    pub path: String,
    /// Kind.
    pub kind: TarEntryKind,
    /// The size of the content.
    pub size: u64,
    /// Target of a link.
    pub target: Option<String>,
}

/// Reader of a stream's entries.
pub struct TarReader<'a> {
    stream: MeteredReader<'a>,
    limits: Limits,
    /// Unread bytes of the current entry.
    unread: u64,
    /// Padding after the content.
    padding: u64,
    path: String,
    /// The PAX records of the current entry.
    pax: Vec<u8>,
    /// Buffer for pieces of content.
    buffer: Vec<u8>,
}

/// Values of extension headers for the next entry.
#[derive(Default)]
struct PaxOverrides {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<'a> TarReader<'a> {
    /// Creates a reader that detects gzip, zstd or no compression by the first bytes.
    pub fn new(source: impl Read + Send + 'a, limits: Limits) -> Result<Self, TarReadError> {
        let unpacked = decompress(source).map_err(TarReadError::Io)?;
        Ok(Self::over(unpacked, limits))
    }

    /// Creates a reader of an uncompressed stream.
    pub fn new_uncompressed(source: impl Read + Send + 'a, limits: Limits) -> Self {
        Self::over(Box::new(source), limits)
    }

    fn over(inner: Box<dyn Read + Send + 'a>, limits: Limits) -> Self {
        Self {
            stream: MeteredReader {
                inner,
                limit: limits.stream,
                left: limits.stream,
            },
            limits,
            unread: 0,
            padding: 0,
            path: String::new(),
            pax: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Moves to the next entry and skips unread content; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<TarEntry>, TarReadError> {
        let mut extensions = PaxOverrides::default();
        self.pax.clear();
        loop {
            self.skip(self.unread.saturating_add(self.padding))?;
            (self.unread, self.padding) = (0, 0);
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            let size = header
                .entry_size()
                .map_err(|_| TarReadError::Malformed("an entry has an invalid size"))?;
            match header.entry_type() {
                EntryType::XHeader => {
                    self.start_entry(size)?;
                    self.pax = self.extension(size)?;
                    extensions.read_pax(&self.pax)?;
                }
                EntryType::GNULongName => {
                    self.start_entry(size)?;
                    extensions.path = Some(without_nul(self.extension(size)?));
                }
                EntryType::GNULongLink => {
                    self.start_entry(size)?;
                    extensions.target = Some(without_nul(self.extension(size)?));
                }
                EntryType::XGlobalHeader => self.start_entry(size)?,
                EntryType::GNUSparse => {
                    return Err(TarReadError::Refused(NO_SPARSE_FILES.to_owned()));
                }
                kind => return self.entry(&header, kind, size, extensions).map(Some),
            }
        }
    }

    /// Offset in the decompressed stream: after its headers for an entry whose content is unread.
    pub(crate) fn position(&self) -> u64 {
        self.limits.stream - self.stream.left
    }

    /// Content of the current entry.
    pub fn content(&mut self) -> Result<Vec<u8>, TarReadError> {
        let size = self.unread;
        self.bounded(size, self.limits.file)
    }

    /// Passes the content of the current entry to the callback in pieces.
    pub fn each_piece(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), TarReadError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(PIECE, 0);
        while self.unread > 0 {
            let wanted = usize::try_from(self.unread).unwrap_or(PIECE).min(PIECE);
            match self.stream.read(&mut buffer[..wanted]) {
                Ok(0) => return Err(TarReadError::Truncated),
                Ok(count) => {
                    self.unread -= count as u64;
                    take(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(error)),
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// PAX records of the current entry, such as `MSWINDOWS.fileattr`.
    pub fn pax(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let records = PaxExtensions::new(&self.pax).filter_map(Result::ok);
        records.map(|record| (record.key_bytes(), record.value_bytes()))
    }

    /// Returns true if the current entry is a sparse file in the PAX format.
    pub fn is_sparse(&self) -> bool {
        self.pax().any(|(key, _)| key.starts_with(b"GNU.sparse"))
    }

    fn entry(
        &mut self,
        header: &Header,
        kind: EntryType,
        size: u64,
        extensions: PaxOverrides,
    ) -> Result<TarEntry, TarReadError> {
        let kind = match kind {
            EntryType::Regular | EntryType::Continuous => TarEntryKind::File,
            EntryType::Directory => TarEntryKind::Directory,
            EntryType::Symlink => TarEntryKind::Symlink,
            EntryType::Link => TarEntryKind::HardLink,
            _ => TarEntryKind::Other,
        };
        let size = extensions.size.unwrap_or(size);
        // Links and directories have no content, whatever size they state.
        let size = match kind {
            TarEntryKind::File | TarEntryKind::Other => size,
            _ => 0,
        };
        let path = match &extensions.path {
            Some(path) => text(path),
            None => text(&header.path_bytes()),
        };
        let target = match (kind, extensions.target) {
            (TarEntryKind::Symlink | TarEntryKind::HardLink, Some(target)) => Some(text(&target)),
            (TarEntryKind::Symlink | TarEntryKind::HardLink, None) => {
                header.link_name_bytes().map(|target| text(&target))
            }
            _ => None,
        };
        let path = path.trim_start_matches("./").trim_matches('/').to_owned();
        self.path.clone_from(&path);
        self.start_entry(size)?;
        Ok(TarEntry {
            path,
            kind,
            size,
            target,
        })
    }

    fn start_entry(&mut self, size: u64) -> Result<(), TarReadError> {
        if size > self.limits.stream {
            return Err(TarReadError::TooLong(self.limits.stream));
        }
        self.unread = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
        Ok(())
    }

    fn extension(&mut self, size: u64) -> Result<Vec<u8>, TarReadError> {
        "extension header".clone_into(&mut self.path);
        self.bounded(size, LARGEST_EXTENSION)
    }

    /// Reads `size` bytes, up to a limit.
    fn bounded(&mut self, size: u64, limit: u64) -> Result<Vec<u8>, TarReadError> {
        if size > limit {
            return Err(TarReadError::Refused(format!(
                "{:?} in the tar stream has {size} bytes, more than the limit of {limit}",
                self.path
            )));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.stream).take(size).read_to_end(&mut bytes);
        let read = read.map_err(read_error)? as u64;
        self.unread -= read;
        if read < size {
            return Err(TarReadError::Truncated);
        }
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), TarReadError> {
        let mut rest = (&mut self.stream).take(bytes);
        let skipped = io::copy(&mut rest, &mut io::sink()).map_err(read_error)?;
        if skipped < bytes {
            return Err(TarReadError::Truncated);
        }
        Ok(())
    }

    /// Reads the next header; `None` at the end of the stream or at its end mark.
    fn header(&mut self) -> Result<Option<Header>, TarReadError> {
        let mut header = Header::new_old();
        let block = header.as_mut_bytes();
        let mut filled = 0;
        while filled < block.len() {
            match self.stream.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(TarReadError::Truncated),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(error)),
            }
        }
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if is_header(block) {
            Ok(Some(header))
        } else {
            Err(TarReadError::Malformed("a header's checksum is wrong"))
        }
    }
}

impl Read for TarReader<'_> {
    /// Reads the content of the current entry.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.stream).take(self.unread).read(buffer)?;
        self.unread -= read as u64;
        Ok(read)
    }
}

impl PaxOverrides {
    fn read_pax(&mut self, records: &[u8]) -> Result<(), TarReadError> {
        for record in PaxExtensions::new(records) {
            let record = record.map_err(|_| TarReadError::Malformed("a PAX record is broken"))?;
            let value = record.value_bytes();
            match record.key_bytes() {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                b"size" => {
                    let size = record.value().ok().and_then(|size| size.parse().ok());
                    let size =
                        size.ok_or(TarReadError::Malformed("a PAX record has an invalid size"))?;
                    self.size = Some(size);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A stream that fails beyond a limit.
struct MeteredReader<'a> {
    inner: Box<dyn Read + Send + 'a>,
    limit: u64,
    left: u64,
}

/// Error of [`MeteredReader`], wrapped by the readers around it.
#[derive(Debug, thiserror::Error)]
#[error("the limit of {0} bytes is reached")]
struct LimitReached(u64);

impl Read for MeteredReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other(LimitReached(self.limit)))?;
        Ok(read)
    }
}

fn read_error(error: io::Error) -> TarReadError {
    match error.downcast::<LimitReached>() {
        Ok(LimitReached(limit)) => TarReadError::TooLong(limit),
        Err(error) => TarReadError::Io(error),
    }
}

/// Decompresses a layer: gzip, zstd or uncompressed.
pub fn decompress<'a>(mut source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut magic = Vec::new();
    (&mut source).take(4).read_to_end(&mut magic)?;
    let compression = detect_compression(&magic);
    compression.decoder(Cursor::new(magic).chain(source))
}

/// Compression of a layer with these first four bytes: gzip, zstd or none.
pub fn detect_compression(magic: &[u8]) -> StreamCompression {
    match magic {
        [0x1f, 0x8b, ..] => StreamCompression::Gzip,
        // A stream may begin with a skippable frame.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            StreamCompression::Zstd
        }
        _ => StreamCompression::Plain,
    }
}

/// Returns true if a block is the header of an entry.
pub(super) fn is_header(block: &[u8; BLOCK]) -> bool {
    let header = Header::from_byte_slice(block);
    header.cksum().is_ok_and(|stated| stated == checksum(block))
}

/// Checksum of a header, with its own field counted as spaces.
fn checksum(header: &[u8; BLOCK]) -> u32 {
    const FIELD: std::ops::Range<usize> = 148..156;
    let bytes = header.iter().enumerate();
    bytes
        .map(|(at, byte)| u32::from(if FIELD.contains(&at) { b' ' } else { *byte }))
        .sum()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

#[cfg(test)]
mod tests;
