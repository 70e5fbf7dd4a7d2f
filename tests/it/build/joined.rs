//! A build keeps other entries of a tag, and concurrent builds that join it lose nothing.

use bytes::Bytes;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_common::progress::Silent;
use wincimg_demo::add_base_images;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::{options, repository};
use wincimg_windows::version::WindowsVersion;

use super::index::nodes;
use crate::failure::Fails;
use crate::site::{Site, block_on, each, json_of};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An index with one Linux image and its attestation, under `app:1.4`.
pub(crate) fn add_linux(site: &Site) -> String {
    let linux = format!("sha256:{}", "1".repeat(64));
    let entry = |digest: &str, platform: Value, annotations: Value| {
        json!({"mediaType": MANIFEST, "size": 2,
            "digest": digest, "platform": platform, "annotations": annotations})
    };
    let attestation = format!("sha256:{}", "2".repeat(64));
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "annotations": {"team": "web"},
    "manifests": [
        entry(&linux, json!({"os": "linux", "architecture": "amd64"}), json!({})),
        entry(&attestation, json!({"os": "unknown", "architecture": "unknown"}),
            json!({"vnd.docker.reference.digest": linux})),
    ]});
    site.registry.with(|stored| {
        let bytes = index.to_string().into_bytes().into();
        stored.add_manifest("app", "1.4", INDEX, bytes)
    })
}

fn build(site: &Site, host: &str, more: &[&str]) -> assert_cmd::Command {
    let mut command = site.push("pause");
    command.args(["--host-build", host, "--name", "app", "--tag", "1.4"]);
    command.args(more);
    command
}

/// The document under `app:1.4`.
pub(crate) fn published(site: &Site) -> Value {
    site.manifest("app", "1.4")
}

pub(crate) fn platforms(index: &Value) -> Vec<String> {
    let entries = index["manifests"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            let platform = &entry["platform"];
            let version = platform["os.version"].as_str().unwrap_or_default();
            format!("{} {version}", platform["os"].as_str().unwrap())
                .trim()
                .to_owned()
        })
        .collect()
}

#[test]
fn a_tag_that_others_use_is_left_as_it_is_joined_or_replaced() {
    let site = Site::new();
    add_linux(&site);
    let before = published(&site);
    build(&site, "17763.973", &[])
        .fails(1, "tag/taken", &["app:1.4", "linux/amd64"])
        .advises(&["--join", "--replace"]);
    assert_eq!(published(&site), before);

    let joined = json_of(&mut build(&site, "17763.973", &["--join"]));
    assert_eq!(joined["index"]["kept"], json!(["linux/amd64"]));
    let index = published(&site);
    assert_eq!(
        platforms(&index),
        ["linux", "windows 10.0.17763.973", "unknown"]
    );
    assert_eq!(index["annotations"]["team"], "web");
    let digest = |index: &Value, entry: usize| index["manifests"][entry]["digest"].clone();
    for (now, then) in [(0, 0), (2, 1)] {
        assert_eq!(digest(&index, now), digest(&before, then));
    }

    let other = json_of(&mut build(&site, "20348.2402", &["--join"]));
    assert_eq!(
        other["index"]["kept"],
        json!(["linux/amd64", "windows/amd64:10.0.17763.973"])
    );
    let again = json_of(&mut build(&site, "20348.2402", &["--join"]));
    assert_eq!(again["index"]["digest"], other["index"]["digest"]);

    let both = "linux/amd64, windows/amd64:10.0.17763.973";
    build(&site, "20348.2402", &[]).fails(1, "tag/taken", &[both]);
    build(&site, "20348.2402", &["--replace"]).assert().code(0);
    assert!(
        published(&site)["layers"].is_array(),
        "one image and no index"
    );
}

#[test]
fn an_image_of_the_same_build_makes_room_and_one_that_other_hosts_need_does_not() {
    let site = Site::new();
    let bases = ["17763.1158", "17763.2300"].map(|text| text.parse::<WindowsVersion>().unwrap());
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &bases))
        .unwrap();
    build(&site, "17763.1158", &[]).assert().code(0);
    build(&site, "17763.2300", &[]).assert().code(0);
    let taken = ["app:1.4", "windows/amd64:10.0.17763.2300"];
    build(&site, "17763.973", &[])
        .fails(1, "tag/taken", &taken)
        .advises(&[
            "--no-index",
            "--join to replace windows/amd64:10.0.17763.2300",
        ]);
}

