//! Diff id of a layer without writing it: the digest of its tar, which needs no compression. It
//! identifies a layer that exists already.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{fs, mem, thread};

use wincimg_common::digest::{Digest, Hasher, sha256};

use super::compress::Compression;
use super::content::{ContentSource, EntryContent, Layer};
use super::error::LayerError;
use super::pipeline::{Stream, WriteOptions, thread_panicked};
use super::sorted::SortedLayer;

/// Version of the tar and of its compressed bytes, raised when either changes. Otherwise a build
/// that reuses an older layer would not produce the same image as a build from scratch.
pub(super) const EDITION: u32 = 3;

const BLOCK: usize = 1 << 20;

/// Number of blocks: one is filled, one is hashed, and two are queued.
const BLOCKS: usize = 4;

/// Digest of everything that determines the bytes of a layer's blob, given the digest of its tar.
pub fn inputs(diff_id: &Digest, compression: Compression) -> Digest {
    let mode = compression.format_id();
    sha256(format!("wincimg layer {EDITION} {mode} {diff_id}\n").as_bytes())
}

impl SortedLayer<'_> {
    /// Computes the digest of the tar that [`Self::write`] compresses, with one thread that reads
    /// and one that hashes.
    pub fn diff_id(&self, options: &WriteOptions) -> Result<Digest, LayerError> {
        thread::scope(|scope| {
            let (full, to_hash) = sync_channel(BLOCKS);
            let (empty, to_fill) = sync_channel(BLOCKS);
            for _ in 1..BLOCKS {
                // The other end is held below.
                let _ = empty.send(vec![0; BLOCK]);
            }
            let hasher = scope.spawn(move || hash(&to_hash, &empty));
            let mut blocks = HashSink {
                options,
                block: vec![0; BLOCK],
                filled: 0,
                full,
                to_fill,
            };
            let written = self.stream_to(&mut blocks);
            let written = written.and_then(|()| blocks.pass_on());
            drop(blocks);
            let diff_id = hasher.join().map_err(|_| thread_panicked())?;
            written.map(|()| diff_id)
        })
    }
}

impl Layer {
    /// Returns true if the total size of its files exceeds this number, without reading them.
    pub fn is_larger_than(&self, bytes: u64) -> bool {
        let mut total = 0_u64;
        self.files.iter().any(|entry| {
            if let EntryContent::File(source) = &entry.content {
                total = total.saturating_add(source.length());
            }
            total > bytes
        })
    }
}

impl ContentSource {
    /// Length in bytes; 0 if it is missing.
    pub fn length(&self) -> u64 {
        match self {
            // By its path, for speed: what is read is opened in its folder.
            Self::Path(source) => fs::metadata(&source.path).map_or(0, |data| data.len()),
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Part(part) => part.length(),
            Self::Member(member) => member.size(),
            Self::NotDownloaded { .. } => 0,
        }
    }
}

/// A sink that hashes the tar stream.
struct HashSink<'a> {
    options: &'a WriteOptions<'a>,
    block: Vec<u8>,
    filled: usize,
    full: SyncSender<(Vec<u8>, usize)>,
    to_fill: Receiver<Vec<u8>>,
}

impl HashSink<'_> {
    /// Passes the block on, and continues with one that was hashed.
    fn pass_on(&mut self) -> Result<(), LayerError> {
        let next = self.to_fill.recv().map_err(|_| thread_panicked())?;
        let block = mem::replace(&mut self.block, next);
        let filled = mem::take(&mut self.filled);
        self.options.progress.advance(filled as u64);
        let sent = self.full.send((block, filled));
        sent.map_err(|_| thread_panicked())
    }
}

impl Stream for HashSink<'_> {
    fn room(&mut self) -> Result<&mut [u8], LayerError> {
        if self.filled == self.block.len() {
            self.pass_on()?;
        }
        Ok(&mut self.block[self.filled..])
    }

    fn advance(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.block.len());
    }

    fn check_cancelled(&self) -> Result<(), LayerError> {
        self.options.check_cancelled()
    }
}

fn hash(blocks: &Receiver<(Vec<u8>, usize)>, empty: &SyncSender<Vec<u8>>) -> Digest {
    let mut hash = Hasher::default();
    for (block, filled) in blocks {
        hash.update(&block[..filled]);
        // After the last block the receiver is gone.
        let _ = empty.send(block);
    }
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_numbers::numbers;

    /// Reproducible lines that fill more than one block.
    fn layer() -> Layer {
        let mut text = Vec::new();
        for number in numbers(7) {
            if text.len() >= 5 << 20 {
                break;
            }
            text.extend_from_slice(format!("{:x} {}\n", number >> 44, number >> 60).as_bytes());
        }
        let mut layer = Layer::new(1_580_000_000);
        layer.file("app/text.txt".parse().unwrap(), text);
        layer.file("app/none.txt".parse().unwrap(), Vec::new());
        layer.delete("old".parse().unwrap());
        layer.hive("System_Delta".parse().unwrap(), vec![1; 5000]);
        layer
    }

    #[test]
    fn a_layer_that_is_not_written_has_the_digest_of_its_tar() {
        for layer in [layer(), Layer::new(1)] {
            let options = WriteOptions::default();
            let written = layer.write(std::io::sink(), &options).unwrap();
            let arranged = layer.sort_entries().unwrap();
            assert_eq!(arranged.diff_id(&options).unwrap(), written.diff_id);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_ends_the_hashing() {
        let mut layer = layer();
        let gone = std::path::PathBuf::from("/nonexistent/file");
        layer.file("gone".parse().unwrap(), gone);
        let arranged = layer.sort_entries().unwrap();
        let error = arranged.diff_id(&WriteOptions::default()).unwrap_err();
        assert!(matches!(error, LayerError::Read { .. }), "{error}");
    }

    #[test]
    fn the_size_is_reported_without_reading() {
        let layer = layer();
        assert!(layer.is_larger_than(5 << 20));
        assert!(!layer.is_larger_than(6 << 20));
    }

    /// If this fails because the tar or its compressed bytes changed: raise [`EDITION`], and update
    /// the digest here.
    #[test]
    fn the_bytes_are_those_of_this_edition() {
        let options = WriteOptions::default();
        let written = layer().write(std::io::sink(), &options).unwrap();
        let expected = "sha256:e4c95cb924b21f193a57ac2b0d30243083a19eb2f8dd5f5278ee26563f9f1c0d";
        assert_eq!((written.digest.as_ref(), EDITION), (expected, 3));
    }
}
