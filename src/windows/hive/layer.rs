//! The hives of a layer: all of them where one has something to say.

use super::delta::Delta;
use super::existing::{Exists, effective};
use super::tree::{self, Node};
use super::writer::write_hive;
use super::{FileTime, Semantics, WriteError};
use crate::windows::registry::RegistryEdit;

/// A file of a layer's `Hives` directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiveFile {
    /// Its name, such as `System_Delta`.
    pub name: &'static str,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The files of a layer's `Hives` directory that make these edits on an image of which `exists` says
/// what is in it. None where nothing changes. Else all five that Windows gives its own layers, which
/// have nothing but a root where nothing changes: containerd's CIM snapshotters open every hive of
/// the layer below one that has hives.
///
/// Deleting where there is nothing creates nothing.
pub fn layer_hives(
    edits: &[RegistryEdit],
    exists: Exists<'_>,
    timestamp: FileTime,
) -> Result<Vec<HiveFile>, WriteError> {
    let mut changes = tree::apply(effective(edits, exists)?)?;
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
            let tree = own.unwrap_or_else(|| Node::new("ROOT", Semantics::Merge));
            Ok(HiveFile {
                name: delta.file(),
                bytes: write_hive(delta, &tree, timestamp)?,
            })
        })
        .collect()
}
