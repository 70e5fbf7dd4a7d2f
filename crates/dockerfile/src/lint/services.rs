//! Programs that keep a container running.

use std::cell::LazyCell;

use super::effects::is_shell;
use super::prelude::*;

/// Reports `ServiceMonitor` with arguments that it does not take, or where it is not.
pub(super) fn check_monitor(stage: &Stage<'_>) -> Vec<Finding> {
    let is_start = |it: &&LintStep<'_>| it.is("CMD") || it.is("ENTRYPOINT");
    let starts = stage.steps.iter().filter(is_start);
    let is_brought = LazyCell::new(|| stage.steps.first().is_some_and(may_bring_monitor));
    let of_commands = starts.filter_map(|step| {
        let command = step.find(|it| it.program() == "servicemonitor")?;
        check_command(stage, (step, command), &is_brought)
    });
    let under_monitor = check_command_under_monitor(stage).into_iter();
    under_monitor.chain(of_commands).collect()
}

/// Reports a `CMD` whose words become arguments of the `ServiceMonitor` of `ENTRYPOINT`.
fn check_command_under_monitor(stage: &Stage<'_>) -> Option<Finding> {
    let step = stage.all("CMD").next_back()?;
    let words = step.instruction.exec_form();
    if let Some(entrypoint) = stage.all("ENTRYPOINT").next_back() {
        let message = "ENTRYPOINT is ServiceMonitor, which gets this CMD as arguments and does not run \
            it: remove CMD, or start it in ENTRYPOINT";
        let is_lost = monitors_service(entrypoint) && words.is_none_or(|words| is_command(&words));
        return is_lost.then(|| step.finding(message).warning());
    }
    let has_monitor = stage.reference().is_some_and(Reference::has_iis);
    let words = words.unwrap_or_default();
    // Arguments of a service's name.
    let is_argument = words.first().is_some_and(|word| word.starts_with('-'));
    let message = "the base's ENTRYPOINT is ServiceMonitor, which gets this CMD as arguments and does \
        not run it: set ENTRYPOINT";
    (has_monitor && !is_argument).then(|| step.finding(message).warning())
}

/// True for an `ENTRYPOINT` of `ServiceMonitor` with a service, in exec form.
fn monitors_service(step: &LintStep<'_>) -> bool {
    let words = step.instruction.exec_form().unwrap_or_default();
    let is_monitor = |program: &String| program_name(program) == "servicemonitor";
    let has_service = words.get(1).is_some_and(|word| !word.starts_with('-'));
    words.first().is_some_and(is_monitor) && has_service
}

/// True for a program with its arguments. A word alone, or with options, may be an application pool.
fn is_command(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let name = program_name(program);
    let has_argument = arguments.first().is_some_and(|word| !word.starts_with('-'));
    has_argument
        || matches!(name.as_str(), "powershell" | "pwsh" | "cmd")
        || has_extension(program, &["exe", "cmd", "bat", "ps1"])
}

fn check_command(
    stage: &Stage<'_>,
    (step, command): (&LintStep<'_>, &LintCommand),
    is_brought: &LazyCell<bool, impl FnOnce() -> bool>,
) -> Option<Finding> {
    let is_given = step.is("ENTRYPOINT") && stage.has("CMD") || stage.reference().is_none();
    if command.arguments().is_empty() && !is_given {
        let message = "ServiceMonitor ends without the name of a service: add \"w3svc\", or yours";
        return Some(step.finding_at(command.start(), message));
    }
    if **is_brought {
        return None;
    }
    if let Some(message) = unknown_argument(command) {
        return Some(step.finding_at(command.start(), message).warning());
    }
    let reference = stage.reference()?;
    let is_missing = reference.is_windows_base() && !step.file.mentions(&["copy --from"]);
    let message = format!(
        "{} has no ServiceMonitor.exe: use mcr.microsoft.com/windows/servercore/iis, or add it",
        reference.repository
    );
    is_missing.then(|| step.finding_at(command.start(), message))
}

/// True if an instruction of a step's file may bring a `ServiceMonitor`, which may be newer than the
/// base's.
fn may_bring_monitor(step: &LintStep<'_>) -> bool {
    step.file.instructions.iter().any(|it| {
        let starts = matches!(it.keyword.as_str(), "CMD" | "ENTRYPOINT" | "HEALTHCHECK");
        let text = || it.full_text().to_ascii_lowercase();
        !starts && text().contains("servicemonitor")
    })
}

/// Message about an argument that the `ServiceMonitor` of Microsoft's images does not take: its
/// options are those of version 2.1.
fn unknown_argument(command: &LintCommand) -> Option<String> {
    let mut arguments = command.arguments().iter().map(|word| word.value.as_str());
    let first = arguments.by_ref().take(2);
    let mut roles = first.zip(["a service", "an application pool"]);
    let option = roles.find(|(word, _)| word.starts_with(['-', '/']));
    if let Some((word, what)) = option {
        return Some(format!(
            "ServiceMonitor before version 2.1 takes \"{word}\" for {what}, and ends: leave it out, or \
             add a newer one"
        ));
    }
    let word = arguments.next()?;
    Some(format!(
        "ServiceMonitor before version 2.1 ignores \"{word}\": leave it out, or add a newer one"
    ))
}

/// Reports a command that ends at once, and the container with it.
pub(super) fn check_exit(stage: &Stage<'_>) -> Option<Finding> {
    let mut steps = stage.steps.iter().rev();
    let has_entrypoint = stage.has("ENTRYPOINT");
    let step = steps.find(|step| step.is("ENTRYPOINT") || (step.is("CMD") && !has_entrypoint))?;
    let commands = step.commands().iter();
    let own: Vec<&LintCommand> = commands.filter(|it| !is_shell(it)).collect();
    let first = own.first()?;
    let text = step.lower_text();
    let is_open = text.contains("-noexit") || text.contains("/k");
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
    let message = "this ends as soon as the program is started, and the container with it: use \
        ServiceMonitor.exe, or a loop";
    // What follows it in an array is a command of its own.
    let goes_on = |it: &&LintCommand| it.any(|word| word.ends_with(';'));
    let ends = !is_open && own.iter().all(starts) && !own.iter().any(goes_on);
    ends.then(|| step.finding_at(first.start(), message))
}
