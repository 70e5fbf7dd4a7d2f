//! Rebased images: their own layers are reused, and the result is that of a build.

use predicates::str::contains;
use serde_json::json;
use wincimg_registry::RegistryData;

use super::*;
use crate::build::joined::{add_linux, platforms, published};
use crate::failure::note;
use crate::site::answer_of;

/// Builds `pause` with a fixed time, so that builds on both bases write the same layer.
fn pause(site: &Site, host: &str, name: &str) -> Value {
    let mut command = site.push("pause");
    command
        .args(["--host-build", host, "--name", name, "--tag", "1.4"])
        .env("SOURCE_DATE_EPOCH", "1600000000");
    json_of(&mut command)
}

#[test]
fn a_moved_image_is_what_a_build_on_the_new_base_makes() {
    let site = site();
    let built = pause(&site, "17763.973", "app");
    let again = pause(&site, "17763.1158", "other");
    let before = site.requests();
    let report = json_of(&mut update(&site, &["--push"]));
    let image = image_of_report(&report);
    assert_eq!(
        image["digest"],
        image_of_report(&again)["digest"],
        "byte for byte"
    );
    assert_eq!(image["engine"], "update");
    assert_eq!(image["os_version"], NEW);
    assert_eq!(image["layers"][1]["from"], "image");
    assert_eq!(
        image["layers"][1]["digest"],
        image_of_report(&built)["layers"][1]["digest"]
    );
    let reported = &report["updates"][0];
    assert_eq!(reported["status"], "moves");
    assert_eq!(reported["on"]["found_by"], "named");
    assert_eq!(reported["on"]["os_version"], OLD);
    assert_eq!(reported["layers"][0]["compared"], "bases");
    assert_eq!(reported["layers"][0]["instruction"], "wincimg build pause");

    // Its own layer is in the same position.
    let own = image["layers"][1]["digest"].as_str().unwrap();
    let own = own.trim_start_matches("sha256:");
    let written = site.writes_since(before);
    assert_eq!(written.iter().find(|it| it.contains(own)), None);

    let before = site.requests();
    let again = json_of(&mut update(&site, &["--push"]));
    assert_eq!(again["updates"][0]["status"], "up_to_date", "{again}");
    assert_eq!(site.writes_since(before), [""; 0]);
    update(&site, &["--check"]).assert().code(0);
}

#[test]
fn what_is_known_of_a_layer_is_not_read_again_and_folders_of_its_own_need_no_look() {
    let site = site();
    let app = layer(|tar| {
        tar.folder("Files/app", Some(FOLDER))
            .file("Files/app/app.exe", b"MZ", Some(FILE));
    });
    let image = on(&base(OLD), app, "COPY app C:/app");
    let (own, _) = image.layers[1].clone();
    let windows = image.layers[0].0.clone();
    put(&site, "app", "1.4", image);
    let read = |from: usize, digest: &str| {
        let requests = site.requests_since(from);
        let read = requests
            .iter()
            .filter(|it| it.starts_with("GET") && it.contains(digest));
        read.count()
    };
    let start = site.requests();
    let (code, report) = answer_of(&mut update(&site, &["--check"]));
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["updates"][0]["status"], "moves", "{report}");
    assert_eq!(report["updates"][0]["layers"][0]["compared"], "folders");
    assert_eq!(read(start, own.digest.as_ref()), 1);
    let start = site.requests();
    let report = json_of(&mut update(&site, &["--push"]));
    let reported = &report["updates"][0];
    assert_eq!(reported["layers"][0]["compared"], "folders");
    assert_eq!(reported["layers"][0]["instruction"], "COPY app C:/app");
    assert_eq!(reported["on"]["found_by"], "layers");
    assert_eq!(read(start, own.digest.as_ref()), 0);
    assert_eq!(read(start, windows.digest.as_ref()), 0);
    let moved = config(&site, &format!("{}/app:1.4", site.host()));
    assert_eq!(
        moved["env"],
        json!([format!("WINDOWS={NEW}")]),
        "the base's"
    );
    assert_eq!(moved["os_version"], NEW);
}

#[test]
fn what_is_the_same_in_both_bases_may_be_touched() {
    let service = r"HKLM\SYSTEM\ControlSet001\Services\own";
    let delta = upper_layer(&[set(service, "Start", RegistryData::dword(2))]);
    let reported = verdict(delta.tar());
    assert_eq!(
        reported["obstacles"],
        json!([]),
        "one hive without the other's values"
    );
    let reported = verdict(layer(|tar| {
        tar.folder("Files/Windows", Some(FOLDER))
            .folder("Files/Windows/System32", Some(FOLDER))
            .file("Files/Windows/System32/same.dll", b"other", Some(FILE))
            .file("Files/Windows/System32/.wh.cmd.exe", b"", None)
            .file("Files/Windows/System32/own.dll", b"x", Some(FILE))
            .file("Files/Windows/System32/own.dll:stream", b"s", None)
            .hard_link("Files/own.dll", "Files/Windows/System32/own.dll")
            // No content of the new base is hidden.
            .file(
                "Files/Windows/System32/serviced.dll",
                NEW.as_bytes(),
                Some(FILE),
            );
    }));
    assert_eq!(reported["obstacles"], json!([]));
    assert_eq!(reported["layers"][0]["compared"], "bases");
}

