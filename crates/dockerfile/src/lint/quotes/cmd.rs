//! cmd's parsing of a text: commands, nested PowerShell scripts, and `\"`, whose backslash cmd
//! ignores while the program reads a quote.

use wincimg_scripts::script;
use wincimg_windows::quoting::cmd::is_built_in;
use wincimg_windows::quoting::powershell;

use super::line::{SourceLine, Word};
use super::{finding, line_wrap};
use crate::lint::correction::replaced;
use crate::lint::prelude::*;

const SPLIT: &str = "cmd does not support \\\": the program gets several arguments with quotes in \
    them instead of one; write a plain \"";

const OPERATOR_OUTSIDE: &str = "in cmd the quote of \\\" ends the quoted part, and the operator \
    after it splits the command; put ^ before the operator";

const OUTER_QUOTES: &str = "cmd removes the first and the last quote of a line that begins with \
    one, and runs the part before the first space: put the whole line in quotes once more";

/// A character that cmd passes to the program.
#[derive(Debug, Clone, Copy)]
struct CmdChar {
    at: usize,
    character: char,
    /// True if an operator here is active.
    is_active: bool,
}

/// The text without the carets and outer quotes that cmd drops.
fn passed_chars(text: &str) -> Vec<CmdChar> {
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
        passed.push(CmdChar {
            at,
            character,
            is_active: !quoted && !escaped,
        });
        escaped = false;
    }
    passed
}

/// One command, and the position after its operator.
struct CmdCommand {
    line: SourceLine,
    next: usize,
}

fn commands(passed: &[CmdChar]) -> Vec<CmdCommand> {
    let mut commands = Vec::new();
    let mut line = SourceLine::default();
    let mut is_cut = false;
    for (index, one) in passed.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| passed[index].character);
        match one.character {
            '&' | '|' if one.is_active && !matches!(before, Some('>' | '<')) => {
                let next = index + 1;
                let line = std::mem::take(&mut line);
                commands.push(CmdCommand { line, next });
                is_cut = false;
            }
            '>' | '<' if one.is_active => {
                if !is_cut && line.text.ends_with([' ', '\t', '1', '2']) {
                    let end = line.text.trim_end_matches(['1', '2']).len();
                    line.truncate(end);
                }
                is_cut = true;
            }
            _ if is_cut => {}
            c => line.push(c, one.at),
        }
    }
    let next = passed.len();
    commands.push(CmdCommand { line, next });
    commands
}

/// Splits a text into command lines as cmd does.
pub(super) fn lines(text: &str) -> Vec<SourceLine> {
    let commands = commands(&passed_chars(text));
    commands.into_iter().map(|command| command.line).collect()
}

/// Returns true if a command starts a program that parses its arguments like the C runtime.
pub(super) fn is_program(line: &SourceLine) -> bool {
    let name = line.words().first().map(program).unwrap_or_default();
    !name.is_empty() && !is_built_in(&name) && !OWN_READERS.contains(&name.as_str())
}

/// Scripts that cmd passes to PowerShell, each with the index of its command.
pub(super) fn scripts(text: &str) -> impl Iterator<Item = (usize, SourceLine)> {
    let commands = commands(&passed_chars(text));
    commands
        .into_iter()
        .enumerate()
        .filter_map(|(index, command)| Some((index, script_of(&command.line)?)))
}

fn program(word: &Word) -> String {
    program_name(word.value.trim_start_matches('('))
}

/// Part of a command that is a PowerShell script.
pub(super) fn script_of(line: &SourceLine) -> Option<SourceLine> {
    let words = line.words();
    let at = words
        .iter()
        .position(|word| matches!(program(word).as_str(), "powershell" | "pwsh"))?;
    // After another program it is only an argument.
    let first = words.first()?;
    let is_run = at == 0 || is_built_in(&program(first)) || program(first) == "cmd";
    if !is_run {
        return None;
    }
    let mut rest = words[at + 1..].iter();
    while let Some(word) = rest.next() {
        let option = word.value.to_ascii_lowercase();
        let name = option.strip_prefix(['-', '/']);
        match name {
            _ if script::is_command_option(&option) => {
                let script = rest.next()?;
                return Some(line.from(script.range.start));
            }
            Some(
                "noprofile" | "nop" | "noninteractive" | "noni" | "nologo" | "nol" | "noexit"
                | "noe" | "sta" | "mta",
            ) => {}
            Some("file" | "f" | "encodedcommand" | "e" | "ec" | "enc" | "?" | "help") => {
                return None;
            }
            Some(name) if takes_value(name) => {
                rest.next();
            }
            None if program(&words[at]) == "powershell" => {
                return Some(line.from(word.range.start));
            }
            _ => return None,
        }
    }
    None
}

/// Returns true if an option of PowerShell takes a value; names may be abbreviated.
pub(in crate::lint) fn takes_value(name: &str) -> bool {
    [
        "executionpolicy", "ep", "version", "inputformat", "outputformat", "windowstyle",
        "configurationname", "psconsolefile", "workingdirectory", "wd",
    ]
    .iter()
    .any(|option| option.starts_with(name))
}

/// Programs with their own parsing of the command line.
const OWN_READERS: [&str; 12] = [
    "cmd", "powershell", "pwsh", "msiexec", "wmic", "bash", "sh", "wsl", "rundll32", "mshta",
    "cscript", "wscript",
];

