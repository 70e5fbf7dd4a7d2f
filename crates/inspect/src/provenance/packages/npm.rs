//! npm packages: the `package.json` of each folder in `node_modules`.

use super::{Ecosystem, FoundPackage};

/// Returns true if a path is that of a package's own manifest, and not of another file with the
/// same name.
pub(super) fn is_description(path: &[&str]) -> bool {
    match path {
        [.., modules, scope, _, file] if scope.starts_with('@') => {
            is(modules, "node_modules") && is(file, "package.json")
        }
        [.., modules, _, file] => is(modules, "node_modules") && is(file, "package.json"),
        _ => false,
    }
}

fn is(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
}

pub(super) fn package(bytes: &[u8]) -> Option<FoundPackage> {
    let description = super::json(bytes)?;
    let text = |key: &str| description.get(key)?.as_str();
    let licence = text("license").or_else(|| description.get("license")?.get("type")?.as_str());
    let (name, version) = (text("name")?, text("version")?);
    Some(FoundPackage {
        licence: licence.map(str::to_owned),
        ..FoundPackage::new(Ecosystem::Npm, name, Some(version))
    })
}
