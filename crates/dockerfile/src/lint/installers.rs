//! Installers: interactive ones, and those that run without a wait.

use super::effects::{powershell_scripts, script_statements};
use super::entrypoint::has_extension;
use super::reference::Platform;
use super::stage::{LintStep, Stage};
use super::statements::PowerShellStatement;
use super::words::{Grammar, LintCommand};
use super::{Edit, Findings, Severity};

/// Reports installers that PowerShell starts and does not wait for.
pub(super) fn check_wait(stage: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if !step.is("RUN") || stage.platform != Platform::Windows {
        return;
    }
    let whole = step.instruction.text().to_ascii_lowercase();
    let waits = [
        "waitforexit",
        "wait-process",
        "-wait",
        "/wait",
        "/w ",
        "hasexited",
        "get-process",
    ];
    if waits.iter().any(|wait| whole.contains(wait)) {
        return;
    }
    for script in powershell_scripts(step) {
        let all = script_statements(step, script);
        let found = all.iter().find_map(|it| Some((it, find_unawaited(it)?)));
        let Some((statement, (severity, message))) = found else {
            continue;
        };
        let line = step.line_at(script.range.start + statement.at);
        findings.add("installer-wait", severity, line, message);
        return;
    }
    for command in step.commands() {
        let is_start = command.program() == "start" && command.grammar == Grammar::Cmd;
        let names = command.words.iter().skip(1);
        let is_installer = names.into_iter().any(|word| is_installer(&word.value));
        if is_start && is_installer {
            let message = "start does not wait for the installer, and the build may end before it: \
                add /wait";
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at("installer-wait", Severity::Error, at, message);
            return;
        }
    }
}

/// Programs of the console with such options, for which PowerShell waits.
const CONSOLE_PROGRAMS: [&str; 10] = [
    "cmd",
    "mysqld",
    "mysqladmin",
    "aspnet_regsql",
    "aspnet_regiis",
    "installutil",
    "nssm",
    "winsw",
    "sc",
    "net",
];

