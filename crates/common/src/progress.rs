//! How long work tells the person who waits about itself, without knowing how it is shown.
//!
//! Modules report to a [`Progress`]; the command line draws it, tests and libraries pass [`Silent`].

use std::fmt::Display;
use std::sync::Arc;

/// Receiver of progress.
pub trait Progress: Send + Sync {
    /// Starts a line for one piece of work; `total` is its size in bytes where that is known.
    fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task>;

    /// One sentence that stays on the screen.
    fn note(&self, message: &str);
}

/// One piece of work under way; its line ends when the value is dropped or [`Task::done`] is called.
pub trait Task: Send + Sync {
    /// Bytes that were handled since the last call.
    fn advance(&self, bytes: u64);

    /// Where the work stands after a resume or a restart, counted from its beginning.
    fn set_position(&self, bytes: u64);

    /// Ends the line with a word on the outcome ("pushed", "already there").
    fn done(&self, outcome: &str);
}

/// Where work says what deserves to be read, whatever else goes on.
pub trait Reporter: Sync {
    /// Something that is not the result.
    fn note(&self, message: &dyn Display);

    /// Something that may need attention.
    fn warn(&self, message: &dyn Display);
}

/// A progress display that shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn task(&self, _label: &str, _total: Option<u64>) -> Arc<dyn Task> {
        Arc::new(Silent)
    }

    fn note(&self, _message: &str) {}
}

impl Reporter for Silent {
    fn note(&self, _message: &dyn Display) {}

    fn warn(&self, _message: &dyn Display) {}
}

impl Task for Silent {
    fn advance(&self, _bytes: u64) {}

    fn set_position(&self, _bytes: u64) {}

    fn done(&self, _outcome: &str) {}
}
