//! Errors in a Dockerfile, with their lines.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wincimg_common::diagnose::{Blame, Diagnose, Excerpt};
use wincimg_common::files::similar_path;
use wincimg_common::untrusted::without_password;
use wincimg_scripts::ScriptErrorKind;

/// Error of evaluating a Dockerfile.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "dockerfile/invalid", blame = Request)]
pub enum StageError {
    /// The Dockerfile cannot be read.
    #[error("cannot read the Dockerfile {}", path.display())]
    #[diagnose(code = "dockerfile/unreadable", blame = Circumstances, hint = Some(path_hint(path)))]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The request does not match the Dockerfile.
    #[error("{0}")]
    #[diagnose(code = "dockerfile/request", hint = _1.clone())]
    Request(String, Option<String>),
    /// A line is invalid or unsupported.
    #[error("{file}:{line}: {problem}")]
    #[diagnose(code = code_of(*kind), blame = blame_of(*kind, further), hint = hint.clone(), excerpt = Some(Excerpt::from_quoted(*line, text, problem).in_file(file)))]
    Line {
        /// File.
        file: Box<str>,
        /// Line, from 1.
        line: usize,
        /// Message.
        problem: Box<str>,
        /// Instruction.
        text: Box<str>,
        /// Hint.
        hint: Option<String>,
        /// Workaround without changing the Dockerfile.
        workaround: Workaround,
        /// Kind of error of a `RUN` line.
        kind: Option<ScriptErrorKind>,
        /// True if the error does not depend on earlier lines.
        is_independent: bool,
        /// Errors of further lines.
        further: Box<[Self]>,
    },
}

/// A line that cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedLine<'a> {
    /// File.
    pub file: &'a str,
    /// Line, from 1.
    pub line: usize,
    /// Instruction.
    pub command: &'a str,
    /// Code of the error: its class.
    pub code: &'static str,
    /// Message.
    pub message: &'a str,
    /// Hint.
    pub hint: Option<&'a str>,
}

/// Workaround for a line that cannot be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workaround {
    /// None.
    None,
    /// Evaluate again, if more of the base is known by then.
    Retry,
    /// Index the base of a stage, by its position in the file.
    IndexBase(usize),
}

impl StageError {
    pub(super) fn at(file: &Path, line: usize, text: &str, problem: impl Into<String>) -> Self {
        Self::Line {
            file: file.display().to_string().into(),
            line,
            problem: problem.into().into(),
            text: without_passwords(text).into(),
            hint: None,
            workaround: Workaround::None,
            kind: None,
            is_independent: false,
            further: Box::default(),
        }
    }

    pub(super) fn with_kind(mut self, new: ScriptErrorKind) -> Self {
        if let Self::Line { kind, .. } = &mut self {
            *kind = Some(new);
        }
        self
    }

    /// Joins errors to one: the first, with the others as further ones. If one has no workaround,
    /// errors with one are omitted.
    pub(super) fn all(mut errors: Vec<Self>) -> Option<Self> {
        if errors
            .iter()
            .any(|error| error.workaround() == Workaround::None)
        {
            errors.retain(|error| error.workaround() == Workaround::None);
        }
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        if let Self::Line { further, .. } = &mut first {
            *further = errors.collect();
        }
        Some(first)
    }

    /// All errors, each with its line.
    pub fn lines(&self) -> impl Iterator<Item = &Self> {
        let further = match self {
            Self::Line { further, .. } => further,
            _ => &[][..],
        };
        std::iter::once(self).chain(further)
    }

    pub(super) fn is_isolated(&self) -> bool {
        matches!(
            self,
            Self::Line {
                is_independent: true,
                ..
            }
        )
    }

    pub(super) fn isolated(mut self) -> Self {
        if let Self::Line { is_independent, .. } = &mut self {
            *is_independent = true;
        }
        self
    }

    /// Code of each line's error, with its file, line, instruction and hint.
    pub fn failed_lines(&self) -> impl Iterator<Item = FailedLine<'_>> {
        self.lines().filter_map(|error| match error {
            Self::Line {
                file,
                line,
                problem,
                text,
                hint,
                kind,
                ..
            } => Some(FailedLine {
                file,
                line: *line,
                command: text,
                code: code_of(*kind),
                message: problem,
                hint: hint.as_deref(),
            }),
            _ => None,
        })
    }

    /// Returns true if indexing bases may resolve all errors.
    pub fn needs_base_contents(&self) -> bool {
        let mut lines = self.lines();
        lines.all(|line| matches!(line.workaround(), Workaround::IndexBase(_)))
    }

    /// Workaround without changing the Dockerfile.
    pub(super) fn workaround(&self) -> Workaround {
        match self {
            Self::Line { workaround, .. } => *workaround,
            _ => Workaround::None,
        }
    }

    pub(super) fn with_workaround(mut self, other: Workaround) -> Self {
        if let Self::Line { workaround, .. } = &mut self {
            *workaround = other;
        }
        self
    }

    pub(super) fn with_hint(mut self, text: impl Into<String>) -> Self {
        match &mut self {
            Self::Line { hint, .. } | Self::Request(_, hint) => *hint = Some(text.into()),
            Self::Unreadable { .. } => {}
        }
        self
    }
}

/// Code and first part of the message for a `RUN` line.
pub(super) struct Heading {
    code: &'static str,
    pub(super) problem: &'static str,
}

impl Heading {
    pub(super) fn for_kind(kind: ScriptErrorKind) -> Self {
        match kind {
            ScriptErrorKind::NeedsWindows => Self {
                code: "dockerfile/needs-windows",
                problem: "RUN requires Windows",
            },
            ScriptErrorKind::NotUnderstood => Self {
                code: "dockerfile/not-understood",
                problem: "RUN is unsupported",
            },
            ScriptErrorKind::NotKnown | ScriptErrorKind::Deferred => Self {
                code: "dockerfile/not-known",
                problem: "RUN depends on unknown contents",
            },
            ScriptErrorKind::Fails => Self {
                code: "dockerfile/fails",
                problem: "RUN fails",
            },
            ScriptErrorKind::Refused => Self {
                code: "dockerfile/refused",
                problem: "RUN is refused",
            },
        }
    }
}

fn code_of(kind: Option<ScriptErrorKind>) -> &'static str {
    kind.map_or("dockerfile/invalid", |kind| Heading::for_kind(kind).code)
}

/// A machine with Windows, if it can run all of the lines.
fn blame_of(kind: Option<ScriptErrorKind>, further: &[StageError]) -> Blame {
    let is_for_windows = |kind: Option<ScriptErrorKind>| {
        matches!(
            kind,
            Some(ScriptErrorKind::NeedsWindows | ScriptErrorKind::NotUnderstood)
        )
    };
    let mut kinds = further.iter().map(|error| match error {
        StageError::Line { kind, .. } => *kind,
        _ => None,
    });
    if is_for_windows(kind) && kinds.all(is_for_windows) {
        Blame::Windows
    } else {
        Blame::Request
    }
}

/// Removes passwords in URLs of a line.
pub(super) fn without_passwords(text: &str) -> String {
    let words = text.split_inclusive(|c: char| c.is_whitespace() || "'\"".contains(c));
    let shown = words.map(|word| {
        if word.contains("://") {
            without_password(word)
        } else {
            word.into()
        }
    });
    shown.collect()
}

fn path_hint(path: &Path) -> String {
    match similar_path(path) {
        Some(meant) => format!("did you mean {}?", meant.display()),
        None => "specify it with -f FILE; IMAGE is the folder with its files".to_owned(),
    }
}
