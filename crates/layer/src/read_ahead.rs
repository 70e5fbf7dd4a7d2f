//! Read-ahead of files for a layer: opening many small files takes a disk or a file server longer
//! than reading them, so several are opened in parallel.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::{mem, vec};

use wincimg_common::lock;

use super::error::LayerError;
use super::pipeline::{Stream, thread_panicked};
use crate::DiskSource;

/// Number of reading threads.
pub(super) const READERS: usize = 4;

/// Files per batch, which limits the overhead of channels.
const BATCH: usize = 16;

/// Batches read ahead.
const QUEUED_BATCHES: usize = 2 * READERS;

/// Maximum size of a file that is read ahead; a larger one is only opened ahead.
const SMALL: usize = 64 << 10;

/// Files in order.
pub(super) struct ReadAhead<'scope, 'env, 'a, P> {
    scope: &'scope Scope<'scope, 'env>,
    sources: P,
    /// Channel to the readers, if there is more than one batch.
    readers: Option<SyncSender<ReadJob<'a>>>,
    /// Pending batches.
    awaited: VecDeque<Receiver<Batch<'a>>>,
    current: Batch<'a>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

/// The next file.
pub(super) enum PreparedFile<'a, 'b> {
    /// The whole content.
    Read(&'b [u8]),
    /// A large file, opened.
    Open(OpenFile<'a>),
}

/// Files of one batch.
#[derive(Default)]
struct Batch<'a> {
    files: vec::IntoIter<Result<BatchFile<'a>, LayerError>>,
    /// Concatenated bytes of the small files.
    bytes: Vec<u8>,
}

enum BatchFile<'a> {
    /// A range of the batch's bytes.
    Small(Range<usize>),
    Large(OpenFile<'a>),
}

struct ReadJob<'a> {
    sources: Vec<&'a DiskSource>,
    room: Vec<u8>,
    result: SyncSender<Batch<'a>>,
}

impl<'scope, 'env, 'a, P> ReadAhead<'scope, 'env, 'a, P>
where
    P: Iterator<Item = &'a DiskSource>,
    'a: 'scope,
{
    /// Creates a read-ahead with threads in a scope, which end with it.
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, sources: P) -> Self {
        Self {
            scope,
            sources,
            readers: None,
            awaited: VecDeque::new(),
            current: Batch::default(),
            spare: Vec::new(),
        }
    }

    /// Returns the next file.
    pub(super) fn next(&mut self) -> Result<PreparedFile<'a, '_>, LayerError> {
        if self.current.files.len() == 0 {
            let done = mem::take(&mut self.current);
            self.spare.push(done.bytes);
            self.current = self.batch()?;
        }
        let batch = &mut self.current;
        Ok(match batch.files.next().ok_or_else(thread_panicked)?? {
            BatchFile::Small(own) => PreparedFile::Read(&batch.bytes[own]),
            BatchFile::Large(file) => PreparedFile::Open(file),
        })
    }

    fn batch(&mut self) -> Result<Batch<'a>, LayerError> {
        while self.awaited.len() < QUEUED_BATCHES {
            let sources: Vec<&DiskSource> = self.sources.by_ref().take(BATCH).collect();
            if sources.is_empty() {
                break;
            }
            let room = self.spare.pop().unwrap_or_default();
            if self.readers.is_none() && sources.len() < BATCH {
                return Ok(Batch::read_batch(&sources, room));
            }
            let scope = self.scope;
            let readers = self.readers.get_or_insert_with(|| start_readers(scope));
            let (result, awaited) = sync_channel(1);
            let job = ReadJob {
                sources,
                room,
                result,
            };
            readers.send(job).map_err(|_| thread_panicked())?;
            self.awaited.push_back(awaited);
        }
        let next = self.awaited.pop_front().ok_or_else(thread_panicked)?;
        next.recv().map_err(|_| thread_panicked())
    }
}

fn start_readers<'scope, 'a: 'scope>(scope: &'scope Scope<'scope, '_>) -> SyncSender<ReadJob<'a>> {
    let (readers, jobs) = sync_channel(QUEUED_BATCHES);
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..READERS {
        let jobs = Arc::clone(&jobs);
        scope.spawn(move || read_files(&jobs));
    }
    readers
}

fn read_files(jobs: &Mutex<Receiver<ReadJob>>) {
    loop {
        let next = lock(jobs).recv();
        let Ok(job) = next else { return };
        // The receiver is gone once a file cannot be read.
        let _ = job.result.send(Batch::read_batch(&job.sources, job.room));
    }
}

