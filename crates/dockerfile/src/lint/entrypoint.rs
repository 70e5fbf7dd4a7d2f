//! `CMD` and `ENTRYPOINT` in shell form: a shell starts the program as its child. A script or
//! command that the shell runs itself is correct.

use std::collections::HashSet;

use wincimg_scripts::script;
use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::quoting::{argv, cmd, exec_form, powershell};

use super::shell::BaseShell;
use super::stage::{LintStep, Stage};
use super::{Findings, LintRule, Severity, args_escaped};
use crate::source::Instruction;

/// `before` is the number of findings before this stage.
pub(super) fn check(stage: &Stage<'_>, before: usize, findings: &mut Findings<'_>) {
    let of_stage = findings.found.get(before..).unwrap_or_default();
    let misread = of_stage.iter().filter(|finding| {
        matches!(
            finding.rule,
            LintRule::QuotesUnderPowershell
                | LintRule::QuotesInNestedShell
                | LintRule::BackslashQuotesUnderCmd
        )
    });
    let misread: HashSet<usize> = misread.map(|finding| finding.line).collect();
    let has_program = stage.steps.iter().any(|step| {
        step.instruction.keyword == "ENTRYPOINT" && step.instruction.exec_form().is_some()
    });
    for step in &stage.steps {
        check_step(stage, step, has_program, &misread, findings);
    }
}

fn check_step(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    has_program: bool,
    misread: &HashSet<usize>,
    findings: &mut Findings<'_>,
) {
    let instruction = step.instruction;
    let text = instruction.text();
    let is_start = matches!(instruction.keyword.as_str(), "CMD" | "ENTRYPOINT");
    if !is_start || text.is_empty() || instruction.exec_form().is_some() {
        return;
    }
    if instruction.looks_like_json() {
        check_broken_json(stage, instruction, findings);
        return;
    }
    if has_program && instruction.keyword == "CMD" {
        let message = "in shell form the program of ENTRYPOINT gets the shell and its options as its \
            first arguments; use the exec form";
        report(instruction, Severity::Warning, message, None, findings);
        return;
    }
    if is_the_shells_own(step) {
        return;
    }
    let message = "in shell form a shell starts the program, which then may not get the shutdown \
        event; start the program directly, in exec form";
    // The program gets other arguments than intended; another finding corrects them.
    let (first, last) = instruction.lines();
    let is_misread = (first..=last).any(|line| misread.contains(&(line + 1)));
    let argv = program(step).filter(|argv| !is_misread && !args_escaped::is_bare(stage, argv));
    report(instruction, Severity::Warning, message, argv, findings);
}

/// The commonest reason for an invalid JSON array: single backslashes.
fn check_broken_json(stage: &Stage<'_>, instruction: &Instruction, findings: &mut Findings<'_>) {
    let doubled = instruction.text().replace('\\', "\\\\");
    let argv = serde_json::from_str::<Vec<String>>(&doubled).ok();
    // In exec form a program and its arguments in one word would be a file name.
    let argv = argv.filter(|argv| argv.first().is_some_and(|program| is_file_name(program)));
    let message = if argv.is_some() {
        "invalid JSON, so the daemon runs this in shell form: double every backslash"
    } else {
        "invalid JSON array of strings, so the daemon runs this in shell form"
    };
    let argv = argv.filter(|argv| !args_escaped::is_bare(stage, argv));
    report(instruction, Severity::Error, message, argv, findings);
}

fn report(
    instruction: &Instruction,
    severity: Severity,
    message: &str,
    argv: Option<Vec<String>>,
    findings: &mut Findings<'_>,
) {
    let rule = LintRule::ShellFormEntrypoint;
    match argv {
        Some(argv) => {
            let correction = findings.file.rewrite(instruction, &exec_form(&argv));
            findings.add_correction(rule, severity, message, correction);
        }
        None => findings.add(rule, severity, instruction.lines().0, message),
    }
}

/// Returns true if the text is a single command that the shell runs itself.
fn is_the_shells_own(step: &LintStep<'_>) -> bool {
    let text = step.instruction.text();
    match step.shell {
        // Most images use cmd, which runs batch files itself.
        BaseShell::Cmd | BaseShell::Unknown => {
            let has_operator = text.contains(['&', '|', '<', '>']);
            let name = argv::split(text.trim(), ArgvParser::CRuntime).swap_remove(0);
            let is_script = has_extension(&name, &["cmd", "bat"]);
            let is_cmds = step.shell == BaseShell::Cmd && cmd::is_built_in(&name);
            !has_operator && (is_script || is_cmds)
        }
        BaseShell::PowerShell => {
            let script = script::read(&powershell::script(text));
            matches!(script.only_command(), Some(name)
                if has_extension(name, &["ps1"]) || script::is_cmdlet(name))
        }
        BaseShell::Other => false,
    }
}

/// Returns true if a file name ends in one of these extensions, in any case.
pub(super) fn has_extension(file: &str, extensions: &[&str]) -> bool {
    let found = file.rsplit_once('.').map(|(_, extension)| extension);
    found.is_some_and(|found| extensions.iter().any(|it| found.eq_ignore_ascii_case(it)))
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
    let name = argv.first()?;
    let file = name.rsplit(['\\', '/']).next().unwrap_or_default();
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

/// Returns true if a word can be a program's name: with a space it needs an extension.
fn is_file_name(word: &str) -> bool {
    !word.contains(' ') || has_extension(word, &["exe"])
}
