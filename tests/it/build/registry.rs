//! Registry changes of recipes, read by `inspect` from the built image.

use serde_json::json;

use super::host_process::files_of;
use crate::failure::{Failure, note, says};
use crate::site::{Site, answer_of, json_of, stderr};

#[test]
fn registry_changes_go_where_windows_looks_and_create_nothing_by_deleting() {
    let site = Site::new();
    let recipe = |more: &str| {
        site.write(
            "recipe.toml",
            format!("name = \"app\"\nbase = \"nanoserver\"\n{more}"),
        );
        site.build(".")
            .args([
                "--host-build", "17763.973", "--tag", "1", "--format", "json",
            ])
            .args(["--output", "oci:layout"])
            .output()
            .unwrap()
    };
    let toolbar = "[[registry]]\nkey = 'HKLM\\SOFTWARE\\Vendor\\Toolbar'\ndelete = true\n";
    let refused = recipe(toolbar);
    assert_eq!(refused.status.code(), Some(2));
    Failure::of(&refused)
        .is("recipe/registry", &[r"HKLM\SOFTWARE\Vendor"])
        .advises(&[r"[[registry]] key = 'HKLM\SOFTWARE\Vendor'"]);

    let named = "[[registry]]\nkey = 'HKLM\\SOFTWARE\\Vendor'\n";
    let linked = "[[registry]]\nkey = 'HKLM\\SOFTWARE\\WOW6432Node\\Policies\\Acme'\nvalues = { Empty = [] }\n";
    let built = recipe(&format!("{named}{toolbar}{linked}"));
    let printed = stderr(&built);
    assert!(built.status.success(), "{printed}");
    let linked = r"HKLM\SOFTWARE\WOW6432Node\Policies";
    says(&printed, &note(&[linked, r"HKLM\SOFTWARE\Policies"]));
    let (_, found) = answer_of(&mut site.with_no_bases(&["inspect", "oci:layout:1", "--registry"]));
    let layer = &found["images"][0]["registry"]["layers"][0];
    let policies = r"HKLM\SOFTWARE\Policies\Acme";
    assert_eq!(
        layer["changes"],
        json!([
            {"action": "set_value", "key": policies, "name": "Empty", "type": "multi_sz", "value": []},
            {"action": "delete_key", "key": r"HKLM\SOFTWARE\Vendor\Toolbar"},
        ])
    );
    assert_eq!(layer["other_hives"], json!([]));
}

#[test]
fn the_pause_image_has_what_kubernetes_own_has_in_all_five_hives() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "--tag", "1"]);
    let built = json_of(command.args(["--output", "oci:layout"]));
    let (_, found) = answer_of(&mut site.with_no_bases(&["inspect", "oci:layout:1", "--registry"]));
    let changes = &found["images"][0]["registry"]["layers"][0]["changes"];
    let rpc = r"HKLM\SOFTWARE\Microsoft\Rpc";
    for expected in [
        json!({"action": "set_value", "key": rpc, "name": "DCOM Protocols",
            "type": "multi_sz", "value": []}),
        json!({"action": "set_value", "key": rpc, "name": "EpMapDisallowedProtocols",
            "type": "sz", "value": "ncacn_ip_tcp"}),
        json!({"action": "set_value", "key": r"HKLM\SOFTWARE\Microsoft\Ole", "name": "EnableDCOM",
            "type": "sz", "value": "N"}),
        json!({"action": "delete_key", "key": r"HKLM\SYSTEM\ControlSet001\Services\DiagTrack"}),
    ] {
        let mut changes = changes.as_array().unwrap().iter();
        assert!(
            changes.any(|change| *change == expected),
            "{expected}: {found}"
        );
    }
    let layers = built["images"][0]["layers"].as_array().unwrap();
    let files = files_of(&site, layers.last().unwrap());
    let mut hives: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    hives.retain(|path| path.starts_with("Hives/"));
    hives.sort_unstable();
    assert_eq!(
        hives,
        [
            "Hives/DefaultUser_Delta",
            "Hives/Sam_Delta",
            "Hives/Security_Delta",
            "Hives/Software_Delta",
            "Hives/System_Delta",
        ]
    );
    let shim = wincimg_images::shim::EXECUTABLE;
    let programs = files.iter().filter(|(_, bytes)| bytes == shim);
    let programs: Vec<&str> = programs.map(|(path, _)| path.as_str()).collect();
    let expected = [
        "Files/wincimg/shim.exe",
        "Files/Windows/System32/wincat.exe",
    ];
    assert_eq!(programs, expected);
}
