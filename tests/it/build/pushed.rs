//! Pushed and written images: references, layers, an index, and no duplicate uploads.

use std::fs;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::layout::config_in;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first};
use wincimg_testkit::serve::serve;
use wincimg_testkit::windows_base::put_nanoserver;

use crate::failure::{Fails, line, warning};
use crate::site::{Site, each, json_of};

#[test]
fn a_pushed_pause_image_is_the_base_with_one_small_layer() {
    let site = Site::new();
    let built = json_of(site.push("pause").args(["--host-build", "17763.973"]));
    let image = &built["images"][0];
    assert_eq!(
        image["reference"],
        format!("{}/pause:10.0.17763.973", site.host())
    );
    assert_eq!(image["engine"], "direct");
    assert_eq!(image["host_build"], "17763.973");
    assert_eq!(image["os_version"], "10.0.17763.973");
    assert_eq!(image["base"]["match"], "exact");
    assert_eq!(image["base"]["os_version"], "10.0.17763.973");
    assert_eq!(image["pushed"], true);
    assert_eq!(built["index"], Value::Null);
    assert_eq!(each(&image["layers"], "from"), ["base", "recipe"]);
    assert!(image["layers"][1]["size"].as_u64().unwrap() < 96 * 1024);
}

#[test]
fn several_hosts_become_several_images_and_an_index() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
    command.args(["--registry", &site.host(), "--push", "--tag", "1.0"]);
    let built = json_of(&mut command);
    let references =
        ["17763.973", "20348.2402"].map(|build| format!("{}/pause:1.0-10.0.{build}", site.host()));
    assert_eq!(each(&built["images"], "reference"), references.each_ref());
    assert_eq!(
        built["index"]["reference"],
        format!("{}/pause:1.0", site.host())
    );
}

#[test]
fn a_second_run_sends_nothing_and_gives_the_same_digests() {
    let site = Site::new();
    let run = || {
        let mut command = site.push("pause");
        command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
        json_of(&mut command)
    };
    let first = run();
    let before = site.requests();
    let second = run();
    assert_eq!(first["images"][0]["digest"], second["images"][0]["digest"]);
    assert_eq!(first["index"], second["index"]);
    assert_eq!(site.writes_since(before), [""; 0]);
}

/// A push to a local registry is dominated by requests. The referrers of the base, by the API and
/// by tag, and its configuration are cached, so that a second push does not request them.
#[test(multi_thread)]
async fn a_push_to_distribution_is_thirteen_requests_and_three_again() {
    let docker = DockerRegistry::plain();
    put_nanoserver(&docker.host(), "10.0.17763.973").await;
    let proxy = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let host = proxy.host();
    let site = Site::new();
    let push = || {
        let before = proxy.log().len();
        let mut command = site.command(&["build", "pause", "--host-build", "17763.973"]);
        command.args(["--base-registry", &host, "--registry", &host, "--push"]);
        command.args(["--insecure-registry", &host]);
        json_of(&mut command.into());
        let asked = proxy.log().split_off(before);
        let lines = asked.iter().map(|it| format!("{} {}", it.method, it.path));
        lines.collect::<Vec<_>>()
    };
    let cold = push();
    assert_eq!(cold.len(), 13, "{cold:#?}");
    let again = push();
    assert_eq!(again.len(), 3, "{again:#?}");
}

/// As where another build that pushes the same layer has not finished.
#[test(multi_thread)]
async fn a_layer_that_the_registry_loses_is_pushed_again() {
    let docker = DockerRegistry::plain();
    put_nanoserver(&docker.host(), "10.0.17763.973").await;
    let is_asked_for = |passed: &ProxiedRequest| {
        passed.method == "HEAD" && passed.path.starts_with("/v2/pause/blobs/")
    };
    let there = ProxyFault::Answer(200, Vec::new(), String::new());
    let proxy = FaultProxy::start(docker.host(), first(1, is_asked_for, there)).await;
    let host = proxy.host();
    let site = Site::new();
    let mut command = site.command(&["build", "pause", "--host-build", "17763.973"]);
    command.args(["--base-registry", &host, "--registry", &host, "--push"]);
    command.args(["--insecure-registry", &host]);
    let built = json_of(&mut command.into());
    assert_eq!(built["images"][0]["pushed"], true);
    let published = proxy.requests("PUT", "/v2/pause/manifests/10.0.17763.973");
    assert_eq!(published.len(), 2, "{published:?}");
}

