//! Errors of copying an image.

use wincimg_common::diagnose::Diagnose;

use crate::document::DocumentError;
use crate::store::StoreError;

/// An image that could not be copied.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum CopyError {
    /// The source or the target failed.
    #[error(transparent)]
    #[diagnose(forward, blame = Circumstances)]
    Store(#[from] StoreError),
    /// A document could not be rewritten.
    #[error(transparent)]
    #[diagnose(forward)]
    Document(#[from] DocumentError),
}
