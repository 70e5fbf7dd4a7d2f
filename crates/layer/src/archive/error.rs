//! Errors of archives, with the archive, the member and the reason.

use std::io;

use wincimg_common::diagnose::Diagnose;

/// Error of reading or unpacking an archive.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "archive/invalid", blame = Request)]
pub enum ArchiveError {
    /// I/O error.
    #[error("cannot read {archive}")]
    #[diagnose(code = "file/io", blame = Circumstances)]
    Read {
        /// Name of the archive.
        archive: String,
        /// The cause.
        source: io::Error,
    },
    /// It changed after its members were listed.
    #[error("{archive} changed while it was read")]
    #[diagnose(code = "file/changed", blame = Circumstances)]
    Changed {
        /// Name of the archive.
        archive: String,
    },
    /// It is whole, and uses what is not supported.
    #[error("cannot unpack {what}: {problem}")]
    Unsupported {
        /// The archive.
        what: String,
        /// The problem.
        problem: String,
    },
    /// It is not an archive that can be unpacked.
    #[error("cannot unpack {what}: {problem}")]
    Invalid {
        /// The archive, or its member.
        what: String,
        /// The problem.
        problem: String,
    },
}

impl ArchiveError {
    /// Creates an error about the whole archive.
    pub fn whole(archive: &str, problem: impl Into<String>) -> Self {
        Self::Invalid {
            what: archive.to_owned(),
            problem: problem.into(),
        }
    }

    pub(super) fn member(archive: &str, member: &str, problem: impl Into<String>) -> Self {
        Self::whole(&format!("{member:?} of {archive}"), problem)
    }

    pub(super) fn read(archive: &str, source: io::Error) -> Self {
        Self::Read {
            archive: archive.to_owned(),
            source,
        }
    }
}
