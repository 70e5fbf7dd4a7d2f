//! Files of several layers, merged as Windows merges them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wincimg_windows::base_contents::FileDigest;

use super::ContentLayer;
use crate::base::sort_key;
use crate::entries::{FOLDER_ATTRIBUTES, LayerChange, LinkTarget, file_of_stream, last_name};
use crate::merge::{self, Merge};

/// Files and folders, parents before their contents.
#[derive(Debug, Clone, Default)]
pub struct FileTree {
    entries: BTreeMap<Vec<u8>, FileEntry>,
    keeps_deletions: bool,
    /// Hard links, with the layer and the key of their file.
    names: BTreeMap<Vec<u8>, (usize, Vec<u8>)>,
}

/// A file, folder, link or deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Path in the layer, such as `Files/app/web.config`.
    pub path: String,
    /// Kind; another name of a file has that of the file.
    pub kind: LayerChange,
    /// File attributes of Windows.
    pub attributes: u32,
    /// Security descriptor in self-relative form, if the layer has one.
    pub security: Option<Arc<[u8]>>,
    /// The layer that wrote it, counted from 1 at the bottom.
    pub layer: usize,
    /// True if it is another name of a file that is listed before it, and takes no space.
    pub is_other_name: bool,
    /// How it meets layers that were not read.
    pub(super) over_unread: OverUnread,
}

/// Relation of a folder to layers below that were not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OverUnread {
    /// It adds to what they have.
    #[default]
    Adds,
    /// No layer describes it: they have it.
    Implied,
    /// It was deleted and added again: nothing of theirs is left below it.
    Replaces,
}

impl Merge for FileEntry {
    fn is_folder(&self) -> bool {
        self.kind == LayerChange::Folder(())
    }

    fn replace(&mut self, lower: &Self) {
        let replaces = lower.over_unread == OverUnread::Replaces;
        if replaces || lower.kind == LayerChange::Deleted {
            self.over_unread = OverUnread::Replaces;
        }
        if lower.is_folder() && self.is_folder() {
            // A folder keeps its original spelling.
            self.path.clone_from(&lower.path);
            if self.security.is_none() {
                self.security.clone_from(&lower.security);
            }
        }
    }
}

impl FileEntry {
    /// A folder that no layer describes.
    fn folder(path: &str, layer: usize) -> Self {
        Self {
            path: path.to_owned(),
            kind: LayerChange::Folder(()),
            attributes: FOLDER_ATTRIBUTES,
            security: None,
            layer,
            is_other_name: false,
            over_unread: OverUnread::Adds,
        }
    }

    /// Last name of the path.
    pub fn name(&self) -> &str {
        last_name(&self.path)
    }

    /// Returns true if it is an alternate data stream of a file, such as `a.exe:Zone.Identifier`.
    pub fn is_stream(&self) -> bool {
        file_of_stream(&self.path).is_some()
    }

    /// Bytes that it takes.
    pub fn size(&self) -> u64 {
        match self.kind {
            LayerChange::File(FileDigest { size, .. }) if !self.is_other_name => size,
            _ => 0,
        }
    }
}