#[test]
fn images_that_share_a_layer_send_it_once() {
    let site = Site::new();
    let mut command = site.push("pause");
    command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
    let built = json_of(&mut command);
    let layers = |image: usize| built["images"][image]["layers"][1]["digest"].clone();
    assert_eq!(layers(0), layers(1));
    let uploads = site
        .requests_since(0)
        .into_iter()
        .filter(|request| request.starts_with("PUT ") && request.contains("/uploads/"))
        .count();
    assert_eq!(uploads, 3, "one layer and two configurations");
}

#[test]
fn nothing_of_the_base_is_downloaded_when_the_registry_has_it() {
    let site = Site::new();
    let built = json_of(site.push("pause").args(["--host-build", "17763.973"]));
    let base_layer = built["images"][0]["layers"][0]["digest"].as_str().unwrap();
    let downloads: Vec<String> = site
        .requests_since(0)
        .into_iter()
        .filter(|request| request.starts_with("GET ") && request.contains(base_layer))
        .collect();
    assert!(downloads.is_empty(), "{downloads:?}");
}

#[test]
fn the_time_comes_from_the_base_or_from_source_date_epoch() {
    let site = Site::new();
    let config_of = |epoch: Option<&str>, dir: &str| {
        let mut command = site.build("pause");
        command.args(["--host-build", "17763.973", "--output", dir]);
        if let Some(epoch) = epoch {
            command.env("SOURCE_DATE_EPOCH", epoch);
        }
        json_of(&mut command);
        config_in(&site.path(dir.trim_start_matches("oci:")))
    };
    assert_eq!(config_of(None, "oci:a")["created"], "2020-01-14T00:00:00Z");
    assert_eq!(
        config_of(Some("1600000000"), "oci:b")["created"],
        "2020-09-13T12:26:40Z"
    );
    site.build("pause")
        .args(["--host-build", "17763.973"])
        .env("SOURCE_DATE_EPOCH", "yesterday")
        .assert()
        .code(2)
        .stderr(contains("hint: "));
}

#[test]
fn a_push_with_an_output_tells_of_both_places() {
    let site = Site::new();
    let hosts = ["--host-build", "20348.2402", "--host-build", "17763.973"];
    let places = ["--registry", &site.host(), "--push", "--output", "oci:out"];
    let built = json_of(site.build("pause").args(hosts).args(places));
    let pushed = format!("{}/pause:10.0.17763.973", site.host());
    assert_eq!(built["images"][0]["reference"], pushed);
    let written = json_of(
        site.build("pause")
            .args(hosts)
            .args(["--output", "oci:alone"]),
    );
    let place = |text: &Value| text.as_str().unwrap().replace("alone", "out");
    for image in 0..2 {
        let copies = built["images"][image]["copies"].as_array().unwrap();
        assert_eq!(copies.len(), 1);
        let alone = &written["images"][image];
        assert_eq!(copies[0]["reference"], place(&alone["reference"]));
        assert_eq!(copies[0]["digest"], alone["digest"]);
    }
    let copy = &built["index"]["copies"][0];
    assert_eq!(copy["digest"], written["index"]["digest"]);
    let again = json_of(site.build("pause").args(hosts).args(places));
    for image in again["images"].as_array().unwrap() {
        assert_eq!(image["up_to_date"], true, "{image:#}");
    }
    site.build("pause")
        .args(hosts)
        .args(places)
        .assert()
        .code(0)
        .stdout(contains("oci:out:").count(3));
}

