//! The replayed Patch Tuesday of `docs/tutorial/patch-tuesday.sh`, on loopback.

use std::path::Path;

use serde_json::Value;
use wincimg_demo::add_base_images;
use wincimg_registry::RegistryData;
use wincimg_testkit::test_bases::{FILE, image_of, set, upper_layer};
use wincimg_testkit::windows_base::StandIn;
use wincimg_windows::version::WindowsVersion;

use super::ROOT;
use super::stage::Stage;
use crate::iis_server::layers_with_iis;
use crate::site::{add_base, copy_folder};

/// January and February 2025, of Server 2022 and 2025.
const VERSIONS: [WindowsVersion; 4] = [
    WindowsVersion::new(20348, 3091),
    WindowsVersion::new(20348, 3207),
    WindowsVersion::new(26100, 2894),
    WindowsVersion::new(26100, 3194),
];

/// Adds the bases that the script needs.
pub(super) fn add_bases(stage: &Stage) {
    stage.registries[2].with(|stored| {
        add_base_images(stored, "windows/nanoserver", &VERSIONS).unwrap();
        for version in VERSIONS {
            let tag = version.os_version();
            let base = updated_iis(version);
            add_base(stored, "dotnet/framework/aspnet", &tag, base);
        }
    });
}

/// A base with IIS, whose last layer is the update of a month.
fn updated_iis(version: WindowsVersion) -> StandIn {
    let key = r"HKLM\SYSTEM\ControlSet001\Control\Windows";
    let revision = RegistryData::dword(version.revision.unwrap());
    let mut update = upper_layer(&[set(key, "CSDBuildNumber", revision)]);
    let text = version.to_string();
    update.file(
        "Files/Windows/System32/ntoskrnl.exe",
        text.as_bytes(),
        Some(FILE),
    );
    let mut layers = layers_with_iis();
    layers.push(update.tar());
    image_of(&version.os_version(), layers)
}

#[test]
fn a_patch_tuesday_is_replayed() {
    let mut stage = Stage::new();
    add_bases(&stage);
    copy_folder(&Path::new(ROOT).join("docs/tutorial"), stage.folder.path());
    let line = "./patch-tuesday.sh repo.mylan.k8s:8888/tuesday";
    let output = stage.output(line, "");
    let printed = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{said}");
    let sections: Vec<&str> = printed.split("\n== ").skip(1).collect();
    let codes = sections.iter().map(|section| {
        let lines = section.lines();
        let codes = lines.filter_map(|line| line.strip_prefix("exit code "));
        codes.collect::<Vec<_>>().concat()
    });
    // Nodes that lag behind are warned of, outdated images are moved, and nothing else fails.
    assert_eq!(
        codes.collect::<Vec<_>>(),
        ["0", "1", "0", "0", "10"],
        "{printed}"
    );
    let lagging = sections[1];
    assert_contains!(
        lagging,
        "image-newer-revision",
        "actions/runner-images/issues/11582",
        "update the host to 26100.3194 with KB5051987"
    );
    // The site's own layer is the same on the other base.
    let mut layers = |tag: &str| -> Vec<Vec<Value>> {
        let line =
            format!("wincimg image inspect repo.mylan.k8s:8888/tuesday/web:{tag} --format json");
        let output = stage.output(&line, "");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let images = found["images"].as_array().unwrap().iter();
        let layers = images.map(|image| image["layers"].as_array().unwrap().iter());
        layers
            .map(|layers| layers.map(|layer| layer["digest"].clone()).collect())
            .collect()
    };
    let (before, after) = (layers("1.4"), layers("1.5"));
    assert_eq!((before.len(), after.len()), (2, 2));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.len(), after.len()), (4, 4));
        assert_eq!(before[3], after[3]);
        assert_ne!(before[2], after[2]);
    }
    assert!(sections[2].contains("win-2025-a (26100.3194)"), "{printed}");
    assert!(sections[4].contains("10.0.26100.3194"), "{printed}");
}
