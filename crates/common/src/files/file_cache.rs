//! A folder of files cached between runs; the least recently used are removed above a size limit.
//!
//! Files are renamed when complete, and a missing file is created again, so that any number of
//! processes can use the folder at once without waiting.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::atomic_file::is_draft;
use super::open::open;

/// A cache folder, created on demand, with at most `limit` bytes.
#[derive(Debug, Clone)]
pub struct FileCache {
    folder: PathBuf,
    limit: u64,
}

impl FileCache {
    /// Creates a cache in `folder`.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// Path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Maximum total size in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Opens a file and marks it as used.
    pub fn open(path: &Path) -> io::Result<File> {
        let file = open(path)?;
        // Without write access, the file may be evicted earlier.
        let opened = File::options().append(true).open(path);
        let _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
        Ok(file)
    }

    /// Creates the folder.
    pub fn create_dir(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)
    }

    /// Writes a file atomically.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.create_dir()?;
        super::write(path, bytes)
    }

    /// Removes a file. On Windows, a file in use stays.
    pub fn remove(path: &Path) {
        let removed = fs::remove_file(path);
        tracing::debug!(file = %path.display(), ?removed, "removed from the cache");
    }

    /// Returns the complete files with path, time of last use and size.
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

    /// Makes room for a file that was just written: calls `take_away` for the least recently used
    /// files for which `counts` is true.
    pub fn evict(&self, written: &Path, counts: impl Fn(&Path) -> bool, take_away: impl Fn(&Path)) {
        let mut found = self.files();
        found.retain(|(path, ..)| counts(path));
        // Most recently used first; `written` wins ties.
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
