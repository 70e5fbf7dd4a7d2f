//! Why a RUN line is not carried out.

use std::fmt;

/// What keeps a line from being carried out here, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Of what kind it is.
    pub kind: ScriptErrorKind,
    /// The command, as far as it says which one it is; empty for the line as a whole.
    pub command: String,
    /// Where it stands: a byte of the text after `RUN`.
    pub at: usize,
    /// What is the matter.
    pub why: String,
    /// What would help, beyond a stage's folder and a Docker daemon, which always do.
    pub help: Option<&'static str>,
}

/// What kind of trouble keeps a line from being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScriptErrorKind {
    /// A program that only Windows can run.
    NeedsWindows,
    /// A command, option or piece of grammar that is not understood.
    NotUnderstood,
    /// What happens depends on something that nobody has looked at.
    NotKnown,
    /// What happens depends on a file that is not downloaded yet.
    Later,
    /// It is understood, and fails; so does the build on Windows.
    Fails,
    /// It is understood, and not done here, whatever comes of it on Windows.
    Refused,
}

impl ScriptError {
    /// Trouble with an image that a line changes.
    pub fn new(kind: ScriptErrorKind, why: impl Into<String>) -> Self {
        Self {
            kind,
            command: String::new(),
            at: usize::MAX,
            why: why.into(),
            help: None,
        }
    }

    pub(super) fn windows(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::NeedsWindows, why)
    }

    /// A command, option or piece of grammar that is not understood.
    pub fn unclear(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::NotUnderstood, why)
    }

    /// What happens depends on something that nobody has looked at.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::NotKnown, why)
    }

    /// What happens depends on a file that is not downloaded yet.
    pub fn later(what: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::Later, what)
    }

    /// It is understood, and fails; so does the build on Windows.
    pub fn fails(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::Fails, why)
    }

    /// It is understood, and not done here, whatever comes of it on Windows.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::new(ScriptErrorKind::Refused, why)
    }

    pub(super) fn option(option: &str) -> Self {
        Self::unclear(format!("unsupported option {option:?}"))
    }

    /// Says what would help.
    #[must_use]
    pub fn help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }

    /// Says where, unless someone nearer has.
    pub(super) fn at_position(mut self, at: usize) -> Self {
        if self.at == usize::MAX {
            self.at = at;
        }
        self
    }

    /// Says in which command, unless someone nearer has.
    pub(super) fn in_command(mut self, name: &str, at: usize) -> Self {
        if self.command.is_empty() {
            name.clone_into(&mut self.command);
        }
        self.at_position(at)
    }
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
