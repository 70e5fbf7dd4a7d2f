//! Check of printed hints, in debug builds: each command in them is one of this program, and each
//! flag is one that the running command has. Every test that prints a hint runs it.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};

use super::Cli;
use super::config::apply::{argument, commands_on, has_flag};

/// Programs whose flags are their own.
const OTHER_PROGRAMS: [&str; 10] = [
    "apt-get", "crane", "curl", "docker", "dotnet", "helm", "kubectl", "podman", "skopeo", "tar",
];

/// Panics if a hint names a command or a flag that does not exist where it is printed; of a hint
/// about other commands, no command is running.
pub(super) fn check(hint: &str, running: impl Iterator<Item = String>) {
    let running: Vec<String> = running.collect();
    if let Err(problem) = checked(hint, &running) {
        panic!("invalid hint {hint:?}: {problem}");
    }
}

/// Checks a hint of the command in these arguments; without one, any command may have its flags.
fn checked(hint: &str, running: &[String]) -> Result<(), String> {
    let program = Cli::command();
    let (running, is_command) = innermost(&program, running);
    check_parts(hint, &program, |flag| {
        if is_command {
            has_own_flag(running, &program, flag)
        } else {
            has_flag(&program, flag)
        }
    })
}

/// Checks each command of a hint, and the flags outside of commands.
fn check_parts(hint: &str, program: &Command, has: impl Fn(&str) -> bool) -> Result<(), String> {
    for part in parts(hint, program) {
        match part {
            Part::Own(command) => check_command(program, &command)?,
            Part::Text(text) => {
                let mut flags = flags(text.split_whitespace()).into_iter();
                if let Some(unknown) = flags.find(|flag| !has(flag)) {
                    return Err(format!("unknown flag --{unknown}"));
                }
            }
        }
    }
    Ok(())
}

enum Part<'a> {
    /// Words of a command of this program.
    Own(Vec<String>),
    /// Text with flags of the running command.
    Text(&'a str),
}

/// The commands and the text of a hint; commands of other programs are left out.
fn parts<'h>(hint: &'h str, program: &Command) -> Vec<Part<'h>> {
    let mut parts = Vec::new();
    for (index, span) in hint.split('`').enumerate() {
        // Inside backticks a command is complete; outside it ends with its clause.
        let clauses: Vec<&str> = match index % 2 {
            0 => span.split([';', ',', ')', '\n']).collect(),
            _ => vec![span],
        };
        for clause in clauses {
            let start = begin(clause, "wincimg").filter(|&at| {
                // A sentence may be about the program: `wincimg creates it`.
                let (before, command) = clause.split_at(at);
                let second = command.split(' ').nth(1).unwrap_or_default();
                let is_known = program.find_subcommand(second).is_some();
                is_known || index % 2 == 1 || before.ends_with(": ")
            });
            let others = OTHER_PROGRAMS.iter().filter_map(|name| begin(clause, name));
            match (start, others.min()) {
                (Some(own), other) if other.is_none_or(|other| own < other) => {
                    parts.push(Part::Text(&clause[..own]));
                    let command = &clause[own..];
                    let ends = [" or ", " and ", " > ", " < ", " | ", ": "];
                    let end = ends.iter().filter_map(|end| command.find(end)).min();
                    parts.push(Part::Own(words(&command[..end.unwrap_or(command.len())])));
                }
                (_, Some(other)) => parts.push(Part::Text(&clause[..other])),
                _ => parts.push(Part::Text(clause)),
            }
        }
    }
    parts
}

/// Offset of a program's name that begins a command: followed by a lower-case word.
fn begin(text: &str, name: &str) -> Option<usize> {
    text.match_indices(name).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].strip_prefix(' ');
        before.is_none_or(char::is_whitespace)
            && after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_lowercase()))
    })
}

/// Words of a command line, without quotes. An ellipsis stands for a value.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, other) => words
                .last_mut()
                .into_iter()
                .for_each(|word| word.push(other)),
        }
    }
    words.retain(|word| !word.is_empty());
    for word in words.iter_mut().filter(|word| word.contains('…')) {
        "VALUE".clone_into(word);
    }
    words
}

