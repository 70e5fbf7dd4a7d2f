//! Quotes that reach the program differently than intended.
//!
//! The daemon appends the raw text after the keyword to the shell. So the text is parsed twice: as
//! written, by the rules of the shell and then of `CommandLineToArgvW`; and as intended, where
//! everything that looks like a quote is one. A difference in what the program, or the script of
//! PowerShell, gets is reported, and a correction is parsed again before it is offered.

mod cmd;
mod health;
mod line;
mod powershell;

pub(super) use cmd::{is_stripped, takes_value};
use powershell::ScriptInterpretation;

use super::prelude::*;

/// The rule for a PowerShell below another shell.
const NESTED_SHELL: &str = "quotes-in-nested-shell";

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Vec<Finding> {
    let instruction = step.instruction;
    if instruction.keyword == "HEALTHCHECK" {
        return Vec::from_iter(health::check(step));
    }
    let is_command = matches!(instruction.keyword.as_str(), "RUN" | "CMD" | "ENTRYPOINT");
    if !is_command || instruction.has_here_document() || instruction.looks_like_json() {
        return Vec::new();
    }
    if step.shell == BaseShell::PowerShell
        && let Some(found) = powershell::check_assignment(step)
    {
        return vec![found];
    }
    let text = instruction.text();
    // Double braces are filled in by another program, and a host in angle brackets by a person.
    if !text.contains('"') || is_template(text) {
        return Vec::new();
    }
    match step.shell {
        BaseShell::PowerShell => powershell::check(step),
        BaseShell::Cmd => {
            let mut found = powershell::check_nested(step);
            if found.is_empty() {
                found.extend(cmd::check(step));
            }
            found
        }
        BaseShell::Unknown => check_under_any(step),
        BaseShell::Other => Vec::new(),
    }
}

fn is_template(text: &str) -> bool {
    // `https://<account>.example.net/x`
    let is_host_missing = text.contains("://<");
    is_host_missing
        || text
            .match_indices("{{")
            .map(|(at, _)| text[at + 2..].trim_start().trim_start_matches('.'))
            .any(TextExt::starts_with_letter)
}

/// In any shell, a nested PowerShell script loses its plain quotes; the correction depends on the
/// shell.
fn check_under_any(step: &LintStep<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, script) in cmd::scripts(step.instruction.text()) {
        let misread = ScriptInterpretation::misread(&script, step);
        let problems = misread.into_iter().flat_map(|(_, problems)| problems);
        let findings =
            problems.map(|it| Finding::new(it.line, powershell::NESTED).of(NESTED_SHELL));
        found.extend(findings);
    }
    found
}

/// A finding, with its correction if that passed the check; edits are of the arguments.
fn finding(step: &LintStep<'_>, message: &str, line: usize, edits: Option<Vec<Edit>>) -> Finding {
    let start = step.instruction.start();
    match edits {
        Some(edits) => {
            let placed: Vec<Edit> = edits.into_iter().map(|edit| edit.shift(start)).collect();
            step.edited(message, &placed)
        }
        None => Finding::new(line, message),
    }
}

/// Quotes the whole text, merged with edits at its ends, with additional backslashes before the
/// last quote.
fn line_wrap(edits: &mut Vec<Edit>, text: &str, backslashes: usize) {
    match edits.first_mut() {
        Some(edit) if edit.range.start == 0 => edit.text.insert(0, '"'),
        _ => {
            let first = text.chars().next().map_or(0, char::len_utf8);
            edits.insert(0, Edit::new(0..first, format!("\"{}", &text[..first])));
        }
    }
    let end = text.len();
    match edits.last_mut() {
        Some(edit) if edit.range.end == end => edit.text.push('"'),
        _ => edits.push(Edit::after(end, format!("{}\"", "\\".repeat(backslashes)))),
    }
}
