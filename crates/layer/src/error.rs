//! Errors of creating a layer.

use std::io;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_registry::BaseReadError;

use super::path::PathError;
use crate::archive::ArchiveError;

/// Error of describing or writing a layer.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "layer/failed")]
pub enum LayerError {
    /// A name that cannot be in a layer.
    #[error(transparent)]
    #[diagnose(blame = Request)]
    Path(#[from] PathError),
    /// What cannot be in an image, or not beside the rest of the layer and what the base has.
    #[error("{0}")]
    #[diagnose(blame = Request)]
    Refused(String),
    /// The base's facts cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable")]
    Inside(#[from] BaseReadError),
    /// A file or folder that could not be opened or read.
    #[error("cannot read {}", path.display())]
    #[diagnose(code = "file/io")]
    Read {
        /// Path on disk.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An existing layer that cannot be read.
    #[error("cannot read the layer")]
    Existing(#[source] io::Error),
    /// A file that is not downloaded.
    #[error("{0} is not downloaded")]
    NotDownloaded(String),
    /// A file that changed while the layer was written.
    #[error("{} changed while it was read", path.display())]
    #[diagnose(code = "file/changed")]
    Changed {
        /// Path on disk.
        path: PathBuf,
    },
    /// Other errors: a folder's `.dockerignore` is invalid, or rights cannot be granted.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
    /// An archive with files of the layer is invalid.
    #[error(transparent)]
    #[diagnose(forward)]
    Archive(#[from] ArchiveError),
    /// The layer could not be written.
    #[error("cannot write the layer")]
    Write(#[source] io::Error),
    /// The compressor failed.
    #[error("cannot compress the layer")]
    Compress(#[source] io::Error),
    /// The caller asked to stop.
    #[error("writing the layer was cancelled")]
    Cancelled,
}

impl LayerError {
    /// A device, socket or pipe where a file is expected.
    pub fn not_a_file(path: &Path) -> Self {
        let path = path.display();
        Self::Refused(format!(
            "{path} is neither a file, a folder nor a symbolic link"
        ))
    }

    /// A name on disk that is not Unicode and so cannot be a name on Windows.
    pub(super) fn not_unicode(path: &Path) -> Self {
        Self::Refused(format!("the name of {} is not Unicode", path.display()))
    }

    /// A file or folder that could not be read.
    pub fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}
