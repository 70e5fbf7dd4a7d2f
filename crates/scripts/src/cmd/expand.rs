//! Expansion of `%NAME%`, which cmd does before it parses a line.

use wincimg_windows::quoting::cmd::LIMIT;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{Lookup, PendingDownload};
use super::super::process::Process;
use super::super::traced_text::TracedText;
use super::super::variables::unknown_variable;

/// Expands the variables of a line as the command line does: unknown names stay.
pub(super) fn expand(machine: &Process<'_>, line: &TracedText) -> Result<TracedText> {
    let text = line.as_str();
    let mut out = TracedText::default();
    let mut from = 0;
    while let Some(start) = text[from..].find('%').map(|at| from + at) {
        out.append(&line.part(from..start));
        let end = text[start + 1..].find('%').map(|at| start + 1 + at);
        let origin = line.origin(start);
        let value = end.map_or(Ok(None), |end| value(machine, &text[start + 1..end]));
        match (value.map_err(|error| error.at_position(origin))?, end) {
            (Some(value), Some(end)) => {
                out.append(&TracedText::from_one(&value, origin));
                from = end + 1;
            }
            _ => {
                out.push('%', origin);
                from = start + 1;
            }
        }
    }
    out.append(&line.from(from));
    check_length(&out)?;
    Ok(out)
}

/// Refuses a line that is longer than cmd allows.
pub(super) fn check_length(line: &TracedText) -> Result<()> {
    if line.as_str().len() > LIMIT {
        return error::unclear("the line is longer than cmd allows");
    }
    Ok(())
}

/// Variables of cmd itself whose values only Windows knows.
const OF_WINDOWS: [&str; 6] = [
    "DATE", "TIME", "RANDOM", "CMDCMDLINE", "CMDEXTVERSION", "HIGHESTNUMANODENUMBER",
];

/// Value of the text between two percent signs, if the variable exists.
pub(super) fn value(machine: &Process<'_>, inside: &str) -> Result<Option<String>> {
    let (name, modifier) = match inside.split_once(':') {
        Some((name, modifier)) if !modifier.is_empty() => (name, Some(modifier)),
        _ => (inside, None),
    };
    if name.is_empty() {
        return Ok(None);
    }
    let value = match machine.variable(name) {
        Lookup::Present(value) => value,
        Lookup::Absent => match name.to_ascii_uppercase().as_str() {
            "CD" => machine.folder.to_string(),
            "PROMPT" => "$P$G".to_owned(),
            // No command of the line has run yet.
            "ERRORLEVEL" => "0".to_owned(),
            upper if OF_WINDOWS.contains(&upper) => {
                return error::windows(format!("the value of %{name}% is known only on Windows"));
            }
            _ => return Ok(None),
        },
        Lookup::Deferred(PendingDownload) => {
            return error::later(format!("the value of %{name}% depends on a download"));
        }
        Lookup::Unknown => return Err(unknown_variable(name, &format!("%{name}%"))),
    };
    match modifier {
        None => Ok(Some(value)),
        Some(modifier) => modified(&value, modifier)
            .map(Some)
            .ok_or_else(|| ScriptError::unclear(format!("unsupported form %{inside}%"))),
    }
}

fn modified(value: &str, modifier: &str) -> Option<String> {
    if let Some(range) = modifier.strip_prefix('~') {
        let characters: Vec<char> = value.chars().collect();
        let length = i64::try_from(characters.len()).ok()?;
        let (start, count) = match range.split_once(',') {
            Some((start, count)) => (start.parse::<i64>().ok()?, Some(count.parse::<i64>().ok()?)),
            None => (range.parse::<i64>().ok()?, None),
        };
        let start = if start < 0 { length + start } else { start }.clamp(0, length);
        let end = match count {
            None => length,
            Some(count) if count < 0 => length + count,
            Some(count) => start.saturating_add(count),
        }
        .clamp(start, length);
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        return Some(characters[range].iter().collect());
    }
    let (from, to) = modifier.split_once('=')?;
    if from.is_empty() || from.starts_with('*') || !value.is_ascii() || !from.is_ascii() {
        return None;
    }
    let mut out = String::new();
    let mut rest = value;
    let from = from.to_ascii_lowercase();
    while let Some(at) = rest.to_ascii_lowercase().find(&from) {
        out.push_str(&rest[..at]);
        out.push_str(to);
        rest = &rest[at + from.len()..];
    }
    out.push_str(rest);
    Some(out)
}
