//! Errors of reading a package.

use std::io;

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
}

impl MsiError {
    pub(crate) fn damaged(why: impl Into<String>) -> Self {
        Self::Damaged(why.into())
    }

    pub(crate) fn unsupported(why: impl Into<String>) -> Self {
        Self::Unsupported(why.into())
    }
}
