//! Texts that are named, or found in a folder.

use std::io;
use std::path::{Path, PathBuf};

use super::open::{open_with_metadata, read_opened, text_of};
use super::within::{LeadsOut, open_within};
use super::{LARGEST_TEXT, folder_of};
use crate::diagnose::Diagnose as _;

/// A recipe, a Dockerfile or a configuration file. One that is found in a folder, not named, is read
/// only in that folder: a link out of it may lead to any file of the user, and errors quote its
/// lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    path: PathBuf,
    is_found: bool,
}

impl TextFile {
    /// A file that the user names.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let is_found = false;
        Self { path, is_found }
    }

    /// A file that is found in its folder.
    pub fn found(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let is_found = true;
        Self { path, is_found }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it.
    pub fn read(&self) -> io::Result<String> {
        let opened = if self.is_found {
            open_within(folder_of(&self.path), &self.path)
        } else {
            open_with_metadata(&self.path)
        };
        text_of(read_opened(opened?, LARGEST_TEXT)?)
    }

    /// What to do about an error of reading it.
    pub fn hint(&self, error: &io::Error) -> Option<String> {
        if LeadsOut::is_cause_of(error) {
            let path = self.path.display();
            return Some(format!("if that file is meant, name it: {path}"));
        }
        error.diagnosis().hint
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::diagnose::Blame;

    #[test]
    fn a_link_out_of_the_folder_is_read_only_if_it_is_named() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, target) = (folder.path().join("Dockerfile"), outside.path().join("a"));
        fs::write(&target, "FROM a").unwrap();
        symlink(&target, &path).unwrap();
        assert_eq!(TextFile::named(&path).read().unwrap(), "FROM a");
        let found = TextFile::found(&path);
        let error = found.read().unwrap_err();
        assert!(LeadsOut::is_cause_of(&error), "{error}");
        assert_eq!(error.diagnosis().blame, Blame::Request);
        assert!(found.hint(&error).unwrap().contains("name it: "));

        fs::remove_file(&path).unwrap();
        fs::write(folder.path().join("own"), "FROM b").unwrap();
        symlink("own", &path).unwrap();
        assert_eq!(found.read().unwrap(), "FROM b");
    }
}
