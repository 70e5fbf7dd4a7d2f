//! Streams layers while they are compressed: what exceeds memory is sent as it is written, so that
//! the network and the processor work at the same time.
//!
//! A registry can only be asked for a layer by its digest, which is known when the layer is
//! complete. So only layers that it is not expected to have are streamed: those of a new
//! repository, or changed ones. Nothing is sent twice.
//!
//! An upload that is not closed is invisible, and is cancelled if it is not finished. So a registry
//! never has layers of a failed build.

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wincimg_common::lock;
use wincimg_layer::{BlobBuffer, BufferedBlob};
use wincimg_oci::document::Digest;
use wincimg_oci::remote::{PartialUpload, Repository};

/// Time limit for cancelling the uploads of a cancelled build.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct LayerStreams {
    to: Repository,
    /// True if the repository has no tags, once it was queried.
    is_new: OnceCell<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The running uploads.
    sending: Vec<JoinHandle<()>>,
    /// The layers whose upload began.
    begun: Vec<Digest>,
}

/// A blob that is written, and may be streamed.
pub(super) struct StreamedLayer {
    blob: BlobBuffer,
    size: u64,
    sending: StreamState,
}

enum StreamState {
    No,
    /// Streamed once it is large enough. True if it is known to be new to the registry.
    Soon(Arc<LayerStreams>, Handle, bool),
    /// Streamed: the sender of its size, and the task.
    Yes(
        Arc<LayerStreams>,
        watch::Sender<u64>,
        oneshot::Receiver<Option<PartialUpload>>,
    ),
}

impl LayerStreams {
    pub(super) fn to(repository: Repository) -> Self {
        Self {
            to: repository,
            is_new: OnceCell::new(),
            state: Mutex::default(),
        }
    }

    /// Cancels the uploads that were not finished.
    pub(super) async fn end(&self) {
        let State { sending, begun } = mem::take(&mut *self.state());
        // A registry expires what cannot be cancelled in time.
        let _ = timeout(CANCEL_TIMEOUT, join_all(sending)).await;
        for digest in begun {
            self.to.cancel_partial_upload(&digest).await;
        }
    }

    async fn is_new(&self) -> bool {
        *self.is_new.get_or_init(|| self.to.is_new()).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl StreamedLayer {
    /// A blob that is streamed to a repository once it is large enough, if it changed there or the
    /// repository is new. Call this on the runtime.
    pub(super) fn new(
        blob: BlobBuffer,
        streams: Option<Arc<LayerStreams>>,
        is_changed: bool,
    ) -> Self {
        let sending = match streams.zip(Handle::try_current().ok()) {
            Some((streams, runtime)) => StreamState::Soon(streams, runtime, is_changed),
            None => StreamState::No,
        };
        Self {
            blob,
            size: 0,
            sending,
        }
    }

    /// Finishes the blob. This waits for the upload: call it outside of asynchronous code.
    pub(super) fn finish(self, digest: &Digest) -> BufferedBlob {
        if let StreamState::Yes(streams, grown, sent) = self.sending {
            drop(grown);
            if let Ok(Some(begun)) = sent.blocking_recv() {
                streams.state().begun.push(digest.clone());
                begun.keep(digest);
            }
        }
        self.blob.finish()
    }

    /// Starts the upload once there is a file to read from.
    fn begun(&self) -> Option<StreamState> {
        let StreamState::Soon(streams, runtime, is_changed) = &self.sending else {
            return None;
        };
        // A blob that cannot be read twice is sent when it is complete.
        let Ok(spool) = self.blob.spool()?.reopen() else {
            return Some(StreamState::No);
        };
        let (grown, size) = watch::channel(0);
        let (sender, sent) = oneshot::channel();
        let (to, is_changed) = (Arc::clone(streams), *is_changed);
        let sending = runtime.spawn(async move {
            let begun = if is_changed || to.is_new().await {
                to.to.stream_blob(&spool, size).await
            } else {
                None
            };
            // The receiver is gone if the layer could not be written.
            if let Err(Some(begun)) = sender.send(begun) {
                begun.cancel().await;
            }
        });
        streams.state().sending.push(sending);
        Some(StreamState::Yes(Arc::clone(streams), grown, sent))
    }
}

impl Write for StreamedLayer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.blob.write(buffer)?;
        self.size += written as u64;
        if let Some(sending) = self.begun() {
            self.sending = sending;
        }
        if let StreamState::Yes(_, grown, _) = &self.sending {
            grown.send_replace(self.size);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blob.flush()
    }
}