#[test]
fn denied_access_is_reported_before_a_large_layer_is_compressed() {
    let site = Site::new();
    let locked = Router::new().fallback(|| async {
        let challenge = [("www-authenticate", "Basic realm=\"locked\"")];
        (StatusCode::UNAUTHORIZED, challenge, "")
    });
    let served = serve(locked);
    let locked = served.host();
    let large = fs::File::create(site.path("large.bin")).unwrap();
    large.set_len(16 << 30).unwrap();
    site.write(
        "recipe.toml",
        "name = \"large\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"large.bin\"\nto = 'C:\\large.bin'\n",
    );
    let asked = Instant::now();
    site.build(".")
        .args(["--host-build", "17763.973", "--push", "--registry", &locked])
        .args(["--insecure-registry", &locked])
        .fails(3, "registry/denied", &["401"])
        .advises(&["wincimg login"]);
    assert!(asked.elapsed() < Duration::from_secs(15));
}

#[test]
fn an_archive_in_no_folder_is_refused_before_anything_is_read() {
    let site = Site::new();
    let from = site.requests();
    let refused = site
        .build("pause")
        .args(["--host-build", "17763.973"])
        .args(["--output", "docker-archive:no/such/x.tar"])
        .fails(3, "file/io", &["no/such/x.tar", "no such folder: no/such"])
        .advises(&["create the folder"]);
    assert!(!refused.stderr.contains(".docker-archive-"));
    assert_eq!(site.requests_since(from), Vec::<String>::new());
}

#[test]
fn an_output_that_cannot_be_is_refused_before_anything_is_pushed() {
    let site = Site::new();
    site.write("files/a.txt", "a");
    site.write(
        "recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    site.build(".")
        .args(["--host-build", "17763.973", "--registry", &site.host()])
        .args(["--push", "--output", "oci:files/out"])
        .assert()
        .code(2);
    let sent = site.requests_since(0);
    assert!(
        sent.iter().all(|request| !request.starts_with("PUT")),
        "{sent:?}"
    );
}

#[test]
fn an_image_for_two_hosts_is_listed_once_with_both() {
    let site = Site::new();
    let hosts = ["--host-build", "17763.973", "--host-build", "17763.1000"];
    let push = ["--registry", &site.host(), "--push"];
    let reference = format!("{}/pause:10.0.17763.973\n", site.host());
    site.build("pause")
        .args(hosts)
        .args(push)
        .assert()
        .code(0)
        .stdout(
            contains(reference.as_str())
                .count(1)
                .and(line(&["17763.973", "10.0.17763.973", "exact"]))
                .and(line(&["17763.1000", "10.0.17763.973", "nearest"])),
        );
    let built = json_of(site.build("pause").args(hosts).args(push));
    let of_host = |host: &str| {
        let mut images = built["images"].as_array().unwrap().iter();
        images.find(|image| image["host_build"] == host).unwrap()["digest"].clone()
    };
    assert_eq!(of_host("17763.973"), of_host("17763.1000"));
}

#[test]
fn a_node_without_a_version_is_named_with_the_fix_and_in_the_json() {
    let site = Site::new();
    let node = |name: &str, version: &str| {
        json!({"kind": "Node", "metadata": {"name": name}, "status": {"nodeInfo":
            {"operatingSystem": "windows", "kernelVersion": version}}})
    };
    let nodes =
        json!({"kind": "List", "items": [node("win-a", "10.0.17763.973"), node("win-b", "")]});
    site.write("nodes.json", nodes.to_string());
    let mut command = site.build("pause");
    let output = command
        .args(["--nodes", "nodes.json", "--format", "json"])
        .assert()
        .code(0)
        .stderr(warning(&["win-b", "--host-build 17763.973"]))
        .get_output()
        .stdout
        .clone();
    let built: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(built["images"].as_array().unwrap().len(), 1);
    assert_eq!(built["left_out"], json!(["win-b"]));
}
