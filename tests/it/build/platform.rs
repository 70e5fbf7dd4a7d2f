//! Images for another architecture than amd64.

use serde_json::json;
use wincimg_oci::document::{Document, Index, ManifestFormat, Verbatim};
use wincimg_testkit::layout::config_in;
use wincimg_testkit::windows_base::StandIn;

use crate::api::windows_node;
use crate::failure::{Fails, Failure};
use crate::site::{Site, add_base, answer_of, json_of, report_of};

const VERSION: &str = "10.0.26100.1742";
const REPOSITORY: &str = "mcr/windows/nanoserver";
const FROM: &str = "mcr.microsoft.com/windows/nanoserver:ltsc2025";

/// A site with a base for both architectures, and their digests.
fn site() -> (Site, [String; 2]) {
    let site = Site::new();
    let images = ["amd64", "arm64"].map(|architecture| {
        let mut base = StandIn::new(ManifestFormat::Oci, VERSION, &[(2000, 7)]);
        let image = base.image.edit_config(|config| {
            config.architecture = architecture.to_owned();
            config.created = Some("2025-01-14T00:00:00Z".to_owned());
        });
        base.image = image.unwrap();
        base
    });
    let entries = images.iter().map(|base| base.image.index_entry()).collect();
    let index = Verbatim::new(Index::new(ManifestFormat::Oci, entries)).unwrap();
    let digests = [0, 1].map(|place| images[place].image.digest().to_string());
    site.registry.with(|stored| {
        for base in images {
            let digest = base.image.digest().to_string();
            add_base(stored, REPOSITORY, &digest, base);
        }
        for tag in ["ltsc2025", VERSION] {
            let index = Document::Index(index.clone());
            let bytes = index.bytes().clone();
            stored.add_manifest(REPOSITORY, tag, index.media_type(), bytes);
        }
    });
    site.write("app/a.txt", "a");
    write(&site, FROM);
    (site, digests)
}

fn write(site: &Site, from: &str) {
    let text =
        format!("FROM {from}\nARG TARGETARCH\nCOPY a.txt C:/\nENV ARCH=$TARGETARCH\nCMD [\"x\"]\n");
    site.write("app/Dockerfile", text);
}

fn build(site: &Site, more: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command.args(["--host-build", "26100.1742"]).args(more);
    command
}

const ARM: [&str; 2] = ["--platform", "windows/arm64"];

#[test]
fn an_image_for_arm64_is_on_that_entry_of_its_base() {
    let (site, [amd64, arm64]) = site();
    let planned = json_of(build(&site, &ARM).arg("--dry-run"));
    assert_eq!(planned["plans"][0]["architecture"], "arm64");
    let built = json_of(build(&site, &ARM).args(["--output", "oci:arm"]));
    let image = &built["images"][0];
    assert_eq!(image["architecture"], "arm64");
    assert_eq!(image["base"]["digest"], arm64);
    let config = config_in(&site.path("arm"));
    assert_eq!(config["architecture"], "arm64");
    assert_eq!(config["config"]["Env"], json!(["ARCH=arm64"]));

    // FROM says the same.
    write(&site, &format!("--platform=windows/arm64 {FROM}"));
    let named = json_of(build(&site, &[]).args(["--output", "oci:named"]));
    assert_eq!(named["images"][0]["digest"], image["digest"]);
    let other = build(&site, &["--platform", "windows/amd64", "--format", "json"])
        .output()
        .unwrap();
    let failure = Failure::of(&other).names(&["windows/arm64", "windows/amd64"]);
    assert_eq!(failure.code, "usage");

    write(&site, FROM);
    let usual = json_of(build(&site, &[]).args(["--output", "oci:usual"]));
    assert_eq!(usual["images"][0]["base"]["digest"], amd64);
    assert_eq!(
        config_in(&site.path("usual"))["config"]["Env"],
        json!(["ARCH=amd64"])
    );
}

#[test]
fn an_architecture_or_digest_that_no_host_can_use_is_named() {
    let (site, [amd64, _]) = site();
    write(&site, "mcr.microsoft.com/windows/nanoserver:1809");
    let fails = |more: &[&str], named: &str| {
        let mut build = site.build("./app");
        build.args(["--host-build", "17763.973"]).args(more);
        build.fails(1, "base/nothing-fits", &[named])
    };
    fails(&ARM, "for windows/arm64").hides("update the host");
    let place = format!("windows/nanoserver@{amd64}");
    write(&site, &format!("mcr.microsoft.com/{place}"));
    fails(&[], &place);
}

