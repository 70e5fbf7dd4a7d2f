//! Downloads of plans: their pins and their bytes.
//!
//! A file is pinned by a digest next to its URL, or by an entry of `wincimg.lock`, and so is an image
//! with files of a recipe. A build accepts no other, unless it writes that file.

mod lock_file;

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};
pub use lock_file::{LockChanges, LockFile, LockedDownload};
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::digest::Digest;
use wincimg_common::progress::Progress;
use wincimg_common::untrusted::public_url;
use wincimg_http::{
    DownloadError, DownloadedFile, Downloads, HttpClient, Remote, download_url, redacted,
};
use wincimg_recipe::{DownloadRequest, DownloadRequests, PlannedDownload};
use wincimg_windows::compat::HostBuild;

/// Number of concurrent downloads.
const PARALLEL: usize = 4;

/// Mode of downloads and the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Contacts no server: files that are not cached are missing.
    Offline,
    /// Downloads pinned files.
    Pinned,
    /// Downloads files without a pin too, and locks them.
    Noting,
}

/// The downloads of a build.
pub struct DownloadSet {
    mode: LockMode,
    store: Downloads,
    /// The lock file; none without a folder.
    lock: Option<LockFile>,
    /// The command that updates the lock file.
    again: String,
    here: BTreeMap<String, DownloadedFile>,
}

impl DownloadSet {
    /// Downloads in a store, pinned by a lock file; `again` is the command that updates it.
    pub fn new(mode: LockMode, store: Downloads, lock: Option<LockFile>, again: String) -> Self {
        Self {
            mode,
            store,
            lock,
            again,
            here: BTreeMap::new(),
        }
    }

    /// The expected digest of a file, if it is pinned.
    fn pin(&self, url: &str, want: &DownloadRequest) -> Option<Digest> {
        if let Some(digest) = want.digests.first() {
            return Some(digest.clone());
        }
        if self.is_noting() {
            return None;
        }
        self.locked(url).map(|locked| locked.digest.clone())
    }

    /// Returns true if no server is contacted, as nothing is built.
    pub(crate) fn is_offline(&self) -> bool {
        self.mode == LockMode::Offline
    }

    /// Returns true if files without a pin are downloaded and locked.
    pub(crate) fn is_noting(&self) -> bool {
        self.mode == LockMode::Noting && self.lock.is_some()
    }

    fn locked(&self, url: &str) -> Option<&LockedDownload> {
        self.lock.as_ref()?.get(url)
    }

    /// The pinned digest of an image for a host, with files of a recipe.
    pub(crate) fn image_digest(&self, name: &str, host: HostBuild) -> Option<&Digest> {
        let lock = self.lock.as_ref()?;
        lock.image(name, host.version.build, self.is_noting())
    }

    pub(crate) fn insert_image(&mut self, name: &str, host: HostBuild, digest: Digest) {
        if let (Some(lock), LockMode::Noting) = (&mut self.lock, self.mode) {
            lock.insert_image(name, host.version.build, digest);
        }
    }

    /// Rejects an image without a pin, unless nothing is built or the lock file is written.
    pub(crate) fn check_image(&self, name: &str, place: &str) -> Result<(), BoxError> {
        if self.is_noting() || self.is_offline() {
            return Ok(());
        }
        Err(self.not_pinned_error(place, name, &format!("add its digest: {name}@sha256:…")))
    }

    /// Error for a file or an image that is not the pinned one.
    pub(crate) fn changed_error(&self, name: &str, found: &Digest, pin: &Digest) -> BoxError {
        let lock = self.lock_name();
        let problem = format!("{name} has changed: found {found}, {lock} expects {pin}");
        Problem::new("download/changed", problem)
            .hint(format!("if the change is intended: {}", self.again))
            .into()
    }

    fn not_pinned_error(&self, place: &str, names: &str, without_lock: &str) -> BoxError {
        let hint = match &self.lock {
            Some(_) => &self.again,
            None => without_lock,
        };
        let problem = format!("{place}: no digest pins {names}");
        Problem::request("download/not-pinned", problem)
            .hint(hint)
            .into()
    }

