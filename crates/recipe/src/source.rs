//! Sources of the bytes that go into an image.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Serialize, Serializer};
use wincimg_common::digest::Digest;
use wincimg_common::files::SpoolPart;
use wincimg_common::untrusted::public_url;
use wincimg_layer::archive::{
    Archive, ArchiveError, ArchiveFormat, ArchiveLocation, Archives, Member,
};
use wincimg_layer::{ContentSource, DiskSource};
use wincimg_msi::SetupProgram;

use super::{PlannedArchive, PlannedEntry};

/// Source of a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// A file on disk.
    Disk(DiskSource),
    /// Contents of a folder on disk.
    #[serde(rename = "disk")]
    Folder(DiskSource),
    /// Text; copies share it.
    Text(Arc<str>),
    /// A download; boxed because it is large and plans have many thousand other sources.
    Download(Box<PlannedDownload>),
    /// Bytes that are not text; copies share them.
    #[serde(serialize_with = "as_size")]
    Bytes(Bytes),
    /// A file in an archive.
    #[serde(serialize_with = "as_text")]
    Member(Member),
    /// A file fetched for this build.
    Brought(FetchedFile),
    /// Files of another image; boxed for its size.
    Image(Box<ImageFiles>),
    /// The entries of an archive; boxed for its size.
    Unpacked(Box<PlannedArchive>),
    /// The program built into wincimg: the entry point that stops programs gracefully and waits in
    /// pause images.
    #[serde(rename = "embedded", serialize_with = "as_shim")]
    Shim,
}

impl FileSource {
    /// Returns true for a folder, and for what may be one: what an image has is known too late.
    pub(super) fn may_be_folder(&self) -> bool {
        matches!(self, Self::Folder(_) | Self::Image(_) | Self::Unpacked(_))
    }
}

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadRequest {
    /// Required digests, as far as they are given with its URL.
    pub digests: Vec<Digest>,
    /// Its name in the image.
    pub name: String,
    /// True if redirects are followed.
    pub follows: bool,
    /// First place that names it.
    pub place: String,
}

impl DownloadRequest {
    /// Adds it to the requests, merged with one for the same URL.
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

/// Files to download, by their URLs.
pub type DownloadRequests = BTreeMap<String, DownloadRequest>;

/// Serializes the size only: the bytes are of no use to a reader.
fn as_size<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    format_args!("{} bytes", bytes.len()).serialize(serializer)
}

/// A file that was fetched for a build, and is kept until the build ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedFile {
    /// Its bytes.
    pub part: SpoolPart,
    /// Origin.
    pub from: String,
    /// The image and the path in it, if a recipe can name them.
    pub image: Option<(String, String)>,
}

/// A file or the content of a folder of another image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageFiles {
    /// The image, as the recipe names it.
    pub image: String,
    /// Path in the image.
    pub from: String,
    /// True if the target is the folder for a file.
    #[serde(skip)]
    pub into_folder: bool,
    /// Digest of its manifest for the host, once it is resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The entries that it becomes, once they are extracted.
    #[serde(skip)]
    pub entries: Option<Vec<PlannedEntry>>,
}

impl fmt::Display for ImageFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.from, self.image)?;
        match &self.digest {
            Some(digest) if !self.image.contains('@') => write!(f, "@{digest}"),
            _ => Ok(()),
        }
    }
}

impl Serialize for FetchedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.from.serialize(serializer)
    }
}