#[test]
fn an_index_keeps_what_is_for_others_and_a_new_tag_leaves_the_old_one() {
    let site = site();
    add_linux(&site);
    let mut first = site.build("pause");
    first
        .args(["--host-build", "17763.973", "--name", "app", "--tag", "1.4"])
        .args(["--registry", &site.host(), "--push", "--join"]);
    first.assert().success();
    let base_digest = "org.opencontainers.image.base.digest";
    let mut annotated = published(&site);
    annotated["manifests"][1]["annotations"] = json!({"team": "db", base_digest: "old"});
    let media_type = annotated["mediaType"].as_str().unwrap();
    let bytes = annotated.to_string().into_bytes().into();
    site.registry
        .with(|stored| stored.add_manifest("app", "1.4", media_type, bytes));
    let report = json_of(&mut update(&site, &["--push"]));
    assert_eq!(report["index"]["kept"], json!(["linux/amd64"]));
    let index = published(&site);
    assert_eq!(index["annotations"], json!({"team": "web"}));
    let annotations = &index["manifests"][1]["annotations"];
    assert_eq!(annotations["team"], "db");
    let base = annotations[base_digest].as_str().unwrap();
    assert!(base.starts_with("sha256:"), "{annotations}");
    assert_eq!(
        platforms(&index),
        ["linux", format!("windows {NEW}").as_str(), "unknown"]
    );
    let report = json_of(&mut update(
        &site,
        &["--push", "--tag", "1.5", "--no-index"],
    ));
    let reference = image_of_report(&report)["reference"].as_str().unwrap();
    assert!(
        reference.ends_with(&format!("app:1.5-{NEW}")),
        "{reference}"
    );
    assert_eq!(published(&site), index);
    // The index under a new tag is for others too, and once more.
    for _ in 0..2 {
        let report = json_of(&mut update(&site, &["--push", "--tag", "1.6"]));
        assert_eq!(report["index"]["kept"], json!(["linux/amd64"]));
        let copy = site.manifest("app", "1.6");
        assert_eq!(platforms(&copy), platforms(&index));
        assert_eq!(copy["annotations"], index["annotations"]);
    }
    let mut to_file = update(&site, &["--output", "oci:layout"]);
    to_file.assert().success().stderr(note(&["linux/amd64"]));
}

#[test]
fn hosts_of_several_builds_get_an_index_with_an_image_each() {
    let site = site();
    let app = layer(|tar| {
        tar.folder("Files/app", None)
            .file("Files/app/a", b"a", None);
    });
    put(&site, "app", "1.4", on(&base(OLD), app, "COPY a C:/app/"));
    let mut command = update(&site, &["--host-build", "20348.2402", "--push"]);
    let (_, report, said) = report_of(&mut command);
    assert_contains!(said, "app:1.4 will no longer have 17763.973:");
    assert_eq!(report["images"].as_array().unwrap().len(), 2);
    assert_eq!(
        platforms(&published(&site)),
        ["windows 10.0.20348.2402", format!("windows {NEW}").as_str()]
    );
    let layers = |which: usize| report["images"][which]["layers"][1]["digest"].clone();
    assert_eq!(layers(0), layers(1), "one layer for both");
}

#[test]
fn it_goes_to_a_layout_too_and_without_a_place_only_says() {
    let site = site();
    let app = layer(|tar| {
        tar.folder("Files/app", None)
            .file("Files/app/a", b"a", None);
    });
    let image = on(&base(OLD), app, "COPY a C:/app/");
    let before = digest(&image.image);
    put(&site, "app", "1.4", image);
    update(&site, &["--format", "json"])
        .assert()
        .code(0)
        .stdout(contains("\"status\": \"moves\""))
        .stderr(note(&["--push"]));
    let reference = format!("{}/app:1.4", site.host());
    assert_eq!(config(&site, &reference)["digest"], before.as_str());
    let report = json_of(&mut update(&site, &["--output", "oci:layout"]));
    assert_eq!(image_of_report(&report)["pushed"], false);
    assert_eq!(config(&site, "oci:layout")["os_version"], NEW);
}

