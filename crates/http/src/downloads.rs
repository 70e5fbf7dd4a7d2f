//! Downloaded files, cached by digest; complete files are not requested again.
//!
//! A file is downloaded under its digest, or under its URL if the digest is unknown, and an
//! interrupted download resumes. Processes that need the same file wait for each other. Cached
//! files are verified before each use.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::Url;
use tokio::task::spawn_blocking;
use wincimg_common::diagnose::{Diagnose, Problem, error_chain};
use wincimg_common::digest::{Digest, Hasher, sha256};
use wincimg_common::files::{CacheFileUse, FileCache, SpoolPart, TemporaryFolder};
use wincimg_common::lock;
use wincimg_common::progress::Progress;

use super::addresses::AddressPolicy;
use super::client::HttpClient;
use super::error::file_error;
use super::exchange::RedirectPolicy;
use super::partial_file::PartialFile;
use super::transfer::{ProgressLine, Transfer, TransferError};
use super::urls::{host_of, name_in, redacted};

/// The cache of downloads, or a temporary folder.
#[derive(Debug, Clone)]
pub struct Downloads {
    kept: Option<FileCache>,
    /// True if the user named the cache: a failure is an error.
    is_named: bool,
    /// True once the cache failed.
    is_given_up: Arc<AtomicBool>,
    /// In place of a cache, until the end of the run.
    temporary: Arc<Mutex<Option<TemporaryFolder>>>,
}

/// A file on a server.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its location.
    pub url: Url,
    /// The expected digest; any content is accepted without one.
    pub digest: Option<Digest>,
    /// Its maximum size, if known.
    pub limit: Option<u64>,
    /// True to follow redirects.
    pub follows: bool,
    /// The name of the finished file.
    pub name: String,
}

/// A downloaded and verified file.
#[derive(Debug, Clone)]
pub struct DownloadedFile {
    /// Its digest, with the requested algorithm.
    pub digest: Digest,
    /// Its size.
    pub size: u64,
    /// Its content, readable until the program ends.
    pub content: SpoolPart,
}

/// Error of a download.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "download/changed")]
pub enum DownloadError {
    /// The file has the wrong digest.
    #[error("{url} has digest {found}: expected {expected}")]
    Digest {
        /// Its location.
        url: String,
        /// The actual digest.
        found: Box<Digest>,
        /// The expected value.
        expected: Box<Digest>,
    },
    /// The file is larger than allowed.
    #[error("{url} has more than {limit} bytes")]
    TooLarge {
        /// Its location.
        url: String,
        /// The maximum size.
        limit: u64,
    },
    /// The file cannot be stored.
    #[error("cannot store the download of {url}")]
    #[diagnose(code = "file/io", hint = Some(OTHER_FOLDER.to_owned()))]
    Disk {
        /// Its location.
        url: String,
        /// The cause.
        source: Problem,
    },
    /// Other errors.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

/// Prefix of temporary folders.
const TEMPORARY: &str = "wincimg-downloads-";

/// Hint if the folder is of no use.
const OTHER_FOLDER: &str = "name a folder with --cache-dir DIR";

/// File extensions for which a web page is never the wanted content.
const NO_PAGES: [&str; 30] = [
    "7z", "appx", "bz2", "cab", "cer", "crt", "dll", "exe", "gz", "iso", "jar", "json", "msi",
    "msix", "msp", "msu", "nupkg", "pem", "ps1", "tar", "tgz", "txz", "vsix", "war", "whl", "xz",
    "zip", "zst", "zstd", "sha256",
];

/// Bytes of a file that are checked for a web page.
const START: u64 = 512;

impl Remote {
    /// Returns true if the file may be a web page.
    fn takes_pages(&self) -> bool {
        let of_url = name_in(&self.url);
        let names = [Some(&self.name), of_url.as_ref()].into_iter().flatten();
        !names
            .filter_map(|name| name.rsplit_once('.'))
            .any(|(_, end)| NO_PAGES.iter().any(|known| end.eq_ignore_ascii_case(known)))
    }

