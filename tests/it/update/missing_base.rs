//! Images that are not for Windows or whose base is missing.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;
use wincimg_testkit::fake_registry::FakeRegistry;

use super::*;

use crate::failure::{Fails, note, says};

const OCI: &str = "application/vnd.oci.image.manifest.v1+json";

fn app() -> Vec<u8> {
    layer(|tar| {
        tar.folder("Files/app", None)
            .file("Files/app/a", b"a", None);
    })
}

#[test]
fn an_image_for_another_system_and_what_is_no_image_are_reported() {
    let fake = FakeRegistry::start();
    let site = Site::new();
    let linux = fake.image("linux", "");
    fake.tag("app", "1.4", &linux);
    let run = |tag: &str| {
        let image = format!("{}/app:{tag}", fake.host());
        let mut command = site.with_bases(&["update", &image, "--host-build", "17763.1158"]);
        command.args(["--insecure-registry", &fake.host()]);
        command
    };
    run("1.4").fails(1, "image/not-windows", &["linux/amd64"]);
    run("gone").fails(3, "registry/not-found", &["manifest gone"]);

    let site = Site::new();
    let chart = json!({"schemaVersion": 2, "mediaType": OCI, "layers": [],
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "size": 2,
            "digest": sha256(b"{}").to_string()}});
    let old = json!({"schemaVersion": 1, "name": "app", "fsLayers": []});
    for (content, code, value) in [
        (chart, "image/not-an-image", "vnd.cncf.helm.config"),
        (old, "image/document", "1"),
    ] {
        site.registry
            .with(|stored| stored.add_manifest("app", "1.4", OCI, content.to_string().into()));
        update(&site, &["--push"]).fails(3, code, &[value]);
    }
}

#[test]
fn a_base_on_this_machine_is_refused() {
    let site = Site::new();
    for base in [
        "oci:lay:1",
        "docker-archive:base.tar",
        "docker-daemon:base:1",
    ] {
        update(&site, &["--base", base]).fails(2, "usage", &[base]);
    }
}

#[test]
fn an_image_without_windows_inside_is_up_to_date_on_every_host() {
    let site = site();
    let mut image = on(&base(OLD), app(), "COPY a C:/app/");
    image.image = image
        .image
        .edit_config(|config| config.os_version = None)
        .unwrap();
    put(&site, "app", "1.4", image);
    for arguments in [&["--check"][..], &["--push"]] {
        update(&site, arguments)
            .assert()
            .code(0)
            .stdout(contains("contains no Windows"));
    }
}

#[test]
fn a_base_that_is_unknown_is_asked_for_and_can_be_named() {
    let site = site();
    let own = base_with(OLD, |tar| {
        tar.file("Files/License.txt", b"other", None);
    });
    put(&site, "app", "1.4", on(&own, app(), "COPY a C:/app/"));
    update(&site, &[])
        .fails(1, "base/unknown", &["windows/nanoserver, "])
        .advises(&["--base"]);
    let base = format!("{}/own", site.host());
    put(&site, "own", OLD, own);
    let newer = base_with(NEW, |tar| {
        tar.file("Files/License.txt", b"other", None);
    });
    put(&site, "own", NEW, newer);
    let report = json_of(&mut update(&site, &["--base", &base, "--push"]));
    assert_eq!(report["updates"][0]["on"]["found_by"], "asked");
    // From now on the image names its base itself.
    let again = json_of(&mut update(&site, &["--push"]));
    assert_eq!(again["updates"][0]["on"]["found_by"], "named");
    assert_eq!(again["updates"][0]["status"], "up_to_date");
    update(&site, &["--base", "nanoserver"]).fails(1, "base/gone", &[]);
}

#[test]
fn a_deleted_or_moved_base_is_reported() {
    let site = Site::new();
    put(&site, NANO, NEW, base(NEW));
    put_with_base(
        &site,
        "app",
        &format!("mcr.microsoft.com/windows/nanoserver:{OLD}"),
    );
    update(&site, &[])
        .fails(1, "base/gone", &[OLD])
        .advises(&["--base", "wincimg build"]);
    put_with_base(&site, "app", "elsewhere.invalid/base:1");
    update(&site, &[]).fails(1, "base/elsewhere", &["elsewhere.invalid/base:1"]);
}

/// Puts an image that names its base in a label.
fn put_with_base(site: &Site, repository: &str, name: &str) {
    let mut image = on(&base(OLD), app(), "COPY a C:/app/");
    image.image = image
        .image
        .edit_config(|config| {
            let labels = &mut config.config.labels;
            let name = name.to_owned();
            labels.insert("org.opencontainers.image.base.name".to_owned(), name);
        })
        .unwrap();
    put(site, repository, "1.4", image);
}

