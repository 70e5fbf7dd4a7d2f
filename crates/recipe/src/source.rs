//! Where the bytes of what goes into an image are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use wincimg_common::digest::Digest;
use wincimg_common::files::SpoolPart;
use wincimg_images::shim;
use wincimg_layer::archive::{Archive, ArchiveError, ArchiveLocation, Archives, Member};
use wincimg_layer::{OnDisk, PlannedDownload};

/// Source of a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// A file on disk.
    Disk(OnDisk),
    /// Contents of a folder on disk.
    #[serde(rename = "disk")]
    Folder(OnDisk),
    /// The text itself.
    Text(String),
    /// A file that a server has; in a box, for it is large, and plans have many thousand others.
    Download(Box<PlannedDownload>),
    /// The bytes themselves, which are not text.
    #[serde(serialize_with = "as_size")]
    Bytes(Vec<u8>),
    /// A file in an archive.
    #[serde(serialize_with = "as_text")]
    Member(Member),
    /// A file that was fetched for this build.
    Brought(FetchedFile),
    /// A program that is part of wincimg.
    Embedded(EmbeddedProgram),
}

/// What is known of a file that has to be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadRequest {
    /// Digests that it has to have, as far as some are written beside its URL.
    pub digests: Vec<Digest>,
    /// The name that it gets.
    pub name: String,
    /// True if it is looked for where its server sends who asks.
    pub follows: bool,
    /// First place that names it.
    pub place: String,
}

impl DownloadRequest {
    /// Takes it among others, where it may be already.
    pub fn add_to(self, wants: &mut DownloadRequests, url: &str) {
        match wants.get_mut(url) {
            Some(known) => {
                for digest in self.digests {
                    if !known.digests.contains(&digest) {
                        known.digests.push(digest);
                    }
                }
                known.follows &= self.follows;
            }
            None => {
                wants.insert(url.to_owned(), self);
            }
        }
    }
}

/// Files that have to be downloaded, by their URLs.
pub type DownloadRequests = BTreeMap<String, DownloadRequest>;

/// What they are is nobody's to read.
fn as_size<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    format_args!("{} bytes", bytes.len()).serialize(serializer)
}

/// A file that was fetched for a build, and is kept until that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    /// Its bytes.
    pub part: SpoolPart,
    /// Origin.
    pub from: String,
}

impl Serialize for FetchedFile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.from.serialize(serializer)
    }
}

impl FileSource {
    /// The file that a server has, where it is one.
    pub(super) fn download_mut(&mut self) -> Option<&mut PlannedDownload> {
        match self {
            Self::Download(download) => Some(download),
            _ => None,
        }
    }

    /// Opens it as an archive; none where it is not one.
    pub fn archive(&self, archives: &Archives) -> Result<Option<Arc<Archive>>, ArchiveError> {
        let place = match self {
            Self::Disk(file) | Self::Folder(file) => ArchiveLocation::Path(file.path.to_path_buf()),
            Self::Brought(file) => ArchiveLocation::Part(file.part.clone()),
            Self::Download(file) => match &file.content {
                Some(part) => ArchiveLocation::Part(part.clone()),
                None => return Ok(None),
            },
            Self::Member(member) => return archives.open_inner(member),
            Self::Text(_) | Self::Bytes(_) | Self::Embedded(_) => return Ok(None),
        };
        let name = match self {
            Self::Download(file) => file.url.clone(),
            _ => self.to_string(),
        };
        archives.open(place, &name)
    }
}

fn as_text<S: serde::Serializer>(member: &Member, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(member)
}

/// A program that is part of wincimg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddedProgram {
    /// The entry point that stops programs gracefully, and waits in pause images.
    Shim,
}

impl EmbeddedProgram {
    /// The name in recipes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shim => "shim",
        }
    }

    /// The program itself.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Shim => shim::EXECUTABLE,
        }
    }
}

impl fmt::Display for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(source) | Self::Folder(source) => write!(f, "{}", source.path.display()),
            Self::Text(text) => write!(f, "a text of {} bytes", text.len()),
            Self::Download(file) => match &file.digest {
                Some(digest) => write!(f, "{} ({digest})", file.url),
                None => f.write_str(&file.url),
            },
            Self::Member(member) => member.fmt(f),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Brought(file) => f.write_str(&file.from),
            Self::Embedded(program) => write!(f, "wincimg's {}", program.name()),
        }
    }
}