#[test]
fn documents_are_next_to_an_updated_image_too() {
    let site = site();
    let built = pause(&site, "17763.973", "app");
    let words = ["--push", "--sbom", "spdx", "--provenance"];
    let report = json_of(&mut update(&site, &words));
    let image = image_of_report(&report);
    assert_eq!(
        each(&image["documents"], "document"),
        ["SPDX", "provenance"]
    );
    let reference = image["reference"].as_str().unwrap();
    let bill = site.command(&["inspect", reference, "--sbom"]).output();
    let bill: Value = serde_json::from_slice(&bill.unwrap().stdout).unwrap();
    let text = bill.to_string();
    // The rebased layer, and the new Windows version.
    assert_contains!(text, "Files/wincimg/shim.exe", "Contains update KB4549949");
    let printed = site
        .command(&["inspect", reference, "--provenance"])
        .output();
    let printed: Value = serde_json::from_slice(&printed.unwrap().stdout).unwrap();
    let source = &printed["predicate"]["buildDefinition"]["externalParameters"]["source"];
    let old = image_of_report(&built)["digest"].as_str().unwrap();
    assert_eq!(source["name"], "image");
    assert_eq!(
        source["digest"]["sha256"],
        old.strip_prefix("sha256:").unwrap()
    );
}

/// Publishes an index of images for two builds under `app:1.4`, with an attestation of each, and
/// returns the report.
fn two_attested(site: &Site, host: &str) -> Value {
    let mut command = site.push("pause");
    command.args(["--host-build", host, "--host-build", "20348.2402"]);
    let built = json_of(command.args(["--name", "app", "--tag", "1.4"]));
    let mut index = published(site);
    let entries = index["manifests"].as_array_mut().unwrap();
    for (number, image) in each(&built["images"], "digest").iter().enumerate() {
        entries.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": format!("sha256:{}", number.to_string().repeat(64)),
            "size": 2,
            "platform": {"os": "unknown", "architecture": "unknown"},
            "annotations": {"vnd.docker.reference.digest": image},
        }));
    }
    publish(site, &index);
    built
}

/// The image of a version in a report.
fn of_version<'r>(report: &'r Value, version: &str) -> &'r Value {
    let mut images = report["images"].as_array().unwrap().iter();
    images.find(|it| it["os_version"] == version).unwrap()
}

pub(super) fn publish(site: &Site, index: &Value) {
    let media_type = index["mediaType"].as_str().unwrap();
    let bytes = index.to_string().into_bytes().into();
    site.registry
        .with(|stored| stored.add_manifest("app", "1.4", media_type, bytes));
}

/// `wincimg image update HOST/app:1.4 --push` for two builds.
fn update_two(site: &Site, more: &[&str]) -> assert_cmd::Command {
    let image = format!("{}/app:1.4", site.host());
    let mut command = site.with_bases(&["update", &image, "--push"]);
    command.args(["--host-build", "20348.2402", "--host-build", "17763.1158"]);
    command.args(more);
    command
}

#[test]
fn an_image_that_is_up_to_date_keeps_what_is_about_it() {
    let site = site();
    let built = two_attested(&site, "17763.973");
    let report = json_of(&mut update_two(&site, &["--sbom", "spdx", "--provenance"]));
    let index = published(&site);
    assert_eq!(
        platforms(&index),
        [
            "windows 10.0.20348.2402",
            format!("windows {NEW}").as_str(),
            "unknown"
        ]
    );
    let about = &index["manifests"][2]["annotations"]["vnd.docker.reference.digest"];
    assert_eq!(about, &of_version(&built, "10.0.20348.2402")["digest"]);

    let kept = of_version(&report, "10.0.20348.2402");
    // This run did not make it.
    assert_eq!(each(&kept["documents"], "document"), ["SPDX"]);
    let moved = of_version(&report, NEW);
    assert_eq!(
        each(&moved["documents"], "document"),
        ["SPDX", "provenance"]
    );
    let reference = moved["reference"].as_str().unwrap();
    let mut inspect = site.command(&["inspect", reference, "--provenance"]);
    let printed: Value = serde_json::from_slice(&inspect.output().unwrap().stdout).unwrap();
    let source = &printed["predicate"]["buildDefinition"]["externalParameters"]["source"];
    let old = of_version(&built, OLD)["digest"].as_str().unwrap();
    let digest = source["digest"]["sha256"].as_str().unwrap();
    assert_eq!(format!("sha256:{digest}"), old);

    // A new tag has the attestation, too.
    json_of(&mut update_two(&site, &["--tag", "1.5"]));
    assert_eq!(platforms(&site.manifest("app", "1.5")), platforms(&index));
}

#[test]
fn a_missing_sbom_is_attached_to_an_image_that_is_up_to_date() {
    let site = site();
    two_attested(&site, "17763.1158");
    // An order that another tool gave it.
    let mut index = published(&site);
    index["manifests"].as_array_mut().unwrap().reverse();
    publish(&site, &index);
    let report = json_of(&mut update_two(&site, &["--sbom", "spdx", "--provenance"]));
    for image in report["images"].as_array().unwrap() {
        assert_eq!(image["up_to_date"], true, "{image}");
        assert_eq!(each(&image["documents"], "document"), ["SPDX"], "{image}");
    }
    assert_eq!(published(&site), index, "it is not written again");
    let again = json_of(&mut update_two(&site, &["--provenance"]));
    assert_eq!(again["images"], json!([]));
}
