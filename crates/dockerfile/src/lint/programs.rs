//! Programs that a published base image does not have, or not on its PATH.

use super::reference::Reference;
use super::stage::{Stage, StageBaseRef};
use super::words::{LintCommand, program_name};
use super::{Findings, Severity};

const RULE: &str = "missing-program";

/// Repositories of images with IIS.
const IIS: [&str; 3] = [
    "mcr.microsoft.com/windows/servercore/iis",
    "mcr.microsoft.com/dotnet/framework/aspnet",
    "mcr.microsoft.com/dotnet/framework/wcf",
];

pub(super) fn check(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let StageBaseRef::Image(reference) = &stage.base else {
        return;
    };
    if reference.is_windows_base() || is_without_pwsh(reference) {
        check_pwsh(stage, reference, findings);
    }
    check_appcmd(stage, reference, findings);
    check_python(stage, reference, findings);
    let is_framework = IIS.contains(&reference.repository.as_str())
        || reference.repository == "mcr.microsoft.com/dotnet/framework/runtime";
    if is_framework {
        check_dotnet(stage, reference, findings);
    }
}

/// Returns true for Microsoft's images of runtimes: those of the SDK have PowerShell 7.
fn is_without_pwsh(reference: &Reference) -> bool {
    [
        "mcr.microsoft.com/dotnet/aspnet",
        "mcr.microsoft.com/dotnet/runtime",
        "mcr.microsoft.com/windows/servercore/iis",
        "mcr.microsoft.com/dotnet/framework/aspnet",
        "mcr.microsoft.com/dotnet/framework/runtime",
    ]
    .contains(&reference.repository.as_str())
}

/// True for a command that the shell finds by its name on the PATH.
fn is_plain(command: &LintCommand) -> bool {
    let program = command.words.first();
    program.is_some_and(|word| !word.value.contains(['\\', '/', '%', '$']))
}

/// Reports PowerShell 7 on a base that does not have it.
fn check_pwsh(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    for step in &stage.steps {
        let instruction = step.instruction;
        let text = instruction.text().to_ascii_lowercase();
        let is_shell = step.is("SHELL")
            && instruction.exec_form().is_some_and(|words| {
                words
                    .first()
                    .is_some_and(|word| program_name(word) == "pwsh")
            });
        let command = step.commands().iter().find(|it| it.program() == "pwsh");
        if (is_shell && !text.contains(":\\")) || command.is_some_and(is_plain) {
            let message = format!(
                "{} has no pwsh: use powershell, or install it",
                reference.repository
            );
            let line = instruction.lines().0;
            findings.add(RULE, Severity::Error, line, message);
            return;
        }
        // Anything about it before may bring it.
        if text.contains("powershell") || text.contains("pwsh") {
            let is_call = step
                .commands()
                .iter()
                .any(|it| it.program() == "powershell");
            if !is_call && !step.is("SHELL")
                || text.contains("powershell-")
                || text.contains("install")
            {
                return;
            }
        }
    }
}

/// Reports `appcmd` without its folder, which no image with IIS has on its PATH.
fn check_appcmd(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    let mut has_iis = IIS.contains(&reference.repository.as_str());
    for step in &stage.steps {
        let text = step.instruction.text().to_ascii_lowercase();
        has_iis |= reference.is_windows_base()
            && ["web-server", "iis-webserver"]
                .iter()
                .any(|feature| text.contains(feature));
        let is_entered = ["path", "cd ", "location", "alias", "pushd", "mklink"];
        if text.contains("inetsrv")
            && (!step.is("RUN") || is_entered.iter().any(|part| text.contains(part)))
        {
            return;
        }
        let mut commands = step.commands().iter();
        let command = commands.find(|it| it.program() == "appcmd" && is_plain(it));
        let Some(command) = command.filter(|_| has_iis) else {
            continue;
        };
        let folder = if command.grammar.is_powershell() {
            "$env:windir"
        } else {
            "%windir%"
        };
        let message =
            format!("appcmd is not on the PATH: write {folder}\\System32\\inetsrv\\appcmd.exe");
        let at = (step.instruction, command.words[0].range.start);
        findings.add_at(RULE, Severity::Error, at, message);
    }
}

/// Reports `python3` on the official image, which for Windows has only `python`.
fn check_python(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    let repository = reference.repository.as_str();
    let name = repository.strip_prefix("docker.io/").unwrap_or(repository);
    let tag = reference.tag.as_deref().unwrap_or_default();
    if name.strip_prefix("library/").unwrap_or(name) != "python"
        || !tag.contains("windowsservercore")
    {
        return;
    }
    for step in &stage.steps {
        let mut commands = step.commands().iter();
        if let Some(command) = commands.find(|it| it.program() == "python3" && is_plain(it)) {
            let message = format!("{repository} has no python3 for Windows: write python");
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
        // A copy or a link of this name.
        if step
            .instruction
            .text()
            .to_ascii_lowercase()
            .contains("python3")
        {
            return;
        }
    }
}

/// Reports `dotnet` on an image of .NET Framework, which has only that.
fn check_dotnet(stage: &Stage<'_>, reference: &Reference, findings: &mut Findings<'_>) {
    for step in &stage.steps {
        let mut commands = step.commands().iter();
        if let Some(command) = commands.find(|it| it.program() == "dotnet" && is_plain(it)) {
            let message = format!(
                "{} has no dotnet: use mcr.microsoft.com/dotnet/aspnet or runtime, or install it",
                reference.repository
            );
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at(RULE, Severity::Error, at, message);
            return;
        }
        // Anything that names it, or a script, may bring it.
        let text = step.instruction.text().to_ascii_lowercase();
        let brings = ["dotnet", ".ps1", ".cmd", ".bat", "choco", "path"];
        if brings.iter().any(|part| text.contains(part)) {
            return;
        }
    }
}
