//! Errors of reading a layer.

use std::io;
use std::sync::Arc;

use wincimg_common::diagnose::Diagnose;
use wincimg_layer::{LayerError, TarReadError};
use wincimg_oci::document::Digest;
use wincimg_oci::store::StoreError;
use wincimg_registry::{KeyPathError, hive};

/// A layer that cannot be read, or that no runtime unpacks.
#[derive(Debug, thiserror::Error, Diagnose)]
#[error("{} layer {} ({digest})", .source.verb(), .layer + 1)]
#[diagnose(code = "image/layer", hint = source.hint())]
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
    /// The digest of its uncompressed bytes differs from the one in the image's configuration.
    #[error("its uncompressed content has digest {found}: the configuration says {expected}")]
    DiffId {
        /// The digest in the configuration.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
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

impl LayerProblem {
    /// The problem as one of a layer of an image, counted from 0 at the bottom.
    pub fn in_layer(self, layer: usize, digest: &Digest) -> LayerReadError {
        let digest = digest.clone();
        LayerReadError {
            layer,
            digest,
            source: self,
        }
    }

    /// Compares a layer's uncompressed bytes, if all were read, with the configuration.
    pub(crate) fn check_diff_id(found: Option<&Digest>, expected: &Digest) -> Result<(), Self> {
        match found {
            Some(found) if found.algorithm() == expected.algorithm() && found != expected => {
                Err(Self::DiffId {
                    expected: expected.clone(),
                    found: found.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::DiffId { .. } => "no runtime unpacks",
            _ => "cannot read",
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = "build the image again, or push it again from where it was made";
        matches!(self, Self::DiffId { .. }).then(|| hint.to_owned())
    }
}
