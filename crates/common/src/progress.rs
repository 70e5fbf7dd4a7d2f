//! Progress reports, independent of their display.
//!
//! Modules report to a [`Progress`]; the command line draws it, tests and libraries pass
//! [`Silent`].

use std::fmt::Display;
use std::sync::Arc;

/// Receiver of progress and of messages for the user.
pub trait Progress: Send + Sync {
    /// Starts a task with a line of its own; `total` is its size in bytes if known. A receiver of
    /// messages alone shows none.
    fn task(&self, _label: &str, _total: Option<u64>) -> Arc<dyn Task> {
        Arc::new(Silent)
    }

    /// Reports something other than the result.
    fn note(&self, message: &dyn Display);

    /// Reports something that may require attention.
    fn warn(&self, message: &dyn Display);
}

/// A task in progress; its line ends when the value is dropped or [`Task::done`] is called.
pub trait Task: Send + Sync {
    /// Adds bytes to the position.
    fn advance(&self, bytes: u64);

    /// Sets the position in bytes after a resume or a restart.
    fn set_position(&self, bytes: u64);

    /// Ends the line with an outcome ("pushed", "already exists").
    fn done(&self, outcome: &str);
}

/// Discards all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn note(&self, _message: &dyn Display) {}

    fn warn(&self, _message: &dyn Display) {}
}

impl Task for Silent {
    fn advance(&self, _bytes: u64) {}

    fn set_position(&self, _bytes: u64) {}

    fn done(&self, _outcome: &str) {}
}
