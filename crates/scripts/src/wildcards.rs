//! Names that match a pattern: of cmd and of PowerShell.

use wincimg_common::wildcards;

use super::error::{self, Result};

/// Dialect of wildcards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wildcards {
    /// Of Windows itself: of cmd, its programs, and `-Filter`.
    Cmd,
    PowerShell,
}

/// Highest number of a short name that is tried. After it, Windows makes other names.
const SHORT_NAMES: usize = 4;

/// Signs of a pattern as Windows reads it (`FsRtlIsNameInExpression`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `*`: any characters.
    Star,
    /// `*` before a dot: any characters, except the last dot and those after it.
    StarBeforeDot,
    /// `?`: one character, or nothing before a dot and at the end.
    Question,
    /// A dot before a wildcard: a dot, or the end.
    Dot,
    Character(char),
}

/// Returns true if a name matches a pattern; an error if its short name may match instead.
pub(super) fn name_matches(name: &str, pattern: &str, wildcards: Wildcards) -> Result<bool> {
    if wildcards == Wildcards::PowerShell {
        return Ok(is_like(name, pattern));
    }
    let expression = expression(pattern);
    if is_in(&lower(name), &expression) {
        return Ok(true);
    }
    let mut short = (1..=SHORT_NAMES).filter_map(|number| short_name(name, number));
    if short.any(|short| is_in(&lower(&short), &expression)) {
        return error::unclear(format!(
            "whether {pattern} matches {name} depends on its short name, which only Windows knows"
        ));
    }
    Ok(false)
}

/// Returns true for a pattern that every name matches, also that of an empty folder: `.`.
pub(super) fn is_everything(pattern: &str) -> bool {
    matches!(pattern, "*" | "*.*")
}

/// Returns true if a text matches a pattern of `*` and `?`, ignoring case.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    wildcards::matches(&pattern.to_lowercase(), &text.to_lowercase())
}

fn lower(text: &str) -> Vec<char> {
    text.to_lowercase().chars().collect()
}

/// Reads a pattern as `FindFirstFile` does.
fn expression(pattern: &str) -> Vec<Sign> {
    if is_everything(pattern) {
        return vec![Sign::Star];
    }
    let trimmed = pattern.trim_end_matches(['.', ' ']);
    let mut signs: Vec<Sign> = Vec::new();
    for c in trimmed.to_lowercase().chars() {
        match (c, signs.last_mut()) {
            ('*' | '?', Some(before)) if *before == Sign::Character('.') => *before = Sign::Dot,
            ('.', Some(before)) if *before == Sign::Star => *before = Sign::StarBeforeDot,
            _ => {}
        }
        signs.push(match c {
            '*' => Sign::Star,
            '?' => Sign::Question,
            c => Sign::Character(c),
        });
    }
    if pattern[trimmed.len()..].contains('.')
        && let Some(last) = signs.last_mut().filter(|last| **last == Sign::Star)
    {
        *last = Sign::StarBeforeDot;
    }
    signs
}

/// Returns true if a name is one of those of a pattern. `ends[n]` says whether the signs so far
/// match the first `n` characters.
fn is_in(name: &[char], signs: &[Sign]) -> bool {
    let length = name.len();
    let last_dot = name.iter().rposition(|c| *c == '.');
    let mut ends = vec![false; length + 1];
    ends[0] = true;
    for sign in signs {
        let mut next = vec![false; length + 1];
        for at in 0..=length {
            // Matched with the last character, and without one.
            let before = |ends: &[bool]| at > 0 && ends[at - 1];
            let c = at.checked_sub(1).map(|at| name[at]);
            next[at] = match sign {
                Sign::Star => ends[at] || before(&next),
                Sign::StarBeforeDot => ends[at] || before(&next) && at.checked_sub(1) != last_dot,
                Sign::Question => {
                    let may_be_nothing = at == length || name[at] == '.';
                    ends[at] && may_be_nothing || before(&ends) && c != Some('.')
                }
                Sign::Dot => ends[at] && at == length || before(&ends) && c == Some('.'),
                Sign::Character(own) => before(&ends) && c == Some(*own),
            };
        }
        ends = next;
    }
    ends[length]
}

/// The short name that a file may have beside its own: `LONGNA~1.HTM`. A name of that form has none.
fn short_name(name: &str, number: usize) -> Option<String> {
    let all = name;
    let name = all.trim_start_matches('.');
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_plain = |text: &str| !text.contains([' ', '.', '+', ',', ';', '=', '[', ']']);
    let is_short = stem.chars().count() <= 8
        && extension.chars().count() <= 3
        && name == all
        && is_plain(stem)
        && is_plain(extension);
    if is_short {
        return None;
    }
    let cut = |text: &str, length: usize| {
        let kept = text.chars().filter(|c| !matches!(c, ' ' | '.'));
        kept.take(length).collect::<String>()
    };
    let (stem, extension) = (cut(stem, 6), cut(extension, 3));
    Some(if extension.is_empty() {
        format!("{stem}~{number}")
    } else {
        format!("{stem}~{number}.{extension}")
    })
}

#[cfg(test)]
mod tests {
    use super::{Wildcards, name_matches};

    #[test]
    fn patterns_of_cmd_match_as_windows_matches_them() {
        for (pattern, matching, other) in [
            ("a?.t", &["a.t", "ab.t"][..], &["abc.t", "a", "ba.t"][..]),
            ("a?", &["a", "ab"], &["abc", "a.t"]),
            ("?", &["a"], &["ab", "a.t"]),
            ("*.", &["a", "ab"], &["a.t", "a.b.c"]),
            ("a*.", &["a", "ab"], &["ab.t"]),
            ("*.*", &["a", "a.t", ".x"], &[]),
            ("a*.*", &["a", "ab.t", "a.b.c"], &["b"]),
            ("*.*.*", &["x.y", "x.y.z", "x"], &[]),
            ("????????.???", &["a", "a.t", "eightcha.txt"], &[]),
            ("*.t?", &["a.t", "a.b.tx"], &["a", "a.txt"]),
            ("*.txt", &["a.txt", "a.b.txt", ".txt"], &["a.tx", "atxt"]),
            ("*a.t", &["a.t", "ba.t"], &["ab.t"]),
            (".*", &[".x", ".x.y"], &["a", "a.x"]),
            ("a.b*", &["a.b", "a.bc", "A.B"], &["a", "ab"]),
        ] {
            for name in matching {
                let found = name_matches(name, pattern, Wildcards::Cmd);
                assert_eq!(found, Ok(true), "{pattern} {name}");
            }
            for name in other {
                let found = name_matches(name, pattern, Wildcards::Cmd);
                assert_eq!(found, Ok(false), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn a_short_name_may_match_instead() {
        for (pattern, name) in [
            ("*.htm", "index.html"),
            ("????????.???", "longfilename.txt"),
            ("*1.txt", "long file.txt"),
        ] {
            assert!(
                name_matches(name, pattern, Wildcards::Cmd).is_err(),
                "{pattern} {name}"
            );
        }
        for (pattern, name) in [
            ("x*.htm", "index.html"),
            ("*.txt", "a.tx"),
            ("*.ht", "a.html"),
        ] {
            let found = name_matches(name, pattern, Wildcards::Cmd);
            assert_eq!(found, Ok(false), "{pattern} {name}");
        }
    }
}
