//! Copies files out of an image, to a folder of this machine or to a tar.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use wincimg_common::diagnose::{Blame, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::document::{Descriptor, Image, media_type};
use wincimg_oci::store::Source;
use wincimg_windows::path::{ImagePath, name_problem};

use super::ExtractedEntry;
use super::drive::{Drive, DriveError};
use super::extract::{extract_from, unreadable};

/// Result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CopiedFiles {
    /// Number of files.
    pub files: usize,
    /// Number of folders.
    pub folders: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Links, and names that Windows does not accept, by their paths in the image.
    pub skipped: Vec<String>,
    /// Layers that were not read, counted from 1: foreign ones whose bytes are not stored with the
    /// image.
    pub unread: Vec<usize>,
}

/// Files of an image, in a temporary file.
pub struct ExtractedFiles {
    path: ImagePath,
    entries: BTreeMap<String, ExtractedEntry>,
    unread: Vec<usize>,
}

impl ExtractedFiles {
    /// Extracts a file or folder of an image, as a container sees it.
    pub async fn read(
        source: &Source,
        image: &Image,
        path: &ImagePath,
        progress: &Arc<dyn Progress>,
    ) -> Result<Self, Problem> {
        let mut unread = Vec::new();
        let mut layers: Vec<(usize, &Descriptor)> = Vec::new();
        for (number, blob) in image.manifest().layers.iter().enumerate() {
            let is_stored = !media_type::is_foreign(&blob.media_type) || {
                let found = source.has_blob(blob).await;
                found.map_err(|error| unreadable(&blob.digest, error.into()))?
            };
            if is_stored {
                layers.push((number, blob));
            } else {
                unread.push(number + 1);
            }
        }
        let wanted = BTreeSet::from([path.components().join("/")]);
        let entries = extract_from(source, image, &layers, &wanted, progress).await?;
        if entries.is_empty() {
            let problem = format!("the image has no {path}");
            return Err(Problem::new("image/no-file", problem).blame(Blame::Answer));
        }
        Ok(Self {
            path: path.clone(),
            entries,
            unread,
        })
    }

    /// The path, if it is a link itself, which is not copied.
    pub fn link(&self) -> Option<&ImagePath> {
        let path = self.path.components().join("/").to_lowercase();
        let mut entries = self.entries.iter();
        let (_, own) = entries.find(|(own, _)| own.to_lowercase() == path)?;
        matches!(own, ExtractedEntry::Link(())).then_some(&self.path)
    }

    /// Copies the files into a folder, which is created; the whole drive gets no name of its own.
    /// Nothing that exists is overwritten. Links are neither copied nor followed.
    pub fn copy_to(&self, folder: &Path) -> Result<CopiedFiles, Problem> {
        let above = self.path.components().len().saturating_sub(1);
        refuse_existing(&self.entries, above, &self.path, folder)?;
        std::fs::create_dir_all(folder).map_err(|source| {
            let path = folder.to_owned();
            unwritable(DriveError { path, source })
        })?;
        let mut drive = Drive::new(folder.to_owned());
        let mut copied = self.nothing();
        for (path, entry) in &self.entries {
            let below: Vec<&str> = path.split('/').skip(above).collect();
            let below = below.join("/");
            if below.is_empty() {
                continue;
            }
            let is_written = drive.write_entry(&below, entry).map_err(unwritable)?;
            copied.count(path, entry, is_written);
        }
        Ok(copied)
    }

    /// Writes the files as a tar with paths from the root of the drive. The same image gives the
    /// same bytes.
    pub fn write_tar(&self, out: &mut dyn Write) -> io::Result<CopiedFiles> {
        let mut tar = tar::Builder::new(out);
        let mut copied = self.nothing();
        for (path, entry) in &self.entries {
            let is_valid = !path.split('/').any(|name| name_problem(name).is_some());
            let is_link = matches!(entry, ExtractedEntry::Link(()));
            if path.is_empty() {
                continue;
            }
            copied.count(path, entry, is_valid && !is_link);
            if !is_valid || is_link {
                continue;
            }
            let mut header = tar::Header::new_gnu();
            header.set_mtime(0);
            match entry {
                ExtractedEntry::File(part) => {
                    header.set_mode(0o644);
                    header.set_size(part.length());
                    tar.append_data(&mut header, path, part.open()?)?;
                }
                ExtractedEntry::Folder | ExtractedEntry::Link(()) => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_mode(0o755);
                    header.set_size(0);
                    tar.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
            }
        }
        tar.finish()?;
        Ok(copied)
    }

    fn nothing(&self) -> CopiedFiles {
        CopiedFiles {
            unread: self.unread.clone(),
            ..CopiedFiles::default()
        }
    }
}

impl CopiedFiles {
    fn count(&mut self, path: &str, entry: &ExtractedEntry, is_written: bool) {
        match entry {
            _ if !is_written => self
                .skipped
                .push(format!(r"C:\{}", path.replace('/', r"\"))),
            ExtractedEntry::File(part) => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(part.length());
            }
            ExtractedEntry::Folder => self.folders += 1,
            ExtractedEntry::Link(()) => {}
        }
    }
}

fn refuse_existing(
    found: &BTreeMap<String, ExtractedEntry>,
    above: usize,
    path: &ImagePath,
    folder: &Path,
) -> Result<(), Problem> {
    let is_taken = if path.components().is_empty() {
        let entries = std::fs::read_dir(folder);
        entries.is_ok_and(|mut entries| entries.next().is_some())
    } else {
        let names = found.keys().filter_map(|path| path.split('/').nth(above));
        let mut names = names.take(1);
        names.any(|name| folder.join(name).symlink_metadata().is_ok())
    };
    if is_taken {
        let what = format!("{} already has files of that name", folder.display());
        let problem = Problem::new("output/not-empty", what).hint("name a new folder");
        return Err(problem.blame(Blame::Request));
    }
    Ok(())
}

fn unwritable(error: DriveError) -> Problem {
    let what = format!("cannot write {}", error.path.display());
    Problem::new("output/write", what).source(error.source)
}
