//! `NuGet` packages: from the `NAME.deps.json` of a program, which can be in the program, and from the
//! `packages.config` of .NET Framework.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wincimg_registry::text::from_utf16;

use super::bytes::{part, u32_at, u64_at};
use super::pe::Pe;
use super::{Ecosystem, FilePackages, FoundPackage, PackageFileKind};
use crate::entries::last_name;

/// SHA-256 of `.net core bundle` and a line feed. The offset of the bundle is stored before it.
pub(super) const BUNDLE: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
    0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];
const CONFIG: &str = "packages.config";
/// Size of the versions of a bundle and its number of files.
const BUNDLE_START: usize = 12;

pub(super) fn is_list(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".deps.json") || name == CONFIG
}

/// The list in a program that is published as one file, by .NET 5 or later. Lists are not
/// compressed there.
pub(super) fn bundled_list<'a>(pe: &Pe<'a>, file: &'a [u8]) -> Option<&'a [u8]> {
    let size = |number: u64| usize::try_from(number).ok();
    let bundle = pe.writable_data().find_map(|data| {
        let mut places = data.windows(BUNDLE.len());
        let at = places.position(|place| place == BUNDLE)?;
        u64_at(data, at.checked_sub(8)?)
    });
    let bundle = file.get(size(bundle.filter(|offset| *offset > 0)?)?..)?;
    if u32_at(bundle, 0)? < 2 {
        return None;
    }
    // Its ID has a length of one byte.
    let after_id = BUNDLE_START + 1 + usize::from(*bundle.get(BUNDLE_START)?);
    let offset = size(u64_at(bundle, after_id)?)?;
    let list = part(file, offset, size(u64_at(bundle, after_id + 8)?)?)?;
    (list.len() as u64 <= PackageFileKind::NuGet.most()).then_some(list)
}

/// The packages of a `packages.config`. Those without a framework are tools: Chocolatey has files of
/// the same form.
pub(super) fn configured(bytes: &[u8]) -> Vec<FoundPackage> {
    let utf16 = |bytes, order| from_utf16(bytes, order).unwrap_or_else(|cut| cut.before);
    let text = match bytes {
        [0xFF, 0xFE, text @ ..] => utf16(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => utf16(text, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    // Elements in comments do not count.
    let mut parts = text.split("<!--");
    let first = parts.next().into_iter();
    let others = parts.filter_map(|part| Some(part.split_once("-->")?.1));
    let text: String = first.chain(others).collect();
    let elements = text.split("<package").skip(1);
    let elements = elements.filter(|it| it.starts_with(char::is_whitespace));
    let packages = elements.filter_map(|element| {
        let (element, _) = element.split_once('>')?;
        let needed_to_build = attribute(element, "developmentDependency");
        attribute(element, "targetFramework")?;
        if needed_to_build.is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return None;
        }
        let (name, version) = (attribute(element, "id")?, attribute(element, "version"));
        Some(FoundPackage::new(Ecosystem::NuGet, name, version))
    });
    packages.collect()
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = element;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|it| matches!(it, '"' | '\''))?;
        let (value, next) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = next;
    }
}

/// The packages in a program's list that the program has, and the paths of their files and its own.
pub(super) fn dependencies(path: &str, bytes: &[u8]) -> Option<FilePackages> {
    let list = super::json(bytes)?;
    let libraries = list.get("libraries")?.as_object()?;
    let kind = |key: &str| libraries.get(key)?.get("type")?.as_str();
    let mut all = FilePackages::default();
    let targets = list.get("targets").and_then(Value::as_object);
    let targets = targets.into_iter().flat_map(Map::values);
    let targets: Vec<_> = targets.filter_map(Value::as_object).flatten().collect();
    let mut with_files: BTreeSet<&str> = BTreeSet::new();
    for (key, library) in &targets {
        let files = match kind(key) {
            Some("project") => &mut all.own,
            Some("package" | "runtimepack") => &mut all.explained,
            // A file that the program refers to directly is a package by itself.
            _ => continue,
        };
        let others = files.len();
        for kind in ["runtime", "native", "resources", "runtimeTargets"] {
            let assets = library.get(kind).and_then(Value::as_object);
            let assets = assets.into_iter().flatten();
            files.extend(assets.map(|(path, asset)| deployed(kind, path, asset)));
        }
        if files.len() > others {
            with_files.insert(key.as_str());
            // `runtime.win-x64.NAME` has the files of `NAME`.
            let rest = key.strip_prefix("runtime.");
            with_files.extend(rest.and_then(|rest| Some(rest.split_once('.')?.1)));
        }
    }
    // Others were only needed to build, or the framework has a newer one.
    let own = last_name(path).strip_suffix(".deps.json");
    let has_files =
        |key: &str, name: &str| targets.is_empty() || with_files.contains(key) || own == Some(name);
    let packages = libraries.keys().filter_map(|key| {
        let (name, version) = key.split_once('/')?;
        let name = match kind(key)? {
            "package" if has_files(key, name) => name,
            // The runtime that a self-contained program includes.
            "runtimepack" => name.strip_prefix("runtimepack.").unwrap_or(name),
            _ => return None,
        };
        Some(FoundPackage::new(Ecosystem::NuGet, name, Some(version)))
    });
    all.packages = packages.collect();
    Some(all)
}

/// Path of a package's file from the folder of the program.
fn deployed(kind: &str, path: &str, asset: &Value) -> String {
    let stated = |key: &str| asset.get(key).and_then(Value::as_str);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let path = match (kind, stated("localPath"), stated("locale")) {
        (_, Some(stated), _) => stated.to_owned(),
        ("resources", None, Some(locale)) => format!("{locale}/{name}"),
        ("runtimeTargets", None, _) => path.to_owned(),
        _ => name.to_owned(),
    };
    path.replace('\\', "/")
}
