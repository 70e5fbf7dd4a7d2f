//! Stages that `FROM` and `COPY --from` name, and that do not exist.

use wincimg_common::diagnose::closest_match;

use super::prelude::*;
use crate::instruction::CopyInstruction;

const RULE: &str = "unknown-stage";

/// Official images that are written like names of stages.
const OFFICIAL: [&str; 12] = [
    "bash", "caddy", "docker", "golang", "julia", "maven", "mongo", "nats", "python", "scratch",
    "swift", "vault",
];

/// Number of stages above an instruction whose names are compared with a misspelt one.
const MOST_COMPARED: usize = 100;

/// Names of stages above another one, of which an instruction may mean one.
fn names_above<'l>(linted: &'l LintFile<'_>, index: usize) -> impl Iterator<Item = &'l str> {
    let stages = &linted.stages[index.saturating_sub(MOST_COMPARED)..index];
    stages.iter().filter_map(|stage| stage.name.as_deref())
}

/// Reports a `FROM` with the misspelt name of a stage above it, which Docker would pull.
pub(super) fn check_base(linted: &LintFile<'_>, index: usize) -> Option<Finding> {
    let stage = &linted.stages[index];
    let reference = stage.reference()?;
    let name = reference.repository.as_str();
    let is_plain = name == stage.image && stage.from.text().starts_with(name);
    let is_image = reference.platform() != Platform::Unknown
        || OFFICIAL.contains(&name)
        || linted.options.bases.contains_key(name);
    if !is_plain || is_image || name.len() < 4 || name.contains(['/', '.']) {
        return None;
    }
    let edits = if name.len() < 6 { 1 } else { 2 };
    let meant = names_above(linted, index).find(|it| {
        it.len().abs_diff(name.len()) <= edits && strsim::osa_distance(it, name) <= edits
    })?;
    // It may be an image of this machine.
    let severity = Severity::error_if(!STAGE_NAMES.contains(&name));
    let message = format!(
        "no stage \"{name}\", and Docker would pull an image of this name: did you mean {meant}?"
    );
    let start = stage.from.start();
    let edit = Edit::new(start..start + name.len(), meant);
    let found = Finding::edited(linted.file, stage.from, message, &[edit]);
    Some(found.of(RULE).severity(severity))
}

/// Words that name stages, and no image of Docker Hub.
const STAGE_NAMES: [&str; 14] = [
    "build", "builder", "base", "publish", "final", "runtime", "sdk", "installer", "download",
    "test", "compile", "dependencies", "deps", "restore",
];

/// Returns true for a variable in `COPY --from`.
fn is_variable(linted: &LintFile<'_>, index: usize, from: &str) -> bool {
    let is_windows = linted.stages[index].platform == Platform::Windows;
    // Others are of a template.
    let is_argument = |name: &str| {
        let mut all = linted.file.instructions.iter();
        all.any(|it| it.keyword == "ARG" && it.text().split(['=', ' ']).next() == Some(name))
    };
    is_windows && super::variables::dollar_names(from).any(is_argument)
}

/// Problem of a `COPY --from` the stage of this line, which is not above its own.
pub(crate) fn not_above(from: &str, line: usize, is_own: bool) -> String {
    if is_own {
        format!("the stage {from:?} cannot copy from itself")
    } else {
        format!("the stage {from:?} is defined later, on line {line}")
    }
}

/// Reports a `COPY --from` a stage that does not exist.
pub(super) fn check_source(
    linted: &LintFile<'_>,
    index: usize,
    step: &LintStep<'_>,
    copy: &CopyInstruction,
) -> Option<Finding> {
    let from = copy.from.as_deref()?;
    let report = |message: String| Some(step.finding(message).of(RULE));
    if is_variable(linted, index, from) {
        let message = "COPY --from does not expand variables: name a stage that begins with \
            FROM and the variable";
        return report(message.to_owned());
    }
    let lower = from.to_ascii_lowercase();
    let mut earlier = linted.stages[..index].iter().rev();
    if earlier.any(|stage| stage.name.as_deref() == Some(lower.as_str())) || from.contains('$') {
        return None;
    }
    let mut later = linted.stages[index..].iter();
    if let Some(later) = later.position(|stage| stage.name.as_deref() == Some(lower.as_str())) {
        let line = linted.stages[index + later].from.lines().0 + 1;
        return report(not_above(from, line, later == 0));
    }
    if let Ok(number) = from.parse::<usize>() {
        let message = format!("no stage {from} before this one: numbers count from 0");
        return report(message).filter(|_| number >= index);
    }
    if from.contains([':', '/', '@', '.']) {
        return None;
    }
    let meant = closest_match(&lower, names_above(linted, index));
    let is_stage_name = STAGE_NAMES.contains(&lower.as_str()) || lower.starts_with("build");
    if meant.is_none() && !is_stage_name {
        return None;
    }
    let hint = meant
        .as_ref()
        .map_or_else(String::new, |meant| format!(": did you mean {meant}?"));
    let message = format!("no stage \"{from}\", and Docker would pull an image of this name{hint}");
    let edit = meant.and_then(|meant| {
        let at = step.instruction.head().find("--from=")? + "--from=".len();
        Some(Edit::new(at..at + from.len(), meant))
    });
    Some(step.edited(message, edit.as_slice()).of(RULE))
}
