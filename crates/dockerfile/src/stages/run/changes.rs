//! What a line does to the drive, as its layer says it.

use std::collections::BTreeMap;

use wincimg_recipe::{CopiedEntry, PlannedContent, PlannedEntry};
use wincimg_windows::access::Access;
use wincimg_windows::path::ImagePath;

use crate::stages::drive::key;

/// The line's own layer so far; paths by what their spellings have in common.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) entries: BTreeMap<String, PlannedEntry>,
    /// What was moved or copied, by where it is.
    pub(super) kept: BTreeMap<String, CopiedEntry>,
    /// Folders that were deleted and are made anew.
    pub(super) anew: BTreeMap<String, ImagePath>,
    /// Rights that it grants.
    pub(super) access: Vec<Access>,
    /// How many files of the base it brings again for their rights.
    pub(super) of_base: usize,
    pub(super) notes: Vec<String>,
}

impl Changes {
    pub(super) fn insert(&mut self, entry: PlannedEntry) {
        self.entries.insert(key(&entry.path), entry);
    }

    /// Returns true if it brings something to a path.
    pub(super) fn has(&self, path: &ImagePath) -> bool {
        self.entries.get(&key(path)).is_some_and(is_there)
    }

    /// Returns true if it takes away what is at a path.
    pub(super) fn deletes(&self, path: &ImagePath) -> bool {
        self.entries
            .get(&key(path))
            .is_some_and(|entry| !is_there(entry))
    }

    /// Says nothing any more of a path and what is below it.
    pub(super) fn forget(&mut self, path: &ImagePath) {
        let own = key(path);
        let below = format!("{own}\0");
        let stays = |known: &String| *known != own && !known.starts_with(&below);
        self.access
            .retain(|access| access.path.strip_prefix(path).is_none());
        self.entries.retain(|known, _| stays(known));
        self.kept.retain(|known, _| stays(known));
        self.anew.retain(|known, _| stays(known));
    }
}

fn is_there(entry: &PlannedEntry) -> bool {
    entry.content != PlannedContent::Deleted
}
