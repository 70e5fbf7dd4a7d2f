//! Progress on stderr: one bar for each running task on a terminal, lines in logs.

mod line;
mod log;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use line::ProgressFigures;
use log::Log;
use wincimg_common::lock;
use wincimg_common::progress::{Progress, Silent, Task};
use wincimg_common::untrusted::Untrusted;

use super::command_context::Session;

/// Redraws of a bar per second.
const DRAWS_PER_SECOND: u8 = 8;
/// Width of a terminal that does not report it.
const USUAL_WIDTH: usize = 80;

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
    Arc::new(Bars { bars, width })
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
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let width = size.map(|(width, _)| usize::from(width.0));
    width.filter(|width| *width > 0).unwrap_or(USUAL_WIDTH)
}

struct Bars {
    bars: MultiProgress,
    width: fn() -> usize,
}

struct Bar {
    drawn: ProgressBar,
    label: Arc<str>,
    width: fn() -> usize,
}

impl Progress for Bars {
    fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task> {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        let bar = Bar {
            drawn: self.bars.add(bar),
            label: Untrusted(label).to_string().into(),
            width: self.width,
        };
        bar.draw_as(line::running);
        bar.drawn.enable_steady_tick(Duration::from_millis(250));
        Arc::new(bar)
    }

    fn note(&self, message: &str) {
        // Nothing can be printed if stderr is closed.
        let _ = self.bars.println(format!("note: {}", Untrusted(message)));
    }
}

impl Bar {
    /// Draws the line from now on, in the current width of the terminal.
    fn draw_as<F>(&self, line: F)
    where
        F: Fn(&str, &ProgressFigures, usize) -> String + Clone + Send + Sync + 'static,
    {
        let (label, width) = (Arc::clone(&self.label), self.width);
        let write = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            // The writer is a buffer, which cannot fail.
            let _ = out.write_str(&line(&label, &figures(state), width()));
        };
        let style = ProgressStyle::with_template("{line}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        self.drawn.set_style(style.with_key("line", write));
    }
}

fn figures(state: &ProgressState) -> ProgressFigures {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes a second are positive, and a part of one is not shown"
    )]
    let rate = state.per_sec() as u64;
    ProgressFigures {
        at: state.pos(),
        of: state.len(),
        rate,
        spent: state.elapsed(),
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
        let outcome = Untrusted(outcome).to_string();
        self.draw_as(move |label, _, width| line::ended(label, &outcome, width));
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
        let bars = MultiProgress::with_draw_target(target);
        let width = || 120;
        (terminal, Bars { bars, width })
    }

    #[test]
    fn several_pieces_of_work_are_shown_at_once_with_their_bytes() {
        let (terminal, bars) = bars();
        let first = bars.task("layer 1", Some(2048));
        let second = bars.task("layer 2", Some(1024));
        first.advance(1024);
        second.set_position(512);
        std::thread::sleep(Duration::from_millis(600));
        let shown = terminal.contents();
        assert!(shown.contains("layer 1"), "{shown}");
        assert!(shown.contains("1.00 KiB/2.00 KiB"), "{shown}");
        assert!(shown.contains("512 B/1.00 KiB"), "{shown}");
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
