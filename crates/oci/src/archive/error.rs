//! Errors of docker-archives.

use std::io;
use std::path::PathBuf;

use wincimg_common::diagnose::Diagnose;

use crate::document::DocumentError;
use crate::stream::StreamError;

/// A docker-archive that could not be read or written.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "archive/invalid")]
pub enum DockerArchiveError {
    /// The file is not a docker-archive, or is damaged.
    #[error("{} is not a docker-archive: {reason}", path.display())]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The file ends in the middle of an entry.
    #[error("{} is truncated: entry {member} ends at byte {end}, the file at {len}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The incomplete entry.
        member: String,
        /// Expected end of the entry.
        end: u64,
        /// Length of the file.
        len: u64,
    },
    /// The file cannot be used.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The problem, to follow the file's name in a sentence.
        problem: String,
    },
    /// The requested tag or digest was not found.
    #[error("{} has no image {wanted:?}: it has {known}", path.display())]
    #[diagnose(code = "archive/not-found")]
    NotFound {
        /// The archive.
        path: PathBuf,
        /// The requested tag or digest.
        wanted: String,
        /// The tags that exist.
        known: String,
    },
    /// The archive contains several images and none was selected.
    #[error("{} contains several images: select one of {known}", path.display())]
    #[diagnose(code = "archive/several-images", blame = Request, hint = Some(format!("select an image: docker-archive:{}:NAME", path.display())))]
    SeveralImages {
        /// The archive.
        path: PathBuf,
        /// The tags that exist.
        known: String,
    },
    /// A document in it cannot be used.
    #[error("cannot use {member} in {}", path.display())]
    #[diagnose(forward, code = "archive/invalid")]
    Document {
        /// The archive.
        path: PathBuf,
        /// The entry or blob.
        member: String,
        /// The reason.
        source: Box<DocumentError>,
    },
    /// A blob could not be read or written.
    #[error(transparent)]
    #[diagnose(code = _0.code("archive/invalid"))]
    Stream(#[from] StreamError),
    /// The file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The archive.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}
