//! Differences between the contents of two images.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;
use wincimg_common::diagnose::Problem;
use wincimg_registry::RegistryData;
use wincimg_registry::hive::{Key, Semantics};
use wincimg_registry::name_folding::FoldedName;
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};

use super::tree::OverUnread;
use super::{ContentLayer, FileEntry, FileTree, ImageContents};
use crate::base::{BaseHive, BaseKeyPath};
use crate::entries::LayerChange;

/// Kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentChange {
    /// Only the second image has it.
    Added,
    /// Only the first image has it.
    Removed,
    /// Both have it, and it differs.
    Changed,
    /// A layer has the same file as the layers below.
    Rewritten,
}

/// Part of a file that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAspect {
    /// One is a file, the other a folder, link or junction.
    Kind,
    /// Bytes of files.
    Content,
    /// Targets of links.
    Target,
    /// Attributes.
    Attributes,
    /// Security descriptors.
    Rights,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDifference {
    /// Kind of the difference.
    pub change: ContentChange,
    /// The file in the first image; none if its layer was not read.
    pub before: Option<FileEntry>,
    /// The file in the second image; none if its layer was not read.
    pub after: Option<FileEntry>,
    /// The deletion of a file whose layer was not read.
    pub deleted: Option<FileEntry>,
    /// What differs in a changed file.
    pub differs: Vec<FileAspect>,
}

/// A registry key that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyDifference {
    /// Its path.
    #[serde(rename = "key")]
    pub path: BaseKeyPath,
    /// Kind of the difference.
    pub change: ContentChange,
    /// Values that differ; all values of an added or removed key.
    pub values: Vec<ValueDifference>,
    /// Security descriptors as text, if they were compared and differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<[String; 2]>,
}

/// A registry value that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueDifference {
    /// Its name; empty for the default value.
    pub name: String,
    /// Kind of the difference.
    pub change: ContentChange,
    /// Data in the first image, if known.
    pub before: Option<RegistryData>,
    /// Data in the second image, if known.
    pub after: Option<RegistryData>,
}

/// Compares the files of two images. A file without a security descriptor inherits it, and differs
/// from one that has it only if `strictly` compared.
pub fn diff_files(before: &FileTree, after: &FileTree, strictly: bool) -> Vec<FileDifference> {
    differences(before, after, strictly, None)
}

/// Changes of each layer from a number on, compared with the layers below it, also files that it
/// has as they are below.
pub fn diff_layers(
    image: &ImageContents,
    skip: usize,
    strictly: bool,
) -> Vec<(&ContentLayer, Vec<FileDifference>)> {
    let (below, above) = image.layers.split_at(skip);
    let mut tree = FileTree::merge(below, !image.is_complete());
    let changes = above.iter().map(|layer| {
        let before = tree.clone();
        tree.add(layer);
        tree.mark_other_names();
        (
            layer,
            differences(&before, &tree, strictly, Some(layer.number)),
        )
    });
    changes.collect()
}

/// Compares two trees; with a layer also finds its files that are the same in the first tree.
fn differences(
    before: &FileTree,
    after: &FileTree,
    strictly: bool,
    layer: Option<usize>,
) -> Vec<FileDifference> {
    let (old, new) = (before.entries(), after.entries());
    let mut found: BTreeMap<&[u8], FileDifference> = BTreeMap::new();
    for (key, entry) in old {
        let other = new.get(key);
        let differs = other.map_or_else(Vec::new, |other| aspects(entry, other, strictly));
        let is_same = match other {
            Some(_) => differs.is_empty(),
            None => is_nothing(entry, key, after),
        };
        let is_rewritten = other.is_some_and(|other| Some(other.layer) == layer)
            && !matches!(entry.kind, LayerChange::Folder(()) | LayerChange::Deleted);
        if is_same && !is_rewritten {
            continue;
        }
        let mut it = difference(Some(entry), other);
        match it.change {
            ContentChange::Changed if is_same => it.change = ContentChange::Rewritten,
            ContentChange::Changed => it.differs = differs,
            _ => {}
        }
        found.insert(key, it);
    }
    for (key, entry) in new {
        if !old.contains_key(key) && !is_nothing(entry, key, before) {
            found.insert(key, difference(None, Some(entry)));
        }
    }
    found.into_values().collect()
}

