//! Errors of reading a package.

use std::{fmt, io};

use super::plan::TransformPlace;

/// Error of reading a package or planning its installation.
#[derive(Debug, thiserror::Error)]
pub enum MsiError {
    /// The file cannot be read.
    #[error("cannot read the package")]
    Read(#[from] io::Error),
    /// The file is not a package, or damaged.
    #[error("damaged package: {0}")]
    Damaged(String),
    /// The package is larger than any real one.
    #[error("the package exceeds a limit: {0}")]
    TooLarge(String),
    /// The installation fails, as it does on Windows.
    #[error("{0}")]
    Fails(String),
    /// Something is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// A condition fails that a skipped action may decide, or a property of the line.
    #[error("{0}")]
    Undecided(String),
}

impl MsiError {
    pub(crate) fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged(why.into())
    }

    /// The error of a transform, with its name.
    pub(crate) fn of_transform(mut self, place: &TransformPlace) -> Self {
        if let Self::Damaged(text)
        | Self::TooLarge(text)
        | Self::Fails(text)
        | Self::Unsupported(text) = &mut self
        {
            *text = format!("the transform {place} cannot be applied: {text}");
        }
        self
    }

    pub(crate) fn unsupported(why: impl fmt::Display) -> Self {
        Self::Unsupported(why.to_string())
    }
}
