//! Values that only a quoting helper can write.
//!
//! A plan's texts go to the templates with a mark in front. The helpers take it away and quote what
//! is left; what a template writes past them keeps its mark, and a Dockerfile with a mark in it is
//! not given out.

use serde::{Serialize, Serializer};

/// No value can have it: Windows and the daemon take a null for the end of a text.
pub(super) const MARK: char = '\0';

/// A text of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guarded(String);

impl Guarded {
    pub(super) fn list<T: ToString>(texts: impl IntoIterator<Item = T>) -> Vec<Self> {
        texts.into_iter().map(|text| Self::of(&text)).collect()
    }

    pub(super) fn of(text: &(impl ToString + ?Sized)) -> Self {
        Self(text.to_string())
    }
}

impl Serialize for Guarded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{MARK}{}", self.0))
    }
}

/// A text as the helpers get it: the plan's with its mark, the template's own without.
pub(super) fn unguarded(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}