/// Returns true if an entry makes no difference to a tree without it.
fn is_nothing(entry: &FileEntry, key: &[u8], other: &FileTree) -> bool {
    match entry.kind {
        LayerChange::Deleted => other.is_hidden(key),
        _ => entry.over_unread == OverUnread::Implied && !other.is_hidden(key),
    }
}

fn aspects(one: &FileEntry, other: &FileEntry, strictly: bool) -> Vec<FileAspect> {
    use LayerChange::{File, Link};
    let mut found = Vec::new();
    match (&one.kind, &other.kind) {
        (one, other) if one == other => {}
        (File(_), File(_)) => found.push(FileAspect::Content),
        (Link(one), Link(other)) if one.is_junction == other.is_junction => {
            found.push(FileAspect::Target);
        }
        _ => found.push(FileAspect::Kind),
    }
    // They follow from the kind.
    if found != [FileAspect::Kind] && one.attributes != other.attributes {
        found.push(FileAspect::Attributes);
    }
    if has_other_rights(one, other, strictly) {
        found.push(FileAspect::Rights);
    }
    found
}

fn has_other_rights(one: &FileEntry, other: &FileEntry, strictly: bool) -> bool {
    match (&one.security, &other.security) {
        (Some(one), Some(other)) => one != other && normalized(one) != normalized(other),
        (None, None) => false,
        _ => strictly,
    }
}

fn difference(before: Option<&FileEntry>, after: Option<&FileEntry>) -> FileDifference {
    let is_deleted = |it: &FileEntry| it.kind == LayerChange::Deleted;
    // A deletion is less than nothing, which leaves what unread layers have.
    let rank = |it: Option<&FileEntry>| it.map_or(1, |it| if is_deleted(it) { 0 } else { 2 });
    let change = match rank(before).cmp(&rank(after)) {
        Ordering::Less => ContentChange::Added,
        Ordering::Greater => ContentChange::Removed,
        Ordering::Equal => ContentChange::Changed,
    };
    let present = |it: Option<&FileEntry>| it.filter(|it| !is_deleted(it)).cloned();
    FileDifference {
        change,
        before: present(before),
        after: present(after),
        deleted: [before, after]
            .into_iter()
            .flatten()
            .find(|it| is_deleted(it))
            .cloned(),
        differs: Vec::new(),
    }
}

/// A security descriptor as text, or as bytes if it cannot be decoded.
pub fn sddl(bytes: &[u8]) -> String {
    match SecurityDescriptor::from_bytes(bytes) {
        Ok(descriptor) => descriptor.to_string(),
        Err(_) => format!("unreadable: {}", hex::encode(bytes)),
    }
}

/// A descriptor with its parts in one order.
pub(crate) fn normalized(bytes: &[u8]) -> Vec<u8> {
    match SecurityDescriptor::from_bytes(bytes) {
        Ok(descriptor) => descriptor.to_bytes(DescriptorLayout::OwnerFirst),
        Err(_) => bytes.to_vec(),
    }
}

/// The hives that two images do not have from the same layers.
pub fn differing_hives(before: &ImageContents, after: &ImageContents) -> Vec<BaseHive> {
    let differs = |hive: &BaseHive| before.hive_layers(*hive) != after.hive_layers(*hive);
    BaseHive::ALL.into_iter().filter(differs).collect()
}

/// Compares the registries of two images, with the keys' security descriptors on request.
pub fn diff_keys(
    before: &ImageContents,
    after: &ImageContents,
    with_security: bool,
) -> Result<Vec<KeyDifference>, Problem> {
    let mut found = Vec::new();
    for hive in differing_hives(before, after) {
        let mut differences = KeyDifferences {
            is_complete: before.is_complete() && after.is_complete(),
            with_security,
            path: BaseKeyPath {
                hive,
                components: Vec::new(),
            },
            found: Vec::new(),
        };
        before.with_hive(hive, |old| {
            after.with_hive(hive, |new| differences.compare(old, new))
        })??;
        found.extend(differences.found);
    }
    Ok(found)
}

