//! Failure of a command: an exit code, the chain of causes, and a hint with the next command.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use wincimg_common::diagnose::{Blame, BoxError, Diagnosis, Excerpt, is_layer};
use wincimg_common::json::write_pretty;
use wincimg_common::untrusted::HIDDEN;
use wincimg_dockerfile::lint::Severity;
use wincimg_dockerfile::stages::{FailedLine, StageError};
use wincimg_engine::docker::StepOutput;
use wincimg_engine::hybrid::FailedStep;

use super::output::{ReviewFormat, write_annotations};
use super::{argument_passwords, program_name};
use crate::cli::prelude::*;
use crate::report::Annotation;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Failure of a command, with its exit code and hint.
#[derive(Debug)]
pub(super) struct Failure {
    error: anyhow::Error,
    diagnosis: Box<Diagnosis>,
}

/// The result of a command, or of a part of one.
pub(super) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Exit code of a failed operation.
pub(super) const FAILED: u8 = 3;

/// Exit code of what requires Windows.
pub(super) const NEEDS_WINDOWS: u8 = 4;

/// The exit code, and its name in JSON.
fn exit(blame: Blame) -> (u8, &'static str) {
    match blame {
        Blame::Answer => (1, "no"),
        Blame::Request => (2, "usage"),
        Blame::Circumstances => (FAILED, "failed"),
        Blame::Windows => (NEEDS_WINDOWS, "windows"),
    }
}

impl Failure {
    /// A failure caused by the user's input.
    pub(super) fn usage(error: impl Into<AnyError>) -> Self {
        Self::new(Blame::Request, "usage", error.into())
    }

    /// A failure whose answer is no, for the reason in the error.
    pub(super) fn no(error: impl Into<AnyError>) -> Self {
        Self::new(Blame::Answer, "no", error.into())
    }

    /// A failed operation, detected in the command line itself.
    pub(super) fn operation(error: impl Into<AnyError>) -> Self {
        Self::new(Blame::Circumstances, "failed", error.into())
    }

    fn new(blame: Blame, code: &'static str, error: AnyError) -> Self {
        let diagnosis = Diagnosis {
            code,
            blame,
            ..Diagnosis::default()
        };
        Self {
            error: anyhow::Error::from_boxed(error),
            diagnosis: Box::new(diagnosis),
        }
    }

