//! A blob that arrives asynchronously, read by blocking code.
//!
//! The bytes cross a channel. When the work is cancelled, the channel closes and the reading thread
//! ends by itself; a thread that waited on the runtime would block its shutdown.

use std::io::{self, Read};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use wincimg_common::progress::Task;
use wincimg_layer::Limits;
use wincimg_oci::remote::BlobReader;

use super::error::LayerProblem;

/// The largest layer of Windows has about 20 GiB unpacked.
const LONGEST_LAYER: u64 = 64 << 30;

/// Limits on reading a layer of Windows.
pub(super) fn layer_limits() -> Limits {
    Limits {
        stream: LONGEST_LAYER,
        ..Limits::default()
    }
}

/// Size of a requested piece, and number of pieces that may wait.
const CHUNK: usize = 128 << 10;
const QUEUE_LENGTH: usize = 4;

/// Extent to which a blob is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// To its end, so that its digest is checked.
    ToTheEnd,
    /// The same, unless the work fails.
    WhileReadable,
    /// Until the work is done.
    UntilFound,
    /// Until the work is done, but no further than this number of bytes.
    Beginning(u64),
}

pub(super) enum BlobReadOutcome<T> {
    /// The blob was read to its end.
    Whole(T),
    /// The work was done before the end.
    Part(T),
    /// The work requires more than the limit allows.
    OutOfReach,
}

/// Runs `work` on a blob in a thread of its own. At its end the reader has to fail unless the bytes
/// match the digest.
pub(super) async fn read<T: Send + 'static>(
    reader: BlobReader,
    depth: Depth,
    task: &dyn Task,
    work: impl FnOnce(&mut Input) -> Result<T, LayerProblem> + Send + 'static,
) -> Result<BlobReadOutcome<T>, LayerProblem> {
    let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
    let mut input = Input {
        receiver,
        chunk: Bytes::new(),
        received: 0,
        depth,
        out_of_reach: false,
    };
    let thread = tokio::task::spawn_blocking(move || {
        let result = work(&mut input);
        input.conclude(result)
    });
    pump(reader, sender, task).await;
    match thread.await {
        Ok(outcome) => outcome,
        Err(error) => Err(LayerProblem::Read(io::Error::other(error))),
    }
}

/// Same as `read`, for callers that read a layer to its end.
pub(super) async fn read_blob<T: Send + 'static>(
    reader: BlobReader,
    task: &dyn Task,
    work: impl FnOnce(&mut (dyn Read + Send)) -> Result<T, LayerProblem> + Send + 'static,
) -> Result<T, LayerProblem> {
    let whole = |input: &mut Input| work(input);
    match read(reader, Depth::ToTheEnd, task, whole).await? {
        BlobReadOutcome::Whole(found) | BlobReadOutcome::Part(found) => Ok(found),
        BlobReadOutcome::OutOfReach => Err(LayerProblem::ForeignBase),
    }
}

/// Forwards bytes until their end, or until the reader is gone.
async fn pump(mut reader: BlobReader, sender: mpsc::Sender<io::Result<Bytes>>, task: &dyn Task) {
    loop {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        let read = tokio::select! {
            read = reader.read_buf(&mut chunk) => read,
            () = sender.closed() => return,
        };
        let piece = match read {
            Ok(0) => return,
            Ok(count) => {
                task.advance(count as u64);
                Ok(chunk.freeze())
            }
            Err(error) => Err(error),
        };
        let broken = piece.is_err();
        if sender.send(piece).await.is_err() || broken {
            return;
        }
    }
}

/// The blocking end of a blob.
pub(super) struct Input {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    chunk: Bytes,
    received: u64,
    depth: Depth,
    out_of_reach: bool,
}

