//! The uncompressed bytes of a layer, and their digest, which is the layer's `diff_id`.

use std::io::{self, Cursor, Read};

use wincimg_layer::archive::StreamCompression;
use wincimg_layer::{TarReadError, decompress, detect_compression};
use wincimg_oci::document::{Digest, Hasher};

use super::stream::layer_limits;

/// A layer that is uncompressed while it is read.
pub(crate) struct UnpackedLayer<'a> {
    bytes: Box<dyn Read + Send + 'a>,
    /// Compression of its bytes, whatever its media type says.
    pub(crate) compression: StreamCompression,
    hasher: Option<Hasher>,
}

impl<'a> UnpackedLayer<'a> {
    /// Detects the compression. With `to_the_end` the bytes are hashed.
    pub(crate) fn new(mut source: impl Read + Send + 'a, to_the_end: bool) -> io::Result<Self> {
        let mut magic = Vec::new();
        (&mut source).take(4).read_to_end(&mut magic)?;
        let compression = detect_compression(&magic);
        Ok(Self {
            bytes: decompress(Cursor::new(magic).chain(source))?,
            compression,
            hasher: to_the_end.then(Hasher::default),
        })
    }

    /// Digest of all bytes, if they are hashed. Reads those behind the end of the archive, which
    /// runtimes hash, too.
    pub(crate) fn finish(mut self) -> Result<Option<Digest>, TarReadError> {
        if self.hasher.is_none() {
            return Ok(None);
        }
        let limit = layer_limits().stream;
        let mut rest = (&mut self).take(limit);
        let rest = io::copy(&mut rest, &mut io::sink()).map_err(TarReadError::Io)?;
        if rest == limit {
            return Err(TarReadError::TooLong(limit));
        }
        Ok(self.hasher.map(Hasher::finish))
    }
}

impl Read for UnpackedLayer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use wincimg_oci::document::sha256;
    use wincimg_testkit::test_bases::gzip;

    use super::*;

    #[test]
    fn the_digest_is_that_of_all_uncompressed_bytes_however_far_they_were_read() {
        let tar = vec![7; 300_000];
        let gzip = gzip(&tar);
        let zstd = zstd::encode_all(tar.as_slice(), 0).unwrap();
        for (stored, compression) in [
            (&tar, StreamCompression::Plain),
            (&gzip, StreamCompression::Gzip),
            (&zstd, StreamCompression::Zstd),
        ] {
            let mut layer = UnpackedLayer::new(stored.as_slice(), true).unwrap();
            assert_eq!(layer.compression, compression);
            layer.read_exact(&mut [0; 1000]).unwrap();
            assert_eq!(layer.finish().unwrap(), Some(sha256(&tar)));
            let layer = UnpackedLayer::new(stored.as_slice(), false).unwrap();
            assert_eq!(layer.finish().unwrap(), None);
        }
        let cut = &gzip[..gzip.len() - 1];
        let layer = UnpackedLayer::new(cut, true).unwrap();
        assert!(layer.finish().is_err(), "its checksum is missing");
    }
}
