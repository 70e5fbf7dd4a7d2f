//! A file server that records its requests and fails on demand.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};

use super::scripted::{RequestLog, ScriptedRequest, scripted};
use super::serve::TestServer;

/// Files by their paths, such as `/tool.zip`.
pub struct FileServer {
    served: TestServer,
    log: RequestLog,
    files: Arc<Mutex<Files>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFault {
    /// Only a status.
    Status(u16),
    /// This number of bytes, and then the end.
    Cut(usize),
    /// This number of bytes, and then a long pause.
    Hang(usize),
    /// Ten pieces with pauses.
    Slow,
}

#[derive(Default)]
struct Files {
    content: HashMap<String, (Bytes, &'static str)>,
    redirects: HashMap<String, String>,
    faults: HashMap<String, VecDeque<ResponseFault>>,
}

impl FileServer {
    pub fn start() -> Self {
        let files = Arc::<Mutex<Files>>::default();
        let shared = Arc::clone(&files);
        let (log, served) = scripted(move |asked| shared.lock().unwrap().answer(asked));
        Self { served, log, files }
    }

    pub fn with(path: &str, content: impl Into<Bytes>) -> Self {
        let server = Self::start();
        server.put(path, content);
        server
    }

    /// Starts a server with the tool that `docs/examples/zip-tool` downloads, in two versions.
    pub fn with_tools() -> Self {
        let server = Self::start();
        for (version, zip) in [
            ("1.4", include_bytes!("tool-1.4.zip")),
            ("1.5", include_bytes!("tool-1.5.zip")),
        ] {
            let path = format!("/tools/tool-{version}-windows-amd64.zip");
            server.put(&path, zip.as_slice());
        }
        server
    }

    pub fn host(&self) -> String {
        self.served.host()
    }

    /// `http://127.0.0.1:PORT/tool.zip`.
    pub fn url(&self, path: &str) -> String {
        self.served.url(path.trim_start_matches('/'))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap()
    }

    pub fn put(&self, path: &str, content: impl Into<Bytes>) {
        self.put_as(path, "application/octet-stream", content);
    }

    pub fn put_as(&self, path: &str, kind: &'static str, content: impl Into<Bytes>) {
        let file = (content.into(), kind);
        self.files().content.insert(path.to_owned(), file);
    }

    pub fn redirect(&self, path: &str, to: &str) {
        self.files()
            .redirects
            .insert(path.to_owned(), to.to_owned());
    }

    /// Sets the faults of the next responses for a file.
    pub fn fail(&self, path: &str, faults: impl IntoIterator<Item = ResponseFault>) {
        self.files()
            .faults
            .insert(path.to_owned(), faults.into_iter().collect());
    }

    /// Requests in their order: `/tool.zip`, or `/tool.zip bytes=3-`.
    pub fn requests(&self) -> Vec<String> {
        let shown = |asked: &ScriptedRequest| match asked.header("range") {
            Some(range) => format!("{} {range}", asked.path),
            None => asked.path.clone(),
        };
        self.log.all().iter().map(shown).collect()
    }

    pub fn forget(&self) {
        self.log.forget();
    }
}

impl Files {
    fn answer(&mut self, asked: &ScriptedRequest) -> Response {
        let path = &asked.path;
        if let Some(to) = self.redirects.get(path) {
            return (StatusCode::FOUND, [(header::LOCATION, to.clone())]).into_response();
        }
        let fault = self.faults.get_mut(path).and_then(VecDeque::pop_front);
        if let Some(ResponseFault::Status(status)) = fault {
            return StatusCode::from_u16(status).unwrap().into_response();
        }
        let Some((content, kind)) = self.content.get(path).cloned() else {
            return (StatusCode::NOT_FOUND, "no such file").into_response();
        };
        let sum: u64 = content.iter().map(|&byte| u64::from(byte)).sum();
        let tag = format!("\"{sum:x}\"");
        let mut response = send(&content, start_of(asked.header("range")), fault);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::ETAG, tag.parse().unwrap());
        response
    }
}

/// The first byte that a `Range` asks for.
pub fn start_of(range: Option<&str>) -> usize {
    let start = range.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
    start.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// The answer with a file from this byte on.
pub fn send(content: &Bytes, start: usize, fault: Option<ResponseFault>) -> Response {
    let whole = content.len();
    let rest = content.slice(start.min(whole)..);
    let mut response = Response::builder().header(header::CONTENT_LENGTH, rest.len());
    if start > 0 {
        let range = format!("bytes {start}-{}/{whole}", whole - 1);
        response = response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::CONTENT_RANGE, range);
    }
    let body = match fault {
        Some(ResponseFault::Cut(length)) => {
            let pieces = [
                Ok(rest.slice(..length.min(rest.len()))),
                Err(std::io::Error::other("cut by the test")),
            ];
            // The bytes before the break have to be sent first.
            Body::from_stream(stream::iter(pieces).then(|piece| async {
                if piece.is_err() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                piece
            }))
        }
        Some(ResponseFault::Hang(length)) => {
            let first = stream::iter([Ok::<_, Infallible>(rest.slice(..length))]);
            let never = stream::once(async {
                tokio::time::sleep(Duration::from_mins(5)).await;
                Ok(Bytes::new())
            });
            Body::from_stream(first.chain(never))
        }
        Some(ResponseFault::Slow) => {
            let pieces: Vec<Bytes> = rest
                .chunks(whole.div_ceil(10))
                .map(Bytes::copy_from_slice)
                .collect();
            Body::from_stream(stream::iter(pieces).then(|piece| async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok::<_, Infallible>(piece)
            }))
        }
        _ => Body::from(rest),
    };
    response.body(body).unwrap()
}
