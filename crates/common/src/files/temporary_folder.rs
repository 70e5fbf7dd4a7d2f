//! Temporary folders; those of killed runs are removed by the next.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

/// A file in the folder, locked while it is in use.
const LOCK: &str = "lock";

/// A folder that only this user can read; removed when it is dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    _lock: File,
    folder: TempDir,
}

impl TemporaryFolder {
    /// Creates a folder in the system's one, and removes those of killed runs with this prefix.
    pub fn new(prefix: &str) -> io::Result<Self> {
        Self::in_folder(&std::env::temp_dir(), prefix, |folder| {
            let removed = fs::remove_dir_all(folder);
            tracing::debug!(folder = %folder.display(), ?removed, "abandoned");
        })
    }

    /// Creates a folder in `parent`, and calls `remove` for those of killed runs with this prefix.
    pub fn in_folder(parent: &Path, prefix: &str, remove: impl Fn(&Path)) -> io::Result<Self> {
        let folder = Builder::new().prefix(prefix).tempdir_in(parent)?;
        for found in abandoned(parent, prefix, folder.path()) {
            remove(&found);
        }
        // Locked before it gets its name, so that other runs always see it locked.
        let unnamed = folder.path().join("lock-to-be");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, folder.path().join(LOCK))?;
        Ok(Self {
            _lock: lock,
            folder,
        })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Folders of killed runs: those with the same prefix and owner that are not locked.
fn abandoned(parent: &Path, prefix: &str, own: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let found = entries.map(|entry| entry.path()).filter(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_one = name.starts_with(prefix) && folder != own && have_same_owner(folder, own);
        let lock = is_one.then(|| File::open(folder.join(LOCK)));
        lock.is_some_and(|lock| lock.is_ok_and(|lock| lock.try_lock().is_ok()))
    });
    found.collect()
}

#[cfg(unix)]
fn have_same_owner(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let owner = |path| fs::symlink_metadata(path).map(|found| (found.is_dir(), found.uid()));
    matches!((owner(one), owner(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(not(unix))]
fn have_same_owner(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let make = || {
            TemporaryFolder::in_folder(parent.path(), "one-", |folder| {
                fs::remove_dir_all(folder).unwrap();
            })
            .unwrap()
        };
        let killed = parent.path().join("one-killed");
        let others = ["one-starting", "two-killed"].map(|name| parent.path().join(name));
        for folder in others.iter().chain([&killed]) {
            fs::create_dir(folder).unwrap();
        }
        for folder in [&others[1], &killed] {
            fs::write(folder.join(LOCK), "").unwrap();
        }
        let first = make();
        assert!(!killed.exists());
        let second = make();
        assert!(first.path().is_dir() && second.path().is_dir());
        assert!(others.iter().all(|folder| folder.is_dir()));
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
