//! Artifacts that are not images, images of other systems, and damaged ones.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;
use wincimg_oci::document::{Document, Image, Index, Manifest, Platform, Verbatim};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_windows::shutdown::edits;

use super::*;

use crate::failure::{Fails, line, says};
use crate::site::each;

fn linux() -> StandIn {
    let platform = Platform {
        os: "linux".to_owned(),
        os_version: None,
        ..Platform::windows("")
    };
    StandIn {
        image: Image::empty(ManifestFormat::Oci, platform).unwrap(),
        layers: Vec::new(),
    }
    .files(&vec![file("bin/sh", "#!")])
}

#[test]
fn an_image_for_linux_is_shown_without_a_registry() {
    let layout = LayoutImage::new(&linux());
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--registry"]));
    assert_eq!(code, 0);
    let image = &found["images"][0];
    assert_eq!(image["os"], "linux");
    assert_eq!(image["layers"][0]["reason"], "not_asked");
    assert_eq!(image["shutdown"], json!(null));
    assert_eq!(image["registry"], json!(null));
    assert_contains!(printed, "linux/amd64");
    inspect(&layout.place, &["--format", "reg"])
        .assert()
        .code(2)
        .stdout("");
}

/// A layout with an index as multi-platform builds create it: images for two systems, an
/// attestation of one, an entry that is not an image, and one whose manifest is missing.
fn mixed() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("oci:{}:app", folder.path().display());
    block_on(async {
        let sink = sink(&place, &no_registry()).await;
        let (windows, linux) = (windows().files(&deltas(&edits(20))), linux());
        for image in [&windows, &linux] {
            image.put_blobs(&sink, |_| true).await;
            sink.put_document(&image.document()).await.unwrap();
        }
        let artifact = Verbatim::new(Manifest::new(
            ManifestFormat::Oci,
            Descriptor::new("application/vnd.example.chart", sha256(b"{}"), 2),
            Vec::new(),
        ))
        .unwrap();
        let artifact = Document::Manifest(Box::new(artifact));
        sink.put_document(&artifact).await.unwrap();
        let mut statement = linux.image.index_entry();
        let about = linux.image.digest().to_string();
        let marks = [
            ("vnd.docker.reference.type", "attestation-manifest"),
            ("vnd.docker.reference.digest", &about),
        ];
        statement.annotations = marks.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let mut unmarked = windows.image.index_entry();
        unmarked.platform = None;
        let lost = Descriptor::new(artifact.media_type(), sha256(b"lost"), 4)
            .with_platform(Platform::windows("10.0.20348.1"));
        let entries = vec![
            unmarked,
            linux.image.index_entry(),
            statement,
            artifact.descriptor(),
            lost,
        ];
        let mut index = Index::new(ManifestFormat::Oci, entries);
        let title = json!({ "org.opencontainers.image.title": "Mixed" });
        index.other.insert("annotations".to_owned(), title);
        let index = Verbatim::new(index).unwrap();
        sink.publish(&Document::Index(index), Some("app"))
            .await
            .unwrap();
    });
    (folder, place)
}

#[test]
fn of_an_index_the_images_for_windows_are_shown_and_the_rest_is_named() {
    let (_folder, place) = mixed();
    let (code, found, printed) = report_of(&mut inspect(&place, &[]));
    assert_eq!(code, 3);
    let lost = sha256(b"lost").to_string();
    says(&printed, &line(&["error: ", &lost]));
    assert_eq!(found["images"].as_array().unwrap().len(), 1);
    assert_eq!(found["images"][0]["shutdown"]["seconds"], 20);
    let kinds = each(&found["others"], "kind");
    assert_eq!(kinds, ["image", "attestation", "artifact", "unreadable"]);
    assert_eq!(found["others"][0]["platform"], "linux/amd64");
    assert_eq!(found["others"][1]["image"], found["others"][0]["digest"]);
    let title = "org.opencontainers.image.title";
    assert_eq!(found["annotations"][title], "Mixed");
    inspect(&place, &[])
        .assert()
        .stdout(line(&["annotations", title, "= Mixed"]));
    let kinds = ["linux/amd64", "1 attestation", "1 artifact", "1 unreadable"];
    inspect(&place, &[]).assert().stdout(line(&kinds));
    let (code, found, _) = report_of(&mut inspect(&place, &["--platform", "linux/amd64"]));
    assert_eq!((code, &found["images"][0]["os"]), (0, &json!("linux")));
}

