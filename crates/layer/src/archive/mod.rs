//! Archives: zip, tar with all its compressions, 7z. Members are listed first, and their content is
//! read on demand: there is no unpacked copy.
//!
//! Archives are untrusted. [`Archive::unpack`] refuses members that would be something else on
//! Windows, or in another place; what remains are names below one folder, each once. Zip files and
//! plain tar streams are read at the member's position. In a compressed stream a member follows
//! others, so [`read`] reads an archive once, in its own order.

mod cache;
mod error;
mod format;
#[cfg(feature = "installers")]
mod installer;
mod member;
mod seven_zip;
pub(crate) mod tar;
mod tar_archive;
mod unpack;
mod zip;

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::time::SystemTime;
use std::{fmt, fs};

pub use cache::Archives;
pub use error::ArchiveError;
pub use format::{ArchiveFormat, StreamCompression};
pub use member::{Member, MemberReader, digests, read};
pub use unpack::{UnpackSelection, UnpackedContent, UnpackedEntry, Unpacker};
use wincimg_common::files::{FileWindow, SpoolPart};
use wincimg_windows::path::path_problem;

use crate::DiskSource;

/// Maximum total size of an archive's members.
const LARGEST: u64 = 64 << 30;

/// Maximum number of members. Each takes some 500 bytes of memory, which makes 130 MB.
const MOST: usize = 1 << 18;

/// Maximum length of all paths in bytes, folders included: each is in memory about three times.
const MOST_TEXT: usize = 64 << 20;

/// Maximum number of names in all paths, folders included.
const MOST_NAMES: usize = 4 << 20;

/// From this total size on, the compression ratio is checked.
const SUSPICIOUS: u64 = 1 << 30;

/// Maximum compression ratio. Real archives reach 20; deflate can reach 1,032, the others more.
const MOST_TIMES: u64 = 200;

/// Location of an archive's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveLocation {
    /// A file on disk.
    Path(DiskSource),
    /// A part of an unnamed temporary file.
    Part(SpoolPart),
}

/// Length and modification time of a file, to detect changes.
type Stamp = (u64, Option<SystemTime>);

/// An archive with its list of members.
pub struct Archive {
    /// Name for messages.
    name: String,
    place: ArchiveLocation,
    stamp: Stamp,
    format: ArchiveFormat,
    entries: Vec<ArchiveEntry>,
}

/// An entry of an archive.
#[derive(Debug)]
struct ArchiveEntry {
    /// Path in the archive.
    path: String,
    kind: ArchiveEntryKind,
    /// Size of the content in bytes.
    size: u64,
    /// True if its name is valid UTF-8, but not marked as UTF-8.
    is_by_code_page: bool,
    /// Reason why it cannot be unpacked, if any.
    problem: Option<String>,
}

impl ArchiveEntry {
    fn new(path: impl Into<String>, kind: ArchiveEntryKind, size: u64) -> Self {
        Self {
            path: path.into(),
            kind,
            size,
            is_by_code_page: false,
            problem: None,
        }
    }
}

#[derive(Debug)]
enum ArchiveEntryKind {
    Folder,
    File,
    /// A symbolic link with its target.
    Link(String),
    /// A hard link to the file at this index.
    Same(usize),
}

impl Archive {
    /// Lists the members of an archive of a format, or of the detected one; `None` if the file is
    /// not an archive.
    fn open(
        place: ArchiveLocation,
        name: String,
        format: Option<ArchiveFormat>,
    ) -> Result<Option<Self>, ArchiveError> {
        let unreadable = |source| ArchiveError::read(&name, source);
        let (mut window, stamp) = place.open().map_err(unreadable)?;
        let detected = match format {
            Some(_) => format,
            None => ArchiveFormat::detect(&mut window).map_err(unreadable)?,
        };
        let Some(format) = detected else {
            return Ok(None);
        };
        window.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let entries = match format {
            ArchiveFormat::Zip => zip::list(&name, window)?,
            ArchiveFormat::SevenZip => seven_zip::list(&name, window)?,
            ArchiveFormat::Tar(packing) => tar_archive::list(&name, window, packing)?,
            #[cfg(feature = "installers")]
            ArchiveFormat::Installer | ArchiveFormat::Cabinet | ArchiveFormat::Bundle => {
                installer::list(&name, window, format)?
            }
        };
        Ok(Some(Self {
            name,
            place,
            stamp,
            format,
            entries,
        }))
    }

