//! Images of an index: compared, and selected.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wincimg_oci::document::{Document, Index, ManifestFormat, Verbatim};
use wincimg_testkit::test_bases::LayerTar;
use wincimg_testkit::windows_base::{StandIn, put_index};

use super::{Images, app, bottom, image, patch, rewrite, run};
use crate::failure::Fails;
use crate::site::block_on;

#[test]
fn images_of_two_indexes_are_compared_build_by_build() {
    let images = Images::new();
    for (name, layer, builds) in [
        ("one", patch(), ["17763.1040", "20348.2402"]),
        ("two", rewrite(), ["20348.2500", "26100.1"]),
    ] {
        let entries = builds.map(|build| image(build, vec![bottom(), app(), layer.clone()]));
        block_on(async {
            let sink = images.sink(name).await;
            put_index(ManifestFormat::Docker, &entries, &sink, Some("1")).await
        });
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["images"].as_array().unwrap().len(), 1);
    assert_eq!(
        found["images"][0]["before"]["os_version"],
        "10.0.20348.2402"
    );
    assert_eq!(found["images"][0]["after"]["os_version"], "10.0.20348.2500");
    assert_eq!(
        found["only_before"],
        json!(["windows/amd64:10.0.17763.1040"])
    );
    assert_eq!(found["only_after"], json!(["windows/amd64:10.0.26100.1"]));
    assert_eq!(found["identical"], false);
    for reading in [&["ls", "oci:one"][..], &["base", "show", "oci:one"]] {
        let output = images.command(reading).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_contains!(
            errors,
            "has 2 images for Windows",
            "choose one with --platform"
        );
    }
}

#[test]
fn annotations_of_two_indexes_are_compared() {
    let images = Images::new();
    let entry = image("17763.1040", vec![bottom()]);
    for (name, team) in [("one", "web"), ("two", "api")] {
        block_on(async {
            let sink = images.sink(name).await;
            entry.put_blobs(&sink, |_| true).await;
            sink.put_document(&entry.document()).await.unwrap();
            let mut descriptor = entry.image.index_entry();
            descriptor.annotations = BTreeMap::from([("of".to_owned(), team.to_owned())]);
            let mut index = Index::new(ManifestFormat::Docker, vec![descriptor]);
            let annotations = json!({"team": team, "same": "1"});
            index.other.insert("annotations".to_owned(), annotations);
            let index = Document::Index(Verbatim::new(index).unwrap());
            sink.publish(&index, Some("1")).await.unwrap();
        });
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], false);
    let changes = [
        "annotations team",
        "windows/amd64:10.0.17763.1040 annotations of",
    ]
    .map(
        |setting| json!({"setting": setting, "change": "changed", "before": "web", "after": "api"}),
    );
    assert_eq!(found["index"], json!(changes));
    let text = images.text(&["diff", "oci:one", "oci:two"]);
    assert_contains!(text, "~ annotations team: web → api", "identical");
    let same = images.json(&["diff", "oci:one", "oci:one"]);
    assert_eq!(same["identical"], true);
    assert_eq!(same["index"], json!([]));
}

#[test]
fn features_and_attestations_of_an_image_in_two_indexes_are_compared() {
    let images = Images::new();
    let entry = image("17763.1040", vec![bottom()]);
    let plain = entry.image.index_entry();
    let mut featured = plain.clone();
    featured.platform.as_mut().unwrap().os_features = vec!["win32k".to_owned()];
    let mut statement = plain.clone();
    statement.platform = None;
    let about = plain.digest.to_string();
    let marks = [
        ("vnd.docker.reference.type", "attestation-manifest"),
        ("vnd.docker.reference.digest", &about),
    ];
    statement.annotations = marks.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    for (name, listed) in [("one", vec![plain]), ("two", vec![featured, statement])] {
        block_on(async {
            let sink = images.sink(name).await;
            entry.put_blobs(&sink, |_| true).await;
            sink.put_document(&entry.document()).await.unwrap();
            let index = Index::new(ManifestFormat::Docker, listed);
            let index = Document::Index(Verbatim::new(index).unwrap());
            sink.publish(&index, Some("1")).await.unwrap();
        });
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], false);
    let row = |name: &str, after: Value| {
        let setting = format!("windows/amd64:10.0.17763.1040 {name}");
        json!({"setting": setting, "change": "added", "before": null, "after": after})
    };
    let expected = [
        row("attestations", json!(1)),
        row("os.features", json!(["win32k"])),
    ];
    assert_eq!(found["index"], json!(expected));
}

