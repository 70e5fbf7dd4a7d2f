//! Why an archive is not unpacked: which one, which of its members, and the reason.

use std::io;

use wincimg_common::diagnose::Diagnose;

/// Why an archive could not be read or may not be unpacked.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "archive/invalid", blame = Request)]
pub enum ArchiveError {
    /// The system would not let it be read.
    #[error("cannot read {archive}")]
    #[diagnose(code = "file/io", blame = Circumstances)]
    Read {
        /// What it is called.
        archive: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what it was when its members were listed.
    #[error("{archive} changed while it was read")]
    #[diagnose(code = "file/changed", blame = Circumstances)]
    Changed {
        /// What it is called.
        archive: String,
    },
    /// Something about it as a whole.
    #[error("cannot unpack {archive}: {problem}")]
    Whole {
        /// What it is called.
        archive: String,
        /// What is wrong.
        problem: String,
    },
    /// Something about one of its members.
    #[error("cannot unpack {member:?} of {archive}: {problem}")]
    Member {
        /// What it is called.
        archive: String,
        /// The member's path.
        member: String,
        /// What is wrong.
        problem: String,
    },
}

impl ArchiveError {
    /// Something about an archive as a whole.
    pub fn whole(archive: &str, problem: impl Into<String>) -> Self {
        Self::Whole {
            archive: archive.to_owned(),
            problem: problem.into(),
        }
    }

    pub(super) fn member(archive: &str, member: &str, problem: impl Into<String>) -> Self {
        Self::Member {
            archive: archive.to_owned(),
            member: member.to_owned(),
            problem: problem.into(),
        }
    }

    pub(super) fn read(archive: &str, source: io::Error) -> Self {
        Self::Read {
            archive: archive.to_owned(),
            source,
        }
    }
}
