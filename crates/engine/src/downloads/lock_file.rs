//! `wincimg.lock`: digests of downloads, by URL, and of images with files of a recipe, by name and
//! Windows build.
//!
//! A program writes it and people review it: one entry a URL or image, in order, so that a change of
//! one is a change of a few lines.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wincimg_common::diagnose::{BoxError, Problem, line_and_column};
use wincimg_common::digest::Digest;
use wincimg_common::files::{self, LeadsOut, TextFile};
use wincimg_common::progress::Progress;
use wincimg_common::untrusted::public_url;
use wincimg_http::file_error;
use wincimg_recipe::LOCK_FILE;

const VERSION: u32 = 1;
/// Far more than any file of an image has. A plan adds sizes up.
const LARGEST: u64 = 1 << 40;
/// Hint for a lock file that cannot be used.
const RESTORE_HINT: &str = "restore the file from version control, or delete it and write it again \
                            with --update-lock";
const HEAD: &str = "\
# Downloads and images of the Dockerfiles and recipes in this folder. Keep this file with them;
# `wincimg build IMAGE --update-lock` writes it.
";

/// A lock file as read, with new entries.
#[derive(Debug, Clone)]
pub struct LockFile {
    pub(super) path: PathBuf,
    entries: Entries,
    noted: Entries,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entries {
    /// By URL.
    downloads: BTreeMap<String, LockedDownload>,
    /// Manifests by the image's name and the host's Windows build.
    images: BTreeMap<(String, u32), Digest>,
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockChanges {
    /// Entries that are new.
    pub new: usize,
    /// Entries that changed.
    pub changed: usize,
    /// Entries that were checked and are unchanged.
    pub same: usize,
    /// New URLs with a query, shown without it: it may be secret.
    pub with_query: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    #[serde(default, rename = "download")]
    downloads: Vec<LockEntry>,
    #[serde(default, rename = "image", skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockEntry {
    url: String,
    sha256: String,
    size: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageEntry {
    name: String,
    build: u32,
    sha256: String,
}

impl LockFile {
    /// Reads the lock file of a folder, which may be absent.
    pub fn in_folder(folder: &Path) -> Result<Self, BoxError> {
        let path = folder.join(LOCK_FILE);
        Ok(Self {
            entries: read(&path)?,
            noted: Entries::default(),
            path,
        })
    }

    /// The locked content of a URL.
    pub fn get(&self, url: &str) -> Option<&LockedDownload> {
        let noted = self.noted.downloads.get(url);
        noted.or_else(|| self.entries.downloads.get(url))
    }

    /// The locked image of a name for a Windows build; with `only_noted`, as noted in this run.
    pub(super) fn image(&self, name: &str, build: u32, only_noted: bool) -> Option<&Digest> {
        let key = (name.to_owned(), build);
        let known = || self.entries.images.get(&key).filter(|_| !only_noted);
        self.noted.images.get(&key).or_else(known)
    }

    pub(super) fn insert_image(&mut self, name: &str, build: u32, digest: Digest) {
        self.noted.images.insert((name.to_owned(), build), digest);
    }

    /// Locks the content of a URL.
    pub fn insert(&mut self, url: &str, locked: LockedDownload) {
        self.noted.downloads.insert(url.to_owned(), locked);
    }

    /// Writes the new entries; other entries stay, also those added to the file meanwhile.
    pub fn write(&mut self, progress: &dyn Progress) -> Result<LockChanges, BoxError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let _held = files::lock_folder(folder, progress);
        let mut entries = read(&self.path)?;
        let mut written = LockChanges::default();
        let urls = self.noted.downloads.keys();
        let new = urls.filter(|url| url.contains('?') && !entries.downloads.contains_key(*url));
        written.with_query = new.map(|url| public_url(url)).collect();
        written.merge(&self.noted.downloads, &mut entries.downloads);
        written.merge(&self.noted.images, &mut entries.images);
        if written.new + written.changed > 0 {
            files::write(&self.path, text(&entries).as_bytes())
                .map_err(file_error("write", &self.path))?;
        }
        self.entries = entries;
        self.noted = Entries::default();
        Ok(written)
    }
}

impl LockChanges {
    /// Counts new entries, and adds them to the others.
    fn merge<K: Ord + Clone, V: PartialEq + Clone>(
        &mut self,
        noted: &BTreeMap<K, V>,
        entries: &mut BTreeMap<K, V>,
    ) {
        for (key, locked) in noted {
            match entries.insert(key.clone(), locked.clone()) {
                None => self.new += 1,
                Some(before) if before == *locked => self.same += 1,
                Some(_) => self.changed += 1,
            }
        }
    }
}

fn text(entries: &Entries) -> String {
    let downloads = entries.downloads.iter().map(|(url, locked)| LockEntry {
        url: url.clone(),
        sha256: locked.digest.digest().to_owned(),
        size: locked.size,
    });
    let images = entries.images.iter();
    let images = images.map(|((name, build), digest)| ImageEntry {
        name: name.clone(),
        build: *build,
        sha256: digest.digest().to_owned(),
    });
    let text = toml::to_string(&Text {
        version: VERSION,
        downloads: downloads.collect(),
        images: images.collect(),
    });
    // Strings and integers always serialize to TOML.
    format!("{HEAD}{}", text.unwrap_or_default())
}

fn read(path: &Path) -> Result<Entries, BoxError> {
    let text = match TextFile::found(path).read() {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Entries::default()),
        Err(error) if LeadsOut::is_cause_of(&error) => {
            let hint =
                "copy the link's target into the folder, or delete the link and add --update-lock";
            let problem = format!("cannot read {}", path.display());
            let problem = Problem::request("download/lock", problem);
            return Err(problem.hint(hint).source(error).into());
        }
        Err(error) => {
            let is_unusable = matches!(
                error.kind(),
                ErrorKind::IsADirectory | ErrorKind::InvalidInput | ErrorKind::FileTooLarge
            );
            let problem = file_error("read", path)(error);
            return Err(problem.hint_if(is_unusable.then_some(RESTORE_HINT)).into());
        }
    };
    parse(&text).map_err(|(line, problem)| {
        let problem = format!("{}:{line}: {problem}", path.display());
        Problem::request("download/lock", problem)
            .hint(RESTORE_HINT)
            .into()
    })
}

fn parse(text: &str) -> Result<Entries, (usize, String)> {
    let parsed: Text = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        (line_and_column(text, offset).0, error.message().to_owned())
    })?;
    if parsed.version != VERSION {
        let version = parsed.version;
        let problem = format!("unsupported version {version}: expected version {VERSION}");
        return Err((1, problem));
    }
    let line = |sha256: &str| {
        let offset = text.find(sha256).unwrap_or_default();
        line_and_column(text, offset).0
    };
    let digest_of = |sha256: &str| {
        let digest = format!("sha256:{}", sha256.to_ascii_lowercase()).parse();
        digest.map_err(|_| {
            let problem = format!("invalid SHA-256 {sha256:?}: expected 64 hexadecimal digits");
            (line(sha256), problem)
        })
    };
    let mut entries = Entries::default();
    for LockEntry { url, sha256, size } in parsed.downloads {
        let digest = digest_of(&sha256)?;
        if size > LARGEST {
            let problem = format!("invalid size {size}: expected at most {LARGEST} bytes");
            return Err((line(&sha256), problem));
        }
        let locked = LockedDownload { digest, size };
        if let Some(known) = entries.downloads.insert(url.clone(), locked.clone())
            && known != locked
        {
            let problem = format!("duplicate entry for {}", public_url(&url));
            return Err((line(&sha256), problem));
        }
    }
    for ImageEntry {
        name,
        build,
        sha256,
    } in parsed.images
    {
        let digest = digest_of(&sha256)?;
        let known = entries.images.insert((name.clone(), build), digest.clone());
        if known.is_some_and(|known| known != digest) {
            return Err((line(&sha256), format!("duplicate entry for {name}")));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wincimg_common::digest::sha256;
    use wincimg_common::files::NotUtf8;
    use wincimg_common::progress::Silent;

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
        let written = lock.write(&Silent).unwrap();
        assert_eq!((written.new, written.changed, written.same), (2, 0, 0));
        let path = folder.path().join(LOCK_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.find("a.lan") < text.find("b.lan"), "{text}");
        let mut other = LockFile::in_folder(folder.path()).unwrap();
        // Another process adds an entry meanwhile.
        lock.insert("https://c.lan/x", locked(b"c"));
        lock.write(&Silent).unwrap();
        other.insert("https://b.lan/x", locked(b"new"));
        other.insert("https://a.lan/\"x\"", locked(b"a"));
        let written = other.write(&Silent).unwrap();
        assert_eq!((written.new, written.changed, written.same), (0, 1, 1));
        let last = LockFile::in_folder(folder.path()).unwrap();
        assert_eq!(last.get("https://b.lan/x"), Some(&locked(b"new")));
        assert_eq!(last.get("https://c.lan/x"), Some(&locked(b"c")));
        assert_eq!(last.get("https://d.lan/x"), None);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_the_folder() {
        use std::os::unix::fs::symlink;

        use wincimg_common::diagnose::error_chain;

        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join(LOCK_FILE), outside.path().join("file"));
        symlink(&target, &path).unwrap();
        let mut lock = LockFile::in_folder(folder.path()).unwrap();
        lock.insert("https://a.lan/x", locked(b"a"));
        std::fs::write(&target, "S3CRET").unwrap();
        for result in [
            LockFile::in_folder(folder.path()).map(drop),
            lock.write(&Silent).map(drop),
        ] {
            let error = result.unwrap_err();
            assert_eq!(error.diagnosis().code, "download/lock");
            let problem = error_chain(error.as_ref());
            assert!(problem.contains("leads out of"), "{problem}");
        }
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "S3CRET");
        // What it led to is gone: the link is replaced.
        std::fs::remove_file(&target).unwrap();
        lock.write(&Silent).unwrap();
        assert!(!path.is_symlink() && !target.exists());
    }

    #[test]
    fn a_file_in_another_encoding_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(LOCK_FILE), b"\xff\xfev").unwrap();
        let error = LockFile::in_folder(folder.path()).unwrap_err();
        let diagnosis = error.diagnosis();
        assert_eq!(diagnosis.code, "file/io");
        assert_eq!(diagnosis.hint.as_deref(), Some(NotUtf8::HINT));
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
                    lock.write(&Silent).unwrap();
                });
            }
        });
        let lock = LockFile::in_folder(folder.path()).unwrap();
        assert_eq!(lock.entries.downloads.len(), 20);
    }

    #[test]
    fn what_is_wrong_is_reported_with_its_line() {
        let download = |sha256: &str, size: u64| {
            format!("version = 1\n[[download]]\nurl = 'a'\nsha256 = '{sha256}'\nsize = {size}")
        };
        let image = "version = 1\n[[image]]\nname = 'a'\nbuild = 1\nsha256 = 'ab'";
        for (text, line, printed) in [
            ("", 1, "version"),
            ("version = 2", 1, "version 2"),
            ("version = 1\n\nother = 3", 3, "unknown field"),
            (&download("xyz", 1), 4, "expected 64"),
            (image, 5, "expected 64"),
            ("version = 1\n<<<<<<< ours", 2, ""),
            (&download(&"0".repeat(64), u64::MAX), 4, "invalid size"),
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
            let images = BTreeMap::from([((url.clone(), 17763), entry.digest.clone())]);
            let entries = Entries { downloads: BTreeMap::from([(url, entry)]), images };
            prop_assert_eq!(parse(&text(&entries)).unwrap(), entries);
        }
    }
}
