//! Installers that PowerShell starts and does not wait for.

use super::prelude::*;
use super::prompts::is_known_installer;

/// Reports installers that PowerShell starts and does not wait for.
pub(super) fn check_wait(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    // That of an installer waits for its own parts.
    let whole = step.lower_text().replace("--wait", "");
    let waits = [
        "waitforexit", "wait-process", "-wait", "/wait", "/w ", "hasexited", "get-process",
    ];
    // A loop waits for what the installer makes.
    let is_polled = whole.contains("while") && whole.contains("test-path");
    if is_polled || whole.contains_any(&waits) || keeps_process(&whole) {
        return None;
    }
    let unawaited = step.statements().find_map(|it| {
        let is_brought = |file: &str| is_brought(stage, step, it.at, file);
        Some((it.at, find_unawaited(it, &is_brought)?))
    });
    if let Some((at, (severity, message))) = unawaited {
        return Some(step.finding_at(at, message).severity(severity));
    }
    if let Some(command) = step.find(leaves_its_setup) {
        let message = "the installer of Visual Studio returns before its setup ends: add --wait";
        return Some(step.finding_at(command.start(), message).warning());
    }
    let is_start = |it: &&LintCommand| it.program() == "start" && it.grammar == Grammar::Cmd;
    let mut starts = step.commands().iter().filter(is_start);
    starts.find_map(|command| {
        let mut names = command.arguments().iter();
        if names.any(|word| is_installer(&word.value)) {
            let message = "start does not wait for the installer, and the build may end before it: \
                add /wait";
            return Some(step.finding_at(command.start(), message));
        }
        let message = "start does not wait for the program, which ends with its RUN: add /wait";
        let found = step.finding_at(command.start(), message).warning();
        // What follows it may use the program.
        let uses = ["ping ", "timeout", "sleep", "taskkill", "tasklist"];
        (!whole.contains_any(&uses) && starts_program(command)).then_some(found)
    })
}

/// Returns true for an installer of Visual Studio in cmd that starts its setup and returns.
fn leaves_its_setup(command: &LintCommand) -> bool {
    let installers = [
        "vs_buildtools", "vs_community", "vs_professional", "vs_enterprise", "vs_testagent",
    ];
    let is_open = |word: &Word| word.value.contains(['%', '@']);
    command.grammar == Grammar::Cmd
        && installers.contains(&command.program())
        && command.has(&["--quiet", "-q", "--passive", "-p"])
        && !command.has(&["--wait", "--layout"])
        && !command.words.iter().any(is_open)
}

fn starts_program(command: &LintCommand) -> bool {
    let started = command.started();
    started.is_some_and(|started| has_extension(started.word(0), &["exe"]))
}

/// Returns true if an earlier instruction, or an earlier part of this one, names a file: it is copied
/// or downloaded.
fn is_brought(stage: &Stage<'_>, step: &LintStep<'_>, at: usize, file: &str) -> bool {
    step.lower_full_text()[..at].contains(file)
        || stage.before(step).iter().any(|it| {
            let keyword = it.instruction.keyword.as_str();
            matches!(keyword, "ADD" | "COPY" | "RUN") && it.lower_full_text().contains(file)
        })
}

/// Returns true if a script keeps a process that it starts, and does something with it later.
fn keeps_process(script: &str) -> bool {
    let (before, after) = script.split_once("start-process").unwrap_or_default();
    let name = before.trim_end().strip_suffix('=').map(str::trim_end);
    let name = name.and_then(|before| before.rsplit([' ', ';', '\n', '"']).next());
    let name = name.filter(|name| name.starts_with('$'));
    name.is_some_and(|name| after.contains("-passthru") && after.contains(name))
}

/// Programs of the console with such names or options, for which PowerShell waits.
const CONSOLE_PROGRAMS: [&str; 6] = [
    "installutil", "mysqladmin", "mysqld", "nssm", "sqlcmd", "winsw",
];

/// Options with which an installer opens no window.
const SILENT: [&str; 8] = [
    "quiet", "silent", "verysilent", "install", "s", "q", "qn", "passive",
];

fn is_start(name: &str) -> bool {
    matches!(name, "start-process" | "saps" | "start")
}