fn check_command(program: &Command, words: &[String]) -> Result<(), String> {
    let (command, is_known) = innermost(program, &words[1..]);
    if !is_known {
        return Err(format!("unknown command {:?}", words.get(1)));
    }
    let mut names = words
        .iter()
        .filter_map(|word| program.find_subcommand(word));
    if let Some(hidden) = names.next().filter(|first| first.is_hide_set()) {
        return Err(format!("{} is hidden: name its group", hidden.get_name()));
    }
    let arguments = words.iter().take_while(|word| *word != "--");
    for flag in flags(arguments.map(String::as_str)) {
        if !has_own_flag(command, program, &flag) {
            return Err(format!("{} has no --{flag}", command.get_name()));
        }
    }
    let Err(error) = program.clone().try_get_matches_from(words) else {
        return Ok(());
    };
    match error.kind() {
        // A command may be shortened, and FILE stands for a value.
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Ok(()),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
            if words.iter().any(|word| is_placeholder(word)) =>
        {
            Ok(())
        }
        _ => Err(error.to_string()),
    }
}

/// Returns true for `FILE`, `HOST[:PORT]`, `base:NAME` and `docker|oci`, which stand for a value.
fn is_placeholder(word: &str) -> bool {
    let mut letters = word.chars().filter(char::is_ascii_alphabetic);
    word.contains(['|', '[']) || {
        let last = word.rsplit([':', '/', '=']).next().unwrap_or_default();
        letters.next().is_some() && last.chars().any(|c| c.is_ascii_uppercase())
    }
}

/// The names of the long flags among words, except those that every command has.
fn flags<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let flags = words.filter_map(|word| {
        let name = word
            .trim_start_matches(['(', '"', '\''])
            .strip_prefix("--")?;
        let is_name = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
        let name: String = name.chars().take_while(is_name).collect();
        let name = name.trim_end_matches('-').to_owned();
        (!["", "help", "version"].contains(&name.as_str())).then_some(name)
    });
    flags.collect()
}

/// Returns true if a command has a flag, or all commands.
fn has_own_flag(command: &Command, program: &Command, flag: &str) -> bool {
    argument(command, flag).is_some() || argument(program, flag).is_some()
}

