//! Copies files of an image to a folder that stands for its drive: folders and files only, with names
//! that differ in more than case, and only below the folder.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wincimg_common::files::AtomicFile;
use wincimg_registry::name_folding::FoldedName;
use wincimg_windows::path::name_problem;

use crate::ExtractedEntry;

/// A file or folder that cannot be written.
#[derive(Debug)]
pub(crate) struct DriveError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> DriveError {
    move |source| {
        let path = path.to_owned();
        DriveError { path, source }
    }
}

/// A drive that is being filled.
pub(crate) struct Drive {
    root: PathBuf,
    /// Contents of folders, by their names as Windows compares them.
    known: HashMap<PathBuf, BTreeMap<FoldedName, PathBuf>>,
}

impl Drive {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            known: HashMap::new(),
        }
    }

    /// Copies one entry to a path with slashes. Links, names that are invalid on Windows and paths
    /// that lead outside the drive are skipped: false.
    pub(crate) fn write_entry(
        &mut self,
        path: &str,
        what: &ExtractedEntry,
    ) -> Result<bool, DriveError> {
        if path.split('/').any(is_refused) {
            return Ok(false);
        }
        match what {
            ExtractedEntry::Folder => self.folder(path).map(|_| true),
            ExtractedEntry::Link(()) => Ok(false),
            ExtractedEntry::File(part) => {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                let folder = self.folder(folder)?;
                let file = self.place(&folder, name)?;
                let failed = unwritable(&file);
                if remove(&file).map_err(&failed)? {
                    self.forget(&file);
                }
                let mut content = part.open().map_err(&failed)?;
                let mut draft = AtomicFile::in_folder(&folder).map_err(&failed)?;
                io::copy(&mut content, draft.file()).map_err(&failed)?;
                draft.persist(&file).map_err(failed)?;
                Ok(true)
            }
        }
    }

    /// Deletes a path with slashes, unless it is behind a link.
    pub(crate) fn delete(&mut self, path: &str) -> Result<(), DriveError> {
        let mut at = self.root.clone();
        for name in path.split('/') {
            if is_refused(name) || !fs::symlink_metadata(&at).is_ok_and(|found| found.is_dir()) {
                return Ok(());
            }
            let Some(found) = self.inside(&at)?.get(&FoldedName::new(name)) else {
                return Ok(());
            };
            at = found.clone();
        }
        remove(&at).map_err(unwritable(&at))?;
        self.forget(&at);
        if let Some(inside) = at.parent().and_then(|parent| self.known.get_mut(parent)) {
            inside.retain(|_, file| *file != at);
        }
        Ok(())
    }

    /// Returns a folder of the drive and creates it if necessary. Anything in its place is removed,
    /// including links: their targets are not the image's.
    pub(crate) fn folder(&mut self, path: &str) -> Result<PathBuf, DriveError> {
        let mut at = self.root.clone();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let next = self.place(&at, name)?;
            let is_folder = fs::symlink_metadata(&next).is_ok_and(|found| found.is_dir());
            if !is_folder {
                remove(&next).map_err(unwritable(&next))?;
                fs::create_dir(&next).map_err(unwritable(&next))?;
            }
            at = next;
        }
        Ok(at)
    }

    /// Path of a name in a folder, existing or new.
    fn place(&mut self, folder: &Path, name: &str) -> Result<PathBuf, DriveError> {
        let inside = self.inside(folder)?;
        let place = inside.entry(FoldedName::new(name));
        Ok(place.or_insert_with(|| folder.join(name)).clone())
    }

    fn inside(&mut self, folder: &Path) -> Result<&mut BTreeMap<FoldedName, PathBuf>, DriveError> {
        if !self.known.contains_key(folder) {
            let failed = unwritable(folder);
            let mut found = BTreeMap::new();
            for entry in fs::read_dir(folder).map_err(&failed)? {
                let entry = entry.map_err(&failed)?;
                let name = entry.file_name();
                found.insert(FoldedName::new(&name.to_string_lossy()), entry.path());
            }
            self.known.insert(folder.to_owned(), found);
        }
        Ok(self.known.entry(folder.to_owned()).or_default())
    }

    /// Drops the cached contents of a deleted folder.
    fn forget(&mut self, path: &Path) {
        self.known.retain(|folder, _| !folder.starts_with(path));
    }
}

fn is_refused(name: &str) -> bool {
    name_problem(name).is_some() || name.len() > 255
}

/// Removes a path without following links; returns true if it was a folder.
fn remove(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    if found.is_dir() {
        fs::remove_dir_all(path)?;
    } else {
        fs::remove_file(path)?;
    }
    Ok(found.is_dir())
}
