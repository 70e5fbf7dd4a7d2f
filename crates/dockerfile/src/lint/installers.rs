//! Installers that PowerShell starts and does not wait for.

use super::effects::powershell_scripts;
use super::entrypoint::has_extension;
use super::reference::Platform;
use super::stage::{LintStep, Stage};
use super::statements::PowerShellStatement;
use super::words::Grammar;
use super::{Findings, Severity};

/// Reports installers that PowerShell starts and does not wait for.
pub(super) fn check_wait(stage: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if !step.is("RUN") || stage.platform != Platform::Windows {
        return;
    }
    // That of an installer waits for its own parts.
    let whole = step.instruction.text().to_ascii_lowercase();
    let whole = whole.replace("--wait", "");
    let waits = [
        "waitforexit",
        "wait-process",
        "-wait",
        "/wait",
        "/w ",
        "hasexited",
        "get-process",
    ];
    if waits.iter().any(|wait| whole.contains(wait)) || keeps_process(&whole) {
        return;
    }
    for script in powershell_scripts(step) {
        let all = &script.statements;
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

/// Returns true if a script keeps a process that it starts, and does something with it later.
fn keeps_process(script: &str) -> bool {
    let Some((before, after)) = script.split_once("start-process") else {
        return false;
    };
    let name = before.trim_end().strip_suffix('=').map(str::trim_end);
    let name = name.and_then(|before| before.rsplit([' ', ';', '\n', '"']).next());
    let name = name.filter(|name| name.starts_with('$'));
    name.is_some_and(|name| after.contains("-passthru") && after.contains(name))
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
