//! `NuGet` packages, from the `NAME.deps.json` of a program.

use serde_json::{Map, Value};

use super::{Ecosystem, FilePackages, FoundPackage};

pub(super) fn is_list(name: &str) -> bool {
    let end = name.len().checked_sub(".deps.json".len());
    end.and_then(|end| name.get(end..))
        .is_some_and(|end| end.eq_ignore_ascii_case(".deps.json"))
}

/// A program's packages, and the names of their files and its own.
pub(super) fn dependencies(bytes: &[u8]) -> Option<FilePackages> {
    let list = super::json(bytes)?;
    let libraries = list.get("libraries")?.as_object()?;
    let kind = |key: &str| libraries.get(key)?.get("type")?.as_str();
    let packages = libraries.keys().filter_map(|key| {
        let (name, version) = key.split_once('/')?;
        let name = match kind(key)? {
            "package" => name,
            // The runtime that a self-contained program includes.
            "runtimepack" => name.strip_prefix("runtimepack.").unwrap_or(name),
            _ => return None,
        };
        Some(FoundPackage::new(Ecosystem::NuGet, name, Some(version)))
    });
    let mut all = FilePackages::of(packages);
    let targets = list.get("targets").and_then(Value::as_object);
    let targets = targets.into_iter().flat_map(Map::values);
    let libraries = targets.filter_map(Value::as_object).flatten();
    for (key, library) in libraries {
        let files = match kind(key) {
            Some("project") => &mut all.own,
            _ => &mut all.explained,
        };
        let kinds = ["runtime", "native", "resources", "runtimeTargets"];
        let lists = kinds.into_iter().filter_map(|kind| library.get(kind));
        let paths = lists.filter_map(Value::as_object).flat_map(Map::keys);
        let names = paths.filter_map(|path| path.rsplit(['/', '\\']).next());
        files.extend(names.map(str::to_owned));
    }
    Some(all)
}
