//! Programs that keep a container running.

use super::effects::is_shell;
use super::stage::{LintStep, Stage, StageBaseRef};
use super::words::LintCommand;
use super::{Findings, Severity};

const RULE: &str = "service-monitor";

/// Reports `ServiceMonitor` with arguments that it ignores, or where it is not.
pub(super) fn check_monitor(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    check_command_under_monitor(stage, findings);
    let is_start = |it: &&LintStep<'_>| it.is("CMD") || it.is("ENTRYPOINT");
    for step in stage.steps.iter().filter(is_start) {
        let mut commands = step.commands().iter();
        if let Some(command) = commands.find(|it| it.program() == "servicemonitor") {
            check_command(stage, step, command, findings);
        }
    }
}

/// Reports a `CMD` whose words become arguments of the base's `ServiceMonitor`.
fn check_command_under_monitor(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let StageBaseRef::Image(reference) = &stage.base else {
        return;
    };
    if !reference.has_iis() || stage.has("ENTRYPOINT") {
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
        findings.add(RULE, Severity::Warning, step.line(), message);
    }
}

fn check_command(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    command: &LintCommand,
    findings: &mut Findings<'_>,
) {
    let line = step.line_of(command);
    let arguments = command.arguments();
    let option = arguments
        .iter()
        .find(|word| word.value.starts_with(['-', '/']));
    let is_given =
        step.is("ENTRYPOINT") && stage.has("CMD") || !matches!(stage.base, StageBaseRef::Image(_));
    if arguments.is_empty() && !is_given {
        let message = "ServiceMonitor ends without the name of a service: add \"w3svc\", or yours";
        findings.add(RULE, Severity::Error, line, message);
        return;
    }
    let ignored = option.or_else(|| arguments.get(2));
    if let Some(ignored) = ignored {
        let message = format!(
            "ServiceMonitor takes a service and at most an application pool, and ignores \"{}\"",
            ignored.value
        );
        findings.add(RULE, Severity::Warning, line, message);
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
        findings.add(RULE, Severity::Error, line, message);
    }
}

/// Reports a command that ends at once, and the container with it.
pub(super) fn check_exit(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let mut steps = stage.steps.iter().rev();
    let has_entrypoint = stage.has("ENTRYPOINT");
    let last = steps.find(|step| step.is("ENTRYPOINT") || (step.is("CMD") && !has_entrypoint));
    let Some(step) = last else { return };
    let commands = step.commands().iter();
    let own: Vec<&LintCommand> = commands.filter(|it| !is_shell(it)).collect();
    let text = step.lower_text();
    if text.contains("-noexit") || text.contains("/k") || own.is_empty() {
        return;
    }
    let starts = |command: &&LintCommand| {
        match command.program() {
            "start-service" | "iisreset" => true,
            "net" | "sc" => command.word(1).eq_ignore_ascii_case("start"),
            // A script may have this name.
            "start" if command.word(0).contains(['\\', '/']) => false,
            "start-process" | "saps" | "start" => {
                !command.any(|it| it.starts_with("-w") || it.starts_with("/w") || it == "/b")
            }
            _ => false,
        }
    };
    if own.iter().all(starts) {
        let message = "this ends as soon as the program is started, and the container with it: use \
            ServiceMonitor.exe, or a loop";
        let line = step.line_of(own[0]);
        findings.add("container-exits", Severity::Warning, line, message);
    }
}
