//! Flags as scripts for `docker build` and buildx give them.

use serde_json::{Value, json};

use crate::failure::Fails;
use crate::site::{Site, answer_of, each, json_of, stderr};

const HOST: &str = "17763.973";
const OTHER: &str = "20348.2402";

#[test]
fn switches_take_a_value() {
    let site = Site::new();
    let build = |more: &[&str]| {
        let mut command = site.build("pause");
        let name = format!("{}/app:1", site.host());
        command.args(["--host-build", HOST, "-t", &name]).args(more);
        command
    };
    let off = [
        "--push=false", "--provenance=false", "--sbom=false", "--no-cache=false", "-o", "oci:out",
    ];
    let image = &json_of(&mut build(&off))["images"][0];
    assert_eq!(image["pushed"], false);
    assert_eq!(image["documents"], Value::Null);
    let on = ["--push=true", "--provenance=true", "--sbom=true"];
    let image = &json_of(&mut build(&on))["images"][0];
    assert_eq!(image["pushed"], true);
    let documents = each(&image["documents"], "document");
    assert_eq!(documents.len(), 2);
    assert!(documents.contains(&&json!("SPDX")), "{documents:?}");
    // A switch that is off conflicts with nothing, and the last value counts.
    let name = format!("{}/app:1", site.host());
    let last = [
        "--push=false", "--push", "--join=false", "--replace", "--no-cache=false", "--cache-from",
        &name,
    ];
    let image = &json_of(&mut build(&last))["images"][0];
    assert_eq!(image["pushed"], true);
    let last = ["--push", "--push=false", "-o", "oci:out"];
    let image = &json_of(&mut build(&last))["images"][0];
    assert_eq!(image["pushed"], false);
    let last = ["--push", "--quiet", "-q=true", "--quiet=false", "-q=true"];
    let printed = build(&last).output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    let [reference] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}");
    };
    assert_contains!(reference, "/app@sha256:");
    let both = ["--push=true", "--join", "--replace"];
    build(&both).fails(2, "usage", &["--join", "--replace"]);
    build(&["--push=maybe"]).fails(2, "usage", &["maybe", "--push"]);
    build(&["-q=maybe"]).fails(2, "usage", &["maybe", "--quiet"]);
    let others = [
        "--push=0", "-q=F", "-v=true", "-v=false", "--verbose=False", "--join=1", "--no-index=f",
        "-o", "oci:others",
    ];
    let image = &json_of(&mut build(&others))["images"][0];
    assert_eq!(image["pushed"], false);
    // Another mistake is told, also beside a switch with a value.
    build(&["--push=false", "two"]).fails(2, "usage", &["two"]);
}

#[test]
fn a_flag_of_docker_build_is_answered_with_what_to_do() {
    let site = Site::new();
    for (flag, tip) in [
        ("--load", "docker load -i FILE"),
        ("--progress=plain", "--quiet"),
        ("--secret=id=x", "--stage NAME=DIR"),
        ("--rm", "always removed"),
        ("--rm=false", "it is off"),
        ("--load=0", "it is off"),
        ("-c", "--memory and --isolation"),
        ("-m", "--memory"),
        ("--network=host", "default network"),
        ("--destination=a/b:1", "-t NAME --push"),
        ("--digest-file=a", "--metadata-file"),
        // With another value than here.
        ("--provenance=mode=max", "--provenance without"),
        ("--builder=desktop-linux", "--docker-host"),
        ("--platform=linux/amd64", "--join"),
    ] {
        let output = site.build("pause").arg(flag).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains("similar"), "{said}");
        let name = flag.split('=').next().unwrap();
        assert_contains!(said, name, "tip: ", tip);
    }
    // The end of a line of Windows is shown.
    let mut command = site.build("pause");
    let output = command.args(["--host-build", "ltsc2022\r"]).output();
    assert_contains!(stderr(&output.unwrap()), "ltsc2022\\r");
    // A slip in a value for Windows.
    let output = site.build("pause").arg("--platform=windows/amd46").output();
    let said = stderr(&output.unwrap());
    assert_contains!(said, "windows/amd64");
    assert!(!said.contains("--join"), "{said}");
    // Another command has none of them.
    let other = site.command(&["inspect", "pause", "--load"]);
    let said = stderr(&assert_cmd::Command::from(other).output().unwrap());
    assert!(!said.contains("docker load"), "{said}");
}

