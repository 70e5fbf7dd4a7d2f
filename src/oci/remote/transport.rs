//! One HTTP exchange: streamed bodies, our own redirects, time bounds and errors that name things.

use std::io;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap};
use reqwest::{Body, Client, Method, Request, Response, Url};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::source::BlobSource;
use super::urls::{location, trust_of};
use super::{Inner, RegistryError};
use crate::net::{host_of, shown};
use crate::progress::Task;

/// What is sent to where; it can be sent again.
pub(super) struct Exchange<'a> {
    /// The purpose, as it reads after "failed to".
    pub(super) what: String,
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) payload: Payload<'a>,
}

/// A request's body.
#[derive(Clone)]
pub(super) enum Payload<'a> {
    Empty,
    Bytes(Bytes),
    Stream(Piece<'a>),
}

/// A part of a blob, read anew each time that it is sent.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) source: &'a dyn BlobSource,
    pub(super) task: &'a dyn Task,
    pub(super) offset: u64,
    pub(super) length: u64,
}

const MOST_REDIRECTS: usize = 10;
/// Bytes read from a source at once; two such chunks wait for the connection at most.
const CHUNK: usize = 128 * 1024;
const CHUNKS_WAITING: usize = 2;
/// A registry that commits a large blob is silent for longer than one that reads it.
const COMMIT_PATIENCE: u32 = 10;

impl Inner {
    /// Sends and follows redirects. An `Authorization` header stays with the host it was made for.
    pub(super) async fn follow(&self, exchange: &Exchange<'_>) -> Result<Response, RegistryError> {
        let mut url = exchange.url.clone();
        let mut headers = exchange.headers.clone();
        for _ in 0..MOST_REDIRECTS {
            let response = self.send_to(exchange, &url, &headers).await?;
            let Some(target) = redirect_target(exchange, &response)? else {
                return Ok(response);
            };
            if target.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
            }
            url = target;
        }
        Err(RegistryError::Redirect {
            host: host_of(&exchange.url),
            what: exchange.what.clone(),
            target: shown(&url),
            reason: "there were ten redirects before it",
        })
    }

    /// Sends once; whatever status comes is an answer.
    pub(super) async fn send(&self, exchange: &Exchange<'_>) -> Result<Response, RegistryError> {
        self.send_to(exchange, &exchange.url, &exchange.headers)
            .await
    }

    async fn send_to(
        &self,
        exchange: &Exchange<'_>,
        url: &Url,
        headers: &HeaderMap,
    ) -> Result<Response, RegistryError> {
        let trust = trust_of(url, &self.insecure)?;
        let client = self.clients.get(url, trust)?;
        let mut request = Request::new(exchange.method.clone(), url.clone());
        *request.headers_mut() = headers.clone();
        let started = Instant::now();
        let sending = async {
            match &exchange.payload {
                Payload::Stream(piece) => self.stream(exchange, piece, client, request).await,
                Payload::Bytes(bytes) => self.plain(exchange, bytes.clone(), client, request).await,
                Payload::Empty => self.plain(exchange, Bytes::new(), client, request).await,
            }
        };
        let sent = self.bounded(&exchange.what, sending).await;
        let status = sent.as_ref().ok().map(|answer| answer.status().as_u16());
        tracing::debug!(
            method = %exchange.method,
            url = %shown(url),
            status,
            ms = started.elapsed().as_millis(),
            "registry request"
        );
        sent
    }

    /// Sends a request whose body, if it has one, is in memory.
    async fn plain(
        &self,
        exchange: &Exchange<'_>,
        body: Bytes,
        client: Client,
        mut request: Request,
    ) -> Result<Response, RegistryError> {
        let url = request.url().clone();
        let mut patience = self.options.idle_timeout;
        if !reads(&exchange.method) {
            patience = self.commit_patience();
            request
                .headers_mut()
                .insert(CONTENT_LENGTH, body.len().into());
            *request.body_mut() = Some(Body::from(body));
        }
        match timeout(patience, client.execute(request)).await {
            Ok(answer) => answer.map_err(|error| unreachable_host(exchange, &url, error)),
            Err(_) => Err(stalled(exchange, &url, patience)),
        }
    }

    /// Sends a request whose body is read from a source while it is sent.
    async fn stream(
        &self,
        exchange: &Exchange<'_>,
        piece: &Piece<'_>,
        client: Client,
        mut request: Request,
    ) -> Result<Response, RegistryError> {
        let url = request.url().clone();
        let unreadable = |source| RegistryError::Source {
            what: exchange.what.clone(),
            source,
        };
        let reader = piece.source.open(piece.offset).await.map_err(unreadable)?;
        piece.task.set_position(piece.offset);

        let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(CHUNKS_WAITING);
        let chunks = stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        request
            .headers_mut()
            .insert(CONTENT_LENGTH, piece.length.into());
        *request.body_mut() = Some(Body::wrap_stream(chunks));

        let idle = self.options.idle_timeout;
        let mut answer = pin!(client.execute(request));
        tokio::select! {
            answer = &mut answer => {
                return answer.map_err(|error| unreachable_host(exchange, &url, error));
            }
            pumped = pump(reader, piece, sender, idle) => match pumped {
                Pumped::All | Pumped::Refused => {}
                Pumped::Stalled => return Err(stalled(exchange, &url, idle)),
                Pumped::Unreadable(error) => return Err(unreadable(error)),
            },
        }
        let patience = self.commit_patience();
        match timeout(patience, answer).await {
            Ok(answer) => answer.map_err(|error| unreachable_host(exchange, &url, error)),
            Err(_) => Err(stalled(exchange, &url, patience)),
        }
    }

    fn commit_patience(&self) -> Duration {
        self.options.idle_timeout.saturating_mul(COMMIT_PATIENCE)
    }

    /// Runs something until the total time bound is over.
    pub(super) async fn bounded<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        match (self.deadline, self.options.timeout) {
            (Some(deadline), Some(limit)) => tokio::time::timeout_at(deadline, work)
                .await
                .unwrap_or_else(|_| {
                    Err(RegistryError::TimeLimit {
                        what: what.to_owned(),
                        limit,
                    })
                }),
            _ => work.await,
        }
    }
}

