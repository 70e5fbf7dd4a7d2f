//! A text that is not what it has to be.

/// A text that is not what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {text:?}: expected {expected}")]
pub struct InvalidText {
    what: &'static str,
    text: String,
    expected: &'static str,
}

impl InvalidText {
    /// Says what the text was to be, and how that is written.
    pub fn new(what: &'static str, text: &str, expected: &'static str) -> Self {
        Self {
            what,
            text: text.to_owned(),
            expected,
        }
    }
}
