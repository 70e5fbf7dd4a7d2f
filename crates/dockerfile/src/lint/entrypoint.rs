//! `CMD` and `ENTRYPOINT` in shell form: a shell starts the program as its child. A script or
//! command that the shell runs itself is correct.

use std::collections::HashSet;

use wincimg_scripts::script;
use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::quoting::{argv, cmd, exec_form, powershell};

use super::arrays::{mended_backslashes, unquoted_array, with_plain_quotes};
use super::exec_form::BATCH_FILES;
use super::prelude::*;
use super::shells::check_cmdlets;
use super::{LintFinding, args_escaped};

pub(super) fn check(linted: &LintFile<'_>, findings: &[LintFinding]) -> Vec<Finding> {
    let misread = findings.iter().filter(|finding| {
        matches!(
            finding.rule.name,
            "foreign-variable"
                | "quotes-under-powershell"
                | "quotes-in-nested-shell"
                | "backslash-quotes-under-cmd"
                | "overridden-instruction"
                | "unix-command"
                | "unquoted-spaces"
        )
    });
    let misread: HashSet<usize> = misread.map(|finding| finding.line).collect();
    linted
        .windows_stages()
        .flat_map(|stage| check_stage(stage, &misread))
        .collect()
}

fn check_stage(stage: &Stage<'_>, misread: &HashSet<usize>) -> Vec<Finding> {
    let has_program = stage.all("ENTRYPOINT").any(|step| {
        let words = step.instruction.exec_form();
        words.is_some_and(|words| !matches!(words.as_slice(), [program] if is_shell(program)))
    });
    // The words of CMD follow the shell's command, whatever that is.
    let mut entrypoints = stage.all("ENTRYPOINT");
    let command = entrypoints.rfind(|step| step.instruction.exec_form().is_none());
    let starts = stage
        .steps
        .iter()
        .filter(|it| it.is("CMD") || it.is("ENTRYPOINT"));
    let found = starts.filter_map(|step| match command {
        Some(entrypoint) if step.is("CMD") => check_words_of_command(entrypoint, step),
        _ => check_step(stage, step, has_program, misread),
    });
    found.collect()
}

fn check_step(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    has_program: bool,
    misread: &HashSet<usize>,
) -> Option<Finding> {
    let instruction = step.instruction;
    let text = instruction.text();
    let is_array = instruction.exec_form().is_some()
        || unquoted_array(text).is_some()
        || with_plain_quotes(text).is_some();
    if text.is_empty() || is_array {
        return None;
    }
    if instruction.looks_like_json() {
        return Some(check_broken_json(stage, step));
    }
    if has_program && step.is("CMD") {
        let message = "in shell form the program of ENTRYPOINT gets the shell and its options as its \
            first arguments; use the exec form";
        return Some(step.finding(message));
    }
    if needs_shell(step) || is_short(text) || is_batch_file_of_npm(stage, text) {
        return None;
    }
    // The other finding says that this is not a program.
    if check_cmdlets(stage, step).is_some() {
        return None;
    }
    let message = "in shell form a shell starts the program, which then may not get the shutdown \
        event; start the program directly, in exec form";
    // Another finding says that the program is not there, or gets other arguments than intended.
    let (first, last) = instruction.lines();
    let is_misread = (first..=last).any(|line| misread.contains(&(line + 1)));
    let argv = program(step).filter(|argv| {
        !is_misread && is_known_program(&argv[0]) && !args_escaped::is_bare(stage, argv)
    });
    Some(in_exec_form(step, message, argv))
}

/// Reports the words of a `CMD` below an `ENTRYPOINT` in shell form: Docker then takes the command line
/// of the shell for one argument, and there is no program of that name.
fn check_words_of_command(entrypoint: &LintStep<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let words = step.instruction.exec_form().unwrap_or_default();
    let is_command =
        !entrypoint.instruction.text().is_empty() && !entrypoint.instruction.looks_like_json();
    let message = "the ENTRYPOINT above is in shell form, and with a CMD in exec form Docker 19.03 and \
        later start nothing: write both in exec form";
    let is_below = step.line() > entrypoint.line();
    (!words.is_empty() && is_below && is_command).then(|| step.finding(message))
}

/// The commonest reason for an invalid JSON array: single backslashes.
fn check_broken_json(stage: &Stage<'_>, step: &LintStep<'_>) -> Finding {
    let text = step.instruction.text();
    let argv = mended_backslashes(text).and_then(|text| serde_json::from_str(&text).ok());
    // In exec form a program and its arguments in one word would be a file name. One with a space needs
    // an extension.
    let is_name = |word: &String| !word.contains(' ') || has_extension(word, &["exe"]);
    let argv = argv.filter(|argv: &Vec<String>| argv.first().is_some_and(is_name));
    let message = if argv.is_some() && text.contains("\\$") {
        "invalid JSON, so the daemon runs this in shell form: omit the \\ before $, which JSON does not \
         know, and double each one of a path"
    } else if argv.is_some() {
        "invalid JSON, so the daemon runs this in shell form: double every backslash"
    } else if text.starts_with('{') {
        "an array of JSON has brackets, so the daemon runs this in shell form: write [ and ]"
    } else {
        "invalid JSON array of strings, so the daemon runs this in shell form"
    };
    let argv = argv.filter(|argv| !args_escaped::is_bare(stage, argv));
    in_exec_form(step, message, argv).of("invalid-json")
}

