//! The error for an invalid text.

use std::borrow::Cow;

/// An invalid text, with the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {text:?}: expected {expected}")]
pub struct InvalidText {
    what: &'static str,
    text: String,
    expected: Cow<'static, str>,
}

impl InvalidText {
    /// Creates the error; `what` is the kind of text, `expected` its valid form.
    pub fn new(what: &'static str, text: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            what,
            text: text.to_owned(),
            expected: expected.into(),
        }
    }
}