#[test]
fn what_is_no_image_is_refused_by_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("oci:{}", folder.path().display());
    block_on(async {
        let sink = sink(&place, &no_registry()).await;
        for (tag, media_type) in [
            ("chart", "application/vnd.cncf.helm.config.v1+json"),
            ("bytes", "application/octet-stream"),
        ] {
            let config = Descriptor::new(media_type, sha256(b"{}"), 2);
            let bytes = Bytes::from_static(b"{}");
            sink.put_blob(&config, &bytes, &Silent).await.unwrap();
            let other = Manifest::new(ManifestFormat::Oci, config, Vec::new());
            let other = Document::Manifest(Box::new(Verbatim::new(other).unwrap()));
            sink.publish(&other, Some(tag)).await.unwrap();
        }
    });
    for (tag, kind) in [("chart", "vnd.cncf.helm.config"), ("bytes", "octet-stream")] {
        let place = format!("{place}:{tag}");
        inspect(&place, &[]).fails(3, "image/not-an-image", &[kind]);
    }
}

/// As old clients pushed it, and Docker and containerd read it.
#[test]
fn an_image_whose_configuration_has_an_unspecific_type_is_one() {
    let mut image = windows().files(&deltas(&edits(20)));
    let manifest = image.image.manifest().edit(|manifest| {
        manifest.config.media_type = "application/octet-stream".to_owned();
    });
    let config = image.image.config().clone();
    image.image = Image::new(manifest.unwrap(), config).unwrap();
    let layout = LayoutImage::new(&image);
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!(code, 0, "{printed}");
    assert_eq!(found["images"][0]["shutdown"]["seconds"], 20);
    wincimg("check-compat")
        .args(["--host-build", "17763.1040", &layout.place])
        .assert()
        .success();
}

#[test]
fn places_without_an_image_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    fs::write(folder.path().join("no.tar"), "no archive").unwrap();
    for place in [
        format!("oci:{path}"),
        format!("docker-archive:{path}/no.tar"),
        format!("docker-archive:{path}/missing.tar"),
    ] {
        let printed = contains(path.to_string());
        inspect(&place, &[])
            .assert()
            .code(3)
            .stdout("")
            .stderr(printed);
    }
    for place in ["oci:", "a b"] {
        inspect(place, &[]).assert().code(2).stdout("");
    }
    // Other files have arbitrary bytes in place of a tar's names; they are not printed.
    let text = format!(
        "{{\n{}",
        "\"kernelVersion\": \"10.0.17763.973\",\n".repeat(40)
    );
    fs::write(folder.path().join("nodes.json"), text).unwrap();
    let failure = inspect(&format!("docker-archive:{path}/nodes.json"), &[])
        .fails(3, "archive/invalid", &["nodes.json"])
        .hides("kernelVersion");
    assert_eq!(failure.stderr.lines().count(), 1, "{failure:#?}");
    let layout = LayoutImage::new(&windows());
    let other = layout.place.replace(":app", ":other");
    inspect(&other, &[])
        .assert()
        .code(3)
        .stderr(contains("app"));
}

