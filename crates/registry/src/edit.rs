//! Changes to the registry, the common form of recipes, registration files and delta hives.
//!
//! Edits apply in order, each to the result of the previous ones: setting a value or creating a key
//! below a key that an earlier edit deleted recreates that key, empty, with nothing of the base in
//! it; deleting below a deleted key has no effect; a key created with [`KeyMode::Replace`] loses
//! the changes of earlier edits.
//!
//! Deleting something that does not exist creates nothing; see
//! [`layer_hives`](crate::hive::layer_hives) for how a layer ensures that.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::RegistryData;
use crate::path::KeyPath;
use crate::security::SecurityDescriptor;

/// Maximum length of a value's name, in UTF-16 code units.
pub(crate) const MAX_VALUE_NAME: usize = 16_383;

/// Treatment of a key of the same name in the layers below. An edit states it, for the existence of
/// such a key is not known without reading them.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum KeyMode {
    /// The key keeps its values and subkeys, and gets those of the edits too.
    #[default]
    Merge,
    /// The key starts empty, as if it had been deleted first.
    Replace,
    /// The key loses its own values and keeps its subkeys.
    ReplaceValues,
}

/// One change to an image's registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum RegistryEdit {
    /// Sets the value's data; the key is created if it is missing.
    SetValue {
        /// The key.
        key: KeyPath,
        /// The value's name; empty for the key's default value.
        name: String,
        /// The data.
        #[serde(flatten)]
        data: RegistryData,
    },
    /// Deletes the value.
    DeleteValue {
        /// The key.
        key: KeyPath,
        /// The value's name; empty for the key's default value.
        name: String,
    },
    /// Creates the key.
    CreateKey {
        /// The key.
        key: KeyPath,
        /// Treatment of a key of that name below.
        mode: KeyMode,
    },
    /// Deletes the key and everything below it.
    DeleteKey {
        /// The key.
        key: KeyPath,
    },
    /// Sets the rights of the key, which is created if it is missing. New keys below inherit them.
    SetSecurity {
        /// The key.
        key: KeyPath,
        /// The descriptor; parts that it lacks stay.
        security: SecurityDescriptor,
    },
}

impl RegistryEdit {
    /// The edited key.
    pub fn key(&self) -> &KeyPath {
        match self {
            Self::SetValue { key, .. }
            | Self::DeleteValue { key, .. }
            | Self::CreateKey { key, .. }
            | Self::DeleteKey { key }
            | Self::SetSecurity { key, .. } => key,
        }
    }

    /// The key, if the edit deletes one without which Windows does not run.
    pub fn lost_key(&self) -> Option<&KeyPath> {
        match self {
            Self::DeleteKey { key }
            | Self::CreateKey {
                key,
                mode: KeyMode::Replace,
            } if key.is_essential() => Some(key),
            _ => None,
        }
    }

    /// The edited key, mutable.
    pub fn key_mut(&mut self) -> &mut KeyPath {
        match self {
            Self::SetValue { key, .. }
            | Self::DeleteValue { key, .. }
            | Self::CreateKey { key, .. }
            | Self::DeleteKey { key }
            | Self::SetSecurity { key, .. } => key,
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
            Self::SetSecurity { key, security } => write!(f, "rights of {key} = {security}"),
        }
    }
}

#[cfg(test)]
mod tests;