#[test]
fn every_name_gets_what_was_built() {
    let site = Site::new();
    let names = ["app:1.4", "app:latest", "mirror/web:1.4"];
    let names = names.map(|name| format!("{}/{name}", site.host()));
    let digest = |name: &str| site.command(&["digest", name]).prints().trim().to_owned();
    for hosts in [&[HOST][..], &[HOST, OTHER]] {
        let mut command = site.build("pause");
        for host in hosts {
            command.args(["--host-build", host]);
        }
        for name in &names {
            command.args(["-t", name]);
        }
        command.args(["--push", "--replace", "--metadata-file", "meta.json"]);
        let built = json_of(command.args(["--sbom", "spdx", "--provenance"]));
        let metadata: Value = serde_json::from_str(&site.text("meta.json")).unwrap();
        assert_eq!(metadata["image.name"], names.join(","));
        let made = if hosts.len() > 1 {
            &built["index"]
        } else {
            &built["images"][0]
        };
        let others: Vec<&str> = names[1..].iter().map(String::as_str).collect();
        assert_eq!(each(&made["copies"], "reference"), others);
        for name in &names {
            assert_eq!(metadata["containerimage.digest"], digest(name), "{name}");
            let sbom = [
                "inspect", name, "--platform", "windows/amd64:17763", "--sbom",
            ];
            let output = site.command(&sbom).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_build_without_an_image_writes_no_result() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "14393.3750", "--host-build", "18362.700"]);
    command.args([
        "-o", "oci:out", "--metadata-file", "meta.json", "--iidfile", "id",
    ]);
    let (code, answer) = answer_of(&mut command);
    assert_eq!((code, &answer["images"]), (1, &json!([])), "{answer}");
    assert_eq!(each(&answer["failed"], "code").len(), 2, "{answer}");
    for file in ["meta.json", "id"] {
        assert!(!site.path(file).exists(), "{file}");
    }
}

#[test]
fn another_name_keeps_what_others_use() {
    let site = Site::new();
    let [first, taken] = ["app:1", "shared:1"].map(|name| format!("{}/{name}", site.host()));
    let build = |host: &str, more: &[&str]| {
        let mut command = site.build("pause");
        command.args(["--host-build", host, "--push"]).args(more);
        command
    };
    json_of(&mut build(OTHER, &["-t", &taken]));
    let both = ["-t", &first, "-t", &taken];
    let printed = build(HOST, &both).tells(1);
    assert_contains!(printed, &taken, "--join");
    // Nothing was pushed under the first name.
    let first_there = site.command(&["digest", &first]).output().unwrap();
    assert!(!first_there.status.success());
    json_of(build(HOST, &both).args(["--join", "--metadata-file", "meta.json"]));
    // Of the names, the digest has the first alone.
    let metadata: Value = serde_json::from_str(&site.text("meta.json")).unwrap();
    assert_eq!(metadata["image.name"], first);
    let digest = &metadata["containerimage.digest"];
    assert_eq!(metadata["containerimage.descriptor"]["digest"], *digest);
    for (name, versions) in [(&first, 1), (&taken, 2)] {
        let found = json_of(&mut site.with_no_bases(&["inspect", name]));
        assert_eq!(each(&found["images"], "os_version").len(), versions);
    }
}

#[test]
fn another_name_does_not_replace_an_image_of_the_index() {
    let site = Site::new();
    let [index, image] =
        ["app:1", "app:1-10.0.17763.973"].map(|name| format!("{}/{name}", site.host()));
    let build = |hosts: &[&str]| {
        let mut command = site.build("pause");
        for host in hosts {
            command.args(["--host-build", host]);
        }
        command.args(["-t", &index, "-t", &image, "--push"]);
        command
    };
    build(&[HOST, OTHER])
        .fails(2, "tag/same", &[&image])
        .advises(&["--tag"]);
    let pushed = site.command(&["digest", &index]).output().unwrap();
    assert!(!pushed.status.success());
    // A single image has both names.
    json_of(&mut build(&[HOST]));
}

#[test]
fn several_names_are_of_one_image_in_a_registry() {
    let site = Site::new();
    let names = ["app:1", "app:2"].map(|name| format!("{}/{name}", site.host()));
    let build = |more: &[&str]| {
        let mut command = site.build("pause");
        command.args(["--host-build", HOST, "-t", &names[0], "-t", &names[1]]);
        command.args(more);
        command
    };
    let refused = build(&[]).fails(2, "usage", &["--push"]);
    refused.advises(&["wincimg image tag"]);
    // Without an index, each name has the version.
    let pushed = json_of(&mut build(&["--push", "--no-index"]));
    let version = format!("{}-10.0.17763.973", names[1]);
    let copies = &pushed["images"][0]["copies"];
    assert_eq!(each(copies, "reference"), [version.as_str()]);
    let bare = site.command(&["digest", &names[1]]).output().unwrap();
    assert!(!bare.status.success());
    let several = ["--push", "--no-index", "--host-build", OTHER];
    build(&several).fails(2, "usage", &["--tag", "--no-index"]);
}

#[test]
fn annotations_are_of_the_manifest() {
    let site = Site::new();
    let build = |more: &[&str]| {
        let mut command = site.build("pause");
        command.args(["--host-build", HOST, "--tag", "1", "-o", "oci:out"]);
        command.args(more);
        command
    };
    let given = [
        "--annotation",
        "team=web servers",
        "--annotation",
        "manifest:org.example.a=b=c",
    ];
    build(&given).assert().success();
    let output = site.command(&["manifest", "oci:out:1"]).output().unwrap();
    let manifest: Value = serde_json::from_slice(&output.stdout).unwrap();
    let annotations = &manifest["annotations"];
    assert_eq!(annotations["team"], "web servers");
    assert_eq!(annotations["org.example.a"], "b=c");
    assert!(annotations["org.opencontainers.image.base.name"].is_string());
    build(&["--annotation", "index:a=b"]).fails(2, "usage", &["index:a=b"]);
    let mut dockers = site.push("pause");
    dockers.args(["--host-build", HOST, "--manifest-format", "docker"]);
    dockers.args(["--annotation", "a=b"]);
    dockers.fails(2, "usage", &["--annotation", "--label"]);
}
