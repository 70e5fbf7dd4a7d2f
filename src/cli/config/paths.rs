//! Paths in a file of defaults, which are relative to its folder.

use std::any::TypeId;
use std::path::{Path, PathBuf};

use clap::Arg;
use wincimg_oci::store::LOCAL_SCHEMES;

/// The value of a flag in a file of `folder`, as it is typed in the working directory.
pub(super) fn resolved(arg: &Arg, value: &str, folder: &Path) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let name = names.first().map_or("", |name| name.as_str());
    let is_file = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    resolve(name, is_file, value, folder)
}

/// Resolves the path of a value such as `FILE`, `oci:DIR`, `FORMAT:FILE` or `NAME=DIR`, if it has
/// one. `name` is the value's name.
fn resolve(name: &str, is_file: bool, value: &str, folder: &Path) -> String {
    let mark = match name {
        "FORMAT:FILE" => value.find(':'),
        "NAME=DIR|IMAGE" => value.find('='),
        _ => None,
    };
    let rest = &value[mark.map_or(0, |at| at + 1)..];
    let mut schemes = LOCAL_SCHEMES.iter();
    let local = schemes.find_map(|scheme| rest.strip_prefix(*scheme));
    let path = local.unwrap_or(rest);
    let is_path = local.is_some()
        || match name {
            "FORMAT:FILE" => mark.is_some(),
            "NAME=DIR|IMAGE" => mark.is_some() && folder.join(path).is_dir(),
            "DIR|URL" | "FILE|URL" | "URL|FILE" => !path.contains("://"),
            _ => is_file,
        };
    // `-` is stdin.
    match folder.join(path).to_str() {
        Some(resolved) if is_path && !["", "-"].contains(&path) => {
            let before = &value[..value.len() - path.len()];
            format!("{before}{resolved}")
        }
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_path_is_resolved_and_nothing_else() {
        let made = tempfile::tempdir().unwrap();
        let folder = made.path();
        std::fs::create_dir(folder.join("site")).unwrap();
        let below = |path: &str| folder.join(path).display().to_string();
        for (name, is_file, before, path) in [
            ("FILE", true, "", "nodes.json"),
            ("DIR", true, "", "../out"),
            ("PLACE", false, "oci:", "out"),
            ("IMAGE", false, "docker-archive:", "out/app.tar:app:1"),
            ("FORMAT:FILE", false, "html:", "report.html"),
            ("NAME=DIR|IMAGE", false, "web=", "site"),
            ("NAME=DIR|IMAGE", false, "web=oci:", "layout:1"),
            ("DIR|URL", false, "", "packages"),
        ] {
            let value = format!("{before}{path}");
            let resolved = resolve(name, is_file, &value, folder);
            assert_eq!(resolved, format!("{before}{}", below(path)), "{name}");
            assert_eq!(resolve(name, is_file, &resolved, folder), resolved);
            assert_eq!(resolve(name, is_file, &value, Path::new("")), value);
        }
        for (name, is_file, value) in [
            ("FILE", true, "-"),
            ("FILE", true, ""),
            ("DIR", false, r"C:\data"),
            ("PLACE", false, "oci:"),
            ("IMAGE", false, "repo.lan/app:1"),
            ("FORMAT:FILE", false, "html"),
            ("NAME=DIR|IMAGE", false, "web=repo.lan/app:1"),
            ("NAME=DIR|IMAGE", false, "web"),
            ("FILE|URL", false, "https://feed.example/v2"),
            ("KEY=VALUE", false, "a=b"),
        ] {
            assert_eq!(resolve(name, is_file, value, folder), value, "{name}");
        }
    }
}
