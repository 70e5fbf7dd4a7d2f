//! Python packages: the `METADATA` of each folder `NAME-VERSION.dist-info`, and what older tools make:
//! the `PKG-INFO` of each `.egg-info` and in the `EGG-INFO` of each `.egg`, and files `NAME.egg-info`.

use super::{Ecosystem, FoundPackage, header};

pub(super) fn is_description(path: &[&str]) -> bool {
    let [.., folder, file] = path else {
        return false;
    };
    let (folder, file) = (folder.to_ascii_lowercase(), file.to_ascii_lowercase());
    match file.as_str() {
        "metadata" => folder.ends_with(".dist-info"),
        "pkg-info" => folder.ends_with(".egg-info") || folder == "egg-info",
        _ => file.ends_with(".egg-info"),
    }
}

pub(super) fn package(bytes: &[u8]) -> Option<FoundPackage> {
    let text = String::from_utf8_lossy(bytes);
    let field = |wanted: &str| header(&text, wanted);
    Some(FoundPackage {
        licence: field("License-Expression").map(str::to_owned),
        ..FoundPackage::new(Ecosystem::PyPi, field("Name")?, Some(field("Version")?))
    })
}
