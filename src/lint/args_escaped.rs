//! A program whose path needs quotes, in an image that `BuildKit` may build.
//!
//! `BuildKit` writes `ArgsEscaped` as soon as there is a `CMD`, also for exec form. Docker and
//! containerd then hand the first word to Windows as it is, and a path with a space falls apart.

use super::stage::Stage;
use super::{Findings, Rule, Severity};

pub(super) fn check(stage: &Stage<'_>, findings: &mut Findings<'_>) {
    let last = |keyword: &str| {
        let mut steps = stage.steps.iter().rev();
        steps.find(|step| step.instruction.keyword == keyword)
    };
    // Without a CMD the mark is the base's, which a text does not tell.
    let Some(cmd) = last("CMD") else {
        return;
    };
    let program = last("ENTRYPOINT").unwrap_or(cmd).instruction;
    let words = program.exec_form().unwrap_or_default();
    let Some(word) = words.first().filter(|word| needs_quotes(word)) else {
        return;
    };
    let message = format!(
        "BuildKit marks the command line of an image with a CMD as ready, and Windows then gets \
         {word:?} without quotes, which ends at its first space; put the program where its path has \
         no space"
    );
    let line = program.lines().0;
    findings.only(Rule::ArgsEscaped, Severity::Warning, line, message);
}

/// Whether a stage's program in exec form would be found here: then it does not correct anything.
pub(super) fn is_bare(stage: &Stage<'_>, argv: &[String]) -> bool {
    let mut steps = stage.steps.iter();
    let has_cmd = steps.any(|step| step.instruction.keyword == "CMD");
    has_cmd && argv.first().is_some_and(|word| needs_quotes(word))
}

fn needs_quotes(word: &str) -> bool {
    // Quotes of its own are what such an image needs.
    !word.starts_with('"') && word.contains([' ', '\t'])
}
