//! Bytes that can be read again from any offset: what lets an upload resume.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeekExt, ReadBuf};
use wincimg_common::files;
use wincimg_common::files::Spool;
use wincimg_common::lock;

/// A reader of a source, from some offset to its end.
pub type BlobReader = Pin<Box<dyn AsyncRead + Send>>;

/// Bytes that can be read more than once.
pub trait BlobSource: Send + Sync {
    /// Begins to read at `offset`.
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

/// A source that is mostly read on from where the last reader stopped: then it is not opened anew.
pub struct Continued<'s> {
    source: &'s dyn BlobSource,
    kept: Arc<Mutex<Option<Place>>>,
}

/// A reader, and how far it has come.
struct Place {
    reader: BlobReader,
    offset: u64,
}

impl<'s> Continued<'s> {
    /// A source of the same bytes.
    pub fn new(source: &'s dyn BlobSource) -> Self {
        Self {
            source,
            kept: Arc::default(),
        }
    }
}

impl BlobSource for Continued<'_> {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(async move {
            let kept = lock(&self.kept).take();
            let place = match kept.filter(|place| place.offset == offset) {
                Some(place) => place,
                None => Place {
                    reader: self.source.open(offset).await?,
                    offset,
                },
            };
            let reader = Continuing {
                place: Some(place),
                kept: Arc::clone(&self.kept),
            };
            Ok(Box::pin(reader) as BlobReader)
        })
    }
}

/// A reader that is kept when it is dropped, unless it failed.
struct Continuing {
    place: Option<Place>,
    kept: Arc<Mutex<Option<Place>>>,
}

impl AsyncRead for Continuing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(place) = &mut self.place else {
            return Poll::Ready(Err(io::Error::other("it was read on after it failed")));
        };
        let before = buffer.filled().len();
        let read = ready!(place.reader.as_mut().poll_read(context, buffer));
        place.offset += (buffer.filled().len() - before) as u64;
        if read.is_err() {
            self.place = None;
        }
        Poll::Ready(read)
    }
}

impl Drop for Continuing {
    fn drop(&mut self) {
        *lock(&self.kept) = self.place.take();
    }
}

/// The file at a path.
impl BlobSource for PathBuf {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(open_file(self, offset))
    }
}

/// The same for one that only this process knows.
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
