//! Unix-style options: letters that may be combined, words that may have a value.

use super::super::error::{self, Result, ScriptError};

/// Options with and without a value.
pub(super) struct OptionSpec {
    pub(super) letters: &'static str,
    pub(super) letters_with_value: &'static str,
    pub(super) words: &'static [&'static str],
    pub(super) words_with_value: &'static [&'static str],
}

/// Option, by its letter or word, or operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    Option(String, Option<String>),
    Operand(String),
}

/// Parses the arguments of a program; unknown options are refused.
pub(super) fn read(words: &[String], known: &OptionSpec) -> Result<Vec<Argument>> {
    let mut found = Vec::new();
    let mut rest = words.iter();
    let missing = |option: &str| ScriptError::fails(format!("{option} requires a value"));
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            if known.words_with_value.contains(&name) {
                let value = match value {
                    Some(value) => value,
                    None => rest.next().ok_or_else(|| missing(word))?.clone(),
                };
                found.push(Argument::Option(name.to_owned(), Some(value)));
            } else if known.words.contains(&name) && value.is_none() {
                found.push(Argument::Option(name.to_owned(), None));
            } else {
                return error::option(word);
            }
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            found.push(Argument::Operand(word.clone()));
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let name = letter.to_string();
            if known.letters_with_value.contains(letter) {
                let joined = &letters[at + letter.len_utf8()..];
                let value = if joined.is_empty() {
                    rest.next().ok_or_else(|| missing(word))?.clone()
                } else {
                    joined.to_owned()
                };
                found.push(Argument::Option(name, Some(value)));
                break;
            }
            if !known.letters.contains(letter) {
                return error::option(&format!("-{letter}"));
            }
            found.push(Argument::Option(name, None));
        }
    }
    Ok(found)
}
