//! IIS settings with a file extension without its dot, which match nothing.

use super::correction::Edit;
use super::stage::{LintStep, Stage};
use super::{Findings, Severity};

const ATTRIBUTE: &str = "fileextension";

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    let keyword = step.instruction.keyword.as_str();
    if !matches!(keyword, "RUN" | "CMD" | "ENTRYPOINT") {
        return;
    }
    let text = step.instruction.text();
    // ASCII lower case keeps positions.
    let lower = text.to_ascii_lowercase();
    for (found, _) in lower.match_indices(ATTRIBUTE) {
        let after = &text[found + ATTRIBUTE.len()..];
        let Some(value) = value_start(after) else {
            continue;
        };
        let extension: String = after[value..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            .collect();
        if extension.is_empty() {
            continue;
        }
        let at = step.instruction.start() + found + ATTRIBUTE.len() + value;
        findings.add_edits(
            "file-extension-dot",
            Severity::Error,
            step.instruction,
            format!("IIS requires the dot of the extension: \".{extension}\", not \"{extension}\""),
            &[Edit::new(at..at + extension.len(), format!(".{extension}"))],
        );
    }
}

/// Start of the value after `fileExtension`, `=` and any quotes, escaped or not.
fn value_start(after: &str) -> Option<usize> {
    let value = after.trim_start().strip_prefix('=')?;
    let value = value.trim_start_matches([' ', '\t', '\'', '"', '\\', '^']);
    Some(after.len() - value.len())
}
