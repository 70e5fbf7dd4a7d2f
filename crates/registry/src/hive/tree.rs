//! Tree of the keys of one delta hive, built from edits.

use std::collections::BTreeMap;

use super::{Semantics, WriteError};
use crate::edit::MAX_VALUE_NAME;
use crate::name_folding::FoldedName;
use crate::security::SecurityDescriptor;
use crate::{KeyMode, KeyPath, RegistryData, RegistryEdit, Root};

pub(super) struct DeltaKey {
    pub(super) name: String,
    pub(super) semantics: Semantics,
    pub(super) created: bool,
    pub(super) below: BaseKeyState,
    /// Rights that an edit sets.
    pub(super) security: Option<SecurityDescriptor>,
    pub(super) values: BTreeMap<FoldedName, ValueChange>,
    pub(super) subkeys: BTreeMap<FoldedName, DeltaKey>,
}

pub(super) enum BaseKeyState {
    /// Unknown.
    Unknown,
    /// No visible key.
    Nothing,
    /// A key with this descriptor.
    Key(Vec<u8>),
}

/// Change of a value: new data, or a deletion.
pub(super) struct ValueChange {
    pub(super) name: String,
    pub(super) data: Option<RegistryData>,
}

/// Applies the edits in order, grouped by hive.
pub(super) fn apply<'e>(
    edits: impl IntoIterator<Item = &'e RegistryEdit>,
) -> Result<BTreeMap<Root, DeltaKey>, WriteError> {
    let mut hives = BTreeMap::new();
    for edit in edits {
        hives
            .entry(edit.key().root())
            .or_insert_with(|| DeltaKey::new("ROOT", Semantics::Merge))
            .apply(edit)?;
    }
    hives.retain(|_, root| !root.is_empty());
    Ok(hives)
}

impl DeltaKey {
    pub(super) fn new(name: &str, semantics: Semantics) -> Self {
        Self {
            name: name.to_owned(),
            semantics,
            created: false,
            below: BaseKeyState::Unknown,
            security: None,
            values: BTreeMap::new(),
            subkeys: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.subkeys.is_empty()
    }

    fn apply(&mut self, edit: &RegistryEdit) -> Result<(), WriteError> {
        match edit {
            RegistryEdit::SetValue { key, name, data } => {
                check_value_name(key, name)?;
                let change = ValueChange {
                    name: name.clone(),
                    data: Some(data.clone()),
                };
                self.get_or_create(key.components())
                    .values
                    .insert(FoldedName::new(name), change);
            }
            RegistryEdit::DeleteValue { key, name } => {
                check_value_name(key, name)?;
                if let Some(node) = self.find_mut(key.components()) {
                    node.delete_value(name);
                }
            }
            RegistryEdit::CreateKey { key, mode } => self.create(key, *mode)?,
            RegistryEdit::DeleteKey { key } => {
                let (name, above) = own_name(key)?;
                if let Some(parent) = self.find_mut(above) {
                    parent.delete_subkey(name);
                }
            }
            RegistryEdit::SetSecurity { key, security } => {
                own_name(key)?;
                self.get_or_create(key.components()).security = Some(security.clone());
            }
        }
        Ok(())
    }

    fn create(&mut self, key: &KeyPath, mode: KeyMode) -> Result<(), WriteError> {
        match mode {
            KeyMode::Merge => {
                self.get_or_create(key.components());
            }
            KeyMode::Replace => {
                let (name, above) = own_name(key)?;
                let mut fresh = Self::new(name, Semantics::SupersedeTree);
                fresh.created = true;
                self.get_or_create(above)
                    .subkeys
                    .insert(FoldedName::new(name), fresh);
            }
            KeyMode::ReplaceValues => {
                own_name(key)?;
                let node = self.get_or_create(key.components());
                node.values.clear();
                if node.semantics == Semantics::Merge {
                    node.semantics = Semantics::SupersedeLocal;
                }
            }
        }
        Ok(())
    }

    /// The key at that path, created if it is missing or deleted.
    fn get_or_create(&mut self, path: &[String]) -> &mut Self {
        path.iter().fold(self, |node, name| {
            let semantics = node.of_new_subkey();
            let subkey = node
                .subkeys
                .entry(FoldedName::new(name))
                .or_insert_with(|| Self::new(name, semantics));
            if subkey.semantics == Semantics::Tombstone {
                *subkey = Self::new(name, Semantics::SupersedeTree);
            }
            subkey.created = true;
            subkey
        })
    }

    /// The key at that path, unless it or a parent is deleted.
    fn find_mut(&mut self, path: &[String]) -> Option<&mut Self> {
        let mut node = self;
        for name in path {
            let semantics = node.of_new_subkey();
            let folded = FoldedName::new(name);
            if semantics == Semantics::SupersedeTree && !node.subkeys.contains_key(&folded) {
                return None;
            }
            node = node
                .subkeys
                .entry(folded)
                .or_insert_with(|| Self::new(name, semantics));
            if node.semantics == Semantics::Tombstone {
                return None;
            }
        }
        Some(node)
    }

    /// Every key below an empty key is new too.
    fn of_new_subkey(&self) -> Semantics {
        match self.semantics {
            Semantics::SupersedeTree => Semantics::SupersedeTree,
            _ => Semantics::Merge,
        }
    }

    /// A tombstone is only needed over a visible value of the base.
    fn delete_value(&mut self, name: &str) {
        let folded = FoldedName::new(name);
        if self.semantics == Semantics::Merge {
            let name = name.to_owned();
            self.values.insert(folded, ValueChange { name, data: None });
        } else {
            self.values.remove(&folded);
        }
    }

    fn delete_subkey(&mut self, name: &str) {
        let folded = FoldedName::new(name);
        if self.semantics == Semantics::SupersedeTree {
            self.subkeys.remove(&folded);
        } else {
            self.subkeys
                .insert(folded, Self::new(name, Semantics::Tombstone));
        }
    }
}

/// Splits off the last name of a path. A hive's root has none: it cannot be deleted or replaced.
fn own_name(key: &KeyPath) -> Result<(&str, &[String]), WriteError> {
    match key.components() {
        [above @ .., name] => Ok((name, above)),
        [] => Err(WriteError::Refused(format!(
            "{key} is the root of a hive and cannot be deleted or replaced"
        ))),
    }
}

fn check_value_name(key: &KeyPath, name: &str) -> Result<(), WriteError> {
    let length = name.encode_utf16().count();
    if length > MAX_VALUE_NAME {
        return Err(WriteError::Refused(format!(
            "a value name of {length} UTF-16 units in {key} is too long: the maximum is {MAX_VALUE_NAME}"
        )));
    }
    Ok(())
}