    fn failed(&self, error: TransferError) -> DownloadError {
        let url = redacted(&self.url);
        let problem = match error {
            TransferError::Http(source) => {
                Problem::context(format!("cannot download {url}"), source)
            }
            TransferError::File(source) => return DownloadError::Disk { url, source },
            TransferError::Size { found, expected } => {
                let host = host_of(&self.url);
                let problem = format!("{url} has {found} bytes on {host}: expected {expected}");
                Problem::new("download/changed", problem)
            }
            TransferError::TooLarge(limit) => return DownloadError::TooLarge { url, limit },
            TransferError::Page(kind) => {
                let name = &self.name;
                let problem =
                    format!("the server sent a web page ({kind}) instead of {name}: {url}");
                Problem::new("download/page", problem).hint(
                    "open the URL in a browser: it may require a login or a click, have moved, or be blocked by a proxy",
                )
            }
        };
        problem.into()
    }

    fn disk(&self, error: Problem) -> DownloadError {
        self.failed(error.into())
    }
}

impl Downloads {
    /// Uses the folder of a cache. Without a cache, or after one that the user did not name failed,
    /// downloads go to a temporary folder of this user alone.
    pub fn new(kept: Option<FileCache>, is_named: bool) -> Self {
        Self {
            kept,
            is_named,
            is_given_up: Arc::default(),
            temporary: Arc::default(),
        }
    }

    /// A folder from which a cache without a size removes every file at once.
    fn temporary_folder(&self) -> Result<FileCache, Problem> {
        let mut temporary = lock(&self.temporary);
        let folder = match temporary.take() {
            Some(folder) => folder,
            None => TemporaryFolder::new(TEMPORARY)
                .map_err(file_error("create", &std::env::temp_dir()))?,
        };
        let cache = FileCache::new(folder.path().to_owned(), 0);
        *temporary = Some(folder);
        Ok(cache)
    }

    /// Returns a cached file by its digest.
    pub async fn find(&self, digest: &Digest) -> Option<DownloadedFile> {
        let kept = self.kept.clone().filter(|kept| kept.limit() > 0)?;
        let digest = digest.clone();
        let found = spawn_blocking(move || {
            let path = path_of(&kept, &digest);
            let file = FileCache::open(&path).ok()?;
            match checked(&file, &path, &digest) {
                Ok(Some(found)) => Some(found),
                // A later run would reject it too.
                Ok(None) => {
                    FileCache::remove(&path);
                    None
                }
                Err(error) => {
                    tracing::debug!(%error, file = %path.display(), "not of use");
                    None
                }
            }
        });
        found.await.ok().flatten()
    }

    /// Returns a file from the cache or downloads it.
    pub async fn get_or_fetch(
        &self,
        http: &HttpClient,
        remote: &Remote,
    ) -> Result<DownloadedFile, DownloadError> {
        if let Some(digest) = &remote.digest
            && let Some(found) = self.find(digest).await
        {
            return Ok(found);
        }
        let kept = self.kept.as_ref();
        let kept = kept.filter(|_| !self.is_given_up.load(Ordering::Relaxed));
        if let Some(kept) = kept {
            match self.fetch_into(kept, http, remote).await {
                Err(DownloadError::Disk { source, .. }) if !self.is_named => {
                    self.give_up(&source, http.progress());
                }
                done => return done,
            }
        }
        let temporary = self.temporary_folder();
        let temporary = temporary.map_err(|error| remote.disk(error))?;
        self.fetch_into(&temporary, http, remote).await
    }

    /// Does without the cache from now on.
    fn give_up(&self, why: &Problem, progress: &dyn Progress) {
        if !self.is_given_up.swap(true, Ordering::Relaxed) {
            let why = error_chain(why);
            progress.warn(&format!("the cache is not used: {why}; {OTHER_FOLDER}"));
        }
    }

