//! Assertions on an error, a note or a warning: its code, and the values that it must name,
//! independent of the wording.

use std::process::Output;

use predicates::Predicate;
use predicates::function::function;
use serde_json::Value;

use crate::site::stderr;

/// An error, read from the JSON object on stdout.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A row of docs/errors.md.
    pub(crate) code: String,
    /// The message with its causes.
    pub(crate) message: String,
    /// The hint.
    pub(crate) hint: String,
    /// The file with the error.
    pub(crate) file: Option<String>,
    /// Its line.
    pub(crate) line: Option<u64>,
    /// The output besides the object.
    pub(crate) stderr: String,
}

impl Failure {
    /// Reads the error of a command with `--format json`; stdout must contain nothing else.
    #[track_caller]
    pub(crate) fn of(output: &Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            let stdout = String::from_utf8_lossy(&output.stdout);
            panic!("{error}: {stdout}\n{stderr}")
        });
        let error = &answer["error"];
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let exit = match error["kind"].as_str() {
            Some("no") => 1,
            Some("usage") => 2,
            Some("failed") => 3,
            Some("windows") => 4,
            _ => panic!("not an error: {answer:#}\n{stderr}"),
        };
        assert_eq!(output.status.code(), Some(exit), "{answer:#}\n{stderr}");
        let hint = text("hint");
        // The text on stderr must match.
        let is_told = stderr.contains("error: ") && (hint.is_empty() || stderr.contains("hint: "));
        assert!(is_told, "{answer:#}\n{stderr}");
        Self {
            code: text("code"),
            message: text("message"),
            hint,
            file: error["file"].as_str().map(str::to_owned),
            line: error["line"].as_u64(),
            stderr,
        }
    }

    /// Reads the error of a Dockerfile: lines that only Windows can run have their own exit code.
    #[track_caller]
    pub(crate) fn of_dockerfile(output: &Output) -> Self {
        let failure = Self::of(output);
        let is_for_windows = matches!(
            failure.code.as_str(),
            "dockerfile/needs-windows" | "dockerfile/not-understood"
        );
        let exit = if is_for_windows { 4 } else { 2 };
        assert_eq!(output.status.code(), Some(exit), "{failure:#?}");
        failure
    }

    /// Asserts the code, and that message or hint name all of these values.
    #[track_caller]
    pub(crate) fn is(self, code: &str, values: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self.names(values)
    }

    /// Asserts that message or hint name all of these values.
    #[track_caller]
    pub(crate) fn names(self, values: &[&str]) -> Self {
        for value in values {
            let is_named = self.message.contains(value) || self.hint.contains(value);
            assert!(is_named, "{value}: {self:#?}");
        }
        self
    }

    /// Asserts that the hint names all of these values.
    #[track_caller]
    pub(crate) fn advises(self, values: &[&str]) -> Self {
        for value in values {
            assert!(self.hint.contains(value), "{value}: {self:#?}");
        }
        self
    }

    /// Asserts that none of these values is named.
    #[track_caller]
    pub(crate) fn hides(self, secret: &str) -> Self {
        let is_told = self.message.contains(secret) || self.hint.contains(secret);
        assert!(!is_told && !self.stderr.contains(secret), "{self:#?}");
        self
    }

    /// Asserts that the message names these values in this order.
    #[track_caller]
    pub(crate) fn lists(self, values: &[&str]) -> Self {
        let mut rest = self.message.as_str();
        for value in values {
            match rest.split_once(value) {
                Some((_, after)) => rest = after,
                None => panic!("{value}: {self:#?}"),
            }
        }
        self
    }

    /// Asserts the line of the file.
    #[track_caller]
    pub(crate) fn on_line(self, line: u64) -> Self {
        assert_eq!(self.line, Some(line), "{self:#?}");
        self
    }
}

/// A command, and what is expected of it.
pub(crate) trait Fails {
    /// Runs it with more arguments.
    fn run_with(&mut self, more: &[&str]) -> Output;

    /// Runs it with `--format json` and asserts the exit code, the error code, and that all of
    /// these values are named.
    #[track_caller]
    fn fails(&mut self, exit: i32, code: &str, values: &[&str]) -> Failure {
        let output = self.run_with(&["--format", "json"]);
        let failure = Failure::of(&output);
        assert_eq!(output.status.code(), Some(exit), "{failure:#?}");
        failure.is(code, values)
    }

    /// Runs it, asserts the exit code, and returns stderr.
    #[track_caller]
    fn tells(&mut self, exit: i32) -> String {
        let output = self.run_with(&[]);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(exit), "{printed}");
        printed
    }

    /// Runs it, and returns stdout.
    fn prints(&mut self) -> String {
        String::from_utf8(self.run_with(&[]).stdout).unwrap()
    }
}

impl Fails for assert_cmd::Command {
    fn run_with(&mut self, more: &[&str]) -> Output {
        self.args(more).output().unwrap()
    }
}

impl Fails for std::process::Command {
    fn run_with(&mut self, more: &[&str]) -> Output {
        self.args(more).output().unwrap()
    }
}

/// Matches if exactly one line names all of these values.
pub(crate) fn line(values: &[&str]) -> impl Predicate<str> + use<> {
    one_line("", values)
}

/// Matches if exactly one note names all of these values.
pub(crate) fn note(values: &[&str]) -> impl Predicate<str> + use<> {
    one_line("note: ", values)
}

/// Matches if exactly one warning names all of these values.
pub(crate) fn warning(values: &[&str]) -> impl Predicate<str> + use<> {
    one_line("warning: ", values)
}

/// Asserts that a text matches.
#[track_caller]
pub(crate) fn says(printed: &str, expected: &impl Predicate<str>) {
    assert!(expected.eval(printed), "{printed}");
}

fn one_line(label: &'static str, values: &[&str]) -> impl Predicate<str> + use<> {
    let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
    function(move |printed: &str| {
        let lines = printed.lines().filter(|line| line.starts_with(label));
        let named = |line: &&str| values.iter().all(|value| line.contains(value));
        lines.filter(named).count() == 1
    })
}