/// Sums of such sizes would overflow.
#[test]
fn a_size_that_no_blob_has_is_refused_by_every_command() {
    let image = windows()
        .files(&deltas(&edits(20)))
        .files(&vec![file("a", "b")]);
    let layout = LayoutImage::new(&image);
    let folder = layout.folder.path();
    let mut forged: Value = serde_json::from_slice(image.image.manifest().bytes()).unwrap();
    for layer in forged["layers"].as_array_mut().unwrap() {
        layer["size"] = json!(u64::MAX);
    }
    let forged = forged.to_string();
    let digest = sha256(forged.as_bytes());
    fs::write(folder.join("blobs/sha256").join(digest.digest()), &forged).unwrap();
    let index = fs::read_to_string(folder.join("index.json")).unwrap();
    let mut index: Value = serde_json::from_str(&index).unwrap();
    index["manifests"][0]["digest"] = json!(digest);
    index["manifests"][0]["size"] = json!(forged.len());
    fs::write(folder.join("index.json"), index.to_string()).unwrap();

    let place = layout.place.as_str();
    let updates = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fuzz/seeds/security_updates/json"
    );
    for words in [
        &["inspect", place][..],
        &["inspect", place, "--waste"],
        &["ls", place],
        &["diff", place, place],
        &["sbom", place],
        &["scan", place, "--msrc", updates],
        &["cp", &format!("{place}:/a"), "copied"],
        &["check-compat", "--host-build", "17763.973", place],
    ] {
        let mut command = wincimg(words[0]);
        // `scan` writes a table there.
        command.env("XDG_CACHE_HOME", folder.join("cache"));
        let output = command.args(&words[1..]).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        let is_answer = matches!(output.status.code(), Some(1 | 3));
        assert!(is_answer, "{words:?}: {printed}");
        let mut expected = vec!["not a valid image manifest"];
        if words[0] != "check-compat" {
            expected.push("build or mirror the image again");
        }
        for text in expected {
            assert!(printed.contains(text), "{words:?}: {printed}");
        }
    }
}

#[test]
fn layers_that_were_changed_or_cut_are_distinguished() {
    let image = windows().files(&deltas(&edits(20))).files(&deltas(&[set(
        r"HKLM\SYSTEM\x",
        "a",
        RegistryData::dword(1),
    )]));
    let layout = LayoutImage::new(&image);
    let blob = layout.blob(&image, 2);
    let right = fs::read(&blob).unwrap();
    let mut changed = right.clone();
    changed[right.len() / 2] ^= 0x10;
    let length = right.len().to_string();
    let cases = [
        (changed.clone(), vec![sha256(&changed).to_string()]),
        (
            right[..right.len() - 5].to_vec(),
            vec![(right.len() - 5).to_string(), length.clone()],
        ),
        (Vec::new(), vec!["0".to_owned(), length]),
    ];
    for (bytes, values) in cases {
        fs::write(&blob, &bytes).unwrap();
        let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--registry"]));
        assert_eq!(code, 3);
        let reported = found["images"][0]["layers"][1]["problems"][0].clone();
        let reported = reported.as_str().unwrap();
        for value in &values {
            assert!(
                printed.contains(value) && reported.contains(value),
                "{value}: {printed}"
            );
        }
        says(&printed, &line(&["error: ", "layer 2", "sha256:"]));
        let image = &found["images"][0];
        assert_eq!(image["registry"]["layers"][0]["layer"], 3);
        assert_eq!(image["shutdown"]["complete"], false);
    }
    fs::remove_file(&blob).unwrap();
    inspect(&layout.place, &[])
        .assert()
        .code(3)
        .stdout(contains("unreadable"))
        .stderr(line(&["error: ", "layer 2"]));
}

/// An image whose second layer has other bytes than its configuration says.
fn with_another_diff_id() -> StandIn {
    let tar = tar_of(&deltas(&edits(20)));
    windows().stored(ManifestFormat::Oci.layer(), b"another tar", tar)
}

