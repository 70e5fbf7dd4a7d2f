//! Pipeline from tar bytes to a blob: split into blocks, hashed, compressed on all cores, hashed
//! again and written, in one pass with a fixed number of blocks in memory.
//!
//! A layer of one block is compressed on the caller's thread. For more the caller fills blocks, one
//! thread hashes them for the diff id, several compress them, and one receives the compressed
//! blocks in order, hashes them for the digest and writes them.

use std::io::{self, Write};
use std::mem;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};

use flate2::Crc;
use wincimg_common::digest::{Digest, Hasher, sha256};
use wincimg_common::lock;
use wincimg_common::progress::{Silent, Task};

use super::compress::{Compression, EncodedBlock, Encoder};
use super::error::LayerError;

/// Blocks queued per thread: filling a block is much faster than compressing it.
const QUEUE_LENGTH: usize = 2;

static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// Options of writing a layer.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// The compression of the blob.
    pub compression: Compression,
    /// Number of compressing threads; all cores by default. The bytes do not depend on it.
    pub threads: Option<NonZeroUsize>,
    /// Cancels the work when set by another thread, with [`LayerError::Cancelled`].
    pub cancelled: &'a AtomicBool,
    /// Progress in bytes of the tar stream.
    pub progress: &'a dyn Task,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        Self {
            compression: Compression::default(),
            threads: None,
            cancelled: &NOT_CANCELLED,
            progress: &Silent,
        }
    }
}

impl WriteOptions<'_> {
    pub(super) fn check_cancelled(&self) -> Result<(), LayerError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(LayerError::Cancelled);
        }
        Ok(())
    }

    fn compressors(&self) -> usize {
        self.threads
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
            .min(self.compression.most_compressors())
    }
}

/// Properties of a written layer for an image's manifest and config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenLayer {
    /// The digest of the tar stream, for the config's `diff_ids`.
    pub diff_id: Digest,
    /// The digest of the blob.
    pub digest: Digest,
    /// The size of the blob.
    pub size: u64,
    /// The size of the tar stream.
    pub uncompressed_size: u64,
    /// The compression, which determines the layer's media type.
    pub compression: Compression,
}

/// Sink of a tar stream.
pub(super) trait Stream {
    /// Buffer for the next bytes, at least one; [`Self::advance`] adds them to the stream.
    fn room(&mut self) -> Result<&mut [u8], LayerError>;

    fn advance(&mut self, bytes: usize);

    /// Returns an error if the caller cancelled.
    fn check_cancelled(&self) -> Result<(), LayerError>;

    /// Appends to the stream.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), LayerError> {
        while !bytes.is_empty() {
            let room = self.room()?;
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            room[..now.len()].copy_from_slice(now);
            self.advance(now.len());
            bytes = later;
        }
        Ok(())
    }

    /// Appends this many bytes from `read`, which fills the buffer that it gets.
    fn fill(
        &mut self,
        length: u64,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, LayerError>,
    ) -> Result<(), LayerError> {
        let mut left = length;
        while left > 0 {
            let room = self.room()?;
            let most = usize::try_from(left).unwrap_or(room.len()).min(room.len());
            let read = read(&mut room[..most])?;
            self.advance(read);
            left -= read as u64;
        }
        Ok(())
    }
}

/// Sink that splits the tar stream into blocks.
pub(super) struct Blocks<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    options: &'env WriteOptions<'env>,
    block: Vec<u8>,
    filled: usize,
    /// Bytes of the previous blocks.
    passed: u64,
    stage: Stage<'scope, 'env>,
}

enum Stage<'scope, 'env> {
    /// Everything so far is in one block.
    Gathering(&'env mut (dyn Write + Send)),
    Running(WorkerPool<'scope>),
    /// A thread failed, and the error was returned.
    Ended,
}

impl<'scope, 'env> Blocks<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        sink: &'env mut (dyn Write + Send),
        options: &'env WriteOptions<'env>,
    ) -> Self {
        Self {
            scope,
            options,
            block: vec![0; options.compression.block_size()],
            filled: 0,
            passed: 0,
            stage: Stage::Gathering(sink),
        }
    }

