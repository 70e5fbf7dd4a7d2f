//! Registries and bases with limited features: no mounts, other manifest formats, no creation time.

use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::layout::config_in;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_testkit::{options, repository};

use crate::failure::Fails;
use crate::site::{Site, json_of};

#[test]
fn a_base_that_does_not_say_when_it_was_made_is_built_on() {
    let registry = FakeRegistry::start();
    let version = "10.0.17763.973";
    let year_one = "0001-01-01T00:00:00Z";
    for (name, created, epoch, expected) in [
        ("none", None, None, "1970-01-01T00:00:00Z"),
        ("empty", Some(""), None, "1970-01-01T00:00:00Z"),
        ("year-one", Some(year_one), None, year_one),
        ("told", None, Some("86400"), "1970-01-02T00:00:00Z"),
    ] {
        let mut config = json!({"os": "windows", "architecture": "amd64", "os.version": version});
        if let Some(created) = created {
            config["created"] = json!(created);
        }
        let repository = format!("{name}/windows/nanoserver");
        registry.tag(&repository, version, &registry.image_with(&config));
        let site = Site::new();
        let mut command = site.command(&["build", "pause", "--host-build", "17763.973"]);
        command
            .args(["--output", "oci:out"])
            .args(["--insecure-registry", &registry.host()])
            .args(["--base-registry", &format!("{}/{name}", registry.host())]);
        if let Some(epoch) = epoch {
            command.env("SOURCE_DATE_EPOCH", epoch);
        }
        json_of(&mut command.into());
        assert_eq!(config_in(&site.path("out"))["created"], expected, "{name}");
    }
}

#[test(multi_thread)]
async fn manifests_are_converted_for_a_registry_that_refuses_them_when_asked() {
    let site = Site::new();
    // Some registries return a specific status, others an error code.
    let refusals = [
        (415, ""),
        (
            400,
            r#"{"errors":[{"code":"MANIFEST_INVALID","message":null}]}"#,
        ),
    ];
    let mut count = 0;
    let rule = move |passed: &ProxiedRequest| {
        let media_type = passed.header("content-type").unwrap_or_default();
        let docker = media_type.starts_with("application/vnd.docker.");
        match passed.method.as_str() {
            "PUT" if docker => {
                let (status, body) = refusals[count];
                count += 1;
                ProxyFault::Answer(status, Vec::new(), body.into())
            }
            _ => ProxyFault::Pass,
        }
    };
    let proxy = FaultProxy::start(site.host(), rule).await;
    let host = proxy.host();
    let hosts = ["--host-build", "17763.973", "--host-build", "20348.2402"];
    let push = ["--registry", &host, "--insecure-registry", &host, "--push"];
    for (_, body) in refusals {
        let mut command = site.build("pause");
        command.args(["--host-build", "17763.973"]).args(push);
        command.args(["--manifest-format", "docker"]);
        let refused = command.fails(3, "registry/manifest-format", &["application/vnd.docker."]);
        let refused = refused.advises(&["--manifest-format oci"]);
        assert_eq!(
            refused.message.contains("MANIFEST_INVALID"),
            !body.is_empty(),
            "{refused:#?}"
        );
    }

    let mut command = site.build("pause");
    command
        .args(hosts)
        .args(push)
        .args(["--manifest-format", "oci"]);
    let built = json_of(&mut command);
    let layers = built["images"][0]["layers"].as_array().unwrap();
    let oci = |layer: &Value| {
        layer["media_type"]
            .as_str()
            .unwrap()
            .contains(".oci.image.layer.")
    };
    assert!(layers.iter().all(oci), "{layers:#?}");
    let mut command = site.build("pause");
    command
        .args(hosts)
        .args(push)
        .args(["--manifest-format", "oci"]);
    assert_eq!(json_of(&mut command)["images"][0]["up_to_date"], true);
}

