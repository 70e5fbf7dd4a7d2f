//! Options of the cache: its folder and its size.

use std::env;
#[cfg(unix)]
use std::fs;

use wincimg_common::files::{FileCache, create_private_folder};
use wincimg_http::Downloads;
use wincimg_inspect::facts_provider::{BaseFactsProvider, FactsCache};
use wincimg_layer::DiffIdCache;

use crate::cli::prelude::*;

/// Size limit for cached documents, which have a few thousand bytes each.
const MOST_DOCUMENTS: u64 = 8 << 20;

/// Options of the cache.
#[derive(Debug, Clone, Args)]
pub(super) struct CacheArgs {
    /// Cache folder [default: wincimg in the user's cache folder, such as ~/.cache]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    cache_dir: Option<PathBuf>,
    /// Size limit of cached base indexes, and of cached downloads, such as 500M; 0 disables the
    /// cache
    #[arg(
        long,
        global = true,
        value_name = "SIZE",
        default_value = "1G",
        value_parser = read_size, hide_short_help = true)]
    cache_size: u64,
}

impl CacheArgs {
    /// The cache folder; none if the user named none and has none that others cannot change.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let named = self.cache_dir.clone();
        named.or_else(|| default_folder().filter(|folder| !is_open_to_others(folder)))
    }

    /// The cache folder. The default one is created; none if that fails, as in a read-only home.
    fn created_folder(&self) -> Option<PathBuf> {
        let folder = self.folder()?;
        // Who writes to a named one reports the error.
        let is_usable = self.cache_dir.is_some() || create_private_folder(&folder).is_ok();
        is_usable.then_some(folder)
    }

    /// A folder of the cache, unless it is disabled.
    fn part(&self, name: &str) -> Option<PathBuf> {
        let is_enabled = self.cache_size > 0;
        let folder = is_enabled.then(|| self.created_folder()).flatten()?;
        Some(folder.join(name))
    }

    /// The default folder, if it is left alone because other users can change what is in it.
    pub(super) fn ignored_folder(&self) -> Option<PathBuf> {
        let default = default_folder().filter(|folder| is_open_to_others(folder));
        default.filter(|_| self.cache_dir.is_none())
    }

    /// Cache of downloads, which need a folder even if none is kept.
    pub(super) fn downloads(&self) -> Downloads {
        let folder = self.created_folder().map(|folder| folder.join("downloads"));
        let kept = folder.map(|folder| FileCache::new(folder, self.cache_size));
        Downloads::new(kept, self.cache_dir.is_some())
    }

    /// Lets the client cache a registry's small documents.
    pub(super) fn enable_document_cache(&self, registry: &RegistryClient) {
        let limit = self.cache_size.min(MOST_DOCUMENTS);
        if let Some(folder) = self.part("documents") {
            registry.enable_document_cache(FileCache::new(folder, limit));
        }
    }

    /// Cache of the diff IDs of layers.
    pub(super) fn diff_id_cache(&self) -> DiffIdCache {
        let folder = self.part("layers");
        folder.map_or_else(DiffIdCache::default, |folder| {
            DiffIdCache::in_folder(&folder)
        })
    }

    /// Provider of facts about bases.
    pub(super) fn facts_provider(
        &self,
        registry: &RegistryClient,
        progress: &Arc<dyn Progress>,
    ) -> BaseFactsProvider {
        let cache = self
            .part("bases")
            .map(|folder| FactsCache::new(folder, self.cache_size));
        BaseFactsProvider::new(registry.clone(), cache, Arc::clone(progress))
    }
}

fn default_folder() -> Option<PathBuf> {
    Some(users_folder()?.join("wincimg"))
}

/// Returns true if a user other than this one and root can change a folder, its entries, or which
/// folder has its name. Caches are trusted: what is in them is not always verified.
#[cfg(unix)]
fn is_open_to_others(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let user = rustix::process::geteuid().as_raw();
    let of_others = |found: &fs::Metadata| found.mode() & bits_of_others(user, found.gid());
    let is_open = |path: &Path, harmless: u32| {
        fs::metadata(path).is_ok_and(|found| {
            let is_writable = of_others(&found) & 0o022 != 0 && found.mode() & harmless == 0;
            ![0, user].contains(&found.uid()) || is_writable
        })
    };
    // With a umask of 0, every entry is writable; others reach only those of a folder they can enter.
    let can_enter = |found: fs::Metadata| of_others(&found) & 0o011 != 0;
    let is_entered = fs::metadata(folder).is_ok_and(can_enter);
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    is_open(folder, 0)
        || folder.parent().is_some_and(|above| is_open(above, STICKY))
        || is_entered && entries.any(|entry| is_open(&entry.path(), 0))
}

/// The permission bits of a file for others than a user and root. They include those of its group,
/// unless it is the user's own, which has the user's number where the umask lets groups write.
#[cfg(unix)]
fn bits_of_others(user: u32, group: u32) -> u32 {
    if [0, user].contains(&group) {
        0o007
    } else {
        0o077
    }
}

/// A profile's folders are its user's alone.
#[cfg(not(unix))]
fn is_open_to_others(_folder: &Path) -> bool {
    false
}

fn users_folder() -> Option<PathBuf> {
    folder_in("XDG_CACHE_HOME")
        .or_else(|| folder_in("LOCALAPPDATA"))
        .or_else(|| Some(folder_in("HOME")?.join(".cache")))
}

pub(super) fn folder_in(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Parses `500M`, `1G` or a number of bytes.
pub(super) fn read_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => Some(0),
        "K" | "KB" | "KIB" => Some(10),
        "M" | "MB" | "MIB" => Some(20),
        "G" | "GB" | "GIB" => Some(30),
        "T" | "TB" | "TIB" => Some(40),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let size = number
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(1 << unit));
    size.ok_or_else(|| format!("invalid size {text:?}: expected 500M or 2G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_size_there_is_no_cache() {
        let of_size = |cache_size| CacheArgs {
            cache_dir: Some("c".into()),
            cache_size,
        };
        assert_eq!(of_size(1).part("bases").unwrap(), Path::new("c/bases"));
        assert_eq!(of_size(0).part("bases"), None);
        // The tables of updates are not a cache.
        assert!(of_size(0).folder().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_group_is_others_unless_it_is_the_users_own() {
        assert_eq!(bits_of_others(1000, 1000), 0o007);
        assert_eq!(bits_of_others(1000, 0), 0o007);
        assert_eq!(bits_of_others(1000, 100), 0o077);
        assert_eq!(bits_of_others(0, 100), 0o077);
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = |text| read_size(text).ok();
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("4096"), Some(4096));
        assert_eq!(read("500M"), Some(500 << 20));
        assert_eq!(read("2GiB"), Some(2 << 30));
        for text in ["", "G", "1X", "-1", "1.5G", "1 G", "99999999T", "1é"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
