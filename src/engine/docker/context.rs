//! What a daemon builds from: a Dockerfile and the files that it copies.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::layer::Source;

/// The name of the Dockerfile in its context.
pub const DOCKERFILE: &str = "Dockerfile";

/// A Dockerfile and the files that it copies.
#[derive(Debug, Clone)]
pub struct BuildContext {
    /// The Dockerfile's text.
    pub dockerfile: String,
    /// What it may copy; folders come before what is in them.
    pub entries: Vec<ContextEntry>,
}

/// One file or folder of a build context.
#[derive(Debug, Clone)]
pub struct ContextEntry {
    /// Where it is in the context.
    pub path: String,
    /// What it is.
    pub content: ContextContent,
}

/// What an entry of a build context is.
#[derive(Debug, Clone)]
pub enum ContextContent {
    /// A folder.
    Folder,
    /// A file, and where its bytes are.
    File(Source),
    /// A symbolic link to something in the context, with a relative target.
    Link(String),
}

/// Why a context cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// The Dockerfile's place is taken.
    #[error(
        "the build context has a file of its own under the name {0:?}, which the Dockerfile needs"
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
    /// A file that was written to while it was sent.
    #[error("{} changed while it was read", path.display())]
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

impl BuildContext {
    /// Measures the context; nothing is read yet but how large the files are.
    pub fn list(&self) -> Result<Listing, ContextError> {
        let taken = self
            .entries
            .iter()
            .find(|entry| entry.path.eq_ignore_ascii_case(DOCKERFILE));
        if let Some(entry) = taken {
            return Err(ContextError::Taken(entry.path.clone()));
        }
        let text = Bytes::from(self.dockerfile.clone());
        let dockerfile = ContextEntry {
            path: DOCKERFILE.to_owned(),
            content: ContextContent::File(text.into()),
        };
        let mut entries = vec![dockerfile];
        entries.extend(self.entries.iter().cloned());
        let mut bytes = 0;
        for entry in &entries {
            bytes += match &entry.content {
                ContextContent::File(Source::Path(path)) => size(path)?,
                ContextContent::File(Source::Bytes(bytes)) => bytes.len() as u64,
                ContextContent::Folder | ContextContent::Link(_) => 0,
            };
        }
        Ok(Listing { entries, bytes })
    }
}

impl Listing {
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
