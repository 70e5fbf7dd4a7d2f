//! Cache of facts about bases: a file for each base.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use wincimg_common::files::{self, CacheFileUse, FileCache};
use wincimg_oci::document::{Digest, sha256};

use crate::base::FORMAT;
use crate::layer_diff;

/// Time for which the absence of facts in a repository is remembered.
const ABSENCE_LIFETIME: Duration = Duration::from_hours(1);
/// Time for which it is remembered that a base cannot be read: another version of this program may
/// read more in the same format.
const UNREADABLE_LIFETIME: Duration = Duration::from_hours(30 * 24);
/// Limit on the reason for that.
const LONGEST_REASON: u64 = 64 << 10;

/// A kind of files, and its format: versions of this program with another one share the folder.
type Kind = (&'static str, u32);
const FACTS: Kind = ("facts", FORMAT);
const ABSENCE: Kind = ("none", 1);
const UNREADABLE: Kind = ("unreadable", FORMAT);
const LAYER: Kind = ("layer", layer_diff::FORMAT);

/// A folder of facts about bases.
#[derive(Debug, Clone)]
pub struct FactsCache(FileCache);

/// Origin of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheNamespace<'a> {
    /// Layers that this program read.
    Layers,
    /// A repository, `HOST/NAME`; the facts are not used for bases of other repositories, even with
    /// the same digest.
    Repository(&'a str),
    /// A repository whose layers were read in part, so that their digests were not checked.
    Part(&'a str),
}

impl<'a> CacheNamespace<'a> {
    /// Namespaces of complete facts about a base in a repository, the best first.
    pub(super) fn complete_namespaces(repository: &'a str) -> [Self; 2] {
        [Self::Layers, Self::Repository(repository)]
    }
}

impl FactsCache {
    /// Facts in `folder`, which may not exist yet, with no more than `limit` bytes in total.
    pub fn new(folder: PathBuf, limit: u64) -> Self {
        Self(FileCache::new(folder, limit))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// The file of facts about a base, which is marked as used.
    pub fn find(&self, base: &Digest, origin: CacheNamespace<'_>) -> Option<PathBuf> {
        self.find_of_kind(base, origin, FACTS)
    }

    fn find_of_kind(&self, of: &Digest, origin: CacheNamespace<'_>, kind: Kind) -> Option<PathBuf> {
        let path = self.path(of, origin, kind);
        FileCache::open(&path).ok()?;
        Some(path)
    }

    /// Stores facts about a base. Facts that do not fit are not stored.
    pub fn store(&self, base: &Digest, origin: CacheNamespace<'_>, bytes: &[u8]) -> io::Result<()> {
        self.write(&self.path(base, origin, FACTS), bytes)?;
        if let CacheNamespace::Repository(_) = origin {
            self.remove(&self.path(base, origin, ABSENCE));
        }
        Ok(())
    }

    /// The file of a layer's diff, which is marked as used.
    pub(super) fn find_layer(&self, layer: &Digest) -> Option<PathBuf> {
        self.find_of_kind(layer, CacheNamespace::Layers, LAYER)
    }

    /// Stores a layer's diff, whose bytes were checked. One that does not fit is not stored.
    pub(super) fn store_layer(&self, layer: &Digest, bytes: &[u8]) -> io::Result<()> {
        self.write(&self.path(layer, CacheNamespace::Layers, LAYER), bytes)
    }

    /// Records for a while that a repository has no facts about a base.
    pub(crate) fn store_absence(&self, base: &Digest, repository: &str) -> io::Result<()> {
        let path = self.path(base, CacheNamespace::Repository(repository), ABSENCE);
        self.write(&path, &[])
    }

    /// Returns true if a repository had no facts a short while ago.
    pub(crate) fn is_known_absent(&self, base: &Digest, repository: &str) -> bool {
        let path = self.path(base, CacheNamespace::Repository(repository), ABSENCE);
        is_recent(&path, ABSENCE_LIFETIME)
    }

    /// Records why a base cannot be read, although its bytes were checked; without a reason, it is
    /// none.
    pub(super) fn store_unreadable(&self, base: &Digest, reason: &str) -> io::Result<()> {
        let path = self.path(base, CacheNamespace::Layers, UNREADABLE);
        self.write(&path, reason.as_bytes())
    }

    /// Returns why a base could not be read, if that is known.
    pub(super) fn find_unreadable(&self, base: &Digest) -> Option<String> {
        let path = self.path(base, CacheNamespace::Layers, UNREADABLE);
        let reason = || files::read_text(&path, LONGEST_REASON).ok();
        is_recent(&path, UNREADABLE_LIFETIME).then(reason)?
    }

    /// Returns true if the cache knows a repository's answer about a base.
    pub(super) fn has_answer(&self, base: &Digest, repository: &str) -> bool {
        let mut origins = CacheNamespace::complete_namespaces(repository).into_iter();
        origins.any(|origin| self.find(base, origin).is_some())
            || self.is_known_absent(base, repository)
    }

    /// Removes a useless file. On Windows, one that is in use stays.
    pub fn remove(&self, path: &Path) {
        FileCache::remove(path);
    }

    fn path(&self, base: &Digest, origin: CacheNamespace<'_>, (kind, format): Kind) -> PathBuf {
        let (algorithm, hash) = (base.algorithm(), base.digest());
        let named = |name: &str| {
            let name = sha256(name.as_bytes());
            format!("{}.", name.digest().get(..16).unwrap_or_default())
        };
        let whose = match origin {
            CacheNamespace::Layers => String::new(),
            CacheNamespace::Repository(name) => named(name),
            CacheNamespace::Part(name) => format!("part.{}", named(name)),
        };
        self.folder()
            .join(format!("{algorithm}-{hash}.{whose}{kind}{format}"))
    }

    /// Writes a file that fits, and frees space for it; expired absences are removed too.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let limit = self.0.limit();
        if limit == 0 || bytes.len() as u64 > limit {
            return Ok(());
        }
        self.0.write(path, bytes)?;
        let is_named = |path: &Path, (kind, _): Kind| {
            let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
            end.trim_end_matches(|c: char| c.is_ascii_digit()) == kind
        };
        let use_of = |path: &Path, seen| {
            let is_expired = |kind, holds| is_named(path, kind) && is_old(seen, holds);
            if is_named(path, FACTS) || is_named(path, LAYER) {
                CacheFileUse::Counted
            } else if is_expired(ABSENCE, ABSENCE_LIFETIME)
                || is_expired(UNREADABLE, UNREADABLE_LIFETIME)
            {
                CacheFileUse::Expired
            } else {
                CacheFileUse::Uncounted
            }
        };
        self.0.evict(path, use_of, |path| self.remove(path));
        Ok(())
    }
}

fn is_recent(path: &Path, holds: Duration) -> bool {
    let seen = fs::metadata(path).and_then(|found| found.modified());
    seen.is_ok_and(|seen| !is_old(seen, holds))
}

/// A time in the future comes from a wrong clock.
fn is_old(seen: SystemTime, holds: Duration) -> bool {
    seen.elapsed().is_ok_and(|age| age > holds) || seen > SystemTime::now() + holds
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const LAYERS: CacheNamespace<'_> = CacheNamespace::Layers;

    fn age(path: &Path, by: Duration) {
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    fn read(cache: &FactsCache, base: &Digest, origin: CacheNamespace<'_>) -> Option<Vec<u8>> {
        cache.find(base, origin).map(|path| fs::read(path).unwrap())
    }

    #[test]
    fn what_is_kept_is_found_by_the_base_and_by_who_said_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::new(folder.path().join("deep/bases"), 100);
        let (one, two) = (sha256(b"one"), sha256(b"two"));
        assert_eq!(cache.find(&one, LAYERS), None);
        let mirror = CacheNamespace::Repository("repo.lan/nanoserver");
        cache.store(&one, LAYERS, b"own").unwrap();
        cache.store(&one, mirror, b"theirs").unwrap();
        assert_eq!(read(&cache, &one, LAYERS).unwrap(), b"own");
        assert_eq!(read(&cache, &one, mirror).unwrap(), b"theirs");
        let other = CacheNamespace::Repository("repo.lan/a");
        assert_eq!(cache.find(&one, other), None);
        assert_eq!(cache.find(&two, LAYERS), None);
        cache.store(&one, LAYERS, b"new").unwrap();
        assert_eq!(read(&cache, &one, LAYERS).unwrap(), b"new");
    }

    #[test]
    fn the_least_used_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::new(folder.path().to_owned(), 10);
        let bases: Vec<Digest> = (0..4_u8).map(|number| sha256(&[number])).collect();
        for (base, hours) in bases[..3].iter().zip(1..) {
            cache.store(base, LAYERS, b"abc").unwrap();
            let path = cache.path(base, LAYERS, FACTS);
            age(&path, Duration::from_hours(hours));
        }
        // The oldest is used again, so that the middle one is the least recently used.
        assert!(cache.find(&bases[2], LAYERS).is_some());
        cache.store(&bases[3], LAYERS, b"abc").unwrap();
        let kept = bases.iter().map(|base| cache.find(base, LAYERS).is_some());
        let kept: Vec<bool> = kept.collect();
        assert_eq!(kept, [true, false, true, true]);
        cache.store(&bases[1], LAYERS, &[0; 11]).unwrap();
        assert_eq!(cache.find(&bases[1], LAYERS), None);
    }

    #[test]
    fn that_there_are_none_counts_for_an_hour_or_until_there_are_some() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::new(folder.path().to_owned(), 100);
        let (base, name) = (sha256(b"base"), "repo.lan/nanoserver");
        let origin = CacheNamespace::Repository(name);
        cache.store_absence(&base, name).unwrap();
        assert!(cache.is_known_absent(&base, name));
        assert!(!cache.is_known_absent(&base, "repo.lan/other"));
        let path = cache.path(&base, origin, ABSENCE);
        age(&path, Duration::from_mins(61));
        assert!(!cache.is_known_absent(&base, name));
        // The clock was put back.
        let file = File::options().append(true).open(&path).unwrap();
        let later = SystemTime::now() + Duration::from_hours(2);
        file.set_modified(later).unwrap();
        assert!(!cache.is_known_absent(&base, name));
        cache.store(&sha256(b"other"), origin, b"abc").unwrap();
        assert!(!path.exists());
        cache.store_absence(&base, name).unwrap();
        cache.store(&base, origin, b"abc").unwrap();
        assert!(!cache.is_known_absent(&base, name));
    }

    #[test]
    fn what_cannot_be_read_counts_for_its_format_and_a_month() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::new(folder.path().to_owned(), 100);
        let base = sha256(b"base");
        let other = cache.path(&base, LAYERS, ("unreadable", FORMAT + 1));
        fs::write(&other, "another reader's").unwrap();
        assert_eq!(cache.find_unreadable(&base), None);
        cache.store_unreadable(&base, "why").unwrap();
        assert_eq!(cache.find_unreadable(&base).as_deref(), Some("why"));
        assert_eq!(cache.find_unreadable(&sha256(b"other")), None);
        let path = cache.path(&base, LAYERS, UNREADABLE);
        age(&path, Duration::from_hours(31 * 24));
        assert_eq!(cache.find_unreadable(&base), None);
        cache.store(&base, LAYERS, b"abc").unwrap();
        assert!(!path.exists() && other.exists());
        let none = FactsCache::new(folder.path().to_owned(), 0);
        none.store_unreadable(&base, "why").unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_another_version_kept_stays_and_goes_by_its_age() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::new(folder.path().to_owned(), 6);
        let base = sha256(b"base");
        let other = cache.path(&base, LAYERS, ("facts", FORMAT + 1));
        fs::write(&other, b"abc").unwrap();
        age(&other, Duration::from_hours(1));
        assert_eq!(cache.find(&base, LAYERS), None);
        cache.store(&base, LAYERS, b"own").unwrap();
        assert!(other.exists());
        cache.store(&sha256(b"two"), LAYERS, b"own").unwrap();
        assert!(!other.exists());
        assert!(cache.find(&base, LAYERS).is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_has_a_name_of_ours_and_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FactsCache::new(folder.path().to_owned(), 1);
        let base = sha256(b"base");
        let path = cache.path(&base, LAYERS, FACTS);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(cache.find(&base, LAYERS), None);
        cache.store(&sha256(b"other"), LAYERS, b"a").unwrap();
        assert!(path.exists());
    }
}