impl FileSource {
    /// The download, if it is one, or the archive is.
    pub(super) fn download(&self) -> Option<&PlannedDownload> {
        match self {
            Self::Download(download) => Some(download),
            Self::Unpacked(file) => file.source.download(),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(super) fn download_mut(&mut self) -> Option<&mut PlannedDownload> {
        match self {
            Self::Download(download) => Some(download),
            Self::Unpacked(file) => file.source.download_mut(),
            _ => None,
        }
    }

    /// Opens it as an archive; none if it is not one.
    pub fn archive(&self, archives: &Archives) -> Result<Option<Arc<Archive>>, ArchiveError> {
        self.open(archives, None)
    }

    /// Opens it as a Windows Installer package; none for text and what is not downloaded yet.
    pub fn package(&self, archives: &Archives) -> Result<Option<Arc<Archive>>, ArchiveError> {
        self.open(archives, Some(ArchiveFormat::Installer))
    }

    /// Opens it as an archive of a format, or as any; none for text and what is not downloaded yet.
    pub fn open(
        &self,
        archives: &Archives,
        format: Option<ArchiveFormat>,
    ) -> Result<Option<Arc<Archive>>, ArchiveError> {
        match self.archive_location(archives)? {
            Some((place, name)) => archives.open(place, &name, format),
            None => Ok(None),
        }
    }

    /// The kind of an installer that is a program; none for other files, and what cannot be read.
    pub fn setup_program(&self, archives: &Archives) -> Option<SetupProgram> {
        let (place, _) = self.archive_location(archives).ok()??;
        place.setup_program()
    }

    /// Its location and name, if it can be an archive.
    fn archive_location(
        &self,
        archives: &Archives,
    ) -> Result<Option<(ArchiveLocation, String)>, ArchiveError> {
        let place = match self {
            Self::Disk(file) | Self::Folder(file) => ArchiveLocation::Path(file.clone()),
            Self::Brought(file) => ArchiveLocation::Part(file.part.clone()),
            Self::Download(file) => match &file.content {
                Some(part) => ArchiveLocation::Part(part.clone()),
                None => return Ok(None),
            },
            Self::Member(member) => archives.locate_inner(member)?,
            Self::Text(_) | Self::Bytes(_) | Self::Shim | Self::Image(_) | Self::Unpacked(_) => {
                return Ok(None);
            }
        };
        let name = match self {
            Self::Download(file) => file.url.clone(),
            _ => self.to_string(),
        };
        Ok(Some((place, name)))
    }
}

fn as_text<S: Serializer>(member: &Member, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(member)
}

fn as_shim<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("shim")
}

impl fmt::Display for FileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(source) | Self::Folder(source) => write!(f, "{}", source.path.display()),
            Self::Text(text) => write!(f, "a text of {} bytes", text.len()),
            Self::Download(file) => {
                let url = public_url(&file.url);
                match &file.digest {
                    Some(digest) => write!(f, "{url} ({digest})"),
                    None => f.write_str(&url),
                }
            }
            Self::Member(member) => member.fmt(f),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Brought(file) => f.write_str(&file.from),
            Self::Image(files) => files.fmt(f),
            Self::Unpacked(file) => file.source.fmt(f),
            Self::Shim => f.write_str("wincimg's shim"),
        }
    }
}

/// Name of the lock file next to a recipe or a Dockerfile.
pub const LOCK_FILE: &str = "wincimg.lock";

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedDownload {
    /// URL.
    #[serde(serialize_with = "as_public_url")]
    pub url: String,
    /// Expected digest, if given; the actual one after the download.
    pub digest: Option<Digest>,
    /// Length, if known.
    pub size: Option<u64>,
    /// Content, after the download.
    #[serde(skip)]
    pub content: Option<SpoolPart>,
}

/// Plans are printed in logs of CI.
fn as_public_url<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&public_url(url))
}

impl PlannedDownload {
    /// Creates a download of a URL.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            digest: None,
            size: None,
            content: None,
        }
    }

    /// Sets the downloaded content.
    pub fn set_content(&mut self, digest: Digest, size: u64, content: SpoolPart) {
        self.digest = Some(digest);
        self.size = Some(size);
        self.content = Some(content);
    }
}

impl From<&PlannedDownload> for ContentSource {
    fn from(download: &PlannedDownload) -> Self {
        match &download.content {
            Some(part) => Self::Part(part.clone()),
            None => Self::NotDownloaded {
                url: download.url.clone(),
                size: download.size,
            },
        }
    }
}
