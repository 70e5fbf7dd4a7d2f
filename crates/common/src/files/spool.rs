//! Temporary disk space while the program runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// A temporary file, removed when the program ends in any way, that can be reopened by its path
/// until then.
///
/// On Linux it is unnamed, and the path leads through `/proc/self/fd`. Windows removes it when the
/// last handle is closed. Elsewhere it has a name until the value is dropped.
#[derive(Debug)]
pub struct Spool {
    file: File,
    path: PathBuf,
    _named: Option<TempPath>,
}

impl Spool {
    /// Creates an empty one on the file system of `folder`.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(spool) = Self::nameless(folder) {
            return Ok(spool);
        }
        Self::named(folder)
    }

    /// `None` if the file system does not support unnamed files, or `/proc` is not mounted.
    #[cfg(target_os = "linux")]
    fn nameless(folder: &Path) -> Option<Self> {
        let file = tempfile::tempfile_in(folder).ok()?;
        let path = super::atomic_file::path_of(&file);
        path.is_file().then_some(Self {
            file,
            path,
            _named: None,
        })
    }

    fn named(folder: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("wincimg-");
        #[cfg(not(windows))]
        let named = builder.tempfile_in(folder)?;
        #[cfg(windows)]
        let named = builder.make_in(folder, |path| {
            use std::os::windows::fs::OpenOptionsExt;
            const TEMPORARY_AND_DELETE_ON_CLOSE: u32 = 0x0400_0100;
            File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .custom_flags(TEMPORARY_AND_DELETE_ON_CLOSE)
                .open(path)
        })?;
        let (file, named) = named.into_parts();
        Ok(Self {
            file,
            path: named.to_path_buf(),
            _named: Some(named),
        })
    }

    /// Wraps another program's open file. On Linux it can be reopened after it is unlinked.
    pub(super) fn from_file(file: File, path: &Path) -> Self {
        let path = path.to_owned();
        #[cfg(target_os = "linux")]
        let path = Some(super::atomic_file::path_of(&file))
            .filter(|open| open.is_file())
            .unwrap_or(path);
        Self {
            file,
            path,
            _named: None,
        }
    }

    /// Another handle of the same file, which may outlive this value.
    pub fn reopen(&self) -> io::Result<Self> {
        Ok(Self::from_file(super::open(&self.path)?, &self.path))
    }

    /// Path to reopen it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, for writing.
    pub fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_spool_is_read_by_its_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::in_folder(folder.path()).unwrap();
        spool.file().write_all(b"one").unwrap();
        #[cfg(target_os = "linux")]
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        for _ in 0..2 {
            assert_eq!(std::fs::read(spool.path()).unwrap(), b"one");
        }
        drop(spool);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(Spool::in_folder(Path::new("/does/not/exist")).is_err());
    }
}
