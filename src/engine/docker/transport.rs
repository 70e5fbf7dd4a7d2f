//! One HTTP connection to the daemon for each request.
//!
//! A connection that is not shared can be broken: the daemon stops a build or a push as soon as the
//! one who asked for it hangs up, so dropping an [`Answer`] is how work is cancelled.

use std::io;
use std::sync::Arc;

use bollard::BollardRequest;
use bollard::errors::Error;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::endpoint::Endpoint;
use super::error::EndpointError;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The way to a daemon.
pub(super) struct Transport {
    address: Address,
    tls: Option<TlsConnector>,
}

/// What the daemon answered; the connection lives as long as this value.
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    connection: AbortOnDropHandle<()>,
}

impl Answer {
    /// The answer for somebody who reads it to its end.
    pub(super) fn into_response(self) -> Response<Incoming> {
        drop(self.connection.detach());
        self.response
    }
}

impl Transport {
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let tls = match &endpoint.tls {
            Some(files) => Some(TlsConnector::from(Arc::new(files.client()?))),
            None => None,
        };
        Ok(Self {
            address: endpoint.address.clone(),
            tls,
        })
    }

    /// Sends a request and waits for the head of the answer. An I/O error is one of connecting.
    pub(super) async fn send(&self, request: BollardRequest) -> Result<Answer, Error> {
        let stream = self.open().await?;
        let (mut sender, work) = http1::handshake(TokioIo::new(stream)).await?;
        // An error of the connection is also the one of the request or of the body.
        let work = tokio::spawn(async move { drop(work.await) });
        let connection = AbortOnDropHandle::new(work);
        Ok(Answer {
            response: sender.send_request(request).await?,
            connection,
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
        }
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
/// is taken, so a busy pipe is worth another try.
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
