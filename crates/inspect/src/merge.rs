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

/// Deletes a path, everything below it, and its alternate data streams.
pub(crate) fn delete<T>(files: &mut BTreeMap<Vec<u8>, T>, path: &str) {
    let key = sort_key::for_layer_path(path);
    take_below(files, &key).for_each(drop);
    take_streams(files, &key).for_each(drop);
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
            let key = entry.key().clone();
            let replaces_folder = entry.insert(new).is_folder();
            if is_folder && replaces_folder {
                return;
            }
            // A file comes with its streams from one layer, where they follow it.
            take_streams(files, &key).for_each(drop);
            if replaces_folder {
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

/// Removes the alternate data streams of a path, which are entries beside it: `a.exe:stream`.
pub(crate) fn take_streams<'f, T>(
    files: &'f mut BTreeMap<Vec<u8>, T>,
    key: &[u8],
) -> impl Iterator<Item = T> + use<'f, T> {
    let range = [key, b":"].concat()..[key, b";"].concat();
    files.extract_if(range, |_, _| true).map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for bool {
        fn is_folder(&self) -> bool {
            *self
        }

        fn replace(&mut self, _: &Self) {}
    }

    fn files(paths: &[&str]) -> BTreeMap<Vec<u8>, bool> {
        let mut files = BTreeMap::new();
        for path in paths {
            let name = path.trim_end_matches('/');
            place(&mut files, name, name != *path, |_, _| true);
        }
        files
    }

    #[test]
    fn the_streams_of_a_file_go_with_it() {
        let lower = [
            "f/a:s", "f/a:z", "f/a.b", "f/a;", "f/a", "f/ab:s", "f/b/", "f/b:s",
        ];
        let without = |gone: &[&str]| {
            let left = lower.iter().filter(|path| !gone.contains(path));
            files(&left.copied().collect::<Vec<_>>())
        };
        let mut merged = files(&lower);
        place(&mut merged, "F/A", false, |_, _| true);
        assert_eq!(merged, without(&["f/a:s", "f/a:z"]));
        place(&mut merged, "F/A:new", false, |_, _| true);
        assert_eq!(merged.len(), without(&["f/a:s"]).len());
        delete(&mut merged, "f/A");
        assert_eq!(merged, without(&["f/a", "f/a:s", "f/a:z"]));
        place(&mut merged, "f/b", true, |_, _| true);
        assert_eq!(merged, without(&["f/a", "f/a:s", "f/a:z"]));
        place(&mut merged, "f/b", false, |_, _| true);
        assert!(!merged.contains_key(&sort_key::for_layer_path("f/b:s")));
    }
}
