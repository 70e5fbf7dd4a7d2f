//! Bytes that can be read again from any offset, so that an upload can resume.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeekExt};
use wincimg_common::files;
use wincimg_common::files::Spool;

/// A reader of a source from some offset.
pub type BlobReader = Pin<Box<dyn AsyncRead + Send>>;

/// Bytes that can be read more than once.
pub trait BlobSource: Send + Sync {
    /// Opens a reader at `offset`.
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>>;
}

impl BlobSource for Bytes {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        let at = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let rest = io::Cursor::new(self.slice(at..));
        Box::pin(async { Ok(Box::pin(rest) as BlobReader) })
    }
}

/// The last reader and its position: the next chunk continues there without reopening the source.
pub type CachedReader = Mutex<Option<(u64, BlobReader)>>;

impl BlobSource for PathBuf {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(open_file(self, offset))
    }
}

/// A temporary file of this process.
impl BlobSource for Spool {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(open_file(self.path(), offset))
    }
}

async fn open_file(path: &Path, offset: u64) -> io::Result<BlobReader> {
    let mut file = File::from_std(files::open(path)?);
    file.seek(io::SeekFrom::Start(offset)).await?;
    Ok(Box::pin(file))
}
