//! Errors of creating a layer.

use std::io;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::Diagnose;
use wincimg_registry::BaseReadError;
use wincimg_windows::path::ImagePath;

use super::path::PathError;
use crate::archive::ArchiveError;
use crate::dockerignore::IgnoreError;

/// Error of describing or writing a layer.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "layer/failed")]
pub enum LayerError {
    /// A name that cannot be in a layer.
    #[error(transparent)]
    #[diagnose(blame = Request)]
    Path(#[from] PathError),
    /// Two entries with the same path on Windows.
    #[error("layer entries {first:?} and {second:?} are the same path on Windows")]
    #[diagnose(blame = Request)]
    Conflict {
        /// The entry that sorts first.
        first: String,
        /// The one that collides with it.
        second: String,
    },
    /// An entry below one that is not a directory.
    #[error("layer entry {child:?} is below {parent:?}, which is not a directory")]
    #[diagnose(blame = Request)]
    NotADirectory {
        /// The file, link or deletion.
        parent: String,
        /// The entry below it.
        child: String,
    },
    /// The base has an entry of another kind at the path.
    #[error("{path} is {found} in the base, but {wanted} in the image")]
    #[diagnose(blame = Request)]
    InTheWay {
        /// The path in the image.
        path: String,
        /// Kind in the base.
        found: &'static str,
        /// Kind in the layer.
        wanted: &'static str,
    },
    /// It replaces or deletes a folder that Windows needs.
    #[error("{path} would be {wanted} in the image: it is a folder that Windows needs")]
    #[diagnose(blame = Request)]
    Essential {
        /// The folder.
        path: ImagePath,
        /// Kind of the entry.
        wanted: &'static str,
    },
    /// The base's facts cannot be read.
    #[error(transparent)]
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
    /// A device, socket or pipe where a file is expected.
    #[error("{} is neither a file, a folder nor a symbolic link", path.display())]
    #[diagnose(blame = Request)]
    NotAFile {
        /// Path on disk.
        path: PathBuf,
    },
    /// A name on disk that is not Unicode and so cannot be a name on Windows.
    #[error("the name of {} is not Unicode", path.display())]
    #[diagnose(blame = Request)]
    NotUnicode {
        /// Path on disk.
        path: PathBuf,
    },
    /// A symbolic link that would be wrong in the image.
    #[error("symbolic link {} points to {target:?}: {problem}", path.display())]
    #[diagnose(blame = Request)]
    Link {
        /// Path on disk.
        path: PathBuf,
        /// Target.
        target: String,
        /// The problem.
        problem: &'static str,
    },
    /// A folder's `.dockerignore` is invalid.
    #[error(transparent)]
    Ignore(#[from] IgnoreError),
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
    /// A file or folder that could not be read.
    pub fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}
