//! Progress on stderr: one bar for each running task on a terminal, lines in logs.

mod line;
mod log;

use std::sync::{Mutex, MutexGuard};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use log::Log;
use wincimg_common::lock;
use wincimg_common::progress::{Silent, Task};

use crate::cli::prelude::*;

/// Redraws of a bar per second.
const DRAWS_PER_SECOND: u8 = 8;
/// Width of a terminal that does not report it.
const USUAL_WIDTH: usize = 80;
/// Minimum width of a name, however narrow the terminal is.
const SHORTEST_NAME: usize = 12;
/// A running task with a size, the width of what follows its name, and the same for a narrow
/// terminal, where the name needs the room.
const SIZED: [(&str, usize); 2] = [
    (
        "{name} {bar:10} {percent:>3}% {binary_total_bytes:>11} {binary_bytes_per_sec:>13} {eta:>4}",
        46,
    ),
    (
        "{name} {percent:>3}% {binary_bytes_per_sec:>13} {eta:>4}",
        23,
    ),
];
/// A running task without one.
const UNSIZED: [(&str, usize); 2] = [
    (
        "{name} {binary_bytes:>27} {binary_bytes_per_sec:>13} {elapsed:>4}",
        46,
    ),
    ("{name} {binary_bytes:>11} {elapsed:>4}", 16),
];

/// The progress display of this run: bars on a terminal, otherwise lines for a log; nothing with
/// `-q`.
pub(super) fn display(session: &Session) -> Arc<dyn Progress> {
    if session.quiet {
        return Arc::new(Silent);
    }
    if !session.colour {
        return Arc::new(Log::to_stderr());
    }
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let bars = MultiProgress::with_draw_target(target);
    shown().push(bars.clone());
    Arc::new(Bars(bars))
}

/// Removes all bars from the terminal.
pub(super) fn clear() {
    for bars in shown().drain(..) {
        // Nothing can be printed if stderr is closed.
        let _ = bars.clear();
        bars.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// Bars of this run on the terminal.
fn shown() -> MutexGuard<'static, Vec<MultiProgress>> {
    static SHOWN: Mutex<Vec<MultiProgress>> = Mutex::new(Vec::new());
    lock(&SHOWN)
}

/// Current width of the terminal.
fn width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    let width = size.map(|(width, _)| usize::from(width.0));
    width.filter(|width| *width > 0).unwrap_or(USUAL_WIDTH)
}

struct Bars(MultiProgress);

struct Bar {
    drawn: ProgressBar,
    label: Arc<str>,
}

impl Progress for Bars {
    fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task> {
        let (bar, templates) = match total {
            Some(total) => (ProgressBar::new(total), SIZED),
            None => (ProgressBar::no_length(), UNSIZED),
        };
        let (template, figures) = templates[usize::from(width() < USUAL_WIDTH)];
        let bar = Bar {
            drawn: self.0.add(bar),
            label: UntrustedText(label).to_string().into(),
        };
        bar.draw_as(template, figures);
        bar.drawn.enable_steady_tick(Duration::from_millis(250));
        Arc::new(bar)
    }

    fn note(&self, message: &dyn Display) {
        // Nothing can be printed if stderr is closed.
        let _ = self.0.println(format!("note: {}", UntrustedText(message)));
    }

    fn warn(&self, message: &dyn Display) {
        let _ = self
            .0
            .println(format!("warning: {}", UntrustedText(message)));
    }
}

impl Bar {
    /// Draws the line from now on, with a name that fits the current width of the terminal.
    fn draw_as(&self, template: &str, figures: usize) {
        let label = Arc::clone(&self.label);
        let write = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            // Terminals wrap in their last column.
            let room = width().saturating_sub(figures + 2).max(SHORTEST_NAME);
            // The writer is a buffer, which cannot fail.
            let _ = write!(out, "{:<room$}", line::name(&label, room));
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = style.progress_chars("=-").with_key("name", write);
        self.drawn.set_style(style);
    }
}

impl Task for Bar {
    fn advance(&self, bytes: u64) {
        self.drawn.inc(bytes);
    }

    fn set_position(&self, bytes: u64) {
        self.drawn.set_position(bytes);
    }

    fn done(&self, outcome: &str) {
        let outcome = UntrustedText(outcome).to_string();
        let length = outcome.chars().count();
        self.drawn.set_message(outcome);
        // Outcomes are aligned in a column if the names leave room.
        self.draw_as("{name} {msg}", length.max(width() * 2 / 5));
        self.drawn.finish();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if !self.drawn.is_finished() {
            self.drawn.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    fn bars() -> (InMemoryTerm, Bars) {
        let terminal = InMemoryTerm::new(12, 120);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        (terminal, Bars(MultiProgress::with_draw_target(target)))
    }

    #[test]
    fn several_pieces_of_work_are_shown_at_once_with_their_bytes() {
        let (terminal, bars) = bars();
        let name = "repo.mylan.k8s:9999/mcr.microsoft.com/windows/nanoserver 1a2b3c4d5e6f";
        let first = bars.task(name, Some(2048));
        let second = bars.task("layer 2", Some(1024));
        first.advance(1024);
        second.set_position(512);
        std::thread::sleep(Duration::from_millis(600));
        let shown = terminal.contents();
        // What tells layers apart is kept.
        assert!(shown.contains("/nanoserver 1a2b3c4d5e6f "), "{shown}");
        for figures in ["=====-----  50%    2.00 KiB ", " 50%    1.00 KiB "] {
            assert!(shown.contains(figures), "{shown}");
        }
    }

    #[test]
    fn an_end_says_its_outcome_and_a_drop_says_nothing() {
        let (terminal, bars) = bars();
        bars.task("layer 1", Some(2048)).done("copied");
        drop(bars.task("layer 2", Some(2048)));
        let shown = terminal.contents();
        assert!(shown.contains("copied"), "{shown}");
        assert!(!shown.contains("layer 2"), "{shown}");
    }
}
