//! Conditions of Burn: `VersionNT = v6.3 AND VersionNT64`.
//!
//! Only what is certain of every Windows image is known: Windows 10 or newer, 64 bits.

use std::cmp::Ordering;

use crate::condition::{Comparison, Logic, Operand, Operator, decide, ordered};

/// Evaluates a condition; an empty one is true. `None` if it is invalid, or depends on more than
/// what is known.
pub(super) fn evaluate(condition: &str) -> Option<bool> {
    decide(condition, &[Operator::Or, Operator::And], &truth)
}

fn truth(left: &Operand, comparison: Option<(Comparison, bool, &Operand)>) -> Option<Logic> {
    let left = Term::read(left)?;
    let Some((comparison, ignores_case, right)) = comparison else {
        return Some(match left {
            Term::Variable(name) => is_set(&name),
            Term::Number(number) => Some(number != 0),
            Term::Version(_) | Term::Text => None,
        });
    };
    let is_of_texts = matches!(
        comparison,
        Comparison::Contains | Comparison::Starts | Comparison::Ends
    );
    if is_of_texts || ignores_case {
        return None;
    }
    let order = match (&left, &Term::read(right)?) {
        (Term::Variable(name), other) => compare(name, other),
        (other, Term::Variable(name)) => compare(name, other).map(Ordering::reverse),
        _ => None,
    };
    Some(order.map(|order| ordered(order, comparison)))
}

enum Term {
    Variable(String),
    Number(i64),
    Version(Vec<u32>),
    Text,
}

impl Term {
    fn read(operand: &Operand) -> Option<Self> {
        let word = match operand {
            Operand::Symbol(word) => word,
            Operand::Number(number) => return Some(Self::Number(i64::from(*number))),
            Operand::Text(_) => return Some(Self::Text),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if !word.chars().all(is_part) {
            return None;
        }
        let version = word.strip_prefix(['v', 'V']);
        if let Some(version) = version.filter(|it| it.starts_with(|c: char| c.is_ascii_digit())) {
            let parts = version.split('.').map(|part| part.parse().ok());
            return parts.collect::<Option<Vec<u32>>>().map(Self::Version);
        }
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return word.parse().ok().map(Self::Number);
        }
        Some(Self::Variable(word.to_ascii_lowercase()))
    }
}

/// Whether a variable is neither missing nor zero.
fn is_set(name: &str) -> Logic {
    match name {
        "versionnt" | "versionnt64" => Some(true),
        "servicepacklevel" => Some(false),
        _ => None,
    }
}

/// Compares a variable. The version of Windows is 10.0; whether it has a build depends on the
/// version of Burn.
fn compare(name: &str, other: &Term) -> Option<Ordering> {
    match (name, other) {
        ("versionnt" | "versionnt64", Term::Version(version)) => {
            let part = |at: usize| version.get(at).copied().unwrap_or_default();
            match (10, 0).cmp(&(part(0), part(1))) {
                Ordering::Equal => None,
                order => Some(order),
            }
        }
        // Windows 10 and newer have no service packs.
        ("servicepacklevel", Term::Number(number)) => Some(0.cmp(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_image_has_is_known() {
        for (condition, expected) in [
            ("", true),
            ("VersionNT64", true),
            ("NOT VersionNT64", false),
            ("VersionNT = v6.3 AND VersionNT64", false),
            ("VersionNT >= v6.1", true),
            ("v6.1 < VersionNT", true),
            ("VersionNT > v11.0 OR VersionNT > v6.0.6001", true),
            (
                "(VersionNT > v6.1) OR (VersionNT = v6.1 AND ServicePackLevel >= 1)",
                true,
            ),
            ("ServicePackLevel < 1", true),
            ("NOT (VersionNT = v6.2 OR ServicePackLevel)", true),
            // What is unknown does not matter.
            ("VersionNT = v6.0 AND Other = \"x\"", false),
            ("VersionNT64 OR Other", true),
        ] {
            assert_eq!(evaluate(condition), Some(expected), "{condition}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for condition in [
            "VersionNT >= v10.0.17763",
            "VersionNT = v10.0",
            "Other",
            "NOT Other",
            "VersionNT64 AND Other",
            "VersionNT = 603",
            "VersionNT ~= v6.1",
            "(VersionNT64",
            "VersionNT64)",
            "AND",
            "VersionNT64 VersionNT",
            "\"a",
            "VersionNT >",
            "VersionNT64 AND",
            "vx",
            "[x]",
            "é",
        ] {
            assert_eq!(evaluate(condition), None, "{condition}");
        }
        assert_eq!(evaluate(&"(".repeat(100_000)), None);
        assert_eq!(evaluate(&"NOT ".repeat(100_000)), None);
    }
}
