//! Cache of diff ids between runs, so that a layer without changed files is not read again.
//!
//! As in git, a file is unchanged if its size, times and inode are the same. A file that was
//! written recently is not cached: a second change within one step of the clock could not be
//! detected.

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{iter, thread};

use wincimg_common::digest::{Digest, Hasher, sha256};
use wincimg_common::files::{CacheFileUse, FileCache};

use super::content::{ContentSource, EntryContent, LinkTo, Symlink, TarItem};
use super::descriptor::Security;
use super::diff_id::EDITION;
use super::read_ahead::READERS;
use super::sorted::SortedLayer;

/// Maximum size, enough for some hundred layers with a digest each.
const LIMIT: u64 = 64 << 10;

/// Maximum size of an entry, longer than any digest.
const LONGEST: u64 = 200;

/// Longer than the time resolution of any file system.
const STEP: Duration = Duration::from_secs(2);

/// Entries per thread.
const PART: usize = 512;

/// Digests of tars, by the stamps of the layers.
#[derive(Debug, Clone, Default)]
pub struct DiffIdCache(Option<FileCache>);

/// Identifies a layer's files, and changes with its tar.
#[derive(Debug)]
pub struct LayerStamp(Digest);

impl DiffIdCache {
    /// Creates a cache in a folder, which need not exist yet.
    pub fn in_folder(folder: &Path) -> Self {
        Self(Some(FileCache::new(folder.to_owned(), LIMIT)))
    }

    /// The stamp of a layer; `None` if it cannot be cached.
    pub fn stamp(&self, layer: &mut SortedLayer) -> Option<LayerStamp> {
        self.0.as_ref()?;
        layer.stamp(SystemTime::now().checked_sub(STEP)?)
    }

    /// Cached digest of the layer's tar.
    pub fn get(&self, stamp: &LayerStamp) -> Option<Digest> {
        let path = self.0.as_ref()?.folder().join(stamp.0.digest());
        let file = FileCache::open(&path).ok()?;
        let text = io::read_to_string(file.take(LONGEST)).ok()?;
        // A truncated digest is ignored.
        text.trim_end().parse().ok()
    }

    /// Adds a digest. If that fails, the files are read again the next time.
    pub fn insert(&self, stamp: &LayerStamp, diff_id: &Digest) {
        let Some(kept) = &self.0 else { return };
        let path = kept.folder().join(stamp.0.digest());
        match kept.write(&path, format!("{diff_id}\n").as_bytes()) {
            Ok(()) => kept.evict(&path, |_, _| CacheFileUse::Counted, FileCache::remove),
            Err(error) => tracing::debug!("{}: {error}", path.display()),
        }
    }
}

impl SortedLayer<'_> {
    /// `None` if a file was changed after `latest`, or does not exist on disk.
    fn stamp(&mut self, latest: SystemTime) -> Option<LayerStamp> {
        let mut lengths = Vec::with_capacity(self.items.len());
        let mut hasher = Hasher::default();
        hasher.update(&EDITION.to_le_bytes());
        hasher.update(&self.layer.timestamp.to_le_bytes());
        // In parallel, for disks and file servers with a long latency.
        for parts in self.items.chunks(READERS * PART) {
            let looks: Option<Vec<_>> = thread::scope(|scope| {
                let (first, others) = parts.split_at(parts.len().min(PART));
                let others = others.chunks(PART);
                let others: Vec<_> = others
                    .map(|part| scope.spawn(move || stamp_items(part, latest)))
                    .collect();
                let others = others.into_iter().map(|look| look.join().ok().flatten());
                iter::once(stamp_items(first, latest))
                    .chain(others)
                    .collect()
            });
            for (digest, of_part) in looks? {
                hasher.update(digest.as_ref().as_bytes());
                lengths.extend(of_part);
            }
        }
        self.lengths = Some(lengths);
        Some(LayerStamp(hasher.finish()))
    }
}

/// Digest of the metadata of some entries, and their lengths.
fn stamp_items(items: &[TarItem], latest: SystemTime) -> Option<(Digest, Vec<u64>)> {
    let mut lengths = Vec::with_capacity(items.len());
    let mut hasher = Hasher::default();
    // A length before each part: no two lists of parts are the same bytes.
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    for item in items {
        let mut length = None;
        add(item.name.as_bytes());
        add(&item
            .attributes
            .map_or_else(Vec::new, |it| it.to_le_bytes().into()));
        add(&[u8::from(item.secured)]);
        add(item.security.map_or("", Security::base64).as_bytes());
        match item.content {
            EntryContent::Directory => add(b"folder"),
            EntryContent::Deletion => add(b"deletion"),
            EntryContent::Symlink(Symlink { target, to }) => {
                add(match to {
                    LinkTo::File => b"link to a file".as_slice(),
                    LinkTo::Directory => b"link to a folder",
                });
                add(target.as_bytes());
            }
            EntryContent::File(ContentSource::Bytes(bytes)) => {
                add(sha256(bytes).as_ref().as_bytes());
            }
            EntryContent::File(ContentSource::Path(source)) => {
                let (identity, size) = identity(&source.path, latest)?;
                add(&identity);
                length = Some(size);
            }
            EntryContent::File(
                ContentSource::Part(_)
                | ContentSource::Member(_)
                | ContentSource::NotDownloaded { .. },
            ) => {
                return None;
            }
        }
        lengths.push(length.unwrap_or_else(|| item.length()));
    }
    Some((hasher.finish(), lengths))
}