impl<'a> Batch<'a> {
    fn read_batch(sources: &[&'a DiskSource], mut room: Vec<u8>) -> Self {
        room.clear();
        let files: Vec<_> = sources
            .iter()
            .map(|source| BatchFile::at(source, &mut room))
            .collect();
        Self {
            files: files.into_iter(),
            bytes: room,
        }
    }
}

impl<'a> BatchFile<'a> {
    /// Opens a file, and appends its bytes if it is small.
    fn at(source: &'a DiskSource, bytes: &mut Vec<u8>) -> Result<Self, LayerError> {
        let mut file = OpenFile::at(source)?;
        let size = match usize::try_from(file.size()) {
            Ok(size) if size <= SMALL => size,
            _ => return Ok(Self::Large(file)),
        };
        let own = bytes.len()..bytes.len() + size;
        bytes.resize(own.end, 0);
        let mut read = own.start;
        while read < own.end {
            read += file.read(&mut bytes[read..])?;
        }
        file.check_unchanged()?;
        Ok(Self::Small(own))
    }
}

/// A file on disk whose size is in the stream's header already.
pub(super) struct OpenFile<'a> {
    source: &'a DiskSource,
    file: File,
    metadata: fs::Metadata,
}

impl<'a> OpenFile<'a> {
    fn at(source: &'a DiskSource) -> Result<Self, LayerError> {
        let path = &source.path;
        let (file, metadata) = source.open().map_err(|error| match source.metadata() {
            Ok(found) if !found.is_file() => LayerError::not_a_file(path),
            _ => LayerError::unreadable(path, error),
        })?;
        Ok(Self {
            source,
            file,
            metadata,
        })
    }

    /// Size from the file system.
    pub(super) fn size(&self) -> u64 {
        self.metadata.len()
    }

    /// Writes all of it.
    pub(super) fn copy(mut self, blocks: &mut impl Stream) -> Result<(), LayerError> {
        blocks.fill(self.size(), |room| self.read(room))?;
        self.check_unchanged()
    }

    /// Reads at least a byte.
    fn read(&mut self, room: &mut [u8]) -> Result<usize, LayerError> {
        loop {
            match self.file.read(room) {
                Ok(0) => return Err(self.changed()),
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LayerError::unreadable(&self.source.path, error)),
            }
        }
    }

    fn check_unchanged(&self) -> Result<(), LayerError> {
        let after = self.file.metadata();
        let after = after.map_err(|error| LayerError::unreadable(&self.source.path, error))?;
        let is_same =
            after.len() == self.size() && after.modified().ok() == self.metadata.modified().ok();
        if is_same { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> LayerError {
        LayerError::Changed {
            path: self.source.path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::{Layer, WriteOptions, WrittenLayer};
    use super::*;

    /// Many files of all sizes, in a folder and in memory.
    fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let sizes = [0, 1, 700, 64 << 10, (64 << 10) + 1, 3 << 20];
        let sizes = sizes.into_iter().chain((0..300).map(|size| 7 * size));
        let files = sizes.enumerate().map(|(number, size)| {
            let bytes = vec![u8::try_from(number % 251).unwrap(); size];
            let path = folder.join(format!("{number}.bin"));
            fs::write(&path, &bytes).unwrap();
            (path, bytes)
        });
        files.collect()
    }

    fn written(layer: &Layer) -> Result<WrittenLayer, LayerError> {
        layer.write(io::sink(), &WriteOptions::default())
    }

    #[test]
    fn files_come_whole_and_in_their_order_however_many_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path());
        for count in [0, 1, 6, BATCH - 1, BATCH, BATCH + 1, files.len()] {
            let mut on_disk = Layer::new(1);
            let mut in_memory = Layer::new(1);
            for (path, bytes) in &files[..count] {
                let name = path.file_name().unwrap().to_str().unwrap();
                on_disk.file(name.parse().unwrap(), path.clone());
                in_memory.file(name.parse().unwrap(), bytes.clone());
            }
            assert_eq!(written(&on_disk).unwrap(), written(&in_memory).unwrap());
        }
    }

    #[test]
    fn the_first_file_that_cannot_be_read_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut layer = Layer::new(1);
        for (path, _) in files(folder.path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            layer.file(name.parse().unwrap(), path);
        }
        for gone in ["299.bin", "200.bin"] {
            let path = folder.path().join(gone);
            fs::remove_file(&path).unwrap();
            let error = written(&layer).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