    /// Adds a hint: the next command or change.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        self.hint_if(Some(hint))
    }

    pub(super) fn hint_if(mut self, hint: Option<impl Into<String>>) -> Self {
        if let Some(hint) = hint {
            self.diagnosis.hint = Some(hint.into());
        }
        self
    }

    /// Adds an excerpt of the text at fault.
    pub(super) fn excerpt(mut self, excerpt: Excerpt) -> Self {
        self.diagnosis.excerpt = Some(excerpt);
        self
    }

    /// Adds the operation that failed.
    pub(super) fn context(mut self, what: impl Display + Send + Sync + 'static) -> Self {
        self.error = self.error.context(what);
        self
    }

    /// Adds the name of the file at fault, for errors that only have a position in it.
    pub(super) fn at(mut self, file: &str) -> Self {
        self.error = anyhow::Error::msg(format!("{file}: {:#}", self.error));
        let excerpt = self.diagnosis.excerpt.take();
        self.diagnosis.excerpt = excerpt.map(|excerpt| excerpt.in_file(file));
        self
    }

    pub(super) fn cause<E: std::error::Error + Send + Sync + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref::<AnyError>()?.downcast_ref()
    }

    /// Returns true if a host could not be reached.
    pub(super) fn is_unreachable(&self) -> bool {
        self.diagnosis.code == "network/unreachable"
    }

    pub(super) fn is_time_limit(&self) -> bool {
        self.diagnosis.code == "network/time-limit"
    }

    /// Returns true if only a machine with Windows can carry out the command.
    pub(super) fn needs_windows(&self) -> bool {
        self.diagnosis.blame == Blame::Windows
    }

    /// The error and its causes on one line, for a run that continues.
    pub(super) fn in_one_line(&self) -> String {
        format!("{:#}", self.error)
    }

    pub(super) fn code(&self) -> u8 {
        let (code, _) = exit(self.diagnosis.blame);
        code
    }

    /// Prints the failure as JSON on stdout, in place of the result.
    pub(super) fn print_json(&self) {
        let document = json!({"error": self.document()});
        let _ = write_pretty(io::stdout(), &document);
    }

    pub(super) fn document(&self) -> Value {
        let (_, kind) = exit(self.diagnosis.blame);
        let message = self.in_one_line();
        let excerpt = self.diagnosis.excerpt.as_ref();
        let lines = self.failed_lines();
        json!({
            "code": self.diagnosis.code,
            "kind": kind,
            "message": argument_passwords::redact(&message),
            "file": excerpt.and_then(Excerpt::file),
            "line": excerpt.and_then(Excerpt::line),
            "command": lines.first().map(|line| &line["command"]),
            "lines": lines,
            "hint": self.diagnosis.hint.as_deref().map(argument_passwords::redact),
        })
    }

    /// Prints the failure at the lines of a Dockerfile on stdout, for the checks of a pull request.
    pub(super) fn print_annotations(&self, format: ReviewFormat) {
        if self.cause::<StageError>().is_none() && self.cause::<FailedStep>().is_none() {
            return;
        }
        let lines = self.lines_at_fault().map(|line| Annotation {
            file: line.file.trim_start_matches("./"),
            line: line.line,
            last_line: line.line,
            name: line.code,
            severity: Severity::Error,
            message: argument_passwords::redact(line.message),
            text: line.command,
        });
        let all: Vec<_> = lines.collect();
        let _ = write_annotations(format, &all, &mut io::stdout());
    }

    /// The lines of a Dockerfile that cannot be evaluated, or the step that failed on Windows.
    fn lines_at_fault(&self) -> impl Iterator<Item = FailedLine<'_>> {
        let error = self.cause::<StageError>();
        let step = self.cause::<FailedStep>().map(|step| FailedLine {
            file: &step.file,
            line: step.line,
            command: &step.command,
            code: self.diagnosis.code,
            message: &step.message,
            hint: self.diagnosis.hint.clone(),
        });
        let lines = error.into_iter().flat_map(StageError::failed_lines);
        lines.chain(step)
    }

    /// The same in JSON.
    fn failed_lines(&self) -> Vec<Value> {
        let redacted = |text: &str| argument_passwords::redact(text).into_owned();
        let lines = self.lines_at_fault().map(|line| {
            json!({
                "file": line.file,
                "line": line.line,
                "command": redacted(line.command),
                "code": line.code,
                "message": redacted(line.message),
                "hint": line.hint.as_deref().map(redacted),
            })
        });
        lines.collect()
    }

    /// Prints the failure on stderr.
    pub(super) fn report(self, colour: bool) -> ExitCode {
        let mut text = label("error:", "31", colour);
        let _ = write!(text, " {}", UntrustedText(&self.error));
        let causes = self.error.chain().skip(1);
        for cause in causes.filter(|cause| !is_layer(*cause)) {
            let printed = cause.to_string();
            // The lines of a program on Windows stay lines.
            let has_lines = cause.is::<StepOutput>();
            let lines = printed.split(|c: char| c == '\n' && has_lines);
            let lines: Vec<String> = lines.map(|line| UntrustedText(line).to_string()).collect();
            let _ = write!(text, "\n  caused by: {}", lines.join("\n"));
        }
        if let Some(excerpt) = &self.diagnosis.excerpt {
            let _ = write!(text, "\n{}", excerpt.render(colour));
        }
        for line in self.lines_at_fault().skip(1) {
            let place = format!("{}:{}: {}", line.file, line.line, line.message);
            let _ = write!(text, "\n  also {}", UntrustedText(place));
        }
        let mut text = argument_passwords::redact(&text).into_owned();
        // Above all else, the password has to be removed.
        let passwords = argument_passwords::hint().filter(|_| text.contains(HIDDEN));
        let code = self.code();
        if let Some(hint) = passwords.or(self.diagnosis.hint) {
            #[cfg(debug_assertions)]
            super::hint_check::check(&hint, super::typed_arguments());
            let hint = UntrustedText(program_name::with_program_name(&hint)).to_string();
            let hint = argument_passwords::redact(&hint);
            let _ = write!(text, "\n{} {hint}", label("hint:", "36", colour));
        }
        // Nothing can be printed if stderr is closed.
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(code)
    }

    /// Prints all failures but the last, which is returned.
    pub(super) fn report_all_but_last(mut failures: Vec<Self>, colour: bool) -> Option<Self> {
        let last = failures.pop();
        for failure in failures {
            failure.report(colour);
        }
        last
    }
}

/// Hint for a file that grew beyond the limit of the user's processes.
fn limit_hint(error: &anyhow::Error) -> Option<String> {
    let mut causes = error
        .chain()
        .filter_map(|it| it.downcast_ref::<io::Error>());
    // An input that is too large has no number of the system.
    let is_limit =
        causes.any(|it| it.kind() == io::ErrorKind::FileTooLarge && it.raw_os_error().is_some());
    is_limit.then(|| "raise the limit on the size of files: ulimit -f unlimited".to_owned())
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: BoxError = error.into();
        let mut diagnosis = Box::new(error.diagnosis());
        let error = anyhow::Error::from_boxed(error);
        if diagnosis.hint.is_none() {
            diagnosis.hint = limit_hint(&error);
        }
        Self { error, diagnosis }
    }
}

/// Adds the failed operation to an error.
pub(super) trait Context<T> {
    /// With a fixed text.
    fn context(self, what: &'static str) -> Result<T>;

    /// With a text that is only made if there is an error.
    fn with_context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: std::error::Error + Send + Sync + 'static> Context<T> for Result<T, E> {
    fn context(self, what: &'static str) -> Result<T> {
        self.map_err(|error| Failure::operation(error).context(what))
    }

    fn with_context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::operation(error).context(what()))
    }
}

/// A label of a message, in colour if supported.
pub(super) fn label(word: &str, colour_code: &str, colour: bool) -> String {
    paint(colour, &format!("1;{colour_code}"), word)
}