    /// Reuses a block.
    fn spare(&self) -> Option<Vec<u8>> {
        match &self.stage {
            Stage::Running(threads) => threads.spare.try_recv().ok(),
            Stage::Gathering(_) | Stage::Ended => None,
        }
    }

    fn pass_on(&mut self, block: Vec<u8>) -> Result<(), LayerError> {
        self.options.check_cancelled()?;
        self.passed += block.len() as u64;
        self.options.progress.advance(block.len() as u64);
        let mut threads = match mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Gathering(sink) => WorkerPool::start(self.scope, sink, self.options)?,
            Stage::Running(threads) => threads,
            Stage::Ended => return Err(thread_panicked()),
        };
        if threads.send(block) {
            self.stage = Stage::Running(threads);
            return Ok(());
        }
        Err(threads.join().err().unwrap_or_else(thread_panicked))
    }

    pub(super) fn finish(mut self) -> Result<WrittenLayer, LayerError> {
        let mut last = mem::take(&mut self.block);
        last.truncate(self.filled);
        let compression = self.options.compression;
        if let Stage::Gathering(sink) = self.stage {
            self.options.check_cancelled()?;
            self.options.progress.advance(last.len() as u64);
            let mut encoder = Encoder::new(compression).map_err(LayerError::Compress)?;
            let block = encoder.encode(&[], &last).map_err(LayerError::Compress)?;
            let mut output = Output::start(sink, compression).map_err(LayerError::Write)?;
            output.put(&block).map_err(LayerError::Write)?;
            let (digest, size) = output.finish(compression).map_err(LayerError::Write)?;
            return Ok(WrittenLayer {
                diff_id: sha256(&last),
                digest,
                size,
                uncompressed_size: last.len() as u64,
                compression,
            });
        }
        self.pass_on(last)?;
        let Stage::Running(threads) = self.stage else {
            return Err(thread_panicked());
        };
        let (diff_id, (digest, size)) = threads.join()?;
        Ok(WrittenLayer {
            diff_id,
            digest,
            size,
            uncompressed_size: self.passed,
            compression,
        })
    }
}

