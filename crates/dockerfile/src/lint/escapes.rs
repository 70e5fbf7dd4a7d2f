//! The escape character: backslashes that the parser removes, a directive that has no effect, and
//! a line that continues into the next instruction.

use wincimg_recipe::check_absolute;
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::Escape;

use super::instructions::expanded_texts;
use super::prelude::*;
use super::{documents, environment, line_end};
use crate::source::{Dockerfile, Instruction, LineContinuation, begins_instruction};
use crate::stages::{StageState, image_path, source_path};

/// Use of a text by an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextUse {
    /// A path in the image.
    Target,
    /// A path in the context or in another stage.
    Source,
    /// As it is.
    Value,
}

/// Reports backslashes that the parser removes from a path or value.
pub(super) fn check_eaten(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let of_document = documents::check_eaten(it);
    if of_document.is_some() {
        return of_document;
    }
    if it.linted.file.escape != Escape::Backslash {
        return None;
    }
    let is_json = is_array(it);
    let mut edits = Vec::new();
    let mut is_whole = true;
    let mut example = None;
    let mut from = 0;
    for (text, usage) in texts(it.kind) {
        // Another finding is about the whole line.
        if environment::path(it.step.instruction).is_some()
            && environment::hidden_path(it, text).is_some()
        {
            continue;
        }
        let Some(positions) = removed_backslashes(it, text, usage) else {
            continue;
        };
        let joined = it.step.instruction.text();
        let lost = without(text, &positions);
        example.get_or_insert((text.to_owned(), lost));
        let (written, own) = if is_json {
            in_json(text)
        } else {
            (text.to_owned(), slashes(text, usage, &positions))
        };
        let place = joined[from..].find(&written).filter(|_| !own.is_empty());
        is_whole &= place.is_some();
        if let Some(at) = place.map(|at| from + at) {
            from = at + written.len();
            let start = it.step.instruction.start() + at;
            edits.extend(own.into_iter().map(|edit| edit.shift(start)));
        }
    }
    if !is_whole {
        edits.clear();
    }
    let (text, lost) = example.filter(|_| !is_refused_copy(it))?;
    let shown = |text: &str| {
        let quote = if text.starts_with('"') { "" } else { "\"" };
        format!("{quote}{text}{quote}")
    };
    let (text, lost) = (shown(&text), shown(&lost));
    let (what, mend) = if is_json {
        ("these backslashes also in JSON", "/")
    } else {
        ("these backslashes", "/ or \\\\")
    };
    let message = format!(
        "the parser removes {what}, and {text} becomes {lost}; write {mend}, or begin the file with \
         the line # escape=`"
    );
    Some(it.step.edited(message, &edits))
}

/// True for a copy that the parser refuses with any separators, such as one with quoted spaces.
fn is_refused_copy(it: &EvaluatedStep<'_>) -> bool {
    let is_copy = matches!(it.kind, InstructionKind::Copy(_));
    let mut all = texts(it.kind).into_iter();
    is_copy && all.any(|(text, _)| it.expand(text).is_none())
}

/// True if the paths are in an array.
fn is_array(it: &EvaluatedStep<'_>) -> bool {
    let has_paths = matches!(
        it.kind,
        InstructionKind::Copy(_) | InstructionKind::Volume(_)
    );
    has_paths && it.step.instruction.exec_form().is_some()
}

fn texts(kind: &InstructionKind) -> Vec<(&str, TextUse)> {
    let usage = match kind {
        InstructionKind::Workdir(_) | InstructionKind::Volume(_) => TextUse::Target,
        InstructionKind::Copy(_) => TextUse::Source,
        InstructionKind::User(_) | InstructionKind::Env(_) | InstructionKind::Arg(_) => {
            TextUse::Value
        }
        _ => return Vec::new(),
    };
    let texts = expanded_texts(kind).into_iter();
    let mut texts: Vec<_> = texts.map(|text| (text, usage)).collect();
    if let (InstructionKind::Copy(_), Some((_, target))) = (kind, texts.last_mut()) {
        *target = TextUse::Target;
    }
    texts
}

