//! Single quotes, which cmd passes on as ordinary characters.

use super::prelude::*;
use super::shells::{is_cut_at_call, is_known_cmdlet, is_program_file, is_shell};

/// Reports single quotes around words with spaces, which cmd passes on.
pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if step.shell != BaseShell::Cmd {
        return None;
    }
    if let Some(script) = step.scripts().iter().find(|it| is_string_script(step, it)) {
        let message = "PowerShell prints a script in single quotes and does not run it: write \
            double quotes";
        return Some(step.finding_at(script.range.start, message));
    }
    if let Some(word) = step.find_map(|it| cut_script(step, it)) {
        let message = "cmd does not know single quotes, and reads the operators of this script \
            itself: write double quotes";
        return Some(step.finding_at(word.start(), message));
    }
    let is_escaped = step.instruction.text().contains("^\"");
    // Another rule says what becomes of the script.
    let is_call = step.is("RUN") && step.instruction.text().starts_with('&');
    if is_call || step.commands().iter().any(|it| is_cut_at_call(step, it)) {
        return None;
    }
    step.find_map(|command| {
        if let Some(word) = quoted_line_of_batch_file(step, command) {
            let message = "cmd writes the single quotes into the batch file, where they are a part of \
                the command: omit them";
            return Some(step.finding_at(word.start(), message).warning());
        }
        if command.grammar != Grammar::Cmd || is_escaped {
            return None;
        }
        if let Some(file) = quoted_redirection(command) {
            let message = format!(
                "in cmd a single quote is an ordinary character, and the > within them writes the \
                 file {}: write ^>",
                file.value
            );
            return Some(step.finding_at(file.start(), message));
        }
        if let Some((word, message)) = quoted_code(command) {
            return Some(step.finding_at(word.start(), message));
        }
        let program = command.program();
        if is_shell(program) || READ_SINGLE_QUOTES.contains(&program) {
            return None;
        }
        if let Some((word, message)) = quoted_word(command) {
            return Some(step.finding_at(word.start(), message));
        }
        let mut words = command.arguments().iter();
        let open = words.find(|word| {
            let value = word.value.as_str();
            let is_plain = step.part(&word.range).starts_with('\'');
            is_plain && value.starts_with('\'') && !value[1..].contains('\'')
        })?;
        words.find(|word| word.value.ends_with('\''))?;
        Some(step.finding_at(open.start(), SEVERAL_ARGUMENTS))
    })
}

const SEVERAL_ARGUMENTS: &str = "in cmd a single quote is an ordinary character, and the program gets \
    several arguments: write double quotes";

/// Programs that take the single quotes around a word for a part of it.
const KEEP_SINGLE_QUOTES: [&str; 18] = [
    "mkdir", "md", "rmdir", "rd", "del", "erase", "copy", "move", "ren", "xcopy", "type", "cd",
    "tar", "curl", "icacls", "msiexec", "reg", "setx",
];

/// A word in single quotes, which cmd passes on, and what happens to it.
fn quoted_word(command: &LintCommand) -> Option<(&Word, String)> {
    let is_whole = |word: &Word| {
        let inside = word.value.in_quotes('\'');
        !word.is_quoted && inside.is_some_and(|it| !it.is_empty() && !it.contains(['\'', '"']))
    };
    let (program, arguments) = command.words.split_first()?;
    let is_file = |word: &Word| is_program_file(word.value.trim_end_matches('\''));
    let ends = |word: &Word| word.value.ends_with('\'') && is_file(word);
    // `'C:/Program Files/a.exe'`
    let is_begun = program.value.starts_with('\'')
        && !program.value[1..].contains('\'')
        && !program.is_quoted
        && arguments.iter().any(ends);
    if is_whole(program) && is_file(program) || is_begun {
        let message = format!(
            "in cmd a single quote is an ordinary character, and no program has the name {}: write \
             double quotes",
            program.value
        );
        return Some((program, message));
    }
    let keeps = KEEP_SINGLE_QUOTES.contains(&command.program());
    let word = arguments.iter().find(|word| keeps && is_whole(word))?;
    let message = format!(
        "in cmd a single quote is an ordinary character, and {} gets {} with them: write double quotes",
        command.program(),
        word.value
    );
    Some((word, message))
}

/// Programs, the option for their code or text, and true if code of one word in quotes does nothing.
const CODE_OPTIONS: [(&[&str], &str, bool); 4] = [
    (&["node", "perl", "ruby"], "-e", true),
    (&["py", "python", "python3"], "-c", true),
    (&["sqlcmd"], "-q", false),
    (&["git"], "-m", false),
];

