//! Here-documents of `COPY` and `ADD`: unless their name is in quotes, the parser expands variables and
//! removes backslashes in them, whatever the escape directive says.

use serde_json::Value;
use wincimg_windows::quoting::Escape;

use super::instructions::is_inherited;
use super::prelude::*;
use super::variables::dollar_names;
use crate::expand::Lexer;
use crate::instruction::CopyInstruction;
use crate::source::HereDocument;

/// The here-documents that the parser expands, with their copy.
fn expanding<'a>(
    it: &EvaluatedStep<'a>,
) -> impl Iterator<Item = (&'a CopyInstruction, &'a HereDocument)> + use<'a> {
    let copy = match it.kind {
        InstructionKind::Copy(copy) => Some(copy),
        _ => None,
    };
    copy.into_iter().flat_map(|copy| {
        let documents = copy.documents.iter().filter(|document| document.expands);
        documents.map(move |document| (copy, document))
    })
}

/// Reports a here-document that loses backslashes.
pub(super) fn check_eaten(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let (document, at) = expanding(it).find_map(|(_, document)| {
        let text = document.text.as_str();
        let at = lost_backslash(text).or_else(|| text.find('\\').filter(|_| breaks_json(text)))?;
        Some((document, at))
    })?;
    let text = document.text.as_str();
    let before = text[..at].trim_end_matches(|c: char| !c.is_whitespace());
    let mut words = text[before.len()..].split_whitespace();
    let word = words.next().unwrap_or_default();
    let name = &document.name;
    // Without its variables and escapes, a document in quotes is what it says.
    let is_plain = !text.contains_any(&["\\\\", "\\`"]) || breaks_json(text);
    let edits = if is_plain && !may_expand(it, text) {
        Vec::from_iter(in_quotes(it, name))
    } else {
        Vec::new()
    };
    let mend = if edits.is_empty() {
        "write \\\\".to_owned()
    } else {
        format!("write <<\"{name}\"")
    };
    let kept = Some(unescaped(word)).filter(|kept| !kept.is_empty());
    let kept = kept.as_deref().unwrap_or("nothing");
    let message = format!(
        "the parser removes backslashes from a here-document, and {word} becomes {kept}: {mend}"
    );
    Some(it.step.edited(message, &edits))
}

/// Position of a backslash that escapes nothing. Shells have a backtick escaped, too.
fn lost_backslash(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let is_escape = |(_, next): &(usize, char)| matches!(*next, '\\' | '$' | '`');
        if c == '\\' && characters.next_if(is_escape).is_none() {
            return Some(at);
        }
    }
    None
}

/// Returns true for a JSON document that is another one, or none, without its escapes.
fn breaks_json(text: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    let meant = read(text).filter(|_| text.contains('\\') && !text.contains('$'));
    meant.is_some() && meant != read(&unescaped(text))
}

/// A text as the parser leaves it.
fn unescaped(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\\' {
            kept.extend(characters.next());
        } else {
            kept.push(c);
        }
    }
    kept
}

/// Returns true if a variable of a document may have a value, or an escaped `$` is not one.
fn may_expand(it: &EvaluatedStep<'_>, text: &str) -> bool {
    text.contains("\\$")
        || text.contains('$') && !it.stage.knows_environment
        || dollar_names(text).any(|name| it.state.declares(name) || is_inherited(it, name))
}

/// The edit that puts the name of a here-document in quotes.
fn in_quotes(it: &EvaluatedStep<'_>, name: &str) -> Option<Edit> {
    let text = it.step.instruction.text();
    let at = ["<<", "<<-"].iter().find_map(|operator| {
        let at = text.find(&format!("{operator}{name}"))?;
        Some(at + operator.len())
    })?;
    let start = it.step.instruction.start() + at;
    Some(Edit::new(start..start + name.len(), format!("\"{name}\"")))
}

/// Reports a variable of a here-document that nothing sets: most are of PowerShell.
pub(super) fn check_unset(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let lexer = Lexer {
        escape: Escape::Backslash,
        keeps_quotes: true,
    };
    expanding(it).find_map(|(copy, document)| {
        let text = document.text.as_str();
        let expanded = it.state.expand(lexer, text, &it.linted.arguments).ok()?;
        let is_env = |name: &str| {
            let read = format!("${name}:");
            name.eq_ignore_ascii_case("env") && text.contains(&read)
        };
        let is_unset = |name: &&String| {
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            let is_open = name.eq_ignore_ascii_case("path")
                || it.state.declares(name)
                || it.linted.arguments.is_declared(name)
                || is_inherited(it, name);
            is_name && !is_open && (it.stage.knows_environment || is_env(name))
        };
        let name = expanded.unset.iter().find(is_unset)?;
        let mend = if may_expand(it, text) {
            format!("write \\${name}")
        } else {
            format!("write <<\"{}\"", document.name)
        };
        let message = format!(
            "a here-document expands variables, and ${name}, which is not set, becomes nothing: {mend}"
        );
        let is_script = has_extension(&copy.target, &["ps1", "psm1", "psd1"]);
        let severity = Severity::error_if(is_script || is_env(name));
        Some(it.step.finding(message).severity(severity))
    })
}
