//! `RUN` lines whose failure or effect is lost.

use super::reference::Platform;
use super::shell::BaseShell;
use super::stage::{LintStep, Stage, StageBaseRef};
use super::statements::{PowerShellStatement, statements};
use super::words::{Grammar, LintCommand, LintScript, NextOperator};
use super::{Findings, Severity};

const STOP: &str = "$ErrorActionPreference = 'Stop'";

/// Statements of a PowerShell script of an instruction.
pub(super) fn script_statements(
    step: &LintStep<'_>,
    script: &LintScript,
) -> Vec<PowerShellStatement> {
    let text = step.instruction.part(script.range.clone());
    statements(text)
}

/// Scripts for PowerShell of an instruction.
pub(super) fn powershell_scripts<'a>(
    step: &'a LintStep<'_>,
) -> impl Iterator<Item = &'a LintScript> {
    let scripts = step.scripts().iter();
    scripts.filter(|script| script.grammar.is_powershell())
}

/// Reports the first `RUN` of a stage in which PowerShell goes on after an error.
pub(super) fn check_error_action(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    // The published images with PowerShell as their shell stop at errors.
    let mut stops = stage.begins_with_powershell();
    for step in &stage.steps {
        let text = step.instruction.text().to_ascii_lowercase();
        if step.is("SHELL") || step.is("ENV") {
            stops = text.contains("erroractionpreference") || (stops && !step.is("SHELL"));
        }
        let is_stopped = text.contains("erroractionpreference") || text.contains("erroraction");
        if !step.is("RUN") || is_stopped {
            continue;
        }
        for script in powershell_scripts(step) {
            if stops && !script.is_nested {
                continue;
            }
            let all = script_statements(step, script);
            let Some((_, before)) = all.split_last() else {
                continue;
            };
            let Some(risky) = before.iter().find(|it| can_fail(it)) else {
                continue;
            };
            let message = format!(
                "PowerShell continues after an error of {}, and the build may succeed without it: \
                 begin with {STOP};",
                risky.written_command()
            );
            let line = step.line_at(script.range.start + risky.at);
            findings.add("error-action", Severity::Warning, line, message);
            return;
        }
    }
}

/// Commands that fetch, unpack or install, and whose error must end a build.
fn can_fail(statement: &PowerShellStatement) -> bool {
    if statement.depth > 0 || statement.contains("-erroraction") {
        return false;
    }
    let name = statement.written_command();
    let (verb, _) = name.split_once('-').unwrap_or(("", ""));
    let is_cmdlet = wincimg_scripts::script::is_cmdlet(&name)
        && matches!(
            verb,
            "invoke" | "expand" | "install" | "copy" | "move" | "enable"
        )
        && !matches!(
            name.as_str(),
            "set-executionpolicy" | "new-object" | "start-sleep" | "set-strictmode"
        );
    is_cmdlet
        || matches!(
            name.as_str(),
            "iwr" | "curl" | "wget" | "irm" | "copy" | "cp" | "move" | "mv"
        )
}

/// Reports `robocopy`, whose exit code is not 0 when it copies.
pub(super) fn check_robocopy(stage: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if !step.is("RUN") || stage.platform != Platform::Windows {
        return;
    }
    let commands = step.commands();
    let text = step.instruction.text().to_ascii_lowercase();
    let is_handled = [
        "errorlevel",
        "exitcode",
        "exit 0",
        "exit /b",
        "|| ver",
        "|| rem",
        "|| echo",
        "|| cd",
        "|| (",
        "exit $",
    ]
    .iter()
    .any(|handled| text.contains(handled));
    for (index, command) in commands.iter().enumerate() {
        if command.program() != "robocopy" || is_handled {
            continue;
        }
        let is_last =
            commands[index + 1..].iter().all(is_shell) || command.next == NextOperator::End;
        let counts = match command.next {
            NextOperator::And => true,
            NextOperator::Or | NextOperator::Pipe => false,
            NextOperator::End | NextOperator::Other => is_last,
        };
        if !counts {
            continue;
        }
        let position = command.words[0].range.start;
        let message = "robocopy exits with 1 when it copies files, which ends the build: add \
            `& if errorlevel 8 exit 1` and `exit 0`, or use xcopy";
        let at = (step.instruction, position);
        findings.add_at("robocopy-exit-code", Severity::Error, at, message);
        return;
    }
}