impl Stream for Blocks<'_, '_> {
    fn room(&mut self) -> Result<&mut [u8], LayerError> {
        if self.filled == self.block.len() {
            let full = mem::take(&mut self.block);
            let size = full.len();
            self.filled = 0;
            self.pass_on(full)?;
            self.block = self.spare().unwrap_or_else(|| vec![0; size]);
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

/// A block for a compressor, the window before it, and the channel of the result.
struct CompressionJob {
    before: Vec<u8>,
    block: Arc<Vec<u8>>,
    result: SyncSender<io::Result<EncodedBlock>>,
}

type PendingBlock = Receiver<io::Result<EncodedBlock>>;
type DigestAndSize = (Digest, u64);

/// Worker threads, fed by bounded channels whose drop ends them.
struct WorkerPool<'scope> {
    to_hash: SyncSender<Arc<Vec<u8>>>,
    to_compress: SyncSender<CompressionJob>,
    to_write: SyncSender<PendingBlock>,
    /// Window of the previous block.
    before: Vec<u8>,
    compression: Compression,
    /// Free blocks for reuse.
    spare: Receiver<Vec<u8>>,
    hasher: ScopedJoinHandle<'scope, Digest>,
    writer: ScopedJoinHandle<'scope, Result<DigestAndSize, LayerError>>,
}

impl<'scope> WorkerPool<'scope> {
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        sink: &'env mut (dyn Write + Send),
        options: &WriteOptions,
    ) -> Result<Self, LayerError> {
        let compression = options.compression;
        let compressors = options.compressors();
        let (to_hash, hash_queue) = sync_channel(QUEUE_LENGTH);
        let (to_compress, compress_queue) = sync_channel(QUEUE_LENGTH);
        let (to_write, write_queue) = sync_channel(compressors + QUEUE_LENGTH);
        let compress_queue = Arc::new(Mutex::new(compress_queue));
        let (done, spare) = channel();
        for _ in 0..compressors {
            let encoder = Encoder::new(compression).map_err(LayerError::Compress)?;
            let queue = Arc::clone(&compress_queue);
            let done = done.clone();
            scope.spawn(move || compress_blocks(&queue, encoder, &done));
        }
        Ok(Self {
            to_hash,
            to_compress,
            to_write,
            before: Vec::new(),
            compression,
            spare,
            hasher: scope.spawn(move || hash_blocks(&hash_queue, &done)),
            writer: scope.spawn(move || write_blocks(&write_queue, sink, compression)),
        })
    }

    /// Sends a block to the threads; false if one of them failed.
    fn send(&mut self, block: Vec<u8>) -> bool {
        let window = self.compression.window(&block).to_vec();
        let before = mem::replace(&mut self.before, window);
        let block = Arc::new(block);
        let (result, awaited) = sync_channel(1);
        self.to_write.send(awaited).is_ok()
            && self.to_hash.send(Arc::clone(&block)).is_ok()
            && self
                .to_compress
                .send(CompressionJob {
                    before,
                    block,
                    result,
                })
                .is_ok()
    }

    /// Waits for the threads and returns the diff id, the digest and the size.
    fn join(self) -> Result<(Digest, DigestAndSize), LayerError> {
        drop((self.to_hash, self.to_compress, self.to_write));
        let written = self.writer.join().map_err(|_| thread_panicked())??;
        let diff_id = self.hasher.join().map_err(|_| thread_panicked())?;
        Ok((diff_id, written))
    }
}

pub(super) fn thread_panicked() -> LayerError {
    LayerError::Compress(io::Error::other("a thread ended early"))
}

fn compress_blocks(
    queue: &Mutex<Receiver<CompressionJob>>,
    mut encoder: Encoder,
    done: &Sender<Vec<u8>>,
) {
    loop {
        let next = lock(queue).recv();
        let Ok(job) = next else { return };
        // The receiver is gone once the writer has failed.
        let _ = job.result.send(encoder.encode(&job.before, &job.block));
        give_back(job.block, done);
    }
}

fn hash_blocks(queue: &Receiver<Arc<Vec<u8>>>, done: &Sender<Vec<u8>>) -> Digest {
    let mut hasher = Hasher::default();
    for block in queue {
        hasher.update(&block);
        give_back(block, done);
    }
    hasher.finish()
}

/// Returns a block from its last user. The receiver is gone once all blocks are filled.
fn give_back(block: Arc<Vec<u8>>, done: &Sender<Vec<u8>>) {
    if let Some(block) = Arc::into_inner(block) {
        let _ = done.send(block);
    }
}

fn write_blocks(
    queue: &Receiver<PendingBlock>,
    sink: &mut (dyn Write + Send),
    compression: Compression,
) -> Result<DigestAndSize, LayerError> {
    let mut output = Output::start(sink, compression).map_err(LayerError::Write)?;
    for awaited in queue {
        // A block of an abandoned layer is never compressed.
        let Ok(encoded) = awaited.recv() else {
            return Err(thread_panicked());
        };
        let encoded = encoded.map_err(LayerError::Compress)?;
        output.put(&encoded).map_err(LayerError::Write)?;
    }
    output.finish(compression).map_err(LayerError::Write)
}

/// The blob as it is written.
struct Output<'a> {
    sink: &'a mut (dyn Write + Send),
    digest: Hasher,
    size: u64,
    crc: Crc,
}

impl<'a> Output<'a> {
    fn start(sink: &'a mut (dyn Write + Send), compression: Compression) -> io::Result<Self> {
        let mut output = Self {
            sink,
            digest: Hasher::default(),
            size: 0,
            crc: Crc::new(),
        };
        output.write(compression.header())?;
        Ok(output)
    }

    fn put(&mut self, block: &EncodedBlock) -> io::Result<()> {
        self.crc.combine(&block.crc);
        self.write(&block.bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)?;
        self.digest.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn finish(mut self, compression: Compression) -> io::Result<DigestAndSize> {
        self.write(&compression.trailer(&self.crc))?;
        self.sink.flush()?;
        Ok((self.digest.finish(), self.size))
    }
}

#[cfg(test)]
mod tests;
