//! Syntax and parameters of PowerShell 7 in Windows PowerShell, which is 5.1.

use super::stage::{LintStep, Stage};
use super::statements::outside_quotes;
use super::words::{Grammar, LintCommand};
use super::{ContainsAny, Finding};

/// Cmdlets, and parameters that Windows PowerShell refuses.
const PARAMETERS: [(&[&str], &[&str]); 4] = [
    (
        &["invoke-webrequest", "iwr", "invoke-restmethod", "irm"],
        &[
            "-SkipCertificateCheck", "-SkipHttpErrorCheck", "-MaximumRetryCount",
            "-RetryIntervalSec",
        ],
    ),
    (
        &["get-content", "gc", "set-content", "add-content"],
        &["-AsByteStream"],
    ),
    (&["convertfrom-json"], &["-AsHashtable"]),
    (&["foreach-object"], &["-Parallel"]),
];

/// Reports what Windows PowerShell does not have.
pub(super) fn check(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.lower_full_text();
    // A test of the version decides, or `powershell` may be another one.
    let is_open = text.contains_any(&["psversion", "psedition", "iscoreclr"])
        || stage.image.contains("powershell");
    if is_open {
        return None;
    }
    let is_own = |grammar: Grammar| grammar == Grammar::PowerShell;
    let mut commands = step.commands().iter().filter(|it| is_own(it.grammar));
    let of_syntax = || {
        let mut scripts = step.scripts().iter().filter(|it| is_own(it.grammar));
        scripts.find_map(|script| {
            let (at, what) = operator(step.instruction.part(script.range.clone()))?;
            Some((script.range.start + at, what))
        })
    };
    let (at, what) = commands.find_map(parameter).or_else(of_syntax)?;
    let message = format!(
        "{what} is of PowerShell 7, and Windows PowerShell 5.1 fails: install PowerShell 7 and write \
         pwsh, or do without it"
    );
    Some(step.finding_at(at, message))
}

/// A parameter or value that a cmdlet of Windows PowerShell does not have, and its position.
fn parameter(command: &LintCommand) -> Option<(usize, &'static str)> {
    let writes = matches!(
        command.program(),
        "set-content" | "add-content" | "out-file" | "get-content" | "export-csv"
    );
    let mut pairs = command.words.windows(2);
    let encoding = pairs.find(|pair| {
        let option = pair[0].value.to_ascii_lowercase();
        option.len() > 2 && "-encoding".starts_with(&option) && pair[1].eq_ignore_case("utf8NoBOM")
    });
    if let Some(pair) = encoding.filter(|_| writes) {
        return Some((pair[1].range.start, "utf8NoBOM"));
    }
    let mut known = PARAMETERS.iter();
    let (_, parameters) = known.find(|(names, _)| names.contains(&command.program()))?;
    command.arguments().iter().find_map(|word| {
        // `-Name:$true`
        let option = word.value.split(':').next().unwrap_or_default();
        let mut names = parameters.iter();
        let name = names.find(|name| option.eq_ignore_ascii_case(name))?;
        Some((word.range.start, *name))
    })
}

/// First operator of PowerShell 7 outside of quotes, and its position.
fn operator(text: &str) -> Option<(usize, &'static str)> {
    // Each of them has a question mark, which few scripts have.
    if !text.contains('?') {
        return None;
    }
    // Where the expressions around this place begin.
    let mut starts = vec![0];
    for (at, c) in outside_quotes(text) {
        match c {
            '#' if text[..at].ends_with(char::is_whitespace) => return None,
            '(' | '{' => starts.push(at + 1),
            ')' | '}' if starts.len() > 1 => {
                starts.pop();
            }
            ';' | '|' | '\n' => {
                starts.pop();
                starts.push(at + 1);
            }
            // Of an assignment, not of an argument.
            '=' => {
                let start = starts.last().copied().unwrap_or_default();
                if text[start..at].trim_start().starts_with(['$', '[']) {
                    starts.pop();
                    starts.push(at + 1);
                }
            }
            '?' => {
                let start = starts.last().copied().unwrap_or_default();
                if let Some(what) = at_question_mark(&text[start..at], &text[at + 1..]) {
                    return Some((at, what));
                }
            }
            _ => {}
        }
    }
    None
}

/// Operator whose question mark is between two texts.
fn at_question_mark(before: &str, after: &str) -> Option<&'static str> {
    let value = before.trim_start();
    let is_value = value.starts_with(['$', '(', '[', '\'', '"', '!']) || value.starts_with("-not ");
    let is_apart = before.ends_with(char::is_whitespace);
    if is_apart && value.starts_with('$') && after.starts_with("?=") {
        return Some("??=");
    }
    if is_apart && is_value && after.starts_with("? ") {
        return Some("??");
    }
    // In `$a?.b` the question mark is a part of the name.
    let is_braced = value.strip_prefix("${").is_some_and(|name| {
        let inside = name.strip_suffix('}');
        inside.is_some_and(|name| {
            name.chars()
                .all(|c| c.is_alphanumeric() || "_:".contains(c))
        })
    });
    if is_braced && after.starts_with(['.', '[']) {
        return Some("?.");
    }
    let rest = after.split([';', '\n', '|']).next().unwrap_or_default();
    let is_ternary = is_apart
        && is_value
        && after.starts_with(char::is_whitespace)
        && !after.trim_start().starts_with('{')
        && rest.contains(" : ");
    is_ternary.then_some("the operator ? :")
}
