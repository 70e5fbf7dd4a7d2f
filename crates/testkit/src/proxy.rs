//! An HTTP proxy in front of a registry that injects network faults.
//!
//! It serves one request per connection, so that a fault hits exactly the intended request, and
//! records all requests, so that a test can count bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Debug, Clone)]
pub enum ProxyFault {
    /// None.
    Pass,
    /// The proxy answers instead of the registry: status, further headers, body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Like `Answer`, but before the request's body is read, which is discarded: a limit on its
    /// size.
    AnswerEarly(u16, String),
    /// Like `AnswerEarly`, and the connection ends at once.
    AnswerAndCut(u16, String),
    /// The connection ends after this number of bytes of the request's body.
    CutRequest(usize),
    /// After this number of bytes of the request's body, nothing more is read.
    StallRequest(usize),
    /// The connection ends after this number of bytes of the response's body.
    CutAnswer(usize),
    /// The registry handles the request, but the client receives no response.
    LoseAnswer,
    /// The response's body is sent in chunks of this size with a pause between them.
    Drip(usize, Duration),
    /// After this number of bytes of the response's body, nothing more is sent.
    Stall(usize),
    /// This byte of the response's body is changed.
    Flip(usize),
    /// The response ends after this number of bytes of its body, with that as its length.
    Shorten(usize),
    /// The response lacks the header with this name.
    Hide(&'static str),
}

impl ProxyFault {
    /// Number of bytes of the response's body that are sent at most.
    fn answer_limit(&self) -> usize {
        match self {
            Self::CutAnswer(limit) | Self::Stall(limit) | Self::Shorten(limit) => *limit,
            _ => usize::MAX,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ProxiedRequest {
    /// GET, PUT, …
    pub method: String,
    pub path: String,
    /// The request's headers as received, one per line.
    pub headers: String,
    /// Bytes of the request's body that reached the registry.
    pub sent: usize,
    /// Bytes of the response's body that reached the client.
    pub received: usize,
}

impl ProxiedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// A rule that applies a fault to the first `times` requests that `which` selects.
pub fn first(
    times: usize,
    which: impl Fn(&ProxiedRequest) -> bool + Send + 'static,
    fault: ProxyFault,
) -> impl FnMut(&ProxiedRequest) -> ProxyFault + Send + 'static {
    let mut left = times;
    move |passed| {
        if left > 0 && which(passed) {
            left -= 1;
            return fault.clone();
        }
        ProxyFault::Pass
    }
}

pub fn reads_blob(passed: &ProxiedRequest) -> bool {
    passed.method == "GET" && passed.path.contains("/blobs/sha256")
}

pub fn method(name: &'static str) -> impl Fn(&ProxiedRequest) -> bool + Send + 'static {
    move |passed| passed.method == name
}

type Rule = dyn FnMut(&ProxiedRequest) -> ProxyFault + Send;

/// A proxy that runs until it is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    log: Arc<Mutex<Vec<ProxiedRequest>>>,
    task: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy for `upstream` (`HOST:PORT`); `rule` selects the fault of every request.
    pub async fn start(
        upstream: String,
        rule: impl FnMut(&ProxiedRequest) -> ProxyFault + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let rule: Arc<Mutex<Box<Rule>>> = Arc::new(Mutex::new(Box::new(rule)));
        let shared = log.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let upstream = upstream.clone();
                let (log, rule) = (shared.clone(), rule.clone());
                tokio::spawn(async move {
                    let connection = Connection {
                        client,
                        log: &log,
                        entry: 0,
                    };
                    // Broken connections are the purpose of this proxy.
                    let _ = connection.run(&upstream, &rule).await;
                });
            }
        });
        Self { address, log, task }
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// All requests so far.
    pub fn log(&self) -> Vec<ProxiedRequest> {
        self.log.lock().unwrap().clone()
    }

    /// The requests of a method whose path contains a text.
    pub fn requests(&self, method: &str, path: &str) -> Vec<ProxiedRequest> {
        let mut log = self.log();
        log.retain(|passed| passed.method == method && passed.path.contains(path));
        log
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Connection<'l> {
    client: TcpStream,
    log: &'l Mutex<Vec<ProxiedRequest>>,
    entry: usize,
}

impl Connection<'_> {
    async fn run(mut self, upstream: &str, rule: &Mutex<Box<Rule>>) -> std::io::Result<()> {
        let (head, rest) = read_head(&mut self.client).await?;
        let passed = parse(&head);
        let fault = rule.lock().unwrap()(&passed);
        self.entry = {
            let mut log = self.log.lock().unwrap();
            log.push(passed.clone());
            log.len() - 1
        };
        match &fault {
            ProxyFault::Answer(status, headers, body) => {
                self.read_rest(&passed, &rest).await?;
                return self.answer(*status, headers, body).await;
            }
            ProxyFault::AnswerEarly(status, body) => {
                self.answer(*status, &[], body).await?;
                return self.read_rest(&passed, &rest).await;
            }
            ProxyFault::AnswerAndCut(status, body) => return self.answer(*status, &[], body).await,
            _ => {}
        }
        let mut server = TcpStream::connect(upstream).await?;
        server.write_all(with_close(&head).as_bytes()).await?;
        let request = self.forward_request(&mut server, &passed, rest, &fault);
        if request.await? {
            self.forward_answer(server, &passed, &fault).await?;
        }
        Ok(())
    }

