//! Layers of which some have hives and others have none: all get all of them.

use std::collections::BTreeMap;

use predicates::str::contains;
use serde_json::json;
use wincimg_layer::{LayerReader, Limits};
use wincimg_registry::RegistryData;
use wincimg_testkit::layout::layers_in;
use wincimg_testkit::test_bases::delta_hive;

use super::*;

const SERVICE: &str = r"HKLM\SYSTEM\ControlSet001\Services\own";

/// The entries of each layer in a layout, with their content.
fn contents(site: &Site, layout: &str) -> Vec<BTreeMap<String, Vec<u8>>> {
    let read = |path: &std::path::PathBuf| {
        let mut reader =
            LayerReader::new(std::fs::File::open(path).unwrap(), Limits::default()).unwrap();
        let mut entries = BTreeMap::new();
        while let Some(entry) = reader.next_entry().unwrap() {
            let content = reader.content().unwrap();
            let twin = entries.insert(entry.path.clone(), content);
            assert_eq!(twin, None, "{} twice", entry.path);
        }
        entries
    };
    layers_in(&site.path(layout)).iter().map(read).collect()
}

fn hives(layer: &BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    let names = layer.keys().filter_map(|path| path.strip_prefix("Hives/"));
    names.collect()
}

const ALL: [&str; 5] = [
    "DefaultUser_Delta", "Sam_Delta", "Security_Delta", "Software_Delta", "System_Delta",
];

fn app(tar: &mut LayerTar) {
    tar.folder("Files/app", Some(FOLDER))
        .file("Files/app/a.txt", b"a", Some(FILE));
}

#[test]
fn layers_without_hives_get_those_without_changes_where_another_has_some() {
    let site = site();
    let lower = layer(|tar| {
        tar.folder("Hives", None);
        app(tar);
    });
    let change = || set(SERVICE, "Start", RegistryData::dword(2));
    let image = on(&base(OLD), &lower, "COPY a.txt C:/app/");
    let image = on(&image, upper_layer(&[change()]).tar(), "RUN reg add");
    // The third has no `Hives` directory at all.
    let upper = layer(|tar| {
        tar.folder("Files/more", Some(FOLDER));
    });
    let image = on(&image, &upper, "RUN mkdir C:\\more");
    put(&site, "app", "1.4", image);

    update(&site, &[])
        .assert()
        .stdout(contains("layer 2, 3, 4"));
    let (code, report, told) = report_of(&mut update(&site, &["--output", "oci:moved"]));
    assert_eq!(code, 0, "{told}");
    assert_contains!(told, "layer 2 (COPY a.txt C:/app/) gets hives");
    let own = &report["updates"][0]["layers"];
    assert_eq!(own[0]["added_hives"].as_array().unwrap().len(), 5);
    assert_eq!(own[1]["added_hives"].as_array().unwrap().len(), 4);

    let layers = contents(&site, "moved");
    for layer in &layers[1..] {
        assert_eq!(hives(layer), ALL);
    }
    assert_eq!(layers[1]["Files/app/a.txt"], b"a");
    assert!(layers[3].contains_key("Files/more"));
    assert_eq!(layers[2]["Hives/System_Delta"], delta_hive(&[change()]));
    // Its digests match, and the change is still there.
    site.with_no_bases(&["inspect", "oci:moved", "--registry"])
        .assert()
        .success()
        .stdout(contains("own"));

    update(&site, &["--push"]).assert().success();
    let again = json_of(&mut update(&site, &["--output", "oci:again"]));
    assert_eq!(again["updates"][0]["status"], "up_to_date");
}

#[test]
fn layers_stay_as_they_are_if_none_has_hives_or_all_have_them() {
    let site = site();
    let image = on(&base(OLD), layer(app), "COPY a.txt C:/app/");
    put(&site, "app", "1.4", image);
    let report = json_of(&mut update(&site, &["--output", "oci:moved"]));
    assert_eq!(report["updates"][0]["layers"][0]["added_hives"], json!([]));
    assert_eq!(hives(&contents(&site, "moved")[1]), [""; 0]);
}