    async fn fetch_into(
        &self,
        kept: &FileCache,
        http: &HttpClient,
        remote: &Remote,
    ) -> Result<DownloadedFile, DownloadError> {
        let created = kept.create_dir();
        let created = created.map_err(file_error("create", kept.folder()));
        created.map_err(|error| remote.disk(error))?;
        let target = match &remote.digest {
            Some(digest) => path_of(kept, digest),
            None => kept.folder().join(format!(
                "url-{}",
                sha256(remote.url.as_str().as_bytes()).digest()
            )),
        };
        let expected = remote.digest.as_ref();
        let opened = PartialFile::open(http, &target, expected).await;
        let mut part = opened.map_err(|error| remote.failed(error))?;
        // Another process may have finished first.
        if let Some(digest) = expected
            && let Some(found) = self.find(digest).await
        {
            part.discard().map_err(|error| remote.disk(error))?;
            return Ok(found);
        }
        if expected.is_none() && part.was_resumed() && !part.is_recognized() {
            part.restart().map_err(|error| remote.disk(error))?;
        }
        self.fetch(http, remote, &mut part).await?;
        self.keep(kept, remote, part, &target).await
    }

    async fn fetch(
        &self,
        http: &HttpClient,
        remote: &Remote,
        part: &mut PartialFile,
    ) -> Result<(), DownloadError> {
        let line = ProgressLine::new(http.progress(), &remote.name);
        let transfer = Transfer {
            http,
            url: &remote.url,
            digest: remote.digest.as_ref(),
            size: None,
            limit: remote.limit,
            redirects: if remote.follows {
                RedirectPolicy::Anywhere
            } else {
                RedirectPolicy::Nowhere
            },
            addresses: AddressPolicy::OtherMachines,
            takes_pages: remote.takes_pages(),
            line: &line,
        };
        let done = transfer.run(part).await;
        done.map_err(|error| remote.failed(error))?;
        line.done("downloaded");
        Ok(())
    }

    /// Renames a complete file after verification.
    async fn keep(
        &self,
        kept: &FileCache,
        remote: &Remote,
        part: PartialFile,
        target: &Path,
    ) -> Result<DownloadedFile, DownloadError> {
        let found = part.digest();
        let is_page = !remote.takes_pages() && is_page(part.path());
        let wrong = remote.digest.as_ref().filter(|it| **it != found);
        if is_page || wrong.is_some() {
            part.discard().map_err(|error| remote.disk(error))?;
            return Err(match wrong {
                Some(expected) if !is_page => DownloadError::Digest {
                    url: redacted(&remote.url),
                    found: found.into(),
                    expected: expected.clone().into(),
                },
                _ => remote.failed(TransferError::Page("text/html".to_owned())),
            });
        }
        // Once it has its name, another download may evict it.
        let opened = File::open(part.path()).map_err(file_error("open", part.path()));
        let opened = opened.map_err(|error| remote.disk(error))?;
        part.commit().await.map_err(|error| remote.disk(error))?;
        let (kept, target) = (kept.clone(), target.to_owned());
        let named = spawn_blocking(move || {
            let path = path_of(&kept, &found);
            match fs::rename(&target, &path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error("rename", &target)(error));
                }
                _ => {}
            }
            let content = SpoolPart::from_file(opened, &path).map_err(file_error("open", &path))?;
            kept.evict(&path, |_, _| CacheFileUse::Counted, remove_if_unlocked);
            Ok(DownloadedFile {
                digest: found,
                size: content.length(),
                content,
            })
        });
        let named = named.await;
        let named = named
            .map_err(|error| file_error("keep", Path::new(&remote.name))(io::Error::other(error)));
        named.flatten().map_err(|error| remote.disk(error))
    }
}