/// The innermost subcommand that arguments name, and true if they name one.
fn innermost<'c>(program: &'c Command, arguments: &[String]) -> (&'c Command, bool) {
    let commands = commands_on(program, arguments.iter().map(String::as_str));
    let innermost = commands.last().copied().unwrap_or(program);
    (innermost, commands.len() > 1)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use regex::{Captures, Regex};

    use super::*;

    #[test]
    fn commands_and_flags_are_those_of_the_program() {
        for (hint, running) in [
            ("log in: wincimg login HOST", "build pause"),
            ("add --registry HOST[:PORT][/PREFIX]", "build pause"),
            (
                "see `wincimg image base list nanoserver`, or add --match nearest",
                "build pause",
            ),
            ("type: kubectl get nodes --show-labels", "mirror x"),
            (
                "push it with `docker push --all-tags`; then --nodes FILE",
                "mirror x",
            ),
            ("wincimg build … --host-build … --push", "lint x"),
            ("set --config FILE", "lint x"),
            ("set a limit with --memory", ""),
        ] {
            assert_eq!(checked(hint, &words(running)), Ok(()), "{hint}");
        }
        for (hint, running) in [
            ("log in: wincimg signin HOST", "build pause"),
            ("see `wincimg base list nanoserver`", "build pause"),
            (
                "publish only these tags with --no-index",
                "fleet build fleet.toml",
            ),
            ("wincimg fleet build FILE --no-index", "build pause"),
            ("wincimg node hotfix resolve --newest 17763", "build pause"),
            ("wincimg node hotfix resolve 1.x", "build pause"),
            ("anything --goes", ""),
        ] {
            assert!(checked(hint, &words(running)).is_err(), "{hint}");
        }
    }

    /// Texts of the repository: pages, templates, scripts and sources, without tests.
    fn texts(path: &Path, found: &mut Vec<PathBuf>) {
        const KINDS: [&str; 8] = ["md", "rs", "sh", "ps1", "toml", "tsv", "yaml", "yml"];
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "target" || name == "tests" || name == "tests.rs" {
            return;
        }
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                texts(&entry.unwrap().path(), found);
            }
        } else if !name.contains('.')
            || KINDS.iter().any(|kind| name.ends_with(&format!(".{kind}")))
        {
            found.push(path.to_owned());
        }
    }

    /// The names after `wincimg` in a text, also over the end of a line.
    fn named_commands(text: &str) -> impl Iterator<Item = (usize, &str)> {
        text.match_indices("wincimg").filter_map(|(at, name)| {
            let is_apart = |c: char| !c.is_alphanumeric() && !"-_/.".contains(c);
            text[..at]
                .chars()
                .next_back()
                .is_none_or(is_apart)
                .then_some(())?;
            let after = text[at + name.len()..].strip_prefix([' ', '\n'])?;
            let mut words = after.split_whitespace();
            let word = words.find(|word| {
                !word.starts_with('-') && !matches!(*word, "\\" | "//" | "///" | "//!")
            })?;
            let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            Some((at, &word[..end.unwrap_or(word.len())]))
        })
    }

    #[test]
    fn no_text_names_a_hidden_command() {
        let program = Cli::command();
        let hidden: Vec<&str> = program
            .get_subcommands()
            .filter(|inner| inner.is_hide_set())
            .map(Command::get_name)
            .collect();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for place in [
            "README.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "templates", "actions",
            "images", "packaging", "src", "crates",
        ] {
            texts(&root.join(place), &mut files);
        }
        let (mut count, mut wrong) = (0, Vec::new());
        for file in files {
            // The test's own examples, and sources that only a rebuilt shim may change.
            if file.ends_with(file!()) || file.starts_with(root.join("images/shim/src")) {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap_or_default();
            for (at, name) in named_commands(&text) {
                count += 1;
                if hidden.contains(&name) {
                    let line = text[..at].matches('\n').count() + 1;
                    wrong.push(format!("{}:{line}: wincimg {name}", file.display()));
                }
            }
        }
        assert!(count > 200, "{count}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// The string literals of a source.
    fn literals(text: &str) -> Vec<String> {
        let text = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        let literal = Regex::new(r#"(?s)"((?:\\.|[^"\\])*)""#).unwrap();
        let line_end = Regex::new(r"\\\n\s*").unwrap();
        let escape = Regex::new(r"(?s)\\(.)").unwrap();
        let unescaped = |found: &Captures<'_>| match &found[1] {
            "n" => "\n".to_owned(),
            other => other.to_owned(),
        };
        let literals = literal.captures_iter(text).map(|found| {
            let joined = line_end.replace_all(&found[1], "");
            escape.replace_all(&joined, unescaped).into_owned()
        });
        literals.collect()
    }

    /// The literal with an example in each placeholder.
    fn filled(literal: &str) -> String {
        let mut text = String::new();
        let mut rest = literal;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (_, after) = after.split_once('}').unwrap_or(("", ""));
            text.push_str("VALUE");
            rest = after;
        }
        text + rest
    }

    /// Values that no shell changes, such as versions and names of registries. Every other one goes
    /// into a command through `wincimg_common::shell`.
    const PLAIN: [&str; 17] = [
        "SAMPLE", "base", "build", "flag", "flags", "host", "kb", "kept", "known", "made", "name",
        "namespace", "recipe", "registry", "script", "version", "what",
    ];

    /// A placeholder in a command whose value a shell may change.
    fn not_quoted(literal: &str, program: &Command) -> Option<String> {
        let placeholder = Regex::new(r"\{(\w*)[^}]*\}").unwrap();
        parts(literal, program).into_iter().find_map(|part| {
            let Part::Own(words) = part else {
                return None;
            };
            let command = words.join(" ");
            let mut names = placeholder.captures_iter(&command);
            names
                .find(|name| !PLAIN.contains(&&name[1]))
                .map(|name| name[0].to_owned())
        })
    }

    #[test]
    fn every_command_in_a_text_of_the_sources_is_one_of_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in ["src", "crates"] {
            texts(&root.join(folder), &mut files);
        }
        files.retain(|file| file.extension().is_some_and(|kind| kind == "rs"));
        let program = Cli::command();
        let (mut count, mut wrong) = (0, Vec::new());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for literal in literals(&text) {
                // Examples of the help have a test of their own.
                if literal.contains("Examples:") || literal.contains("{command}") {
                    continue;
                }
                let filled = filled(&literal);
                let has_command = parts(&filled, &program)
                    .iter()
                    .any(|part| matches!(part, Part::Own(_)));
                if !has_command {
                    continue;
                }
                count += 1;
                if let Some(name) = not_quoted(&literal, &program) {
                    let file = file.display();
                    wrong.push(format!("{file}: {literal:?}: quote {name} for a shell"));
                }
                // A placeholder may stand for a flag.
                let without = filled.replace(" VALUE", "");
                let checked = checked(&filled, &[]).or_else(|_| checked(&without, &[]));
                if let Err(problem) = checked {
                    wrong.push(format!("{}: {literal:?}: {problem}", file.display()));
                }
            }
        }
        assert!(count > 50, "{count}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
