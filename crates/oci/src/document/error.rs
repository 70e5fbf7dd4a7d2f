//! Errors of documents.

use std::fmt::Display;

use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_common::digest::Digest;

/// A manifest, index or configuration that cannot be used.
#[derive(Debug, thiserror::Error, Diagnose)]
#[error(transparent)]
#[diagnose(forward)]
pub struct DocumentError(Problem);

impl DocumentError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self(Problem::new("image/document", problem))
    }

    /// Sets the parser's error.
    pub(super) fn because(self, error: serde_json::Error) -> Self {
        Self(self.0.source(error))
    }

    pub(super) fn hint(self, hint: &str) -> Self {
        Self(self.0.hint(hint))
    }

    /// Error for a document that nothing correct has written.
    pub(super) fn damaged(problem: String) -> Self {
        Self::new(problem).hint("it is damaged or forged: build or mirror the image again")
    }

    /// Error for a text that is not JSON, or not of the expected form; `what` is the expected kind.
    pub(super) fn shape(digest: &Digest, what: &str, error: serde_json::Error) -> Self {
        Self::damaged(format!("{digest} is not a valid {what}")).because(error)
    }

    /// Error for a document whose stated type, announced type or fields disagree.
    pub(super) fn ambiguous(digest: &Digest, reason: impl Display) -> Self {
        Self::new(format!("{digest} is ambiguous: {reason}"))
    }
}
