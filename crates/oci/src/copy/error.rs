//! Errors of copying an image.

use wincimg_common::diagnose::Diagnose;

use crate::document::{Digest, DocumentError};
use crate::store::StoreError;

/// An image that could not be copied.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "image/document")]
pub enum CopyError {
    /// A place failed.
    #[error(transparent)]
    #[diagnose(forward, blame = Circumstances)]
    Store(#[from] StoreError),
    /// A document could not be rewritten.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// No image is for the platforms asked for.
    #[error("{image} has no image for {wanted}: it has {available}")]
    #[diagnose(code = "image/no-platform")]
    NoPlatform {
        /// What was looked at.
        image: String,
        /// The platforms asked for.
        wanted: String,
        /// Those that exist.
        available: String,
    },
    /// An index names indexes that name indexes, and so on.
    #[error("{digest} is nested too deeply: expected an index of images")]
    TooDeep {
        /// The innermost index that was looked at.
        digest: Digest,
    },
    /// A foreign layer is nowhere.
    #[error("{place} does not have the foreign layer {digest}, and it names no url to get it from")]
    NowhereToBeFound {
        /// The source.
        place: String,
        /// The layer.
        digest: Digest,
    },
}
