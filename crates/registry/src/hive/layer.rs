//! The hives of a layer: all of them where one has something to say.

use std::collections::BTreeSet;

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
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The hives of which something has to be known before these edits can be made on a base: those in
/// which they delete what may not be there.
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

/// The files of a layer's `Hives` directory that make these edits on a base. None where nothing
/// changes. Else all five that Windows gives its own layers, which
/// have nothing but a root where nothing changes: containerd's CIM snapshotters open every hive of
/// the layer below one that has hives.
///
/// As far as the base is known, links between its keys are followed, keys that it has keep their
/// descriptors, new ones are marked as new and inherit theirs, and deleting where there is nothing
/// creates nothing. Of the rest it is taken that it is Windows.
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
    Delta::ALL
        .into_iter()
        .map(|delta| {
            let own = match delta {
                Delta::Edited(root) => changes.remove(&root),
                Delta::Sam | Delta::Security => None,
            };
            let tree = own.unwrap_or_else(|| DeltaKey::new("ROOT", Semantics::Merge));
            file(delta, &tree, timestamp)
        })
        .collect()
}

fn file(delta: Delta, tree: &DeltaKey, timestamp: FileTime) -> Result<HiveFile, WriteError> {
    Ok(HiveFile {
        name: delta.file(),
        bytes: write_hive(delta, tree, timestamp)?,
    })
}

/// The hives that say just what the edits say, fitted to no base: what tests of the format read.
#[cfg(any(test, feature = "testing"))]
pub fn unsettled(edits: &[RegistryEdit], timestamp: FileTime) -> Result<Vec<HiveFile>, WriteError> {
    tree::apply(edits)?
        .into_iter()
        .map(|(root, tree)| file(Delta::Edited(root), &tree, timestamp))
        .collect()
}