/// The path of a layer's file as in a container: `C:\app\web.config`. Files of the utility VM begin
/// with `UtilityVM`.
pub fn display_path(path: &str) -> String {
    let (top, below) = path.split_once('/').unwrap_or((path, ""));
    if top == "Files" {
        format!(r"C:\{}", below.replace('/', r"\"))
    } else {
        path.replace('/', r"\")
    }
}

impl FileTree {
    /// Merges layers, the lowest first. With `keep_deletions` the paths that they delete stay in the
    /// tree as such, because there may be layers below.
    pub(super) fn merge<'l>(
        layers: impl IntoIterator<Item = &'l ContentLayer>,
        keep_deletions: bool,
    ) -> Self {
        let mut tree = Self {
            keeps_deletions: keep_deletions,
            ..Self::default()
        };
        for layer in layers {
            tree.add(layer);
        }
        tree.mark_other_names();
        tree
    }

    /// Adds a layer above the others.
    pub(super) fn add(&mut self, layer: &ContentLayer) {
        for file in layer.collected.in_merge_order() {
            let path = self.spelled(&file.path);
            let descriptor = file
                .descriptor
                .and_then(|number| usize::try_from(number).ok());
            let descriptor = descriptor.and_then(|at| layer.collected.descriptors.get(at));
            let mut new = FileEntry {
                kind: file.is.clone(),
                attributes: file.attributes,
                security: descriptor.cloned(),
                ..FileEntry::folder(&path, layer.number)
            };
            match &file.is {
                LayerChange::Deleted => {
                    merge::delete(&mut self.entries, &file.path);
                    if !self.keeps_deletions {
                        continue;
                    }
                }
                LayerChange::HardLink(target) => {
                    let target = sort_key::for_layer_path(target);
                    if let Some(found) = self.entries.get(&target) {
                        new.kind = found.kind.clone();
                        new.attributes = found.attributes;
                        new.security.clone_from(&found.security);
                    } else {
                        // A link to a layer that was not read is a link to an unknown file.
                        new.kind = LayerChange::Link(LinkTarget::default());
                    }
                    let name = sort_key::for_layer_path(&file.path);
                    self.names.insert(name, (layer.number, target));
                }
                _ => {}
            }
            let keeps_deletions = self.keeps_deletions;
            merge::place(&mut self.entries, &path, new, |path, there| {
                let over_unread = match there.map(|there| &there.kind) {
                    Some(LayerChange::Deleted) => OverUnread::Replaces,
                    None if keeps_deletions => OverUnread::Implied,
                    _ => OverUnread::Adds,
                };
                FileEntry {
                    over_unread,
                    ..FileEntry::folder(path, layer.number)
                }
            });
        }
    }

    /// A path with the folders above it as they are spelled.
    fn spelled(&self, path: &str) -> String {
        let mut above = path;
        while let Some((folder, _)) = above.rsplit_once('/') {
            let found = self.entries.get(&sort_key::for_layer_path(folder));
            if let Some(found) = found.filter(|found| found.is_folder()) {
                return format!("{}{}", found.path, &path[folder.len()..]);
            }
            above = folder;
        }
        path.to_owned()
    }

    /// Marks all names of a file but the first.
    pub(super) fn mark_other_names(&mut self) {
        let files: BTreeSet<&Vec<u8>> = self.names.values().map(|(_, file)| file).collect();
        let mut seen: BTreeSet<(usize, &Vec<u8>)> = BTreeSet::new();
        for (key, entry) in &mut self.entries {
            let identity = match self.names.get(key) {
                Some((layer, file)) if *layer == entry.layer => Some((*layer, file)),
                _ => files.get(key).map(|file| (entry.layer, *file)),
            };
            if let Some(identity) = identity {
                entry.is_other_name = !seen.insert(identity);
            }
        }
    }

    /// A hard link whose file no layer has, if all layers were read.
    pub fn broken_name(&self) -> Option<&FileEntry> {
        let names = self.names.keys();
        let mut names = names.filter_map(|name| self.entries.get(name));
        names.find(|entry| entry.kind == LayerChange::Link(LinkTarget::default()))
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &FileEntry> {
        self.entries.values()
    }

    /// Returns true if an entry above a path is deleted, or replaces what unread layers have.
    pub(super) fn is_hidden(&self, key: &[u8]) -> bool {
        let above = std::iter::successors(sort_key::parent(key), |key| sort_key::parent(key));
        let mut above = above.filter_map(|key| self.entries.get(key));
        above.any(|entry| {
            let replaces = entry.over_unread == OverUnread::Replaces;
            replaces || entry.kind != LayerChange::Folder(())
        })
    }

    pub(super) fn entries(&self) -> &BTreeMap<Vec<u8>, FileEntry> {
        &self.entries
    }

    /// The entry at a path in the layers, such as `Files/app`.
    pub fn get(&self, path: &str) -> Option<&FileEntry> {
        self.entries.get(&sort_key::for_layer_path(path))
    }

    /// Everything below a path, down to a number of levels, with the level of each entry.
    pub fn below(
        &self,
        path: &str,
        depth: usize,
    ) -> impl DoubleEndedIterator<Item = (usize, &FileEntry)> {
        let key = sort_key::for_layer_path(path);
        let above = sort_key::depth(&key);
        let range = sort_key::below(&key)..sort_key::behind(&key);
        let entries = self.entries.range(range);
        let entries = entries.map(move |(key, entry)| (sort_key::depth(key) - above, entry));
        entries.filter(move |(level, _)| *level <= depth)
    }

    /// The same entries, each with the bytes of everything at it and below it.
    pub fn below_with_sizes(&self, path: &str, depth: usize) -> Vec<(usize, &FileEntry, u64)> {
        let mut found = Vec::new();
        // Sums of the entries whose folder is still to come, by level.
        let mut sums: Vec<u64> = Vec::new();
        for (level, entry) in self.below(path, usize::MAX).rev() {
            if sums.len() <= level {
                sums.resize(level + 1, 0);
            }
            let below = sums.drain(level + 1..);
            let size = below.fold(entry.size(), u64::saturating_add);
            sums[level] = sums[level].saturating_add(size);
            if level <= depth {
                found.push((level, entry, size));
            }
        }
        found.reverse();
        found
    }

    /// Bytes of everything at a path and below it.
    pub fn size_of(&self, path: &str) -> u64 {
        let own = self.get(path).map_or(0, FileEntry::size);
        let below = self.below(path, usize::MAX);
        below.fold(own, |sum, (_, entry)| sum.saturating_add(entry.size()))
    }
}

#[cfg(test)]
mod tests {
    use wincimg_oci::document::sha256;
    use wincimg_testkit::test_bases::LayerTar;

    use super::super::ContentStatus;
    use super::*;
    use crate::base::{Extent, LayerPosition, collect_layer};

    fn layer(number: usize, tar: LayerTar) -> ContentLayer {
        let extent = Extent::Listing { utility_vm: false };
        let tar = tar.tar();
        let collected = collect_layer(tar.as_slice(), LayerPosition::Above, &extent).unwrap();
        ContentLayer {
            number,
            digest: sha256(&tar),
            size: 1,
            created_by: None,
            status: ContentStatus::Read,
            diff_id: sha256(&tar),
            is_windows: false,
            collected: Arc::new(collected),
        }
    }

    #[test]
    fn a_hard_link_has_the_attributes_and_rights_of_its_file() {
        let kind = tar::EntryType::Regular;
        let rights = Some("O:BAG:SYD:(A;;FA;;;BA)");
        let mut first = LayerTar::default();
        first
            .hard_link("Files/b", "Files/a")
            .entry("Files/a", kind, "35", rights, b"a", None);
        let mut second = LayerTar::default();
        second
            .hard_link("Files/c", "Files/B")
            .hard_link("Files/d", "Files/nowhere");
        let tree = FileTree::merge(&[layer(1, first), layer(2, second)], false);
        let file = tree.get("Files/a").unwrap();
        assert!(file.security.is_some() && file.attributes == 35);
        for link in ["Files/b", "Files/c"] {
            let link = tree.get(link).unwrap();
            assert_eq!(link.kind, file.kind);
            assert_eq!(link.attributes, file.attributes);
            assert_eq!(link.security, file.security);
        }
        let lost = tree.get("Files/d").unwrap();
        assert_eq!(lost.kind, LayerChange::Link(LinkTarget::default()));
    }

    #[test]
    fn one_pass_adds_up_the_sizes_of_all_folders() {
        let mut tree = FileTree::default();
        let folder = |path: &str, _: Option<&FileEntry>| FileEntry::folder(path, 1);
        let files = [
            "a/b/c/one", "a/b/two", "a/b.txt", "a/c/d/three", "a/d", "b/four", "five", "a/b/two:s",
        ];
        for (number, path) in files.into_iter().enumerate() {
            let digest = FileDigest {
                size: 1_u64 << number,
                sha256: [0; 32],
            };
            let file = FileEntry {
                kind: LayerChange::File(digest),
                ..FileEntry::folder(path, 1)
            };
            merge::place(&mut tree.entries, path, file, folder);
        }
        for (path, depth, listed) in [
            ("", 1, 3),
            ("", usize::MAX, 14),
            ("a", 2, 8),
            ("a/d", 9, 0),
            ("x", 9, 0),
        ] {
            let found = tree.below_with_sizes(path, depth);
            assert_eq!(found.len(), listed, "{path} {depth}");
            let plain: Vec<(usize, &FileEntry)> = tree.below(path, depth).collect();
            let levels = found.iter().map(|(level, entry, _)| (*level, *entry));
            assert!(levels.eq(plain));
            for (_, entry, size) in found {
                assert_eq!(size, tree.size_of(&entry.path), "{}", entry.path);
            }
        }
    }

    #[test]
    fn a_folder_keeps_its_rights_under_a_layer_that_states_none() {
        let mut tree = FileTree::default();
        let folder = |path: &str, _: Option<&FileEntry>| FileEntry::folder(path, 1);
        for (layer, security) in [(1, Some(Arc::from([7_u8]))), (2, None)] {
            let entry = FileEntry {
                security,
                ..FileEntry::folder("Files", layer)
            };
            merge::place(&mut tree.entries, "Files", entry, folder);
        }
        let merged = tree.get("Files").unwrap();
        assert_eq!(merged.layer, 2);
        assert_eq!(merged.security.as_deref(), Some(&[7][..]));
    }
}
