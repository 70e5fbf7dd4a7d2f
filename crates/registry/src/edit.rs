//! Changes to the registry as values: what a recipe asks for, what a registration file says, and
//! what a delta hive holds, in one form.
//!
//! Edits apply in order, each to what the ones before it left:
//! setting a value or creating a key below a key that an earlier edit deleted brings that key back,
//! empty, with nothing of the base in it; deleting below a deleted key does nothing more; a key
//! created with [`KeyMode::Replace`] loses what earlier edits put into it.
//!
//! Deleting where there is nothing creates nothing; what it takes for a layer to keep to that, says
//! [`layer_hives`](crate::hive::layer_hives).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::RegistryData;
use crate::path::KeyPath;

/// The longest name of a value, in UTF-16 code units.
pub const MAX_VALUE_NAME: usize = 16_383;

/// What happens to a key of the same name in the layers below. Whether there is one cannot be known
/// without reading them, so an edit says what it wants.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum KeyMode {
    /// The key keeps its values and subkeys, and gets those of the edits besides.
    #[default]
    Merge,
    /// The key starts empty, as if it had been deleted first.
    Replace,
    /// The key's own values go, its subkeys stay.
    ReplaceValues,
}

/// One change to an image's registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum RegistryEdit {
    /// The value gets this data; the key is created where it is missing.
    SetValue {
        /// The key.
        key: KeyPath,
        /// The value's name; empty for the key's default value.
        name: String,
        /// The data.
        #[serde(flatten)]
        data: RegistryData,
    },
    /// The value is no longer there.
    DeleteValue {
        /// The key.
        key: KeyPath,
        /// The value's name; empty for the key's default value.
        name: String,
    },
    /// The key is there.
    CreateKey {
        /// The key.
        key: KeyPath,
        /// What happens to a key of that name below.
        mode: KeyMode,
    },
    /// The key and everything under it is no longer there.
    DeleteKey {
        /// The key.
        key: KeyPath,
    },
}

impl RegistryEdit {
    /// The key that the edit is about.
    pub fn key(&self) -> &KeyPath {
        match self {
            Self::SetValue { key, .. }
            | Self::DeleteValue { key, .. }
            | Self::CreateKey { key, .. }
            | Self::DeleteKey { key } => key,
        }
    }

    /// The key that the edit is about, to be changed.
    pub fn key_mut(&mut self) -> &mut KeyPath {
        match self {
            Self::SetValue { key, .. }
            | Self::DeleteValue { key, .. }
            | Self::CreateKey { key, .. }
            | Self::DeleteKey { key } => key,
        }
    }
}

impl fmt::Display for RegistryEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetValue { key, name, data } => write!(f, "set {key} {name:?} = {data}"),
            Self::DeleteValue { key, name } => write!(f, "delete value {key} {name:?}"),
            Self::CreateKey { key, mode } => match mode {
                KeyMode::Merge => write!(f, "create {key}"),
                KeyMode::Replace => write!(f, "replace {key}"),
                KeyMode::ReplaceValues => write!(f, "replace the values of {key}"),
            },
            Self::DeleteKey { key } => write!(f, "delete {key}"),
        }
    }
}

#[cfg(test)]
mod tests;
