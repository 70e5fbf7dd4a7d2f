//! What is inside a base image, as those who write a layer over it ask about it.
//!
//! A folder that exists gets no entry, and a PATH is appended to: that takes knowledge of the base.
//! [`BaseContents`] answers for a base that was read; [`UnknownBase`] for
//! one that was not.

use std::collections::BTreeSet;

use wincimg_registry::{BaseKeys, BaseReadError, Presence, Root, UnknownBase};

use super::path::ImagePath;

/// A file or folder of a base, with all its layers laid over each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFile {
    /// Its name as it is spelled; empty for the drive itself.
    pub name: String,
    /// What it is.
    pub kind: FileKind<FileDigest>,
    /// The attributes that Windows has for it, such as 0x10 for a folder.
    pub attributes: u32,
    /// The security descriptor in its self-relative form, where the layer has one.
    pub security: Option<Vec<u8>>,
}

/// What is at a path, with what is told of a file and of a link.
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

/// The content of a file, in short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileDigest {
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// A base image into which somebody has looked, as far as was asked for; into the rest nobody has.
pub trait BaseContents: BaseKeys {
    /// The file or folder at that path.
    fn file(&self, _path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// What lies right in a folder, in no order; absent where no folder is.
    fn read_dir(&self, _folder: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// The folders below a folder, each before those in it, with their paths.
    fn folders_below(
        &self,
        _path: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// The content of a small file that may be needed to write another version of it.
    fn content(&self, _path: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        Ok(Presence::Unknown)
    }

    /// Whether the database of accounts has an account of that name.
    fn account(&self, _name: &str) -> Result<Presence<()>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}

impl BaseContents for UnknownBase {}

/// What has to be known of a base before an image can be made on it; whatever else is known makes
/// the image better.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BaseRequirements {
    /// Hives.
    pub hives: BTreeSet<Root>,
    /// Which files and folders there are, with their descriptors.
    pub files: bool,
    /// The content of files, where the base has them.
    pub contents: BTreeSet<ImagePath>,
}

impl BaseRequirements {
    /// Returns true if an image can be made without a look inside.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
