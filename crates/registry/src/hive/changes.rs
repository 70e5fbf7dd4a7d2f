//! Conversion of a delta hive to edits.

use super::{Key, Semantics, Value};
use crate::{KeyMode, KeyPath, KeyPathError, RegistryEdit, Root};

/// The edits of a delta hive, in the order of its keys.
///
/// Writing them yields a hive with the same keys and values. A key that is only the parent of
/// another is not an edit. Fails on an invalid key name, which Windows would not load.
pub fn edits(root: Root, key: &Key<'_>) -> Result<Vec<RegistryEdit>, KeyPathError> {
    let mut edits = Vec::new();
    collect(
        &mut KeyPath::root_of(root),
        key,
        Semantics::Merge,
        &mut edits,
    )?;
    Ok(edits)
}

fn collect(
    path: &mut KeyPath,
    key: &Key<'_>,
    parent: Semantics,
    edits: &mut Vec<RegistryEdit>,
) -> Result<(), KeyPathError> {
    let within_new = parent == Semantics::SupersedeTree;
    let mode = match key.layer.semantics {
        Semantics::Tombstone if within_new => return Ok(()),
        Semantics::Tombstone => {
            edits.push(RegistryEdit::DeleteKey { key: path.clone() });
            return Ok(());
        }
        Semantics::SupersedeTree if !within_new => Some(KeyMode::Replace),
        Semantics::SupersedeLocal if !within_new => Some(KeyMode::ReplaceValues),
        _ => leaf(path, key).then_some(KeyMode::Merge),
    };
    if let Some(mode) = mode {
        let key = path.clone();
        edits.push(RegistryEdit::CreateKey { key, mode });
    }
    edits.extend(key.values.iter().map(|value| change(path, value)));
    let semantics = if within_new {
        parent
    } else {
        key.layer.semantics
    };
    for subkey in &key.subkeys {
        path.push(&subkey.name)?;
        collect(path, subkey, semantics, edits)?;
        path.pop();
    }
    Ok(())
}

/// Returns true if the key has neither values nor subkeys. A hive's root always exists.
fn leaf(path: &KeyPath, key: &Key<'_>) -> bool {
    key.values.is_empty() && key.subkeys.is_empty() && !path.components().is_empty()
}

fn change(path: &KeyPath, value: &Value<'_>) -> RegistryEdit {
    let (key, name) = (path.clone(), value.name.clone());
    match value.data() {
        Some(data) => RegistryEdit::SetValue { key, name, data },
        None => RegistryEdit::DeleteValue { key, name },
    }
}
