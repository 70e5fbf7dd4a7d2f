//! Paths that end in a backslash at the end of a line, which joins the line with the next one.

use wincimg_windows::quoting::{Escape, argv, powershell};

use super::prelude::*;
use crate::source::{Dockerfile, Instruction, LineContinuation, begins_instruction};

/// Instructions whose arguments are paths, and the least number of them.
const PATH_INSTRUCTIONS: [(&str, usize); 4] =
    [("ADD", 2), ("COPY", 2), ("VOLUME", 1), ("WORKDIR", 1)];

/// Instructions that a shell reads, whose commands can be written like instructions.
const SHELL_INSTRUCTIONS: [&str; 4] = ["RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK"];

/// What is wrong with a line that ends in a path's backslash.
pub(crate) const JOINED: &str =
    "the backslash at the end is the line continuation, which joins this line with the next one";

pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Vec<Finding> {
    let ends: Vec<LineContinuation<'_>> = path_ends(step.file, step.instruction).collect();
    let is_last = |join: &LineContinuation<'_>| {
        let joined = join.joined.map(str::trim_start);
        joined.is_some_and(begins_instruction)
    };
    // Without this join the lines below are another instruction, whose paths are corrected otherwise.
    let count = ends
        .iter()
        .position(is_last)
        .map_or(ends.len(), |at| at + 1);
    ends.into_iter()
        .take(count)
        .map(|join| {
            let keyword = &step.instruction.keyword;
            let corrected = corrected(keyword, step.shell, join.text);
            let message = format!("{JOINED}: {}", advice(corrected.as_deref()));
            let correction = corrected.map(|text| Correction::new((join.line, join.line), text));
            Finding::new(join.line, message).corrected(correction)
        })
        .collect()
}

fn advice(corrected: Option<&str>) -> String {
    let instead = corrected.map_or_else(
        || "remove it".to_owned(),
        |text| format!("write {}", last_word(text)),
    );
    format!("{instead}, or begin the file with the line # escape=`")
}

/// What to do about a path's backslash that joins a line of an instruction with the next one, if there
/// is one.
pub(crate) fn advice_on_join(file: &Dockerfile<'_>, instruction: &Instruction) -> Option<String> {
    let join = path_ends(file, instruction).next()?;
    let corrected = corrected(&instruction.keyword, BaseShell::Unknown, join.text);
    Some(advice(corrected.as_deref()))
}

/// Lines of an instruction that end in a path's backslash, which joins them with the next one.
fn path_ends<'a>(
    file: &'a Dockerfile<'_>,
    instruction: &Instruction,
) -> impl Iterator<Item = LineContinuation<'a>> {
    let joins = match file.escape {
        Escape::Backslash => file.continuations(instruction),
        Escape::Backtick => Vec::new(),
    };
    let joins = joins.into_iter();
    joins.filter(move |join| is_path_end(instruction, *join))
}

/// Returns true if a line of the instruction ends in a path's backslash.
pub(super) fn continues_by_mistake(file: &Dockerfile<'_>, instruction: &Instruction) -> bool {
    path_ends(file, instruction).next().is_some()
}

/// Returns true if the backslash is a part of a path and not a continuation: it follows a path
/// without a space, and the next line does not look like the rest of the command.
fn is_path_end(instruction: &Instruction, join: LineContinuation<'_>) -> bool {
    let mut known = PATH_INSTRUCTIONS.iter();
    let of_paths = known.find(|(keyword, _)| *keyword == instruction.keyword);
    let is_root = of_paths.is_some_and(|(_, least)| is_incomplete(join.text, *least));
    let follows_name = join.text.ends_with(|c: char| {
        c.is_alphanumeric()
            || matches!(c, ':' | '_' | '-' | '.' | '}' | '%')
            || c == ')' && of_paths.is_some()
    });
    let word = last_word(join.text);
    let drive = word.trim_start_matches(['"', '\'']);
    let has_drive = drive.get(1..2) == Some(":");
    let is_drive = has_drive && (drive.len() == 2 || of_paths.is_some());
    let is_path = follows_name && (is_drive || word.contains('\\'));
    let is_shell = SHELL_INSTRUCTIONS.contains(&instruction.keyword.as_str());
    let is_last = join
        .joined
        .is_none_or(|line| begins_instruction(if is_shell { line } else { line.trim_start() }));
    if is_last && of_paths.is_some() {
        return follows_name || is_root;
    }
    // A source of the context has no drive, so this is the destination.
    let is_context = matches!(instruction.keyword.as_str(), "ADD" | "COPY")
        && instruction.flag("from").is_none();
    let is_apart = is_last
        || is_context && has_drive
        || join
            .next
            .is_none_or(|(_, next)| !next.starts_with([' ', '\t']));
    is_path && is_apart
}

/// Returns true if the line of a keyword lacks an argument: the trailing backslash is that one.
fn is_incomplete(text: &str, least: usize) -> bool {
    if !text.ends_with(' ') || text.contains('[') {
        return false;
    }
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    let mut known = PATH_INSTRUCTIONS.iter();
    let is_keyword = known.any(|(keyword, _)| keyword.eq_ignore_ascii_case(first));
    is_keyword && words.filter(|word| !word.starts_with("--")).count() + 1 == least
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