#[test]
fn an_image_under_the_tag_of_another_build_is_not_taken_away_by_the_very_build_that_makes_it() {
    let site = Site::new();
    let both = || {
        build(
            &site,
            "17763.973",
            &["--host-build", "20348.2402", "--no-index"],
        )
    };
    both().assert().success();
    let app = site.repository("app");
    let newer = block_on(app.get_manifest("1.4-10.0.20348.2402")).unwrap();
    site.registry.with(|stored| {
        stored.add_manifest("app", "1.4-10.0.17763.973", &newer.media_type, newer.bytes)
    });
    let taken = ["app:1.4-10.0.17763.973", "windows/amd64:10.0.20348.2402"];
    both().fails(1, "tag/taken", &taken);
}

#[test]
fn a_layout_is_not_overwritten_either() {
    let site = Site::new();
    let build = |host: &str, more: &[&str]| {
        let mut command = site.build("pause");
        command.args(["--host-build", host, "--tag", "1.4", "--output", "oci:out"]);
        command.args(more);
        command
    };
    build("17763.973", &[]).assert().code(0);
    let taken = ["oci:out:1.4", "windows/amd64:10.0.17763.973"];
    build("20348.2402", &[]).fails(1, "tag/taken", &taken);
    let joined = json_of(&mut build("20348.2402", &["--join"]));
    assert_eq!(
        joined["index"]["kept"],
        json!(["windows/amd64:10.0.17763.973"])
    );
    build("20348.2402", &["--replace"]).assert().code(0);
}

#[test]
fn builds_that_join_at_once_lose_nothing() {
    let site = Site::new();
    let bases = ["18363.657", "26100.1742"].map(|text| text.parse::<WindowsVersion>().unwrap());
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &bases))
        .unwrap();
    add_linux(&site);
    let hosts = ["17763.973", "18363.657", "20348.2402", "26100.1742"];
    std::thread::scope(|scope| {
        for host in hosts {
            let site = &site;
            scope.spawn(move || build(site, host, &["--join"]).assert().code(0));
        }
    });
    let found = platforms(&published(&site));
    for host in hosts {
        assert!(found.contains(&format!("windows 10.0.{host}")), "{found:?}");
    }
    assert!(found.contains(&"linux".to_owned()), "{found:?}");
}

#[test]
fn builds_that_join_a_layout_at_once_take_turns() {
    let site = Site::new();
    let build = |host: &str| {
        let mut command = site.build("pause");
        command.args(["--host-build", host, "--tag", "1.4", "--join"]);
        command.args(["--output", "oci:out"]).assert().code(0);
    };
    std::thread::scope(|scope| {
        for host in ["17763.973", "20348.2402"] {
            let build = &build;
            scope.spawn(move || build(host));
        }
    });
    let found = json_of(&mut site.with_no_bases(&["inspect", "oci:out:1.4"]));
    assert_eq!(
        each(&found["images"], "os_version"),
        ["10.0.20348.2402", "10.0.17763.973"]
    );
}

#[test]
fn three_builds_join_a_linux_image_in_a_real_registry_and_pass_the_strict_check() {
    let registry = DockerRegistry::plain();
    let site = Site::new();
    let bases = ["26100.1742".parse::<WindowsVersion>().unwrap()];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &bases))
        .unwrap();
    let target = registry.host();
    let reference = format!("{target}/app:1.4");
    push_linux(&target);
    let of_cluster = [
        ("win-a", "17763.973"),
        ("win-b", "20348.2402"),
        ("win-c", "26100.1742"),
    ];
    site.write("nodes.json", nodes(&of_cluster));
    let command = |more: &[&str]| {
        let mut command = site.build("pause");
        command.args(["--nodes", "nodes.json", "--name", "app", "--tag", "1.4"]);
        command.args([
            "--registry", &target, "--push", "--insecure-registry", &target,
        ]);
        command.args(more);
        command
    };
    command(&[])
        .assert()
        .code(1)
        .stderr(contains("linux/amd64"));
    let built = json_of(&mut command(&["--join"]));
    assert_eq!(built["index"]["kept"], json!(["linux/amd64"]));
    let check = site.command(&[
        "check-compat", &reference, "--nodes", "nodes.json", "--strict", "--insecure-registry",
        &target,
    ]);
    assert_cmd::Command::from(check).assert().code(0);
}

/// A Linux image with only a configuration, under `app:1.4`.
pub(crate) fn push_linux(target: &str) {
    let config = json!({"architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": []}})
    .to_string();
    let digest = wincimg_oci::document::sha256(config.as_bytes());
    let repository = repository(options(target), &format!("{target}/app")).for_push();
    let size = config.len();
    let bytes = Bytes::from(config);
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": digest.to_string(), "size": size}});
    let manifest = Bytes::from(manifest.to_string());
    block_on(async {
        let size = u64::try_from(size).unwrap();
        let sent = repository.put_blob(&digest, size, &bytes, &Silent);
        sent.await.unwrap();
        repository
            .put_manifest("1.4", MANIFEST, manifest)
            .await
            .unwrap();
    });
}
