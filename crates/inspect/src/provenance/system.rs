//! The Windows of an image, by its names in vulnerability databases.

use serde::Serialize;
use wincimg_windows::release;
use wincimg_windows::update::{Kb, Updates};
use wincimg_windows::version::WindowsVersion;

/// Builds with their names in vulnerability databases: in the CPE dictionary (NVD), and in the products
/// of Microsoft's security updates, as grype uses them: the installation without a desktop, like the
/// base images.
const NAMES: [(u32, &str, Option<&str>); 10] = [
    (14393, "windows_server_2016", Some("10855")),
    (16299, "windows_server_1709", None),
    (17134, "windows_server_1803", None),
    (17763, "windows_server_2019", Some("11572")),
    (18362, "windows_server_1903", None),
    (18363, "windows_server_1909", None),
    (19041, "windows_server_2004", None),
    (19042, "windows_server_20h2", None),
    (20348, "windows_server_2022", Some("11924")),
    (26100, "windows_server_2025", Some("12437")),
];

/// An image's Windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatingSystem {
    /// Its version in images, `10.0.17763.1158`.
    pub version: String,
    /// Usual name.
    pub name: String,
    /// Name in the CPE dictionary.
    #[serde(skip)]
    pub cpe: Option<String>,
    /// The last update that it contains.
    pub kb: Option<Kb>,
    /// Number among the products of Microsoft's security updates.
    pub product: Option<&'static str>,
}

impl OperatingSystem {
    /// The system of a version, according to the tables of this process.
    pub fn from_version(version: WindowsVersion) -> Self {
        let known = NAMES.iter().find(|(build, ..)| *build == version.build);
        let text = version.os_version();
        let update = Updates::global().contained_in(version);
        Self {
            name: release::name_of(version.build),
            cpe: known.map(|(_, cpe, _)| format!("cpe:2.3:o:microsoft:{cpe}:{text}:*:*:*:*:*:*:*")),
            kb: update.and_then(|update| update.kb),
            product: known.and_then(|(.., product)| *product),
            version: text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str) -> OperatingSystem {
        OperatingSystem::from_version(version.parse().unwrap())
    }

    #[test]
    fn windows_has_the_update_of_its_revision() {
        let system = of("17763.1158");
        assert_eq!(system.version, "10.0.17763.1158");
        assert_eq!(system.kb.unwrap().to_string(), "KB4549949");
        let cpe = "cpe:2.3:o:microsoft:windows_server_2019:10.0.17763.1158:*:*:*:*:*:*:*";
        assert_eq!(system.cpe.as_deref(), Some(cpe));
    }

    #[test]
    fn a_revision_of_a_base_image_alone_contains_the_update_before_it() {
        assert_eq!(of("17763.1040").kb, of("17763.1039").kb);
        assert!(of("17763.1040").kb.is_some());
    }

    #[test]
    fn every_named_build_is_a_release_that_has_base_images() {
        for names in &NAMES {
            let release = release::from_build(names.0).unwrap();
            assert!(release.base_tag.is_some(), "{}", names.0);
        }
        assert_eq!(of("99999.1").cpe, None);
    }
}
