//! `wincimg.lock`: digests of downloads, by URL.
//!
//! A program writes it and people review it: one entry a URL, in order, so that a change of one is
//! a change of a few lines.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wincimg_common::diagnose::{Blame, BoxError, Problem, line_and_column};
use wincimg_common::digest::Digest;
use wincimg_common::files;
use wincimg_common::files::LARGEST_TEXT;
use wincimg_http::FileError;

/// Name of the file.
pub(crate) const FILE_NAME: &str = "wincimg.lock";
const VERSION: u32 = 1;
/// Far more than any file of an image has. A plan adds sizes up.
const LARGEST: u64 = 1 << 40;
const HEAD: &str = "\
# Downloads of the Dockerfiles and recipes in this folder. Keep this file with them;
# `wincimg build IMAGE --update-lock` writes it.
";

/// A lock file as read, with new entries.
#[derive(Debug, Clone)]
pub struct LockFile {
    path: PathBuf,
    entries: BTreeMap<String, LockedDownload>,
    noted: BTreeMap<String, LockedDownload>,
}

/// The locked content of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedDownload {
    /// The SHA-256 of its bytes.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// Changes made by writing the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockChanges {
    /// Entries that are new.
    pub new: usize,
    /// Entries that changed.
    pub changed: usize,
    /// Entries that were checked and are unchanged.
    pub same: usize,
}

/// Schema of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    #[serde(default, rename = "download")]
    downloads: Vec<LockEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockEntry {
    url: String,
    sha256: String,
    size: u64,
}

