//! One HTTP connection to the daemon for each request.
//!
//! A connection that is not shared can be closed: the daemon stops a build or a push as soon as its
//! client disconnects, so dropping a [`DaemonResponse`] cancels the work.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bollard::BollardRequest;
use bollard::errors::Error;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, join, split};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use wincimg_cluster::live::{BuilderConnection, PodStream};
use wincimg_common::diagnose::Problem;

use super::address::{Address, BuilderAddress};
use super::endpoint::Endpoint;

/// Size limit of a document or a message.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// A document or a message is larger.
#[derive(Debug, thiserror::Error)]
#[error("it is longer than {MAX_BYTES} bytes")]
pub(super) struct BodyTooLong;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) struct Transport {
    address: Address,
    tls: Option<TlsConnector>,
    /// The pod of a builder, found for the first connection.
    pub(super) builder: OnceCell<BuilderConnection>,
}

/// A daemon's answer; the connection lives as long as this value.
pub(super) struct DaemonResponse {
    pub(super) response: Response<Incoming>,
    connection: AbortOnDropHandle<()>,
    left: Arc<AtomicU64>,
}

impl DaemonResponse {
    /// The answer, to be read to its end; limited to [`MAX_BYTES`].
    pub(super) fn into_response(self) -> Response<Incoming> {
        drop(self.connection.detach());
        self.response
    }

    /// The answer without a limit, for a caller that has its own.
    pub(super) fn unbounded(self) -> Self {
        self.left.store(u64::MAX, Ordering::Relaxed);
        self
    }
}

impl Transport {
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, Problem> {
        let tls = match &endpoint.tls {
            Some(files) => Some(TlsConnector::from(Arc::new(files.client()?))),
            None => None,
        };
        Ok(Self {
            address: endpoint.address.clone(),
            tls,
            builder: OnceCell::new(),
        })
    }

    /// Sends a request and waits for the head of the answer. I/O errors are those of connecting.
    pub(super) async fn send(&self, request: BollardRequest) -> Result<DaemonResponse, Error> {
        let left = Arc::new(AtomicU64::new(MAX_BYTES as u64));
        let (stream, output) = split(self.open().await?);
        let input = LimitedBody {
            stream,
            left: Arc::clone(&left),
        };
        let (mut sender, work) = http1::handshake(TokioIo::new(join(input, output))).await?;
        // An error of the connection is also reported by the request or the body.
        let work = tokio::spawn(async move { drop(work.await) });
        let connection = AbortOnDropHandle::new(work);
        Ok(DaemonResponse {
            response: sender.send_request(request).await?,
            connection,
            left,
        })
    }

    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        match &self.address {
            Address::Unix(path) => open_socket(path).await,
            Address::Pipe(path) => open_pipe(path).await,
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    None => Ok(Box::new(stream)),
                    Some(tls) => {
                        let name = ServerName::try_from(host.clone())
                            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                        Ok(Box::new(tls.connect(name, stream).await?))
                    }
                }
            }
            Address::Builder(address) => {
                let stream = self.dial(address).await.map_err(io::Error::other)?;
                Ok(Box::new(stream))
            }
        }
    }

    async fn dial(&self, address: &BuilderAddress) -> Result<PodStream, Problem> {
        let connect =
            || BuilderConnection::connect(&address.context, &address.name, &address.builds);
        self.builder.get_or_try_init(connect).await?.dial().await
    }
}

/// A stream that ends at its limit.
struct LimitedBody {
    stream: ReadHalf<Box<dyn Stream>>,
    left: Arc<AtomicU64>,
}

impl AsyncRead for LimitedBody {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = (buffer.filled().len() - before) as u64;
        if read > self.left.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::Error::other(BodyTooLong)));
        }
        self.left.fetch_sub(read, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[cfg(unix)]
async fn open_socket(path: &std::path::Path) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(tokio::net::UnixStream::connect(path).await?))
}

#[cfg(not(unix))]
fn open_socket(_path: &std::path::Path) -> std::future::Ready<io::Result<Box<dyn Stream>>> {
    std::future::ready(Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system has no Unix sockets",
    )))
}

/// A pipe serves as many clients as it has instances; the daemon makes the next one as soon as one
/// is taken, so a busy pipe is retried.
#[cfg(windows)]
async fn open_pipe(path: &str) -> io::Result<Box<dyn Stream>> {
    use std::time::Duration;

    use tokio::net::windows::named_pipe::ClientOptions;

    const ALL_PIPE_INSTANCES_ARE_BUSY: i32 = 231;
    const TRIES: u32 = 50;
    let mut tries = 0;
    loop {
        match ClientOptions::new().open(path) {
            Ok(pipe) => return Ok(Box::new(pipe)),
            Err(error)
                if error.raw_os_error() == Some(ALL_PIPE_INSTANCES_ARE_BUSY) && tries < TRIES =>
            {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(not(windows))]
fn open_pipe(_path: &str) -> std::future::Ready<io::Result<Box<dyn Stream>>> {
    std::future::ready(Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Windows has named pipes",
    )))
}
