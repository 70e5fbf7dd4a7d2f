//! Bases and images for another Windows than the host.

use std::os::unix::fs::symlink;

use serde_json::json;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::test_bases::tar_of;

use super::{BASE, build, files, plan, site};
use crate::failure::{Fails, note, says};
use crate::site::{Site, json_of, stderr};

#[test]
fn a_tag_with_a_digest_decides_on_the_host() {
    let site = Site::new();
    let name = "windows/nanoserver:10.0.17763.973";
    let mirrored = format!("{}/mcr/{name}", site.host());
    let digest = site.command(&["digest", &mirrored]).prints();
    let base = format!("mcr.microsoft.com/{name}@{}", digest.trim());
    site.write("app/Dockerfile", format!("FROM {base}\nENV A=1\n"));
    let built = json_of(site.build("./app").args(["--output", "oci:out"]));
    assert_eq!(built["images"][0]["os_version"], "10.0.17763.973");
    site.build("./app")
        .args(["--host-build", "20348.2402"])
        .fails(1, "base/nothing-fits", &["20348.2402"])
        .advises(&["remove the digest"]);
}

#[test]
fn files_of_one_windows_version_are_not_for_hosts_of_several() {
    let site = Site::new();
    let cache = format!("{}/cache:1.0-linux-amd64-1809", site.host());
    let nano = format!("{}/mcr/windows/nanoserver:10.0.17763.973", site.host());
    let digest = site.command(&["digest", &nano]).prints();
    let pinned = format!("{nano}@{}", digest.trim());
    let stage = |image: &str| format!("FROM --platform=linux/amd64 {image} AS core\n");
    let replaced = format!("core={cache}");
    for (first, from, name, more) in [
        (stage(&cache), "core", &cache, &[] as &[&str]),
        (stage("alpine"), "core", &cache, &["--stage", &replaced]),
        (String::new(), pinned.as_str(), &pinned, &[]),
    ] {
        let lines = format!("{first}FROM {BASE}\nCOPY --from={from} /a.dll /x/\n");
        site.write("app/Dockerfile", lines);
        let mut build = build(&site, &["--host-build", "20348.2402"]);
        build
            .args(more)
            .fails(2, "dockerfile/request", &[name, "17763", "20348"])
            .advises(&["--join"]);
    }
    // Both hosts get images on the one base.
    let nano = format!("{}/mcr/windows/nanoserver:10.0.20348.2402", site.host());
    let digest = site.command(&["digest", &nano]).prints();
    let from = format!("{nano}@{}", digest.trim());
    let lines = format!("FROM {BASE}\nCOPY --from={from} /License.txt /x/\n");
    site.write("app/Dockerfile", lines);
    let mut build = site.build("./app");
    build.args(["--host-build", "20348.2402", "--host-build", "26100.2314"]);
    json_of(build.args(["--output", "oci:out"]));
}

#[test]
fn files_of_another_windows_than_the_base_are_noted() {
    let site = Site::new();
    let nano = format!("{}/mcr/windows/nanoserver:10.0.20348.2402", site.host());
    let lines = format!("FROM {BASE}\nCOPY --from={nano} /License.txt /x/\n");
    site.write("app/Dockerfile", lines);
    let output = build(&site, &["--dry-run"]).output().unwrap();
    let expected = note(&[&nano, "20348", "gets build 17763"]);
    says(&stderr(&output), &expected);

    let registry = FakeRegistry::start();
    let layer = registry.layer(tar_of(&[("a.dll", "dll")]));
    let config = json!({"os": "linux", "architecture": "amd64"});
    let image = registry.image_of(&config, &[layer]);
    let host = registry.host();
    let one = ["--insecure-registry", host.as_str(), "--dry-run"];
    let two = [&one[..], &["--host-build", "20348.2402"]].concat();
    // Windows 2004 has the name of Ubuntu 20.04.
    for (tag, hosts, is_noted) in [
        ("1.0-ltsc2022", &one[..], true),
        ("1.0-1809", &one, false),
        ("focal-2004", &one, false),
        ("focal-2004", &two, false),
    ] {
        registry.tag("core", tag, &image);
        let core = format!("{host}/core:{tag}");
        let lines = format!(
            "FROM --platform=linux/amd64 {core} AS core\nFROM {BASE}\nCOPY --from=core /a.dll /x/\n"
        );
        site.write("app/Dockerfile", lines);
        let output = build(&site, hosts).output().unwrap();
        let printed = stderr(&output);
        assert!(output.status.success(), "{printed}");
        assert_eq!(printed.contains("is for build"), is_noted, "{printed}");
    }
}

#[test]
fn what_only_docker_builds_from_is_named() {
    let site = site("ENV A=1", &[]);
    site.write("context.tar.gz", [0x1f, 0x8b]);
    site.write("compose.yaml", "services: {}\n");
    for (words, what, hint) in [
        (&["-"][..], "stdin", "-f FILE"),
        (&["app", "-f", "-"], "stdin", "-f FILE"),
        (&["https://x.invalid/a.git#main"], "a URL", "clone"),
        (&["context.tar.gz"], "an archive", "unpack"),
        (&["compose.yaml"], "several images", "--build-arg"),
    ] {
        site.with_bases(&[&["build"], words].concat())
            .fails(2, "usage/arguments", &[what])
            .advises(&[hint]);
    }
}

#[test]
fn a_pattern_does_not_follow_links_that_it_does_not_match() {
    let site = site("COPY a.* d/*.txt /x/", &["a.txt", "d/e.txt"]);
    for name in [".#a.txt", "d/latest"] {
        symlink("/etc/passwd", site.path(&format!("app/{name}"))).unwrap();
    }
    let _pipe = std::os::unix::net::UnixListener::bind(site.path("app/pipe")).unwrap();
    assert_eq!(files(&plan(&site, &[])), ["x/a.txt", "x/e.txt"]);
    site.write("app/Dockerfile", format!("FROM {BASE}\nCOPY d/l* /x/\n"));
    build(&site, &["--dry-run"]).fails(2, "dockerfile/invalid", &["latest"]);
    site.write("app/Dockerfile", format!("FROM {BASE}\nCOPY l* m* /x/\n"));
    let nothing = "\"l* m*\" matches nothing";
    build(&site, &["--dry-run"]).fails(2, "dockerfile/invalid", &[nothing]);
}

#[test]
fn what_a_recipe_hides_is_noted() {
    let site = site("ENV A=1", &[]);
    let recipe = "name = \"web\"\nbase = \"nanoserver\"\nentrypoint = ['C:\\a.exe']\n";
    site.write("app/recipe.toml", recipe);
    site.write("pause/Dockerfile", format!("FROM {BASE}\n"));
    for (image, hidden) in [
        ("./app", ["./app/recipe.toml", "./app/Dockerfile"]),
        ("pause", ["\"pause\"", "./pause"]),
    ] {
        let mut build = site.build(image);
        let output = build.args(["--host-build", "17763.973", "--dry-run"]);
        let printed = stderr(&output.output().unwrap());
        says(&printed, &note(&hidden));
    }
}
