//! Copies files out of an image to a folder of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use wincimg_common::diagnose::{Blame, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::document::{Descriptor, Image, media_type};
use wincimg_oci::store::Source;
use wincimg_windows::path::ImagePath;

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

/// Copies a file or folder of an image into a folder, which is created; that of the whole drive gets
/// no name of its own. Nothing that exists is overwritten. Links are neither copied nor followed.
pub async fn copy_out(
    source: &Source,
    image: &Image,
    path: &ImagePath,
    folder: &Path,
    progress: &Arc<dyn Progress>,
) -> Result<CopiedFiles, Problem> {
    let mut copied = CopiedFiles::default();
    let mut layers: Vec<(usize, &Descriptor)> = Vec::new();
    for (number, blob) in image.manifest().layers.iter().enumerate() {
        let is_stored = !media_type::is_foreign(&blob.media_type) || {
            let found = source.has_blob(blob).await;
            found.map_err(|error| unreadable(&blob.digest, error.into()))?
        };
        if is_stored {
            layers.push((number, blob));
        } else {
            copied.unread.push(number + 1);
        }
    }
    let wanted = BTreeSet::from([path.components().join("/")]);
    let found = extract_from(source, &layers, &wanted, progress).await?;
    if found.is_empty() {
        let problem = format!("the image has no {path}");
        return Err(Problem::new("image/no-file", problem).blame(Blame::Answer));
    }
    let above = path.components().len().saturating_sub(1);
    refuse_existing(&found, above, path, folder)?;
    std::fs::create_dir_all(folder).map_err(|source| {
        let path = folder.to_owned();
        unwritable(DriveError { path, source })
    })?;
    let mut drive = Drive::new(folder.to_owned());
    for (path, entry) in &found {
        let below: Vec<&str> = path.split('/').skip(above).collect();
        let below = below.join("/");
        if below.is_empty() {
            continue;
        }
        if !drive.write_entry(&below, entry).map_err(unwritable)? {
            copied
                .skipped
                .push(format!(r"C:\{}", path.replace('/', r"\")));
            continue;
        }
        match entry {
            ExtractedEntry::File(part) => {
                copied.files += 1;
                copied.bytes = copied.bytes.saturating_add(part.length());
            }
            ExtractedEntry::Folder => copied.folders += 1,
            ExtractedEntry::Link(()) => {}
        }
    }
    Ok(copied)
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
        let problem = Problem::new("files/exist", what).hint("name a new folder");
        return Err(problem.blame(Blame::Request));
    }
    Ok(())
}

fn unwritable(error: DriveError) -> Problem {
    let what = format!("cannot write {}", error.path.display());
    Problem::new("files/write", what).source(error.source)
}
