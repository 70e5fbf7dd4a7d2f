//! Registration files (`.reg`) of `regedit`, read as edits and written from hives.

mod edits;
mod export;
mod import;
mod line;
mod text;

pub use edits::from_edits;
pub use export::{export, to_utf16};
pub use import::{RegFile, import};

/// Error of parsing a registration file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct RegFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// The problem.
    pub problem: String,
}

#[cfg(test)]
mod tests;
