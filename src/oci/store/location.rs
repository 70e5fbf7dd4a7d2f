//! How people name the places of images.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::diagnose::{Blame, Diagnose};
use crate::oci::reference::{Reference, ReferenceError, parse_reference};

/// Where an image is or shall be: `HOST/NAME:TAG`, `oci:DIR[:TAG]` or `docker-archive:FILE[:NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A repository of a registry.
    Registry(Reference),
    /// An OCI layout directory.
    Layout {
        /// The directory.
        dir: PathBuf,
        /// The image's tag in it.
        tag: Option<String>,
    },
    /// A docker-archive file.
    Archive {
        /// The file.
        file: PathBuf,
        /// The image's name in it, such as `app:1.4`.
        name: Option<String>,
    },
}

/// A text that names no place for an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// `oci:` or `docker-archive:` without a path.
    #[error("{text:?} names no path: expected oci:DIR[:TAG] or docker-archive:FILE[:NAME]")]
    NoPath {
        /// What was given.
        text: String,
    },
    /// Anything else has to be a reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

impl Diagnose for LocationError {
    fn blame(&self) -> Blame {
        Blame::Request
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix("oci:") {
            let (dir, tag) = split_path(text, rest)?;
            Ok(Self::Layout { dir, tag })
        } else if let Some(rest) = text.strip_prefix("docker-archive:") {
            let (file, name) = split_path(text, rest)?;
            Ok(Self::Archive { file, name })
        } else {
            let reference = text.strip_prefix("docker://").unwrap_or(text);
            Ok(Self::Registry(parse_reference(reference)?))
        }
    }
}

/// The path up to the first colon, as skopeo reads it; a drive letter's colon is the path's own.
fn split_path(text: &str, rest: &str) -> Result<(PathBuf, Option<String>), LocationError> {
    let bytes = rest.as_bytes();
    let has_drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    let start = if has_drive { 2 } else { 0 };
    let (path, name) = match rest[start..].find(':') {
        Some(colon) => (&rest[..start + colon], Some(&rest[start + colon + 1..])),
        None => (rest, None),
    };
    if path.is_empty() {
        return Err(LocationError::NoPath {
            text: text.to_owned(),
        });
    }
    let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
    Ok((path.into(), name))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, path, name) = match self {
            Self::Registry(reference) => return reference.fmt(f),
            Self::Layout { dir, tag } => ("oci", dir, tag),
            Self::Archive { file, name } => ("docker-archive", file, name),
        };
        write!(f, "{scheme}:{}", path.display())?;
        match name {
            Some(name) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

impl Location {
    /// What is asked for when reading: the digest where there is one, else the tag.
    pub fn wanted(&self) -> Option<&str> {
        match self {
            Self::Registry(reference) => reference.digest().or(reference.tag()),
            Self::Layout { tag, .. } => tag.as_deref(),
            Self::Archive { name, .. } => name.as_deref(),
        }
    }

    /// What is published when writing: the tag, or nothing where only a digest is given.
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Registry(reference) => reference.tag(),
            Self::Layout { tag, .. } => tag.as_deref(),
            Self::Archive { name, .. } => name.as_deref(),
        }
    }
}
