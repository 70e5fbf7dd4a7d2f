//! Copies files out of an image, to a folder of this machine or to a tar.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use wincimg_common::diagnose::{Blame, Problem};
use wincimg_common::files::{SpoolPart, is_draft};
use wincimg_common::progress::Progress;
use wincimg_oci::document::{Descriptor, Image};
use wincimg_oci::store::Source;
use wincimg_windows::path::{ImagePath, name_problem};

use super::ExtractedEntry;
use super::drive::{Drive, DriveError};
use super::extract::{extract_from, unreadable};
use super::layers::lacks_bytes;

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
            let failed = |problem| unreadable(&blob.digest, problem);
            if lacks_bytes(source, blob).await.map_err(failed)? {
                unread.push(number + 1);
            } else {
                layers.push((number, blob));
            }
        }
        let wanted = BTreeSet::from([path.components().join("/")]);
        let entries = extract_from(source, image, &layers, &wanted, progress).await?;
        if entries.is_empty() {
            let problem = format!("the image has no {path}");
            return Err(Problem::answer("image/no-file", problem));
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
    /// Nothing that exists is overwritten; files that an interrupted copy has written stay. Links
    /// are neither copied nor followed.
    pub fn copy_to(&self, folder: &Path) -> Result<CopiedFiles, Problem> {
        let above = self.path.components().len().saturating_sub(1);
        let below = |path: &str| -> String {
            let names: Vec<&str> = path.split('/').skip(above).collect();
            names.join("/")
        };
        let entries = self.entries.iter();
        let wanted = entries
            .map(|(path, entry)| (below(path).to_lowercase(), entry))
            .collect();
        let written = self.already_written(&wanted, folder)?;
        fs::create_dir_all(folder).map_err(|source| {
            let path = folder.to_owned();
            unwritable(DriveError { path, source })
        })?;
        let mut drive = Drive::new(folder.to_owned());
        let mut copied = self.nothing();
        for (path, entry) in &self.entries {
            let below = below(path);
            if below.is_empty() {
                continue;
            }
            let is_written = written.contains(&below.to_lowercase())
                || drive.write_entry(&below, entry).map_err(unwritable)?;
            copied.count(path, entry, is_written);
        }
        Ok(copied)
    }

    /// The files of an interrupted copy, in lower case: all that exists at the paths to be written
    /// has to be the same.
    fn already_written(
        &self,
        wanted: &HashMap<String, &ExtractedEntry>,
        folder: &Path,
    ) -> Result<HashSet<String>, Problem> {
        let mut written = HashSet::new();
        let is_same = if self.path.components().is_empty() {
            compare(folder, "", wanted, &mut written)
        } else {
            let paths = wanted.keys().filter(|path| !path.is_empty());
            let names: HashSet<&str> = paths.filter_map(|path| path.split('/').next()).collect();
            let entries = fs::read_dir(folder).into_iter().flatten();
            let mut existing = entries.flatten().filter_map(|entry| {
                let name = entry.file_name().to_string_lossy().to_lowercase();
                names.contains(name.as_str()).then(|| (entry.path(), name))
            });
            existing.try_fold(true, |is_same, (path, name)| {
                Ok(is_same && compare(&path, &name, wanted, &mut written)?)
            })
        };
        if is_same.unwrap_or(false) {
            return Ok(written);
        }
        let what = format!("{} already has files of that name", folder.display());
        let problem = Problem::new("output/not-empty", what).hint("name a new folder");
        Err(problem.blame(Blame::Request))
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

/// Returns true if a path does not exist, or is that of an equal file or a folder of such ones;
/// collects the files. `below` is the path in lower case, as names of images differ in more than
/// case.
fn compare(
    path: &Path,
    below: &str,
    wanted: &HashMap<String, &ExtractedEntry>,
    equal: &mut HashSet<String>,
) -> io::Result<bool> {
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    match wanted.get(below) {
        Some(ExtractedEntry::File(part)) if found.is_file() => {
            let is_equal = found.len() == part.length() && has_bytes(path, part)?;
            if is_equal {
                equal.insert(below.to_owned());
            }
            Ok(is_equal)
        }
        // The folder to copy to, and folders that no layer describes, have no entry.
        Some(ExtractedEntry::Folder) | None if found.is_dir() => {
            let is_parent = || {
                let start = format!("{below}/");
                wanted.keys().any(|path| path.starts_with(&start))
            };
            if !below.is_empty() && !wanted.contains_key(below) && !is_parent() {
                return Ok(false);
            }
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy().to_lowercase();
                let inner = format!("{below}/{name}");
                let inner = inner.trim_start_matches('/');
                if !is_draft(&name) && !compare(&entry.path(), inner, wanted, equal)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn has_bytes(path: &Path, part: &SpoolPart) -> io::Result<bool> {
    let (mut found, mut wanted) = (File::open(path)?, part.open()?);
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let count = wanted.read(&mut right)?;
        if count == 0 {
            return Ok(true);
        }
        if let Err(error) = found.read_exact(&mut left[..count]) {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => Ok(false),
                _ => Err(error),
            };
        }
        if left[..count] != right[..count] {
            return Ok(false);
        }
    }
}

fn unwritable(error: DriveError) -> Problem {
    let what = format!("cannot write {}", error.path.display());
    Problem::new("output/write", what).source(error.source)
}

#[cfg(test)]
mod tests {
    use wincimg_common::files::SpoolWriter;

    use super::*;

    fn app(files: &[(&str, &[u8])], temporary: &Path) -> ExtractedFiles {
        let mut spool = SpoolWriter::in_folder(temporary).unwrap();
        let mut entries = BTreeMap::from([("app".to_owned(), ExtractedEntry::Folder)]);
        for (path, bytes) in files {
            let part = spool.append(|out| out.write_all(bytes)).unwrap();
            entries.insert((*path).to_owned(), ExtractedEntry::File(part));
        }
        ExtractedFiles {
            path: r"C:\app".parse().unwrap(),
            entries,
            unread: Vec::new(),
        }
    }

    #[test]
    fn an_interrupted_copy_is_continued_and_nothing_else_is_touched() {
        let temporary = tempfile::tempdir().unwrap();
        let big = vec![7; 200_000];
        let files: [(&str, &[u8]); 3] = [("app/a", &big), ("app/b/c", b"c"), ("app/d", b"")];
        let image = app(&files, temporary.path());
        let folder = temporary.path().join("out");
        let path = |name: &str| folder.join(name);
        let complete = image.copy_to(&folder).unwrap();
        assert_eq!((complete.files, complete.bytes), (3, 200_001));

        fs::remove_file(path("app/b/c")).unwrap();
        fs::write(path("app/.wincimg-1"), "an unfinished file").unwrap();
        fs::write(path("other"), "the user's").unwrap();
        let before = path("app/a").metadata().unwrap().modified().unwrap();
        assert_eq!(image.copy_to(&folder).unwrap(), complete);
        assert_eq!(fs::read(path("app/b/c")).unwrap(), b"c");
        let after = path("app/a").metadata().unwrap().modified().unwrap();
        assert_eq!(after, before);

        let refused = || image.copy_to(&folder).unwrap_err().to_string();
        for (name, bytes) in [("app/own", &b"x"[..]), ("app/a", b"x"), ("app/b/c", b"d")] {
            let known = fs::read(path(name)).ok();
            fs::write(path(name), bytes).unwrap();
            assert!(refused().contains("already has files"), "{name}");
            assert_eq!(fs::read(path(name)).unwrap(), bytes, "{name}");
            match known {
                Some(known) => fs::write(path(name), known).unwrap(),
                None => fs::remove_file(path(name)).unwrap(),
            }
        }
        image.copy_to(&folder).unwrap();
        // The last byte of a large file counts too.
        let mut other = big.clone();
        other[199_999] = 8;
        fs::write(path("app/a"), other).unwrap();
        assert!(refused().contains("already has files"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_that_differ_in_case_are_the_same() {
        let temporary = tempfile::tempdir().unwrap();
        let image = app(&[("App/a", b"a"), ("app/B", b"b")], temporary.path());
        let folder = temporary.path().join("out");
        let complete = image.copy_to(&folder).unwrap();
        assert_eq!(image.copy_to(&folder).unwrap(), complete);
        fs::create_dir(folder.join("APP")).unwrap();
        fs::write(folder.join("APP/a"), "x").unwrap();
        assert!(image.copy_to(&folder).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_a_file_is_not_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let image = app(&[("app/a", b"a")], temporary.path());
        let folder = temporary.path().join("out");
        fs::create_dir_all(folder.join("app")).unwrap();
        fs::write(temporary.path().join("a"), "a").unwrap();
        std::os::unix::fs::symlink("../../a", folder.join("app/a")).unwrap();
        assert!(image.copy_to(&folder).is_err());
    }
}