fn is_shell(command: &LintCommand) -> bool {
    matches!(command.program().as_str(), "powershell" | "pwsh" | "cmd")
}

/// Settings that a command makes for its own line only.
fn lost_effect(command: &LintCommand) -> Option<(&'static str, &'static str)> {
    let first = command.words.first()?.value.to_ascii_lowercase();
    let second = command.words.get(1).map_or("", |word| word.value.as_str());
    let is_cmd = command.grammar == Grammar::Cmd;
    match command.program().as_str() {
        "set" if is_cmd && second.contains('=') && !second.starts_with('/') => {
            Some(("variable", "ENV"))
        }
        "cd" | "chdir" | "pushd" if !second.is_empty() => Some(("folder", "WORKDIR")),
        "set-location" | "push-location" | "sl" => Some(("folder", "WORKDIR")),
        _ if first.starts_with("$env:")
            && (first.contains('=') || second.starts_with('=') || second == "+=") =>
        {
            Some(("variable", "ENV"))
        }
        _ => None,
    }
}

/// `refreshenv` of Chocolatey before another command of PowerShell.
fn lost_refresh<'a>(step: &LintStep<'_>, commands: &[&'a LintCommand]) -> Option<&'a LintCommand> {
    let text = step.instruction.text().to_ascii_lowercase();
    let is_imported = [
        "import-module",
        "$profile",
        "chocolateyprofile",
        "update-sessionenv",
    ]
    .iter()
    .any(|part| text.contains(part));
    let (_, before) = commands.split_last()?;
    let mut refreshes = before.iter().filter(|_| !is_imported);
    let found = refreshes.find(|it| it.grammar.is_powershell() && it.program() == "refreshenv");
    found.copied()
}

/// Starts a service in the build.
fn starts_service(command: &LintCommand) -> bool {
    let second = command.words.get(1).map_or("", |word| word.value.as_str());
    match command.program().as_str() {
        "net" | "sc" => second.eq_ignore_ascii_case("start") && command.words.len() > 2,
        "start-service" | "restart-service" => true,
        _ => false,
    }
}

/// Reports a folder, variable or service that ends with its line.
pub(super) fn check_line_effects(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    findings: &mut Findings<'_>,
) {
    let is_known = matches!(step.shell, BaseShell::Cmd | BaseShell::PowerShell)
        || (step.shell == BaseShell::Unknown && stage.platform == Platform::Windows);
    if !step.is("RUN") || stage.is_linux() || !is_known {
        return;
    }
    let commands: Vec<&LintCommand> = step.commands().iter().filter(|it| !is_shell(it)).collect();
    // What separates commands of another shell is unknown.
    if step.shell == BaseShell::Unknown && step.instruction.text().split_whitespace().count() != 2 {
        return;
    }
    let tail = commands
        .iter()
        .rev()
        .take_while(|it| lost_effect(it).is_some());
    let count = tail.clone().count();
    if let Some(command) = tail.last().copied()
        && let Some((what, instead)) = lost_effect(command)
    {
        let is_whole = count == commands.len();
        // The installer that such a line follows sets PATH itself.
        let is_path = command
            .words
            .iter()
            .any(|word| word.value.to_ascii_lowercase().contains("path"));
        let is_condition = matches!(command.next, NextOperator::Pipe | NextOperator::Or);
        // Other commands, which no operator separates from this one.
        let (first, last) = (command.words.first(), command.words.last());
        let is_joined = first.zip(last).is_some_and(|(first, last)| {
            step.line_at(first.range.start) != step.line_at(last.range.start)
        });
        if is_condition || is_joined || (is_path && !is_whole) {
            return;
        }
        let severity = if is_whole {
            Severity::Error
        } else {
            Severity::Warning
        };
        let message = format!(
            "this {what} ends with its RUN: each RUN is a process of its own; use {instead}"
        );
        let at = (step.instruction, command.words[0].range.start);
        findings.add_at("lost-with-line", severity, at, message);
        return;
    }
    if let Some(command) = lost_refresh(step, &commands) {
        let message = "refreshenv is a batch file, and changes nothing in this PowerShell: import \
            chocolateyProfile.psm1, or go on in the next RUN";
        let at = (step.instruction, command.words[0].range.start);
        findings.add_at("lost-with-line", Severity::Warning, at, message);
        return;
    }
    let Some(last) = commands.last().filter(|it| starts_service(it)) else {
        return;
    };
    let message = "a service that a RUN starts does not run in containers: start it in CMD or \
        ENTRYPOINT, or set its start type";
    let at = (step.instruction, last.words[0].range.start);
    findings.add_at("lost-with-line", Severity::Warning, at, message);
}

const MACHINE: &str = "setx cuts the PATH after 1024 characters and writes the user's part and the \
    values of variables into the machine's; use [Environment]::SetEnvironmentVariable";

/// Reports variables that setx sets for a user other than the container's.
fn check_setx_user(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    for (index, step) in stage.steps.iter().enumerate() {
        let Some(command) = step.commands().iter().find(|it| it.program() == "setx") else {
            continue;
        };
        let is_machine = command.words.iter().any(|word| {
            ["/m", "-m", "/s"]
                .iter()
                .any(|name| word.eq_ignore_case(name))
                || word.value.starts_with('%')
        });
        let mut later = stage.steps[index..].iter();
        if step.is("RUN") && !is_machine && later.any(|step| step.is("USER")) {
            let message = "setx without /M sets the variable for the user of the build, and the \
                container runs as another: use ENV";
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at("setx-path", Severity::Warning, at, message);
        }
    }
}

/// Reports `setx PATH` with the whole PATH.
pub(super) fn check_setx(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    check_setx_user(stage, findings);
    let mut count = 0;
    for step in stage.steps.iter().filter(|step| step.is("RUN")) {
        for command in step.commands() {
            if command.program() != "setx" || command.grammar != Grammar::Cmd {
                continue;
            }
            let has = |name: &str| command.words.iter().any(|word| word.eq_ignore_case(name));
            let text = command
                .words
                .iter()
                .map(|word| word.value.to_ascii_lowercase());
            if !has("path") || !text.clone().any(|word| word.contains("%path%")) {
                continue;
            }
            count += 1;
            let is_machine = has("/m") || has("-m");
            let (severity, message) = match is_machine {
                // `%ARGUMENTS%` may have it.
                false
                    if text
                        .clone()
                        .any(|word| word.starts_with('%') && word.ends_with('%')) =>
                {
                    continue;
                }
                false => (
                    if count > 1 {
                        Severity::Warning
                    } else {
                        Severity::Note
                    },
                    "setx without /M adds the machine's PATH to the user's, and cuts it after 1024 \
                     characters: add /M",
                ),
                true if count > 1 => (Severity::Note, MACHINE),
                // Nano Server has no other program for it.
                true if stage.is_nano_server() => continue,
                true => (Severity::Note, MACHINE),
            };
            let at = (step.instruction, command.words[0].range.start);
            findings.add_at("setx-path", severity, at, message);
        }
    }
}

/// Reports web requests whose answer Internet Explorer would parse.
pub(super) fn check_basic_parsing(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    findings: &mut Findings<'_>,
) {
    if stage.platform != Platform::Windows {
        return;
    }
    for script in step.scripts() {
        if script.grammar != Grammar::PowerShell {
            continue;
        }
        let text = step.instruction.full_text().to_ascii_lowercase();
        if text.contains("psdefaultparametervalues") {
            continue;
        }
        let all = script_statements(step, script);
        let request = all.iter().find(|it| {
            let lower = it.text.to_ascii_lowercase();
            let name = it.written_command();
            let is_first = matches!(name.as_str(), "invoke-webrequest" | "iwr" | "curl" | "wget");
            (is_first || lower.contains("(invoke-webrequest") || lower.contains("(iwr "))
                && !it.has_parameter("usebasicparsing", 4)
                && !it.has_parameter("outfile", 1)
                && !lower.contains("-useb")
                && !lower.contains("-outf")
                && !it.text.contains('@')
        });
        let Some(request) = request else { continue };
        let message = "without -UseBasicParsing, Windows PowerShell reads the answer with Internet \
            Explorer, which containers do not have";
        let line = step.line_at(script.range.start + request.at);
        findings.add("basic-parsing", Severity::Warning, line, message);
        return;
    }
}

impl Stage<'_> {
    fn is_nano_server(&self) -> bool {
        matches!(&self.base, StageBaseRef::Image(reference) if reference.is_nano_server())
    }

    /// True if the base's shell is PowerShell.
    fn begins_with_powershell(&self) -> bool {
        let StageBaseRef::Image(_) = self.base else {
            return true;
        };
        let mut steps = self.steps.iter().take_while(|step| !step.is("SHELL"));
        steps.any(|step| step.shell == BaseShell::PowerShell)
    }
}