impl LockFile {
    /// Reads the lock file of a folder, which may be absent.
    pub fn in_folder(folder: &Path) -> Result<Self, BoxError> {
        let path = folder.join(FILE_NAME);
        Ok(Self {
            entries: read(&path)?,
            noted: BTreeMap::new(),
            path,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The locked content of a URL.
    pub fn get(&self, url: &str) -> Option<&LockedDownload> {
        self.noted.get(url).or_else(|| self.entries.get(url))
    }

    /// Locks the content of a URL.
    pub fn insert(&mut self, url: &str, locked: LockedDownload) {
        self.noted.insert(url.to_owned(), locked);
    }

    /// Writes the new entries; other entries stay, also those added to the file meanwhile.
    pub fn write(&mut self) -> Result<LockChanges, BoxError> {
        let _held = files::lock_folder(self.path.parent().unwrap_or(Path::new("")));
        let mut entries = read(&self.path)?;
        let mut written = LockChanges::default();
        for (url, locked) in &self.noted {
            match entries.insert(url.clone(), locked.clone()) {
                None => written.new += 1,
                Some(before) if before == *locked => written.same += 1,
                Some(_) => written.changed += 1,
            }
        }
        if written.new + written.changed > 0 {
            files::write(&self.path, text(&entries).as_bytes())
                .map_err(FileError::io("write", &self.path))?;
        }
        self.entries = entries;
        self.noted.clear();
        Ok(written)
    }
}

fn text(entries: &BTreeMap<String, LockedDownload>) -> String {
    let entries = entries.iter().map(|(url, locked)| LockEntry {
        url: url.clone(),
        sha256: locked.digest.digest().to_owned(),
        size: locked.size,
    });
    let text = toml::to_string(&Text {
        version: VERSION,
        downloads: entries.collect(),
    });
    // Strings and integers always serialize to TOML.
    format!("{HEAD}{}", text.unwrap_or_default())
}

fn read(path: &Path) -> Result<BTreeMap<String, LockedDownload>, BoxError> {
    let text = match files::read_text(path, LARGEST_TEXT) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(FileError::io("read", path)(error).into()),
    };
    parse(&text).map_err(|(line, problem)| {
        let problem = format!("{}:{line}: {problem}", path.display());
        Problem::new("download/lock", problem)
            .blame(Blame::Request)
            .hint(
                "restore the file from version control, or delete it and write it again with \
                 --update-lock",
            )
            .into()
    })
}

fn parse(text: &str) -> Result<BTreeMap<String, LockedDownload>, (usize, String)> {
    let parsed: Text = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        (line_and_column(text, offset).0, error.message().to_owned())
    })?;
    if parsed.version != VERSION {
        let problem = format!(
            "unsupported version {}: expected version {VERSION}",
            parsed.version
        );
        return Err((1, problem));
    }
    let mut entries = BTreeMap::new();
    for LockEntry { url, sha256, size } in parsed.downloads {
        let line = || {
            let offset = text.find(&sha256).unwrap_or_default();
            line_and_column(text, offset).0
        };
        let digest = format!("sha256:{}", sha256.to_ascii_lowercase()).parse();
        let digest = digest.map_err(|_| {
            let problem = format!("invalid SHA-256 {sha256:?}: expected 64 hexadecimal digits");
            (line(), problem)
        })?;
        if size > LARGEST {
            let problem = format!("invalid size {size}: expected at most {LARGEST} bytes");
            return Err((line(), problem));
        }
        let locked = LockedDownload { digest, size };
        if let Some(known) = entries.insert(url.clone(), locked.clone())
            && known != locked
        {
            return Err((line(), format!("duplicate entry for {url}")));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wincimg_common::digest::sha256;

    use super::*;

    fn locked(bytes: &[u8]) -> LockedDownload {
        LockedDownload {
            digest: sha256(bytes),
            size: bytes.len() as u64,
        }
    }

    #[test]
    fn what_is_noted_is_read_again_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut lock = LockFile::in_folder(folder.path()).unwrap();
        lock.insert("https://b.lan/x", locked(b"b"));
        lock.insert("https://a.lan/\"x\"", locked(b"a"));
        let written = lock.write().unwrap();
        assert_eq!((written.new, written.changed, written.same), (2, 0, 0));
        let path = folder.path().join(FILE_NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.find("a.lan") < text.find("b.lan"), "{text}");
        let mut other = LockFile::in_folder(folder.path()).unwrap();
        // Another process adds an entry meanwhile.
        lock.insert("https://c.lan/x", locked(b"c"));
        lock.write().unwrap();
        other.insert("https://b.lan/x", locked(b"new"));
        other.insert("https://a.lan/\"x\"", locked(b"a"));
        let written = other.write().unwrap();
        assert_eq!((written.new, written.changed, written.same), (0, 1, 1));
        let last = LockFile::in_folder(folder.path()).unwrap();
        assert_eq!(last.get("https://b.lan/x"), Some(&locked(b"new")));
        assert_eq!(last.get("https://c.lan/x"), Some(&locked(b"c")));
        assert_eq!(last.get("https://d.lan/x"), None);
    }

    #[cfg(unix)]
    #[test]
    fn builds_at_once_lose_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..20 {
                let mut lock = LockFile::in_folder(folder.path()).unwrap();
                scope.spawn(move || {
                    lock.insert(&format!("https://a.lan/{number}"), locked(b"a"));
                    lock.write().unwrap();
                });
            }
        });
        let lock = LockFile::in_folder(folder.path()).unwrap();
        assert_eq!(lock.entries.len(), 20);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        for (text, line, printed) in [
            ("", 1, "version"),
            ("version = 2", 1, "version 2"),
            ("version = 1\n\nother = 3", 3, "unknown field"),
            (
                "version = 1\n[[download]]\nurl = 'a'\nsha256 = 'xyz'\nsize = 1",
                4,
                "expected 64",
            ),
            ("version = 1\n<<<<<<< ours", 2, ""),
            (
                "version = 1\n[[download]]\nurl = 'a'\n\
                 sha256 = '0000000000000000000000000000000000000000000000000000000000000000'\n\
                 size = 18446744073709551615",
                4,
                "invalid size",
            ),
        ] {
            let (found, problem) = parse(text).unwrap_err();
            assert!(problem.contains(printed), "{text}: {problem}");
            assert_eq!(found, line, "{text}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_answer(text in r"(version = 1\n)?(\[\[download\]\]\n)?(.|\n){0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_url_comes_back(url in "\\PC{0,40}", size in 0..=LARGEST) {
            let entry = LockedDownload { digest: sha256(url.as_bytes()), size };
            let entries = BTreeMap::from([(url, entry)]);
            prop_assert_eq!(parse(&text(&entries)).unwrap(), entries);
        }
    }
}
