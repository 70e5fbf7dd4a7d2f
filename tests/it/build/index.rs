//! An index supports every host that it was built for, or is not published.

use serde_json::{Value, json};
use wincimg_demo::add_base_images;
use wincimg_windows::version::WindowsVersion;

use super::joined::platforms;
use crate::api::windows_node;
use crate::failure::Fails;
use crate::site::{Site, each, json_of, report_of};

/// Both sides of the update of 2020-02, and two releases.
const BASES: [WindowsVersion; 4] = [
    WindowsVersion::new(17763, 973),
    WindowsVersion::new(17763, 1158),
    WindowsVersion::new(20348, 2402),
    WindowsVersion::new(26100, 1742),
];

fn site() -> Site {
    let site = Site::new();
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &BASES))
        .unwrap();
    site
}

/// `kubectl get nodes -o json` of nodes with containerd.
pub(super) fn nodes(versions: &[(&str, &str)]) -> String {
    let node = |(name, version): &(&str, &str)| windows_node(name, &format!("10.0.{version}"));
    let items: Vec<Value> = versions.iter().map(node).collect();
    json!({"kind": "List", "items": items}).to_string()
}

/// Builds pause for a cluster's nodes and pushes it to the site's registry.
fn pushed_for(site: &Site, of_cluster: &[(&str, &str)]) -> assert_cmd::Command {
    site.write("nodes.json", nodes(of_cluster));
    let mut command = site.build("pause");
    command
        .args(["--nodes", "nodes.json", "--registry", &site.host()])
        .arg("--push");
    command
}

#[test]
fn hosts_that_need_different_images_of_a_build_get_no_index_and_are_named() {
    let site = site();
    let of_cluster = [
        ("win-a", "17763.973"),
        ("win-b", "17763.1158"),
        ("win-c", "20348.2402"),
        ("win-d", "26100.1742"),
    ];
    let command = || pushed_for(&site, &of_cluster);
    command()
        .arg("--all-or-nothing")
        .fails(1, "tag/several", &["17763.973", "17763.1158"])
        .advises(&["--host-build 17763.973 ", "--no-index"]);
    assert_eq!(site.writes_since(0), Vec::<String>::new());

    let built = json_of(command().arg("--no-index"));
    assert_eq!(built["index"], Value::Null);
    for (image, (_, version)) in built["images"].as_array().unwrap().iter().zip(of_cluster) {
        let reference = format!("{}/pause:10.0.{version}", site.host());
        assert_eq!(image["reference"], reference.as_str());
        let check = [
            "check-compat", &reference, "--host-build", version, "--strict",
        ];
        let check = assert_cmd::Command::from(site.command(&check)).assert();
        check.code(0);
    }
}

#[test]
fn a_host_without_a_base_stops_no_other() {
    let site = site();
    let of_cluster = [
        ("win-a", "17763.973"),
        ("win-odd", "18363.592"),
        ("win-c", "20348.2402"),
    ];
    // An image for all hosts, or none.
    pushed_for(&site, &of_cluster)
        .arg("--all-or-nothing")
        .fails(1, "base/nothing-fits", &["18363.592"]);
    assert_eq!(site.writes_since(0), Vec::<String>::new());

    let (built, said) = incomplete(pushed_for(&site, &of_cluster).args(["--tag", "1.4"]));
    assert_contains!(said, "error: no image for host 18363.592 (win-odd): ");
    assert_eq!(
        each(&built["images"], "host_build"),
        ["17763.973", "20348.2402"]
    );
    assert_eq!(built["failed"][0]["host_build"], "18363.592");
    assert_eq!(built["failed"][0]["nodes"], json!(["win-odd"]));
    assert!(built["failed"][0]["problem"].as_str().is_some());
    let index = format!("{}/pause:1.4", site.host());
    assert_eq!(built["index"]["reference"], index.as_str());

    // A single one left is published so that the other can join.
    let (built, _) = incomplete(pushed_for(&site, &of_cluster[..2]).args(["--tag", "1.5"]));
    assert_eq!(
        built["index"]["reference"],
        format!("{}/pause:1.5", site.host())
    );
}

