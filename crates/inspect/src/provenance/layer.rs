//! Contents of a layer: each file with its digests, and the packages found in it.

use std::error::Error;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use wincimg_layer::{LayerEntry, LayerReader, TarReadError};

use super::packages::{FilePackages, PackageFileKind};
use crate::entries::{LayerChange, LayerEntries, Layout};
use crate::stream::layer_limits;

/// Limit on the number of files; a longer document is of no use.
const MAX_FILES: usize = 500_000;

/// Contents of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerContents {
    /// Its files, sorted by path; in an image, hard links follow.
    pub files: Vec<LayerFileEntry>,
    /// Its hard links: paths and their files, in this layer or one below it.
    pub(super) links: Vec<(String, Box<str>)>,
    /// The paths that it deletes from the layers below or replaces by links, with the contents of
    /// folders.
    pub deleted: Vec<String>,
}

/// A file of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerFileEntry {
    /// Path in the layer, `Files/app/web.config`.
    pub path: String,
    /// Its length.
    pub size: u64,
    /// Its digests.
    pub digests: FileDigests,
    /// Packages found in it.
    pub packages: FilePackages,
    /// Kind as which it was read for them, by its path or else by its content.
    pub(super) kind: Option<PackageFileKind>,
}

impl LayerFileEntry {
    /// Returns true if it may have packages by its path, not only by that of another name.
    pub(super) fn may_have_packages(&self) -> bool {
        self.kind.is_some() && self.kind == PackageFileKind::from_path(&self.path)
    }
}

/// The digests of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigests {
    /// SHA-1, which SPDX requires of every file.
    pub sha1: [u8; 20],
    /// SHA-256.
    pub sha256: [u8; 32],
}

#[derive(Default)]
struct Hasher {
    sha1: Sha1,
    sha256: Sha256,
}

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        self.sha1.update(bytes);
        self.sha256.update(bytes);
    }

    fn finish(self) -> FileDigests {
        FileDigests {
            sha1: self.sha1.finalize().into(),
            sha256: self.sha256.finalize().into(),
        }
    }
}

/// Reads a layer's bytes, compressed or not, to their end, unless the work is cancelled.
pub fn scan_layer(
    bytes: impl Read + Send,
    cancelled: &AtomicBool,
) -> Result<LayerContents, Box<dyn Error + Send + Sync>> {
    let reader = LayerReader::new(bytes, layer_limits())?;
    let mut entries = LayerEntries::new(reader, Layout::Windows);
    let mut contents = LayerContents::default();
    while let Some(entry) = entries.next_entry()? {
        if cancelled.load(Ordering::Relaxed) {
            return Err("cancelled".into());
        }
        match &entry.change {
            Some(LayerChange::File(())) => {
                let file = read(&mut entries.reader, entry.raw)?;
                contents.files.push(file);
            }
            Some(LayerChange::HardLink(target)) => {
                contents.links.push((entry.raw.path, target.clone()));
            }
            // What was there is not seen through the link.
            Some(LayerChange::Deleted | LayerChange::Link(_)) => {
                contents.deleted.push(entry.path().to_owned());
            }
            Some(LayerChange::Folder(())) | None => {}
        }
        if contents.files.len() + contents.links.len() > MAX_FILES {
            return Err(format!("it has more than {MAX_FILES} files").into());
        }
    }
    // Of several files at one path, the last one counts.
    contents.files.reverse();
    contents.files.sort_by(|a, b| a.path.cmp(&b.path));
    contents.files.dedup_by(|a, b| a.path == b.path);
    contents.deleted.sort();
    Ok(contents)
}

fn read(reader: &mut LayerReader, entry: LayerEntry) -> Result<LayerFileEntry, TarReadError> {
    let mut hasher = Hasher::default();
    let mut kind = PackageFileKind::from_path(&entry.path);
    let most_stored = || PackageFileKind::most_stored(&entry.path);
    let mut packages = FilePackages::default();
    if entry.size <= kind.map_or_else(most_stored, PackageFileKind::most) {
        let bytes = reader.content()?;
        hasher.update(&bytes);
        kind = kind.or_else(|| PackageFileKind::from_stored(&bytes));
        kind = kind.filter(|kind| entry.size <= kind.most());
        if let Some(kind) = kind {
            packages = kind.read(&entry.path, &bytes);
        }
    } else {
        reader.each_piece(|piece| hasher.update(piece))?;
        packages.is_partial = kind.is_some();
    }
    Ok(LayerFileEntry {
        path: entry.path,
        size: entry.size,
        digests: hasher.finish(),
        packages,
        kind,
    })
}
