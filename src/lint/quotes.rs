//! Quotes that the shell in force reads in another way than the author meant.
//!
//! Both rules look at the raw text after the keyword, for that is what the daemon puts behind the
//! shell: a quote after an even number of backslashes groups words, one after an odd number is a
//! quote in an argument.

mod cmd;
mod powershell;

use super::Findings;
use super::reader::Edit;
use super::stage::{BaseShell, Step};

pub(super) fn check(step: &Step<'_>, findings: &mut Findings<'_>) {
    let instruction = step.instruction;
    let is_command = matches!(instruction.keyword.as_str(), "RUN" | "CMD" | "ENTRYPOINT");
    if !is_command || instruction.has_here_document || instruction.is_meant_as_json() {
        return;
    }
    match step.shell {
        BaseShell::PowerShell => powershell::check(step, findings),
        BaseShell::Cmd => cmd::check(step, findings),
        BaseShell::Other => {}
    }
}

/// Puts quotes around the whole text, joining them with what already changes at its ends, and as
/// many more backslashes before the last as are asked for.
fn wrap(edits: &mut Vec<Edit>, text: &str, backslashes: usize) {
    match edits.first_mut() {
        Some(edit) if edit.range.start == 0 => edit.text.insert(0, '"'),
        _ => {
            let first = text.chars().next().map_or(0, char::len_utf8);
            edits.insert(0, Edit::new(0..first, format!("\"{}", &text[..first])));
        }
    }
    let end = text.len();
    match edits.last_mut() {
        Some(edit) if edit.range.end == end => edit.text.push('"'),
        _ => edits.push(Edit::after(end, format!("{}\"", "\\".repeat(backslashes)))),
    }
}
