//! Layers on their way while they are compressed: what outgrows memory is sent as it is written, so
//! that the network and the processor are not busy one after the other.
//!
//! Whether a registry has a layer already is known by its digest, and so not before all of it is
//! written. So only those are sent ahead that it cannot be expected to have: the repository is new, or
//! has another one where this was. Nothing is sent twice.
//!
//! Nobody sees an upload that is not closed, and what nobody goes on with is cancelled. So nothing is
//! in a registry that the build has not got right.

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

/// How long a build that was given up waits until uploads are cancelled.
const TO_CANCEL: Duration = Duration::from_secs(2);

/// Where layers go while they are written.
pub(crate) struct LayerStreams {
    to: Repository,
    /// True if nothing has a tag there, once that was asked.
    is_new: OnceCell<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What sends layers.
    sending: Vec<JoinHandle<()>>,
    /// The layers of which the beginning is there.
    begun: Vec<Digest>,
}

/// A blob that is written, and may be on its way.
pub(super) struct StreamedLayer {
    blob: BlobBuffer,
    size: u64,
    sending: Sending,
}

enum Sending {
    /// It goes nowhere, or not before it is whole.
    No,
    /// It is not yet worth it. Whether it is known to be new to the registry.
    Soon(Arc<LayerStreams>, Handle, bool),
    /// Who is told how much there is, and says how far it came.
    Yes(
        Arc<LayerStreams>,
        watch::Sender<u64>,
        oneshot::Receiver<Option<PartialUpload>>,
    ),
}

impl LayerStreams {
    /// Layers go to this repository.
    pub(super) fn to(repository: Repository) -> Self {
        Self {
            to: repository,
            is_new: OnceCell::new(),
            state: Mutex::default(),
        }
    }

    /// Cancels what nobody went on with.
    pub(super) async fn end(&self) {
        let State { sending, begun } = mem::take(&mut *self.state());
        // A registry forgets by itself what cannot be cancelled in time.
        let _ = timeout(TO_CANCEL, join_all(sending)).await;
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
    /// A blob that goes to a repository as soon as that is worth it, if it is changed there or the
    /// repository is new. Call this where the runtime is at hand.
    pub(super) fn new(
        blob: BlobBuffer,
        streams: Option<Arc<LayerStreams>>,
        is_changed: bool,
    ) -> Self {
        let sending = match streams.zip(Handle::try_current().ok()) {
            Some((streams, runtime)) => Sending::Soon(streams, runtime, is_changed),
            None => Sending::No,
        };
        Self {
            blob,
            size: 0,
            sending,
        }
    }

    /// Ends the writing. This waits for what is on its way: call it outside of asynchronous code.
    pub(super) fn finish(self, digest: &Digest) -> BufferedBlob {
        if let Sending::Yes(streams, grown, sent) = self.sending {
            drop(grown);
            if let Ok(Some(begun)) = sent.blocking_recv() {
                streams.state().begun.push(digest.clone());
                begun.keep(digest);
            }
        }
        self.blob.finish()
    }

    /// What becomes of the sending once there is a file to read from.
    fn begun(&self) -> Option<Sending> {
        let Sending::Soon(streams, runtime, is_changed) = &self.sending else {
            return None;
        };
        // What cannot be read twice is sent when it is whole.
        let Ok(spool) = self.blob.spool()?.reopen() else {
            return Some(Sending::No);
        };
        let (grown, size) = watch::channel(0);
        let (tell, sent) = oneshot::channel();
        let (to, is_changed) = (Arc::clone(streams), *is_changed);
        let sending = runtime.spawn(async move {
            let begun = if is_changed || to.is_new().await {
                to.to.stream_blob(&spool, size).await
            } else {
                None
            };
            // Nobody waits for it where the layer could not be written.
            if let Err(Some(begun)) = tell.send(begun) {
                begun.cancel().await;
            }
        });
        streams.state().sending.push(sending);
        Some(Sending::Yes(Arc::clone(streams), grown, sent))
    }
}

impl Write for StreamedLayer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.blob.write(buffer)?;
        self.size += written as u64;
        if let Some(sending) = self.begun() {
            self.sending = sending;
        }
        if let Sending::Yes(_, grown, _) = &self.sending {
            grown.send_replace(self.size);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blob.flush()
    }
}