/// Runs a build that leaves a host without an image, and returns its report and messages.
fn incomplete(command: &mut assert_cmd::Command) -> (Value, String) {
    let (code, built, printed) = report_of(command);
    assert_eq!(code, 1, "{printed}");
    (built, printed)
}

#[test]
fn a_host_that_an_index_cannot_serve_stops_no_other() {
    let site = site();
    let of_cluster = [
        ("win-old", "17763.973"),
        ("win-a", "17763.1158"),
        ("win-b", "17763.1158"),
        ("win-c", "20348.2402"),
    ];
    let command = || {
        let mut command = pushed_for(&site, &of_cluster);
        command.args(["--tag", "1.4"]);
        command
    };
    let (planned, _) = incomplete(command().arg("--dry-run"));
    assert_eq!(planned["failed"][0]["nodes"], json!(["win-old"]));
    assert_eq!(site.writes_since(0), Vec::<String>::new());

    let (built, printed) = incomplete(&mut command());
    let odd = "error: no image for host 17763.973 (win-old): ";
    assert_contains!(printed, odd);
    assert_eq!(built["failed"][0]["nodes"], json!(["win-old"]));
    assert_eq!(built["failed"][0]["code"], "tag/several");
    let hint = built["failed"][0]["hint"].as_str().unwrap();
    assert_contains!(hint, "--no-index");
    let served = ["windows 10.0.20348.2402", "windows 10.0.17763.1158"];
    assert_eq!(platforms(&site.manifest("pause", "1.4")), served);

    // What the hint says publishes the other image beside the index.
    let mut other = site.push("pause");
    other.args(["--host-build", "17763.973", "--no-index", "--tag", "1.4"]);
    let reference = format!("{}/pause:1.4-10.0.17763.973", site.host());
    assert_eq!(json_of(&mut other)["images"][0]["reference"], reference);
    assert_eq!(platforms(&site.manifest("pause", "1.4")), served);
}

#[test]
fn an_index_keeps_what_serves_a_host_today() {
    let site = site();
    json_of(
        pushed_for(&site, &[("win-old", "17763.973"), ("win-c", "20348.2402")])
            .args(["--tag", "1.4"]),
    );
    let patched = [
        ("win-old", "17763.973"),
        ("win-a", "17763.1158"),
        ("win-b", "17763.1158"),
        ("win-c", "20348.2402"),
    ];
    let (built, _) = incomplete(pushed_for(&site, &patched).args(["--tag", "1.4"]));
    assert_eq!(built["failed"][0]["nodes"], json!(["win-a", "win-b"]));
    let kept = ["windows 10.0.20348.2402", "windows 10.0.17763.973"];
    assert_eq!(platforms(&site.manifest("pause", "1.4")), kept);
    // Without the old index, most nodes are served.
    let (built, _) = incomplete(pushed_for(&site, &patched).args(["--tag", "1.4", "--replace"]));
    assert_eq!(built["failed"][0]["nodes"], json!(["win-old"]));
}

#[test]
fn revisions_of_server_2016_need_an_image_each() {
    let site = Site::new();
    let bases = [3443, 3504, 3630].map(|revision| WindowsVersion::new(14393, revision));
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &bases))
        .unwrap();
    let command = || {
        let mut command = site.build("pause");
        command.args(["--host-build", "14393.3443", "--host-build", "14393.3630"]);
        command.args(["--registry", &site.host(), "--push", "--tag", "1.4"]);
        command
    };
    command()
        .arg("--all-or-nothing")
        .fails(1, "tag/several", &["1.4", "14393.3443", "14393.3630"])
        .advises(&["--host-build 14393.3443 ", "--no-index"]);
    assert_eq!(site.writes_since(0), Vec::<String>::new());
    let built = json_of(command().arg("--no-index"));
    assert_eq!(built["images"].as_array().unwrap().len(), 2);
}

