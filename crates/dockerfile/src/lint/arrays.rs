//! Arrays of JSON: those that are none, and what their escapes mean.

use wincimg_windows::quoting::{Escape, exec_form};

use super::prelude::*;
use super::words::has_drive;

/// Reports arrays that are not valid JSON, so that they are read as plain text, and those with
/// control characters in a path.
pub(super) fn check_json(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let instruction = step.instruction;
    let keyword = instruction.keyword.as_str();
    let text = match keyword {
        "RUN" | "CMD" | "ENTRYPOINT" | "COPY" | "ADD" | "VOLUME" | "SHELL" => instruction.text(),
        "HEALTHCHECK" => instruction.health_command()?,
        _ => return None,
    };
    let inside = text.strip_prefix('[')?.trim_start();
    if let Ok(words) = serde_json::from_str::<Vec<String>>(text) {
        return check_control_characters(step, &words);
    }
    let corrected = |message: &str, array: Option<String>| {
        let start = instruction.start() + instruction.text().len() - text.len();
        let array = array.map(|array| with_slashes(step, array));
        let edit = array.map(|array| Edit::new(start..start + text.len(), array));
        step.edited(message, edit.as_slice())
    };
    if let Some(array) = with_plain_quotes(text).filter(|_| keyword != "SHELL") {
        let message =
            "typographic quotes are not quotes of JSON, and this is read as plain text: write \"";
        return Some(corrected(message, Some(array)));
    }
    // CMD and ENTRYPOINT have a rule with more knowledge; the parser refuses SHELL.
    let is_elsewhere = matches!(keyword, "CMD" | "ENTRYPOINT") && instruction.looks_like_json();
    // Brackets in RUN can be of a type of PowerShell.
    let may_be_unquoted = match keyword {
        "RUN" => text.contains(',') && !text.contains("::"),
        _ => keyword != "HEALTHCHECK" && keyword != "SHELL",
    };
    let unquoted = unquoted_array(text).filter(|_| may_be_unquoted);
    let is_meant = inside.starts_with(['"', '\'']) || unquoted.is_some();
    if is_elsewhere || keyword == "SHELL" || !is_meant || instruction.exec_form().is_some() {
        return None;
    }
    let doubled = mended_backslashes(text).filter(|_| !text.contains("\\\\"));
    let doubled = doubled.filter(|text| serde_json::from_str::<Vec<String>>(text).is_ok());
    let message = match () {
        () if doubled.is_some() && is_read_again(step) => {
            "invalid JSON, so this is read as plain text: write / in place of each \\"
        }
        () if doubled.is_some() && text.contains("\\$") => {
            "invalid JSON, so this is read as plain text: omit the \\ before $, which JSON does not \
             know, and double each one of a path"
        }
        () if doubled.is_some() => {
            "invalid JSON, so this is read as plain text: double every backslash"
        }
        () if inside.starts_with('\'') || unquoted.is_some() => {
            "invalid JSON, so this is read as plain text: use double quotes"
        }
        () => "invalid JSON array of strings, so this is read as plain text",
    };
    let mended = match unquoted {
        Some(words) => quoted_array(&words),
        None => doubled,
    };
    Some(corrected(message, mended))
}

/// Returns true if the parser removes backslashes also from the words of an array.
fn is_read_again(step: &LintStep<'_>) -> bool {
    let keyword = step.instruction.keyword.as_str();
    matches!(keyword, "COPY" | "ADD" | "VOLUME") && step.file.escape == Escape::Backslash
}

/// An array in JSON whose words keep their separators.
pub(super) fn with_slashes(step: &LintStep<'_>, array: String) -> String {
    if is_read_again(step) {
        array.replace("\\\\", "/")
    } else {
        array
    }
}

/// Quotes of word processors.
const TYPOGRAPHIC: [char; 5] = ['“', '”', '„', '‘', '’'];

/// The array in JSON that one with quotes of word processors was meant to be.
pub(super) fn with_plain_quotes(text: &str) -> Option<String> {
    if !text.starts_with('[') || !text.contains(TYPOGRAPHIC) {
        return None;
    }
    let plain = text.replace(TYPOGRAPHIC, "\"");
    let array = if plain.contains("\\\\") {
        plain
    } else {
        mended_backslashes(&plain)?
    };
    let is_array = serde_json::from_str::<Vec<String>>(&array).is_ok();
    is_array.then_some(array)
}

/// A text with the backslashes of its paths doubled, and without those before a variable; `None` if one
/// may be meant for a quote.
pub(super) fn mended_backslashes(text: &str) -> Option<String> {
    if text.contains("\\'") {
        return None;
    }
    let mut mended = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_word = || {
            let before = text[..at].chars().next_back();
            before.is_none_or(|c| c.is_whitespace() || "\"'(={;,|".contains(c))
        };
        if c != '\\' {
            mended.push(c);
        } else if !(text[at + 1..].starts_with('$') && is_word()) {
            mended.push_str("\\\\");
        }
    }
    Some(mended)
}

/// The words of an array without double quotes: `[a, b c]`, `['a']` or `[a.exe]`.
pub(super) fn unquoted_array(text: &str) -> Option<Vec<&str>> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let has_list = inside.contains(',');
    let words: Vec<&str> = if has_list {
        inside.split(',').map(str::trim).collect()
    } else {
        inside.split_whitespace().collect()
    };
    // A type of PowerShell, such as [Console], is not a program.
    let is_program = words
        .first()
        .is_some_and(|word| has_extension(word.trim_matches('\''), &["exe"]));
    let is_plain = !inside.contains(['[', ']', '$', '(', '"']);
    (is_plain && (has_list || is_program)).then_some(words)
}

/// The same words in JSON, unless a single quote is part of one.
fn quoted_array(words: &[&str]) -> Option<String> {
    let words = words.iter().map(|word| {
        let inside = word.in_quotes('\'');
        let word = inside.unwrap_or(word);
        (!word.contains('\'')).then(|| word.replace("\\\\", "\\"))
    });
    let words: Vec<String> = words.collect::<Option<_>>()?;
    Some(exec_form(&words))
}

fn check_control_characters(step: &LintStep<'_>, words: &[String]) -> Option<Finding> {
    let is_path = |word: &&String| has_drive(word) && word.contains(char::is_control);
    let word = words.iter().find(is_path)?;
    let (escape, meaning) = match word.chars().find(|c| c.is_control()) {
        Some('\u{8}') => ("\\b", "a backspace"),
        Some('\u{c}') => ("\\f", "a form feed"),
        Some('\n') => ("\\n", "a line feed"),
        Some('\r') => ("\\r", "a carriage return"),
        Some('\t') => ("\\t", "a tab"),
        _ => ("\\u", "the start of a character's number"),
    };
    let (separator, mend) = if is_read_again(step) {
        ("/", "write / in place of each \\")
    } else {
        ("\\\\", "double every backslash")
    };
    let message = format!("in JSON {escape} is {meaning}, and no part of a path: {mend}");
    let text = step.instruction.text();
    let is_open = text.contains("\\\\") || text.contains("\\\"");
    let backslashes = text.match_indices('\\').filter(|_| !is_open);
    let positions = backslashes.map(|(at, _)| at + step.instruction.start());
    let edits = positions.map(|at| Edit::new(at..at + 1, separator));
    Some(step.edited(message, &edits.collect::<Vec<_>>()))
}
