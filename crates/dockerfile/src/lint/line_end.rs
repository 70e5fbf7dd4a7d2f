//! Paths that end in a backslash at the end of a line, which joins the line with the next one.

use wincimg_windows::quoting::{Escape, argv, powershell};

use super::shell::BaseShell;
use super::stage::{LintStep, Stage};
use super::{Findings, Severity};
use crate::source::{Dockerfile, Instruction, LineContinuation, begins_instruction};

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>, findings: &mut Findings<'_>) {
    if findings.file.escape != Escape::Backslash {
        return;
    }
    for join in findings.file.continuations(step.instruction) {
        if !is_path_end(join) {
            continue;
        }
        let message = "the backslash at the end joins this line with the next one; \
            remove it, or begin the file with the line # escape=`";
        let keyword = &step.instruction.keyword;
        match corrected(keyword, step.shell, join.text) {
            Some(text) => findings.add_correction(
                "trailing-backslash",
                Severity::Error,
                message,
                Dockerfile::replace_line(join.line, text),
            ),
            None => findings.add("trailing-backslash", Severity::Error, join.line, message),
        }
    }
}

/// Returns true if a line of the instruction ends in a path's backslash, which joins it with the
/// next one.
pub(super) fn continues_by_mistake(file: &Dockerfile<'_>, instruction: &Instruction) -> bool {
    file.escape == Escape::Backslash && file.continuations(instruction).into_iter().any(is_path_end)
}

/// Returns true if the backslash is a part of a path and not a continuation: it follows a path
/// without a space, and the next line does not look like the rest of the command.
fn is_path_end(join: LineContinuation<'_>) -> bool {
    let follows_name = join
        .text
        .ends_with(|c: char| c.is_alphanumeric() || matches!(c, ':' | '_' | '-' | '.' | '}' | '%'));
    if !follows_name {
        return false;
    }
    let word = last_word(join.text);
    let drive = word.trim_start_matches(['"', '\'']);
    let is_drive = drive.len() == 2 && drive.ends_with(':');
    let is_path = is_drive || word.contains('\\');
    let is_joined_by_mistake = match join.next {
        None => true,
        Some(next) if next.trim().is_empty() || begins_instruction(next) => true,
        Some(next) => !next.starts_with([' ', '\t']),
    };
    is_path && is_joined_by_mistake
}

fn last_word(text: &str) -> &str {
    text.rsplit([' ', '\t']).next().unwrap_or_default()
}

/// The line with an equivalent path that does not end in a backslash.
fn corrected(keyword: &str, shell: BaseShell, text: &str) -> Option<String> {
    let word = last_word(text);
    let before = &text[..text.len() - word.len()];
    let path = format!("{word}\\");
    let written = match keyword {
        "RUN" | "CMD" | "ENTRYPOINT" if path.contains(['"', '\'', '\u{60}']) => return None,
        "RUN" | "CMD" | "ENTRYPOINT" => match shell {
            BaseShell::Cmd => argv::quote_always(&path),
            BaseShell::PowerShell => powershell::literal(&path),
            BaseShell::Other | BaseShell::Unknown => return None,
        },
        // These instructions interpret the escape character inside the line too.
        "ENV" | "ARG" | "LABEL" => path.replace('\\', "\\\\"),
        _ => path.replace('\\', "/"),
    };
    Some(format!("{before}{written}"))
}
