//! Changes of a line to the drive, as in its layer.

use std::collections::BTreeMap;

use wincimg_recipe::{CopiedEntry, PlannedContent, PlannedEntry, PlannedPackage};
use wincimg_windows::access::AccessChange;
use wincimg_windows::path::ImagePath;

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
        let own = path.key();
        let below = format!("{own}\0");
        let stays = |known: &String| *known != own && !known.starts_with(&below);
        self.access
            .retain(|change| change.path().strip_prefix(path).is_none());
        self.entries.retain(|known, _| stays(known));
        self.kept.retain(|known, _| stays(known));
        self.recreated.retain(|known, _| stays(known));
    }
}

fn exists(entry: &PlannedEntry) -> bool {
    entry.content != PlannedContent::Deleted
}