/// First word of code in single quotes, with which an interpreter gets it, and what happens to it.
fn quoted_code(command: &LintCommand) -> Option<(&Word, &'static str)> {
    let mut known = CODE_OPTIONS.iter();
    let (_, option, is_code) = known.find(|(names, ..)| names.contains(&command.program()))?;
    let first = command.value_of(&[*option])?;
    let is_last = |word: &Word| word.value.ends_with('\'') && !word.is_quoted;
    let inside = first
        .value
        .strip_prefix('\'')
        .filter(|_| !first.is_quoted)?;
    let message = match inside.split_once('\'') {
        Some((code, "")) if *is_code && !code.is_empty() => {
            "in cmd a single quote is an ordinary character, and the code is a text that does nothing: \
             write double quotes"
        }
        None => {
            let mut words = command.arguments().iter();
            words.find(|word| word.start() > first.start() && is_last(word))?;
            SEVERAL_ARGUMENTS
        }
        Some(_) => return None,
    };
    Some((first, message))
}

/// First word of a line in single quotes that `echo` writes into a batch file.
fn quoted_line_of_batch_file<'a>(
    step: &LintStep<'_>,
    command: &'a LintCommand,
) -> Option<&'a Word> {
    let is_batch = |word: &Word| has_extension(&word.value, &["bat", "cmd"]);
    let first = command.words.get(1)?;
    let is_quoted =
        step.part(&first.range).starts_with('\'') && command.words.last()?.value.ends_with('\'');
    let is_written = command.program() == "echo" && command.files.iter().any(is_batch);
    (command.grammar == Grammar::Cmd && is_quoted && is_written).then_some(first)
}

/// The file of a redirection within words in single quotes, as in `echo 'a > b'`.
fn quoted_redirection(command: &LintCommand) -> Option<&Word> {
    let is_edge = |word: &Word| !word.is_quoted && word.value.matches('\'').count() == 1;
    let has_quote = |word: &&Word| word.value.contains('\'');
    let mut words = command.arguments().iter();
    let open = words.find(has_quote)?;
    let behind = words.chain(&command.files);
    let behind = behind.filter(|word| has_quote(word) && word.start() > open.start());
    let close = behind.min_by_key(|word| word.start())?;
    let is_text = is_edge(open)
        && is_edge(close)
        && open.value.starts_with('\'')
        && close.value.ends_with('\'');
    let inside = open.start()..=close.start();
    let mut files = command.files.iter();
    let file = files.find(|file| inside.contains(&file.start()))?;
    let is_read = command.has_input || matches!(command.program(), "for" | "if" | "rem");
    (is_text && !is_read).then_some(file)
}

/// First word of a script of PowerShell in single quotes that an operator of cmd cuts.
fn cut_script<'a>(step: &LintStep<'_>, command: &'a LintCommand) -> Option<&'a Word> {
    let is_shell = matches!(command.program(), "powershell" | "pwsh");
    let is_cut = command.next != NextOperator::End || !command.files.is_empty();
    if command.grammar != Grammar::Cmd || !is_shell || !is_cut {
        return None;
    }
    let mut words = command.arguments().iter();
    let written = |word: &Word| step.part(&word.range);
    let first = words.find(|word| !word.is_option())?;
    let rest = words.map(written).chain([written(first)]);
    let quotes: usize = rest.map(|text| text.matches('\'').count()).sum();
    (written(first).starts_with('\'') && quotes % 2 == 1).then_some(first)
}

/// True for a script that is only a string in single quotes.
fn is_string_script(step: &LintStep<'_>, script: &LintScript) -> bool {
    if !script.grammar.is_powershell() || !script.is_nested {
        return false;
    }
    let joined = step.instruction.full_text();
    let outside = joined[..script.range.start].ends_with('\'');
    let text = &joined[script.range.start..script.range.end];
    let text = text.in_quotes('\'');
    let inside = text.or_else(|| outside.then(|| &joined[script.range.clone()]));
    inside.is_some_and(|inside| {
        let before = &joined[..script.range.start].trim_end_matches('\'');
        let is_double = before.ends_with('"');
        let is_code = inside.contains(' ')
            || is_known_cmdlet(inside)
            || inside.to_ascii_lowercase().ends_with(".ps1");
        is_code && !inside.contains('\'') && !is_double
    })
}

/// Programs whose arguments have single quotes of their own.
const READ_SINGLE_QUOTES: [&str; 10] = [
    "for", "appcmd", "echo", "sqlcmd", "wmic", "if", "rem", "mysql", "psql", "git",
];
