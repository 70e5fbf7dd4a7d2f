//! Errors of documents: a manifest, index or configuration that cannot be used.

use std::fmt::Display;

use wincimg_common::diagnose::Problem;
use wincimg_common::digest::Digest;

pub(super) fn unusable(problem: impl Into<String>) -> Problem {
    Problem::new("image/document", problem)
}

/// Error for a document that nothing correct has written.
pub(super) fn damaged(problem: String) -> Problem {
    unusable(problem).hint("it is damaged or forged: build or mirror the image again")
}

/// Error for a text that is not JSON, or not of the expected form; `what` is the expected kind.
pub(super) fn shape(digest: &Digest, what: &str, error: serde_json::Error) -> Problem {
    damaged(format!("{digest} is not a valid {what}")).source(error)
}

/// Error for a document whose stated type, announced type or fields disagree.
pub(super) fn ambiguous(digest: &Digest, reason: impl Display) -> Problem {
    unusable(format!("{digest} is ambiguous: {reason}")).hint(
        "the tool that wrote it, or its registry, made a mistake: build or push the image again",
    )
}
