//! Progress without a terminal: a line when a task ends, and periodic lines for running tasks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, Weak};
use std::time::Instant;

use wincimg_common::lock;
use wincimg_common::progress::Task;

use super::line::{self, ProgressFigures};
use crate::cli::prelude::*;

/// Interval of lines about running tasks.
const INTERVAL: Duration = Duration::from_secs(30);
/// Names in logs are searched for, so they are hardly shortened.
const LONGEST_NAME: usize = 120;

pub(super) struct Log(Arc<Lines>);

struct Lines {
    every: Duration,
    running: Mutex<Vec<Weak<LogTask>>>,
    /// Bytes of all tasks, finished or running.
    moved: AtomicU64,
    watch: OnceLock<()>,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

struct LogTask {
    lines: Arc<Lines>,
    name: String,
    of: Option<u64>,
    at: AtomicU64,
    /// Number of bytes present before this run.
    from: AtomicU64,
    begun: Instant,
    ended: AtomicBool,
}

impl Log {
    pub(super) fn to_stderr() -> Self {
        Self::every(INTERVAL, |line| {
            // Nothing can be printed if stderr is closed.
            let _ = writeln!(io::stderr(), "{line}");
        })
    }

    fn every(every: Duration, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Lines {
            every,
            running: Mutex::default(),
            moved: AtomicU64::new(0),
            watch: OnceLock::new(),
            write: Box::new(write),
        }))
    }
}

impl Progress for Log {
    fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task> {
        let lines = &self.0;
        lines.watch.get_or_init(|| watch(lines));
        let piece = Arc::new(LogTask {
            lines: Arc::clone(lines),
            name: line::name(&UntrustedText(label).to_string(), LONGEST_NAME),
            of: total,
            at: AtomicU64::new(0),
            from: AtomicU64::new(0),
            begun: Instant::now(),
            ended: AtomicBool::new(false),
        });
        let mut running = lock(&lines.running);
        running.push(Arc::downgrade(&piece));
        piece
    }

    fn note(&self, message: &dyn Display) {
        (self.0.write)(&format!("note: {}", UntrustedText(message)));
    }

    fn warn(&self, message: &dyn Display) {
        (self.0.write)(&format!("warning: {}", UntrustedText(message)));
    }
}

/// Reports running tasks periodically, while the log exists.
fn watch(lines: &Arc<Lines>) {
    let every = lines.every;
    let lines = Arc::downgrade(lines);
    let speak = move || {
        let mut moved = 0;
        loop {
            std::thread::sleep(every);
            let Some(lines) = lines.upgrade() else {
                return;
            };
            let now = lines.moved.load(Ordering::Relaxed);
            if let Some(line) = lines.progress_text(per_second(now - moved, every)) {
                (lines.write)(&line);
            }
            moved = now;
        }
    };
    // Without a thread, only finished tasks are reported.
    let _ = std::thread::Builder::new()
        .name("progress".to_owned())
        .spawn(speak);
}

impl Lines {
    fn progress_text(&self, rate: u64) -> Option<String> {
        let mut running = lock(&self.running);
        running.retain(|piece| piece.strong_count() > 0);
        let pieces: Vec<Arc<LogTask>> = running.iter().filter_map(Weak::upgrade).collect();
        drop(running);
        let is_open = |piece: &&Arc<LogTask>| !piece.ended.load(Ordering::Relaxed);
        let pieces: Vec<_> = pieces.iter().filter(is_open).collect();
        let first = pieces.first()?;
        let figures = ProgressFigures {
            at: pieces
                .iter()
                .map(|piece| piece.at.load(Ordering::Relaxed))
                .sum(),
            // As servers state them.
            of: pieces
                .iter()
                .try_fold(0_u64, |sum, piece| Some(sum.saturating_add(piece.of?))),
            rate,
            spent: first.begun.elapsed(),
        };
        let name = match pieces.len() {
            1 => first.name.clone(),
            several => format!("{several} tasks"),
        };
        Some(line::progress_text(&name, &figures, self.every))
    }
}

impl Task for LogTask {
    fn advance(&self, bytes: u64) {
        self.at.fetch_add(bytes, Ordering::Relaxed);
        self.lines.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    fn set_position(&self, bytes: u64) {
        let before = self.at.swap(bytes, Ordering::Relaxed);
        if before == 0 {
            self.from.store(bytes, Ordering::Relaxed);
        } else {
            let more = bytes.saturating_sub(before);
            self.lines.moved.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn done(&self, outcome: &str) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let at = self.at.load(Ordering::Relaxed);
        let moved = at.saturating_sub(self.from.load(Ordering::Relaxed));
        let spent = self.begun.elapsed();
        let figures = ProgressFigures {
            at,
            of: self.of,
            rate: per_second(moved, spent),
            spent,
        };
        let outcome = UntrustedText(outcome).to_string();
        (self.lines.write)(&line::finished(&self.name, &outcome, &figures));
    }
}

fn per_second(bytes: u64, time: Duration) -> u64 {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let rate = bytes.saturating_mul(1000).checked_div(milliseconds);
    rate.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn log(every: Duration) -> (Log, Receiver<String>) {
        let (sender, receiver) = channel();
        let write = move |line: &str| {
            let _ = sender.send(line.to_owned());
        };
        (Log::every(every, write), receiver)
    }

    #[test]
    fn each_end_is_a_line_and_what_is_given_up_is_none() {
        let (log, lines) = log(INTERVAL);
        let first = log.task("nanoserver 1a2b", Some(2048));
        first.advance(2048);
        drop(log.task("nanoserver 3c4d", Some(2048)));
        first.done("copied");
        first.done("copied");
        log.task("layer\u{1b}[2J", None).done("already there");
        log.note(&"again");
        drop((first, log));
        let lines: Vec<String> = lines.iter().take(3).collect();
        assert_eq!(
            lines,
            [
                "nanoserver 1a2b: copied, 2.00 KiB",
                "layer\\u{1b}[2J: already there",
                "note: again"
            ]
        );
    }

    #[test]
    fn sizes_that_servers_state_are_added_up_whatever_they_are() {
        let (log, lines) = log(Duration::from_millis(100));
        let _downloads = [0, 1].map(|_| log.task("a", Some(u64::MAX)));
        let line = lines.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(line.starts_with("2 tasks: 0 B of 16.00 EiB"), "{line}");
    }

    #[test]
    fn work_under_way_is_a_line_now_and_then() {
        let (log, lines) = log(Duration::from_millis(100));
        let wait = Duration::from_secs(20);
        let first = log.task("nanoserver 1a2b", Some(1 << 20));
        // Resumed bytes, which do not count for the rate.
        first.set_position(1 << 19);
        let line = lines.recv_timeout(wait).unwrap();
        let expected = "nanoserver 1a2b: 512.00 KiB of 1.00 MiB, no progress for ";
        assert!(line.starts_with(expected), "{line}");
        let second = log.task("nanoserver 3c4d", Some(1 << 20));
        second.advance(1 << 18);
        let line = loop {
            let line = lines.recv_timeout(wait).unwrap();
            if !line.contains("nothing") {
                break line;
            }
        };
        let expected = "2 tasks: 768.00 KiB of 2.00 MiB, 2.50 MiB/s, 0s left";
        assert!(line.starts_with(expected), "{line}");
    }
}
