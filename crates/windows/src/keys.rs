//! Registry keys and values whose names are known to be sound.

use wincimg_registry::{KeyPath, RegistryData, RegistryEdit, Root};

/// The key with these names below a root.
#[expect(
    clippy::expect_used,
    reason = "the names are sound, those of services by their reader; tests go through them"
)]
pub(crate) fn known_key(root: Root, names: &[&str]) -> KeyPath {
    let mut key = KeyPath::root_of(root);
    for name in names {
        key.push(name).expect("a sound key name");
    }
    key
}

pub(crate) fn set_value(key: &KeyPath, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key.clone(),
        name: name.to_owned(),
        data,
    }
}
