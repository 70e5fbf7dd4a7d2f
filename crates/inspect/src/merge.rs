//! Merges entries of layers as Windows does: by their sort keys, parents before their contents.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::base::sort_key;

/// An entry that can be merged.
pub(crate) trait Merge {
    fn is_folder(&self) -> bool;

    /// Adapts the entry to the one that it replaces.
    fn replace(&mut self, lower: &Self);
}

/// Deletes a path and everything below it.
pub(crate) fn delete<T>(files: &mut BTreeMap<Vec<u8>, T>, path: &str) {
    let key = sort_key::for_layer_path(path);
    take_below(files, &key).for_each(drop);
    files.remove(&key);
}

/// Replaces an entry, and adds the parent folders that no layer describes: `folder` makes one of
/// its path and what is there instead.
pub(crate) fn place<T: Merge>(
    files: &mut BTreeMap<Vec<u8>, T>,
    path: &str,
    mut new: T,
    folder: impl Fn(&str, Option<&T>) -> T,
) {
    let key = sort_key::for_layer_path(path);
    let (mut path, mut parent) = (path, sort_key::parent(&key));
    while let (Some(parent_key), Some((above, _))) = (parent, path.rsplit_once('/')) {
        path = above;
        let there = files.get(parent_key);
        if there.is_some_and(T::is_folder) {
            break;
        }
        let described = folder(path, there);
        files.insert(parent_key.to_vec(), described);
        parent = sort_key::parent(parent_key);
    }
    match files.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(new);
        }
        Entry::Occupied(mut entry) => {
            new.replace(entry.get());
            let is_folder = new.is_folder();
            if entry.insert(new).is_folder() && !is_folder {
                let key = entry.key().clone();
                take_below(files, &key).for_each(drop);
            }
        }
    }
}

/// Removes everything below a path.
pub(crate) fn take_below<'f, T>(
    files: &'f mut BTreeMap<Vec<u8>, T>,
    key: &[u8],
) -> impl Iterator<Item = T> + use<'f, T> {
    let range = sort_key::below(key)..sort_key::behind(key);
    files.extract_if(range, |_, _| true).map(|(_, file)| file)
}
