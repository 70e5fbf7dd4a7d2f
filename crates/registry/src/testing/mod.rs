//! Known bases in memory, for tests of writers.

#![expect(clippy::unwrap_used, reason = "it is part of tests")]

mod descriptor;

use std::collections::{BTreeMap, BTreeSet};

pub use descriptor::read as read_descriptor;

use crate::hive::Key;
use crate::name_folding::FoldedName;
use crate::security::{DescriptorLayout, SecurityDescriptor};
use crate::{BaseKey, BaseKeys, BaseReadError, KeyPath, Presence, RegistryData, Root};

type Names = Vec<FoldedName>;

/// Content of a base's hives.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    hives: BTreeSet<Root>,
    keys: BTreeMap<(Root, Names), BaseKey>,
}

/// The self-relative form of a descriptor in SDDL.
pub fn security(sddl: &str) -> Vec<u8> {
    let descriptor: SecurityDescriptor = sddl.parse().unwrap();
    descriptor.to_bytes(DescriptorLayout::ListsFirst)
}

fn folded(names: &[String]) -> Names {
    names.iter().map(|name| FoldedName::new(name)).collect()
}

impl Keys {
    /// Adds a hive, merged over all layers.
    #[must_use]
    pub fn with_hive(mut self, root: Root, top: &Key<'_>) -> Self {
        self.add(&mut KeyPath::root_of(root), top);
        self
    }

    fn add(&mut self, path: &mut KeyPath, key: &Key<'_>) {
        let values = key.values.iter();
        let values = values.map(|value| (value.name.clone(), value.data().unwrap()));
        let values: Vec<(String, RegistryData)> = values.collect();
        self.insert(
            path,
            BaseKey {
                name: key.name.clone(),
                security: key.security.to_vec(),
                class: key.class.clone(),
                link: BaseKey::link_target(&values),
                values,
            },
        );
        for subkey in &key.subkeys {
            path.push(&subkey.name).unwrap();
            self.add(path, subkey);
            path.pop();
        }
    }

    /// Adds a key; its hive has no other keys than those added.
    #[must_use]
    pub fn with_key(mut self, path: &str, sddl: &str, values: &[(&str, RegistryData)]) -> Self {
        let values = values.iter();
        let values = values.map(|(name, data)| ((*name).to_owned(), data.clone()));
        let values: Vec<_> = values.collect();
        let key = BaseKey {
            name: path.rsplit('\\').next().unwrap_or_default().to_owned(),
            security: security(sddl),
            class: None,
            link: BaseKey::link_target(&values),
            values,
        };
        self.insert(&path.parse().unwrap(), key);
        self
    }

    fn insert(&mut self, path: &KeyPath, key: BaseKey) {
        self.hives.insert(path.root());
        self.keys
            .insert((path.root(), folded(path.components())), key);
    }

    /// Marks hives as known and empty.
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        self.keys.clear();
        self
    }

    /// Adds a link from one key to another, in the kernel's form.
    #[must_use]
    pub fn with_link(self, path: &str, target: &str) -> Self {
        let value = RegistryData::link(target);
        self.with_key(path, "O:SYG:SYD:", &[("SymbolicLinkValue", value)])
    }
}

impl BaseKeys for Keys {
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        if !self.hives.contains(&path.root()) {
            return Ok(Presence::Unknown);
        }
        let key = self.keys.get(&(path.root(), folded(path.components())));
        Ok(key.cloned().map_or(Presence::Absent, Presence::Present))
    }
}