/// Positions of removed backslashes, if the text then means something else.
fn removed_backslashes(it: &EvaluatedStep<'_>, text: &str, usage: TextUse) -> Option<Vec<usize>> {
    let positions = removed(text);
    if positions.is_empty() || text.contains("://") {
        return None;
    }
    let mut doubled = String::with_capacity(text.len() + positions.len());
    let mut from = 0;
    for at in &positions {
        doubled.push_str(&text[from..*at]);
        doubled.push('\\');
        from = *at;
    }
    doubled.push_str(&text[from..]);
    let expanded = |text: &str| Some(it.expand(text)?.text);
    let (written, meant) = (expanded(text)?, expanded(&doubled)?);
    let differs = match usage {
        TextUse::Value => written != meant,
        TextUse::Source => source_path(&written).ok() != source_path(&meant).ok(),
        TextUse::Target => {
            // Without \ after the drive, Docker takes the path for a relative or invalid one.
            check_absolute(&written).is_err()
                && matches!(
                    it.kind,
                    InstructionKind::Workdir(_) | InstructionKind::Volume(_)
                )
                || target(it.state, &written)? != target(it.state, &meant)?
        }
    };
    differs.then_some(positions)
}

fn target(state: &StageState, text: &str) -> Option<(ImagePath, bool)> {
    let target = image_path(&state.working_dir().ok()?, text).ok()?;
    Some((target.path, target.is_folder))
}

/// Positions of the backslashes that the parser removes and that escape nothing.
fn removed(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut quote = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\'' if quote == Some('\'') => quote = None,
            _ if quote == Some('\'') => {}
            '"' => quote = if quote.is_some() { None } else { Some('"') },
            '\'' if quote.is_none() => quote = Some('\''),
            '\\' => match characters.peek().copied() {
                Some((_, '\\' | '"' | '\'' | ' ')) => {
                    characters.next();
                }
                Some((_, '$')) if !is_in_path(text, at) => {
                    characters.next();
                }
                None | Some((_, '$')) => found.push(at),
                Some(_) if quote.is_none() => found.push(at),
                Some(_) => {}
            },
            _ => {}
        }
    }
    found
}

/// True if a backslash follows a name or a drive, so that it separates.
fn is_in_path(text: &str, at: usize) -> bool {
    text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, ':' | '}'))
        && text.contains(":\\")
}

fn without(text: &str, positions: &[usize]) -> String {
    let kept = text
        .char_indices()
        .filter(|(at, _)| positions.binary_search(at).is_err());
    kept.map(|(_, c)| c).collect()
}

/// True if each backslash of a path separates names.
fn is_plain(path: &str) -> bool {
    !path.contains("\\\\") && !path.contains("\\ ")
}

/// A path as JSON has it, with two characters for each backslash, and slashes for them.
fn in_json(path: &str) -> (String, Vec<Edit>) {
    let written = path.replace('\\', "\\\\");
    let pairs = written.match_indices("\\\\").filter(|_| is_plain(path));
    let edits = pairs.map(|(at, pair)| Edit::new(at..at + pair.len(), "/"));
    let edits = edits.collect();
    (written, edits)
}

/// Slashes for paths, and doubled backslashes for values.
fn slashes(text: &str, usage: TextUse, positions: &[usize]) -> Vec<Edit> {
    let all = text.match_indices('\\').map(|(at, _)| at);
    match usage {
        TextUse::Target | TextUse::Source if is_plain(text) => {
            all.map(|at| Edit::new(at..at + 1, "/")).collect()
        }
        _ => positions
            .iter()
            .map(|at| Edit::new(*at..at + 1, "\\\\"))
            .collect(),
    }
}

/// Line, from 0, and character of an escape directive below the top of the file that would change
/// the instructions below it.
pub(super) fn misplaced_directive(file: &Dockerfile<'_>) -> Option<(usize, Escape)> {
    let is_inside = |line: usize| {
        let instructions = &file.instructions;
        let above = instructions.partition_point(|it| it.lines().0 < line);
        let above = instructions[..above].last();
        above.is_some_and(|it| line <= it.lines().1)
    };
    let (line, escape) = file.lines().enumerate().find_map(|(line, text)| {
        let escape = escape_comment(text).filter(|_| !is_inside(line))?;
        Some((line, escape))
    })?;
    let is_last = file.instructions.iter().all(|it| it.lines().1 < line);
    (escape != file.escape && !is_last).then_some((line, escape))
}

