//! Files and folders that are copied into an image: their source folder and ignore rules.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use wincimg_common::diagnose::Problem;
use wincimg_common::files::{self, FolderEntry};

use super::dockerignore::IgnoreRules;

/// A file or folder on disk. It is listed and read only here, where no link leads out of its source
/// folder. Copies share the paths, for a plan may have many thousands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSource {
    /// Source folder whose `.dockerignore` applies, such as the build context.
    pub top: Arc<Path>,
    /// Path on disk, for messages and comparisons.
    pub path: Arc<Path>,
    /// What this program writes in the folder.
    written: Option<Arc<IgnoreRules>>,
}

/// Ignore rules of a folder: those at the top of its source, its own, and what this program writes.
#[derive(Debug, Default)]
pub struct IgnoreFilter(Vec<Rules>);

#[derive(Debug)]
struct Rules {
    ignore: IgnoreRules,
    /// Path of the folder relative to the rules.
    folder: String,
}

impl DiskSource {
    /// A folder by itself, which is its own source folder.
    pub fn folder(path: &Path) -> Self {
        let top: Arc<Path> = path.into();
        Self::within(Arc::clone(&top), top)
    }

    /// A file or folder in a source folder.
    pub fn within(top: impl Into<Arc<Path>>, path: impl Into<Arc<Path>>) -> Self {
        Self {
            top: top.into(),
            path: path.into(),
            written: None,
        }
    }

    /// Leaves files and folders that this program writes out of the folder.
    pub fn leave_out(&mut self, written: &[PathBuf]) {
        let rules = IgnoreRules::of_written(&self.path, written);
        self.written = (!rules.is_empty()).then(|| Arc::new(rules));
    }

    /// What is at a path below it, with slashes; itself if that is empty.
    #[must_use]
    pub fn join(&self, inside: &str) -> Self {
        if inside.is_empty() {
            return self.clone();
        }
        Self::within(Arc::clone(&self.top), self.path.join(inside))
    }

    /// Path relative to the top, with slashes; empty for the top itself.
    pub fn inside(&self) -> String {
        let inside = self.path.strip_prefix(&self.top).unwrap_or(&self.path);
        let names = inside.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        });
        names.collect::<Vec<_>>().join("/")
    }

    /// The ignore rules that apply to it.
    pub fn ignore_filter(&self) -> Result<IgnoreFilter, Problem> {
        let folder = self.inside();
        let mut rules = Vec::new();
        let mut add = |ignore: IgnoreRules, folder: String| {
            if !ignore.is_empty() {
                rules.push(Rules { ignore, folder });
            }
        };
        if !folder.is_empty() {
            add(IgnoreRules::read_folder(&Self::folder(&self.top))?, folder);
        }
        if self.is_dir() {
            add(IgnoreRules::read_folder(self)?, String::new());
        }
        if let Some(written) = &self.written {
            add(IgnoreRules::clone(written), String::new());
        }
        Ok(IgnoreFilter(rules))
    }

    /// Returns true if it is ignored as a whole.
    pub fn is_ignored_path(&self) -> Result<bool, Problem> {
        let rules = self.ignore_filter()?;
        Ok(rules.is_ignored("") && !(self.is_dir() && rules.may_reinclude("")))
    }

    /// Metadata of the file or folder.
    pub fn metadata(&self) -> io::Result<Metadata> {
        files::metadata_within(&self.top, &self.path)
    }

    fn is_dir(&self) -> bool {
        self.metadata().is_ok_and(|found| found.is_dir())
    }

    /// Names in the folder, in any order.
    pub fn list(&self) -> io::Result<Vec<FolderEntry>> {
        files::list_within(&self.top, &self.path)
    }

    /// Opens the file.
    pub fn open(&self) -> io::Result<(File, Metadata)> {
        files::open_within(&self.top, &self.path)
    }

    /// Reads the file, up to a maximum.
    pub fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        files::read_opened(self.open()?, most)
    }
}

/// A file by itself: its folder is its source folder.
impl From<PathBuf> for DiskSource {
    fn from(path: PathBuf) -> Self {
        let top: Arc<Path> = path.parent().unwrap_or(Path::new("")).into();
        Self::within(top, path)
    }
}

/// Serialized as its path.
impl Serialize for DiskSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.path.serialize(serializer)
    }
}

impl IgnoreFilter {
    /// Returns true if a path is ignored; it is relative to the folder, and empty for the folder
    /// itself.
    pub fn is_ignored(&self, inside: &str) -> bool {
        self.0.iter().any(|rules| rules.leaves_out(inside))
    }

    /// Returns true if an ignored folder may contain something that is not ignored.
    pub fn may_reinclude(&self, inside: &str) -> bool {
        let mut against = self.0.iter().filter(|rules| rules.leaves_out(inside));
        against.all(|rules| rules.ignore.may_reinclude())
    }
}

