//! What was probably meant by a recipe that cannot be read.

use super::{Origin, RecipeError};
use crate::diagnose::nearest;

impl Origin {
    /// What the parser found, with what was meant where that can be seen.
    pub(super) fn unreadable(&self, error: &toml::de::Error) -> RecipeError {
        let offset = error.span().map_or(0, |span| span.start);
        if let Some((key, value)) = bare_word(&self.text, offset) {
            let problem = format!("the text {value} has no quotes");
            return self
                .error_at(offset, problem)
                .with_hint(format!("quote it: {key} = {value:?}"));
        }
        if let Some(name) = meant(error.message()) {
            // All others beside it do not help.
            let problem = error.message().split(", expected").next();
            return self
                .error_at(offset, problem.unwrap_or_default())
                .with_hint(format!("did you mean `{name}`?"));
        }
        let found = self.error_at(offset, error.message());
        if error.message().starts_with("invalid type: floating point")
            && let Some((key, value)) = assignment(&self.text, offset)
        {
            return found.with_hint(format!("quote it: {key} = \"{value}\""));
        }
        found
    }
}

/// The key and the value of a line such as `base = nanoserver`: the parser takes such a word for the
/// beginning of a number or a date, as `nan` is one.
fn bare_word(text: &str, offset: usize) -> Option<(&str, &str)> {
    let (key, value) = assignment(text, offset)?;
    let is_word = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:\\ ".contains(c));
    let is_value = matches!(value, "true" | "false" | "nan" | "inf");
    (is_word && !is_value).then_some((key, value))
}

/// The key and the value of the line at a place, as far as that has one.
fn assignment(text: &str, offset: usize) -> Option<(&str, &str)> {
    let start = text.get(..offset)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next()?;
    let (key, value) = line.split_once('=')?;
    Some((key.trim(), value.split('#').next()?.trim()))
}

/// The nearest of the names in a message such as "unknown field `fiels`, expected one of `files`".
fn meant(message: &str) -> Option<String> {
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?;
    let (typed, expected) = rest.split_once('`')?;
    nearest(typed, expected.split('`').skip(1).step_by(2))
}
