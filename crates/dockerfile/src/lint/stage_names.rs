//! Stages that `FROM` and `COPY --from` name, and that do not exist.

use wincimg_common::diagnose::closest_match;

use super::reference::Platform;
use super::stage::StageBaseRef;
use super::{Edit, Findings, LintFile, Severity};
use crate::instruction::CopyInstruction;
use crate::source::Instruction;

const RULE: &str = "unknown-stage";

/// Official images that are written like names of stages.
const OFFICIAL: [&str; 12] = [
    "bash", "caddy", "docker", "golang", "julia", "maven", "mongo", "nats", "python", "scratch",
    "swift", "vault",
];

/// Reports a `FROM` with the misspelt name of a stage above it, which Docker would pull.
pub(super) fn check_base(linted: &LintFile<'_>, index: usize, findings: &mut Findings<'_>) -> bool {
    let stage = &linted.stages[index];
    let StageBaseRef::Image(reference) = &stage.base else {
        return false;
    };
    let name = reference.repository.as_str();
    let is_plain = name == stage.image && stage.from.text().starts_with(name);
    let is_image = reference.platform() != Platform::Unknown
        || OFFICIAL.contains(&name)
        || linted.options.bases.contains_key(name);
    if !is_plain || is_image || name.len() < 4 || name.contains(['/', '.']) {
        return false;
    }
    let names = linted.stages[..index].iter();
    let mut names = names.filter_map(|stage| stage.name.as_deref());
    let edits = if name.len() < 6 { 1 } else { 2 };
    let is_slip = |it: &&str| {
        it.len().abs_diff(name.len()) <= edits && strsim::osa_distance(it, name) <= edits
    };
    let Some(meant) = names.find(is_slip) else {
        return false;
    };
    // It may be an image of this machine.
    let severity = Severity::error_if(!STAGE_NAMES.contains(&name));
    let message = format!(
        "no stage \"{name}\", and Docker would pull an image of this name: did you mean {meant}?"
    );
    let start = stage.from.start();
    let edit = Edit::new(start..start + name.len(), meant);
    findings.add_edits(RULE, severity, stage.from, message, &[edit]);
    true
}

/// Words that name stages, and no image of Docker Hub.
const STAGE_NAMES: [&str; 14] = [
    "build", "builder", "base", "publish", "final", "runtime", "sdk", "installer", "download",
    "test", "compile", "dependencies", "deps", "restore",
];

/// Reports a variable in `COPY --from`.
fn reports_variable(
    linted: &LintFile<'_>,
    index: usize,
    instruction: &Instruction,
    from: &str,
    findings: &mut Findings<'_>,
) -> bool {
    let is_windows = linted.stages[index].platform == Platform::Windows;
    // Others are of a template.
    let is_argument = |name: &str| {
        let mut all = linted.file.instructions.iter();
        all.any(|it| it.keyword == "ARG" && it.text().split(['=', ' ']).next() == Some(name))
    };
    if is_windows && super::variables::dollar_names(from).any(is_argument) {
        let message = "COPY --from does not expand variables: name a stage that begins with \
            FROM and the variable";
        findings.add(RULE, Severity::Error, instruction.lines().0, message);
        return true;
    }
    false
}

/// Reports a `COPY --from` a stage that does not exist.
pub(super) fn check_source(
    linted: &LintFile<'_>,
    index: usize,
    instruction: &Instruction,
    copy: &CopyInstruction,
    findings: &mut Findings<'_>,
) {
    let Some(from) = copy.from.as_deref() else {
        return;
    };
    if reports_variable(linted, index, instruction, from, findings) {
        return;
    }
    let lower = from.to_ascii_lowercase();
    let mut earlier = linted.stages[..index].iter().rev();
    if earlier.any(|stage| stage.name.as_deref() == Some(lower.as_str())) || from.contains('$') {
        return;
    }
    let line = instruction.lines().0;
    let mut later = linted.stages[index..].iter();
    if let Some(stage) = later.find(|stage| stage.name.as_deref() == Some(lower.as_str())) {
        let at = stage.from.lines().0 + 1;
        let message = if std::ptr::eq(stage, &raw const linted.stages[index]) {
            format!("the stage \"{from}\" cannot copy from itself")
        } else {
            format!("the stage \"{from}\" is defined later, on line {at}")
        };
        findings.add(RULE, Severity::Error, line, message);
        return;
    }
    if let Ok(number) = from.parse::<usize>() {
        if number >= index {
            let message = format!("no stage {from} before this one: numbers count from 0");
            findings.add(RULE, Severity::Error, line, message);
        }
        return;
    }
    if from.contains([':', '/', '@', '.']) {
        return;
    }
    let before = linted.stages[..index].iter();
    let meant = closest_match(&lower, before.filter_map(|stage| stage.name.as_deref()));
    let is_stage_name = STAGE_NAMES.contains(&lower.as_str()) || lower.starts_with("build");
    if meant.is_none() && !is_stage_name {
        return;
    }
    let hint = meant
        .as_ref()
        .map_or_else(String::new, |meant| format!(": did you mean {meant}?"));
    let message = format!("no stage \"{from}\", and Docker would pull an image of this name{hint}");
    let head = instruction.head();
    let edit = meant.and_then(|meant| {
        let at = head.find("--from=")? + "--from=".len();
        Some(Edit::new(at..at + from.len(), meant))
    });
    findings.add_edits(RULE, Severity::Error, instruction, message, edit.as_slice());
}