/// An index whose entries state this version, whatever the configurations have; `BuildKit` writes
/// none.
fn put_index_with(images: &Images, name: &str, entries: &[StandIn], stated: Option<&str>) {
    block_on(async {
        let sink = images.sink(name).await;
        let mut listed = Vec::new();
        for image in entries {
            image.put_blobs(&sink, |_| true).await;
            sink.put_document(&image.document()).await.unwrap();
            let mut entry = image.image.index_entry();
            entry.platform.as_mut().unwrap().os_version = stated.map(str::to_owned);
            listed.push(entry);
        }
        let index = Verbatim::new(Index::new(ManifestFormat::Docker, listed)).unwrap();
        let index = Document::Index(index);
        sink.publish(&index, Some("1")).await.unwrap();
    });
}

#[test]
fn an_image_without_a_platform_is_named_as_such() {
    let images = Images::new();
    let mut signature = image("17763.1040", vec![bottom()]);
    let without_platform = signature.image.edit_config(|config| {
        config.os.clear();
        config.architecture.clear();
        config.os_version = None;
    });
    signature.image = without_platform.unwrap();
    images.put("signature", &signature);
    let told = |arguments: &[&str]| {
        let output = images.command(arguments).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let errors = told(&["ls", "oci:signature"]);
    assert_contains!(errors, "oci:signature has no platform: it is a signature");
    let errors = told(&["ls", "oci:signature", "--platform", "windows/amd64"]);
    assert_contains!(errors, "has no image for windows/amd64: it has none");
}

#[test]
fn images_for_which_an_index_states_one_version_are_named_by_digest() {
    let images = Images::new();
    let entries = ["17763.1040", "20348.2402"].map(|build| image(build, vec![bottom()]));
    put_index_with(&images, "both", &entries, Some("10.0.17763.1040"));
    let mut command = images.command(&["digest", "oci:both"]);
    command.args(["--platform", "windows/amd64:10.0.17763.1040"]);
    let errors = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert_contains!(errors, "name one by its digest: oci:both:sha256:");
}

#[test]
fn images_of_one_platform_are_told_apart_by_their_digests() {
    let images = Images::new();
    let entries = [vec![bottom()], vec![bottom(), app()]];
    let entries = entries.map(|tars| image("17763.1040", tars));
    put_index_with(&images, "both", &entries, Some("10.0.17763.1040"));
    let errors = images.command(&["ls", "oci:both"]).tells(2);
    for entry in entries {
        let named = format!("windows/amd64:10.0.17763.1040 ({})", entry.image.digest());
        assert_contains!(errors, &named);
    }
}

#[test]
fn ls_warns_of_a_hard_link_without_its_file() {
    let images = Images::new();
    let mut tar = LayerTar::default();
    tar.hard_link("Files/app/a.txt", "Files/app/none.txt");
    images.put("one", &image("17763.1040", vec![bottom(), tar.tar()]));
    let output = run(&mut images.command(&["ls", "oci:one"]));
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = r"layer 2 has the hard link C:\app\a.txt without its file";
    assert_contains!(errors, expected);
}

#[test]
fn a_version_that_only_the_configuration_has_selects_an_image() {
    let images = Images::new();
    let entries = ["17763.1040", "20348.2402"].map(|build| image(build, vec![bottom()]));
    put_index_with(&images, "both", &entries, None);
    let advised = images.command(&["ls", "oci:both"]).output().unwrap();
    let platform = "windows/amd64:10.0.17763.1040";
    let errors = String::from_utf8_lossy(&advised.stderr);
    assert_contains!(errors, &format!("--platform {platform}"));

    let chosen = ["--platform", platform];
    let listed = images.json(&[&["ls", "oci:both"][..], &chosen].concat());
    assert_eq!(listed["platform"], platform);
    let versions = |found: &Value| -> Vec<Value> {
        let found = found["images"].as_array().unwrap().iter();
        found.map(|image| image["os_version"].clone()).collect()
    };
    let inspected = images.json(&[&["inspect", "oci:both"][..], &chosen].concat());
    assert_eq!(versions(&inspected), ["10.0.17763.1040"]);
    images.json(&[&["copy", "oci:both:1", "oci:one:1"][..], &chosen].concat());
    let copied = images.json(&["inspect", "oci:one"]);
    assert_eq!(versions(&copied), ["10.0.17763.1040"]);

    let digest = images.json(&[&["digest", "oci:both"][..], &chosen].concat());
    assert_eq!(digest["digest"], listed["digest"]);
    let windows = ["digest", "oci:both", "--platform", "windows/amd64"];
    let errors = images.command(&windows).tells(2);
    assert_contains!(errors, &format!("--platform {platform}"));

    let absent = ["--platform", "windows/amd64:26100"];
    for command in [
        &["ls", "oci:both"][..],
        &["digest", "oci:both"],
        &["inspect", "oci:both"],
        &["copy", "oci:both:1", "oci:two:1"],
    ] {
        let refused = images.command(&[command, &absent].concat()).output();
        assert_eq!(refused.unwrap().status.code(), Some(1), "{command:?}");
    }
}
