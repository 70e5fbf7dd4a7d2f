//! Errors of RUN lines.

use std::fmt;

use wincimg_common::diagnose::error_chain;
use wincimg_registry::BaseReadError;
use wincimg_windows::path::PathError;

/// Result of a command, a cmdlet or a part of one. The crate uses it in place of std's.
pub(super) type Result<T, E = ScriptError> = std::result::Result<T, E>;

/// Reason that a RUN line cannot be interpreted, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Kind of the error.
    pub kind: ScriptErrorKind,
    /// Name of the command; empty for the line as a whole.
    pub command: String,
    /// Byte offset in the text after `RUN`.
    pub at: usize,
    /// Message.
    pub why: String,
    /// Hint, in addition to a stage's folder and a Docker daemon, which always work.
    pub help: Option<&'static str>,
    /// True if the hint is an alternative to Windows, which runs the line.
    pub runs_on_windows: bool,
    /// What a failure ends in PowerShell.
    pub(super) ends: Ends,
}

/// What a failure ends in PowerShell, unless the error action of the script says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ends {
    /// A command, as its own error action says.
    Command,
    /// A statement, or what a `try` holds.
    Statement,
    /// That of `throw`: the script, unless errors are ignored.
    Throw,
    /// The script, or what a `try` holds.
    Script,
}

/// Maximum number of characters of a command's name: a line may have no other word.
const LONGEST_NAME: usize = 200;

/// Kind of a [`ScriptError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScriptErrorKind {
    /// Requires Windows.
    NeedsWindows,
    /// Requires Linux.
    NeedsLinux,
    /// Unsupported command, option or syntax.
    NotUnderstood,
    /// Depends on content of the image that is unknown.
    NotKnown,
    /// Depends on a file that is not downloaded yet.
    Deferred,
    /// Fails, as it does on Windows.
    Fails,
    /// Refused, whatever its result on Windows.
    Refused,
}

impl ScriptErrorKind {
    /// Returns true if Windows may run the command.
    pub fn is_for_windows(self) -> bool {
        matches!(self, Self::NeedsWindows | Self::NotUnderstood)
    }
}

impl ScriptError {
    /// Creates an error without a command or position.
    pub fn new(kind: ScriptErrorKind, why: impl Into<String>) -> Self {
        Self {
            kind,
            command: String::new(),
            at: usize::MAX,
            why: why.into(),
            help: None,
            runs_on_windows: false,
            ends: Ends::Command,
        }
    }

    pub(super) fn windows(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::NeedsWindows, why)
    }

    /// Unsupported command, option or syntax.
    pub fn unclear(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::NotUnderstood, why)
    }

    /// Depends on content of the image that is unknown.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::NotKnown, why)
    }

    /// Depends on a file that is not downloaded yet.
    pub fn later(what: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::Deferred, what)
    }

    /// Fails, as it does on Windows.
    pub fn fails(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::Fails, why)
    }

    /// Refused, whatever its result on Windows.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::Refused, why)
    }

    pub(super) fn option(option: &str) -> Self {
        Self::unclear(format!("unsupported option {option:?}"))
    }

    /// Adds a hint.
    #[must_use]
    pub fn help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }

    /// Adds a hint that is an alternative to Windows, which runs the line.
    #[must_use]
    pub fn instead(mut self, help: &'static str) -> Self {
        self.runs_on_windows = true;
        self.help(help)
    }

    /// Makes a failure end at least this.
    pub(super) fn ending(mut self, ends: Ends) -> Self {
        self.ends = self.ends.max(ends);
        self
    }

    /// Sets the position unless it is already set.
    pub(super) fn at_position(mut self, at: usize) -> Self {
        if self.at == usize::MAX {
            self.at = at;
        }
        self
    }

    /// Sets the command and position unless they are already set.
    pub(super) fn in_command(mut self, name: &str, at: usize) -> Self {
        if self.command.is_empty() {
            self.command = match name.char_indices().nth(LONGEST_NAME) {
                Some((end, _)) => format!("{}…", &name[..end]),
                None => name.to_owned(),
            };
        }
        self.at_position(at)
    }
}

/// Error of something that requires Windows.
pub(super) fn windows<T>(why: impl Into<String>) -> Result<T> {
    Err(ScriptError::windows(why))
}

/// Error of something that is not supported.
pub(super) fn unclear<T>(why: impl Into<String>) -> Result<T> {
    Err(ScriptError::unclear(why))
}

/// Error of something that depends on unknown content of the image.
pub(super) fn unknown<T>(why: impl Into<String>) -> Result<T> {
    Err(ScriptError::unknown(why))
}

/// Error of something that depends on a file that is not downloaded yet.
pub(super) fn later<T>(why: impl Into<String>) -> Result<T> {
    Err(ScriptError::later(why))
}

/// Error of something that depends on a file whose content or existence is known only later.
pub(super) fn unread_file<T>() -> Result<T> {
    later("it depends on a file that is not read yet: a download, or one of the base")
}

/// Error of something that fails, as it does on Windows.
pub(super) fn fails<T>(why: impl Into<String>) -> Result<T> {
    Err(ScriptError::fails(why))
}

/// Error of something that is refused, whatever its result on Windows.
pub(super) fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(ScriptError::refused(why))
}

/// Error of something that has an unsupported option.
pub(super) fn option<T>(option: &str) -> Result<T> {
    Err(ScriptError::option(option))
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.command.is_empty() {
            write!(f, "{}: ", self.command)?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for ScriptError {}

impl From<PathError> for ScriptError {
    fn from(error: PathError) -> Self {
        Self::unclear(error.to_string())
    }
}

impl From<BaseReadError> for ScriptError {
    fn from(error: BaseReadError) -> Self {
        Self::unknown(error_chain(&error))
    }
}
