//! Changes of a line to the drive, as in its layer.

use std::collections::BTreeMap;

use wincimg_recipe::{CopiedEntry, PlannedContent, PlannedEntry, PlannedPackage};
use wincimg_windows::access::AccessChange;
use wincimg_windows::path::ImagePath;

use crate::stages::drive::remove_path;

/// The line's layer so far; keys are shared by all spellings of a path.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) entries: BTreeMap<String, PlannedEntry>,
    /// Installed packages.
    pub(super) packages: Vec<PlannedPackage>,
    /// Moved or copied entries, by target.
    pub(super) kept: BTreeMap<String, CopiedEntry>,
    /// Folders that are deleted and created again.
    pub(super) recreated: BTreeMap<String, ImagePath>,
    pub(super) access: Vec<AccessChange>,
    /// Number of the base's files that are copied for their permissions.
    pub(super) of_base: usize,
    pub(super) notes: Vec<String>,
}

impl Changes {
    pub(super) fn insert(&mut self, entry: PlannedEntry) {
        self.entries.insert(entry.path.key(), entry);
    }

    /// Paths of the layer's files and folders.
    pub(super) fn created(&self) -> impl Iterator<Item = &ImagePath> {
        let entries = self.entries.values();
        entries
            .filter(|entry| exists(entry))
            .map(|entry| &entry.path)
    }

    /// Changes the spelling of a path, and returns the entries at and below it.
    pub(super) fn respell(&mut self, from: &ImagePath, to: &ImagePath) -> Vec<PlannedEntry> {
        let mut changed = Vec::new();
        for entry in self.entries.values_mut() {
            let path = entry.path.strip_prefix(from).map(|rest| to.join_all(rest));
            if let Some(Ok(path)) = path {
                entry.path = path;
                changed.push(entry.clone());
            }
        }
        changed
    }

    /// Returns true if the layer has an entry at a path.
    pub(super) fn has(&self, path: &ImagePath) -> bool {
        self.entries.get(&path.key()).is_some_and(exists)
    }

    /// Returns true if the layer deletes a path.
    pub(super) fn deletes(&self, path: &ImagePath) -> bool {
        self.entries
            .get(&path.key())
            .is_some_and(|entry| !exists(entry))
    }

    /// Lets permissions that this line changed at and below a path follow its move.
    pub(super) fn move_access(&mut self, from: &ImagePath, to: &ImagePath) {
        for change in &mut self.access {
            let path = match change {
                AccessChange::Grant(access) => &mut access.path,
                AccessChange::Edit(edit) => &mut edit.path,
            };
            let moved = path.strip_prefix(from).map(|rest| to.join_all(rest));
            if let Some(Ok(moved)) = moved {
                *path = moved;
            }
        }
    }

    /// Removes all changes at and below a path.
    pub(super) fn forget(&mut self, path: &ImagePath) {
        let key = path.key();
        self.access
            .retain(|change| change.path().strip_prefix(path).is_none());
        remove_path(&mut self.entries, &key);
        remove_path(&mut self.kept, &key);
        remove_path(&mut self.recreated, &key);
    }
}

fn exists(entry: &PlannedEntry) -> bool {
    entry.content != PlannedContent::Deleted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &str) -> PlannedEntry {
        PlannedEntry::folder(path.parse().unwrap())
    }

    #[test]
    fn a_path_is_forgotten_with_what_is_below() {
        let mut changes = Changes::default();
        for path in [r"C:\a", r"C:\A\b", r"C:\a.txt", r"C:\ab", r"C:\c\a"] {
            changes.insert(folder(path));
        }
        changes.forget(&r"C:\a".parse().unwrap());
        let left = changes.created().map(ToString::to_string);
        assert_eq!(left.collect::<Vec<_>>(), [r"C:\a.txt", r"C:\ab", r"C:\c\a"]);
    }

    #[test]
    fn thousands_of_paths_are_forgotten_one_by_one() {
        let entries = (0..30_000).map(|number| folder(&format!(r"C:\a\{number}.txt")));
        let entries: Vec<_> = entries.collect();
        let mut changes = Changes::default();
        for entry in &entries {
            changes.insert(entry.clone());
        }
        for entry in &entries {
            changes.forget(&entry.path);
        }
        assert!(changes.entries.is_empty());
    }
}