/// A finding whose correction is the exec form of these words.
fn in_exec_form(step: &LintStep<'_>, message: &str, argv: Option<Vec<String>>) -> Finding {
    let rewrite = |argv: Vec<String>| step.file.rewrite(step.instruction, &exec_form(&argv));
    step.finding(message).corrected(argv.map(rewrite))
}

/// Returns true for a program that only prints its version or help: it ends before any event.
fn is_short(text: &str) -> bool {
    let mut words = text.split_whitespace().skip(1);
    let only = words.next().filter(|_| words.next().is_none());
    only.is_some_and(|word| {
        let option = word.trim_start_matches(['-', '/']).to_ascii_lowercase();
        option.len() < word.len() && matches!(option.as_str(), "version" | "help" | "?")
    })
}

fn is_shell(program: &str) -> bool {
    let name = program_name(program);
    matches!(name.as_str(), "cmd" | "powershell" | "pwsh" | "bash" | "sh")
}

/// Returns true unless the text is a single program with its arguments: a command, script, pipe or
/// variable needs the shell.
fn needs_shell(step: &LintStep<'_>) -> bool {
    let is_script = |name: &str| has_extension(name, &["cmd", "bat", "ps1", "vbs", "sh"]);
    let text = step.instruction.text().trim();
    let written = argv::split(text, ArgvParser::CRuntime).swap_remove(0);
    if let Some(argv) = program(step) {
        let name = argv.first().map_or("", String::as_str);
        return is_script(&written) || is_shell(name) || may_be_script(name);
    }
    if step.shell != BaseShell::PowerShell {
        return true;
    }
    let script = script::read(&powershell::script(step.instruction.text()));
    script.only_command.is_none_or(|name| {
        let needs_it = may_be_script(&name) || text.contains('$');
        needs_it || is_script(&name) || is_shell(&name) || script::is_cmdlet(&name)
    })
}

/// Returns true for a path, which without an extension may be that of a script, and for the name of a
/// known batch file.
fn may_be_script(name: &str) -> bool {
    let is_path = name.contains(['\\', '/']);
    let is_batch_file = || BATCH_FILES.contains(&program_name(name).as_str());
    !has_extension(name, &["exe"]) && (is_path || is_batch_file())
}

/// Programs that are not batch files.
const PROGRAMS: [&str; 18] = [
    "caddy", "consul", "curl", "dotnet", "httpd", "java", "javaw", "mongod", "mysqld", "nginx",
    "node", "perl", "php", "ping", "py", "python", "redis-server", "ruby",
];

/// Returns true for what Windows starts without a shell: any other name may be that of a batch file.
fn is_known_program(name: &str) -> bool {
    has_extension(name, &["exe"]) || PROGRAMS.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns true for a command that npm installs, as a batch file: from a package of that name, or from
/// the folder, whose package can have any.
fn is_batch_file_of_npm(stage: &Stage<'_>, text: &str) -> bool {
    let name = text.split_whitespace().next().unwrap_or_default();
    !name.contains(['.', '\\', '/'])
        && stage.all("RUN").any(|step| {
            let text = step.instruction.text();
            let words = text.split_whitespace();
            text.contains("npm ")
                && (words
                    .clone()
                    .any(|word| word.split('@').next() == Some(name))
                    || text.contains(" -g") && words.clone().all(is_of_npm))
        })
}

/// Returns true for words of npm that name no package.
fn is_of_npm(word: &str) -> bool {
    let is_level = matches!(word, "silent" | "error" | "warn" | "verbose" | "silly");
    word.starts_with('-') || is_level || matches!(word, "npm" | "install" | "i" | ".")
}

/// Program and arguments, if the shell only starts it.
fn program(step: &LintStep<'_>) -> Option<Vec<String>> {
    let text = step.instruction.text();
    let argv = match step.shell {
        BaseShell::Cmd => {
            // The shell expands variables, so any variable requires the shell.
            if text.contains('%') {
                return None;
            }
            argv::split(&cmd::parse(text, |_| None).ok()?, ArgvParser::CRuntime)
        }
        BaseShell::PowerShell => {
            let words = powershell::simple_command(&powershell::script(text))?;
            argv::split(
                &powershell::native_command_line(&words),
                ArgvParser::CRuntime,
            )
        }
        BaseShell::Other | BaseShell::Unknown => return None,
    };
    // The semicolon was meant to separate commands.
    if argv.iter().any(|word| word.ends_with(';')) {
        return None;
    }
    let name = argv.first()?;
    let file = file_name(name);
    let extension = file
        .rsplit_once('.')
        .map(|(_, end)| end.to_ascii_lowercase());
    let is_program = match (step.shell, extension.as_deref()) {
        (_, Some("exe")) => !cmd::is_built_in(name),
        // Without `.exe` it may be a cmdlet, an alias or a function.
        (BaseShell::PowerShell, _) | (_, Some("cmd" | "bat" | "ps1" | "vbs")) => false,
        _ => !file.is_empty() && !cmd::is_built_in(name),
    };
    is_program.then_some(argv)
}
