//! Why a layer could not be read.

use std::io;

use wincimg_common::diagnose::Diagnose;
use wincimg_layer::TarReadError;
use wincimg_oci::document::Digest;
use wincimg_oci::store::StoreError;
use wincimg_registry::{KeyPathError, hive};

/// A layer whose registry changes could not be found out.
#[derive(Debug, thiserror::Error, Diagnose)]
#[error("cannot read layer {} ({digest})", .layer + 1)]
#[diagnose(code = "image/layer")]
pub struct LayerReadError {
    /// Its position, counted from 0 at the bottom.
    pub layer: usize,
    /// Its digest.
    pub digest: Digest,
    /// What is wrong.
    pub source: LayerProblem,
}

/// What is wrong with a layer.
#[derive(Debug, thiserror::Error)]
pub enum LayerProblem {
    /// The place that has it failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its bytes could not be read to their end, or are not those that its digest names.
    #[error("cannot read its bytes")]
    Read(#[source] io::Error),
    /// Windows could not read it.
    #[error(transparent)]
    Tar(#[from] TarReadError),
    /// Its hives take too much memory.
    #[error("its hives take more than {limit} bytes of memory")]
    TooMuch {
        /// The most that they may take.
        limit: u64,
    },
    /// One of its hives is damaged.
    #[error("its hive {name} cannot be used")]
    Hive {
        /// The hive's file name.
        name: &'static str,
        /// Why.
        source: hive::HiveReadError,
    },
    /// One of its hives has a key that Windows would not load.
    #[error("its hive {name} has an invalid key")]
    Key {
        /// The hive's file name.
        name: &'static str,
        /// Why.
        source: KeyPathError,
    },
    /// It is Windows itself, and its bytes are elsewhere.
    #[error("it is foreign, and its bytes are not where the image is")]
    ForeignBase,
    /// It should be Windows itself but has no registry.
    #[error("the bottom layer of an image for Windows should have {files}")]
    NoBase {
        /// The files that should be there.
        files: String,
    },
}
