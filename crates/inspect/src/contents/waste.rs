//! Files of an image's own layers that a later layer deletes or writes again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tree::display_path;
use super::{ContentStatus, ImageContents};
use crate::base::sort_key;
use crate::entries::{FILES, LayerChange, below};
use crate::merge;

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
    names: usize,
}

/// The files of the layers so far, and the numbers of those that have names.
#[derive(Default)]
struct LiveFiles {
    all: Vec<LiveFile>,
    by_name: BTreeMap<Vec<u8>, usize>,
}

/// Finds the files of the image's own layers that a later one deletes or writes again. The layers of
/// Windows itself do not count: they cannot be changed.
pub fn find_waste(image: &ImageContents) -> ImageWaste {
    let mut waste = ImageWaste::default();
    let mut live = LiveFiles::default();
    let own = image.layers.iter();
    let own = own.filter(|layer| !layer.is_windows && layer.status == ContentStatus::Read);
    for layer in own {
        waste.layers.push(layer.number);
        let files = layer.collected.in_merge_order();
        for file in files.filter(|file| below(&file.path, FILES).is_some()) {
            let key = sort_key::for_layer_path(&file.path);
            let is_folder = file.is == LayerChange::Folder(());
            let is_deleted = file.is == LayerChange::Deleted;
            waste.take(&mut live, &key, is_folder, (layer.number, is_deleted));
            match &file.is {
                LayerChange::File(digest) => {
                    waste.of = waste.of.saturating_add(digest.size);
                    live.by_name.insert(key, live.all.len());
                    live.all.push(LiveFile {
                        path: file.path.clone(),
                        size: digest.size,
                        layer: layer.number,
                        names: 1,
                    });
                }
                LayerChange::HardLink(target) => live.add_name(key, target),
                _ => {}
            }
        }
    }
    waste.files.sort_by(|a, b| {
        let order = (b.size, &a.path, a.layer).cmp(&(a.size, &b.path, b.layer));
        order.then_with(|| a.by.cmp(&b.by))
    });
    waste
}

impl LiveFiles {
    /// Adds a name of a file; files of Windows have no others here.
    fn add_name(&mut self, key: Vec<u8>, target: &str) {
        let number = self.by_name.get(&sort_key::for_layer_path(target)).copied();
        if let Some(number) = number {
            self.all[number].names += 1;
            self.by_name.insert(key, number);
        }
    }
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

    /// Takes what an entry hides: what is at its path, and unless it is a folder, everything below
    /// and its streams. A file is wasted with its last name.
    fn take(
        &mut self,
        live: &mut LiveFiles,
        key: &[u8],
        is_folder: bool,
        (by, deleted): (usize, bool),
    ) {
        let names = &mut live.by_name;
        let mut gone: Vec<usize> = names.remove(key).into_iter().collect();
        if !is_folder {
            gone.extend(merge::take_below(names, key));
            gone.extend(merge::take_streams(names, key));
        }
        for number in gone {
            let file = &mut live.all[number];
            file.names -= 1;
            if file.names > 0 || file.size == 0 {
                continue;
            }
            self.bytes = self.bytes.saturating_add(file.size);
            self.files.push(WastedFile {
                path: display_path(&file.path),
                size: file.size,
                layer: file.layer,
                by,
                deleted,
            });
        }
    }
}
