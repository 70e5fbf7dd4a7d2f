//! Observes blobs while they are copied, so that they need not be downloaded again.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio_util::io::{ReaderStream, StreamReader};
use wincimg_common::lock;

use crate::document::Descriptor;
use crate::remote::BlobReader;

/// Bytes sent to the observer at once.
const CHUNK: usize = 128 << 10;

/// An observer of copied blobs.
pub trait Watcher: Send + Sync {
    /// Returns a channel for a blob's bytes, each sent once and in order; none if the blob is not
    /// observed. The copy waits while the channel is full and continues alone once it is closed.
    /// The receiver verifies that the bytes are complete and correct.
    fn watch(&self, blob: &Descriptor) -> Option<mpsc::Sender<Bytes>>;
}

/// A blob whose bytes are observed while it is copied.
pub(crate) struct ObservedBlob(Arc<Mutex<ObserverState>>);

struct ObserverState {
    position: u64,
    /// `None` once bytes were skipped or the receiver has closed.
    receiver: Option<mpsc::Sender<Bytes>>,
}

impl ObservedBlob {
    pub(crate) fn new(receiver: mpsc::Sender<Bytes>) -> Self {
        Self(Arc::new(Mutex::new(ObserverState {
            position: 0,
            receiver: Some(receiver),
        })))
    }

    /// Wraps a reader, whose first byte is at `offset`, to also send its bytes to the receiver.
    pub(crate) fn tee(&self, reader: BlobReader, offset: u64) -> BlobReader {
        let seen = Arc::clone(&self.0);
        let mut at = offset;
        let chunks = ReaderStream::with_capacity(reader, CHUNK).then(move |chunk| {
            let news = chunk.as_ref().ok().and_then(|chunk| {
                let news = take_note(&seen, at, chunk);
                at += chunk.len() as u64;
                news
            });
            async move {
                if let Some((receiver, news)) = news {
                    // An error means that the receiver needs no more.
                    let _ = receiver.send(news).await;
                }
                chunk
            }
        });
        Box::pin(StreamReader::new(Box::pin(chunks)))
    }
}

/// Returns the part of a chunk that was not sent before: after a retry, bytes repeat.
fn take_note(
    seen: &Mutex<ObserverState>,
    at: u64,
    chunk: &Bytes,
) -> Option<(mpsc::Sender<Bytes>, Bytes)> {
    let mut seen = lock(seen);
    if at > seen.position || seen.receiver.as_ref()?.is_closed() {
        seen.receiver = None;
        return None;
    }
    let known = usize::try_from(seen.position - at).unwrap_or(usize::MAX);
    if known >= chunk.len() {
        return None;
    }
    seen.position = at + chunk.len() as u64;
    Some((seen.receiver.clone()?, chunk.slice(known..)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::remote::BlobSource;
    use crate::stream::{BlobHandle, FileRange};

    async fn read(watched: &BlobHandle, offset: u64, length: usize) -> Vec<u8> {
        let reader = watched.open(offset).await.unwrap();
        let mut bytes = Vec::new();
        reader
            .take(length as u64)
            .read_to_end(&mut bytes)
            .await
            .unwrap();
        bytes
    }

    fn blob(content: &[u8]) -> (tempfile::NamedTempFile, BlobHandle) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let range = FileRange::new(file.path(), 0, content.len() as u64);
        (file, range.into())
    }

    async fn all(mut receiver: mpsc::Receiver<Bytes>) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            bytes.extend_from_slice(&chunk);
        }
        bytes
    }

    #[tokio::test]
    async fn an_upload_that_begins_again_is_seen_once() {
        let content: Vec<u8> = (0..600_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        let (_file, blob) = blob(&content);
        let (sender, receiver) = mpsc::channel(64);
        let watched = blob.with_receiver(sender);
        assert_eq!(read(&watched, 0, 300_000).await, content[..300_000]);
        assert_eq!(read(&watched, 200_000, 600_000).await, content[200_000..]);
        drop(watched);
        assert_eq!(all(receiver).await, content);
    }

    #[tokio::test]
    async fn an_upload_that_goes_on_behind_what_was_seen_is_seen_no_more() {
        let content = vec![7; 400_000];
        let (_file, blob) = blob(&content);
        let (sender, receiver) = mpsc::channel(64);
        let watched = blob.with_receiver(sender);
        assert_eq!(read(&watched, 300_000, 600_000).await.len(), 100_000);
        assert_eq!(read(&watched, 0, 600_000).await, content);
        drop(watched);
        assert_eq!(all(receiver).await, Vec::<u8>::new());
    }

    #[tokio::test]
    async fn a_copy_goes_on_when_its_reader_ends() {
        let content = vec![7; 900_000];
        let (_file, blob) = blob(&content);
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        let watched = blob.with_receiver(sender);
        assert_eq!(read(&watched, 0, 900_000).await, content);
    }
}
