//! What a daemon builds from: a Dockerfile and the files that it copies, measured before any of it
//! is sent.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use wincimg_common::diagnose::Diagnose;
use wincimg_dockerfile::{ContextContent, ContextEntry, Rendered};
use wincimg_layer::Source;
use wincimg_layer::archive::ArchiveError;

/// The name of the Dockerfile in its context.
pub(super) const DOCKERFILE: &str = "Dockerfile";

/// Why a context cannot be sent.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "context/read")]
pub enum ContextError {
    /// The Dockerfile's place is taken.
    #[error(
        "the build context already has {0:?}: expected that name to be free for the Dockerfile"
    )]
    #[diagnose(
        code = "context/name-taken",
        hint = "rename {_0:?}, or list it in .dockerignore"
    )]
    Taken(String),
    /// A file that could not be read, or is gone.
    #[error("cannot read {}", path.display())]
    Read {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file whose bytes are not here.
    #[error("{0} is not downloaded")]
    Lacking(String),
    /// An archive with files of the context is not what it should be.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file that was written to while it was sent.
    #[error("{} changed while it was read", path.display())]
    #[diagnose(
        code = "context/changed",
        hint = "build again when nothing writes to it"
    )]
    Changed {
        /// Where it is.
        path: PathBuf,
    },
}

/// A context that was measured.
#[derive(Debug)]
pub struct Listing {
    pub(super) entries: Vec<ContextEntry>,
    /// The bytes of all files.
    pub(super) bytes: u64,
}

impl Listing {
    /// Measures a context; nothing is read yet but how large the files are.
    pub fn new(rendered: &Rendered) -> Result<Self, ContextError> {
        let context = &rendered.context;
        let name = rendered.name.as_deref().unwrap_or(DOCKERFILE);
        let is_taken = |entry: &&ContextEntry| entry.path.eq_ignore_ascii_case(name);
        if let Some(entry) = context.iter().find(is_taken) {
            return Err(ContextError::Taken(entry.path.clone()));
        }
        let text = Bytes::from(rendered.dockerfile.clone());
        let dockerfile = ContextEntry {
            path: name.to_owned(),
            content: ContextContent::File(text.into()),
        };
        let mut entries = vec![dockerfile];
        entries.extend(context.iter().cloned());
        let mut bytes = 0;
        for entry in &entries {
            bytes += match &entry.content {
                ContextContent::File(Source::Path(path)) => size(path)?,
                ContextContent::File(Source::Bytes(bytes)) => bytes.len() as u64,
                ContextContent::File(Source::Part(part)) => part.length(),
                ContextContent::File(Source::Lacking { url, .. }) => {
                    return Err(ContextError::Lacking(url.clone()));
                }
                ContextContent::File(Source::Member(member)) => member.size(),
                ContextContent::Folder | ContextContent::Link(_) => 0,
            };
        }
        Ok(Self { entries, bytes })
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn size(path: &Path) -> Result<u64, ContextError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(source) => Err(ContextError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(unix)]
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

/// Windows keeps no such thing, and Docker's client calls every file executable there.
#[cfg(not(unix))]
pub(super) fn is_executable(_metadata: &Metadata) -> bool {
    true
}