/// How the reading side of an upload ended.
enum Pumped {
    All,
    /// The connection takes no more; the answer, or its error, says why.
    Refused,
    Stalled,
    Unreadable(io::Error),
}

async fn pump(
    reader: impl AsyncRead,
    piece: &Piece<'_>,
    sender: mpsc::Sender<io::Result<Bytes>>,
    idle: Duration,
) -> Pumped {
    let mut reader = pin!(reader.take(piece.length));
    let mut sent = 0;
    while sent < piece.length {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        match reader.read_buf(&mut chunk).await {
            Ok(0) => {
                let reason = format!("it ended after {} bytes", piece.offset + sent);
                return Pumped::Unreadable(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            }
            Ok(_) => {}
            Err(error) => return Pumped::Unreadable(error),
        }
        let length = chunk.len() as u64;
        match timeout(idle, sender.send(Ok(chunk.freeze()))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Pumped::Refused,
            Err(_) => return Pumped::Stalled,
        }
        sent += length;
        piece.task.advance(length);
    }
    Pumped::All
}

/// Where a redirect leads, if the answer is one.
fn redirect_target(
    exchange: &Exchange<'_>,
    response: &Response,
) -> Result<Option<Url>, RegistryError> {
    match response.status().as_u16() {
        307 | 308 => {}
        301..=303 if reads(&exchange.method) => {}
        _ => return Ok(None),
    }
    location(&exchange.what, response).map(Some)
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn stalled(exchange: &Exchange<'_>, url: &Url, after: Duration) -> RegistryError {
    RegistryError::Stalled {
        host: host_of(url),
        what: exchange.what.clone(),
        after,
    }
}

fn unreachable_host(exchange: &Exchange<'_>, url: &Url, error: reqwest::Error) -> RegistryError {
    let host = host_of(url);
    let error = error.without_url();
    match tls_error(&error) {
        Some(rustls::Error::InvalidMessage(_)) => RegistryError::PlainHttp { host },
        Some(tls @ rustls::Error::InvalidCertificate(_)) => RegistryError::Certificate {
            host,
            source: tls.clone().into(),
        },
        _ => RegistryError::Unreachable {
            host,
            what: exchange.what.clone(),
            source: error.into(),
        },
    }
}

/// The TLS library's error, which libraries in between wrap in `io::Error`s that hide it.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>() {
            Some(io) => io
                .get_ref()
                .map(|inner| inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    None
}
