//! Paths and names with spaces that no quotes keep together.

use super::prelude::*;
use super::quotes::is_stripped;
use super::shells::{is_file, is_reread, is_shell};

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let is_read = |it: &&LintCommand| it.grammar != Grammar::Exec && !is_shell(it.program());
    let mut commands = step.commands().iter().filter(is_read);
    let (word, message) = commands.find_map(|command| {
        program_files(step, command)
            .map(|word| (word, path_message(step, command, word)))
            .or_else(|| extra_word_of_reg(command))
            .or_else(|| extra_word_of_site(command))
            .or_else(|| joined_argument(step, command))
    })?;
    Some(step.finding_at(word.start(), message))
}

/// Commands that take a path with spaces as it is, or print it.
fn takes_spaces(command: &LintCommand) -> bool {
    match command.program() {
        "cd" | "chdir" | "set" | "path" | "title" | "prompt" => command.grammar == Grammar::Cmd,
        "echo" | "rem" | "if" | "for" | "wmic" | "assoc" | "ftype" => true,
        program => program.starts_with("write-"),
    }
}

/// The `C:\Program` of `C:\Program Files`, where that is two words.
fn program_files<'a>(step: &LintStep<'_>, command: &'a LintCommand) -> Option<&'a Word> {
    if step.shell == BaseShell::Cmd && is_stripped(step.instruction.text()) {
        return None;
    }
    let words = &command.words;
    let files = command.files.iter().filter(|_| command.program() != "rem");
    let mut redirected = files.filter_map(|file| {
        let next = words.partition_point(|it| it.start() < file.range.end);
        Some((file, words.get(next)?))
    });
    let pairs = words.windows(2).map(|pair| (&pair[0], &pair[1]));
    let mut pairs = pairs.filter(|_| !takes_spaces(command));
    let is_split = |(word, next): &(&Word, &Word)| is_split_path(step, word, next);
    let found = redirected.find(is_split).or_else(|| pairs.find(is_split));
    let (word, _) = found?;
    (!is_whole_script(step, word)).then_some(word)
}

/// True for `C:\Program` and `Files…`, one after the other and without quotes.
fn is_split_path(step: &LintStep<'_>, word: &Word, next: &Word) -> bool {
    let is_plain = |word: &Word| !word.is_quoted && !word.value.contains(['\'', '"', '`']);
    let is_rest = |text: &str| {
        let files = text.get(..5);
        files.is_some_and(|it| it.eq_ignore_ascii_case("files"))
            && (text.len() == 5 || text[5..].starts_with(['\\', '/']))
    };
    let is_start = |text: &str| {
        let start = text.to_ascii_lowercase().replace('/', "\\");
        let drive = start.strip_suffix(":\\program");
        drive.is_some_and(|drive| drive.ends_with(|c: char| c.is_ascii_alphabetic()))
    };
    is_rest(&next.value)
        && is_start(&word.value)
        && is_plain(word)
        && is_plain(next)
        && !step
            .instruction
            .part(word.start()..next.start())
            .contains('^')
}

/// Returns true for the beginning of a script in quotes that cmd, `-File` or pwsh takes for a path.
fn is_whole_script(step: &LintStep<'_>, word: &Word) -> bool {
    step.scripts().iter().any(|script| {
        let is_path = script.grammar == Grammar::Cmd || is_file(step, script);
        is_path
            && script.range.start == word.start()
            && script.is_nested
            && !is_reread(step, script)
    })
}

fn path_message(step: &LintStep<'_>, command: &LintCommand, word: &Word) -> String {
    let is_program = command.words.first() == Some(word);
    let is_redirected = command.files.contains(word);
    let what = if is_program { "runs" } else { "gets" };
    let how = match command.grammar {
        Grammar::Unknown => "put the path in quotes",
        Grammar::Cmd if is_program && !step.is("RUN") => "use the exec form",
        Grammar::Cmd if is_program => "write call and the path in double quotes",
        Grammar::Cmd => "put the path in double quotes",
        _ if is_program => "write & and the path in single quotes",
        _ => "put the path in single quotes",
    };
    let who = if is_program {
        "the shell"
    } else if is_redirected {
        "the redirection"
    } else {
        command.program()
    };
    format!(
        "{who} {what} {}, as the path ends at its space: {how}",
        word.value
    )
}

