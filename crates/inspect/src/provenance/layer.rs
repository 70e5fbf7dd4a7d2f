//! Contents of a layer: each file with its digests, and the packages found in it.

use std::collections::HashMap;
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
    /// Its files, sorted by path.
    pub files: Vec<LayerFileEntry>,
    /// The paths that it deletes from the layers below, with the contents of folders.
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
    let mut places: HashMap<String, usize> = HashMap::new();
    while let Some(entry) = entries.next_entry()? {
        if cancelled.load(Ordering::Relaxed) {
            return Err("cancelled".into());
        }
        let file = match &entry.change {
            Some(LayerChange::File(())) => read(&mut entries.reader, entry.raw)?,
            Some(LayerChange::HardLink(target)) => {
                let Some(other) = places.get(&**target).and_then(|at| contents.files.get(*at))
                else {
                    continue;
                };
                LayerFileEntry {
                    path: entry.raw.path,
                    ..other.clone()
                }
            }
            Some(LayerChange::Deleted) => {
                contents.deleted.push(entry.path().to_owned());
                continue;
            }
            Some(LayerChange::Folder(()) | LayerChange::Link(_)) | None => continue,
        };
        if contents.files.len() == MAX_FILES {
            return Err(format!("it has more than {MAX_FILES} files").into());
        }
        places.insert(file.path.clone(), contents.files.len());
        contents.files.push(file);
    }
    contents.files.sort_by(|a, b| a.path.cmp(&b.path));
    contents
        .files
        .dedup_by(|later, first| later.path == first.path);
    contents.deleted.sort();
    Ok(contents)
}

fn read(reader: &mut LayerReader, entry: LayerEntry) -> Result<LayerFileEntry, TarReadError> {
    let mut hasher = Hasher::default();
    let kind = PackageFileKind::from_path(&entry.path);
    let packages = match kind {
        Some(kind) if entry.size <= kind.most() => {
            let bytes = reader.content()?;
            hasher.update(&bytes);
            kind.read(&entry.path, &bytes)
        }
        _ => {
            reader.each_piece(|piece| hasher.update(piece))?;
            FilePackages {
                is_partial: kind.is_some(),
                ..FilePackages::default()
            }
        }
    };
    Ok(LayerFileEntry {
        path: entry.path,
        size: entry.size,
        digests: hasher.finish(),
        packages,
    })
}
