//! Shows the bytes of a download to an observer, which does not delay it.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

/// Time that a download may wait for its observer in total: this, and a part of the time that it
/// has taken so far.
const GRACE: Duration = Duration::from_millis(250);
const GRACE_PART: u32 = 8;

/// An observer of a blob's bytes while they are transferred.
pub struct BlobObserver {
    /// Takes the bytes in order. They end early if the transfer breaks, or this is full for too
    /// long: a transfer does not wait.
    pub bytes: mpsc::Sender<Bytes>,
    /// Told once all bytes of the transfer match the digest, of which the observer may have taken
    /// fewer.
    pub verified: oneshot::Sender<()>,
}

pub(super) struct Observation {
    /// None once the observer needs no more, or has fallen behind.
    bytes: Option<mpsc::Sender<Bytes>>,
    verified: oneshot::Sender<()>,
    began: Instant,
    waited: Duration,
}

impl Observation {
    pub(super) fn new(observer: BlobObserver) -> Self {
        Self {
            bytes: Some(observer.bytes),
            verified: observer.verified,
            began: Instant::now(),
            waited: Duration::ZERO,
        }
    }

    /// Sends the next bytes, if the observer still takes them.
    pub(super) async fn send(&mut self, chunk: &Bytes) {
        let Some(bytes) = &self.bytes else { return };
        let is_sent = match bytes.try_send(chunk.clone()) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(chunk)) => {
                let full = Instant::now();
                let limit = GRACE + self.began.elapsed() / GRACE_PART;
                let sent = timeout(limit.saturating_sub(self.waited), bytes.send(chunk)).await;
                self.waited += full.elapsed();
                matches!(sent, Ok(Ok(())))
            }
        };
        if !is_sent {
            self.bytes = None;
        }
    }

    /// Tells that all bytes of the download match the digest.
    pub(super) fn confirm(self) {
        // An observer that is gone needs nothing.
        let _ = self.verified.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_download_waits_only_briefly_for_an_observer_that_takes_nothing() {
        let (bytes, mut receiver) = mpsc::channel(2);
        let (verified, is_verified) = oneshot::channel();
        let mut observation = Observation::new(BlobObserver { bytes, verified });
        let sending = async {
            for number in 0..100_u8 {
                observation.send(&Bytes::from(vec![number])).await;
            }
        };
        timeout(Duration::from_secs(20), sending).await.unwrap();
        for number in 0..2 {
            assert_eq!(receiver.recv().await, Some(Bytes::from(vec![number])));
        }
        assert_eq!(receiver.recv().await, None);
        observation.confirm();
        assert_eq!(is_verified.await, Ok(()));
    }
}
