//! `\"` under cmd, which does not know it.

use super::wrap;
use crate::lint::reader::Edit;
use crate::lint::stage::Step;
use crate::lint::{Findings, Rule, Severity};

/// A character that cmd passes on to the program.
#[derive(Debug, Clone, Copy)]
struct Passed {
    at: usize,
    character: char,
    /// Whether cmd would take an operator here for one.
    is_active: bool,
}

/// What is left of a text when cmd has dropped its quotes around the whole and its carets.
fn passed_by_cmd(text: &str) -> Vec<Passed> {
    let last_quote = text.rfind('"').filter(|_| text.starts_with('"'));
    let mut passed = Vec::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for (at, character) in text.char_indices() {
        if last_quote.is_some_and(|last| at == 0 || at == last) {
            continue;
        }
        if character == '^' && !quoted && !escaped {
            escaped = true;
            continue;
        }
        if character == '"' && !escaped {
            quoted = !quoted;
        }
        passed.push(Passed {
            at,
            character,
            is_active: !quoted && !escaped,
        });
        escaped = false;
    }
    passed
}

pub(super) fn check(step: &Step<'_>, findings: &mut Findings<'_>) {
    let text = step.instruction.text();
    let Some((problem, edits)) = problem_under_cmd(text) else {
        return;
    };
    // Where quotes of both kinds are mixed, one change can turn the others round.
    let is_certain = problem_under_cmd(&edited(text, &edits)).is_none();
    let start = step.instruction.start();
    let placed: Vec<Edit> = edits.into_iter().map(|edit| edit.moved(start)).collect();
    let message = match problem {
        UnderCmd::StrayQuote => {
            "cmd does not know \\\" and the program splits at the spaces between; write a plain \""
        }
        UnderCmd::ExposedOperator => {
            "to cmd the quote of \\\" ends the quoted part, and the operator after it divides the \
             command; put ^ before it"
        }
    };
    let rule = Rule::BackslashQuotesUnderCmd;
    if is_certain {
        findings.edit(rule, Severity::Error, step.instruction, message, &placed);
    } else {
        let line = step.instruction.line_of(placed[0].range.start);
        findings.only(rule, Severity::Error, line, message);
    }
}

/// What `\"` does to a text under cmd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnderCmd {
    /// It is a quote in an argument, where the author wanted one around it.
    StrayQuote,
    /// It is right for the program, but cmd sees an operator outside quotes.
    ExposedOperator,
}

/// The problem with a text under cmd and what to change, at least one thing.
fn problem_under_cmd(text: &str) -> Option<(UnderCmd, Vec<Edit>)> {
    let mut grouped = false;
    let mut backslashes = 0;
    let mut last_backslash = 0;
    let mut stray = Vec::new();
    let mut exposed = Vec::new();
    let mut command = String::new();
    for Passed {
        at,
        character,
        is_active,
    } in passed_by_cmd(text)
    {
        command.push(character);
        match character {
            '\\' => {
                backslashes += 1;
                last_backslash = at;
                continue;
            }
            '"' if backslashes % 2 == 0 => grouped = !grouped,
            '"' if !grouped && !runs_powershell(&command) => {
                stray.push(Edit::new(last_backslash..last_backslash + 1, ""));
            }
            '&' | '|' | '<' | '>' if is_active && grouped => {
                exposed.push(Edit::new(at..at + 1, format!("^{character}")));
            }
            '&' | '|' if is_active => {
                grouped = false;
                command.clear();
            }
            _ => {}
        }
        backslashes = 0;
    }
    if !stray.is_empty() {
        if text.starts_with("\\\"") {
            // A text that begins with a quote loses it and its last one; so it gets one more of each.
            wrap(&mut stray, text, 0);
        }
        return Some((UnderCmd::StrayQuote, stray));
    }
    let is_ours = !exposed.is_empty() && text.contains("\\\"");
    is_ours.then_some((UnderCmd::ExposedOperator, exposed))
}

/// Whether a command hands PowerShell a script in words of its own: there `\"` is how a quote gets
/// into the script. A script file's arguments are ordinary ones.
fn runs_powershell(command: &str) -> bool {
    let mut words = command.split_whitespace().map(str::to_ascii_lowercase);
    let is_powershell = words.any(|word| {
        let file = word
            .trim_matches('"')
            .rsplit(['\\', '/'])
            .next()
            .unwrap_or_default()
            .to_owned();
        matches!(
            file.strip_suffix(".exe").unwrap_or(&file),
            "powershell" | "pwsh"
        )
    });
    is_powershell && !words.any(|word| matches!(word.as_str(), "-file" | "-f"))
}

/// A text after changes that are in the order of their places.
fn edited(text: &str, edits: &[Edit]) -> String {
    let mut edited = text.to_owned();
    for edit in edits.iter().rev() {
        edited.replace_range(edit.range.clone(), &edit.text);
    }
    edited
}
