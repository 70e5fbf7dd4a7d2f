//! Progress on stderr: one bar for each piece of work, several at once, for people at a terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::session::Session;
use crate::foreign::Foreign;
use crate::progress::{Progress, Silent, Task};

/// How often a bar is drawn again; a person sees no more.
const DRAWS_PER_SECOND: u8 = 8;
const SIZED: &str = "{prefix:<46!} {bar:20} {binary_bytes:>11}/{binary_total_bytes:<11} {binary_bytes_per_sec:>13} {eta:>4}";
const UNSIZED: &str =
    "{prefix:<46!} {spinner} {binary_bytes:>11} {binary_bytes_per_sec:>13} {elapsed:>4}";
const ENDED: &str = "{prefix:<46!} {msg}";

/// The display for this run: bars where someone watches, else only notes, and nothing with `-q`.
pub(super) fn display(session: &Session) -> Arc<dyn Progress> {
    if session.quiet {
        return Arc::new(Silent);
    }
    if !session.colour {
        return Arc::new(Plain);
    }
    let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND);
    let bars = MultiProgress::with_draw_target(target);
    shown().push(bars.clone());
    Arc::new(Bars(bars))
}

/// Takes all bars off the terminal, for good.
pub(super) fn wipe() {
    for bars in shown().drain(..) {
        // Nobody is left to tell when stderr is gone.
        let _ = bars.clear();
        bars.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// What this run has on the terminal.
fn shown() -> MutexGuard<'static, Vec<MultiProgress>> {
    static SHOWN: Mutex<Vec<MultiProgress>> = Mutex::new(Vec::new());
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes alone, for logs.
struct Plain;

impl Progress for Plain {
    fn task(&self, _label: &str, _total: Option<u64>) -> Arc<dyn Task> {
        Arc::new(Silent)
    }

    fn note(&self, message: &str) {
        use std::io::Write;
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(std::io::stderr(), "note: {}", Foreign(message));
    }
}

struct Bars(MultiProgress);

struct Bar(ProgressBar);

impl Progress for Bars {
    fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task> {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        let bar = self.0.add(bar);
        bar.set_style(style(if total.is_some() { SIZED } else { UNSIZED }));
        bar.set_prefix(Foreign(label).to_string());
        bar.enable_steady_tick(Duration::from_millis(250));
        Arc::new(Bar(bar))
    }

    fn note(&self, message: &str) {
        // Nobody is left to tell when stderr is gone.
        let _ = self.0.println(format!("note: {}", Foreign(message)));
    }
}

impl Task for Bar {
    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn set_position(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    fn done(&self, outcome: &str) {
        self.0.set_style(style(ENDED));
        self.0.finish_with_message(Foreign(outcome).to_string());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if !self.0.is_finished() {
            self.0.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use indicatif::InMemoryTerm;

    fn bars() -> (InMemoryTerm, Bars) {
        let terminal = InMemoryTerm::new(12, 120);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        (terminal, Bars(MultiProgress::with_draw_target(target)))
    }

    #[test]
    fn every_template_is_one_that_indicatif_knows() {
        for template in [SIZED, UNSIZED, ENDED] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
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
