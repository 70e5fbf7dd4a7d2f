//! The error for an invalid text, and types for valid ones.

use std::borrow::Cow;

use wincimg_common::untrusted::QuotedText;

/// An invalid text, with the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} {}: expected {expected}", QuotedText(.text))]
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

/// Defines a type for texts that `$read` accepts: it returns the text to keep, if it is valid.
#[macro_export]
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:literal, $read:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::invalid::InvalidText;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let read = $read(text).map(Self);
                read.ok_or_else(|| $crate::invalid::InvalidText::new($what, text, $expected))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