struct KeyDifferences {
    /// True if both registries are known as a whole.
    is_complete: bool,
    with_security: bool,
    path: BaseKeyPath,
    found: Vec<KeyDifference>,
}

/// What an image has at the path of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyState {
    Absent,
    /// It has changes to a key that it may have.
    Touched,
    Present,
    Deleted,
}

impl KeyDifferences {
    fn state(&self, key: Option<&Key<'_>>) -> KeyState {
        match key.map(|key| key.layer.semantics) {
            None => KeyState::Absent,
            Some(Semantics::Tombstone) => KeyState::Deleted,
            Some(Semantics::SupersedeTree) => KeyState::Present,
            Some(_) if self.is_complete => KeyState::Present,
            Some(_) => KeyState::Touched,
        }
    }

    fn compare(&mut self, old: Option<&Key<'_>>, new: Option<&Key<'_>>) {
        use KeyState::{Absent, Deleted, Present, Touched};

        let change = match (self.state(old), self.state(new)) {
            (Absent, Absent) | (Deleted, Deleted) => return,
            (Absent | Deleted, Present) | (Deleted, Absent | Touched) => ContentChange::Added,
            (Present, Absent | Deleted) | (Absent | Touched, Deleted) => ContentChange::Removed,
            (Absent | Touched | Present, Touched)
            | (Touched, Absent | Present)
            | (Present, Present) => ContentChange::Changed,
        };
        let values = diff_values(old, new);
        let security = self.diff_security(old, new);
        if change != ContentChange::Changed || !values.is_empty() || security.is_some() {
            self.found.push(KeyDifference {
                path: self.path.clone(),
                change,
                values,
                security,
            });
        }
        let mut subkeys: BTreeMap<FoldedName, [Option<&Key<'_>>; 2]> = BTreeMap::new();
        for (side, key) in [old, new].into_iter().enumerate() {
            for subkey in key.map_or(&[][..], |key| &key.subkeys) {
                let name = FoldedName::new(&subkey.name);
                subkeys.entry(name).or_default()[side] = Some(subkey);
            }
        }
        for [old, new] in subkeys.into_values() {
            let name = new.or(old).map(|key| key.name.clone());
            self.path.components.extend(name);
            self.compare(old, new);
            self.path.components.pop();
        }
    }

    fn diff_security(&self, old: Option<&Key<'_>>, new: Option<&Key<'_>>) -> Option<[String; 2]> {
        let (old, new) = (old?, new?);
        let differs = normalized(old.security) != normalized(new.security);
        (self.with_security && differs).then(|| [old, new].map(|key| sddl(key.security)))
    }
}

/// Data of a value in two images, if they have it; none if they delete it.
type ValueSides = [Option<Option<RegistryData>>; 2];

fn diff_values(old: Option<&Key<'_>>, new: Option<&Key<'_>>) -> Vec<ValueDifference> {
    let mut values: BTreeMap<FoldedName, (String, ValueSides)> = BTreeMap::new();
    for (side, key) in [old, new].into_iter().enumerate() {
        for value in key.map_or(&[][..], |key| &key.values) {
            let entry = values.entry(FoldedName::new(&value.name)).or_default();
            entry.0.clone_from(&value.name);
            // Windows finds the first of several values of one name.
            entry.1[side].get_or_insert(value.data());
        }
    }
    let values = values.into_values();
    values
        .filter(|(_, [old, new])| old != new)
        .map(|(name, [old, new])| {
            let change = match (&old, &new) {
                (Some(Some(_)), Some(Some(_))) => ContentChange::Changed,
                (Some(None), _) | (None, Some(Some(_))) => ContentChange::Added,
                _ => ContentChange::Removed,
            };
            ValueDifference {
                name,
                change,
                before: old.flatten(),
                after: new.flatten(),
            }
        })
        .collect()
}
