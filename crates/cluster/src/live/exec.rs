//! Programs in pods, by exec over WebSocket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, AttachedProcess};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, ReadHalf, SimplexStream, WriteHalf,
};

use super::{Cluster, LiveError, PATIENCE};

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
pub struct PodStream {
    input: WriteHalf<SimplexStream>,
    output: ReadHalf<SimplexStream>,
    /// Ends with the program; absent once it has.
    end: Option<BoxFuture<'static, Result<(), ProgramError>>>,
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
        let mut process = self.within(PATIENCE, &what, started).await?;
        let streams = process.stdin().zip(process.stdout());
        let rest = process.stderr().zip(process.take_status());
        let (Some((input, output)), Some((errors, status))) = (streams, rest) else {
            return Err(LiveError::Broken {
                address: self.address.clone(),
                what,
                source: "no streams".into(),
            });
        };
        // Read from the start: a full pipe would stop the other streams.
        let errors = tokio::spawn(read_message(errors));
        let (program, pod) = (command.join(" "), format!("{namespace}/{pod}"));
        let end = async move {
            let status = status.await;
            let message = match status {
                Some(status) if status.status.as_deref() == Some("Success") => return Ok(()),
                Some(status) => {
                    let said = errors.await.unwrap_or_default();
                    let reported = status.message.unwrap_or_default();
                    if said.is_empty() { reported } else { said }
                }
                None => "the connection ended".to_owned(),
            };
            Err(ProgramError {
                program,
                pod,
                message,
            })
        };
        Ok(PodStream {
            input,
            output,
            end: Some(Box::pin(end)),
            _process: process,
        })
    }
}

/// Reads a program's errors to their end, and returns the first lines as one.
async fn read_message(mut errors: ReadHalf<SimplexStream>) -> String {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let room = MAX_MESSAGE.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
    let text = String::from_utf8_lossy(&kept);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    lines.join(" ")
}

impl AsyncRead for PodStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
        let has_ended = buffer.filled().len() == before && buffer.remaining() > 0;
        if has_ended && let Some(end) = &mut self.end {
            let result = ready!(end.as_mut().poll(context));
            self.end = None;
            result.map_err(io::Error::other)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PodStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.input).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.input).poll_shutdown(context)
    }
}
