//! JSON in single quotes on PowerShell's command line, which drops the double quotes of it.

use serde_json::Value;

use super::line::SourceLine;
use crate::lint::prelude::*;

const MESSAGE: &str = "PowerShell drops the quotes of this JSON from its own command line; write \\\", \
    and \\\\\\\" in an argument of a program, from which Windows PowerShell drops them again";

/// Reports JSON that loses its quotes.
pub(super) fn check(step: &LintStep<'_>, line: &SourceLine) -> Option<Finding> {
    let mut from = 0;
    for text in line.text.split('\'') {
        let at = from;
        from += text.len() + 1;
        // The text before a quote, and that of a script in double quotes, which are other ones.
        if at == 0 || !loses_quotes(text) {
            continue;
        }
        let position = step.instruction.start() + line.origin(at);
        return Some(step.finding_at(position, MESSAGE));
    }
    None
}

/// Returns true for a JSON object or list with texts.
fn loses_quotes(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || !text.contains('"') {
        return false;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => !members.is_empty(),
        Ok(Value::Array(items)) => !items.is_empty(),
        _ => false,
    }
}
