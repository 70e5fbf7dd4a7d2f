//! Products that Windows Installer installed: it keeps their packages in `C:\Windows\Installer`.

use std::io::Cursor;

use wincimg_msi::Package;

use super::{Ecosystem, FoundPackage};
use crate::entries::has_extension;

/// Returns true if a path is that of an installed package, and not of one that lies around.
pub(super) fn is_installed(path: &[&str]) -> bool {
    let [.., windows, installer, file] = path else {
        return false;
    };
    let is = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
    is(windows, "Windows") && is(installer, "Installer") && has_extension(file, &["msi"])
}

pub(super) fn package(bytes: &[u8]) -> Option<FoundPackage> {
    let product = Package::read(Cursor::new(bytes)).ok()?.product();
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    Some(FoundPackage {
        supplier: given(product.manufacturer),
        product_code: given(product.code),
        ..FoundPackage::new(
            Ecosystem::Program,
            &product.name,
            given(product.version).as_deref(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_the_installer_keeps_are_installed() {
        for (path, expected) in [
            ("Files/Windows/Installer/1a2b.msi", true),
            ("Files/WINDOWS/installer/1a2b.MSI", true),
            ("Files/Windows/Installer/1a2b.msp", false),
            ("Files/app/Installer/1a2b.msi", false),
            ("Files/Windows/Installer/{code}/1a2b.msi", false),
        ] {
            let names: Vec<&str> = path.split('/').collect();
            assert_eq!(is_installed(&names), expected, "{path}");
        }
        assert_eq!(package(b"not a package"), None);
    }
}
