//! What can go wrong when a layer is made.

use std::io;
use std::path::PathBuf;

use wincimg_common::diagnose::Diagnose;
use wincimg_registry::BaseReadError;

use super::path::PathError;
use crate::archive::ArchiveError;
use crate::dockerignore::IgnoreError;

/// Why a layer could not be described or written.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "layer/failed")]
pub enum LayerError {
    /// A name that cannot be in a layer.
    #[error(transparent)]
    #[diagnose(blame = Request)]
    Path(#[from] PathError),
    /// Two entries that Windows takes for the same path.
    #[error("layer entries {first:?} and {second:?} are the same path on Windows")]
    #[diagnose(blame = Request)]
    Conflict {
        /// The entry that sorts first.
        first: String,
        /// The one that collides with it.
        second: String,
    },
    /// Something lies below an entry that is not a directory.
    #[error("layer entry {child:?} lies under {parent:?}, which is not a directory")]
    #[diagnose(blame = Request)]
    NotADirectory {
        /// The file, link or deletion.
        parent: String,
        /// What lies below it.
        child: String,
    },
    /// The base has something else where an entry is to be.
    #[error("{path} is {found} in the base, where the image is to have {wanted}")]
    #[diagnose(blame = Request)]
    InTheWay {
        /// The path in the image.
        path: String,
        /// What the base has.
        found: &'static str,
        /// What the layer has.
        wanted: &'static str,
    },
    /// What is known of the base cannot be read.
    #[error(transparent)]
    Inside(#[from] BaseReadError),
    /// A file or folder that could not be opened or read, or is gone.
    #[error("cannot read {}", path.display())]
    #[diagnose(code = "file/io")]
    Read {
        /// Where it is on disk.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file whose bytes are not here.
    #[error("{0} is not downloaded")]
    Lacking(String),
    /// A file that was written to, cut or extended while the layer was made.
    #[error("{} changed while it was read", path.display())]
    #[diagnose(code = "file/changed")]
    Changed {
        /// Where it is on disk.
        path: PathBuf,
    },
    /// A device, socket or pipe where a file is expected.
    #[error("{} is neither a file, a folder nor a symbolic link", path.display())]
    #[diagnose(blame = Request)]
    NotAFile {
        /// Where it is on disk.
        path: PathBuf,
    },
    /// A name on disk that is not Unicode and so cannot be a name on Windows.
    #[error("the name of {} is not Unicode", path.display())]
    #[diagnose(blame = Request)]
    NotUnicode {
        /// Where it is on disk.
        path: PathBuf,
    },
    /// A symbolic link that would mean something else in the image, or nothing.
    #[error("symbolic link {} points to {target:?}: {problem}", path.display())]
    #[diagnose(blame = Request)]
    Link {
        /// Where it is on disk.
        path: PathBuf,
        /// What it says.
        target: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A folder's `.dockerignore` cannot be used.
    #[error(transparent)]
    Ignore(#[from] IgnoreError),
    /// An archive with files of the layer is not what it should be.
    #[error(transparent)]
    #[diagnose(forward)]
    Archive(#[from] ArchiveError),
    /// The place where the layer goes did not take it.
    #[error("cannot write the layer")]
    Write(#[source] io::Error),
    /// The compressor gave up.
    #[error("cannot compress the layer")]
    Compress(#[source] io::Error),
    /// The caller asked to stop.
    #[error("writing the layer was cancelled")]
    Cancelled,
}
