//! Errors of reading and writing facts about a base.

use std::io;
use std::sync::Arc;

use wincimg_common::diagnose::Diagnose;
use wincimg_registry::BaseReadError;

/// Version of the file format.
pub(crate) const FORMAT: u32 = 2;

/// Facts about a base that cannot be read or written.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "base/facts")]
pub enum FactsError {
    /// The file cannot be read.
    #[error("cannot read facts about a base")]
    Io(#[from] io::Error),
    /// The file is of another kind.
    #[error("not a file of facts about a base")]
    NotFacts,
    /// The format is of a later wincimg.
    #[error("unsupported format {0} of facts about a base: expected {expected}", expected = FORMAT)]
    Format(u32),
    /// The bytes are damaged.
    #[error("damaged facts about a base: {0}")]
    Damaged(&'static str),
}

impl From<FactsError> for BaseReadError {
    fn from(error: FactsError) -> Self {
        Self(Arc::new(error))
    }
}