#[test(multi_thread)]
async fn a_refused_push_names_the_flag_that_converts() {
    let site = Site::new();
    let rule = |passed: &ProxiedRequest| {
        let media_type = passed.header("content-type").unwrap_or_default();
        match passed.method.as_str() {
            "PUT" if media_type.starts_with("application/vnd.oci.") => {
                ProxyFault::Answer(415, Vec::new(), String::new())
            }
            _ => ProxyFault::Pass,
        }
    };
    let proxy = FaultProxy::start(site.host(), rule).await;
    let mut build = site.build("pause");
    build.args(["--host-build", "17763.973", "--tag", "1"]);
    json_of(build.args(["--output", "oci:web", "--sbom", "spdx"]));
    let image = format!("{}/web:1", proxy.host());
    let mut push = site.with_no_bases(&["push", "oci:web:1", &image]);
    let refused = push.fails(3, "registry/manifest-format", &["application/vnd.oci."]);
    // Without the second flag, `copy` leaves foreign layers to the internet.
    refused.advises(&["wincimg copy SRC DST --manifest-format docker --ordinary-layers"]);

    let mut push = site.with_no_bases(&["push", "oci:web:1", &image]);
    push.args(["--manifest-format", "docker"]);
    assert_contains!(push.tells(0), "the copy of the image has another digest");
    let manifest = site.with_no_bases(&["manifest", &image]).prints();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let config = &manifest["config"];
    for part in [&manifest, config, &manifest["layers"][0]] {
        let media_type = part["mediaType"].as_str().unwrap();
        assert!(media_type.starts_with("application/vnd.docker."), "{part}");
    }
}

#[test]
fn a_layout_is_in_ocis_format() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "--output", "oci:out"]);
    command.args(["--manifest-format", "docker"]);
    let noted = contains("--manifest-format docker does not apply to OCI layouts");
    command.assert().success().stderr(noted);
}

#[test]
fn zstd_cannot_be_in_dockers_format() {
    let site = Site::new();
    let host = site.host();
    site.build("pause")
        .args(["--host-build", "17763.973", "--registry", &host, "--push"])
        .args(["--compression", "zstd", "--manifest-format", "docker"])
        .assert()
        .code(2)
        .stderr(contains("--manifest-format oci"));

    // Nor can that of an image.
    let mut zstd = site.push("pause");
    zstd.args(["--host-build", "17763.973", "--compression", "zstd"]);
    let built = json_of(&mut zstd);
    let image = built["images"][0]["reference"].as_str().unwrap();
    let mirror = format!("{host}/mirror");
    let words = ["mirror", image, "--to", &mirror, "--no-facts"];
    site.with_no_bases(&words)
        .args(["--manifest-format", "docker"])
        .assert()
        .code(3)
        .stderr(contains("--manifest-format oci"));
}

#[test(multi_thread)]
async fn a_base_in_the_same_registry_that_may_not_be_mounted_is_copied() {
    let site = Site::new();
    let rule = |passed: &ProxiedRequest| match passed.method.as_str() {
        "POST" if passed.path.contains("mount=") => {
            ProxyFault::Answer(403, Vec::new(), String::new())
        }
        _ => ProxyFault::Pass,
    };
    let proxy = FaultProxy::start(site.host(), rule).await;
    let host = proxy.host();
    let mut command = site.command(&["build", "pause", "--host-build", "17763.973"]);
    command
        .args(["--base-registry", &format!("{host}/mcr")])
        .args(["--registry", &host])
        .args(["--insecure-registry", &host, "--push"]);
    let built = json_of(&mut command.into());
    let layer = built["images"][0]["layers"][0]["digest"].as_str().unwrap();
    let read = proxy.requests("GET", &format!("windows/nanoserver/blobs/{layer}"));
    assert_eq!(read.len(), 1, "it was read from where it is");
    let repository = repository(options(&host), &format!("{host}/pause"));
    let there = repository.has_blob(&layer.parse().unwrap()).await;
    assert!(there.unwrap());
}
