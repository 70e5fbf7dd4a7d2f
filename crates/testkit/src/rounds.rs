//! A proxy that counts round trips: it forwards no response before it has received all requests of
//! its round, so that no request of a round can depend on a response of the same round.

use std::collections::VecDeque;
use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::serve::{in_background, listen};

/// Maximum time to hold a response back: later requests depend on it.
const LONGEST: Duration = Duration::from_secs(30);

/// The proxy, which runs until it is dropped.
pub struct Rounds {
    address: SocketAddr,
    state: Arc<State>,
    _stop: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    requests: Mutex<RecordedRounds>,
    complete: watch::Sender<usize>,
}

#[derive(Default)]
struct RecordedRounds {
    /// Expected numbers of requests in the incomplete rounds.
    expected: VecDeque<usize>,
    /// Requests of each round so far, the open one last.
    rounds: Vec<Vec<String>>,
    /// True if a round did not become complete in time.
    is_overdue: bool,
}

impl Rounds {
    /// Starts the proxy for `upstream` (`HOST:PORT`).
    pub fn start(upstream: String) -> Self {
        let (listener, address) = listen();
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let stop = in_background(async move || accept(listener, upstream, &shared).await);
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

    /// Runs a closure that must send exactly these rounds, with this number of requests each.
    pub fn check(&self, expected: &[usize], run: impl FnOnce()) {
        *self.state.requests.lock().unwrap() = RecordedRounds {
            expected: expected.iter().copied().collect(),
            rounds: vec![Vec::new()],
            is_overdue: false,
        };
        self.state.complete.send_replace(0);
        run();
        let RecordedRounds {
            mut rounds,
            is_overdue,
            ..
        } = mem::take(&mut *self.state.requests.lock().unwrap());
        rounds.retain(|round| !round.is_empty());
        let sizes: Vec<usize> = rounds.iter().map(Vec::len).collect();
        assert!(
            !is_overdue && sizes == expected,
            "expected rounds of {expected:?}, got {sizes:?}: {rounds:#?}"
        );
    }
}

impl State {
    fn note(&self, request: &str) -> usize {
        let mut requests = self.requests.lock().unwrap();
        let round = requests.rounds.len().saturating_sub(1);
        if let Some(open) = requests.rounds.last_mut() {
            open.push(request.to_owned());
            let length = open.len();
            if requests.expected.front() == Some(&length) {
                requests.expected.pop_front();
                requests.rounds.push(Vec::new());
                self.complete.send_replace(round + 1);
            }
        }
        round
    }

    /// Waits until a round is complete, if it is expected to be.
    async fn completion(&self, round: usize) {
        let mut complete = self.complete.subscribe();
        let done = complete.wait_for(|complete| *complete > round);
        let is_expected = !self.requests.lock().unwrap().expected.is_empty();
        if is_expected && timeout(LONGEST, done).await.is_err() {
            self.requests.lock().unwrap().is_overdue = true;
            self.complete.send_replace(usize::MAX);
        }
    }
}

async fn accept(listener: TcpListener, upstream: String, state: &Arc<State>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((client, _)) = listener.accept().await {
        let (upstream, state) = (upstream.clone(), Arc::clone(state));
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(upstream).await else {
                return;
            };
            let (requests, answers) = client.into_split();
            let (from_server, to_server) = server.into_split();
            // A connection has one open request at a time.
            let round = AtomicUsize::new(0);
            let asking = forward_requests(requests, to_server, &state, &round);
            let answering = hold_responses(from_server, answers, &state, &round);
            tokio::join!(asking, answering);
        });
    }
}

/// Forwards requests at once, and records them.
async fn forward_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    round: &AtomicUsize,
) {
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let bytes = &chunk[..length];
        let text = String::from_utf8_lossy(bytes);
        // Data that does not start with a request line is the rest of a body.
        let line = text.lines().next().unwrap_or_default();
        if let Some(request) = line.strip_suffix(" HTTP/1.1") {
            round.store(state.note(request), Ordering::SeqCst);
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

/// Holds responses back until their round is complete.
async fn hold_responses(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    round: &AtomicUsize,
) {
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        state.completion(round.load(Ordering::SeqCst)).await;
        // The client may have disconnected.
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
}
