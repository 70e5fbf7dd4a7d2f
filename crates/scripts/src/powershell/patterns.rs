//! Regular expressions with the same meaning in .NET and here.

use regex::{Captures, Regex, RegexBuilder};
use wincimg_common::untrusted::QuotedText;

use super::super::error::{self, Result, ScriptError};
use super::value::PsValue;

/// Maximum size of a compiled pattern.
const SIZE: usize = 1 << 18;

/// Compiles a pattern, which ignores case unless `is_exact`.
pub(super) fn regex(pattern: &str, is_exact: bool) -> Result<Regex> {
    let unsupported =
        || ScriptError::unclear(format!("unsupported pattern {}", QuotedText(pattern)));
    // These have another meaning in .NET.
    let differs = [
        "(?<", "(?'", "\\Z", "\\z", "\\G", "(?P", "&&", "--", "~~", "\\u", "\\x", "\\p", "\\<",
        "\\>", "\\b{", "{,",
    ];
    if !pattern.is_ascii()
        || has_nested_class(pattern)
        || differs.iter().any(|sign| pattern.contains(sign))
    {
        return Err(unsupported());
    }
    RegexBuilder::new(pattern)
        .case_insensitive(!is_exact)
        .size_limit(SIZE)
        .build()
        .map_err(|_| unsupported())
}

/// Returns true for a bracket in a class: `[[:space:]]`, and `[a-z-[aeiou]]`, which subtracts in .NET.
fn has_nested_class(pattern: &str) -> bool {
    let mut is_class = false;
    let mut characters = pattern.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            '[' if is_class => return true,
            '[' => {
                is_class = true;
                characters.next_if_eq(&'^');
                characters.next_if_eq(&']');
            }
            ']' => is_class = false,
            _ => {}
        }
    }
    false
}

/// Checks that a text can be matched: one line of ASCII.
fn plain(text: &str) -> Result<&str> {
    if !text.is_ascii() || text.contains('\n') {
        return error::unclear("matching several lines or non-ASCII text is not supported");
    }
    Ok(text)
}

/// Value of `$matches` after a match.
pub(super) fn groups(
    text: &str,
    pattern: &str,
    is_exact: bool,
) -> Result<Option<Vec<(String, PsValue)>>> {
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

pub(super) fn is_match(text: &str, pattern: &str) -> Result<bool> {
    Ok(regex(pattern, false)?.is_match(plain(text)?))
}

pub(super) fn replace(text: &str, pattern: &str, by: &str, is_exact: bool) -> Result<String> {
    let regex = regex(pattern, is_exact)?;
    let text = plain(text)?;
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at <= text.len()
        && let Some(groups) = regex.captures_at(text, at)
        && let Some(found) = groups.get(0)
    {
        out.push_str(&text[copied..found.start()]);
        expand(by, &groups, &mut out)?;
        copied = found.end();
        // Unlike here, .NET also finds an empty match directly after another match.
        at = copied + usize::from(found.is_empty());
    }
    out.push_str(&text[copied..]);
    Ok(out)
}

/// Splits a text into at most `limit` parts; 0 means no limit.
pub(super) fn split(text: &str, pattern: &str, limit: i64) -> Result<Vec<PsValue>> {
    let regex = regex(pattern, false)?;
    // .NET also returns groups, and empty strings around matches of an empty pattern.
    if regex.captures_len() > 1 || regex.is_match("") {
        return error::unclear("unsupported separator of -split");
    }
    let limit = match limit {
        0 => usize::MAX,
        limit => usize::try_from(limit)
            .map_err(|_| ScriptError::unclear("-split from the end is not supported"))?,
    };
    let parts = regex.splitn(plain(text)?, limit);
    Ok(parts.map(PsValue::text_value).collect())
}

/// Appends a replacement with its groups: `$1`, and `$$` for a dollar sign. A number without a group
/// stays as it is.
fn expand(by: &str, groups: &Captures<'_>, out: &mut String) -> Result<()> {
    let mut rest = by;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        let (number, later) = after.split_at(length);
        rest = later;
        match number.parse::<usize>() {
            Ok(group) if group < groups.len() => {
                out.push_str(groups.get(group).map_or("", |group| group.as_str()));
            }
            Ok(_) => {
                out.push('$');
                out.push_str(number);
            }
            Err(_) => match after.strip_prefix('$') {
                Some(later) => {
                    out.push('$');
                    rest = later;
                }
                None => return error::unclear("unsupported replacement"),
            },
        }
    }
    out.push_str(rest);
    Ok(())
}