impl Input {
    /// Takes the next piece; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        if let Depth::Beginning(limit) = self.depth
            && self.received >= limit
        {
            self.out_of_reach = true;
            return Err(io::Error::other("read limit reached"));
        }
        let Some(piece) = self.receiver.blocking_recv() else {
            return Ok(false);
        };
        self.chunk = piece?;
        self.received += self.chunk.len() as u64;
        Ok(true)
    }

    /// The final result. Wrong bytes, which show at the end, are the cause of any other error with
    /// them.
    fn conclude<T>(
        mut self,
        result: Result<T, LayerProblem>,
    ) -> Result<BlobReadOutcome<T>, LayerProblem> {
        if self.out_of_reach {
            return Ok(BlobReadOutcome::OutOfReach);
        }
        match self.depth {
            Depth::ToTheEnd => {}
            Depth::WhileReadable if result.is_ok() => {}
            _ => return result.map(BlobReadOutcome::Part),
        }
        while self.advance()? {}
        result.map(BlobReadOutcome::Whole)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let count = self.chunk.len().min(buffer.len());
        self.chunk.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Poll};
    use std::time::Duration;

    use tokio::io::{AsyncRead, ReadBuf};
    use wincimg_common::diagnose::error_chain;
    use wincimg_common::progress::Silent;

    use super::*;

    /// A source of zeros that counts what it returned, and stops after some.
    #[derive(Clone)]
    struct ZeroSource {
        given: Arc<AtomicU64>,
        until: u64,
        then: AtEnd,
    }

    #[derive(Clone, Copy)]
    enum AtEnd {
        Fail,
        Stall,
    }

    impl ZeroSource {
        fn new(until: u64, then: AtEnd) -> Self {
            Self {
                given: Arc::default(),
                until,
                then,
            }
        }

        fn open(&self) -> BlobReader {
            Box::pin(self.clone())
        }
    }

    impl AsyncRead for ZeroSource {
        fn poll_read(
            self: Pin<&mut Self>,
            _context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.given.load(Ordering::SeqCst) >= self.until {
                return match self.then {
                    AtEnd::Fail => Poll::Ready(Err(io::Error::other("the line went dead"))),
                    AtEnd::Stall => Poll::Pending,
                };
            }
            let count = buffer.remaining().min(64 << 10);
            buffer.put_slice(&vec![0; count]);
            self.given.fetch_add(count as u64, Ordering::SeqCst);
            Poll::Ready(Ok(()))
        }
    }

    fn count_all(input: &mut Input) -> Result<u64, LayerProblem> {
        io::copy(input, &mut io::sink()).map_err(LayerProblem::Read)
    }

    const IN_FLIGHT: u64 = ((QUEUE_LENGTH + 2) * CHUNK) as u64;

    #[tokio::test]
    async fn no_more_than_the_beginning_is_asked_for() {
        let zeros = ZeroSource::new(u64::MAX, AtEnd::Stall);
        let depth = Depth::Beginning(1 << 20);
        let outcome = read(zeros.open(), depth, &Silent, count_all).await;
        assert!(matches!(outcome, Ok(BlobReadOutcome::OutOfReach)));
        assert!(zeros.given.load(Ordering::SeqCst) <= (1 << 20) + IN_FLIGHT);
    }

    #[tokio::test]
    async fn work_that_is_done_asks_for_nothing_more_even_of_a_silent_source() {
        let zeros = ZeroSource::new(CHUNK as u64, AtEnd::Stall);
        let work = |input: &mut Input| {
            let mut some = [0; 10];
            input.read_exact(&mut some).map_err(LayerProblem::Read)
        };
        let reading = read(zeros.open(), Depth::UntilFound, &Silent, work);
        let outcome = tokio::time::timeout(Duration::from_secs(20), reading).await;
        assert!(matches!(outcome, Ok(Ok(BlobReadOutcome::Part(())))));
    }

    #[tokio::test]
    async fn the_reason_why_the_bytes_ended_is_reported_rather_than_their_number() {
        for depth in [Depth::ToTheEnd, Depth::UntilFound] {
            let zeros = ZeroSource::new(300_000, AtEnd::Fail);
            let outcome = read(zeros.open(), depth, &Silent, count_all).await;
            let error = error_chain(&outcome.err().unwrap());
            assert_eq!(error, "cannot read its bytes: the line went dead");
        }
    }

    #[tokio::test]
    async fn the_thread_ends_when_the_work_is_given_up() {
        let zeros = ZeroSource::new(300_000, AtEnd::Stall);
        let (sender, ended) = tokio::sync::oneshot::channel();
        let work = |input: &mut Input| {
            let count = count_all(input);
            sender.send(count.is_ok()).unwrap();
            Ok(())
        };
        let reading = read(zeros.open(), Depth::ToTheEnd, &Silent, work);
        let abandoned = tokio::time::timeout(Duration::from_millis(50), reading).await;
        assert!(abandoned.is_err());
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
        assert_eq!(ended.unwrap(), Ok(true));
    }

    #[tokio::test]
    async fn wrong_bytes_are_the_cause_of_what_is_made_of_them() {
        let zeros = ZeroSource::new(3 * CHUNK as u64, AtEnd::Fail);
        let work = |_: &mut Input| -> Result<(), _> { Err(LayerProblem::TooMuch { limit: 0 }) };
        let outcome = read(zeros.open(), Depth::ToTheEnd, &Silent, work).await;
        let error = outcome.err().unwrap();
        assert!(matches!(error, LayerProblem::Read(_)), "{error}");
        for depth in [Depth::UntilFound, Depth::WhileReadable] {
            let outcome = read(zeros.open(), depth, &Silent, work).await;
            assert!(matches!(outcome, Err(LayerProblem::TooMuch { .. })));
        }
    }
}