fn path_of(kept: &FileCache, digest: &Digest) -> PathBuf {
    let name = format!("{}-{}", digest.algorithm(), digest.digest());
    kept.folder().join(name)
}

/// Returns a cached file if its digest matches.
fn checked(mut file: &File, path: &Path, digest: &Digest) -> io::Result<Option<DownloadedFile>> {
    let Some(mut hasher) = Hasher::matching(digest) else {
        return Ok(None);
    };
    let size = hasher.read_all(&mut file)?;
    if hasher.finish() != *digest {
        return Ok(None);
    }
    Ok(Some(DownloadedFile {
        digest: digest.clone(),
        size,
        content: SpoolPart::from_file(file.try_clone()?, path)?,
    }))
}

/// Returns true if a file begins like a web page, whatever its media type.
fn is_page(path: &Path) -> bool {
    let mut start = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let begins = |with: &str| {
        let start = text.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    opened.is_ok() && (begins("<!doctype html") || begins("<html"))
}

/// Removes a file to free space, unless another process is writing it.
fn remove_if_unlocked(path: &Path) {
    match path.extension().and_then(|end| end.to_str()) {
        // Removed with its download.
        Some("json") => {
            if !path.with_extension("").exists() {
                FileCache::remove(path);
            }
        }
        Some("part") => {
            let opened = File::options().write(true).open(path);
            let is_free = opened.is_ok_and(|file| match file.try_lock() {
                Ok(()) => {
                    FileCache::remove(&path.with_added_extension("json"));
                    FileCache::remove(path);
                    true
                }
                Err(_) => false,
            });
            tracing::debug!(is_free, file = %path.display(), "removed a partial download");
        }
        _ => FileCache::remove(path),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn remote(url: &str, name: &str) -> Remote {
        Remote {
            url: url.parse().unwrap(),
            digest: None,
            limit: None,
            follows: true,
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_page_is_taken_only_where_it_may_be_wanted() {
        for (url, name, takes) in [
            ("https://repo.lan/index.html", "index.html", true),
            ("https://repo.lan/notes", "notes", true),
            ("https://repo.lan/tool.ZIP?x=1", "tool", false),
            ("https://repo.lan/fwlink/?id=7", "setup.exe", false),
        ] {
            assert_eq!(remote(url, name).takes_pages(), takes, "{url} as {name}");
        }
    }

    #[test]
    fn without_a_cache_the_folder_lasts_as_long_as_the_downloads() {
        let downloads = Downloads::new(None, false);
        let path = downloads.temporary_folder().unwrap().folder().to_owned();
        let again = downloads.clone().temporary_folder().unwrap();
        assert_eq!((again.folder(), again.limit()), (path.as_path(), 0));
        assert!(path.is_dir());
        drop(downloads);
        assert!(!path.exists());
    }

    #[test]
    fn the_least_used_goes_first_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let kept = FileCache::new(folder.path().to_owned(), 10);
        let named = |name: &str| name.replace('-', &format!("-{}", "0".repeat(63)));
        let put = |name: &str, hours: u64| {
            let path = folder.path().join(named(name));
            fs::write(&path, "12345").unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            let used = SystemTime::now() - Duration::from_hours(hours);
            file.set_modified(used).unwrap();
            path
        };
        let newest = put("sha256-a", 0);
        put("sha256-b", 1);
        put("sha256-c", 2);
        put("sha256-d.part", 3);
        put("sha256-d.part.json", 3);
        let busy = File::open(put("url-e.part", 4)).unwrap();
        busy.try_lock().unwrap();
        put("url-e.part.json", 4);
        kept.evict(&newest, |_, _| CacheFileUse::Counted, remove_if_unlocked);
        let left = fs::read_dir(folder.path()).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut left: Vec<String> = left.collect();
        left.sort();
        let expected = ["sha256-a", "sha256-b", "url-e.part", "url-e.part.json"];
        assert_eq!(left, expected.map(named));
    }
}
