//! Programs that keep a container running.

use super::reference::Platform;
use super::stage::{LintStep, Stage, StageBaseRef};
use super::words::LintCommand;
use super::{Findings, LintFile, Severity};

/// Reports `ServiceMonitor` with arguments that it ignores, or where it is not.
pub(super) fn check_monitor(linted: &LintFile<'_>, findings: &mut Findings<'_>) {
    for stage in &linted.stages {
        if stage.platform != Platform::Windows {
            continue;
        }
        check_command_under_monitor(stage, findings);
        for step in &stage.steps {
            let is_start = step.is("CMD") || step.is("ENTRYPOINT");
            let commands = step.commands().iter();
            let monitor = commands
                .filter(|_| is_start)
                .find(|it| it.program() == "servicemonitor");
            if let Some(command) = monitor {
                check_command(stage, step, command, findings);
            }
        }
    }
}

/// Reports a `CMD` whose words become arguments of the base's `ServiceMonitor`.
fn check_command_under_monitor(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let StageBaseRef::Image(reference) = &stage.base else {
        return;
    };
    let has_monitor = [
        "mcr.microsoft.com/windows/servercore/iis",
        "mcr.microsoft.com/dotnet/framework/aspnet",
        "mcr.microsoft.com/dotnet/framework/wcf",
    ]
    .contains(&reference.repository.as_str());
    if !has_monitor || stage.has("ENTRYPOINT") {
        return;
    }
    if let Some(step) = stage.all("CMD").next_back() {
        let words = step.instruction.exec_form().unwrap_or_default();
        // Arguments of a service's name.
        if words.first().is_some_and(|word| word.starts_with('-')) {
            return;
        }
        let message = "the base's ENTRYPOINT is ServiceMonitor, which gets this CMD as arguments and \
            does not run it: set ENTRYPOINT";
        let line = step.line();
        findings.add("service-monitor", Severity::Warning, line, message);
    }
}

fn check_command(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    command: &LintCommand,
    findings: &mut Findings<'_>,
) {
    let rule = "service-monitor";
    let at = (step.instruction, command.words[0].range.start);
    let arguments = &command.words[1..];
    let option = arguments
        .iter()
        .find(|word| word.value.starts_with(['-', '/']));
    let is_given =
        step.is("ENTRYPOINT") && stage.has("CMD") || !matches!(stage.base, StageBaseRef::Image(_));
    if arguments.is_empty() && !is_given {
        let message = "ServiceMonitor ends without the name of a service: add \"w3svc\", or yours";
        findings.add_at(rule, Severity::Error, at, message);
        return;
    }
    let ignored = option.or_else(|| arguments.get(2));
    if let Some(ignored) = ignored {
        let message = format!(
            "ServiceMonitor takes a service and at most an application pool, and ignores \"{}\"",
            ignored.value
        );
        findings.add_at(rule, Severity::Warning, at, message);
        return;
    }
    let StageBaseRef::Image(reference) = &stage.base else {
        return;
    };
    let text = findings.file.lower_text();
    // Once in the command; anything more may bring it.
    let is_brought = text.matches("servicemonitor").count() > 1;
    if reference.is_windows_base() && !is_brought && !text.contains("copy --from") {
        let message = format!(
            "{} has no ServiceMonitor.exe: use mcr.microsoft.com/windows/servercore/iis, or add it",
            reference.repository
        );
        findings.add_at(rule, Severity::Error, at, message);
    }
}

/// Reports a command that ends at once, and the container with it.
pub(super) fn check_exit(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let mut steps = stage.steps.iter().rev();
    let has_entrypoint = stage.has("ENTRYPOINT");
    let last = steps.find(|step| step.is("ENTRYPOINT") || (step.is("CMD") && !has_entrypoint));
    let Some(step) = last else { return };
    let commands = step.commands();
    let is_shell = |name: &str| matches!(name, "cmd" | "powershell" | "pwsh");
    let own: Vec<&LintCommand> = commands
        .iter()
        .filter(|it| !is_shell(it.program()))
        .collect();
    let text = step.lower_text();
    if text.contains("-noexit") || text.contains("/k") || own.is_empty() {
        return;
    }
    let starts = |command: &&LintCommand| {
        let second = command.words.get(1).map_or("", |word| word.value.as_str());
        match command.program() {
            "start-service" | "iisreset" => true,
            "net" | "sc" => second.eq_ignore_ascii_case("start"),
            // A script may have this name.
            "start" if command.words[0].value.contains(['\\', '/']) => false,
            "start-process" | "saps" | "start" => !command.words.iter().any(|word| {
                let option = word.value.to_ascii_lowercase();
                option.starts_with("-w") || option.starts_with("/w") || option == "/b"
            }),
            _ => false,
        }
    };
    if own.iter().all(starts) {
        let message = "this ends as soon as the program is started, and the container with it: use \
            ServiceMonitor.exe, or a loop";
        let at = (step.instruction, own[0].words[0].range.start);
        findings.add_at("container-exits", Severity::Warning, at, message);
    }
}
