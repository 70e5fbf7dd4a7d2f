//! Plain quotes in a script on PowerShell's command line, which drops them.

mod interpretation;

pub(super) use interpretation::ScriptInterpretation;
use interpretation::literal_start;
use serde_json::Value;
use wincimg_scripts::script;
use wincimg_windows::quoting::powershell;

use super::line::SourceLine;
use super::{cmd, finding};
use crate::lint::correction::replaced;
use crate::lint::environment::shell_variables;
use crate::lint::prelude::*;

pub(super) const NESTED: &str = "powershell.exe drops these quotes from its own command line, and \
    runs the script without them; write \\\"";

const QUOTE_ENDS_SCRIPT: &str = "cmd ends the quoted script at this quote, and reads the operator \
    behind it itself; write single quotes in the script";

const IN_SCRIPT: &str = "PowerShell drops these quotes from its own command line, and runs the \
    script without them; write \\\"";

const IN_TEXT: &str = "PowerShell drops these quotes from its own command line, and the text in single \
    quotes loses them; write \\\"";

const IN_ARGUMENT: &str = "PowerShell drops these quotes from its own command line, and Windows \
    PowerShell drops them again from an argument of a program; write \\\\\\\"";

const NESTED_IN_CMD: &str = "PowerShell drops these quotes from its own command line, and reads the \
    operators between them itself; write the command of cmd in single quotes, with \\\" in it";

const NESTED_IN_POWERSHELL: &str = "PowerShell drops these quotes from its own command line, and \
    quotes in quotes end them; write the outer ones as single quotes, or leave out the inner shell";

pub(super) fn check(step: &LintStep<'_>) -> Vec<Finding> {
    let text = step.instruction.text();
    let line = SourceLine::new(text);
    let Some((reading, problems)) = ScriptInterpretation::misread(&line, step) else {
        return Vec::from_iter(check_json(step, &line));
    };
    if continues_outside(&line) || is_read_alike(&line) {
        return Vec::new();
    }
    if let Some(message) = nested_quotes(&line) {
        return vec![Finding::new(problems[0].line, message)];
    }
    let found = problems.iter().map(|problem| {
        if reading.is_in_argument(problem) {
            return Finding::new(problem.line, IN_ARGUMENT);
        }
        let arrives = |edits: &[Edit], wanted: &str| {
            let text = replaced(text, edits);
            let script = powershell::script(&text);
            script == wanted || normalize_white_space(&script) == normalize_white_space(wanted)
        };
        let edits = reading.correction(problem, arrives).or_else(|| {
            // Outer quotes keep the white space.
            let edits = reading.wrapped(text);
            let is_meant = powershell::script(&replaced(text, &edits)) == reading.meant;
            (is_meant && !reading.divides_word(problem)).then_some(edits)
        });
        // With quotes alone, a variable of cmd would be written as it is.
        let edits = edits
            .filter(|_| shell_variables(text).all(|name| !text.contains(&format!("%{name}%"))));
        let literal = literal_start(text, problem.parts[0].open.at);
        let message = literal.map_or(IN_SCRIPT, |_| IN_TEXT);
        finding(step, message, problem.line, edits)
    });
    found.collect()
}

/// Returns true for a nested PowerShell whose script is one command: without the quotes the outer one
/// expands the same variables, and passes on the same words.
fn is_read_alike(line: &SourceLine) -> bool {
    let Some(script) = nested_script(line).filter(|script| !script.contains('"')) else {
        return false;
    };
    let mut depth = 0_usize;
    let mut is_quoted = false;
    let mut before = ' ';
    let mut has_plain_words = script.char_indices().all(|(at, c)| {
        let is_plain = match c {
            '(' if depth > 0 || before == '$' => {
                depth += 1;
                true
            }
            ')' if depth > 0 => {
                depth -= 1;
                // What follows would be another word.
                depth > 0 || script[at + 1..].is_empty() || script[at + 1..].starts_with(' ')
            }
            _ if depth > 0 => true,
            '\'' => {
                is_quoted = !is_quoted;
                true
            }
            ' ' => !is_quoted,
            '$' => !is_quoted && script[at + 1..].starts_with('('),
            _ => c.is_ascii_alphanumeric() || "-_./\\:".contains(c),
        };
        before = c;
        is_plain
    });
    // PowerShell splits such an option.
    let is_split = |word: &str| word.starts_with('-') && word.contains(['.', ':']) || word == "--";
    has_plain_words &= !script.split(' ').any(is_split);
    has_plain_words && depth == 0 && !is_quoted
}

/// The script in quotes that a nested PowerShell gets, if nothing follows it.
fn nested_script(line: &SourceLine) -> Option<&str> {
    let (parts, _) = line.parts();
    let [part] = parts.as_slice() else {
        return None;
    };
    let text = line.text.trim_end();
    let program = text.split_whitespace().next().unwrap_or_default();
    let is_shell = matches!(program_name(program).as_str(), "powershell" | "pwsh");
    let is_last = part.close.at + 1 == text.len();
    (is_shell && is_last).then(|| &text[part.open.at + 1..part.close.at])
}

/// Returns true for a nested PowerShell whose script begins with a setting of the process: without the
/// quotes that one gets the setting, and the outer PowerShell runs the rest to the same effect.
fn continues_outside(line: &SourceLine) -> bool {
    let script = nested_script(line).unwrap_or_default();
    script.split_once(';').is_some_and(|(first, rest)| {
        let lower = first.to_ascii_lowercase();
        // A downloaded text is not subject to the policy.
        let is_policy = lower.trim_start().starts_with("set-executionpolicy");
        let is_setting = lower.contains("servicepointmanager]::securityprotocol")
            || is_policy && rest.to_ascii_lowercase().contains("iex ");
        is_setting && !first.contains(['(', '$', '{', '|', '\'', '@'])
    })
}

