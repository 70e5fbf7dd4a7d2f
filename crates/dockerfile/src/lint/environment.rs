//! `ENV PATH` with `%PATH%`, which only cmd expands.

use super::shell::BaseShell;
use super::stage::{LintStep, Stage, StageBaseRef};
use super::{Findings, LintRule, Severity};
use crate::source::Instruction;

pub(super) fn check(stage: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if step.instruction.keyword != "ENV" {
        return;
    }
    let Some((value, is_only)) = path(step.instruction) else {
        return;
    };
    let Some(name) = variable(value) else {
        return;
    };
    let rule = LintRule::PathNotExpanded;
    let message = format!(
        "ENV does not expand %{name}%, and this PATH hides the one in the registry; set it with \
         RUN setx /M PATH, or list the folders; a recipe's `path` adds to it"
    );
    match correction(stage, step, value) {
        Some(line) if is_only => {
            let mut correction = findings.file.rewrite(step.instruction, "");
            correction.text = line;
            findings.add_correction(rule, Severity::Error, message, correction);
        }
        _ => findings.add(rule, Severity::Error, step.instruction.lines().0, message),
    }
}

/// Unquoted value of `PATH` in an `ENV`, and true if the `ENV` sets nothing else.
fn path(instruction: &Instruction) -> Option<(&str, bool)> {
    let text = instruction.text();
    let lower = text.to_ascii_lowercase();
    if let Some(value) = lower.strip_prefix("path ") {
        let value = &text[text.len() - value.len()..];
        return Some((value.trim(), true));
    }
    let at = if lower.starts_with("path=") {
        0
    } else {
        lower.find(" path=")? + 1
    };
    let rest = &text[at + "path=".len()..];
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    Some((value, at == 0 && after.trim().is_empty()))
}

/// First `%NAME%` in a value.
fn variable(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once('%')?;
    let (name, _) = rest.split_once('%')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')');
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Equivalent `setx` line, if it certainly works: as an administrator, under cmd.
fn correction(stage: &Stage<'_>, step: &LintStep<'_>, value: &str) -> Option<String> {
    let StageBaseRef::Image(reference) = &stage.base else {
        return None;
    };
    let is_server_core = reference.repository.ends_with("windows/servercore");
    let has_user = stage
        .steps
        .iter()
        .any(|step| step.instruction.keyword == "USER");
    let is_plain = !value.contains(['"', '$', '^', '&', '|', '<', '>', '`'])
        && !value.contains("\\\\")
        && !value.ends_with('\\');
    (is_server_core && !has_user && is_plain && step.shell == BaseShell::Cmd)
        .then(|| format!("RUN setx /M PATH \"{value}\""))
}