#[test]
fn tags_may_name_the_architecture() {
    let (site, _) = site();
    let repository = "mcr/windows/servercore";
    let digests = ["amd64", "arm64"].map(|architecture| {
        let mut base = StandIn::new(ManifestFormat::Oci, VERSION, &[(2000, 8)]);
        let image = base.image.edit_config(|config| {
            config.architecture = architecture.to_owned();
            config.created = Some("2025-01-14T00:00:00Z".to_owned());
        });
        base.image = image.unwrap();
        let digest = base.image.digest().to_string();
        let tag = format!("{VERSION}-{architecture}");
        site.registry
            .with(|stored| add_base(stored, repository, &tag, base));
        digest
    });
    write(&site, "mcr.microsoft.com/windows/servercore:ltsc2025");
    for (digest, platform) in digests.iter().zip(["windows/amd64", "windows/arm64"]) {
        let mut build = build(&site, &["--platform", platform, "--output", "oci:tagged"]);
        assert_eq!(json_of(&mut build)["images"][0]["base"]["digest"], **digest);
    }
}

#[test]
fn what_is_not_for_the_platform_is_refused() {
    let (site, _) = site();
    for platform in ["linux/amd64", "windows/386", "arm64"] {
        let said = build(&site, &["--platform", platform]).tells(2);
        assert_contains!(said, "windows/arm64");
    }
    write(&site, &format!("--platform=windows/386 {FROM}"));
    let output = build(&site, &["--format", "json"]).output().unwrap();
    Failure::of(&output).is("usage", &["windows/386", "windows/arm64"]);
    // The shim is a program for amd64.
    site.write(
        "layered/recipe.toml",
        "name = \"layered\"\nbase = \"nanoserver\"\n\
         [[files]]\nlayer = \"a\"\nembedded = \"shim\"\nto = 'C:\\shim.exe'\n",
    );
    for recipe in ["pause", "./layered"] {
        let mut pause = site.build(recipe);
        pause
            .args(["--host-build", "26100.1742", "--format", "json"])
            .args(ARM);
        Failure::of(&pause.output().unwrap()).is("recipe/architecture", &["shim", "arm64"]);
    }
    // Older bases have no image for it.
    write(&site, FROM);
    let mut old = site.build("./app");
    old.args(["--host-build", "17763.973", "--format", "json"])
        .args(ARM);
    assert_eq!(old.output().unwrap().status.code(), Some(1));
}

#[test]
fn an_index_keeps_the_entries_of_the_other_architecture() {
    let (site, _) = site();
    let host = site.host();
    let push = ["--registry", &host, "--push", "--tag", "1.4", "--join"];
    json_of(&mut build(&site, &push));
    let arm = json_of(build(&site, &push).args(ARM));
    let kept = format!("windows/amd64:{VERSION}");
    assert_eq!(arm["index"]["kept"], json!([kept]));
    site.write("app/a.txt", "changed");
    let amd = json_of(&mut build(&site, &push));
    let kept = format!("windows/arm64:{VERSION}");
    assert_eq!(amd["index"]["kept"], json!([kept]));
    let references = [&amd, &arm].map(|built| built["images"][0]["reference"].clone());
    let app = format!("{host}/app:1.4-{VERSION}");
    assert_eq!(references, [json!(app), json!(format!("{app}-arm64"))]);
}

#[test]
fn nodes_of_another_architecture_are_left_out_and_do_not_start_the_image() {
    let (site, _) = site();
    let host = site.host();
    let node = |name: &str, architecture: &str| {
        let mut node = windows_node(name, VERSION);
        node["metadata"]["labels"]["kubernetes.io/arch"] = json!(architecture);
        node["status"]["nodeInfo"]["architecture"] = json!(architecture);
        node
    };
    let list = json!({"kind": "List", "items": [node("x-1", "amd64"), node("arm-1", "arm64")]});
    site.write("nodes.json", list.to_string());
    let mut command = site.build("./app");
    let push = ["--registry", &host, "--push", "--tag", "1.4"];
    command.args(["--nodes", "nodes.json"]).args(push);
    let (code, built, printed) = report_of(&mut command);
    assert_eq!(code, 0, "{printed}");
    assert_contains!(printed, "arm-1");
    assert_eq!(built["left_out"], json!(["arm-1"]));
    let image = format!("{host}/app:1.4");
    let check = ["check-compat", &image, "--nodes", "nodes.json"];
    let (code, answer) = answer_of(&mut site.with_no_bases(&check));
    assert_eq!(code, 1, "{answer}");
    let verdict = |name: &str| {
        let mut checks = answer["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["host"]["name"] == name).unwrap();
        (check["verdict"].clone(), check["rule"].clone())
    };
    assert_eq!(verdict("x-1").0, "compatible");
    assert_eq!(
        verdict("arm-1"),
        (json!("incompatible"), json!("no-matching-platform"))
    );
}