#[test]
fn hosts_of_a_build_share_the_newest_image_that_is_newer_than_none_of_them() {
    let site = site();
    let more = [
        WindowsVersion::new(17763, 2300),
        WindowsVersion::new(17763, 5696),
    ];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &more))
        .unwrap();
    let of_cluster = [
        ("win-a", "17763.2400"),
        ("win-b", "17763.5696"),
        ("win-c", "20348.2402"),
        ("win-d", "26100.1742"),
    ];
    let built = json_of(&mut pushed_for(&site, &of_cluster));
    let images = built["images"].as_array().unwrap();
    let shared = "10.0.17763.2300";
    assert_eq!(
        each(&built["images"], "os_version"),
        [shared, shared, "10.0.20348.2402", "10.0.26100.1742"]
    );
    assert_eq!(images[0]["base"]["match"], "nearest");
    let reference = built["index"]["reference"].as_str().unwrap();
    let check = [
        "check-compat", reference, "--nodes", "nodes.json", "--strict",
    ];
    let check = assert_cmd::Command::from(site.command(&check)).assert();
    check.code(0);
}

#[test]
fn several_hosts_of_one_build_make_one_image_under_the_tag_itself() {
    let site = site();
    let hosts = ["--host-build", "17763.1158", "--host-build", "17763.2300"];
    let built = json_of(
        site.build("pause")
            .args(hosts)
            .args(["--registry", &site.host(), "--push"])
            .args(["--tag", "1.4"]),
    );
    assert_eq!(built["index"], Value::Null);
    let reference = format!("{}/pause:1.4", site.host());
    for image in built["images"].as_array().unwrap() {
        assert_eq!(image["reference"], reference.as_str());
        assert_eq!(image["os_version"], "10.0.17763.1158");
    }
}

#[test]
fn exact_images_of_one_build_cannot_share_an_index() {
    let site = site();
    let more = [WindowsVersion::new(17763, 2300)];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &more))
        .unwrap();
    let command_with = |more: &[&str]| {
        let mut command = site.build("pause");
        command.args(["--host-build", "17763.1158", "--host-build", "17763.2300"]);
        command.args(["--registry", &site.host(), "--push", "--tag", "1.4"]);
        command.args(["--match", "exact"]).args(more);
        command
    };
    command_with(&["--all-or-nothing"])
        .fails(1, "tag/several", &["1.4", "17763.1158", "17763.2300"])
        .advises(&["--host-build 17763.1158 ", "--no-index"]);
    assert_eq!(site.writes_since(0), Vec::<String>::new());
    let built = json_of(&mut command_with(&["--no-index"]));
    assert_eq!(
        built["images"][1]["reference"],
        format!("{}/pause:1.4-10.0.17763.2300", site.host())
    );
}

#[test]
fn tags_may_name_the_release_of_windows() {
    let site = site();
    let command = |hosts: &[&str]| {
        let mut command = site.build("pause");
        for host in hosts {
            command.args(["--host-build", host]);
        }
        command.args(["--registry", &site.host(), "--push", "--tag", "1.4"]);
        command.args(["--tag-style", "release"]);
        command
    };
    let built = json_of(&mut command(&["17763.973", "20348.2402", "26100.1742"]));
    let images = built["images"].as_array().unwrap().iter();
    let references: Vec<_> = images.map(|image| image["reference"].clone()).collect();
    let expected = ["ltsc2019", "ltsc2022", "ltsc2025"];
    let expected = expected.map(|tag| format!("{}/pause:1.4-{tag}", site.host()));
    assert_eq!(references, expected);
    assert_eq!(
        built["index"]["reference"],
        format!("{}/pause:1.4", site.host())
    );
    // One tag cannot hold both revisions.
    let before = site.writes_since(0).len();
    command(&["17763.973", "17763.1158"])
        .arg("--no-index")
        .fails(2, "tag/same", &["1.4-ltsc2019"])
        .advises(&["--tag-style version"]);
    assert_eq!(site.writes_since(0).len(), before);
}

#[test]
fn hosts_that_share_a_base_which_the_dockerfile_does_not_name_share_the_image() {
    let site = Site::new();
    site.write("web/a.txt", "a");
    site.write(
        "web/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:ltsc2019\nCOPY a.txt C:/a.txt\n",
    );
    let hosts = ["--host-build", "20348.2500", "--host-build", "20348.2600"];
    let built = json_of(
        site.build("web")
            .args(hosts)
            .args(["--tag", "1", "--output", "oci:out"]),
    );
    let images = built["images"].as_array().unwrap();
    assert_eq!(images.len(), 2, "{built}");
    assert_eq!(images[0]["digest"], images[1]["digest"], "{built}");
}
