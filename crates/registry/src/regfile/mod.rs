//! Registration files (`.reg`): what `regedit` exports, read as edits and written from hives.

mod edits;
mod export;
mod import;
mod line;
mod text;

pub use edits::from_edits;
pub use export::{export, to_utf16};
pub use import::{Imported, import};

use crate::KeyPathError;

/// A registration file that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct RegFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a registration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes are in no encoding that registration files have.
    #[error("{0}")]
    Encoding(&'static str),
    /// The first line is not the one that says what the file is.
    #[error(
        "not a registration file: expected \"Windows Registry Editor Version 5.00\" or \"REGEDIT4\""
    )]
    Header,
    /// Something else should stand there.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A number or a list of bytes is not one.
    #[error("expected a {what}, found {text:?}")]
    Number {
        /// The text.
        text: String,
        /// What it should be.
        what: &'static str,
    },
    /// The key cannot be had in an image.
    #[error(transparent)]
    Key(#[from] KeyPathError),
}

#[cfg(test)]
mod tests;
