//! A folder of files that are worth keeping between runs: the least used go first where they have too
//! much.
//!
//! Files get their names when they are whole, and a file that is gone is made again: any number of
//! processes can work here at once without waiting for each other.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::atomic_file::is_draft;
use super::open::open;

/// Such a folder, which need not be there yet, with no more than `limit` bytes in all.
#[derive(Debug, Clone)]
pub struct FileCache {
    folder: PathBuf,
    limit: u64,
}

impl FileCache {
    /// The files in `folder`.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// Its location.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The most that its files may have in all.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Opens a file, which counts as used by that.
    pub fn open(path: &Path) -> io::Result<File> {
        let file = open(path)?;
        // Where that is not allowed, another file may go first.
        let opened = File::options().append(true).open(path);
        let _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
        Ok(file)
    }

    /// Makes the folder.
    pub fn create_dir(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)
    }

    /// Writes a file in it, whole or not at all.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.create_dir()?;
        super::write(path, bytes)
    }

    /// Removes a file that is of no use. One that is in use on Windows stays.
    pub fn remove(path: &Path) {
        let removed = fs::remove_file(path);
        tracing::debug!(file = %path.display(), ?removed, "removed from the cache");
    }

    /// The files in it that are nobody's drafts, by path, with when each was used and its size.
    pub fn files(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let is_named = entry.file_name().to_str().is_some_and(|it| !is_draft(it));
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            is_named.then(|| (entry.path(), used, data.len()))
        });
        found.collect()
    }

    /// Makes room for a file that was just written: of those that count the least used are taken away,
    /// in the way that is said.
    pub fn evict(&self, written: &Path, counts: impl Fn(&Path) -> bool, take_away: impl Fn(&Path)) {
        let mut found = self.files();
        found.retain(|(path, ..)| counts(path));
        // The last used first; what was just written is among the first.
        found.sort_by_key(|(path, used, _)| std::cmp::Reverse((*used, path == written)));
        let mut total = 0_u64;
        for (path, _, size) in found {
            total = total.saturating_add(size);
            if total > self.limit {
                take_away(&path);
            }
        }
    }
}
