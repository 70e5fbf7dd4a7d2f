//! A way to a registry that answers in rounds, so that round trips can be counted: no answer passes
//! while questions still come, and then all pass at once. Of two questions in one round neither waited
//! for the answer to the other.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

use super::serve::{in_background, listen};

/// After so long without a byte everybody is taken to wait for an answer. Where the machine is busier
/// than that, there are more rounds than there need be.
const QUIET: Duration = Duration::from_millis(80);

/// Such a way, until it is dropped.
pub struct Rounds {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _stop: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The questions of each round so far, the open one last.
    rounds: Vec<Vec<String>>,
    /// Answers that wait.
    held: Vec<(Answerer, Vec<u8>)>,
    last: Option<Instant>,
}

type Answerer = Arc<tokio::sync::Mutex<OwnedWriteHalf>>;

impl Rounds {
    /// Begins to listen before `upstream` (`HOST:PORT`).
    pub fn start(upstream: String) -> Self {
        let (listener, address) = listen();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let stop = in_background(async move || {
            tokio::select! {
                () = accept(listener, upstream, &shared) => {}
                () = release(&shared) => {}
            }
        });
        Self {
            address,
            state,
            _stop: stop,
        }
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The questions of each round since the last time that this was asked.
    pub fn take(&self) -> Vec<Vec<String>> {
        let mut rounds = std::mem::take(&mut self.state.lock().unwrap().rounds);
        rounds.retain(|round| !round.is_empty());
        rounds
    }
}

async fn accept(listener: TcpListener, upstream: String, state: &Arc<Mutex<State>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((client, _)) = listener.accept().await {
        let (upstream, state) = (upstream.clone(), Arc::clone(state));
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(upstream).await else {
                return;
            };
            let (questions, answers) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let asking = ask(questions, to_server, &state);
            let answering = hold(from_server, answers, &state);
            tokio::join!(asking, answering);
        });
    }
}

/// Lets questions pass at once, and notes them.
async fn ask(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &Mutex<State>) {
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let bytes = &chunk[..length];
        state.lock().unwrap().note(bytes);
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

/// Holds answers back.
async fn hold(mut from: OwnedReadHalf, to: OwnedWriteHalf, state: &Mutex<State>) {
    let to = Arc::new(tokio::sync::Mutex::new(to));
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let mut state = state.lock().unwrap();
        state.held.push((Arc::clone(&to), chunk[..length].to_vec()));
        state.last = Some(Instant::now());
    }
}

/// Ends rounds.
async fn release(state: &Mutex<State>) {
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let due = state.lock().unwrap().end_of_round();
        for (to, bytes) in due {
            // A client may have gone.
            let _ = to.lock().await.write_all(&bytes).await;
        }
    }
}

impl State {
    fn note(&mut self, bytes: &[u8]) {
        self.last = Some(Instant::now());
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().next().unwrap_or_default();
        // What does not begin with a request's first line is the rest of a body.
        if let Some(request) = line.strip_suffix(" HTTP/1.1") {
            if self.rounds.is_empty() {
                self.rounds.push(Vec::new());
            }
            self.rounds.last_mut().unwrap().push(request.to_owned());
        }
    }

    fn end_of_round(&mut self) -> Vec<(Answerer, Vec<u8>)> {
        let is_quiet = self.last.is_some_and(|last| last.elapsed() >= QUIET);
        if self.held.is_empty() || !is_quiet {
            return Vec::new();
        }
        self.rounds.push(Vec::new());
        std::mem::take(&mut self.held)
    }
}
