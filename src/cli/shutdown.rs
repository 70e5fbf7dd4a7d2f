//! Early end of a command, by a signal or its time limit.
//!
//! A thread waits for both, so that no blocking call keeps the process alive. The awaited work is
//! dropped first, so that it can clean up, for a limited time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::Instant;

use tokio::sync::watch;
use wincimg_common::lock;

use super::error::FAILED;
use super::prompt::show_typing;
use super::{command_context, output, progress};
use crate::cli::prelude::*;

/// Reason for a command's early end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Ctrl-C, the end of the terminal, or the termination request of CI systems and `timeout`.
    Signal(i32),
    TimeLimit(Duration),
}

/// Time limit for cleaning up before the process ends.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(400);
/// Time limit for work with a [`CleanupGuard`], which has to undo something.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for a request that reaches its own limit to report its operation.
const REPORT_TIME: Duration = Duration::from_millis(200);

static REASON: LazyLock<watch::Sender<Option<Reason>>> = LazyLock::new(|| watch::Sender::new(None));
/// True if some work is waiting for [`requested`].
static HAS_WAITER: AtomicBool = AtomicBool::new(false);
/// Number of running operations that leave something behind unless undone.
static CLEANUPS: AtomicUsize = AtomicUsize::new(0);
static REPORT_LOCK: Mutex<()> = Mutex::new(());
/// True if the running command normally ends by a signal.
static EXPECTS_SIGNAL: AtomicBool = AtomicBool::new(false);

/// True if the reason is also printed as JSON.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on, signals and the time limit end the process; the reason is also printed as JSON if
/// the result would be.
pub(super) fn watch(limit: Option<Duration>, is_json: bool) -> Result<()> {
    AS_JSON.store(is_json, Ordering::Relaxed);
    #[cfg(unix)]
    survive_size_limit();
    let spawned = watch_signals().and_then(|()| {
        let Some(limit) = limit else {
            return Ok(());
        };
        let watching = thread::Builder::new().spawn(move || {
            thread::sleep(limit.saturating_add(REPORT_TIME));
            stop(Reason::TimeLimit(limit));
        });
        watching.map(drop)
    });
    spawned.map_err(no_threads)
}

/// From now on, a write beyond the user's limit on file sizes fails like one to a full disk, and
/// does not end the process. An ignored signal would stay ignored in child processes.
#[cfg(unix)]
fn survive_size_limit() {
    let signal = signal_hook::consts::SIGXFSZ;
    // Without a handler, the signal has its default effect.
    let _ = signal_hook::flag::register(signal, Arc::default());
}

pub(super) fn no_threads(error: io::Error) -> Failure {
    Failure::operation(error)
        .context("cannot start the program's threads")
        .hint("raise the limits on processes and memory: of the user (ulimit -a) or the container")
}

#[cfg(unix)]
fn watch_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let mut caught = vec![SIGINT, SIGTERM];
    // `nohup` ignores the end of the terminal.
    caught.extend([SIGHUP, SIGQUIT].into_iter().filter(|it| !is_ignored(*it)));
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    // A handler without its thread would make the process ignore the signals.
    thread::Builder::new().spawn(move || {
        // Without a handler, signals have their default effect.
        let Ok(mut signals) = signal_hook::iterator::Signals::new(&caught) else {
            return;
        };
        drop(ready);
        for signal in signals.forever() {
            // A second signal ends the process immediately.
            let stopping = move || stop(Reason::Signal(signal));
            if thread::Builder::new().spawn(stopping).is_err() {
                stopping();
            }
        }
    })?;
    let _ = is_ready.recv();
    Ok(())
}

/// Returns true if whoever started the program made it ignore a signal, or if that is unknown.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(not(unix))]
fn watch_signals() -> io::Result<()> {
    /// Number of SIGINT, the same on every system.
    const INTERRUPT: i32 = 2;
    let watching = thread::Builder::new().spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        if let Ok(runtime) = runtime
            && runtime.block_on(tokio::signal::ctrl_c()).is_ok()
        {
            stop(Reason::Signal(INTERRUPT));
        }
    });
    watching.map(drop)
}

fn stop(reason: Reason) {
    let first = REASON.send_if_modified(|current| {
        let first = current.is_none();
        current.get_or_insert(reason);
        first
    });
    if first && HAS_WAITER.load(Ordering::SeqCst) {
        thread::sleep(CANCEL_TIMEOUT);
        let until = Instant::now() + CLEANUP_TIMEOUT;
        while CLEANUPS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }
    end(reason);
}

/// Waits until the process is to end.
pub(super) async fn requested() -> Reason {
    let mut cause = REASON.subscribe();
    HAS_WAITER.store(true, Ordering::SeqCst);
    let _guard = ShutdownWaiter;
    match cause.wait_for(Option::is_some).await.map(|reason| *reason) {
        Ok(Some(reason)) => reason,
        _ => std::future::pending().await,
    }
}

/// The work is done and no longer waits.
struct ShutdownWaiter;

impl Drop for ShutdownWaiter {
    fn drop(&mut self) {
        // Once requested, the process still has to end.
        if REASON.borrow().is_none() {
            HAS_WAITER.store(false, Ordering::SeqCst);
        }
    }
}

/// Guard for work that must be undone when it is dropped: the process waits for that.
pub(super) struct CleanupGuard;

impl CleanupGuard {
    pub(super) fn new() -> Self {
        CLEANUPS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        CLEANUPS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From now on a signal ends the command in the normal way: running work continues until then.
pub(super) fn expect_signal() {
    EXPECTS_SIGNAL.store(true, Ordering::Relaxed);
}

/// Reason why the process is ending, if it is.
pub(super) fn reason() -> Option<Reason> {
    *REASON.borrow()
}

/// Error for work that was ended early.
pub(super) fn failure(reason: Reason) -> Failure {
    match reason {
        Reason::Signal(_) => {
            Failure::operation("interrupted").hint("to go on, run the same command again")
        }
        Reason::TimeLimit(limit) => {
            let limit = limit.as_secs_f32();
            let problem = format!("reached the time limit of {limit} s");
            Problem::new("network/time-limit", problem)
                .hint("raise the limit with --timeout")
                .into()
        }
    }
}

/// Reports the reason and ends the process: by the signal itself if there was one, so that a shell
/// loop ends too.
pub(super) fn end(reason: Reason) -> ! {
    // Held until the end, so that the reason is reported once.
    let _held = lock(&REPORT_LOCK);
    wincimg_common::process_group::end_all();
    progress::clear();
    show_typing();
    if !EXPECTS_SIGNAL.load(Ordering::Relaxed) {
        let failure = failure(reason);
        if AS_JSON.load(Ordering::Relaxed) && output::take() {
            failure.print_json();
        }
        let _ = failure.report(command_context::colour_on_stderr());
    }
    let Reason::Signal(signal) = reason else {
        std::process::exit(FAILED.into());
    };
    #[cfg(unix)]
    // The first process of a container receives no signals without a handler.
    if std::process::id() != 1 {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    std::process::exit(128 + signal);
}