    /// Returns true if the whole body was forwarded.
    async fn forward_request(
        &mut self,
        server: &mut TcpStream,
        passed: &ProxiedRequest,
        rest: Vec<u8>,
        fault: &ProxyFault,
    ) -> std::io::Result<bool> {
        let length = content_length(&passed.headers).unwrap_or(0);
        let limit = match fault {
            ProxyFault::CutRequest(limit) | ProxyFault::StallRequest(limit) => length.min(*limit),
            _ => length,
        };
        let mut chunk = rest;
        let mut sent = 0;
        loop {
            chunk.truncate(limit - sent);
            server.write_all(&chunk).await?;
            sent += chunk.len();
            self.log.lock().unwrap()[self.entry].sent = sent;
            if sent == limit {
                break;
            }
            chunk = read_some(&mut self.client, limit - sent).await?;
            if chunk.is_empty() {
                return Ok(false);
            }
        }
        server.flush().await?;
        if matches!(fault, ProxyFault::StallRequest(_)) {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        Ok(!matches!(fault, ProxyFault::CutRequest(_)))
    }

    async fn forward_answer(
        &mut self,
        mut server: TcpStream,
        passed: &ProxiedRequest,
        fault: &ProxyFault,
    ) -> std::io::Result<()> {
        let (head, mut chunk) = read_head(&mut server).await?;
        if matches!(fault, ProxyFault::LoseAnswer) {
            return Ok(());
        }
        let length = match passed.method.as_str() {
            "HEAD" => Some(0),
            _ => content_length(&head),
        };
        let shown = match fault {
            ProxyFault::Hide(name) => without(&head, name),
            ProxyFault::Shorten(limit) => without(&head, "content-length").replacen(
                "\r\n",
                &format!("\r\nContent-Length: {limit}\r\n"),
                1,
            ),
            _ => head,
        };
        self.client.write_all(with_close(&shown).as_bytes()).await?;
        let end = length.unwrap_or(usize::MAX).min(fault.answer_limit());
        let mut received = 0;
        while received < end {
            if chunk.is_empty() {
                chunk = read_some(&mut server, end - received).await?;
                if chunk.is_empty() {
                    break;
                }
            }
            let mut piece = chunk.clone();
            piece.truncate(end - received);
            if let ProxyFault::Drip(size, pause) = fault {
                piece.truncate(*size);
                tokio::time::sleep(*pause).await;
            }
            chunk.drain(..piece.len());
            if let ProxyFault::Flip(at) = fault
                && (received..received + piece.len()).contains(at)
            {
                piece[at - received] ^= 0xFF;
            }
            self.client.write_all(&piece).await?;
            received += piece.len();
            self.log.lock().unwrap()[self.entry].received = received;
        }
        self.client.flush().await?;
        if matches!(fault, ProxyFault::Stall(_)) {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        Ok(())
    }

    /// Reads a request's body to its end: otherwise the client may not receive the response.
    async fn read_rest(&mut self, passed: &ProxiedRequest, rest: &[u8]) -> std::io::Result<()> {
        let mut left = content_length(&passed.headers)
            .unwrap_or(0)
            .saturating_sub(rest.len());
        while left > 0 {
            let chunk = read_some(&mut self.client, left).await?;
            if chunk.is_empty() {
                break;
            }
            left -= chunk.len();
        }
        Ok(())
    }

    async fn answer(
        &mut self,
        status: u16,
        headers: &[(&'static str, String)],
        body: &str,
    ) -> std::io::Result<()> {
        let mut text = format!(
            "HTTP/1.1 {status} Fault\r\nContent-Length: {}\r\nConnection: close\r\n",
            body.len()
        );
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        text += body;
        self.client.write_all(text.as_bytes()).await
    }
}

/// Reads a head with its blank line, and returns the bytes after it too.
async fn read_head(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        let chunk = read_some(stream, 64 * 1024).await?;
        if chunk.is_empty() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend(chunk);
    }
}

async fn read_some(stream: &mut TcpStream, most: usize) -> std::io::Result<Vec<u8>> {
    let mut chunk = vec![0; most.min(64 * 1024)];
    let read = stream.read(&mut chunk).await?;
    chunk.truncate(read);
    Ok(chunk)
}

fn parse(head: &str) -> ProxiedRequest {
    let (first, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words = first.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    ProxiedRequest {
        method: word(),
        path: word(),
        headers: headers.to_owned(),
        sent: 0,
        received: 0,
    }
}

fn header<'h>(headers: &'h str, name: &str) -> Option<&'h str> {
    headers.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn content_length(headers: &str) -> Option<usize> {
    header(headers, "content-length")?.parse().ok()
}

fn without(head: &str, name: &str) -> String {
    let keep = |line: &&str| {
        let key = line.split(':').next().unwrap_or_default();
        !key.eq_ignore_ascii_case(name)
    };
    head.split_inclusive("\r\n").filter(keep).collect()
}

/// Sets one request per connection, for both sides.
fn with_close(head: &str) -> String {
    without(head, "connection").replacen("\r\n", "\r\nConnection: close\r\n", 1)
}