fn find_unawaited(statement: &PowerShellStatement) -> Option<(Severity, String)> {
    let name = statement.command();
    let is_start = matches!(name.as_str(), "start-process" | "saps" | "start");
    if is_start {
        let words = statement.text.split([' ', '\'', '"', ',']);
        let mut programs = words.skip(1).filter(|word| !word.is_empty());
        let installs = programs.any(is_installer);
        let severity = if installs {
            Severity::Error
        } else {
            Severity::Warning
        };
        let is_program = installs || statement.contains(".exe") || statement.contains(".msi");
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
    let is_program = has_extension(&statement.written_command(), &["exe"])
        && !CONSOLE_PROGRAMS.contains(&name.as_str());
    let is_silent = statement.parameters_of_programs().any(|option| {
        ["quiet", "silent", "verysilent", "install", "s", "qn"].contains(&option.as_str())
    });
    (is_program && is_silent && !statement.text.contains('|')).then(|| {
        let message = "PowerShell does not wait for a program with windows, as installers are: use \
            Start-Process -Wait";
        (Severity::Warning, message.to_owned())
    })
}

fn is_installer(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let file = lower.rsplit(['\\', '/']).next().unwrap_or_default();
    matches!(file, "msiexec" | "msiexec.exe")
        || has_extension(file, &["msi"])
        || (has_extension(file, &["exe"])
            && [
                "setup",
                "install",
                "vs_",
                "vc_redist",
                "vcredist",
                "redist",
                "ndp",
            ]
            .iter()
            .any(|part| file.contains(part)))
}

/// Reports commands that ask, which a build cannot answer.
pub(super) fn check_prompt(stage: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if !step.is("RUN") || stage.platform != Platform::Windows {
        return;
    }
    let file = findings.file;
    let is_confirmed = || {
        file.lines()
            .any(|line| line.contains("allowGlobalConfirmation"))
    };
    let is_trusted = || {
        file.lines().any(|line| {
            let line = line.to_ascii_lowercase();
            line.contains("trusted") || line.contains("trustrepository")
        })
    };
    for command in step.commands() {
        if command.has_input {
            continue;
        }
        let text = step.instruction.text().to_ascii_lowercase();
        let is_answered = [" -y", "--yes", "-confirm", "/y"]
            .iter()
            .any(|it| text.contains(it));
        if is_answered && command.program().starts_with('c') {
            continue;
        }
        // An account without a password has an empty answer.
        if command.program() == "runas" && text.contains("passwordreq") {
            continue;
        }
        let started = command.started();
        let command = started.as_ref().unwrap_or(command);
        // PowerShell's arguments are in a list.
        let is_list = started.is_some() && command.grammar.is_powershell();
        if is_list {
            continue;
        }
        let Some((severity, message, option)) = prompt(command, &is_confirmed, &is_trusted) else {
            continue;
        };
        let edit = option.and_then(|option| {
            let after = command.words.get(1)?;
            command.add_after(after, &[option])
        });
        let word = &command.words[0];
        match edit {
            Some(edit) => {
                let edits: &[Edit] = &[edit];
                findings.add_edits("prompt", severity, step.instruction, message, edits);
            }
            None => findings.add_at(
                "prompt",
                severity,
                (step.instruction, word.range.start),
                message,
            ),
        }
        return;
    }
}

fn prompt(
    command: &LintCommand,
    is_confirmed: &dyn Fn() -> bool,
    is_trusted: &dyn Fn() -> bool,
) -> Option<(Severity, &'static str, Option<&'static str>)> {
    let words = || {
        command
            .words
            .iter()
            .skip(1)
            .map(|word| word.value.to_ascii_lowercase())
    };
    let has = |names: &[&str]| words().any(|word| names.contains(&word.as_str()));
    let is_cmd = matches!(command.grammar, Grammar::Cmd | Grammar::Exec);
    match command.program().as_str() {
        "msiexec" if has(&["/i", "-i", "/x", "/package", "/a"]) => {
            let is_quiet = words().any(|word| {
                let option = word.trim_start_matches(['/', '-']);
                option.starts_with('q') || option == "passive"
            });
            let message = "msiexec without /qn opens a window and waits for it: add /qn";
            (!is_quiet && !words().any(|it| it.starts_with('$') || it.starts_with('%')))
                .then_some((Severity::Error, message, None))
        }
        "choco" | "cinst" | "chocolatey" => {
            let asks = has(&["install", "upgrade", "uninstall"]) || command.program() == "cinst";
            let is_answered = words().any(|word| confirms(&word));
            let message = "choco without -y asks before it installs: add -y";
            (asks && !is_answered && !is_confirmed()).then_some((
                Severity::Warning,
                message,
                Some("-y"),
            ))
        }
        "rd" | "rmdir" if is_cmd && has(&["/s"]) && !has(&["/q", "/s/q", "/q/s"]) => {
            let message = "rd /s without /q asks before it deletes: add /q";
            Some((Severity::Error, message, Some("/q")))
        }
        _ => console_prompt(command, is_trusted),
    }
}

/// A prompt of Windows itself or of PowerShell's gallery.
fn console_prompt(
    command: &LintCommand,
    is_trusted: &dyn Fn() -> bool,
) -> Option<(Severity, &'static str, Option<&'static str>)> {
    let words = || {
        let words = command.words.iter().skip(1);
        words.map(|word| word.value.to_ascii_lowercase())
    };
    let has = |names: &[&str]| words().any(|word| names.contains(&word.as_str()));
    let is_cmd = matches!(command.grammar, Grammar::Cmd | Grammar::Exec);
    match command.program().as_str() {
        "timeout" if !has(&["/?"]) && is_cmd => {
            let message = "timeout requires a console, which a build has not, and fails: use \
                ping -n, or Start-Sleep";
            let is_windows = has(&["/t", "-t"]) || words().all(|word| word.parse::<u32>().is_ok());
            is_windows.then_some((Severity::Error, message, None))
        }
        "del" | "erase" if is_cmd && !has(&["/q", "/f/q", "/q/f", "/s/q", "/q/s"]) => {
            let is_all = |word: &String| {
                let file = word.rsplit(['\\', '/']).next().unwrap_or_default();
                matches!(file, "*" | "*.*") && !word.starts_with('/')
            };
            let message = "del of all files asks before it deletes: add /q";
            words()
                .any(|word| is_all(&word))
                .then_some((Severity::Warning, message, None))
        }
        "date" | "time" if is_cmd && command.words.len() == 1 && command.files.is_empty() => {
            let message = "date and time ask for a new value: add /t";
            Some((Severity::Error, message, None))
        }
        "install-module" | "install-script" | "install-packageprovider" | "update-module"
            if !words().any(|it| {
                it.starts_with("-f") || it.starts_with("-confirm:") || it.starts_with('@')
            }) =>
        {
            let message =
                "this asks before it installs from a gallery that is not trusted: add -Force";
            (!is_trusted()).then_some((Severity::Warning, message, None))
        }
        "runas" => {
            let message = "runas asks for a password, and a build has no console";
            Some((Severity::Error, message, None))
        }
        "pause" if is_cmd => {
            let message = "pause waits for a key, and a build has no console";
            Some((Severity::Warning, message, None))
        }
        "read-host" => {
            let message = "Read-Host prompts, and a build has no console";
            Some((Severity::Error, message, None))
        }
        _ => None,
    }
}

/// Returns true for an option of choco that confirms, and for one that may.
fn confirms(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--") && word.contains('y');
    is_short
        || word.starts_with("--yes")
        || matches!(word, "--confirm" | "/y")
        || word.starts_with(['$', '%', '@'])
}