/// Reports an escape directive below the top of the file.
pub(super) fn check_directive(linted: &LintFile<'_>) -> Option<Finding> {
    let file = linted.file;
    let (line, escape) = linted.misplaced_directive?;
    if linted.stages.iter().all(Stage::is_linux) {
        return None;
    }
    let is_readable = is_readable_with(file);
    let code = file
        .lines()
        .filter(|text| !text.trim_start().starts_with('#'));
    let mut ends = code.map(str::trim_end);
    if !is_readable && !ends.any(|text| text.ends_with(escape.character())) {
        let message = format!(
            "this directive has no effect, and lines of this file continue with {}: remove it",
            file.escape.character()
        );
        return Some(Finding::new(line, message).warning());
    }
    let message = "this directive has no effect: it must be at the top of the file, above every \
        comment, empty line and instruction";
    let correction = is_readable.then(|| {
        let above = file.lines().take(line);
        let lines: Vec<&str> = [file.line(line)].into_iter().chain(above).collect();
        Correction::new((0, line), lines.join("\n"))
    });
    Some(Finding::new(line, message).corrected(correction))
}

/// Returns true if no instruction uses the escape character that applies to continue on a line: the
/// file is then written for the other one.
fn is_readable_with(file: &Dockerfile<'_>) -> bool {
    let mut instructions = file.instructions.iter();
    instructions.all(|instruction| {
        file.continuations(instruction).is_empty() || continues_by_mistake(file, instruction)
    })
}

fn escape_comment(line: &str) -> Option<Escape> {
    let (key, value) = line.trim_start().strip_prefix('#')?.split_once('=')?;
    if !key.trim().eq_ignore_ascii_case("escape") {
        return None;
    }
    match value.trim() {
        "`" => Some(Escape::Backtick),
        "\\" => Some(Escape::Backslash),
        _ => None,
    }
}

/// Keywords that no shell command is written like.
const KEYWORDS: [&str; 13] = [
    "FROM", "RUN", "WORKDIR", "ENTRYPOINT", "CMD", "EXPOSE", "SHELL", "HEALTHCHECK", "VOLUME",
    "ENV", "ARG", "USER", "COPY",
];

/// The first line that continues into the next instruction, and the line and keyword of that.
fn swallowed<'a>(
    file: &'a Dockerfile<'_>,
    instruction: &Instruction,
) -> Option<(LineContinuation<'a>, usize, &'a str)> {
    let mut continuations = file.continuations(instruction).into_iter();
    continuations.find_map(|join| {
        let last = instruction.lines().1;
        let next = (join.line + 1..=last).find(|line| {
            let text = file.line(*line).trim_start();
            !text.is_empty() && !text.starts_with('#')
        })?;
        let text = file.line(next);
        let keyword = text.split_whitespace().next()?;
        let is_instruction = KEYWORDS.contains(&keyword) && begins_instruction(text);
        is_instruction.then_some((join, next, keyword))
    })
}

/// Returns true if what an instruction says is not what the author meant, as it continues on lines
/// of others.
pub(super) fn continues_by_mistake(file: &Dockerfile<'_>, instruction: &Instruction) -> bool {
    line_end::continues_by_mistake(file, instruction) || swallowed(file, instruction).is_some()
}

/// Reports a line that continues into the next instruction.
pub(super) fn check_swallowed(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if line_end::continues_by_mistake(step.file, step.instruction) {
        return None;
    }
    let (join, next, keyword) = swallowed(step.file, step.instruction)?;
    let message = format!(
        "the last character of this line joins it with the {keyword} on line {}; remove it",
        next + 1
    );
    let kept = join.text.trim_end();
    let kept = kept
        .strip_suffix("&&")
        .or_else(|| kept.strip_suffix(';'))
        .unwrap_or(kept);
    let correction = Correction::new((join.line, join.line), kept.trim_end().to_owned());
    Some(Finding::new(join.line, message).corrected(Some(correction)))
}
