//! Registration files (`.reg`): what `regedit` exports, read as edits and written from hives.

mod edits;
mod export;
mod import;
mod line;
mod text;

pub use edits::from_edits;
pub use export::{export, to_utf16};
pub use import::{RegFile, import};

/// A registration file that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct RegFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in the line, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

#[cfg(test)]
mod tests;
