//! The hives of a layer: all of them if one has changes.

use std::collections::{BTreeMap, BTreeSet};

use super::delta::Delta;
use super::fit::fit_to_base;
use super::links::resolve_links;
use super::tree::{self, DeltaKey};
use super::writer::write_hive;
use super::{FileTime, Semantics, WriteError};
use crate::base::{BaseKeys, UnknownBase};
use crate::{KeyPath, RegistryEdit, Root};

/// A file of a layer's `Hives` directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiveFile {
    /// Its name, such as `System_Delta`.
    pub name: &'static str,
    /// Content.
    pub bytes: Vec<u8>,
}

/// The hives of a base that these edits require: those in which they delete something that may not
/// exist.
pub fn required_hives(edits: &[RegistryEdit]) -> BTreeSet<Root> {
    let Ok(changes) = tree::apply(edits) else {
        return BTreeSet::new();
    };
    let needed = changes.into_iter().filter_map(|(root, mut tree)| {
        let settled = fit_to_base(&mut tree, KeyPath::root_of(root), &UnknownBase);
        matches!(settled, Err(WriteError::UnknownHolder { .. })).then_some(root)
    });
    needed.collect()
}

/// The files of a layer's `Hives` directory that apply these edits to a base. Empty if nothing
/// changes. Otherwise all five of a Windows layer, with a root alone where nothing changes:
/// containerd's CIM snapshotters open every hive of the layer below one that has hives.
///
/// As far as the base is known, links between its keys are followed, existing keys keep their
/// descriptors, new ones are marked as new and inherit theirs, and deleting something that does not
/// exist creates nothing. The rest is assumed to be Windows.
pub fn layer_hives(
    edits: &[RegistryEdit],
    inside: &dyn BaseKeys,
    timestamp: FileTime,
) -> Result<Vec<HiveFile>, WriteError> {
    let mut changes = tree::apply(&resolve_links(edits, inside)?)?;
    for (root, tree) in &mut changes {
        fit_to_base(tree, KeyPath::root_of(*root), inside)?;
    }
    changes.retain(|_, tree| !tree.is_empty());
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    all(changes, inside, timestamp)
}

/// The five hives of a layer that changes nothing in the registry, above or below one that does:
/// containerd's CIM snapshotters require all of the layers of an image to have hives, or none.
pub fn unchanged_hives(
    inside: &dyn BaseKeys,
    timestamp: FileTime,
) -> Result<Vec<HiveFile>, WriteError> {
    all(BTreeMap::new(), inside, timestamp)
}

fn all(
    mut changes: BTreeMap<Root, DeltaKey>,
    inside: &dyn BaseKeys,
    timestamp: FileTime,
) -> Result<Vec<HiveFile>, WriteError> {
    let mut hives = Vec::new();
    for delta in Delta::ALL {
        let mut tree = DeltaKey::new("ROOT", Semantics::Merge);
        if let Delta::Edited(root) = delta {
            match changes.remove(&root) {
                Some(own) => tree = own,
                // The root keeps its descriptor.
                None => fit_to_base(&mut tree, KeyPath::root_of(root), inside)?,
            }
        }
        hives.push(file(delta, &tree, timestamp)?);
    }
    Ok(hives)
}

fn file(delta: Delta, tree: &DeltaKey, timestamp: FileTime) -> Result<HiveFile, WriteError> {
    Ok(HiveFile {
        name: delta.file(),
        bytes: write_hive(delta, tree, timestamp)?,
    })
}

/// The hives of the edits, not fitted to a base, for tests of the format.
#[cfg(any(test, feature = "testing"))]
pub fn unfitted_hives(
    edits: &[RegistryEdit],
    timestamp: FileTime,
) -> Result<Vec<HiveFile>, WriteError> {
    tree::apply(edits)?
        .into_iter()
        .map(|(root, tree)| file(Delta::Edited(root), &tree, timestamp))
        .collect()
}
