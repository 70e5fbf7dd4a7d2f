//! Why facts about a base could not be read or made.

use std::io;
use std::sync::Arc;

use wincimg_common::diagnose::Diagnose;
use wincimg_registry::BaseReadError;

/// The format that is written and read.
pub const FORMAT: u32 = 1;

/// Facts about a base that cannot be read or made.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "base/facts")]
pub enum FactsError {
    /// The file could not be read.
    #[error("cannot read facts about a base")]
    Io(#[from] io::Error),
    /// It is a file of another kind.
    #[error("not a file of facts about a base")]
    NotFacts,
    /// A later wincimg made it.
    #[error("facts about a base in format {0}: expected {expected}", expected = FORMAT)]
    Format(u32),
    /// Its bytes are not as they were written.
    #[error("damaged facts about a base: {0}")]
    Damaged(&'static str),
}

impl From<FactsError> for BaseReadError {
    fn from(error: FactsError) -> Self {
        Self(Arc::new(error))
    }
}