/// Returns true for a statement with an option of installers that opens no window.
pub(super) fn is_silent(statement: &PowerShellStatement) -> bool {
    let mut options = statement.parameters_of_programs();
    options.any(|option| SILENT.contains(&option.as_str()))
}

/// Name of the installer that a `Start-Process` waits for.
pub(super) fn awaited(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    statement: &PowerShellStatement,
) -> Option<String> {
    let waits = statement.depth == 0 && statement.has_parameter("wait", 3);
    if !waits || !is_start(statement.command()) || statement.contains("unins") {
        return None;
    }
    let words = statement
        .lower
        .split(|c: char| c.is_whitespace() || "'\",@()".contains(c));
    let words: Vec<&str> = words.skip(1).collect();
    let has = |options: &[&str]| words.iter().any(|word| options.contains(word));
    let program = words
        .iter()
        .find(|word| is_installer(word) || has_extension(word, &["exe"]))?;
    let file = file_name(program);
    let is_named = is_installer(program) || is_known_installer(file);
    let is_silent = || {
        let mut options = words.iter().filter_map(|word| {
            let option = word.trim_start_matches(['/', '-']);
            let is_usual = word.starts_with('/') || is_named && option.len() < word.len();
            is_usual.then_some(option)
        });
        options.any(|option| SILENT.contains(&option))
    };
    let name = program_name(file);
    let installs = match name.as_str() {
        "msiexec" => has(&["/i", "-i", "/package", "-package"]),
        // It has several codes of success.
        "wusa" => false,
        _ => is_silent() && (is_named || is_brought(stage, step, statement.at, file)),
    };
    installs.then_some(name)
}

/// An installer that a statement starts and does not wait for; `is_brought` tells whether the file
/// copies or downloads a program.
pub(super) fn find_unawaited(
    statement: &PowerShellStatement,
    is_brought: &dyn Fn(&str) -> bool,
) -> Option<(Severity, String)> {
    let name = statement.command();
    if is_start(name) {
        let words = statement.text.split([' ', '\'', '"', ',']);
        let mut programs = words.skip(1).filter(|word| !word.is_empty());
        let installs = programs.any(is_installer);
        let severity = Severity::error_if(installs);
        let is_program = installs || statement.contains_any(&[".exe", ".msi"]);
        return is_program.then(|| {
            let message = "Start-Process does not wait for the program, and the build may end \
                before it: add -Wait";
            (severity, message.to_owned())
        });
    }
    // PowerShell waits for a program in a pipeline.
    if name == "msiexec" && !statement.text.contains('|') {
        let message = "PowerShell does not wait for msiexec: use Start-Process msiexec -Wait \
            -ArgumentList …";
        return Some((Severity::Error, message.to_owned()));
    }
    let written = statement.written_command();
    let is_program = has_extension(written, &["exe"]) && !CONSOLE_PROGRAMS.contains(&name);
    if !is_program || statement.text.contains('|') {
        return None;
    }
    let file = file_name(written);
    let is_named = is_installer(file) || is_known_installer(file) || name == "wusa";
    let is_silent = if is_named {
        // The installer of SQL Server is of the console.
        is_silent(statement) && !statement.contains("/action=")
    } else {
        // Programs of the console have such options too, but seldom with a slash.
        let mut words = statement.text.split_whitespace();
        let is_switch = |word: &str| {
            let switch = word.strip_prefix('/').map(str::to_ascii_lowercase);
            switch.is_some_and(|switch| SILENT.contains(&switch.as_str()))
        };
        words.any(is_switch) && is_brought(file)
    };
    is_silent.then(|| {
        let message = "PowerShell does not wait for a program with windows, as installers are: use \
            Start-Process -Wait";
        (Severity::Warning, message.to_owned())
    })
}

fn is_installer(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let file = file_name(&lower);
    matches!(file, "msiexec" | "msiexec.exe")
        || has_extension(file, &["msi"])
        || (has_extension(file, &["exe"])
            && file.contains_any(&[
                "setup", "install", "vs_", "vc_redist", "vcredist", "redist", "ndp",
            ]))
}