impl Rules {
    fn leaves_out(&self, inside: &str) -> bool {
        match (self.folder.as_str(), inside) {
            ("", "") => false,
            ("", path) | (path, "") => self.ignore.is_ignored(path),
            (folder, inside) => self.ignore.is_ignored(&format!("{folder}/{inside}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn site(rules: &str, own: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("site")).unwrap();
        fs::write(folder.path().join(".dockerignore"), rules).unwrap();
        fs::write(folder.path().join("site/.dockerignore"), own).unwrap();
        fs::write(folder.path().join("site/.env"), "KEY=1").unwrap();
        folder
    }

    fn on_disk(folder: &tempfile::TempDir, inside: &str) -> DiskSource {
        DiskSource::within(folder.path(), folder.path().join(inside))
    }

    #[test]
    fn the_rules_at_the_top_count_from_there_and_the_folders_own_from_the_folder() {
        let folder = site("**/.env\nlogs\nsite/tmp\n", "obj\n");
        let site = on_disk(&folder, "./site");
        assert_eq!(site.inside(), "site");
        let rules = site.ignore_filter().unwrap();
        for (path, is_left_out) in [
            (".env", true),
            ("tmp", true),
            ("obj", true),
            ("logs", false),
            ("index.html", false),
            ("", false),
        ] {
            assert_eq!(rules.is_ignored(path), is_left_out, "{path}");
        }
        assert!(!site.is_ignored_path().unwrap());
        assert!(on_disk(&folder, "site/.env").is_ignored_path().unwrap());
    }

    #[test]
    fn a_folder_is_left_out_unless_something_in_it_may_come_back() {
        let all = site("site\n", "");
        assert!(on_disk(&all, "site").is_ignored_path().unwrap());
        let but_one = site("site\n!site/keep\n", "");
        let site = on_disk(&but_one, "site");
        assert!(!site.is_ignored_path().unwrap());
        let rules = site.ignore_filter().unwrap();
        assert!(rules.is_ignored(".env") && !rules.is_ignored("keep"));
        assert!(rules.may_reinclude("deep"));
        assert!(on_disk(&but_one, "site/.env").is_ignored_path().unwrap());
    }

    #[test]
    fn what_is_written_in_a_folder_is_left_out_and_not_the_folder_itself() {
        let folder = site("", "!cache\n");
        let mut site = on_disk(&folder, "site");
        let written = ["site/cache", "site", "else"].map(|path| folder.path().join(path));
        site.leave_out(&written);
        let rules = site.ignore_filter().unwrap();
        assert!(rules.is_ignored("cache") && rules.is_ignored("cache/layers/a"));
        assert!(!rules.may_reinclude("cache"));
        assert!(
            !["", ".env", "cache2", "else"]
                .iter()
                .any(|path| rules.is_ignored(path))
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_may_lead_elsewhere_in_the_folder_and_not_out_of_it() {
        use std::os::unix::fs::symlink;

        use wincimg_common::files::LeadsOut;

        let folder = site("", "");
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        symlink("site", folder.path().join("in")).unwrap();
        fs::write(outside.path().join("passwd"), "").unwrap();
        let found = |inside: &str| on_disk(&folder, inside).metadata();
        assert_eq!(found("in/.env").unwrap().len(), 5);
        assert!(found(".").unwrap().is_dir());
        let listed = |inside: &str| on_disk(&folder, inside).list();
        assert_eq!(listed("in").unwrap().len(), 2);
        for error in [found("out/passwd").err(), listed("out").err()] {
            assert!(LeadsOut::is_cause_of(&error.unwrap()));
        }
        let read = |inside: &str| on_disk(&folder, inside).read(5);
        assert_eq!(read("in/.env").unwrap(), b"KEY=1");
        let refused = read("out/passwd").unwrap_err().to_string();
        assert!(refused.contains("leads out of"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn rules_behind_a_link_are_read_only_inside_its_folder() {
        use std::os::unix::fs::symlink;

        use wincimg_common::diagnose::error_chain;

        let folder = site("", "");
        let outside = tempfile::tempdir().unwrap();
        let rules = folder.path().join(".dockerignore");
        let link = |target: &Path| {
            fs::remove_file(&rules).unwrap();
            symlink(target, &rules).unwrap();
            on_disk(&folder, "site/.env").is_ignored_path()
        };
        fs::write(folder.path().join("rules"), "**/.env").unwrap();
        assert!(link(Path::new("rules")).unwrap());
        assert!(!link(Path::new("missing")).unwrap());
        let target = outside.path().join("rules");
        fs::write(&target, "[S3CRET").unwrap();
        let error = error_chain(&link(&target).unwrap_err());
        assert!(error.contains("leads out of"), "{error}");
        assert!(!error.contains("S3CRET"), "{error}");
    }
}
