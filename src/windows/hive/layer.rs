//! The hives of a layer: all of them where one has something to say.

use super::existing::{Exists, effective};
use super::tree::{self, Node};
use super::writer::write_hive;
use super::{FileTime, Semantics, WriteError};
use crate::windows::registry::{RegistryEdit, Root};

/// The hives of Windows whose changes a layer of Windows' own carries, in that order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// One that edits can reach.
    Edited(Root),
    /// `HKLM\SAM`, the accounts.
    Sam,
    /// `HKLM\SECURITY`, the system's secrets.
    Security,
}

impl Place {
    const ALL: [Self; 5] = [
        Self::Edited(Root::System),
        Self::Edited(Root::Software),
        Self::Sam,
        Self::Security,
        Self::Edited(Root::DefaultUser),
    ];

    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Edited(root) => root.delta_name(),
            Self::Sam => "Sam_Delta",
            Self::Security => "Security_Delta",
        }
    }
}

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
    Place::ALL
        .into_iter()
        .map(|place| {
            let own = match place {
                Place::Edited(root) => changes.remove(&root),
                Place::Sam | Place::Security => None,
            };
            let tree = own.unwrap_or_else(|| Node::new("ROOT", Semantics::Merge));
            Ok(HiveFile {
                name: place.file(),
                bytes: write_hive(place, &tree, timestamp)?,
            })
        })
        .collect()
}
