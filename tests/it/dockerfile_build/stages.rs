//! Stages, and folders and images in their place.

use serde_json::{Value, json};
use wincimg_testkit::fake_registry::FakeRegistry;

use super::{BASE, build, files, plan, refused, site};
use crate::failure::Fails;
use crate::site::{Site, json_of, stderr};

#[test]
fn an_image_in_a_folder_can_be_in_the_place_of_a_stage() {
    let site = site("COPY a.txt /one/", &["a.txt", "b.txt"]);
    let both = ["--host-build", "20348.2402", "--tag", "1"];
    let one = json_of(build(&site, &both).args(["--output", "oci:one"]));
    json_of(build(&site, &both).args(["--name", "one", "--registry", &site.host(), "--push"]));
    let text = format!(
        "FROM {BASE} AS made\nRUN msbuild.exe\nFROM {BASE} AS other\nCOPY --from=made /one/a.txt /two/\n\
         FROM made\nCOPY b.txt /three/\nCOPY --from=other /two /four/\n"
    );
    site.write("app/Dockerfile", text);
    let layers = |image: &Value| -> Vec<String> {
        let layers = image["layers"].as_array().unwrap().iter();
        layers
            .map(|layer| layer["digest"].as_str().unwrap().to_owned())
            .collect()
    };
    let in_registry = format!("made={}/one:1", site.host());
    let expected = json_of(
        build(&site, &both)
            .args(["--stage", &in_registry])
            .args(["--output", "oci:expected"]),
    );
    let built =
        json_of(build(&site, &both).args(["--stage", "made=oci:one:1", "--output", "oci:two"]));
    let images = built["images"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    for (index, image) in images.iter().enumerate() {
        let below = layers(&one["images"][index]);
        let all = layers(image);
        assert_eq!(all[..below.len()], below, "the image of that host");
        assert_eq!(all, layers(&expected["images"][index]));
        for digest in all {
            let blob = site.path("two/blobs").join(digest.replace(':', "/"));
            assert!(blob.is_file(), "{digest}");
        }
    }
    // A name in the file itself is never a folder.
    site.write("app/Dockerfile", "FROM oci:one\nCOPY b.txt /x/\n");
    let output = build(&site, &["--format", "json"]).output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(!stderr(&output).contains("layout"), "{}", stderr(&output));
}

#[test]
fn stages_see_what_earlier_ones_made_and_a_folder_can_be_in_their_place() {
    let site = Site::new();
    let text = format!(
        "ARG WHICH=tools\nFROM {BASE} AS tools\nWORKDIR /out\nCOPY a.txt bin/\nCOPY b.txt bin/sub/\n\
         FROM golang:1.22 AS compiled\nRUN go build\n\
         FROM {BASE} AS base\nENV FROM_BASE=1\n\
         FROM base\nCOPY --from=tools /out/bin /t/\nCOPY --from=0 C:/out/bin/*.txt /u/\n\
         COPY --from=compiled /go/bin/app.exe /v/\n"
    );
    site.write("app/Dockerfile", text);
    for file in ["app/a.txt", "app/b.txt", "made/go/bin/app.exe"] {
        site.write(file, file);
    }
    let plan = plan(&site, &["--stage", "compiled=made"]);
    let expected = ["t/a.txt", "t/sub/b.txt", "u/a.txt", "v/app.exe"];
    assert_eq!(files(&plan), expected);
    for (place, hint) in [
        ("made/go/bin/app.exe", "docker-archive:made/go/bin/app.exe"),
        ("mad", "made"),
        ("elsewhere", "compile"),
    ] {
        build(&site, &["--stage", &format!("compiled={place}")])
            .fails(2, "dockerfile/request", &[place])
            .advises(&[hint]);
    }
    assert_eq!(
        plan["instructions"]["container"]["Env"],
        json!(["FROM_BASE=1"])
    );

    // Without the folder, the error names the line and has a hint.
    let failure = build(&site, &["--dry-run"])
        .fails(4, "dockerfile/needs-windows", &["app/Dockerfile:7"])
        .advises(&["--stage compiled=DIR"])
        .on_line(7);
    assert!(failure.stderr.contains("RUN go build"), "{failure:#?}");
    // A stage that another is based on is replaced by an image; Windows can run the line, too.
    let based = "FROM mcr.microsoft.com/windows/nanoserver:1809 AS tools\nRUN go build\nFROM tools";
    let site_of_images = Site::new();
    site_of_images.write("app/Dockerfile", based);
    build(&site_of_images, &["--dry-run"])
        .fails(4, "dockerfile/needs-windows", &[])
        .advises(&["--stage tools=IMAGE", "--docker-host tcp://HOST:2375"]);
    let direct = [
        "--dry-run", "--engine", "direct", "--docker-host", "tcp://x:1",
    ];
    build(&site_of_images, &direct)
        .fails(2, "usage", &["--docker-host"])
        .advises(&["--engine direct"]);
    // Another target does not need it.
    let mut only = json_of(&mut build(&site, &["--dry-run", "--target", "tools"]));
    assert_eq!(
        files(&only["plans"][0].take()),
        ["out/bin/a.txt", "out/bin/sub/b.txt"]
    );
}

/// A build of a Dockerfile with these lines above its last stage, which copies from `build`.
fn build_on_stage(site: &Site, lines: &str, arguments: &[&str]) -> assert_cmd::Command {
    let text = format!("{lines}\nFROM {BASE}\nCOPY --from=build /out /app\n");
    site.write("app/Dockerfile", text);
    build(site, &[&["--dry-run"][..], arguments].concat())
}

/// Arguments for a daemon, which a plan does not contact.
const DAEMON: [&str; 4] = [
    "--docker-host", "tcp://127.0.0.1:1", "--output", "oci:image",
];

#[test]
fn a_line_of_linux_makes_its_stage_one_that_windows_cannot_run() {
    let site = Site::new();
    for (lines, daemon) in [
        ("golang:1.22 AS build\nRUN apk add git", &DAEMON[..]),
        (
            "golang:1.22 AS build\nRUN go mod download\nRUN apk add git",
            &[],
        ),
        (
            "golang:1.22 AS build\nRUN apt-get update && apt-get install git",
            &[],
        ),
        ("golang:1.22-alpine AS build\nRUN go build", &[]),
    ] {
        build_on_stage(&site, &format!("FROM {lines}"), daemon)
            .fails(2, "dockerfile/needs-linux", &[])
            .advises(&["--stage build=DIR"])
            .hides("tcp://HOST")
            .on_line(2);
    }
    refused("RUN apt-get update", &[])
        .is("dockerfile/needs-linux", &["apt-get"])
        .hides("--stage");
    let below = "FROM golang:1.22 AS below\nRUN apt-get update\nFROM below\n";
    site.write("app/Dockerfile", below);
    build(&site, &["--dry-run"])
        .fails(2, "dockerfile/needs-linux", &["a base for Windows"])
        .hides("--stage");
    let mixed = format!("FROM {BASE}\nRUN choco install git\nRUN apt-get update\n");
    site.write("app/Dockerfile", mixed);
    build(&site, &["--dry-run"])
        .fails(2, "dockerfile/needs-windows", &["choco"])
        .on_line(2);
}

#[test]
fn the_stage_to_replace_is_the_one_that_files_are_copied_from() {
    let site = Site::new();
    let above = "FROM golang:1.22 AS go\nRUN apt-get update\nFROM go AS other\n";
    for (from, more) in [("build", "FROM go AS build\n"), ("go", "")] {
        let last = format!("FROM {BASE}\nCOPY --from={from} /out /app\n");
        site.write("app/Dockerfile", format!("{above}{more}{last}"));
        build(&site, &["--dry-run"])
            .fails(2, "dockerfile/needs-linux", &[])
            .advises(&[&format!("--stage {from}=DIR")])
            .hides("IMAGE");
    }
}

#[test]
fn a_stage_that_copies_from_itself_is_told_from_one_below() {
    let site = Site::new();
    let copy = "COPY --from=stg a.txt /a/";
    for (text, problem) in [
        (format!("FROM {BASE} AS stg\n{copy}\n"), "from itself"),
        (
            format!("FROM {BASE} AS one\n{copy}\nFROM {BASE} AS stg\nFROM one\n"),
            "on line 3",
        ),
    ] {
        site.write("app/Dockerfile", text);
        build(&site, &["--dry-run"])
            .fails(2, "dockerfile/invalid", &["stg", problem])
            .on_line(2);
    }
}

#[test]
fn a_base_for_linux_is_an_error_of_its_stage() {
    let registry = FakeRegistry::start();
    let platform = json!({"os": "linux", "architecture": "amd64"});
    let image = registry.image_with(&platform);
    let mut entry = registry.entry(&image);
    entry["platform"] = platform;
    let mut attestation = registry.entry(&image);
    attestation["platform"] = json!({"os": "unknown", "architecture": "unknown"});
    registry.tag("golang", "image", &image);
    registry.tag("golang", "index", &registry.index_of(&[entry, attestation]));
    let host = registry.host();
    let arguments = [&DAEMON[..], &["--insecure-registry", host.as_str()][..]].concat();
    let site = Site::new();
    for tag in ["image", "index"] {
        let lines = format!("FROM {host}/golang:{tag} AS build\nRUN go build");
        build_on_stage(&site, &lines, &arguments)
            .fails(2, "dockerfile/invalid", &["\"build\"", "linux"])
            .advises(&["--stage build=DIR"])
            .hides("--engine")
            .on_line(1);
        let sent = ["--engine", "docker", "--insecure-registry", host.as_str()];
        build_on_stage(&site, &lines, &sent)
            .fails(2, "dockerfile/invalid", &["\"build\"", "linux"])
            .advises(&["omit --engine docker", "--stage build=DIR"]);
        let base = format!("{host}/golang:{tag}");
        let lines = format!("FROM {base} AS build\nFROM {base}\nCOPY --from=build /a /b\n");
        site.write("app/Dockerfile", lines);
        build(&site, &["--dry-run", "--insecure-registry", &host])
            .fails(2, "dockerfile/invalid", &["linux"])
            .advises(&["mcr.microsoft.com/windows/nanoserver"])
            .on_line(2);
        let recipe = format!("name = \"app\"\nbase_image = \"{base}\"\n");
        site.write("recipe.toml", recipe);
        site.build("./recipe.toml")
            .args(["--dry-run", "--host-build", "17763.973"])
            .args(["--insecure-registry", &host])
            .fails(1, "image/not-windows", &["linux"])
            .advises(&["mcr.microsoft.com/windows/nanoserver"]);
    }
}
