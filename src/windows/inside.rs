//! What is inside a base image, as those who write a layer over it ask about it.
//!
//! A key of a delta hive repeats the descriptor of the key below, a folder that exists gets no entry,
//! a PATH is appended to: all of that takes knowledge of the base. Whoever has looked into one
//! answers as [`Inside`]; [`Unseen`] is a base into which nobody has looked.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::path::ImagePath;
use super::registry::{KeyPath, RegistryData, Root};

/// What is known of something that a base may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<T> {
    /// Nobody has looked.
    Unknown,
    /// The base does not have it.
    Absent,
    /// The base has it, and this is what it is.
    Present(T),
}

impl<T> Known<T> {
    /// What it is, where the base is known to have it.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Unknown | Self::Absent => None,
        }
    }
}

/// A key of a base's registry, with all its layers laid over each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseKey {
    /// The security descriptor in its self-relative form.
    pub security: Vec<u8>,
    /// The class name.
    pub class: Option<String>,
    /// Where the key leads, if it is a link to another key that layers can change.
    pub link: Option<KeyPath>,
    /// The values: names and data.
    pub values: Vec<(String, RegistryData)>,
}

/// A file or folder of a base, with all its layers laid over each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFile {
    /// Its name as it is spelled; empty for the drive itself.
    pub name: String,
    /// What it is.
    pub kind: BaseFileKind,
    /// The attributes that Windows has for it, such as 0x10 for a folder.
    pub attributes: u32,
    /// The security descriptor in its self-relative form, where the layer has one.
    pub security: Option<Vec<u8>>,
}

/// What a path of a base is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseFileKind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its size in bytes.
        size: u64,
        /// The SHA-256 of its content.
        sha256: [u8; 32],
    },
    /// A link or mount point.
    Link,
}

/// A base image into which somebody has looked, as far as was asked for.
pub trait Inside: fmt::Debug + Send + Sync {
    /// The key at that path. Links on the way are not followed: they are keys.
    fn key(&self, path: &KeyPath) -> Result<Known<BaseKey>, InsideError>;

    /// The file or folder at that path.
    fn file(&self, path: &ImagePath) -> Result<Known<BaseFile>, InsideError>;

    /// What lies right in a folder, in no order; absent where no folder is.
    fn lies_in(&self, folder: &ImagePath) -> Result<Known<Vec<BaseFile>>, InsideError>;

    /// The folders below a folder, each before those in it, with their paths.
    fn folders_below(
        &self,
        path: &ImagePath,
    ) -> Result<Known<Vec<(ImagePath, BaseFile)>>, InsideError>;

    /// The content of a small file that may be needed to write another version of it.
    fn content(&self, path: &ImagePath) -> Result<Known<Vec<u8>>, InsideError>;
}

/// What somebody knows of a base cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read what is known of the base")]
pub struct InsideError(#[source] pub Arc<dyn Error + Send + Sync>);

/// A base into which nobody has looked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unseen;

impl Inside for Unseen {
    fn key(&self, _: &KeyPath) -> Result<Known<BaseKey>, InsideError> {
        Ok(Known::Unknown)
    }

    fn file(&self, _: &ImagePath) -> Result<Known<BaseFile>, InsideError> {
        Ok(Known::Unknown)
    }

    fn lies_in(&self, _: &ImagePath) -> Result<Known<Vec<BaseFile>>, InsideError> {
        Ok(Known::Unknown)
    }

    fn folders_below(
        &self,
        _: &ImagePath,
    ) -> Result<Known<Vec<(ImagePath, BaseFile)>>, InsideError> {
        Ok(Known::Unknown)
    }

    fn content(&self, _: &ImagePath) -> Result<Known<Vec<u8>>, InsideError> {
        Ok(Known::Unknown)
    }
}

/// What has to be known of a base before an image can be made on it; whatever else is known makes
/// the image better.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Hives.
    pub hives: BTreeSet<Root>,
    /// Which files and folders there are, with their descriptors.
    pub files: bool,
    /// The content of files, where the base has them.
    pub contents: BTreeSet<ImagePath>,
}

impl Needs {
    /// Whether an image can be made without a look inside.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