pub(super) fn check(step: &LintStep<'_>) -> Option<Finding> {
    let text = step.instruction.text();
    if is_stripped(text) && !has_own_cmd(step) {
        let mut edits = Vec::new();
        line_wrap(&mut edits, text, 0);
        let found = finding(step, OUTER_QUOTES, step.line(), Some(edits));
        return Some(found.of("outer-quotes-under-cmd"));
    }
    let all = passed_chars(text);
    let found = commands(&all);
    let (message, at, edits) = found.iter().enumerate().find_map(|(index, command)| {
        let divided = find_divided(text, &all, command);
        let divided = divided.map(|(at, edits)| (OPERATOR_OUTSIDE, at, Some(edits)));
        divided.or_else(|| {
            let (at, edits) = find_split(text, index, command)?;
            Some((SPLIT, at, edits))
        })
    })?;
    let line = step.line_at(step.instruction.start() + at);
    let found = finding(step, message, line, edits);
    Some(found.of("backslash-quotes-under-cmd"))
}

/// Returns true for a program in quotes at the start of a line, whose path ends at a space without
/// them.
pub(in crate::lint) fn is_stripped(text: &str) -> bool {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (path, after) = quoted.unwrap_or_default();
    let is_program = matches!(path.get(1..3), Some(":\\" | ":/"))
        && !path.contains(['%', '\'', '&', '|'])
        && has_extension(path, &["exe", "cmd", "bat", "com"]);
    let first = path.split(' ').next().unwrap_or_default();
    // Without arguments, the quotes may be around a whole command.
    let is_alone = after.trim().is_empty() && !first.to_ascii_lowercase().ends_with(":\\program");
    is_program
        && path.contains(' ')
        && !is_alone
        && (after.is_empty() || after.starts_with([' ', '\t']))
}

/// Returns true if the file starts a cmd of its own that removes no quotes.
fn has_own_cmd(step: &LintStep<'_>) -> bool {
    step.file.instructions.iter().any(|it| {
        let text = || it.full_text().to_ascii_lowercase();
        it.keyword == "SHELL" && text().contains("cmd") && !text().contains("/s")
    })
}

/// Finds a phrase in `\"` that the program gets as several words.
fn find_split(
    text: &str,
    index: usize,
    command: &CmdCommand,
) -> Option<(usize, Option<Vec<Edit>>)> {
    let line = &command.line;
    let words = line.words();
    let name = program(words.first()?);
    let is_script = words
        .iter()
        .any(|word| matches!(program(word).as_str(), "powershell" | "pwsh"));
    let reads_itself = OWN_READERS.contains(&name.as_str()) || is_built_in(&name);
    if reads_itself && !(is_script && script_of(line).is_none()) {
        return None;
    }
    let raw = |word: &Word| &line.text[word.range.clone()];
    let mut backslashes = Vec::new();
    let mut open = None;
    for word in &words {
        let raw = raw(word);
        let begins = raw.starts_with("\\\"");
        let ends = raw.ends_with("\\\"") && raw.len() > 2;
        match open {
            None if begins && !raw[2..].contains('"') => open = Some(word.range.start),
            Some(from) if ends && raw.matches('"').count() == 1 => {
                backslashes.extend([from, word.range.end - 2]);
                open = None;
            }
            Some(_) if raw.contains('"') => return None,
            _ => {}
        }
    }
    let first = *backslashes.first()?;
    let mut meant = line.text.clone();
    for at in backslashes.iter().rev() {
        meant.remove(*at);
    }
    let meant: Vec<String> = values(&SourceLine::new(&meant));
    let mut edits: Vec<Edit> = backslashes
        .iter()
        .map(|at| Edit::new(line.origin(*at)..line.origin(*at) + 1, ""))
        .collect();
    if text.starts_with("\\\"") {
        // cmd drops the first and last quote of a text that begins with one, so both are doubled.
        line_wrap(&mut edits, text, 0);
    }
    let after = replaced(text, &edits);
    let arrives = commands(&passed_chars(&after))
        .get(index)
        .is_some_and(|command| values(&command.line) == meant);
    Some((line.origin(first), arrives.then_some(edits)))
}

pub(super) fn values(line: &SourceLine) -> Vec<String> {
    line.words().into_iter().map(|word| word.value).collect()
}

/// Finds an operator between escaped quotes of a quoted script, at which cmd splits it.
fn find_divided(text: &str, all: &[CmdChar], command: &CmdCommand) -> Option<(usize, Vec<Edit>)> {
    let script = script_of(&command.line)?;
    let (_, is_closed) = script.parts();
    if is_closed || script::read(&powershell::script(&script.text)).is_sound() {
        return None;
    }
    // The script as if no operator split it.
    let mut whole = SourceLine::default();
    let start = script.origin(0);
    for one in all.iter().filter(|one| one.at >= start) {
        whole.push(one.character, one.at);
    }
    let (parts, _) = whole.parts();
    let part = parts.first().filter(|part| part.has_literal)?;
    let meant = powershell::script(&whole.text[..=part.close.at]);
    if part.open.at != 0 || !script::read(&meant).is_sound() {
        return None;
    }
    let last = whole.origin(part.close.at);
    let edits: Vec<Edit> = all
        .iter()
        .filter(|one| (start..last).contains(&one.at))
        .filter(|one| one.is_active && "&|<>".contains(one.character))
        .map(|one| Edit::new(one.at..one.at + 1, format!("^{}", one.character)))
        .collect();
    let after = replaced(text, &edits);
    let arrives = scripts(&after).any(|(_, line)| {
        line.origin(0) == start && powershell::script(&line.text).starts_with(&meant)
    });
    let first = all.get(command.next)?.at;
    (arrives && !edits.is_empty()).then_some((first, edits))
}