    /// URLs without a pin.
    pub(crate) fn not_pinned<'w>(&self, wants: &'w DownloadRequests) -> Vec<&'w str> {
        let wants = wants.iter();
        let open = wants.filter(|(url, want)| {
            want.digests.is_empty() && self.locked(url).is_none() && !self.here.contains_key(*url)
        });
        open.map(|(url, _)| url.as_str()).collect()
    }

    /// Rejects files without a pin that would be downloaded.
    pub fn check(&self, wants: &DownloadRequests) -> Result<(), BoxError> {
        if self.is_noting() || self.is_offline() {
            return Ok(());
        }
        let open = self.not_pinned(wants);
        let Some((first, others)) = open.split_first() else {
            return Ok(());
        };
        let place = &wants[*first].place;
        let others: Vec<String> = others.iter().map(|url| public_url(url)).collect();
        let nor = match others.as_slice() {
            [] => String::new(),
            others => format!(" or {}", others.join(", ")),
        };
        let names = format!("{}{nor}", public_url(first));
        Err(self.not_pinned_error(place, &names, "add its sha256 next to its url"))
    }

    /// Files that are not cached.
    pub fn missing(&self, mut wants: DownloadRequests) -> DownloadRequests {
        wants.retain(|url, _| !self.here.contains_key(url));
        wants
    }

    /// Downloads all missing files concurrently, and returns true if there was one.
    pub async fn fetch(
        &mut self,
        wants: &DownloadRequests,
        http: &HttpClient,
    ) -> Result<bool, BoxError> {
        self.check(wants)?;
        let before = self.here.len();
        let lacking = wants
            .iter()
            .filter(|(url, _)| !self.here.contains_key(*url));
        let coming = stream::iter(lacking)
            .map(|(url, want)| self.fetch_one(url, want, http))
            .buffer_unordered(PARALLEL);
        let came: Vec<(String, Option<DownloadedFile>)> = coming.try_collect().await?;
        for (url, downloaded) in came {
            let Some(downloaded) = downloaded else {
                continue;
            };
            let is_noted = self.mode == LockMode::Noting && wants[&url].digests.is_empty();
            if let (Some(lock), true) = (&mut self.lock, is_noted) {
                let locked = LockedDownload {
                    digest: downloaded.digest.clone(),
                    size: downloaded.size,
                };
                lock.insert(&url, locked);
            }
            self.here.insert(url, downloaded);
        }
        Ok(self.here.len() > before)
    }

    async fn fetch_one(
        &self,
        url: &str,
        want: &DownloadRequest,
        http: &HttpClient,
    ) -> Result<(String, Option<DownloadedFile>), BoxError> {
        let pin = self.pin(url, want);
        if self.is_offline() {
            let found = match &pin {
                Some(digest) => self.store.find(digest).await,
                None => None,
            };
            return Ok((url.to_owned(), found));
        }
        let Ok(parsed) = download_url(url) else {
            unreachable!("a wanted file has a valid URL");
        };
        let locked = self
            .locked(url)
            .filter(|it| pin.as_ref() == Some(&it.digest));
        let remote = Remote {
            url: parsed,
            limit: locked.map(|locked| locked.size),
            digest: pin,
            follows: want.follows,
            name: want.name.clone(),
        };
        match self.store.get_or_fetch(http, &remote).await {
            Ok(downloaded) => {
                let digests = want.digests.iter();
                let other = digests
                    .filter(|digest| digest.algorithm() == downloaded.digest.algorithm())
                    .find(|digest| **digest != downloaded.digest);
                match other {
                    None => Ok((url.to_owned(), Some(downloaded))),
                    Some(expected) => Err(DownloadError::Digest {
                        url: redacted(&remote.url),
                        found: downloaded.digest.into(),
                        expected: expected.clone().into(),
                    }
                    .into()),
                }
            }
            Err(DownloadError::Digest {
                found, expected, ..
            }) if want.digests.is_empty() => {
                Err(self.changed_error(&redacted(&remote.url), &found, &expected))
            }
            Err(error @ DownloadError::TooLarge { .. })
                if want.digests.is_empty() && remote.limit.is_some() =>
            {
                Err(Problem::from_diagnosed(error)
                    .hint(format!("if the change is intended: {}", self.again))
                    .into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn lock_name(&self) -> String {
        let lock = self.lock.as_ref();
        lock.map_or_else(String::new, |lock| lock.path.display().to_string())
    }

    /// The cached files by URL.
    pub fn files(&self) -> &BTreeMap<String, DownloadedFile> {
        &self.here
    }

    /// Sets digest and size of a plan's file, as far as they are known.
    pub fn resolve(&self, download: &mut PlannedDownload) {
        if let Some(here) = self.here.get(&download.url) {
            download.set_content(here.digest.clone(), here.size, here.content.clone());
            return;
        }
        if let Some(locked) = self.locked(&download.url) {
            let digest = download.digest.get_or_insert_with(|| locked.digest.clone());
            download.size = (*digest == locked.digest).then_some(locked.size);
        }
    }

    /// Writes the lock file, and returns its path and changes.
    pub(crate) fn write_lock(
        &mut self,
        progress: &dyn Progress,
    ) -> Result<Option<(String, LockChanges)>, BoxError> {
        let name = self.lock_name();
        match &mut self.lock {
            Some(lock) if self.mode == LockMode::Noting => Ok(Some((name, lock.write(progress)?))),
            _ => Ok(None),
        }
    }
}
