//! Installed programs: the keys `Uninstall` of the registry, which Windows Installer and other
//! installers write.

use wincimg_registry::hive::{Hive, Key, Semantics};
use wincimg_registry::{RegistryData, TypedData};

use super::{Ecosystem, FilePackages, FoundPackage};

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

/// Returns true if a path is that of a layer's `HKLM\SOFTWARE`.
pub(in crate::provenance) fn is_hive(path: &str) -> bool {
    FILES.iter().any(|file| path.eq_ignore_ascii_case(file))
}

pub(super) fn products(bytes: &[u8]) -> FilePackages {
    let mut found = FilePackages::default();
    let Ok(hive) = Hive::read(bytes) else {
        return found;
    };
    for (number, path) in UNINSTALL.into_iter().enumerate() {
        for key in hive.root.at(path).map_or(&[][..], |key| &key.subkeys) {
            let id = format!("{number}\\{}", key.name.to_lowercase());
            if key.layer.semantics == Semantics::Tombstone {
                found.removed.push(id);
            } else if let Some(mut product) = product(key) {
                // Windows Installer names the keys of its products after their codes.
                let is_code = key.name.starts_with('{') && key.name.ends_with('}');
                product.product_code = is_code.then(|| key.name.to_uppercase());
                product.uninstall_key = Some(id);
                found.packages.push(product);
            }
        }
    }
    found
}

fn product(key: &Key<'_>) -> Option<FoundPackage> {
    let text = |name: &str| match key.value(name).as_ref().map(RegistryData::typed) {
        Some(TypedData::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    // Updates of a program, and parts that its installer hides.
    let is_part = text("ParentKeyName").is_some() || text("ParentDisplayName").is_some();
    let name = text("DisplayName").filter(|_| !is_part)?;
    Some(FoundPackage {
        supplier: text("Publisher"),
        ..FoundPackage::new(Ecosystem::Program, &name, text("DisplayVersion").as_deref())
    })
}
