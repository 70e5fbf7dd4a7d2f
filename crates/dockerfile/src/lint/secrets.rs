//! Secrets that a file writes into its image.

use std::{iter, ptr};

use super::prelude::*;
use super::words::has_drive;

/// Ends of names, without separators, of secrets that people choose.
const PASSWORDS: [&str; 3] = ["password", "passwd", "pword"];

/// Ends of names, without separators, of secrets that programs generate.
const GENERATED: [&str; 5] = ["secret", "token", "apikey", "secretkey", "accesskey"];

/// Parts of names that are not secrets, as for `BuildKit`.
const OTHERS: [&str; 3] = ["public", "file", "version"];

/// Parts of values that are placeholders.
const PLACEHOLDERS: [&str; 18] = [
    "your", "change", "example", "placeholder", "dummy", "replace", "insert", "redacted", "xxx",
    "todo", "**", "enable", "disable", "default", "random", "required", "optional", "undefined",
];

/// What to do instead of a secret default.
const OMIT_DEFAULT: &str = "omit the default, and pass a short-lived value with --build-arg: the \
    image's history keeps it";

/// Consequence of a value that a build gives to an argument, and what to do instead.
pub(crate) const IN_HISTORY: &str = "its history keeps the value of --build-arg; do what needs it before \
    the build, and name the folder with --stage";

/// Reports values of `ENV`, and defaults of `ARG`, that are secrets by their names, and arguments of
/// such names whose values the history gets.
pub(super) fn check(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let of_file = "this file or the image";
    match it.kind {
        InstructionKind::Env(list) => {
            let mend = "set it when the container starts, as with docker run --env";
            let secrets = list
                .iter()
                .filter(|(name, value)| is_written_secret(it, name, value));
            secrets
                .map(|(name, _)| finding(it, name, of_file, mend))
                .collect()
        }
        InstructionKind::Arg(list) => {
            let of_argument = |(name, default): &(String, Option<String>)| match default {
                Some(value) => is_written_secret(it, name, value)
                    .then(|| finding(it, name, of_file, OMIT_DEFAULT)),
                None => (is_secret_name(name) && is_published(it, name))
                    .then(|| finding(it, name, "the image", IN_HISTORY)),
            };
            list.iter().filter_map(of_argument).collect()
        }
        _ => Vec::new(),
    }
}

fn finding(it: &EvaluatedStep<'_>, name: &str, place: &str, mend: &str) -> Finding {
    let (start, text) = (it.step.instruction.start(), it.step.instruction.text());
    let mut places = text.match_indices(name).map(|(at, _)| at);
    let is_whole = |at: &usize| {
        let rest = &text[at + name.len()..];
        (rest.is_empty() || rest.starts_with(['=', ' ', '\t']))
            && !text[..*at].ends_with(|c: char| !c.is_whitespace())
    };
    let at = start + places.find(is_whole).unwrap_or(0);
    let message = format!("everyone who has {place} can read {name}: {mend}");
    it.step.finding_at(at, message)
}

/// Returns true for the name of a secret.
fn is_secret_name(name: &str) -> bool {
    let name = plain(name);
    ends_in(&name, &PASSWORDS, &GENERATED) && !name.contains_any(&OTHERS)
}

/// Returns true for a secret by its name, whose value is not a placeholder, a path or the name of a
/// secret that is elsewhere.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    if !is_secret_name(name) {
        return false;
    }
    let name = plain(name);
    let value = value.to_ascii_lowercase();
    let is_path =
        has_drive(&value) || value.contains("://") || value.starts_with(['/', '.', '_', '@', '#']);
    if is_path || value.contains_any(&PLACEHOLDERS) || name.ends_with(&plain(&value)) {
        return false;
    }
    let is_password = ends_in(&name, &PASSWORDS, &[]);
    // Shorter ones are yes, none, admin and the like.
    value.len() > 5 && (is_password || !value.contains_any(&["secret", "token", "key"]))
}

/// A text in lower case, without separators.
fn plain(text: &str) -> String {
    text.to_ascii_lowercase().replace(['_', '-', '.'], "")
}

fn ends_in(name: &str, ends: &[&str], more: &[&str]) -> bool {
    ends.iter().chain(more).any(|end| name.ends_with(end))
}

/// Returns true if a written value is a secret. A shell, or a program that fills in the file, expands
/// some; what programs generate is long.
fn is_written_secret(it: &EvaluatedStep<'_>, name: &str, value: &str) -> bool {
    let is_open = value.contains(['$', '%', '{', '<', '[', '(', '\\', ' ']);
    let expanded = it.expand(value).filter(|_| !is_open);
    expanded.is_some_and(|expanded| {
        let value = &expanded.text;
        let digits = value.chars().filter(char::is_ascii_digit).count();
        let is_generated = value.len() > 15 && digits > 2;
        is_secret(name, value) && (is_generated || ends_in(&plain(name), &PASSWORDS, &[]))
    })
}

/// Returns true if the image has the value that a build gives to an argument: its stage is in the image,
/// and an instruction after it uses the argument.
fn is_published(it: &EvaluatedStep<'_>, name: &str) -> bool {
    let stages = &it.linted.stages;
    let mut released = iter::successors(stages.last(), |stage| match stage.base {
        StageBaseRef::Stage(base) => stages.get(base),
        _ => None,
    });
    let line = it.step.instruction.lines().0;
    let mut after = it.stage.steps.iter();
    released.any(|stage| ptr::eq(stage, it.stage))
        && after.any(|step| step.instruction.lines().0 > line && uses_argument(step, name))
}

fn uses_argument(step: &LintStep<'_>, name: &str) -> bool {
    let marks: &[&str] = match step.instruction.keyword.as_str() {
        // The shell expands a line, not the builder.
        "RUN" => &["%", "!", "env:"],
        "ENV" | "LABEL" => &["$", "${"],
        _ => return false,
    };
    let text = step.lower_text();
    let name = name.to_ascii_lowercase();
    text.match_indices(&name).any(|(at, _)| {
        let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        marks.iter().any(|mark| text[..at].ends_with(mark))
            && !text[at + name.len()..].starts_with(of_name)
    })
}
