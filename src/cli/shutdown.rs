//! Early end of a command: by a signal, or by its time limit.
//!
//! A thread waits for both, so that no call which blocks keeps the process, whatever it waits for.
//! What is awaited is dropped first, so that it can tidy up; it has little time for that.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use tokio::sync::watch;
use wincimg_common::lock;

use super::error::{COULD_NOT, Failure};
use super::prompt::show_typing;
use super::{command_context, progress};

/// Reason for a command's early end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Ctrl-C, or the request to end that CI systems and `timeout` send.
    Signal(i32),
    /// It was given so much time.
    TimeLimit(Duration),
}

/// Time limit for cleaning up before the process ends.
const TO_TIDY_UP: Duration = Duration::from_millis(400);
/// And so long what has to undo something, [`CleanupGuard`].
const TO_UNDO: Duration = Duration::from_secs(20);
/// A request that comes to its own limit knows what it was for; it has this long to say so.
const TO_SAY_WHY: Duration = Duration::from_millis(200);

static ASKED: LazyLock<watch::Sender<Option<Reason>>> = LazyLock::new(|| watch::Sender::new(None));
/// True if there is something that [`asked`] would drop.
static AWAITED: AtomicBool = AtomicBool::new(false);
/// Number of operations under way that leave something behind unless undone.
static UNDOING: AtomicUsize = AtomicUsize::new(0);
static LAST_WORD: Mutex<()> = Mutex::new(());
/// True if a signal is how the command ends that is under way.
static QUIETLY: AtomicBool = AtomicBool::new(false);

/// From now on, signals end the process, and so does the end of this time.
pub(super) fn watch(limit: Option<Duration>) {
    watch_signals();
    if let Some(limit) = limit {
        thread::spawn(move || {
            thread::sleep(limit.saturating_add(TO_SAY_WHY));
            stop(Reason::TimeLimit(limit));
        });
    }
}

#[cfg(unix)]
fn watch_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    // Where no handler can be installed, the signals do what they do by themselves.
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
        thread::spawn(move || {
            for signal in signals.forever() {
                // Who asks twice does not want to wait.
                thread::spawn(move || stop(Reason::Signal(signal)));
            }
        });
    }
}

#[cfg(not(unix))]
fn watch_signals() {
    /// The number that Ctrl-C has everywhere.
    const INTERRUPT: i32 = 2;
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            stop(Reason::Signal(INTERRUPT));
        }
    });
}

fn stop(reason: Reason) {
    let first = ASKED.send_if_modified(|asked| {
        let first = asked.is_none();
        asked.get_or_insert(reason);
        first
    });
    if first && AWAITED.load(Ordering::SeqCst) {
        thread::sleep(TO_TIDY_UP);
        let until = Instant::now() + TO_UNDO;
        while UNDOING.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }
    end(reason);
}

/// Waits until the process is to end.
pub(super) async fn requested() -> Reason {
    let mut asked = ASKED.subscribe();
    AWAITED.store(true, Ordering::SeqCst);
    let _guard = ShutdownWaiter;
    match asked.wait_for(Option::is_some).await.map(|reason| *reason) {
        Ok(Some(reason)) => reason,
        _ => std::future::pending().await,
    }
}

/// Whoever awaits does not any more, because the work is done.
struct ShutdownWaiter;

impl Drop for ShutdownWaiter {
    fn drop(&mut self) {
        // Where it was asked for, the way out is still to be gone.
        if ASKED.borrow().is_none() {
            AWAITED.store(false, Ordering::SeqCst);
        }
    }
}

/// Work that leaves something behind unless it is undone when it is dropped: the process waits for
/// that.
pub(super) struct CleanupGuard;

impl CleanupGuard {
    pub(super) fn new() -> Self {
        UNDOING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        UNDOING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From now on a signal is how the command ends: what is under way goes on until then.
pub(super) fn expect_signal() {
    QUIETLY.store(true, Ordering::Relaxed);
}

/// Reason why the process is ending, if it is.
pub(super) fn reason() -> Option<Reason> {
    *ASKED.borrow()
}

/// Message where the work was ended.
pub(super) fn failure(reason: Reason) -> Failure {
    match reason {
        Reason::Signal(_) => Failure::operation(anyhow!("interrupted"))
            .hint("run the same command again: what is done already is not done twice"),
        Reason::TimeLimit(limit) => {
            let limit = limit.as_secs_f32();
            Failure::operation(anyhow!("reached the time limit of {limit} seconds"))
                .hint("raise the limit with --timeout")
        }
    }
}

/// Says so and ends the process: by the signal itself where there was one, so that a shell's loop
/// ends too.
pub(super) fn end(reason: Reason) -> ! {
    // Held until the end, so that it is said once.
    let _held = lock(&LAST_WORD);
    progress::clear();
    show_typing();
    if !QUIETLY.load(Ordering::Relaxed) {
        let _ = failure(reason).report(command_context::colour_on_stderr());
    }
    let Reason::Signal(signal) = reason else {
        std::process::exit(COULD_NOT);
    };
    #[cfg(unix)]
    // The first process of a container gets no signals that it does not handle.
    if std::process::id() != 1 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    std::process::exit(128 + signal);
}