    /// Format.
    pub fn format(&self) -> ArchiveFormat {
        self.format
    }

    /// Location of its bytes.
    pub fn location(&self) -> &ArchiveLocation {
        &self.place
    }

    /// Name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Passes the content of the members at these indexes to the callback, in the archive's order.
    fn each<E: From<ArchiveError>>(
        &self,
        wanted: &BTreeSet<usize>,
        take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let opened = self.place.open();
        let (window, stamp) = opened.map_err(|source| ArchiveError::read(&self.name, source))?;
        if stamp != self.stamp {
            let archive = self.name.clone();
            return Err(ArchiveError::Changed { archive }.into());
        }
        match self.format {
            ArchiveFormat::Zip => zip::each(self, window, wanted, take),
            ArchiveFormat::SevenZip => seven_zip::each(self, window, wanted, take),
            ArchiveFormat::Tar(packing) => tar_archive::each(self, window, packing, wanted, take),
            #[cfg(feature = "installers")]
            ArchiveFormat::Installer => installer::each(self, window, wanted, take),
            #[cfg(feature = "installers")]
            ArchiveFormat::Cabinet | ArchiveFormat::Bundle => {
                installer::each_of_cabinet(self, window, wanted, take)
            }
        }
    }
}

impl Archive {
    /// Hands a member to a caller, and checks that it is as long as stated.
    fn hand<E: From<ArchiveError>>(
        &self,
        index: usize,
        source: &mut dyn Read,
        take: &mut dyn FnMut(usize, &mut MemberReader<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut content = MemberReader::new(self, index, source);
        take(index, &mut content)?;
        Ok(content.finish()?)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Archive({} in {})", self.entries.len(), self.name)
    }
}

impl ArchiveLocation {
    fn open(&self) -> std::io::Result<(FileWindow, Stamp)> {
        match self {
            Self::Path(source) => {
                let (file, metadata) = source.open()?;
                let stamp = stamp(&metadata);
                Ok((FileWindow::new(file, 0, stamp.0)?, stamp))
            }
            Self::Part(part) => Ok((part.window()?, (part.length(), None))),
        }
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

/// Total size of an archive while it is listed, and of its paths: a short archive can have long
/// ones, and each costs memory several times.
struct ArchiveSize<'a> {
    archive: &'a str,
    most: u64,
    bytes: u64,
    count: usize,
    names: usize,
    text: usize,
}

impl<'a> ArchiveSize<'a> {
    /// Starts a sum for an archive of this size.
    fn new(archive: &'a str, length: u64) -> Self {
        Self {
            archive,
            most: length.saturating_mul(MOST_TIMES).clamp(SUSPICIOUS, LARGEST),
            bytes: 0,
            count: 0,
            names: 0,
            text: 0,
        }
    }

    /// Adds a member.
    fn add(&mut self, path: &str, size: u64) -> Result<(), ArchiveError> {
        self.bytes = self.bytes.saturating_add(size);
        self.count += 1;
        self.names += 1 + path.matches(['/', '\\']).count();
        self.text += path.len();
        let problem = if let Some(problem) = path_problem(path) {
            problem
        } else if self.count > MOST {
            format!("it has more than {MOST} files and folders: unpack it, and copy its folder")
        } else if self.names > MOST_NAMES || self.text > MOST_TEXT {
            format!("its paths have more than {MOST_NAMES} names or {MOST_TEXT} bytes")
        } else if self.bytes > self.most {
            return Err(self.too_much());
        } else {
            return Ok(());
        };
        Err(ArchiveError::whole(self.archive, problem))
    }

    fn too_much(&self) -> ArchiveError {
        let problem = if self.most == LARGEST {
            format!("it would unpack to more than {LARGEST} bytes")
        } else {
            format!(
                "it would unpack to more than {} bytes, {MOST_TIMES} times its own size: it may be made to \
                 fill disks",
                self.most
            )
        };
        ArchiveError::whole(self.archive, problem)
    }
}

#[cfg(test)]
mod tests;
