//! What cmd makes of the operators of a line.

use super::prelude::*;

/// True if commands with the grammar of cmd are read by it.
fn reads_cmd(step: &LintStep<'_>) -> bool {
    matches!(step.shell, BaseShell::Cmd | BaseShell::PowerShell)
}

/// Reports a text of `echo` whose last digit is the number of a stream.
pub(super) fn check_digit(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if !reads_cmd(step) {
        return None;
    }
    if let Some((at, digit)) = step.find_map(|it| stream_file(step, it)) {
        let message =
            format!("> writes into a file with the name {digit}: write >&{digit} for the stream");
        return Some(step.finding_at(at, message));
    }
    let is_echo = |it: &&LintCommand| {
        !it.files.is_empty() && it.program().trim_end_matches(['.', ':', '(']) == "echo"
    };
    step.of_cmd().filter(is_echo).find_map(|command| {
        let start = command.start();
        let (at, digit) = stream_digit(&step.instruction.full_text()[start..])?;
        let message = format!(
            "cmd takes the {digit} before > for the number of a stream, and the text loses it: write \
             (echo …)>FILE"
        );
        Some(step.finding_at(start + at, message))
    })
}

/// The file of a `2>1` or `1>2`, with its name.
fn stream_file<'a>(step: &LintStep<'_>, command: &'a LintCommand) -> Option<(usize, &'a str)> {
    let is_read = command.grammar == Grammar::Cmd || command.grammar.is_powershell();
    let mut files = command.files.iter().filter(|it| is_read && !it.is_quoted);
    let file = files.find(|file| {
        let before = &step.instruction.full_text()[..file.start()];
        let stream = match file.value.as_str() {
            "1" => before.strip_suffix("2>"),
            "2" => before.strip_suffix("1>"),
            _ => None,
        };
        stream.is_some_and(|it| it.ends_with(' '))
    })?;
    Some((file.start(), file.value.as_str()))
}

/// The characters of a text that neither quotes nor a caret keep from cmd. The caret and the closing
/// quote are among them, so that what they separate is not next to each other.
fn active(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.char_indices().filter(move |(_, c)| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        is_quoted ^= *c == '"';
        is_escaped = *c == '^' && !is_quoted;
        !is_quoted
    })
}

/// True for a tag of XML in a text of which only these characters are not kept from the shell.
pub(super) fn has_tag(active: impl Iterator<Item = char>) -> bool {
    let text: String = active.collect();
    let begins = |it: &str| it.starts_with(|c: char| c.is_ascii_alphabetic() || c == '?');
    text.contains_any(&["</", "/>", "?>"]) && text.split('<').skip(1).any(begins)
}

/// True for an `echo` or a script of PowerShell with a tag, which cmd takes for redirections.
pub(super) fn redirects_tag(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let program = command.program().trim_end_matches(['.', ':']);
    let is_cmd = command.grammar == Grammar::Cmd && step.shell == BaseShell::Cmd;
    let is_own = is_cmd && matches!(program, "echo" | "powershell" | "pwsh");
    if !is_own || !command.has_input {
        return false;
    }
    let text = &step.instruction.full_text()[command.start()..];
    let own = active(text).map(|(_, c)| c);
    let own: String = own.take_while(|c| !matches!(c, '&' | '|' | '\n')).collect();
    has_tag(own.chars()) || program == "echo" && shows_tag(&own)
}

/// True for `echo <br>`: its input would have no meaning.
fn shows_tag(text: &str) -> bool {
    let parts = text.split_once('<');
    let parts = parts.and_then(|(before, tag)| Some((before, tag.split_once('>')?.0)));
    parts.is_some_and(|(before, tag)| {
        let name = tag.split(' ').next().unwrap_or_default();
        before.split_whitespace().count() == 1
            && tag.starts_with_letter()
            && !tag.ends_with(' ')
            && name.has_only("")
            && !name.eq_ignore_ascii_case("nul")
    })
}

/// A digit of a command's text that cmd takes for a stream, and its position.
fn stream_digit(text: &str) -> Option<(usize, char)> {
    let mut characters = active(text).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '>' => {
                characters.next_if(|(_, next)| *next == '>');
                let is_copy = characters.next_if(|(_, next)| *next == '&').is_some();
                let mut before = text[..at].chars().rev();
                let (digit, delimiter) = (before.next()?, before.next()?);
                // `echo a 2>NUL` means the stream.
                let is_text = matches!(delimiter, '=' | ',' | ';')
                    || delimiter.is_whitespace() && !matches!(digit, '1' | '2');
                if digit.is_ascii_digit() && is_text && !is_copy {
                    return Some((at - 1, digit));
                }
            }
            '&' | '|' | '\n' => return None,
            _ => {}
        }
    }
    None
}

/// Reports commands after `exit` or `rem` that never run.
pub(super) fn check_exit(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if !reads_cmd(step) {
        return None;
    }
    let mut commands = step.commands().iter();
    let is_comment = |it: &&LintCommand| {
        it.grammar == Grammar::Cmd
            && it.program() == "rem"
            && it.words.len() > 1
            && it.next == NextOperator::And
    };
    if let Some(command) = commands.find(is_comment) {
        let message = "rem takes the rest of the line, with the && and what follows it, for a comment: \
            remove it";
        return Some(step.finding_at(command.start(), message));
    }
    let mut scripts = step
        .scripts()
        .iter()
        .filter(|it| it.grammar == Grammar::Cmd);
    scripts.find_map(|script| {
        let at = early_exit(step.part(&script.range))?;
        let message = "cmd ends at this exit, and what follows it never runs";
        Some(step.finding_at(script.range.start + at, message))
    })
}

/// Position of an `exit` before commands that never run.
fn early_exit(text: &str) -> Option<usize> {
    let (mut start, mut depth) = (0, 0_usize);
    // True if a command before decides whether this one runs.
    let mut is_conditional = false;
    let mut characters = active(text).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '&' | '|' if !text[..at].ends_with('>') => {
                let is_double = characters.next_if(|(_, next)| *next == c).is_some();
                // && binds more tightly than ||.
                let is_end = c == '&' && (is_double || !is_conditional);
                if is_end && depth == 0 && is_exit(&text[start..at]) {
                    return Some(
                        start + text[start..at].len() - text[start..at].trim_start().len(),
                    );
                }
                is_conditional = is_double || c == '|' && is_conditional;
                start = at + if is_double { 2 } else { 1 };
            }
            _ => {}
        }
    }
    None
}

/// Returns true for `exit` with or without a code.
fn is_exit(command: &str) -> bool {
    let mut words = command
        .trim_start_matches(['@', ' ', '\t'])
        .split_whitespace();
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("exit"))
        && words.all(|word| word.eq_ignore_ascii_case("/b") || word.parse::<i64>().is_ok())
}
