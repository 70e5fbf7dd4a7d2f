//! What only BuildKit builds.

use super::prelude::*;
use crate::source::Instruction;

/// Returns true if a file has a `# syntax` directive.
fn has_syntax(linted: &LintFile<'_>) -> bool {
    let lines = linted.file.lines();
    let mut first_lines = lines.take_while(|line| line.trim_start().starts_with('#'));
    first_lines.any(|line| {
        let directive = line.trim_start().trim_start_matches('#').trim_start();
        directive.to_ascii_lowercase().starts_with("syntax")
    })
}

/// What only BuildKit knows, and true if it is a syntax of BuildKit alone, whose author uses that.
fn buildkit_feature(instruction: &Instruction) -> Option<(String, bool)> {
    let flags = [
        "mount", "network", "security", "link", "exclude", "checksum", "unpack",
    ];
    if instruction.keyword == "STOPSIGNAL" {
        return Some((instruction.keyword.clone(), false));
    }
    let flag = instruction.flags().find(|(name, _)| flags.contains(name));
    match flag {
        Some((name, _)) => Some((format!("{} --{name}", instruction.keyword), true)),
        None => instruction
            .has_here_document()
            .then(|| ("a here-document".to_owned(), true)),
    }
}

/// Returns true if only BuildKit builds a file.
pub(super) fn requires_buildkit(linted: &LintFile<'_>) -> bool {
    let mut instructions = linted.file.instructions.iter();
    has_syntax(linted) || instructions.any(|it| buildkit_feature(it).is_some())
}

/// Reports what Docker Engine on Windows refuses without BuildKit.
pub(super) fn check_buildkit(linted: &LintFile<'_>) -> Option<Finding> {
    let mut steps = linted.windows_stages().flat_map(|stage| &stage.steps);
    let script = steps.find(|step| {
        let documents = &step.instruction.documents;
        let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
        step.is("RUN")
            && step.instruction.is_here_document()
            && documents.iter().any(|document| lines(&document.text) > 1)
    });
    if let Some(step) = script {
        let message = "Docker on Windows has no here-documents, and BuildKit there supports only one \
            statement in one: write the commands as one RUN with && or ;";
        return Some(step.finding(message));
    }
    if has_syntax(linted) {
        return None;
    }
    let is_windows = |stage: &Stage<'_>| stage.platform == Platform::Windows;
    let has_windows = linted.windows_stages().next().is_some();
    let (instruction, (what, is_chosen)) = linted.stages.iter().find_map(|stage| {
        if has_windows && matches!(stage.base, StageBaseRef::Scratch) && !stage.is_linux() {
            return Some((stage.from, ("FROM scratch".to_owned(), false)));
        }
        let mut steps = stage.steps.iter().filter(|_| is_windows(stage));
        steps.find_map(|step| Some((step.instruction, buildkit_feature(step.instruction)?)))
    })?;
    let severity = if is_chosen {
        Severity::Note
    } else {
        Severity::Warning
    };
    let message =
        format!("{what} requires BuildKit, which Docker Engine on Windows does not use by default");
    Some(Finding::new(instruction.lines().0, message).severity(severity))
}
