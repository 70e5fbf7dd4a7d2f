//! Secrets that a file writes into its image.

use super::evaluation::EvaluatedStep;
use super::words::has_drive;
use super::{ContainsAny, Finding};
use crate::instruction::InstructionKind;

/// Ends of names, without separators, of secrets that people choose.
const PASSWORDS: [&str; 3] = ["password", "passwd", "pword"];

/// Ends of names, without separators, of secrets that programs generate.
const GENERATED: [&str; 5] = ["secret", "token", "apikey", "secretkey", "accesskey"];

/// Parts of names that are not secrets, as for `BuildKit`.
const OTHERS: [&str; 3] = ["public", "file", "version"];

/// Parts of values that are placeholders.
const PLACEHOLDERS: [&str; 18] = [
    "your", "change", "example", "placeholder", "dummy", "replace", "insert", "redacted", "xxx",
    "todo", "**", "enable", "disable", "default", "random", "required", "optional", "undefined",
];

/// Reports values of `ENV`, and defaults of `ARG`, that are secrets by their names.
pub(super) fn check(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let (pairs, mend): (Vec<(&str, &str)>, _) = match it.kind {
        InstructionKind::Env(list) => {
            let pairs = list
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            let mend = "set it when the container starts, as with docker run --env";
            (pairs.collect(), mend)
        }
        InstructionKind::Arg(list) => {
            let pairs = list.iter();
            let pairs = pairs.filter_map(|(name, it)| Some((name.as_str(), it.as_deref()?)));
            let mend = "omit the default, and pass a short-lived value with --build-arg: the image's \
                history keeps it";
            (pairs.collect(), mend)
        }
        _ => return Vec::new(),
    };
    let (start, text) = (it.step.instruction.start(), it.step.instruction.text());
    let mut found = Vec::new();
    for (name, value) in pairs {
        if !is_secret(it, name, value) {
            continue;
        }
        let mut places = text.match_indices(name).map(|(at, _)| at);
        let is_whole = |at: &usize| {
            text[at + name.len()..].starts_with(['=', ' ', '\t'])
                && !text[..*at].ends_with(|c: char| !c.is_whitespace())
        };
        let at = start + places.find(is_whole).unwrap_or(0);
        let message = format!("everyone who has this file or the image can read {name}: {mend}");
        found.push(it.step.finding_at(at, message));
    }
    found
}

/// Returns true for a secret by its name, whose value is as it is written and not a placeholder.
fn is_secret(it: &EvaluatedStep<'_>, name: &str, value: &str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', '-', '.'], "");
    let name = plain(name);
    let ends_in = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let is_password = ends_in(&PASSWORDS);
    if !(is_password || ends_in(&GENERATED)) || name.contains_any(&OTHERS) {
        return false;
    }
    // A shell, or a program that fills in the file, expands these.
    let is_open = value.contains(['$', '%', '{', '<', '[', '(', '\\', ' ']);
    let Some(expanded) = it.expand(value).filter(|_| !is_open) else {
        return false;
    };
    let value = expanded.text.to_ascii_lowercase();
    let is_path =
        has_drive(&value) || value.contains("://") || value.starts_with(['/', '.', '_', '@', '#']);
    if is_path || value.contains_any(&PLACEHOLDERS) || name.ends_with(&plain(&value)) {
        return false;
    }
    if is_password {
        // Shorter ones are yes, none, admin and the like.
        return value.len() > 5;
    }
    // Others are names, also of secrets that are elsewhere.
    let digits = value.chars().filter(char::is_ascii_digit).count();
    value.len() > 15 && digits > 2 && !value.contains_any(&["secret", "token", "key"])
}
