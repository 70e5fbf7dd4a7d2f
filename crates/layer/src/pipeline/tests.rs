use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::Layer;
use crate::test_numbers::numbers;

/// Text that compresses like text, the same on every run. It repeats, but no block equals another.
fn words(bytes: usize) -> Vec<u8> {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        for number in numbers(7).take(300_000) {
            write!(text, "{:x} ", (number >> 40) % 5000).unwrap();
        }
        text
    });
    let mut words = TEXT.repeat(bytes / TEXT.len() + 1);
    words.truncate(bytes);
    words.into_bytes()
}

fn layer(size: usize) -> Layer {
    let mut layer = Layer::new(1_580_000_000);
    layer.file("words.txt".parse().unwrap(), words(size));
    layer
}

fn options(compression: Compression, threads: usize) -> WriteOptions<'static> {
    WriteOptions {
        compression,
        threads: NonZeroUsize::new(threads),
        ..WriteOptions::default()
    }
}

#[test]
fn digests_and_sizes_are_those_of_the_bytes() {
    // Headers of both directories and of the file, and the end mark: exactly a block, and more.
    let block = (1 << 20) - (2 * 1536 + 1536 + 1024);
    for size in [0, 1, 100_000, block, block + 1, 9 << 20] {
        for compression in [Compression::Gzip, Compression::Zstd] {
            let mut blob = Vec::new();
            let written = layer(size)
                .write(&mut blob, &options(compression, 2))
                .unwrap();
            let mut tar = Vec::new();
            match compression {
                Compression::Gzip => {
                    flate2::read::GzDecoder::new(blob.as_slice())
                        .read_to_end(&mut tar)
                        .unwrap();
                }
                Compression::Zstd => tar = zstd::decode_all(blob.as_slice()).unwrap(),
            }
            let expected = WrittenLayer {
                diff_id: sha256(&tar),
                digest: sha256(&blob),
                size: blob.len() as u64,
                uncompressed_size: tar.len() as u64,
                compression,
            };
            assert_eq!(written, expected, "{size} bytes");
            assert_eq!(size == block, tar.len() == 1 << 20);
            let start = tar.len() - 1024 - size.next_multiple_of(512);
            assert_eq!(tar[start..start + size], words(size));
        }
    }
}

/// Notes which thread writes to it.
struct ThreadRecorder(Option<thread::ThreadId>);

impl Write for ThreadRecorder {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0 = Some(thread::current().id());
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn only_a_layer_of_several_blocks_starts_threads() {
    let writer_of = |size| {
        let mut sink = ThreadRecorder(None);
        let options = options(Compression::Gzip, 2);
        layer(size).write(&mut sink, &options).unwrap();
        sink.0.unwrap()
    };
    assert_eq!(writer_of(500_000), thread::current().id());
    assert_ne!(writer_of(2 << 20), thread::current().id());
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    for compression in [Compression::Gzip, Compression::Zstd] {
        let layer = layer(10_000_000);
        let mut one = Vec::new();
        let written = layer.write(&mut one, &options(compression, 1)).unwrap();
        for threads in [2, 64] {
            let mut more = Vec::new();
            let again = layer
                .write(&mut more, &options(compression, threads))
                .unwrap();
            assert!(one == more, "{threads} threads make other bytes");
            assert_eq!(written, again);
        }
    }
}

/// A disk with room for so many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let fits = buffer.len().min(self.0);
        if fits == 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= fits;
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_wherever_it_fills_up() {
    for size in [1000, 8 << 20] {
        let layer = layer(size);
        let options = options(Compression::Gzip, 2);
        let mut blob = Vec::new();
        layer.write(&mut blob, &options).unwrap();
        for room in [0, 9, 100, blob.len() / 2, blob.len() - 9, blob.len() - 1] {
            let error = layer.write(Disk(room), &options).unwrap_err();
            let LayerError::Write(error) = error else {
                panic!("expected a write error, got {error}");
            };
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        layer.write(Disk(blob.len()), &options).unwrap();
    }
}

#[test]
fn a_cancelled_layer_is_given_up() {
    let cancelled = AtomicBool::new(true);
    for size in [10, 8 << 20] {
        let options = WriteOptions {
            cancelled: &cancelled,
            ..options(Compression::Gzip, 2)
        };
        let error = layer(size).write(io::sink(), &options).unwrap_err();
        assert!(matches!(error, LayerError::Cancelled));
    }
}

/// Calls a function with each reported number of bytes.
struct OnAdvance<F>(F);

impl<F: Fn(u64) + Send + Sync> Task for OnAdvance<F> {
    fn advance(&self, bytes: u64) {
        self.0(bytes);
    }

    fn set_position(&self, _bytes: u64) {}

    fn done(&self, _outcome: &str) {}
}

#[test]
fn cancelling_in_the_middle_stops_within_a_block() {
    let (cancelled, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let stop = OnAdvance(|bytes: u64| {
        if seen.fetch_add(bytes, Ordering::Relaxed) + bytes >= 2 << 20 {
            cancelled.store(true, Ordering::Relaxed);
        }
    });
    let options = WriteOptions {
        cancelled: &cancelled,
        progress: &stop,
        ..options(Compression::Gzip, 2)
    };
    let error = layer(64 << 20).write(io::sink(), &options).unwrap_err();
    assert!(matches!(error, LayerError::Cancelled));
    assert_eq!(seen.into_inner(), 2 << 20);
}

#[test]
fn progress_adds_up_to_the_stream() {
    for size in [10, 3 << 20] {
        let seen = AtomicU64::new(0);
        let count = OnAdvance(|bytes: u64| {
            seen.fetch_add(bytes, Ordering::Relaxed);
        });
        let options = WriteOptions {
            progress: &count,
            ..options(Compression::Gzip, 2)
        };
        let written = layer(size).write(io::sink(), &options).unwrap();
        assert_eq!(seen.into_inner(), written.uncompressed_size);
    }
}

fn error_for(path: &Path) -> LayerError {
    let mut layer = layer(3 << 20);
    layer.file("a".parse().unwrap(), path.to_owned());
    layer
        .write(io::sink(), &options(Compression::Gzip, 2))
        .unwrap_err()
}

#[test]
fn a_file_that_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone.txt");
    let error = error_for(&path);
    assert!(error.to_string().contains("gone.txt"), "{error}");
    assert!(matches!(error, LayerError::Read { source, .. }
        if source.kind() == io::ErrorKind::NotFound));
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = error_for(folder.path()).to_string();
    assert!(error.contains("is neither a file"), "{error}");
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error_that_names_it() {
    let meddling: [fn(&File); 3] = [
        |file| file.set_len(100).unwrap(),
        |file| file.set_len(10 << 20).unwrap(),
        |file| file.set_modified(std::time::UNIX_EPOCH).unwrap(),
    ];
    for meddle in meddling {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.txt");
        std::fs::write(&path, words(3 << 20)).unwrap();
        let mut layer = Layer::new(0);
        layer.file("log.txt".parse().unwrap(), path.clone());
        let changed = File::options().write(true).open(&path).unwrap();
        let meddle = OnAdvance(|_: u64| meddle(&changed));
        let options = WriteOptions {
            progress: &meddle,
            ..options(Compression::Gzip, 2)
        };
        let error = layer.write(io::sink(), &options).unwrap_err();
        let expected = format!("{} changed while it was read", path.display());
        assert_eq!(error.to_string(), expected);
    }
}