/// Identity of a file's version, and its size, which is a part of it.
#[cfg(unix)]
fn identity(path: &Path, latest: SystemTime) -> Option<(Vec<u8>, u64)> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    // By its path, for speed: what is read is opened in its folder.
    let data = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let seconds = u64::try_from(data.ctime()).ok()?;
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    if changed > latest || data.modified().ok()? > latest {
        return None;
    }
    let times = [
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec(),
    ];
    let mut identity = Vec::with_capacity(56);
    for number in [data.dev(), data.ino(), data.size()] {
        identity.extend_from_slice(&number.to_le_bytes());
    }
    for number in times {
        identity.extend_from_slice(&number.to_le_bytes());
    }
    Some((identity, data.size()))
}

/// On other systems a change can be hidden by resetting the modification time.
#[cfg(not(unix))]
fn identity(_: &Path, _: SystemTime) -> Option<(Vec<u8>, u64)> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, File};

    use super::super::Layer;
    use super::*;

    /// A folder, and a layer with one of its files.
    fn layer() -> (tempfile::TempDir, Layer) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "one").unwrap();
        let mut layer = Layer::new(1);
        layer.file("app/file".parse().unwrap(), file);
        layer.directory("empty".parse().unwrap());
        (folder, layer)
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_mins(1)
    }

    fn stamp(layer: &Layer) -> Option<LayerStamp> {
        layer.sort_entries().unwrap().stamp(later())
    }

    fn digest_of(stamp: Option<LayerStamp>) -> String {
        stamp.unwrap().0.to_string()
    }

    #[test]
    fn a_stamp_is_another_one_after_any_change() {
        let (folder, layer) = layer();
        let file = folder.path().join("file");
        let first = digest_of(stamp(&layer));
        assert_eq!(first, digest_of(stamp(&layer)));
        let mut stamps = vec![first];
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        // Same size and modification time: the inode's change time differs.
        thread::sleep(Duration::from_millis(20));
        fs::write(&file, "two").unwrap();
        let opened = File::options().append(true).open(&file).unwrap();
        opened.set_modified(modified).unwrap();
        stamps.push(digest_of(stamp(&layer)));
        // Another file with the old one's name.
        let other = folder.path().join("other");
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &file).unwrap();
        stamps.push(digest_of(stamp(&layer)));
        let changes: [fn(&mut Layer); 5] = [
            |layer| layer.delete("old".parse().unwrap()),
            |layer| layer.hive("System_Delta".parse().unwrap(), vec![1]),
            |layer| layer.directory("other".parse().unwrap()),
            |layer| layer.timestamp = 2,
            |layer| layer.file("bytes".parse().unwrap(), vec![1]),
        ];
        for change in changes {
            let mut layer = layer.clone();
            change(&mut layer);
            stamps.push(digest_of(stamp(&layer)));
        }
        let count = stamps.len();
        stamps.sort();
        stamps.dedup();
        assert_eq!(stamps.len(), count);
    }

    #[test]
    fn nothing_is_remembered_of_what_was_just_written_or_is_gone() {
        let (folder, layer) = layer();
        let remembered = DiffIdCache::in_folder(&folder.path().join("cache"));
        assert!(
            remembered
                .stamp(&mut layer.sort_entries().unwrap())
                .is_none()
        );
        fs::remove_file(folder.path().join("file")).unwrap();
        assert!(stamp(&layer).is_none());
        assert!(
            DiffIdCache::default()
                .stamp(&mut Layer::new(1).sort_entries().unwrap())
                .is_none()
        );
    }

    #[test]
    fn what_is_remembered_is_found_and_what_is_damaged_is_not() {
        let (folder, layer) = layer();
        let cache = folder.path().join("cache");
        let remembered = DiffIdCache::in_folder(&cache);
        let stamp = stamp(&layer).unwrap();
        assert_eq!(remembered.get(&stamp), None);
        let diff_id = sha256(b"tar");
        remembered.insert(&stamp, &diff_id);
        assert_eq!(remembered.get(&stamp), Some(diff_id.clone()));
        let file = cache.join(stamp.0.digest());
        for damage in ["", "sha256:", &diff_id.as_ref()[..70], "\0\0\0"] {
            fs::write(&file, damage).unwrap();
            assert_eq!(remembered.get(&stamp), None, "{damage:?}");
        }
        remembered.insert(&stamp, &diff_id);
        assert_eq!(remembered.get(&stamp), Some(diff_id));
        for number in 0..1000 {
            fs::write(cache.join(format!("{number:064x}")), [0; 72]).unwrap();
        }
        remembered.insert(&stamp, &sha256(b"another"));
        assert_eq!(remembered.get(&stamp), Some(sha256(b"another")));
        assert!(fs::read_dir(&cache).unwrap().count() < 1000);
    }
}
