//! IIS settings with a file extension without its dot, which match nothing.

use super::prelude::*;

const ATTRIBUTE: &str = "fileextension";

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Vec<Finding> {
    let keyword = step.instruction.keyword.as_str();
    if !matches!(keyword, "RUN" | "CMD" | "ENTRYPOINT") {
        return Vec::new();
    }
    let text = step.instruction.text();
    let lower = step.lower_text();
    let found = lower.match_indices(ATTRIBUTE).filter_map(|(found, _)| {
        let after = &text[found + ATTRIBUTE.len()..];
        let value = value_start(after)?;
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let extension = after[value..].split(|c: char| !is_part(c)).next()?;
        if extension.is_empty() {
            return None;
        }
        let at = step.instruction.start() + found + ATTRIBUTE.len() + value;
        let message =
            format!("IIS requires the dot of the extension: \".{extension}\", not \"{extension}\"");
        let edit = Edit::new(at..at + extension.len(), format!(".{extension}"));
        Some(step.edited(message, &[edit]))
    });
    found.collect()
}

/// Start of the value after `fileExtension`, `=` and any quotes, escaped or not.
fn value_start(after: &str) -> Option<usize> {
    let value = after.trim_start().strip_prefix('=')?;
    let value = value.trim_start_matches([' ', '\t', '\'', '"', '\\', '^']);
    Some(after.len() - value.len())
}
