//! What tests ask of an error, a note or a warning: its code, and the values that it has to name.
//! The words around them may change.

use std::io;
use std::process::Output;

use predicates::Predicate;
use predicates::function::function;
use serde_json::Value;

/// How a command failed, by the error object on its stdout.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A row of docs/errors.md.
    pub(crate) code: String,
    /// What is wrong, with its causes.
    pub(crate) message: String,
    /// What to type next.
    pub(crate) hint: String,
    /// The line of the file where it stands.
    pub(crate) line: Option<u64>,
    /// All that was printed beside the object.
    pub(crate) stderr: String,
}

impl Failure {
    /// Of a command that was given `--format json`; nothing but the error is on stdout.
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
            _ => panic!("not an error: {answer:#}\n{stderr}"),
        };
        assert_eq!(output.status.code(), Some(exit), "{answer:#}\n{stderr}");
        let hint = text("hint");
        // People are told the same.
        let is_told = stderr.contains("error: ") && (hint.is_empty() || stderr.contains("hint: "));
        assert!(is_told, "{answer:#}\n{stderr}");
        Self {
            code: text("code"),
            message: text("message"),
            hint,
            line: error["line"].as_u64(),
            stderr,
        }
    }

    /// That it is the error of that code, and names all of these values in its message or hint.
    #[track_caller]
    pub(crate) fn is(self, code: &str, values: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self.names(values)
    }

    /// That its message or hint names all of these values.
    #[track_caller]
    pub(crate) fn names(self, values: &[&str]) -> Self {
        for value in values {
            let is_named = self.message.contains(value) || self.hint.contains(value);
            assert!(is_named, "{value}: {self:#?}");
        }
        self
    }

    /// That its hint names all of these values.
    #[track_caller]
    pub(crate) fn advises(self, values: &[&str]) -> Self {
        for value in values {
            assert!(self.hint.contains(value), "{value}: {self:#?}");
        }
        self
    }

    /// That nothing of this is told.
    #[track_caller]
    pub(crate) fn hides(self, secret: &str) -> Self {
        let is_told = self.message.contains(secret) || self.hint.contains(secret);
        assert!(!is_told && !self.stderr.contains(secret), "{self:#?}");
        self
    }

    /// That its message names these values in this order.
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

    /// That it stands on this line of a file.
    #[track_caller]
    pub(crate) fn on_line(self, line: u64) -> Self {
        assert_eq!(self.line, Some(line), "{self:#?}");
        self
    }
}

/// A command that has to fail.
pub(crate) trait Fails {
    /// Runs it with `--format json`: what it is refused with has this exit code and this code, and
    /// names all of these values.
    #[track_caller]
    fn fails(&mut self, exit: i32, code: &str, values: &[&str]) -> Failure;
}

impl Fails for assert_cmd::Command {
    #[track_caller]
    fn fails(&mut self, exit: i32, code: &str, values: &[&str]) -> Failure {
        failed(self.args(JSON).output(), exit, code, values)
    }
}

impl Fails for std::process::Command {
    #[track_caller]
    fn fails(&mut self, exit: i32, code: &str, values: &[&str]) -> Failure {
        failed(self.args(JSON).output(), exit, code, values)
    }
}

const JSON: [&str; 2] = ["--format", "json"];

#[track_caller]
fn failed(output: io::Result<Output>, exit: i32, code: &str, values: &[&str]) -> Failure {
    let output = output.unwrap();
    let failure = Failure::of(&output);
    assert_eq!(output.status.code(), Some(exit), "{failure:#?}");
    failure.is(code, values)
}

/// That exactly one line names all of these values.
pub(crate) fn line(values: &[&str]) -> impl Predicate<str> + use<> {
    one_line("", values)
}

/// That exactly one note names all of these values.
pub(crate) fn note(values: &[&str]) -> impl Predicate<str> + use<> {
    one_line("note: ", values)
}

/// That exactly one warning names all of these values.
pub(crate) fn warning(values: &[&str]) -> impl Predicate<str> + use<> {
    one_line("warning: ", values)
}

fn one_line(label: &'static str, values: &[&str]) -> impl Predicate<str> + use<> {
    let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
    function(move |said: &str| {
        let lines = said.lines().filter(|line| line.starts_with(label));
        let named = |line: &&str| values.iter().all(|value| line.contains(value));
        lines.filter(named).count() == 1
    })
}
