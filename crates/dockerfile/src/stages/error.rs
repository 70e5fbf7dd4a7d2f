//! Errors in a Dockerfile, with their lines.

use std::path::Path;

use serde::Serialize;
use wincimg_common::diagnose::{Blame, Diagnose, Excerpt};
use wincimg_common::files::{TextFile, missing_path_hint};
use wincimg_common::untrusted::without_passwords;
use wincimg_scripts::ScriptErrorKind;

/// Error of evaluating a Dockerfile.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "dockerfile/invalid", blame = Request)]
pub enum StageError {
    /// The Dockerfile cannot be read.
    #[error("cannot read the Dockerfile {}", file.path().display())]
    #[diagnose(code = "dockerfile/unreadable", blame = source.diagnosis().blame, hint = file.hint(source).or_else(|| Some(path_hint(file.path()))))]
    Unreadable {
        /// File.
        file: TextFile,
        /// Cause.
        source: std::io::Error,
    },
    /// The request does not match the Dockerfile.
    #[error("{0}")]
    #[diagnose(code = "dockerfile/request", hint = _1.clone())]
    Request(String, Option<String>),
    /// A line is invalid or unsupported.
    #[error("{file}:{line}: {}", error.problem)]
    #[diagnose(code = code_of(error.kind), blame = blame_of(error.kind, further), hint = error.hint(None), excerpt = Some(Excerpt::from_quoted(*line, text, &error.problem).in_file(file)))]
    Line {
        /// File.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Instruction.
        text: String,
        /// What is wrong with it.
        error: Box<StepError>,
        /// Errors of further lines.
        further: Vec<Self>,
    },
}

/// What is wrong with an instruction; [`StageError::Line`] adds its place.
#[derive(Debug, Default)]
pub struct StepError {
    /// Message.
    pub problem: String,
    /// Hint, without what Windows can do.
    pub hint: Option<String>,
    /// What Windows can do, as an alternative.
    pub on_windows: Option<OnWindows>,
    /// Workaround without changing the Dockerfile.
    pub workaround: Workaround,
    /// Kind of error of a `RUN` line.
    pub kind: Option<ScriptErrorKind>,
    /// Byte of the arguments with the error, if it is known.
    pub at: Option<usize>,
    /// True if the error does not depend on earlier lines.
    pub is_independent: bool,
}

impl StepError {
    pub(super) fn hinted(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            hint: Some(hint.into()),
            ..Self::default()
        }
    }

    /// The whole hint.
    pub(crate) fn hint(&self, command: Option<&str>) -> Option<String> {
        let on_windows = self.on_windows.map(|it| it.hint(command));
        match (&self.hint, on_windows) {
            (Some(hint), Some(on_windows)) => Some(format!("{hint}, or {on_windows}")),
            (hint, on_windows) => hint.clone().or(on_windows),
        }
    }

    /// An error that does not depend on earlier lines.
    pub(super) fn independent(problem: String) -> Self {
        Self {
            is_independent: true,
            ..problem.into()
        }
    }
}

impl From<String> for StepError {
    fn from(problem: String) -> Self {
        Self {
            problem,
            ..Self::default()
        }
    }
}

/// What a Docker daemon on Windows can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnWindows {
    /// It runs the line.
    Line,
    /// It builds the image.
    Image,
    /// It builds the image, with the triggers of its base.
    Trigger,
}

impl OnWindows {
    /// The hint, with a command that uses a daemon, or else with flags of `build`.
    fn hint(self, command: Option<&str>) -> String {
        let what = match self {
            Self::Line => {
                let how = command.unwrap_or("--docker-host tcp://HOST:2375");
                return format!("let Windows run the line: {how}");
            }
            Self::Image => "build with Docker on Windows",
            Self::Trigger => "build with Docker on Windows, which runs triggers of the base",
        };
        let command = command.map_or_else(String::new, |command| format!("{command} "));
        format!("{what}: {command}--engine docker")
    }
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
    pub hint: Option<String>,
}

/// Workaround for a line that cannot be evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Workaround {
    /// None.
    #[default]
    None,
    /// Evaluate again, if more of the base is known by then.
    Retry,
    /// Index the base of a stage, by its position in the file.
    IndexBase(usize),
}

impl StageError {
    pub(super) fn at(file: &Path, line: usize, text: &str, error: impl Into<StepError>) -> Self {
        Self::Line {
            file: file.display().to_string(),
            line,
            text: without_passwords(text),
            error: Box::new(error.into()),
            further: Vec::new(),
        }
    }

    /// The hint about an instruction with the command that builds with a Docker daemon on Windows,
    /// in place of the flags of `build`.
    pub fn hint_with_daemon(&self, command: &str) -> Option<String> {
        self.step()?.hint(Some(command))
    }

    /// What is wrong with an instruction, if it is the error of one.
    pub(super) fn step(&self) -> Option<&StepError> {
        match self {
            Self::Line { error, .. } => Some(error),
            _ => None,
        }
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
            Self::Line { further, .. } => further.as_slice(),
            _ => &[],
        };
        std::iter::once(self).chain(further)
    }

    /// Code of each line's error, with its file, line, instruction and hint.
    pub fn failed_lines(&self) -> impl Iterator<Item = FailedLine<'_>> {
        self.lines().filter_map(|error| match error {
            Self::Line {
                file,
                line,
                text,
                error,
                ..
            } => Some(FailedLine {
                file,
                line: *line,
                command: text,
                code: code_of(error.kind),
                message: &error.problem,
                hint: error.hint(None),
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
        self.step()
            .map_or(Workaround::None, |error| error.workaround)
    }
}

/// Code and first part of the message for a `RUN` line.
pub(super) fn heading(kind: ScriptErrorKind) -> (&'static str, &'static str) {
    match kind {
        ScriptErrorKind::NeedsWindows => ("dockerfile/needs-windows", "RUN requires Windows"),
        ScriptErrorKind::NeedsLinux => ("dockerfile/needs-linux", "RUN requires Linux"),
        ScriptErrorKind::NotUnderstood => ("dockerfile/not-understood", "RUN is unsupported"),
        ScriptErrorKind::NotKnown | ScriptErrorKind::Deferred => {
            ("dockerfile/not-known", "RUN depends on unknown contents")
        }
        ScriptErrorKind::Fails => ("dockerfile/fails", "RUN fails"),
        ScriptErrorKind::Refused => ("dockerfile/refused", "RUN is refused"),
    }
}

fn code_of(kind: Option<ScriptErrorKind>) -> &'static str {
    kind.map_or("dockerfile/invalid", |kind| heading(kind).0)
}

/// A machine with Windows, if it can run all of the lines.
fn blame_of(kind: Option<ScriptErrorKind>, further: &[StageError]) -> Blame {
    let is_for_windows =
        |kind: Option<ScriptErrorKind>| kind.is_some_and(ScriptErrorKind::is_for_windows);
    let mut kinds = further.iter().map(|error| error.step()?.kind);
    if is_for_windows(kind) && kinds.all(is_for_windows) {
        Blame::Windows
    } else {
        Blame::Request
    }
}

fn path_hint(path: &Path) -> String {
    missing_path_hint(path).unwrap_or_else(|| "name a Dockerfile, or its folder".to_owned())
}
