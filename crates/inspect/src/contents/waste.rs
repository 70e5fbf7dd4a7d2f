//! Files of an image's own layers that a later layer deletes or writes again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ContentStatus, ImageContents};
use crate::base::{LayerFileKind, sort_key};

/// Space that an image's own layers take for files that no container sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImageWaste {
    /// Uncompressed bytes of those files.
    pub bytes: u64,
    /// Uncompressed bytes of all files of the own layers.
    pub of: u64,
    /// The layers, counted from 1 at the bottom.
    pub layers: Vec<usize>,
    /// The files, the largest first.
    pub files: Vec<WastedFile>,
}

/// A file that no container sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WastedFile {
    /// Path as in a container.
    pub path: String,
    /// Its length.
    pub size: u64,
    /// The layer that has it.
    pub layer: usize,
    /// The layer that deletes it or writes it again.
    pub by: usize,
    /// True if it is deleted.
    pub deleted: bool,
}

/// A file of the layers so far.
struct LiveFile {
    path: Box<str>,
    size: u64,
    layer: usize,
}

/// Finds the files of the image's own layers that a later one deletes or writes again. The layers of
/// Windows itself do not count: nobody can make them smaller.
pub fn find_waste(image: &ImageContents) -> ImageWaste {
    let mut waste = ImageWaste::default();
    let mut live: BTreeMap<Vec<u8>, LiveFile> = BTreeMap::new();
    let own = image.layers.iter();
    let own = own.filter(|layer| !layer.is_windows && layer.status == ContentStatus::Read);
    for layer in own {
        waste.layers.push(layer.number);
        for deleted in [true, false] {
            for file in &layer.collected.files {
                let is_deletion = matches!(file.is, LayerFileKind::Deleted);
                if is_deletion != deleted {
                    continue;
                }
                let key = sort_key::for_layer_path(&file.path);
                let is_folder = matches!(file.is, LayerFileKind::Folder);
                waste.take(&mut live, &key, is_folder, (layer.number, deleted));
                let size = match file.is {
                    LayerFileKind::File { size, .. } => size,
                    _ => 0,
                };
                if !deleted && !is_folder {
                    waste.of = waste.of.saturating_add(size);
                    let (path, layer) = (file.path.clone(), layer.number);
                    live.insert(key, LiveFile { path, size, layer });
                }
            }
        }
    }
    waste.files.sort_by(|a, b| {
        let order = (b.size, &a.path, a.layer).cmp(&(a.size, &b.path, b.layer));
        order.then_with(|| a.by.cmp(&b.by))
    });
    waste
}

impl ImageWaste {
    /// Part of the own layers that is wasted, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn ratio(&self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.bytes as f64 / self.of as f64
        }
    }

    /// Takes what an entry hides: what is at its path, and unless it is a folder, everything below.
    fn take(
        &mut self,
        live: &mut BTreeMap<Vec<u8>, LiveFile>,
        key: &[u8],
        is_folder: bool,
        (by, deleted): (usize, bool),
    ) {
        let mut gone: Vec<LiveFile> = live.remove(key).into_iter().collect();
        if !is_folder {
            let range = sort_key::below(key)..sort_key::behind(key);
            let keys: Vec<Vec<u8>> = live.range(range).map(|(key, _)| key.clone()).collect();
            gone.extend(keys.iter().filter_map(|key| live.remove(key)));
        }
        for file in gone.into_iter().filter(|file| file.size > 0) {
            self.bytes = self.bytes.saturating_add(file.size);
            self.files.push(WastedFile {
                path: format!(r"C:\{}", file.path.replace('/', r"\")),
                size: file.size,
                layer: file.layer,
                by,
                deleted,
            });
        }
    }
}