#[test]
fn a_layer_that_no_runtime_unpacks_is_an_error_and_shown_all_the_same() {
    let layout = LayoutImage::new(&with_another_diff_id());
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!(code, 3, "{printed}");
    assert!(
        line(&["error: no runtime unpacks layer 2 (sha256:"]).eval(&printed),
        "{printed}"
    );
    let stated = format!("the configuration says {}", sha256(b"another tar"));
    assert_contains!(printed, stated.as_str(), "hint: build the image again");
    let image = &found["images"][0];
    assert_eq!(image["layers"][1]["read"], "whole");
    assert_eq!(image["shutdown"]["seconds"], 20);
}

#[test]
fn a_mirrored_layer_that_no_runtime_unpacks_is_an_error() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let place = format!("{}/app:1", source.host());
    block_on(put_at(&with_another_diff_id(), &place));
    wincimg("mirror")
        .arg(&place)
        .args(["--to", &target.host()])
        .args(["--insecure-registry", &source.host()])
        .args(["--insecure-registry", &target.host()])
        .assert()
        .code(3)
        .stdout(contains("published"))
        .stderr(contains("is mirrored, but no runtime unpacks layer 2 ("))
        .stderr(contains("hint: build the image again"));
}

#[test]
fn a_blob_of_another_size_than_the_manifest_says_is_named_with_both() {
    let image = windows().files(&deltas(&edits(20)));
    let layout = LayoutImage::new(&image);
    let blob = layout.blob(&image, 2);
    let mut bytes = fs::read(&blob).unwrap();
    let stated = bytes.len();
    bytes.push(0);
    fs::write(&blob, bytes).unwrap();
    let expected = format!("has {} bytes: the manifest says {stated}", stated + 1);
    inspect(&layout.place, &[])
        .assert()
        .code(3)
        .stderr(contains(expected));
}

#[test]
fn what_is_no_tar_or_no_hive_inside_a_sound_layer_is_named() {
    let mut hives = deltas(&edits(20));
    hives.extend(deltas(&[set(
        r"HKLM\SOFTWARE\x",
        "a",
        RegistryData::dword(1),
    )]));
    hives[1].1.truncate(5000);
    let image = windows().files(&hives).stored(
        ManifestFormat::Oci.layer(),
        b"no tar",
        b"no tar at all".to_vec(),
    );
    let layout = LayoutImage::new(&image);
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--registry"]));
    assert_eq!(code, 3);
    assert_contains!(printed, "Software_Delta");
    says(&printed, &line(&["error: ", "layer 3"]));
    let image = &found["images"][0];
    assert_eq!(image["shutdown"]["seconds"], 20);
    assert_eq!(image["layers"][1]["read"], "failed");
    assert_eq!(
        image["registry"]["layers"][0]["changes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn an_entry_point_that_is_the_shim_is_shown_with_what_it_will_do() {
    let started_by = |words: &[&str]| {
        let mut image = windows();
        image.image = image
            .image
            .edit_config(|config| {
                config.config.entrypoint = Some(words.iter().map(ToString::to_string).collect());
            })
            .unwrap();
        let layout = LayoutImage::new(&image);
        let text = text_of(&mut inspect(&layout.place, &[]));
        let row = text.lines().find(|line| line.starts_with("  shim "));
        row.map(str::to_owned)
    };
    let waits = started_by(&[r"C:\wincimg\shim.exe", "pause"]).unwrap();
    let refused = started_by(&[r"C:\wincimg\shim.exe", "--no-such-option"]).unwrap();
    assert_contains!(refused, "--no-such-option");
    assert!(!waits.contains("pause"), "{waits}");
    assert_eq!(started_by(&[r"C:\web\server.exe"]), None);
}

#[test]
fn a_file_that_was_named_like_an_image_is_pointed_at() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("app.tar"), "").unwrap();
    inspect("app.tar", &["--timeout", "1s"])
        .current_dir(folder.path())
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .assert()
        .code(2)
        .stderr(contains("\"app.tar\"").and(contains("docker-archive:app.tar")));
}
