//! The replayed Patch Tuesday of `docs/tutorial/patch-tuesday.sh`, on loopback.

use std::path::Path;

use wincimg_demo::add_base_images;
use wincimg_windows::version::WindowsVersion;

use super::ROOT;
use super::stage::Stage;
use crate::site::copy_folder;

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
        for repository in ["windows/nanoserver", "dotnet/framework/aspnet"] {
            add_base_images(stored, repository, &VERSIONS).unwrap();
        }
    });
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
    for key in [
        "image-newer-revision",
        "actions/runner-images/issues/11582",
        "update the host to 26100.3194 with KB5051987",
    ] {
        assert!(lagging.contains(key), "{key}: {lagging}");
    }
    assert!(sections[2].contains("win-2025-a (26100.3194)"), "{printed}");
    assert!(sections[4].contains("10.0.26100.3194"), "{printed}");
}
