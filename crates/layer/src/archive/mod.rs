//! Archives that others made: zip, tar in all its compressions, 7z. What is in one is listed first,
//! and a member's bytes are read when whoever wants them gets there: there is no unpacked copy.
//!
//! Nothing in an archive is believed. [`Archive::unpack`] refuses what would not be on Windows what
//! it is in the archive, or not be where it seems to be; what it lets pass are names below one
//! folder, each once. Zip files and plain tar streams are read where the member lies. In a compressed
//! stream it lies behind others, so [`read`] goes through an archive once, in its own order.

mod cache;
mod error;
mod format;
mod member;
mod seven_zip;
pub mod tar;
mod tar_archive;
mod unpack;
mod zip;

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom};
use std::path::PathBuf;
use std::time::SystemTime;
use std::{fmt, fs};

pub use cache::Archives;
pub use error::ArchiveError;
pub use format::{ArchiveFormat, StreamCompression};
pub use member::{Member, MemberReader, read};
pub use unpack::{UnpackSelection, UnpackedContent, UnpackedEntry, Unpacker};
use wincimg_common::files;
use wincimg_common::files::{FileWindow, SpoolPart};

/// The most bytes that the members of an archive may come to.
const LARGEST: u64 = 64 << 30;

/// The most members that an archive may have.
const MOST: usize = 1 << 20;

/// From this size on, what an archive comes to is held against its own length.
const SUSPICIOUS: u64 = 1 << 30;

/// How many times its own length it may come to then. What people pack comes to 20 times at most;
/// deflate can be made to come to 1,032, the others to more.
const MOST_TIMES: u64 = 200;

/// Where an archive's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveLocation {
    /// A file on disk.
    Path(PathBuf),
    /// A part of a file without a name.
    Part(SpoolPart),
}

/// How long a file is and when it was last written to: whether it is still the one it was.
type Stamp = (u64, Option<SystemTime>);

/// An archive, of which the members are known.
pub struct Archive {
    /// What people know it by.
    name: String,
    place: ArchiveLocation,
    stamp: Stamp,
    format: ArchiveFormat,
    entries: Vec<ArchiveEntry>,
}

/// What is in an archive under one name.
#[derive(Debug)]
struct ArchiveEntry {
    /// Its path as the archive has it.
    path: String,
    kind: ArchiveEntryKind,
    /// The bytes of its content.
    size: u64,
    /// True if its name, though it reads as UTF-8, is not said to be that.
    is_by_code_page: bool,
    /// Why it is not unpacked, if it is not.
    problem: Option<String>,
}

#[derive(Debug)]
enum ArchiveEntryKind {
    Folder,
    File,
    /// A symbolic link, and where it leads.
    Link(String),
    /// Another name of the file at this index.
    Same(usize),
}

impl Archive {
    /// Lists what is in an archive; none where the file is not one.
    pub fn open(place: ArchiveLocation, name: String) -> Result<Option<Self>, ArchiveError> {
        let unreadable = |source| ArchiveError::read(&name, source);
        let (mut window, stamp) = place.open().map_err(unreadable)?;
        let Some(format) = ArchiveFormat::detect(&mut window).map_err(unreadable)? else {
            return Ok(None);
        };
        window.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let entries = match format {
            ArchiveFormat::Zip => zip::list(&name, window)?,
            ArchiveFormat::SevenZip => seven_zip::list(&name, window)?,
            ArchiveFormat::Tar(packing) => tar_archive::list(&name, window, packing)?,
        };
        Ok(Some(Self {
            name,
            place,
            stamp,
            format,
            entries,
        }))
    }

    /// What it is.
    pub fn format(&self) -> ArchiveFormat {
        self.format
    }

    /// What people know it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hands out the content of the members at these indexes, in an order of its own.
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
        }
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
            Self::Path(path) => {
                let file = files::open(path)?;
                let stamp = stamp(&file.metadata()?);
                Ok((FileWindow::new(file, 0, stamp.0)?, stamp))
            }
            Self::Part(part) => Ok((part.window()?, (part.length(), None))),
        }
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

/// How much is in an archive, while it is listed.
struct Sum<'a> {
    archive: &'a str,
    most: u64,
    bytes: u64,
    count: usize,
}

impl<'a> Sum<'a> {
    /// For an archive that has so many bytes itself.
    fn new(archive: &'a str, length: u64) -> Self {
        Self {
            archive,
            most: length.saturating_mul(MOST_TIMES).clamp(SUSPICIOUS, LARGEST),
            bytes: 0,
            count: 0,
        }
    }

    /// Counts one member more.
    fn add(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.count > MOST {
            let problem = format!("it has more than {MOST} members");
            return Err(ArchiveError::whole(self.archive, problem));
        }
        if self.bytes > self.most {
            return Err(self.too_much());
        }
        Ok(())
    }

    fn too_much(&self) -> ArchiveError {
        let problem = if self.most == LARGEST {
            format!("it would come to more than {LARGEST} bytes")
        } else {
            format!(
                "it would come to more than {} bytes, {MOST_TIMES} times its own: it may be made to \
                 fill disks",
                self.most
            )
        };
        ArchiveError::whole(self.archive, problem)
    }
}

#[cfg(test)]
mod tests;
