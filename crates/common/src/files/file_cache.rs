//! A folder of files cached between runs; the least recently used are removed above a size limit.
//!
//! Files are renamed when complete, and a missing file is created again, so that any number of
//! processes can use the folder at once without waiting.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::atomic_file::is_draft;
use super::open::open;

/// A cache folder, created on demand, with at most `limit` bytes.
#[derive(Debug, Clone)]
pub struct FileCache {
    folder: PathBuf,
    limit: u64,
    /// Bytes that this process may write before it lists the folder again.
    room: Arc<AtomicU64>,
}

/// What the limit of a cache says of one of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheFileUse {
    /// Counts towards the limit.
    Counted,
    /// Stays: of another cache in the folder, or empty.
    Uncounted,
    /// Is removed.
    Expired,
}

/// Part of the free space that one process uses between two listings, as others write too.
const SHARE_OF_PROCESS: u64 = 8;

/// Space of the smallest file on disk.
const BLOCK: u64 = 4096;

impl FileCache {
    /// Creates a cache in `folder`.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self {
            folder,
            limit,
            room: Arc::default(),
        }
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

    /// Returns the complete files of caches with path, time of last use and size.
    fn files(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let name = entry.file_name();
            let is_cached = name
                .to_str()
                .is_some_and(|it| has_digest(it) && !is_draft(it));
            let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            is_cached.then(|| (entry.path(), used, data.len()))
        });
        found.collect()
    }

    /// Makes room for a file that was just written: calls `take_away` for expired files and for the
    /// least recently used ones. Lists the folder only if the limit could be reached.
    pub fn evict(
        &self,
        written: &Path,
        use_of: impl Fn(&Path, SystemTime) -> CacheFileUse,
        take_away: impl Fn(&Path),
    ) {
        let size = fs::metadata(written).map_or(u64::MAX, |data| data.len());
        let subtracted = |room: u64| room.checked_sub(size.max(BLOCK));
        let order = Ordering::Relaxed;
        if self.room.fetch_update(order, order, subtracted).is_ok() {
            return;
        }
        let mut found = self.files();
        found.retain(|(path, used, _)| match use_of(path, *used) {
            CacheFileUse::Counted => true,
            CacheFileUse::Uncounted => false,
            CacheFileUse::Expired => {
                take_away(path);
                false
            }
        });
        // `written` first: if the clock was put back, others are newer. Then the most recently used.
        found.sort_by_key(|(path, used, _)| std::cmp::Reverse((path == written, *used)));
        let mut total = 0_u64;
        for (path, _, size) in found {
            total = total.saturating_add(size);
            if total > self.limit {
                take_away(&path);
            }
        }
        let room = self.limit.saturating_sub(total) / SHARE_OF_PROCESS;
        self.room.store(room, order);
    }
}

/// Returns true if a name contains a digest, as those of all cached files do. Other files are the
/// user's.
fn has_digest(name: &str) -> bool {
    let mut parts = name.split(|c: char| !c.is_ascii_hexdigit());
    parts.any(|part| part.len() >= 64)
}

/// Creates a folder and its missing parents for this user alone, whatever the umask allows: what is
/// in a cache is trusted.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stays_below_its_limit_and_keeps_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FileCache::new(folder.path().join("deep"), 1 << 20);
        let use_of = |path: &Path, _| match path.extension() {
            Some(end) if end == "old" => CacheFileUse::Expired,
            Some(end) if end == "other" => CacheFileUse::Uncounted,
            _ => CacheFileUse::Counted,
        };
        let put = |name: String, size: usize| {
            let path = cache.folder().join(name);
            cache.write(&path, &vec![0; size]).unwrap();
            path
        };
        let digest = |number: usize| format!("{number:064x}");
        let expired = put(format!("{}.old", digest(0)), 1);
        let other = put(format!("{}.other", digest(0)), 2 << 20);
        let of_user = put("notes.txt".to_owned(), 2 << 20);
        for number in 0..200 {
            let path = put(digest(number), 20_000);
            cache.evict(&path, use_of, FileCache::remove);
            assert!(path.exists());
            let counted = cache.files().into_iter().filter(|(it, ..)| *it != other);
            assert!(counted.map(|(_, _, size)| size).sum::<u64>() <= 1 << 20);
        }
        assert!(other.exists() && of_user.exists() && !expired.exists());
        assert!(cache.files().len() > 40);
    }

    #[test]
    fn what_was_just_written_stays_after_the_clock_was_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FileCache::new(folder.path().to_owned(), 10);
        let put = |name: &str| {
            let path = cache.folder().join(name.repeat(64));
            cache.write(&path, b"12345").unwrap();
            path
        };
        for path in ["a", "b"].map(&put) {
            let file = File::options().append(true).open(path).unwrap();
            let later = SystemTime::now() + std::time::Duration::from_hours(2);
            file.set_modified(later).unwrap();
        }
        let written = put("c");
        cache.evict(&written, |_, _| CacheFileUse::Counted, FileCache::remove);
        assert!(written.exists());
        assert_eq!(cache.files().len(), 2);
    }
}