/// Advice for a shell whose command has quotes in quotes.
fn nested_quotes(line: &SourceLine) -> Option<&'static str> {
    let program = line.text.split_whitespace().next()?;
    let message = match program_name(program).as_str() {
        "cmd" => NESTED_IN_CMD,
        "powershell" | "pwsh" => NESTED_IN_POWERSHELL,
        _ => return None,
    };
    line.is_nested().then_some(message)
}

/// Reports a script without quotes that begins with an assignment: the outer PowerShell expands its
/// variable.
pub(super) fn check_assignment(step: &LintStep<'_>) -> Option<Finding> {
    let scripts = step.powershell_scripts().filter(|it| !it.is_nested);
    let statements = scripts.flat_map(|it| &it.statements);
    let mut shells = statements.filter(|it| matches!(it.command(), "powershell" | "pwsh"));
    shells.find_map(|statement| {
        let words = statement.text.split_whitespace();
        let is_before = |word: &&str| !script::is_command_option(word);
        let mut words = words.skip_while(is_before).skip(1);
        let first = words.next()?.strip_prefix('$')?;
        let end = first.find(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
        let (name, rest) = first.split_at(end.unwrap_or(first.len()));
        let assigns = rest.starts_with('=') || rest.is_empty() && words.next() == Some("=");
        let message = format!(
            "the outer PowerShell expands ${name} here, and the inner one gets its value in place of the \
             variable: leave out the inner shell"
        );
        let found = step.finding_at(statement.at, message).of(super::NESTED_SHELL);
        (assigns && !name.is_empty()).then_some(found)
    })
}

/// Checks scripts that cmd passes to PowerShell.
pub(super) fn check_nested(step: &LintStep<'_>) -> Vec<Finding> {
    let text = step.instruction.text();
    let mut found = Vec::new();
    for (index, script) in cmd::scripts(text) {
        if let Some(at) = bared_operator(text, script.origin(0)) {
            let position = step.instruction.start() + at;
            found.push(step.finding_at(position, QUOTE_ENDS_SCRIPT));
            break;
        }
        let Some((reading, problems)) = ScriptInterpretation::misread(&script, step) else {
            found.extend(check_json(step, &script));
            continue;
        };
        for problem in problems {
            if reading.is_in_argument(&problem) {
                found.push(Finding::new(problem.line, IN_ARGUMENT));
                continue;
            }
            let arrives = |edits: &[Edit], wanted: &str| {
                cmd::scripts(&replaced(text, edits))
                    .find(|(other, _)| *other == index)
                    .is_some_and(|(_, line)| {
                        normalize_white_space(&powershell::script(&line.text))
                            == normalize_white_space(wanted)
                    })
            };
            let edits = reading.correction(&problem, arrives);
            found.push(finding(step, NESTED, problem.line, edits));
        }
    }
    let found = found.into_iter();
    found.map(|it| it.of(super::NESTED_SHELL)).collect()
}

/// Position of a quote in a quoted script behind which an operator is that of cmd: `"… "a|b" …"`.
fn bared_operator(text: &str, start: usize) -> Option<usize> {
    let script = text.get(start..).filter(|it| it.starts_with('"'))?;
    if script.contains("\\\"") || script.contains("\"\"") {
        return None;
    }
    let parts: Vec<&str> = script.split('"').collect();
    // The last quote closes the script.
    let is_closed = parts.len() % 2 == 1 && parts.last().is_some_and(|it| it.trim().is_empty());
    let is_inner = |three: &[&str]| {
        let (before, inside, after) = (three[0], three[1], three[2]);
        before.ends_with([' ', '(', '=', ','])
            && after.starts_with([' ', ')', ',', ';', '}'])
            && inside.starts_with(|c: char| c.is_alphanumeric())
            && inside.ends_with(|c: char| c.is_alphanumeric())
            && inside.contains(['|', '&', '<', '>'])
            && !inside.contains('^')
    };
    let mut threes = parts.windows(3).enumerate().skip(1).step_by(2);
    let (index, _) = threes.find(|(_, it)| is_inner(it)).filter(|_| is_closed)?;
    let before: usize = parts[..=index].iter().map(|part| part.len() + 1).sum();
    Some(start + before - 1)
}

/// Removes the white space that a command line does not keep.
fn normalize_white_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const IN_JSON: &str = "PowerShell drops the quotes of this JSON from its own command line; write \\\", \
    and \\\\\\\" in an argument of a program, from which Windows PowerShell drops them again";

/// Reports JSON in single quotes that loses its own.
fn check_json(step: &LintStep<'_>, line: &SourceLine) -> Option<Finding> {
    let mut from = 0;
    for text in line.text.split('\'') {
        let at = from;
        from += text.len() + 1;
        // The text before a quote, and that of a script in double quotes, which are other ones.
        if at == 0 || !loses_quotes(text) {
            continue;
        }
        let position = step.instruction.start() + line.origin(at);
        return Some(step.finding_at(position, IN_JSON));
    }
    None
}

/// Returns true for a JSON object or list with texts.
fn loses_quotes(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || !text.contains('"') {
        return false;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => !members.is_empty(),
        Ok(Value::Array(items)) => !items.is_empty(),
        _ => false,
    }
}
