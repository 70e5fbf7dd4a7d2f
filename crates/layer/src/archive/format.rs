//! Detection of archive formats by the first bytes.

use std::fmt;
use std::io::{self, BufReader, Read};

use bzip2::read::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::tar::{BLOCK, is_header};

/// Memory limit of xz decompression in KiB: twice that of `xz -9`.
const XZ_MEMORY: u32 = 128 << 10;

/// Format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// A zip file.
    Zip,
    /// A 7z file.
    SevenZip,
    /// A tar stream.
    Tar(StreamCompression),
    /// A Windows Installer package, where it is opened as such.
    #[cfg(feature = "installers")]
    Installer,
    /// A cabinet, where it is opened as such.
    #[cfg(feature = "installers")]
    Cabinet,
    /// The package in a `WiX` bundle, where it is opened as such.
    #[cfg(feature = "installers")]
    Bundle,
}

/// Compression of a tar stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCompression {
    /// Uncompressed.
    Plain,
    /// gzip, with any number of members.
    Gzip,
    /// zstd.
    Zstd,
    /// By xz.
    Xz,
    /// bzip2.
    Bzip2,
}

impl fmt::Display for ArchiveFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "zip",
            Self::SevenZip => "7z",
            #[cfg(feature = "installers")]
            Self::Installer => "msi",
            #[cfg(feature = "installers")]
            Self::Cabinet => "cab",
            #[cfg(feature = "installers")]
            Self::Bundle => "WiX bundle",
            Self::Tar(StreamCompression::Plain) => "tar",
            Self::Tar(StreamCompression::Gzip) => "tar.gz",
            Self::Tar(StreamCompression::Zstd) => "tar.zst",
            Self::Tar(StreamCompression::Xz) => "tar.xz",
            Self::Tar(StreamCompression::Bzip2) => "tar.bz2",
        })
    }
}

impl ArchiveFormat {
    /// Detects the format; `None` if the file is not an archive.
    pub(super) fn detect(mut file: impl Read + Send) -> io::Result<Option<Self>> {
        let mut start = Vec::new();
        (&mut file).take(BLOCK as u64).read_to_end(&mut start)?;
        let is = |magic: &[u8]| start.starts_with(magic);
        if is(b"PK\x03\x04") || is(b"PK\x05\x06") || is(b"PK\x07\x08") {
            return Ok(Some(Self::Zip));
        }
        if is(b"7z\xBC\xAF\x27\x1C") {
            return Ok(Some(Self::SevenZip));
        }
        let packing = if is(&[0x1F, 0x8B]) {
            StreamCompression::Gzip
        } else if is(&[0x28, 0xB5, 0x2F, 0xFD]) {
            StreamCompression::Zstd
        } else if is(b"\xFD7zXZ\0") {
            StreamCompression::Xz
        } else if is(b"BZh") {
            StreamCompression::Bzip2
        } else {
            StreamCompression::Plain
        };
        let mut block = [0; BLOCK];
        let first = packing
            .decoder(start.as_slice().chain(file))
            .and_then(|mut stream| stream.read_exact(&mut block));
        // A compressed file that does not start with a tar header is not an archive.
        Ok((first.is_ok() && is_header(&block)).then_some(Self::Tar(packing)))
    }
}

impl StreamCompression {
    /// Decompresses the stream.
    pub(super) fn decoder<'a>(
        self,
        source: impl Read + Send + 'a,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        let source = BufReader::with_capacity(64 << 10, source);
        Ok(match self {
            Self::Plain => Box::new(source),
            Self::Gzip => Box::new(BufReader::new(MultiGzDecoder::new(source))),
            Self::Zstd => Box::new(BufReader::new(zstd::Decoder::with_buffer(source)?)),
            Self::Xz => Box::new(BufReader::new(XzReader::new_mem_limit(
                source, true, XZ_MEMORY,
            ))),
            Self::Bzip2 => Box::new(BufReader::new(MultiBzDecoder::new(source))),
        })
    }
}
