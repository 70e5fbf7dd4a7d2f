//! Programs in pods, by exec over WebSocket.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{Api, AttachParams, AttachedProcess};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, Join, ReadBuf, ReadHalf, SimplexStream, WriteHalf, join,
};

use super::{Cluster, LiveError, REQUEST_TIMEOUT};

/// Bytes in each direction that wait for their reader.
const BUFFER: usize = 64 << 10;

/// Bytes of an error output that are kept.
const MAX_MESSAGE: usize = 8 << 10;

/// A program in a pod that failed, or its connection.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{program} in the pod {pod}: {message}")]
pub struct ProgramError {
    program: String,
    pod: String,
    message: String,
}

/// The standard streams of a program in a pod. Dropped, the program's input ends.
pub type PodStream = Join<PodOutput, WriteHalf<SimplexStream>>;

/// What a program in a pod writes.
pub struct PodOutput {
    output: ReadHalf<SimplexStream>,
    /// Ends with the program; absent once it has.
    end: Option<BoxFuture<'static, Result<(), ProgramError>>>,
    /// How it ended, until that is reported.
    result: Option<Result<(), ProgramError>>,
    /// Ends the connection when it is dropped.
    _process: AttachedProcess,
}

impl Cluster {
    /// Runs a program in a pod with one container.
    pub(super) async fn exec(
        &self,
        namespace: &str,
        pod: &str,
        command: &[&str],
    ) -> Result<PodStream, LiveError> {
        let what = format!("exec in the pod {namespace}/{pod}");
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let parameters = AttachParams::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .max_stdin_buf_size(BUFFER)
            .max_stdout_buf_size(BUFFER)
            .max_stderr_buf_size(BUFFER);
        let started = pods.exec(pod, command.iter().copied(), &parameters);
        let mut process = self.within(REQUEST_TIMEOUT, &what, started).await?;
        let streams = process.stdin().zip(process.stdout());
        let rest = process.stderr().zip(process.take_status());
        let (Some((input, output)), Some((errors, status))) = (streams, rest) else {
            return Err(self.broken(&what, "no streams"));
        };
        let (program, pod) = (command.join(" "), format!("{namespace}/{pod}"));
        let end = async move {
            let message = failure(status, errors).await;
            message.map_or(Ok(()), |message| {
                Err(ProgramError {
                    program,
                    pod,
                    message,
                })
            })
        };
        let output = PodOutput {
            output,
            end: Some(Box::pin(end)),
            result: None,
            _process: process,
        };
        Ok(join(output, input))
    }
}

/// Waits for a program's end, and returns what it says if it failed. Its errors are read all the
/// time: a full pipe would stop the other streams.
async fn failure(
    status: impl Future<Output = Option<Status>>,
    mut errors: ReadHalf<SimplexStream>,
) -> Option<String> {
    let mut said = Vec::new();
    let mut status = pin!(status);
    let ended = tokio::select! {
        ended = &mut status => ended,
        () = read_errors(&mut errors, &mut said) => status.await,
    };
    let Some(ended) = ended else {
        return Some("the connection ended".to_owned());
    };
    if ended.status.as_deref() == Some("Success") {
        return None;
    }
    read_errors(&mut errors, &mut said).await;
    let text = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let said = lines.join(" ").trim().to_owned();
    Some(if said.is_empty() {
        ended.message.unwrap_or_default()
    } else {
        said
    })
}

/// Reads a program's errors to their end, and keeps the first.
async fn read_errors(errors: &mut ReadHalf<SimplexStream>, said: &mut Vec<u8>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let room = MAX_MESSAGE.saturating_sub(said.len());
        said.extend_from_slice(&buffer[..count.min(room)]);
    }
}

impl PodOutput {
    /// Reads what has arrived; true if that is nothing.
    fn poll_output(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
        Poll::Ready(Ok(buffer.filled().len() == before && buffer.remaining() > 0))
    }
}

impl AsyncRead for PodOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(is_empty) = self.poll_output(context, buffer)
            && !is_empty?
        {
            return Poll::Ready(Ok(()));
        }
        // kube leaves the output open if the connection breaks.
        if let Some(end) = &mut self.end {
            let result = ready!(end.as_mut().poll(context));
            self.end = None;
            self.result = Some(result);
        }
        // What arrived before the end is read before it.
        match self.poll_output(context, buffer) {
            Poll::Ready(Ok(false)) => Poll::Ready(Ok(())),
            _ => Poll::Ready(
                self.result
                    .take()
                    .unwrap_or(Ok(()))
                    .map_err(io::Error::other),
            ),
        }
    }
}
