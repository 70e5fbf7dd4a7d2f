//! Errors of reading a layer.

use std::io;
use std::sync::Arc;

use wincimg_common::diagnose::Diagnose;
use wincimg_layer::{LayerError, TarReadError};
use wincimg_oci::document::Digest;
use wincimg_oci::store::StoreError;
use wincimg_registry::{KeyPathError, hive};

/// A layer whose registry changes cannot be read.
#[derive(Debug, thiserror::Error, Diagnose)]
#[error("cannot read layer {} ({digest})", .layer + 1)]
#[diagnose(code = "image/layer")]
pub struct LayerReadError {
    /// Position, counted from 0 at the bottom.
    pub layer: usize,
    /// Digest.
    pub digest: Digest,
    /// The problem.
    pub source: LayerProblem,
}

/// Problem of a layer.
#[derive(Debug, thiserror::Error)]
pub enum LayerProblem {
    /// The source of the layer failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its bytes cannot be read to their end, or do not match the digest.
    #[error("cannot read its bytes")]
    Read(#[from] io::Error),
    /// Windows could not read it.
    #[error(transparent)]
    Tar(#[from] TarReadError),
    /// It could not be read while it was transferred, and its bytes match the digest.
    #[error(transparent)]
    Observed(Arc<LayerProblem>),
    /// It cannot be written again.
    #[error(transparent)]
    Write(#[from] LayerError),
    /// Its hives require too much memory.
    #[error("its hives require more than {limit} bytes of memory")]
    TooMuch {
        /// Limit on their size.
        limit: u64,
    },
    /// A hive is damaged.
    #[error("its hive {name} cannot be used")]
    Hive {
        /// The hive's file name.
        name: &'static str,
        /// Reason.
        source: hive::HiveReadError,
    },
    /// A hive has a key that Windows would not load.
    #[error("its hive {name} has an invalid key")]
    Key {
        /// The hive's file name.
        name: &'static str,
        /// Reason.
        source: KeyPathError,
    },
    /// The layer is part of Windows, and its bytes are stored elsewhere.
    #[error("it is foreign, and its bytes are not stored with the image")]
    ForeignBase,
    /// The bottom layer of Windows has no registry.
    #[error("the bottom layer of an image for Windows should have {files}")]
    NoBase {
        /// The missing files.
        files: String,
    },
}