#[test]
fn a_repository_that_only_the_image_names_gives_no_new_base() {
    let site = site();
    let forged = |version| {
        base_with(version, |tar| {
            tar.file("Files/forged.txt", b"x", None);
        })
    };
    let on_of = |report: &Value| report["updates"][0]["on"].clone();
    // A mirror of others on the image's host: the registry of bases has the same old base.
    for strangers in [
        "stranger/windows/nanoserver",
        "mcr2/windows/nanoserver",
        "stranger/mcr.microsoft.com/windows/nanoserver",
    ] {
        put(&site, strangers, OLD, base(OLD));
        put(&site, strangers, NEW, forged(NEW));
        let name = format!("{}/{strangers}:{OLD}", site.host());
        put_with_base(&site, "app", &name);
        let reading = format!("/v2/{strangers}/");
        let before = site.requests();
        let (_, report, said) = report_of(&mut update(&site, &[]));
        assert_contains!(said, &format!("--base {name}"));
        let used = on_of(&report)["reference"].as_str().unwrap().to_owned();
        assert!(
            used.starts_with(&format!("{}/{NANO}:", site.host())),
            "{used}"
        );
        let read = site.requests_since(before);
        let read = read.iter().find(|it| it.contains(&reading));
        assert_eq!(read, None);
        // The user can name it.
        let base = format!("{}/{strangers}", site.host());
        let report = json_of(&mut update(&site, &["--base", &base]));
        let used = on_of(&report)["reference"].as_str().unwrap().to_owned();
        assert!(used.starts_with(&base), "{used}");
    }
    put(&site, "stranger/base", OLD, base(OLD));
    put(&site, "stranger/base", NEW, forged(NEW));
    let name = format!("{}/stranger/base:{OLD}", site.host());
    put_with_base(&site, "app", &name);
    update(&site, &["--push"])
        .fails(1, "base/elsewhere", &[&name])
        .advises(&["--base"]);
    // The registry of bases needs no word.
    put_with_base(&site, "app", &format!("{}/{NANO}:{OLD}", site.host()));
    let report = json_of(&mut update(&site, &[]));
    assert_eq!(on_of(&report)["found_by"], "named");
    // The namespace of the image has the same owner.
    put(&site, "team/base", OLD, base(OLD));
    put(&site, "team/base", NEW, base(NEW));
    let name = format!("{}/team/base:{OLD}", site.host());
    put_with_base(&site, "team/app", &name);
    let image = format!("{}/team/app:1.4", site.host());
    site.with_bases(&["update", &image, "--host-build", "17763.1158"])
        .assert()
        .code(0);
}

#[test]
fn what_it_says_of_its_base_counts_only_where_its_layers_begin_with_it() {
    let site = site();
    // A label inherited from an intermediate image with another base.
    let mut image = on(&base(OLD), app(), "COPY a C:/app/");
    image.image = image
        .image
        .edit_config(|config| {
            let name = format!("mcr.microsoft.com/windows/servercore/iis:{OLD}");
            let labels = &mut config.config.labels;
            labels.insert("org.opencontainers.image.base.name".to_owned(), name);
        })
        .unwrap();
    put(&site, "app", "1.4", image);
    let report = json_of(&mut update(&site, &[]));
    assert_eq!(report["updates"][0]["on"]["found_by"], "layers");
}

#[test]
fn a_label_that_is_not_a_reference_is_named_and_left_out() {
    let site = site();
    put_with_base(&site, "app", "built by hand");
    let (code, report, noted) = report_of(&mut update(&site, &[]));
    assert_eq!(code, 0, "{noted}");
    let values = ["org.opencontainers.image.base.name", "built by hand"];
    says(&noted, &note(&values));
    assert_eq!(report["updates"][0]["on"]["found_by"], "layers");
}

#[test]
fn wrong_usage_is_reported_before_anything_is_asked() {
    let site = Site::new();
    let before = site.requests();
    for (arguments, value) in [
        (
            &["update", "oci:x", "--host-build", "17763.1158"][..],
            "oci:x",
        ),
        (&["update", "localhost/app:1"], "--host-build"),
    ] {
        site.with_bases(arguments).fails(2, "usage", &[value]);
    }
    let both = ["update", "localhost/app:1", "--check", "--push"];
    site.with_bases(&both)
        .args(["--host-build", "17763.1158"])
        .assert()
        .code(2)
        .stderr(contains("--check").and(contains("--push")));
    let nodes = json!({"kind": "List", "items": [{"kind": "Node",
        "metadata": {"name": "win-a", "labels": {"kubernetes.io/os": "windows"}},
        "status": {"nodeInfo": {}}}]});
    site.write("nodes.json", nodes.to_string());
    site.with_bases(&["update", "localhost/app:1", "--nodes", "nodes.json"])
        .fails(2, "usage", &["--host-build"]);
    assert_eq!(site.requests(), before);
}
