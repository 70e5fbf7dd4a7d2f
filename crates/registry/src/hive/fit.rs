//! Fitting of a tree of changes to the known content of the base.
//!
//! To delete something, a delta needs every key above it, marked as merging. If the base has such a
//! key, that changes nothing. If it does not, the merging key creates an empty key in the
//! container. No mark means "only if it exists": a tombstone on the key above would delete its
//! content. So a deletion of something that the base does not have is left out, and one in an
//! unknown key is refused, unless an edit creates that key.
//!
//! Values and keys of edits are written even if the base has the same: the image requires them on
//! any later base, and layers stay the same on bases without other differences.

use std::collections::BTreeMap;

use super::existing::in_every_windows;
use super::tree::{BaseKeyState, DeltaKey};
use super::{Semantics, WriteError};
use crate::base::{BaseKey, BaseKeys, Presence};
use crate::name_folding::{FoldedName, eq_ignore_case};
use crate::{KeyPath, RegistryEdit};

/// Fits a hive's changes to a base.
pub(super) fn fit_to_base(
    root: &mut DeltaKey,
    path: KeyPath,
    inside: &dyn BaseKeys,
) -> Result<(), WriteError> {
    let mut walk = Walk { path, inside };
    let below = inside.key(&walk.path)?;
    walk.key(root, below)?;
    // A hive's root is not a key of its own.
    root.semantics = Semantics::Merge;
    Ok(())
}

struct Walk<'a> {
    path: KeyPath,
    inside: &'a dyn BaseKeys,
}

impl Walk<'_> {
    /// Fits a key and its subkeys to the base's key at its path.
    fn key(&mut self, node: &mut DeltaKey, below: Presence<BaseKey>) -> Result<(), WriteError> {
        match below {
            Presence::Present(ref base) => keep_spelling(node, base),
            Presence::Absent if node.semantics != Semantics::Tombstone => {
                node.semantics = Semantics::SupersedeTree;
                node.values.retain(|_, change| change.data.is_some());
            }
            Presence::Unknown => self.check(node)?,
            Presence::Absent => {}
        }
        for name in node.subkeys.keys().cloned().collect::<Vec<_>>() {
            let Some(subkey) = node.subkeys.get_mut(&name) else {
                continue;
            };
            // Names of edits are valid and never too deep.
            if self.path.push(&subkey.name).is_err() {
                continue;
            }
            let found = match (&below, node.semantics) {
                (Presence::Absent, _) | (Presence::Present(_), Semantics::SupersedeTree) => {
                    Presence::Absent
                }
                _ => self.inside.key(&self.path)?,
            };
            let is_absent = matches!(found, Presence::Absent);
            self.key(subkey, found)?;
            self.path.pop();
            let is_unspecified = match subkey.semantics {
                Semantics::Tombstone => is_absent,
                _ => !subkey.created && (is_absent || subkey.is_empty()),
            };
            if is_unspecified {
                node.subkeys.remove(&name);
            }
        }
        node.below = match below {
            // A replaced key keeps nothing of the existing one.
            Presence::Present(_) if node.semantics == Semantics::SupersedeTree => {
                BaseKeyState::Nothing
            }
            Presence::Present(base) => BaseKeyState::Key(base.security),
            Presence::Absent => BaseKeyState::Nothing,
            Presence::Unknown => BaseKeyState::Unknown,
        };
        Ok(())
    }

    /// Refuses a deletion in a key that may not exist.
    fn check(&self, node: &DeltaKey) -> Result<(), WriteError> {
        if node.created || in_every_windows(&self.path) {
            return Ok(());
        }
        let key = &self.path;
        let value = node.values.values().find(|change| change.data.is_none());
        let edit = match value {
            Some(change) => Some(RegistryEdit::DeleteValue {
                key: key.clone(),
                name: change.name.clone(),
            }),
            None => {
                let mut subkeys = node.subkeys.values();
                subkeys
                    .find(|subkey| subkey.semantics == Semantics::Tombstone)
                    .and_then(|subkey| key.child(&subkey.name).ok())
                    .map(|key| RegistryEdit::DeleteKey { key })
            }
        };
        edit.map_or(Ok(()), |edit| {
            Err(WriteError::UnknownHolder {
                edit: Box::new(edit),
                holder: key.clone(),
            })
        })
    }
}

/// A key of the base and its values keep their spelling, and what it does not have is not deleted.
fn keep_spelling(node: &mut DeltaKey, base: &BaseKey) {
    // A hive's root has another name in a delta.
    if matches!(node.semantics, Semantics::Merge | Semantics::SupersedeLocal)
        && eq_ignore_case(&node.name, &base.name)
    {
        node.name.clone_from(&base.name);
    }
    if node.semantics != Semantics::Merge || node.values.is_empty() {
        return;
    }
    let known = base.values.iter();
    let known: BTreeMap<_, _> = known
        .map(|(name, _)| (FoldedName::new(name), name))
        .collect();
    node.values.retain(|name, change| match known.get(name) {
        Some(name) => {
            change.name.clone_from(name);
            true
        }
        None => change.data.is_some(),
    });
}