/// Options of `reg add` with a value.
const WITH_VALUE: [&str; 4] = ["v", "t", "d", "s"];

/// A word of `reg add` that is neither its key nor an option or its value.
fn extra_word_of_reg(command: &LintCommand) -> Option<(&Word, String)> {
    let first = &command.words[0];
    let (verb, rest) = command.arguments().split_first()?;
    let is_add = first.eq_ignore_case("reg") || first.eq_ignore_case("reg.exe");
    let is_open = |word: &Word| word.value.contains(['%', '$', '!', '@', '`', '\'', '{']);
    if !is_add || !verb.eq_ignore_case("add") || rest.iter().any(is_open) {
        return None;
    }
    let mut rest = rest.iter().skip(1);
    while let Some(word) = rest.next() {
        let Some(option) = word.value.strip_prefix(['/', '-']) else {
            let message = format!(
                "reg takes {} for a further argument and fails: put names and data with spaces in \
                 double quotes",
                word.value
            );
            return Some((word, message));
        };
        if WITH_VALUE.contains(&option.to_ascii_lowercase().as_str()) {
            rest.next();
        }
    }
    None
}

/// The second word of `Default Web Site`, where no quotes make it one argument of `appcmd`.
fn extra_word_of_site(command: &LintCommand) -> Option<(&Word, String)> {
    if command.program() != "appcmd" {
        return None;
    }
    let is_site = |words: &&[Word]| {
        let [first, web, site] = [0, 1, 2].map(|place| words[place].value.to_ascii_lowercase());
        words.iter().all(|word| !word.is_quoted)
            && (first == "default" || first.ends_with(":default"))
            && web == "web"
            && (site == "site" || site.starts_with("site/"))
    };
    let words = command.words.windows(3).find(is_site)?;
    let quotes = if command.grammar.is_powershell() {
        "single"
    } else {
        "double"
    };
    let message = format!(
        "appcmd takes {} for a further argument and fails: put Default Web Site in {quotes} quotes",
        words[1].value
    );
    Some((&words[1], message))
}

/// A path with a space among the arguments that `Start-Process` joins with spaces.
fn joined_argument<'a>(
    step: &LintStep<'_>,
    command: &'a LintCommand,
) -> Option<(&'a Word, String)> {
    let is_start = matches!(command.program(), "start-process" | "saps");
    if !is_start || !command.grammar.is_powershell() {
        return None;
    }
    let written = |word: &Word| step.part(&word.range);
    let is_list = |word: &Word| {
        let option = word.value.to_ascii_lowercase();
        option == "-args" || option.len() > 1 && "-argumentlist".starts_with(&option)
    };
    let words = &command.words;
    let at = words.iter().position(is_list).map(|at| at + 1);
    // Without options: the program, and its arguments.
    let is_plain = |word: &&Word| !word.value.starts_with('-');
    let at = at.or_else(|| (words.iter().take(3).filter(is_plain).count() == 3).then_some(2))?;
    let installs = words.iter().any(|it| program_name(&it.value) == "msiexec");
    for word in words.get(at..)? {
        let text = written(word);
        let mut inside = text.split('\'').skip(1).step_by(2);
        let spaced = inside.find_map(|it| {
            let property = || spaced_property(it).filter(|_| installs);
            is_spaced_path(it).then_some(it).or_else(property)
        });
        if let Some(path) = spaced.filter(|_| !text.contains('"')) {
            let message = format!(
                "Start-Process joins its arguments with spaces and no quotes, and the program gets \
                 {path} in parts: write '\\\"…\\\"'"
            );
            return Some((word, message));
        }
        if !text.ends_with(',') {
            break;
        }
    }
    None
}

/// The path below `Program Files` that is the value of a property of Windows Installer.
fn spaced_property(text: &str) -> Option<&str> {
    let at = text.to_ascii_lowercase().find("=c:\\program files")? + 1;
    text[at..].split(" /").next()
}

/// Returns true for one path with a space.
fn is_spaced_path(text: &str) -> bool {
    let (_, rest) = text.split_once(' ').unwrap_or_default();
    let is_drive = |c: char| c.is_ascii_alphabetic();
    text.starts_with(is_drive)
        && text.get(1..3) == Some(":\\")
        && rest.contains(['\\', '.'])
        && !rest.contains(':')
        && !rest.split(' ').any(|word| word.starts_with(['/', '-']))
}
