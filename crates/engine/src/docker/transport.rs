//! One HTTP connection to the daemon for each request, and the raw answers of which bollard loses
//! parts: pieces of a file, one document, or the messages of a build or a push.
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
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, join, split};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use wincimg_cluster::live::{BuilderConnection, PodStream};
use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::without_passwords;

use super::address::{Address, BuilderAddress};
use super::endpoint::Endpoint;
use super::error::{DockerError, unexpected};

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

/// Body of an answer, piece by piece. Dropping it closes the connection.
pub(super) struct BodyChunks {
    what: String,
    answer: DaemonResponse,
}

impl BodyChunks {
    pub(super) fn new(what: &str, answer: DaemonResponse) -> Self {
        Self {
            what: what.to_owned(),
            answer,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, DockerError> {
        while let Some(frame) = self.answer.response.frame().await {
            let frame = frame.map_err(|source| DockerError::Broken {
                what: self.what.clone(),
                source,
            })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The whole body as one document.
    pub(super) async fn document<T: DeserializeOwned>(mut self) -> Result<T, DockerError> {
        let mut bytes = BytesMut::new();
        while let Some(piece) = self.next().await? {
            bytes.extend_from_slice(&piece);
            self.check_length(&bytes)?;
        }
        self.read(&bytes)
    }

    fn check_length(&self, bytes: &[u8]) -> Result<(), DockerError> {
        if bytes.len() <= MAX_BYTES {
            return Ok(());
        }
        Err(unexpected(&self.what, &BodyTooLong).into())
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, DockerError> {
        serde_json::from_slice(bytes).map_err(|error| unexpected(&self.what, &error).into())
    }
}

/// Lines of bytes that arrive in pieces.
#[derive(Default)]
struct Lines {
    pending: BytesMut,
    /// Length of the beginning that has no end of a line.
    searched: usize,
}

impl Lines {
    /// The next complete line. Bytes are searched once, however many pieces a line has.
    fn next_line(&mut self) -> Option<BytesMut> {
        let mut unread = self.pending[self.searched..].iter();
        let Some(end) = unread.position(|byte| *byte == b'\n') else {
            self.searched = self.pending.len();
            return None;
        };
        let line = self.pending.split_to(self.searched + end + 1);
        self.searched = 0;
        Some(line)
    }
}

/// Messages of a streaming answer, one a line.
pub(super) struct Messages {
    pieces: BodyChunks,
    lines: Lines,
}

impl Messages {
    pub(super) fn new(what: &str, answer: DaemonResponse) -> Self {
        Self {
            pieces: BodyChunks::new(what, answer),
            lines: Lines::default(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Message>, DockerError> {
        loop {
            if let Some(line) = self.lines.next_line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Some(Message::read(&line)));
            }
            let pending = &mut self.lines.pending;
            self.pieces.check_length(pending)?;
            match self.pieces.next().await? {
                Some(piece) => pending.extend_from_slice(&piece),
                None if pending.iter().all(u8::is_ascii_whitespace) => return Ok(None),
                None => {
                    let rest = std::mem::take(&mut self.lines);
                    return Ok(Some(Message::read(&rest.pending)));
                }
            }
        }
    }
}

/// A message of a build or push. Unknown or unexpected fields are ignored: they must not fail a
/// successful build.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// Output text; of a line that is not a message, the line itself.
    pub(super) stream: Option<String>,
    pub(super) status: Option<String>,
    pub(super) id: Option<String>,
    /// Transferred bytes of a layer, and their total.
    pub(super) progress: Option<(u64, Option<u64>)>,
    /// The error, if this is one.
    pub(super) complaint: Option<DaemonFailure>,
    /// Id of the built image.
    pub(super) built: Option<String>,
    /// Digest of the pushed image.
    pub(super) pushed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DaemonFailure {
    pub(super) message: String,
    /// Exit code of the program that failed.
    pub(super) exit_code: Option<i64>,
}

impl Message {
    pub(super) fn read(line: &[u8]) -> Self {
        let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
            tracing::debug!("docker: {}", one_line(&String::from_utf8_lossy(line)));
            return Self {
                stream: Some(String::from_utf8_lossy(line).into_owned()),
                ..Self::default()
            };
        };
        let message = Value::Object(message);
        let text = |pointer| message.pointer(pointer).and_then(Value::as_str);
        let owned = |pointer| text(pointer).map(str::to_owned);
        let bytes = |pointer| message.pointer(pointer).and_then(Value::as_u64);
        let progress = bytes("/progressDetail/current");
        Self {
            stream: owned("/stream"),
            status: owned("/status"),
            id: owned("/id"),
            progress: progress.map(|done| (done, bytes("/progressDetail/total"))),
            complaint: DaemonFailure::read(&message),
            built: owned("/aux/ID"),
            pushed: owned("/aux/Digest"),
        }
    }
}

impl DaemonFailure {
    /// Any non-empty `error` fails a stream.
    fn read(message: &Value) -> Option<Self> {
        let is_nothing = |value: &&Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        let (error, detail) = (message.get("error"), message.get("errorDetail"));
        let error = error.filter(|error| !is_nothing(error));
        let detail = detail.filter(|detail| !is_nothing(detail));
        let printed = |value: &Value| {
            let words = value.get("message").unwrap_or(value);
            words
                .as_str()
                .map(str::to_owned)
                .filter(|it| !it.is_empty())
        };
        let words = detail.and_then(printed).or_else(|| error.and_then(printed));
        let whatever = error.or(detail)?;
        let code = detail.and_then(|detail| detail.get("code")?.as_i64());
        Some(Self {
            message: words.unwrap_or_else(|| whatever.to_string()),
            exit_code: code.filter(|code| *code != 0),
        })
    }
}

/// The daemon's text on one line, without control characters and the passwords in URLs: it repeats
/// the command of a step.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    without_passwords(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use wincimg_windows::table::read_rows;

    use super::*;

    fn read(line: &str) -> Message {
        Message::read(line.as_bytes())
    }

    #[test]
    fn a_line_in_many_pieces_is_searched_once() {
        let mut lines = Lines::default();
        for piece in ["ab", "cd", "e\nf\ng"] {
            assert_eq!(lines.next_line(), None);
            assert_eq!(lines.searched, lines.pending.len());
            lines.pending.extend_from_slice(piece.as_bytes());
        }
        assert_eq!(lines.next_line().as_deref(), Some(&b"abcde\n"[..]));
        assert_eq!(lines.next_line().as_deref(), Some(&b"f\n"[..]));
        assert_eq!(lines.next_line(), None);
        assert_eq!(&lines.pending[..], b"g");
    }

    #[test]
    fn unknown_fields_leave_the_rest_of_a_message() {
        let layer =
            r#"{"status":"Downloading","id":"aa","progressDetail":{"current":5,"total":-1}}"#;
        assert_eq!(read(layer).progress, Some((5, None)));
        let layer = r#"{"status":"Extracting","id":"aa","progressDetail":{"current":"5"}}"#;
        assert_eq!(read(layer).progress, None);
        assert_eq!(read(layer).status.as_deref(), Some("Extracting"));
        let trace = read(r#"{"id":"moby.buildkit.trace","aux":"Cm8KR3NoYTI1Njpl"}"#);
        assert_eq!(trace.built, None);
        assert!(trace.complaint.is_none());
        let unknown = read(r#"{"stream":"a","vertex":{"x":[1]},"aux":{"ID":7}}"#);
        assert_eq!(unknown.stream.as_deref(), Some("a"));
        assert_eq!(unknown.built, None);
        for line in [
            "{\"stream\":\"half", "plain words", "[1]", "null", "\u{1b}[31m",
        ] {
            let message = read(line);
            assert_eq!(message.stream.as_deref(), Some(line));
            assert!(message.complaint.is_none(), "{line}");
        }
    }

    #[test]
    fn an_error_fails_whatever_it_looks_like_and_nothing_else_does() {
        let table = include_str!("../../tests/data/daemon-errors.tsv");
        let rows = read_rows(table, |row| {
            let (line, message) = (row.text("line")?, row.text("message")?);
            Ok((line, message, row.optional::<i64>("code")?))
        });
        for (line, message, code) in rows.unwrap() {
            let found = read(line).complaint.map(|it| (it.message, it.exit_code));
            let expected = (message != "-").then(|| (message.to_owned(), code));
            assert_eq!(found, expected, "{line}");
        }
    }
}
