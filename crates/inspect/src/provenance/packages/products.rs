//! Installed programs: the keys `Uninstall` of the registry, which Windows Installer and other
//! installers write. A layer may change one value of a key that a layer below wrote, so a program is
//! known once the layers are merged.

use std::collections::BTreeMap;

use wincimg_registry::hive::{Hive, Key, Semantics};
use wincimg_registry::name_folding::eq_ignore_case;

use super::{Ecosystem, FoundPackage, LONGEST, MOST};

/// Keys with a subkey for each program, of 64-bit and 32-bit installers.
const UNINSTALL: [&str; 2] = [
    r"Microsoft\Windows\CurrentVersion\Uninstall",
    r"WOW6432Node\Microsoft\Windows\CurrentVersion\Uninstall",
];

/// Hives with these keys, in the bottom layer and in others.
const FILES: [&str; 2] = [
    "Files/Windows/System32/config/SOFTWARE",
    "Hives/Software_Delta",
];

/// The values that say what is installed.
const VALUES: [&str; 5] = [
    "DisplayName", "DisplayVersion", "Publisher", "ParentKeyName", "ParentDisplayName",
];

/// What a hive says about an installed program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProductKey {
    /// Its key, the same in all layers.
    pub(crate) id: String,
    /// Its code for Windows Installer.
    product_code: Option<String>,
    /// True if nothing of the key below is left.
    is_new: bool,
    /// Its values by name; none for one without a text.
    texts: BTreeMap<&'static str, Option<String>>,
}

impl ProductKey {
    /// None if it changes nothing that matters here.
    fn new(number: usize, key: &Key<'_>) -> Option<Self> {
        // Windows Installer names the keys of its products after their codes.
        let is_code = key.name.starts_with('{') && key.name.ends_with('}');
        let found = Self {
            id: format!("{number}\\{}", key.name.to_lowercase()),
            product_code: is_code.then(|| key.name.to_uppercase()),
            is_new: key.layer.semantics != Semantics::Merge,
            texts: texts(key),
        };
        (found.is_new || !found.texts.is_empty()).then_some(found)
    }

    /// Applies the changes of a layer above.
    pub(crate) fn change(&mut self, above: &Self) {
        if above.is_new {
            self.texts.clear();
        }
        self.texts.extend(above.texts.clone());
    }

    /// The program; none if it was removed, or is part of another.
    pub(crate) fn package(&self) -> Option<FoundPackage> {
        let text = |name: &str| self.texts.get(name).cloned().flatten();
        // Updates of a program, and parts that its installer hides.
        let is_part = text("ParentKeyName").is_some() || text("ParentDisplayName").is_some();
        let name = text("DisplayName").filter(|_| !is_part)?;
        let version = text("DisplayVersion");
        let package = FoundPackage {
            supplier: text("Publisher"),
            product_code: self.product_code.clone(),
            ..FoundPackage::new(Ecosystem::Program, &name, version.as_deref())
        };
        package.plausible()
    }
}

/// Returns true if a path is that of a layer's `HKLM\SOFTWARE`.
pub(super) fn is_hive(path: &str) -> bool {
    FILES.iter().any(|file| path.eq_ignore_ascii_case(file))
}

pub(super) fn products(bytes: &[u8]) -> Vec<ProductKey> {
    let Ok(hive) = Hive::read(bytes) else {
        return Vec::new();
    };
    let keys = UNINSTALL
        .into_iter()
        .enumerate()
        .flat_map(|(number, path)| {
            let keys = hive.root.at(path).map_or(&[][..], |key| &key.subkeys);
            keys.iter()
                .filter_map(move |key| ProductKey::new(number, key))
        });
    keys.take(MOST).collect()
}

fn texts(key: &Key<'_>) -> BTreeMap<&'static str, Option<String>> {
    let text = |name: &'static str| {
        let mut values = key.values.iter();
        let value = values.find(|value| eq_ignore_case(&value.name, name))?;
        let text = value.data().and_then(|data| data.text());
        let text = text.filter(|text| !text.is_empty() && text.len() <= LONGEST);
        Some((name, text))
    };
    VALUES.into_iter().filter_map(text).collect()
}
