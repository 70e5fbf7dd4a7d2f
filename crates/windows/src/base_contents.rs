//! Contents of a base image, for the layers on top of it.
//!
//! A layer needs them, for example, to leave out folders that exist and to append to PATH.
//! [`BaseContents`] is a base that was read; [`UnknownBase`] one that was not.

use std::collections::BTreeSet;

use wincimg_common::digest::Digest;
use wincimg_registry::{BaseKeys, BaseReadError, Presence, Root, UnknownBase};

use super::path::ImagePath;

/// A file or folder of a base, with all layers merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFile {
    /// Its name in its spelling; empty for the root of the drive.
    pub name: String,
    /// Kind.
    pub kind: FileKind<FileDigest>,
    /// File attributes of Windows, such as 0x10 for a folder.
    pub attributes: u32,
    /// Security descriptor in self-relative form, if the layer has one.
    pub security: Option<Vec<u8>>,
}

/// Kind of an entry, with data for a file and for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind<F = (), L = ()> {
    /// A folder.
    Folder,
    /// A file.
    File(F),
    /// A link or mount point.
    Link(L),
}

impl<F, L> FileKind<F, L> {
    /// Kind of the entry.
    pub fn kind(&self) -> FileKind {
        match self {
            Self::Folder => FileKind::Folder,
            Self::File(_) => FileKind::File(()),
            Self::Link(_) => FileKind::Link(()),
        }
    }
}

/// Size and digest of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileDigest {
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// Contents of a base image, as far as they were read; the rest is unknown.
pub trait BaseContents: BaseKeys {
    /// The file or folder at that path.
    fn file(&self, _path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// The entries of a folder, unordered; absent if the folder does not exist.
    fn read_dir(&self, _folder: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// All folders below a folder with their paths, parents first.
    fn folders_below(
        &self,
        _path: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// The content of a small file, as a base for a new version of it.
    fn content(&self, _path: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// SHA-256 of a file; unknown for links.
    fn digest(&self, path: &ImagePath) -> Result<Presence<Digest>, BaseReadError> {
        Ok(self.file(path)?.and_then(|file| match file.kind {
            FileKind::File(FileDigest { sha256, .. }) => {
                Presence::Present(Digest::new("sha256", &sha256))
            }
            FileKind::Folder => Presence::Absent,
            FileKind::Link(()) => Presence::Unknown,
        }))
    }

    /// Looks up a name in the database of accounts.
    fn account(&self, _name: &str) -> Result<Presence<()>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}

impl BaseContents for UnknownBase {}

/// The contents of a base that a build requires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseRequirements {
    /// Hives.
    pub hives: BTreeSet<Root>,
    /// True if files and folders with their descriptors are required.
    pub files: bool,
    /// Files whose content is required, if they exist; with one of them also the others that
    /// configure IIS.
    pub contents: BTreeSet<ImagePath>,
}

impl BaseRequirements {
    /// Returns true if the build does not have to read the base.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
