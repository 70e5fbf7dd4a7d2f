//! Regular expressions with the same meaning in .NET and here.

use regex::{Regex, RegexBuilder};

use super::super::error::ScriptError;
use super::value::PsValue;

/// Maximum size of a compiled pattern.
const SIZE: usize = 1 << 18;

/// Compiles a pattern, which ignores case unless `is_exact`.
pub(super) fn regex(pattern: &str, is_exact: bool) -> Result<Regex, ScriptError> {
    let unsupported = || ScriptError::unclear(format!("unsupported pattern {pattern:?}"));
    // These have another meaning in .NET.
    let differs = [
        "(?<", "(?'", "\\Z", "\\z", "\\G", "(?P", "&&", "--", "~~", "\\u", "\\x", "\\p",
    ];
    if !pattern.is_ascii() || differs.iter().any(|sign| pattern.contains(sign)) {
        return Err(unsupported());
    }
    RegexBuilder::new(pattern)
        .case_insensitive(!is_exact)
        .size_limit(SIZE)
        .build()
        .map_err(|_| unsupported())
}

/// Checks that a text can be matched: one line of ASCII.
fn plain(text: &str) -> Result<&str, ScriptError> {
    if !text.is_ascii() || text.contains('\n') {
        return Err(ScriptError::unclear(
            "matching several lines or non-ASCII text is not supported",
        ));
    }
    Ok(text)
}

/// Value of `$matches` after a match.
pub(super) fn groups(
    text: &str,
    pattern: &str,
    is_exact: bool,
) -> Result<Option<Vec<(String, PsValue)>>, ScriptError> {
    let regex = regex(pattern, is_exact)?;
    let found = regex.captures(plain(text)?);
    Ok(found.map(|captures| {
        let groups = captures.iter().enumerate();
        groups
            .filter_map(|(number, group)| {
                Some((number.to_string(), PsValue::text_value(group?.as_str())))
            })
            .collect()
    }))
}

pub(super) fn is_match(text: &str, pattern: &str) -> Result<bool, ScriptError> {
    Ok(regex(pattern, false)?.is_match(plain(text)?))
}

pub(super) fn replace(
    text: &str,
    pattern: &str,
    by: &str,
    is_exact: bool,
) -> Result<String, ScriptError> {
    let regex = regex(pattern, is_exact)?;
    let by = replacement(by)?;
    Ok(regex.replace_all(plain(text)?, by).into_owned())
}

pub(super) fn split(text: &str, pattern: &str) -> Result<Vec<PsValue>, ScriptError> {
    let regex = regex(pattern, false)?;
    // .NET also returns groups, and empty strings around matches of an empty pattern.
    if regex.captures_len() > 1 || regex.is_match("") {
        return Err(ScriptError::unclear("unsupported separator of -split"));
    }
    Ok(regex.split(plain(text)?).map(PsValue::text_value).collect())
}

/// Converts a replacement to the syntax of the library: `$1` with braces.
fn replacement(text: &str) -> Result<String, ScriptError> {
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if c != '$' {
            out.push(c);
            continue;
        }
        match characters.peek() {
            Some('$') => {
                characters.next();
                out.push_str("$$");
            }
            Some(digit) if digit.is_ascii_digit() => {
                out.push_str("${");
                while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                    out.push(digit);
                }
                out.push('}');
            }
            _ => return Err(ScriptError::unclear("unsupported replacement")),
        }
    }
    Ok(out)
}
