//! Keys and values of a hive, or of several merged hives.

use std::borrow::Cow;

use super::{FileTime, LayerSemantics};
use crate::name_folding::{FoldedName, eq_ignore_case};
use crate::{DataType, RegistryData};

/// A key with everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key<'h> {
    /// The name; that of a hive's root has no meaning.
    pub name: String,
    /// Layer semantics; merging in a primary hive and in a merged view.
    pub layer: LayerSemantics,
    /// The flags of the key node.
    pub flags: u16,
    /// Time of the last change.
    pub timestamp: FileTime,
    /// The class name.
    pub class: Option<String>,
    /// The security descriptor in its self-relative form.
    pub security: &'h [u8],
    /// The values in the order in which they are stored.
    pub values: Vec<Value<'h>>,
    /// The subkeys in the order of their names.
    pub subkeys: Vec<Key<'h>>,
}

/// A value, or a deletion mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value<'h> {
    /// The name; empty for the key's default value.
    pub name: String,
    /// Content.
    pub content: ValueContent<'h>,
}

/// Content of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueContent<'h> {
    /// Data of some type.
    Data {
        /// The type.
        kind: DataType,
        /// The bytes.
        bytes: Cow<'h, [u8]>,
    },
    /// The value is deleted, and hides the one below.
    Tombstone,
}

impl<'h> Key<'h> {
    /// The subkey of that name.
    pub fn subkey(&self, name: &str) -> Option<&Key<'h>> {
        self.subkeys
            .iter()
            .find(|key| eq_ignore_case(&key.name, name))
    }

    /// The key at that path below this one; `\` separates names.
    pub fn at(&self, path: &str) -> Option<&Key<'h>> {
        path.split('\\')
            .filter(|name| !name.is_empty())
            .try_fold(self, |key, name| key.subkey(name))
    }

    /// The data of the value of that name.
    pub fn value(&self, name: &str) -> Option<RegistryData> {
        let value = self
            .values
            .iter()
            .find(|value| eq_ignore_case(&value.name, name))?;
        value.data()
    }

    /// This key and all below it, parents first.
    pub fn walk(&self) -> impl Iterator<Item = &Key<'h>> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            let key = waiting.pop()?;
            waiting.extend(key.subkeys.iter().rev());
            Some(key)
        })
    }

    pub(super) fn folded(&self) -> FoldedName {
        FoldedName::new(&self.name)
    }
}

impl Value<'_> {
    /// The data; none for a deleted value.
    pub fn data(&self) -> Option<RegistryData> {
        match &self.content {
            ValueContent::Data { kind, bytes } => Some(RegistryData::new(*kind, bytes.as_ref())),
            ValueContent::Tombstone => None,
        }
    }

    pub(super) fn folded(&self) -> FoldedName {
        FoldedName::new(&self.name)
    }
}
