//! Dockerfiles that do not require Windows: files, configuration and errors of their builds.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

use predicates::Predicate as _;
use serde_json::{Value, json};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::layout::{blob_in, json_in};
use wincimg_testkit::test_bases::{gzip, tar_of};

use crate::failure::{Fails, Failure, note, says};
use crate::site::{Site, answer_of, json_of, stderr};

const BASE: &str = "mcr.microsoft.com/windows/nanoserver:1809";

/// A folder with a Dockerfile on a base, and files.
fn site(instructions: &str, files: &[&str]) -> Site {
    let site = Site::new();
    site.write("app/Dockerfile", format!("FROM {BASE}\n{instructions}\n"));
    for file in files {
        site.write(&format!("app/{file}"), *file);
    }
    site
}

fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command.args(["--host-build", "17763.973"]).args(arguments);
    command
}

fn plan(site: &Site, arguments: &[&str]) -> Value {
    let mut plans = json_of(build(site, &["--dry-run"]).args(arguments));
    plans["plans"][0].take()
}

/// The files of the image, without the drive.
fn files(plan: &Value) -> Vec<String> {
    let content = plan["content"].as_array().unwrap().iter();
    let paths = content.map(|file| file["path"].as_str().unwrap());
    paths.map(|path| path[3..].replace('\\', "/")).collect()
}

/// The error of a build.
fn refused(instructions: &str, arguments: &[&str]) -> Failure {
    let site = site(instructions, &["a.txt", "b.txt", "d/c.txt", "d/e.log"]);
    let mut build = build(&site, &["--dry-run", "--format", "json"]);
    let output = build.args(arguments).output().unwrap();
    Failure::of_dockerfile(&output)
}

#[test]
fn files_go_where_docker_puts_them() {
    let cases = [
        ("COPY a.txt /1/", &["1/a.txt"][..]),
        ("COPY a.txt /2", &["2"]),
        ("COPY a.txt C:\\\\3\\\\y.txt", &["3/y.txt"]),
        // As in Docker's own hello-world.
        ("COPY a.txt C:", &["a.txt"]),
        ("WORKDIR /4\nCOPY a.txt .", &["4/a.txt"]),
        ("COPY a.txt ./in/", &["4/in/a.txt"]),
        ("WORKDIR v\nCOPY b.txt c.exe ../", &["4/b.txt", "4/c.exe"]),
        // An existing folder is a valid destination.
        ("WORKDIR /5\nCOPY a.txt /5", &["5/a.txt"]),
        ("COPY a.txt /6/\nCOPY b.txt /6", &["6/a.txt", "6/b.txt"]),
        (
            "COPY a.txt C:/Windows/System32",
            &["Windows/System32/a.txt"],
        ),
        // Copying a folder copies its content.
        ("COPY d /7", &["7/e.txt", "7/f/g.log"]),
        ("COPY d/ /8/", &["8/e.txt", "8/f/g.log"]),
        ("COPY *.txt /9/", &["9/a.txt", "9/b.txt"]),
        ("COPY a.txt a-lock.json* /18/", &["18/a.txt"]),
        ("COPY ?.exe /10/", &["10/c.exe"]),
        (
            "COPY [ab].txt c.exe /11/",
            &["11/a.txt", "11/b.txt", "11/c.exe"],
        ),
        ("COPY d/* /12/", &["12/e.txt", "12/g.log"]),
        ("COPY --exclude=**/*.log d /13/", &["13/e.txt"]),
        ("COPY --exclude=* d C:/", &[]),
        ("COPY --link D/E.TXT /14/", &["14/e.txt"]),
        ("COPY [\"a.txt\", \"/with space/\"]", &["with space/a.txt"]),
        ("ARG N=a\nCOPY ${N}.txt /$N/", &["a/a.txt"]),
        ("ADD a.txt /15/", &["15/a.txt"]),
        ("COPY a.txt /16/\nCOPY b.txt /16/a.txt", &["16/a.txt"]),
        (
            "COPY <<EOF <<'end' /17/\n1\nEOF\n2\nend",
            &["17/end", "17/EOF"],
        ),
    ];
    let instructions = cases.map(|(instructions, _)| instructions).join("\n");
    let all = ["a.txt", "b.txt", "c.exe", "d/e.txt", "d/f/g.log"];
    let mut found = files(&plan(&site(&instructions, &all), &[]));
    found.sort();
    let mut expected = cases.map(|(_, files)| files).concat();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_shim_that_will_not_start_the_program_is_warned_of() {
    let site = site(
        "COPY a.txt C:/wincimg/shim.exe\nENTRYPOINT [\"C:/wincimg/shim.exe\", \"C:/a.exe\"]",
        &["a.txt"],
    );
    let output = build(&site, &["--dry-run"]).output().unwrap();
    let printed = stderr(&output);
    assert!(
        printed.contains("will not start: unexpected 'C:/a.exe'"),
        "{printed}"
    );
}

#[test]
fn what_the_rules_leave_out_does_not_exist() {
    let site = site(
        "COPY . /x/",
        &["a.txt", "b.log", "keep/c.log", "keep/d.log"],
    );
    site.write(
        "app/.dockerignore",
        "Dockerfile\n.dockerignore\n**/*.log\n!keep/c.log\n",
    );
    assert_eq!(files(&plan(&site, &[])), ["x/a.txt", "x/keep/c.log"]);
    // The Dockerfile's own ignore file replaces the other.
    site.write("app/Dockerfile.dockerignore", "*\n!b.log\n");
    assert_eq!(files(&plan(&site, &[])), ["x/b.log"]);
    site.write("app/Dockerfile", format!("FROM {BASE}\nCOPY a.txt /x/\n"));
    build(&site, &["--dry-run"]).fails(
        2,
        "dockerfile/invalid",
        &["a.txt", "./app", "./app/Dockerfile.dockerignore"],
    );
}

#[test]
fn what_a_build_writes_is_not_in_its_context() {
    let written = [
        "--cache-dir", "cache", "--metadata-file", "metadata.json", "--iidfile", "id",
    ];
    for output in ["", "oci:out", "docker-archive:out.tar"] {
        let site = Site::new();
        site.write("a.txt", "a");
        site.write("Dockerfile", format!("FROM {BASE}\nCOPY . /x/\n"));
        let build = || {
            let mut build = site.build(".");
            build.args(["--host-build", "17763.973", "--name", "app"]);
            build.args(written);
            if !output.is_empty() {
                build.args(["--output", output]);
            }
            build
        };
        let digests = [(); 2].map(|()| json_of(&mut build())["images"][0]["digest"].take());
        assert_eq!(digests[0], digests[1], "{output}");
        // The file of the last build is removed before, the cache stays.
        for (copied, name) in [("metadata.json", "metadata.json"), ("Cache", "cache")] {
            site.write("Dockerfile", format!("FROM {BASE}\nCOPY {copied} /x/\n"));
            let problem = [&format!("{name:?}"), "builds write it", "another name"];
            build().fails(2, "dockerfile/invalid", &problem);
        }
    }
}

#[test]
fn a_cache_is_not_in_the_image_and_not_the_folder_of_its_files() {
    let site = Site::new();
    site.write("Dockerfile", format!("FROM {BASE}\nCOPY . /x/\n"));
    let files = "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n";
    site.write("web/recipe.toml", files);
    let build = |image: &str, cache: &str| {
        let mut build = site.build(image);
        build.args(["--host-build", "17763.973", "--cache-dir", cache]);
        build
    };
    for folder in [".", "web"] {
        let refused = build(folder, folder).fails(2, "output/inside", &["the cache ", folder]);
        refused.advises(&["--cache-dir"]);
        assert!(!site.path(folder).join("documents").exists(), "{folder}");
    }
    // One below it is left out.
    let digests = [(); 2].map(|()| {
        let mut build = build("web", "web/cache");
        json_of(&mut build)["images"][0]["digest"].take()
    });
    assert!(site.path("web/cache").is_dir());
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn what_a_build_writes_is_not_in_the_folders_of_a_recipe() {
    let site = Site::new();
    let files = "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n";
    site.write("web/recipe.toml", files);
    let digests = [(); 2].map(|()| {
        let mut build = site.build("web");
        build.args(["--host-build", "17763.973", "-o", "oci:out"]);
        build.args(["--metadata-file", "web/m.json", "--iidfile", "web/id"]);
        json_of(&mut build)["images"][0]["digest"].take()
    });
    assert!(site.path("web/m.json").is_file());
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn default_outputs_of_other_images_are_not_in_the_context() {
    let site = Site::new();
    for name in ["a", "b"] {
        let lines = format!("FROM {BASE}\nENV A={name}\nCOPY . /x/\n");
        site.write(&format!("app/{name}.Dockerfile"), lines);
    }
    let built = |folder: &str, name: &str| {
        let mut build = site.build(if folder == "." { "./app" } else { "." });
        build.current_dir(site.path(folder));
        let file = site.path(&format!("app/{name}.Dockerfile"));
        build.arg("-f").arg(file);
        build.args(["--host-build", "17763.973", "-t", &format!("{name}:1")]);
        json_of(&mut build)["images"][0]["digest"].take()
    };
    let first = ["a", "b"].map(|name| built("app", name));
    assert!(site.path("app/a-1/index.json").is_file());
    for folder in ["app", "."] {
        assert_eq!(
            ["a", "b"].map(|name| built(folder, name)),
            first,
            "{folder}"
        );
    }
}

#[test]
fn layouts_of_other_programs_are_in_the_context() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let mut entry = json!({"mediaType": media_type, "digest": digest, "size": 2});
    let tag = ("org.opencontainers.image.ref.name", "1");
    let index_type = "application/vnd.oci.image.index.v1+json";
    for (from, index_type, annotations) in [
        (".", Some(index_type), vec![]),
        // As skopeo and BuildKit write them.
        (".", None, vec![tag]),
        (
            ".",
            Some(index_type),
            vec![tag, ("io.containerd.image.name", "given:1")],
        ),
        // One that could be a default output is named.
        ("given-1/", Some(index_type), vec![tag]),
        ("given-*", Some(index_type), vec![tag]),
    ] {
        entry["annotations"] = annotations.into_iter().collect();
        let site = site(&format!("COPY {from} /x/"), &[]);
        let mut index = json!({"schemaVersion": 2, "manifests": [&entry]});
        if let Some(index_type) = index_type {
            index["mediaType"] = json!(index_type);
        }
        site.write(
            "app/given-1/oci-layout",
            "{\"imageLayoutVersion\":\"1.0.0\"}",
        );
        site.write("app/given-1/index.json", index.to_string());
        let files = files(&plan(&site, &[]));
        let is_there = files.iter().any(|file| file.ends_with("index.json"));
        assert!(is_there, "{files:?}");
    }
}

#[test]
fn a_failed_build_leaves_no_files_about_an_earlier_image() {
    let site = site("COPY none /x/", &[]);
    let written = ["--iidfile", "id", "--metadata-file", "m.json"];
    let old = format!("sha256:{}", "0".repeat(64));
    site.write("real-id", &old);
    symlink("real-id", site.path("id")).unwrap();
    site.write("m.json", json!({"containerimage.digest": old}).to_string());
    build(&site, &written).fails(2, "dockerfile/invalid", &["none"]);
    assert!(!site.path("id").exists() && !site.path("m.json").exists());
    assert!(site.path("id").is_symlink());
    for output in [
        ["--iidfile", "app/Dockerfile"],
        ["-o", "docker-archive:app/Dockerfile"],
    ] {
        build(&site, &output).fails(2, "usage", &["app/Dockerfile", "is built"]);
    }
    assert!(site.text("app/Dockerfile").starts_with("FROM"));
}

#[test]
fn a_source_that_a_flag_names_as_output_is_not_removed() {
    let site = site("COPY a.txt /x/", &["a.txt"]);
    for flag in ["--iidfile", "--metadata-file"] {
        let mut build = build(&site, &[flag, "app/a.txt"]);
        build.fails(2, "dockerfile/invalid", &["a.txt", "builds write it"]);
        assert_eq!(site.text("app/a.txt"), "a.txt");
    }
}

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

#[test]
fn the_image_says_what_the_instructions_say() {
    let site = site(
        "ARG VERSION=1.2.3\nENV A=${VERSION%.*} B=\"x y\" a=lower\nENV OLD the rest\n\
         LABEL team=\"web servers\" version=$VERSION\nEXPOSE 8080:80 53/udp 8000-8001\n\
         VOLUME C:/data\nUSER ContainerUser\nSTOPSIGNAL SIGTERM\n\
         HEALTHCHECK --interval=1m30s --retries=3 CMD [\"check.exe\"]\n\
         SHELL [\"powershell\", \"-Command\"]\nENTRYPOINT  run  --fast\nCMD [\"serve\"]\n\
         MAINTAINER somebody\nONBUILD RUN later\nWORKDIR C:/app/in",
        &[],
    );
    let image = site.path("image");
    let output = format!("oci:{}", image.display());
    let report = json_of(&mut build(&site, &["--output", &output]));
    assert_eq!(report["images"][0]["layers"].as_array().unwrap().len(), 2);
    let manifest = json_in(&blob_in(&image, &report["images"][0]["digest"]));
    let config = json_in(&blob_in(&image, &manifest["config"]["digest"]));
    let container = &config["config"];
    let set = |name: &str| {
        let lines = container["Env"].as_array().unwrap().iter();
        let found = lines.filter_map(|line| line.as_str()?.strip_prefix(&format!("{name}=")));
        found.map(str::to_owned).collect::<Vec<_>>()
    };
    // Windows' variables are case-insensitive: the last assignment counts.
    assert_eq!((set("A"), set("a")), (vec![], vec!["lower".to_owned()]));
    assert_eq!(
        (set("B"), set("OLD")),
        (vec!["x y".to_owned()], vec!["the rest".to_owned()])
    );
    assert_eq!(container["Labels"]["version"], "1.2.3");
    let ports: Vec<&String> = container["ExposedPorts"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    for port in ["80/tcp", "53/udp", "8000/tcp", "8001/tcp"] {
        assert!(ports.iter().any(|known| *known == port), "{ports:?}");
    }
    assert_eq!(container["Volumes"], json!({ "C:/data": {} }));
    assert_eq!(container["User"], "ContainerUser");
    assert_eq!(container["StopSignal"], "SIGTERM");
    assert_eq!(
        container["Healthcheck"],
        json!({ "Test": ["CMD", "check.exe"], "Interval": 90_000_000_000_u64, "Retries": 3 })
    );
    // One complete command line, as written by Docker's builder for Windows; CMD follows it.
    assert_eq!(
        container["Entrypoint"],
        json!(["powershell -Command run  --fast"])
    );
    assert_eq!(container["Cmd"], json!(["serve"]));
    assert_eq!(container.get("ArgsEscaped"), None);
    assert_eq!(container["OnBuild"], json!(["RUN later"]));
    assert_eq!(container["WorkingDir"], r"C:\app\in");
    assert_eq!(config["author"], "somebody");
    let history = config["history"].as_array().unwrap();
    let last = history.last().unwrap();
    assert_eq!(last["created_by"], r"WORKDIR C:\app\in");
    assert_eq!(last.get("empty_layer"), None);
    assert_eq!(history[history.len() - 2]["empty_layer"], true);
}

#[test]
fn an_entry_point_takes_the_bases_arguments_away_and_a_shell_line_is_ready() {
    let site = site("CMD echo %PATH% \"a b\"", &[]);
    let container = plan(&site, &[])["instructions"]["container"].take();
    assert_eq!(container["Cmd"], json!(["cmd /S /C echo %PATH% \"a b\""]));
    assert_eq!(container["ArgsEscaped"], true);
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE} AS one\nCMD [\"one\"]\nFROM one\nENTRYPOINT [\"two\"]\n"),
    );
    let container = plan(&site, &[])["instructions"]["container"].take();
    assert_eq!(
        (container.get("Cmd"), &container["Entrypoint"]),
        (None, &json!(["two"]))
    );
}

#[test]
fn local_archives_are_unpacked_and_others_are_not() {
    let site = site(
        "ADD t.tar.gz /x/\nADD plain.gz z.zip /y/\nCOPY t.tar.gz /z/",
        &["z.zip"],
    );
    let archive = tar_of(&[("in/one.txt", "one"), ("./two.txt", "two!")]);
    site.write("app/t.tar.gz", gzip(&archive));
    site.write("app/plain.gz", gzip(b"no archive"));
    let expected = [
        "x/in/one.txt", "x/two.txt", "y/plain.gz", "y/z.zip", "z/t.tar.gz",
    ];
    assert_eq!(files(&plan(&site, &[])), expected);
    // They are written too.
    let output = format!("oci:{}", site.path("image").display());
    build(&site, &["--output", &output]).assert().success();
}

#[test]
fn what_lies_below_a_link_is_not_missing() {
    let site = site(
        "USER ContainerAdministrator\nRUN mkdir C:\\v18 && mklink /d C:\\nodejs C:\\v18\n\
         RUN C:\\nodejs\\node.exe --version",
        &[],
    );
    let notes = plan(&site, &[])["notes"].to_string();
    assert_contains!(notes, "--version is skipped");
}

#[test]
fn what_run_lines_do_is_in_their_layers() {
    let site = site(
        "USER ContainerAdministrator\nCOPY d /in/\nENV NAME=made\n\
         RUN mkdir C:\\app\\logs && move C:\\in\\b.txt C:\\app\\%NAME%.txt && rd /s /q C:\\in\n\
         WORKDIR C:/app\n\
         RUN echo hello>a.txt&& setx /M KIND small && reg add HKLM\\SOFTWARE\\Acme /v n /t REG_DWORD /d 7 /f\n\
         SHELL [\"pwsh\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]\n\
         RUN if (-not (Test-Path logs)) { throw 'no logs' }; \
         'two' > two.txt; Copy-Item a.txt ('C:\\{0}' -f $env:KIND); app --version",
        &["d/b.txt", "d/e/f.txt"],
    );
    let plan = plan(&site, &[]);
    let expected = ["app/a.txt", "app/made.txt", "app/two.txt", "small"];
    let mut found = files(&plan);
    found.sort();
    found.dedup();
    let files: Vec<&String> = found
        .iter()
        .filter(|path| !path.starts_with("in/"))
        .collect();
    assert_eq!(files, expected);
    let steps = plan["instructions"]["steps"].as_array().unwrap();
    let layers: Vec<&Value> = steps.iter().map(|step| &step["layer"]).collect();
    let registry: Vec<&Value> = layers
        .iter()
        .filter_map(|layer| layer["registry"].as_array())
        .flatten()
        .collect();
    assert_eq!(registry[0]["name"], "KIND");
    assert_eq!(registry[1]["key"], "HKLM\\SOFTWARE\\Acme");
    let gone = layers
        .iter()
        .filter_map(|layer| layer["entries"].as_array())
        .flatten()
        .find(|entry| entry["content"] == "deleted");
    assert_eq!(gone.unwrap()["path"], "C:\\in");
    let notes = plan["notes"].to_string();
    assert_contains!(notes, "app --version");
}

#[test]
fn windows_powershell_on_nano_server_depends_on_the_base() {
    let site = site(
        "USER ContainerAdministrator\nRUN powershell mkdir C:\\x\n\
         RUN pwsh -Command mkdir C:\\y\nRUN mkdir C:\\z",
        &[],
    );
    let said = build(&site, &["--dry-run"]).tells(0);
    let missing = "Nano Server has no Windows PowerShell";
    says(&said, &note(&["Dockerfile:3", missing]));
    assert_eq!(said.matches(missing).count(), 1, "{said}");
}

#[test]
fn a_trigger_keeps_its_here_documents() {
    let trigger = "COPY <<EOF C:/x/\nhello\nEOF";
    let site = site(&format!("ONBUILD {trigger}"), &[]);
    let container = plan(&site, &[])["instructions"]["container"].take();
    assert_eq!(container["OnBuild"], json!([trigger]));
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE} AS below\nONBUILD {trigger}\nFROM below\n"),
    );
    assert_eq!(files(&plan(&site, &[])), ["x/EOF"]);
}

#[test]
fn a_stage_has_the_arguments_of_the_one_that_it_is_based_on() {
    let site = site("", &[]);
    site.write(
        "app/Dockerfile",
        format!(
            "FROM {BASE} AS a\nARG Q=1\nARG R=1\nFROM a AS b\nARG Q\nARG R=2\nFROM b\n\
             ENV C=$Q$R\nUSER ContainerAdministrator\nRUN echo x>C:\\v%Q%.txt\n"
        ),
    );
    let plan = plan(&site, &[]);
    assert_contains!(plan["instructions"]["container"]["Env"].to_string(), "C=12");
    assert_eq!(files(&plan), ["v1.txt"]);
}

#[test]
fn names_of_arguments_have_no_case() {
    let site = site("", &["a.txt"]);
    site.write(
        "app/Dockerfile",
        "ARG Tag=1809\nFROM mcr.microsoft.com/windows/nanoserver:${TAG}\nARG App_Dir=app\nARG B=1 b=2\n\
         ENV C=$B$b D=${APP_DIR:-none}\nCOPY a.txt C:/$APP_DIR/\n",
    );
    let plan = plan(&site, &[]);
    assert_eq!(files(&plan), ["app/a.txt"]);
    let variables = plan["instructions"]["container"]["Env"].to_string();
    assert_contains!(variables, "C=12", "D=app");
}

#[test]
fn a_command_that_starts_nothing_is_noted() {
    for (instructions, line) in [
        ("ENTRYPOINT a.exe\nCMD [\"b c\"]", Some(3)),
        ("CMD [\"b c\"]\nENTRYPOINT a.exe", None),
        ("ENTRYPOINT a.exe\nCMD b", None),
        (r#"ENTRYPOINT "C:\pro g\x.exe" "a b""#, Some(2)),
        (r#"CMD "C:\pro g\x.exe" -a"#, Some(2)),
        (r#"CMD "C:\x.exe" -a"#, None),
        (r#"CMD ""C:\pro g\x.exe" "a b"""#, None),
        (r#"CMD "x.exe "a b"""#, None),
    ] {
        let notes = plan(&site(instructions, &[]), &[])["notes"].to_string();
        match line {
            Some(line) => assert_contains!(notes, &format!("Dockerfile:{line}: ")),
            None => assert!(!notes.contains("exec form"), "{instructions}: {notes}"),
        }
    }
}

#[test]
fn a_port_of_the_host_is_noted() {
    let site = site("EXPOSE 80\nEXPOSE 8080:80", &[]);
    let notes = plan(&site, &[])["notes"].to_string();
    assert_contains!(notes, "Dockerfile:3: EXPOSE ignores");
    assert!(!notes.contains("Dockerfile:2"), "{notes}");
}

#[test]
fn a_secret_argument_in_the_history_is_noted() {
    let site = site(
        "ARG DB_PASSWORD\nARG SECRET_NAME\nARG PUBLIC_KEY\nARG API_TOKEN=\nARG NPM_TOKEN\n",
        &[],
    );
    let values = [
        "DB_PASSWORD=Winter-2019",
        "SECRET_NAME=Winter-2019",
        "PUBLIC_KEY=0123456789abcdef",
        "API_TOKEN=my-token",
        "NPM_TOKEN=SEKRET99",
    ];
    let arguments: Vec<&str> = values.iter().flat_map(|it| ["--build-arg", *it]).collect();
    for engine in ["auto", "docker"] {
        let arguments = [&arguments[..], &["--engine", engine]].concat();
        let notes = plan(&site, &arguments)["notes"].to_string();
        let expected = "Dockerfile:2: everyone who has the image can read DB_PASSWORD";
        assert_contains!(notes, expected, "--stage");
        let token = "Dockerfile:6: everyone who has the image can read NPM_TOKEN";
        assert_contains!(notes, token);
        assert!(!notes.contains("Winter"), "{notes}");
        for line in 3..=5 {
            assert!(!notes.contains(&format!("Dockerfile:{line}")), "{notes}");
        }
    }
    let notes = plan(&site, &[])["notes"].to_string();
    assert!(!notes.contains("DB_PASSWORD"), "{notes}");
}

/// Pushes an image with files, `tools:1`, and returns the registry.
fn push_tools(site: &Site, more: &str) -> String {
    for file in ["one.txt", "d/two.txt", "d/e/three.dll"] {
        site.write(&format!("tools/{file}"), file);
    }
    let text = format!("FROM {BASE}\nCOPY one.txt /t/\nCOPY d /t/d/\n{more}");
    site.write("tools/Dockerfile", text);
    let mut command = site.push("./tools");
    command.args(["--host-build", "17763.973", "--tag", "1"]);
    command.assert().success();
    site.host()
}

#[test]
fn files_of_another_image_are_taken_out_of_its_layers() {
    let site = site("", &[]);
    let host = push_tools(&site, "COPY d/two.txt /t/one.txt\n");
    let copying = |instructions: &str| {
        let text = instructions.replace("TOOLS", &format!("{host}/tools:1"));
        site.write("app/Dockerfile", format!("FROM {BASE}\n{text}\n"));
    };
    copying(
        "COPY --from=TOOLS C:/T/One.txt /x/\nCOPY --from=TOOLS /t/d /y\nCOPY --from=TOOLS /t/*.txt /z/",
    );
    let expected = ["x/one.txt", "y/e/three.dll", "y/two.txt", "z/one.txt"];
    let planned = plan(&site, &[]);
    assert_eq!(files(&planned), expected);
    // The upper layer's file takes precedence.
    assert_eq!(planned["content"][0]["size"], "d/two.txt".len());
    let output = format!("oci:{}", site.path("image").display());
    build(&site, &["--output", &output]).assert().success();
    for (instructions, value) in [
        ("COPY --from=TOOLS /none /x/", "none\""),
        ("COPY --from=TOOLS / /x/", "\"/\""),
    ] {
        copying(instructions);
        build(&site, &["--dry-run"]).fails(
            2,
            "dockerfile/invalid",
            &[value, &format!("{host}/tools:1")],
        );
    }
}

#[test]
fn files_that_a_stage_has_from_its_base_are_taken_out_of_its_layers() {
    let site = site("", &[]);
    let host = push_tools(&site, "");
    for file in ["app/own.txt", "app/a-longer-two.txt"] {
        site.write(file, file);
    }
    let copying = |copies: &str| {
        let text = format!(
            "FROM {host}/tools:1 AS tools\nFROM tools AS more\nWORKDIR C:/t/d\nCOPY own.txt E/\n\
             COPY a-longer-two.txt two.txt\nFROM {BASE}\n{copies}\n"
        );
        site.write("app/Dockerfile", text);
    };
    for (copies, expected) in [
        (
            "COPY --from=tools C:/T/One.txt /x/",
            &[("x/one.txt", "one.txt")][..],
        ),
        // Both in one folder; the stage's file takes precedence.
        (
            "COPY --from=more \"C:\\\\t\\\\d\" /y",
            &[
                ("y/e/own.txt", "app/own.txt"),
                ("y/e/three.dll", "d/e/three.dll"),
                ("y/two.txt", "app/a-longer-two.txt"),
            ],
        ),
        (
            "COPY --from=more /t/*.txt /t/d/e/*.dll /z/",
            &[("z/one.txt", "one.txt"), ("z/three.dll", "d/e/three.dll")],
        ),
        // The base is not read for files that only the stage has.
        (
            "COPY --from=more /t/d/e/own.txt /x/",
            &[("x/own.txt", "app/own.txt")],
        ),
    ] {
        copying(copies);
        let planned = plan(&site, &[]);
        let content = planned["content"].as_array().unwrap().iter();
        let mut found: Vec<(String, u64)> = files(&planned)
            .iter()
            .map(|path| path.to_lowercase())
            .zip(content.map(|file| file["size"].as_u64().unwrap()))
            .collect();
        found.sort();
        let expected = expected.iter();
        let expected: Vec<(String, u64)> = expected
            .map(|(path, text)| ((*path).to_owned(), text.len() as u64))
            .collect();
        assert_eq!(found, expected, "{copies}");
        let output = format!("oci:{}", site.path("image").display());
        build(&site, &["--output", &output]).assert().success();
        fs::remove_dir_all(site.path("image")).unwrap();
    }
    for (copies, values) in [
        (
            "COPY --from=more /t/none.txt /x/",
            ["\"t/none.txt\"", "\"more\""],
        ),
        ("COPY --from=tools C:/none /x/", ["\"none\"", "\"tools\""]),
        (
            "COPY --from=tools /t/*.none /x/",
            ["\"t/*.none\"", "\"tools\""],
        ),
        ("COPY --from=more / /x/", ["\"/\"", "\"more\""]),
    ] {
        copying(copies);
        let failure = build(&site, &["--dry-run"])
            .fails(2, "dockerfile/invalid", &values)
            .names(&["app/Dockerfile:7"])
            .on_line(7);
        assert!(failure.stderr.contains(copies), "{failure:#?}");
    }
}

#[test]
fn a_command_is_reported_with_the_line_that_has_it() {
    for (instructions, line, code, values) in [
        (
            "RUN mkdir C:\\x \\\n # a word about it\n && mkdir C:\\y \\\n && start /wait setup.exe",
            5,
            "dockerfile/needs-windows",
            &["start: ", "\"setup.exe\""][..],
        ),
        (
            "SHELL [\"pwsh\", \"-Command\"]\nRUN <<EOF\nmkdir C:\\x\n\ndism /online\nEOF",
            6,
            "dockerfile/needs-windows",
            &["dism: "],
        ),
        ("RUN type <<EOF\nx\nEOF", 2, "dockerfile/invalid", &[]),
        (
            "USER ContainerUser\nRUN setx /M A b",
            3,
            "dockerfile/fails",
            &["setx: ", "ContainerUser"],
        ),
    ] {
        let place = format!("app/Dockerfile:{line}: ");
        refused(instructions, &[])
            .is(code, values)
            .names(&[&place])
            .on_line(line);
    }
}

#[test]
fn every_line_at_fault_is_in_the_error_and_windows_has_an_exit_code() {
    let error = |instructions: &str| {
        let site = site(instructions, &["a.txt"]);
        let (code, answer) = answer_of(&mut build(&site, &["--dry-run"]));
        (code, answer["error"].clone())
    };
    let (code, failure) = error(
        "RUN dism /online /enable-feature /featurename:A\nCOPY a.txt /a\nRUN choco install b",
    );
    assert_eq!((code, &failure["kind"]), (4, &json!("windows")));
    assert_eq!(failure["file"], "./app/Dockerfile");
    assert_eq!(failure["line"], 2);
    assert_eq!(failure["command"], failure["lines"][0]["command"]);
    let lines = failure["lines"].as_array().unwrap();
    let named: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["line"].as_u64(),
                line["code"].as_str(),
                line["command"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        named,
        [
            (
                Some(2),
                Some("dockerfile/needs-windows"),
                Some("RUN dism /online /enable-feature /featurename:A")
            ),
            (
                Some(4),
                Some("dockerfile/needs-windows"),
                Some("RUN choco install b")
            ),
        ]
    );
    assert!(
        lines
            .iter()
            .all(|line| line["hint"].is_string() && line["file"] == "./app/Dockerfile")
    );
    let (code, failure) = error("RUN setx /X A b");
    assert_eq!((code, &failure["kind"]), (4, &json!("windows")));
    // A line that fails there, too, does not depend on the machine.
    let (code, failure) = error("RUN type C:\\none.txt\nRUN setx /X A b");
    assert_eq!((code, &failure["kind"]), (2, &json!("usage")));
    assert_eq!(error("COPY none /x").1["lines"][0]["line"], 2);
    let site = site("RUN dism /online\nENV A=b\nRUN choco install b", &[]);
    let printed = stderr(&build(&site, &["--dry-run"]).output().unwrap());
    for line in ["error: ./app/Dockerfile:2: ", "  also ./app/Dockerfile:4: "] {
        let mut lines = printed.lines();
        assert!(lines.any(|it| it.starts_with(line)), "{line}: {printed}");
    }
}

#[test]
fn directives_are_those_that_docker_takes() {
    let site = site("", &["a.txt"]);
    for (directives, line) in [
        ("# escape=x", 1),
        ("# syntax=docker/dockerfile:1\n# escape=`\n# escape=`", 3),
        ("# syntax=docker/dockerfile:1\n# syntax=x", 2),
    ] {
        let text = format!("{directives}\nFROM {BASE}\nCOPY a.txt /x\n");
        site.write("app/Dockerfile", text);
        build(&site, &["--dry-run"])
            .fails(2, "dockerfile/invalid", &[&format!("Dockerfile:{line}")])
            .on_line(line);
    }
    site.write(
        "app/Dockerfile",
        format!("# a word\n# escape=x\nFROM {BASE}\nCOPY a.txt /x\n"),
    );
    plan(&site, &[]);
}

#[test]
fn a_dockerfile_may_have_any_name() {
    let site = Site::new();
    site.write("app/for-nodes", format!("FROM {BASE}\nCOPY a.txt /x/\n"));
    site.write("app/a.txt", "a");
    let mut build = site.build("./app/for-nodes");
    let plans = json_of(build.args(["--host-build", "17763.973", "--dry-run"]));
    assert_eq!(files(&plans["plans"][0]), ["x/a.txt"]);
}

#[test]
fn every_copy_at_fault_is_reported_with_its_line() {
    let cases = [
        ("COPY missing.txt /x/", &["\"missing.txt\"", "./app"][..]),
        ("COPY *.none /x/", &["\"*.none\"", "./app"]),
        ("COPY a.txt b.txt /x", &["\"/x\""]),
        ("COPY *.txt /x", &["\"*.txt\"", "2"]),
        ("COPY ../../etc/passwd /x/", &["etc/passwd"]),
        ("COPY d /f", &[r"C:\f"]),
        (
            "COPY b.txt /F/b",
            &[r"C:\F is a file that an earlier instruction made"],
        ),
        (
            "COPY a.txt C:/cur/",
            &[r"C:\cur is a link that an earlier instruction made: use its target"],
        ),
    ];
    let copies = cases.map(|(copy, _)| copy).join("\n");
    let instructions = format!(
        "COPY a.txt /f\nUSER ContainerAdministrator\n\
         RUN mkdir C:\\app1 && mklink /d C:\\cur C:\\app1\n{copies}"
    );
    let site = site(&instructions, &["a.txt", "b.txt", "d/c.txt"]);
    let (code, answer) = answer_of(&mut build(&site, &["--dry-run"]));
    assert_eq!(code, 2, "{answer:#}");
    let lines = answer["error"]["lines"].as_array().unwrap();
    assert_eq!(lines.len(), cases.len(), "{answer:#}");
    for (number, (found, (copy, values))) in (5..).zip(lines.iter().zip(cases)) {
        assert_eq!(found["line"], number);
        assert_eq!(found["command"], copy);
        assert_eq!(found["code"], "dockerfile/invalid");
        let message = found["message"].as_str().unwrap();
        for value in values {
            assert_contains!(message, value);
        }
    }
}

#[test]
fn what_is_wrong_is_reported_with_its_line() {
    for (instructions, line, values) in [
        (
            "WORKDIR C:\\\nCOPY a.txt C:/l/",
            2,
            &["the line continuation", "write C:/, ", "# escape=`"][..],
        ),
        (
            "RUN mkdir a; `\n  mkdir b",
            3,
            &["unknown instruction \"MKDIR\"", "# escape=`"],
        ),
        ("\nCOPPY a b", 3, &["\"COPPY\"", "COPY?"]),
        ("WORKDIR D:/x", 2, &["D:"]),
        (
            r"WORKDIR C:\Program Files\My App",
            2,
            &["\\ is the escape", "C:/Program Files/My App", "# escape=`"],
        ),
        (
            r#"VOLUME ["C:\\data"]"#,
            2,
            &["\"C:data\"", "write C:/data,"],
        ),
        ("USER 1000:1000", 2, &["\"1000:1000\""]),
        (
            r"USER NT AUTHORITY\NETWORK SERVICE",
            2,
            &["\"NT AUTHORITYNETWORK SERVICE\""],
        ),
        ("ENV A=${B", 2, &["${B"]),
        ("EXPOSE http", 2, &["\"http\""]),
        (
            "COPY a.txt /x\nWORKDIR /X",
            3,
            &[r"C:\X is a file that an earlier instruction made"],
        ),
        (
            "COPY a.txt /x\nWORKDIR /x/y",
            3,
            &[r"C:\x is a file that an earlier instruction made"],
        ),
        (
            "USER ContainerAdministrator\nRUN mkdir C:\\app1 && mklink /d C:\\cur C:\\app1\n\
             WORKDIR C:/cur/sub",
            4,
            &[r"C:\cur is a link that an earlier instruction made: use its target"],
        ),
        ("COPY --from=9 a.txt /x", 2, &["9"]),
        (
            "COPY --from=$TOOLS a.txt /x",
            2,
            &["does not expand variables", "FROM $TOOLS AS NAME"],
        ),
        ("FROM scratch", 2, &["scratch"]),
        ("FROM ${NONE}", 2, &["NONE"]),
        ("FROM --platform=linux/amd64 alpine", 2, &["linux/amd64"]),
    ] {
        let place = format!("app/Dockerfile:{line}: ");
        refused(instructions, &[])
            .is("dockerfile/invalid", values)
            .names(&[&place])
            .on_line(line);
    }
    refused("COPY --chown=ContainerUser a.txt C:/app/", &[])
        .advises(&[r#"RUN ["icacls","C:\\app","/grant","ContainerUser:(OI)(CI)M"]"#]);
    refused("COPY --chown=1000:1000 a.txt .", &[])
        .advises(&[r#"RUN ["icacls",".","/grant","ContainerUser:(OI)(CI)M"]"#]);
    refused("COPY --chown=Users [\"a.txt\", \"/my app/\"]", &[])
        .advises(&[r#"RUN ["icacls","C:\\my app","/grant","Users:(OI)(CI)M"]"#]);
    for target in ["/", "C:/", "C:\\\\", "$DIR/app"] {
        let failure = refused(&format!("COPY --chown=ContainerUser a.txt {target}"), &[]);
        failure.advises(&["remove the flag"]).hides("icacls");
    }
    refused("COPY --chmod=755 a.txt /x/", &[]).advises(&["remove the flag"]);
    refused("COPY app /x/", &[]).names(&["where its path begins"]);
    let marked = site("COPY d /d", &["d/.wh.x"]);
    let mut marked = build(&marked, &["--dry-run"]);
    marked
        .fails(2, "dockerfile/invalid", &[r"C:\d\.wh.x", ".dockerignore"])
        .on_line(2);
    let unlooked = site("RUN del C:\\Windows\\a.txt", &[]);
    let output = build(&unlooked, &["--dry-run"]).output().unwrap();
    let found = stderr(&output);
    let is_noted = note(&["app/Dockerfile:2: ", "del: "]).eval(&found);
    assert!(output.status.success() && is_noted, "{found}");
    let later = "COPY --from=later a /x\nFROM x AS later";
    refused(later, &["--target", "0"]).is("dockerfile/invalid", &["\"later\"", "3"]);
    for (arguments, code, value) in [
        (
            &["--target", "nobody"][..],
            "dockerfile/request",
            "\"nobody\"",
        ),
        (&["--stage", "0=d"], "dockerfile/request", "0"),
        (&["--build-arg", "=1"], "usage", "KEY=VALUE"),
        (&["--set", "a=b"], "usage/arguments", "--build-arg a=VALUE"),
    ] {
        refused("COPY a.txt /x", arguments).is(code, &[value]);
    }
    let site = site("COPY a.txt /x", &["a.txt"]);
    site.with_bases(&["render", "./app", "--host-build", "17763.973"])
        .fails(2, "usage", &["./app"]);
    site.with_bases(&["build", "pause", "--host-build", "17763.973"])
        .args(["--stage", "a=b"])
        .fails(2, "usage/arguments", &["--stage"]);
}

#[test]
fn a_base_whose_name_has_an_argument_without_a_value_says_what_sets_it() {
    let site = Site::new();
    site.write("app/Dockerfile", "ARG TAG\nFROM own/base:$TAG\n");
    build(&site, &["--dry-run"])
        .fails(2, "dockerfile/invalid", &["ARG TAG has no default"])
        .advises(&["--build-arg TAG="])
        .hides("above FROM");
    site.write("app/Dockerfile", "FROM own/base:$TAG\n");
    build(&site, &["--dry-run"])
        .fails(2, "dockerfile/invalid", &["no ARG"])
        .advises(&["--build-arg TAG=", "ARG TAG above FROM"]);
}

#[test]
fn every_host_gets_its_base_and_equal_layers_are_one() {
    let site = site("COPY a.txt /x/\nCOPY b.txt /y/", &["a.txt", "b.txt"]);
    let image = format!("oci:{}", site.path("image").display());
    let mut both = site.build("./app/Dockerfile");
    both.args([
        "--host-build", "17763.973", "--host-build", "20348.2402", "--output", &image,
    ])
    .env("SOURCE_DATE_EPOCH", "1580256000");
    let printed = both.tells(0);
    says(&printed, &note(&["20348"]));
    both.args(["--format", "json"]);
    let mut report = || -> Value {
        let output = both.output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let first = report();
    let own = |image: &Value| -> Vec<Value> {
        let layers = image["layers"].as_array().unwrap().iter();
        let own = layers.filter(|layer| layer["from"] == "recipe");
        own.map(|layer| layer["digest"].clone()).collect()
    };
    let images = first["images"].as_array().unwrap();
    assert_eq!(own(&images[0]).len(), 2);
    assert_eq!(own(&images[0]), own(&images[1]));
    // Changing the second file does not change the first layer.
    site.write("app/b.txt", "changed");
    let changed = report();
    let (before, after) = (own(&images[0]), own(&changed["images"][0]));
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

#[test]
fn a_plan_without_the_base_has_the_lines_that_need_none_and_names_the_others() {
    let site = site(
        "ENV A=1\nEXPOSE 80\nCOPY a.txt /x/\nRUN del C:\\\\Windows\\\\a.txt\nRUN del C:\\\\Windows\\\\b.txt\n\
         LABEL l=m\nUSER Guest\nWORKDIR /w\nENTRYPOINT [\"e.exe\"]\nCMD [\"x.exe\"]",
        &["a.txt"],
    );
    let plan = plan(&site, &[]);
    let container = &plan["instructions"]["container"];
    let environment = container["Env"].as_array().unwrap();
    assert!(environment.contains(&json!("A=1")), "{container}");
    for (key, expected) in [
        ("Cmd", json!(["x.exe"])),
        ("Entrypoint", json!(["e.exe"])),
        ("ExposedPorts", json!({"80/tcp": {}})),
        ("User", json!("Guest")),
        ("WorkingDir", json!("C:\\w")),
    ] {
        assert_eq!(container[key], expected, "{container}");
    }
    assert_eq!(container["Labels"]["l"], "m", "{container}");
    assert_eq!(files(&plan), ["x/a.txt"]);
    let lines = ["./app/Dockerfile:5", "./app/Dockerfile:6"];
    assert_eq!(plan["left_out"], json!(lines));
    let text = build(&site, &["--dry-run"]).prints();
    for line in lines {
        assert_contains!(text, &format!("\nleft out    {line}\n"));
    }
    // What no base can mend is an error, as in a build.
    site.write(
        "app/Dockerfile",
        format!("FROM {BASE}\nRUN del C:\\\\Windows\\\\a.txt\nRUN net user a /add\n"),
    );
    build(&site, &["--dry-run"]).fails(4, "dockerfile/needs-windows", &["net"]);
}

#[test]
fn users_are_accounts_of_windows_or_of_the_base() {
    let user = |base: &str, written: &str| {
        let site = Site::new();
        site.write("app/Dockerfile", format!("{base}\nUSER {written}\n"));
        let output = build(&site, &["--dry-run", "--format", "json"])
            .output()
            .unwrap();
        let plans: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        let user = plans.map(|plans| {
            let container = &plans["plans"][0]["instructions"]["container"];
            container["User"].clone()
        });
        (user, stderr(&output))
    };
    let from = format!("FROM {BASE}");
    for (written, expected) in [
        ("ContainerUser", "ContainerUser"),
        (
            r#""User Manager\ContainerAdministrator""#,
            r"User Manager\ContainerAdministrator",
        ),
        (
            r"NT AUTHORITY\\NETWORK SERVICE",
            r"NT AUTHORITY\NETWORK SERVICE",
        ),
        (r#""nt authority\system""#, r"nt authority\system"),
        ("Guest", "Guest"),
    ] {
        let (found, printed) = user(&from, written);
        assert_eq!(found, Some(json!(expected)), "{written}: {printed}");
        assert!(!printed.contains("account"), "{printed}");
    }
    let (found, printed) = user(
        &format!("# escape=`\n{from}"),
        r"NT AUTHORITY\NETWORK SERVICE",
    );
    assert_eq!(
        found,
        Some(json!(r"NT AUTHORITY\NETWORK SERVICE")),
        "{printed}"
    );
    refused(r"USER NT AUTHORITY\NETWORK SERVICE", &[])
        .advises(&[r"USER NT AUTHORITY\\NETWORK SERVICE", "# escape=`"]);
    refused("USER app", &[])
        .is("dockerfile/invalid", &["\"app\""])
        .advises(&["ContainerUser"])
        .on_line(2);
}

#[test]
fn files_of_a_linux_image_are_copied_from_a_stage_without_instructions() {
    let registry = FakeRegistry::start();
    let host = registry.host();
    let lower = registry.layer(tar_of(&[
        ("Windows/System32/netapi32.dll", "old"),
        ("gone/", ""),
        ("gone/hidden.txt", "hidden"),
    ]));
    let upper = registry.layer(tar_of(&[
        ("Windows/System32/netapi32.dll", "dll"),
        ("gone/", ""),
        ("gone/.wh..wh..opq", ""),
        ("gone/new.txt", "new"),
    ]));
    let config = json!({"os": "linux", "architecture": "amd64"});
    let image = registry.image_of(&config, &[lower, upper]);
    registry.tag("core", "1", &image);
    let site = Site::new();
    let write = |platform: &str| {
        site.write(
            "app/Dockerfile",
            format!(
                "FROM --platform={platform} {host}/core:1 AS core\nFROM {BASE}\n\
                 COPY --from=core /Windows/System32/netapi32.dll C:/x/\nCOPY --from=core /gone C:/y\n"
            ),
        );
    };
    write("linux/amd64");
    let run = |more: &[&str]| {
        let mut command = build(&site, &["--insecure-registry", &host]);
        command.args(more);
        command
    };
    let mut plans = json_of(&mut run(&["--dry-run"]));
    assert_eq!(
        files(&plans["plans"][0].take()),
        ["x/netapi32.dll", "y/new.txt"]
    );
    json_of(&mut run(&["--output", "oci:image"]));
    // A copy of the image replaces it.
    let text = site.text("app/Dockerfile");
    let absent = text.replace(&format!("{host}/core:1"), &format!("{host}/absent:1"));
    site.write("app/Dockerfile", absent);
    let copied = format!("core={host}/core:1");
    let mut plans = json_of(&mut run(&["--dry-run", "--stage", &copied]));
    assert_eq!(
        files(&plans["plans"][0].take()),
        ["x/netapi32.dll", "y/new.txt"]
    );
    // Another platform than the image's is not taken for it.
    write("linux/arm64");
    let output = run(&["--dry-run"]).output().unwrap();
    assert!(!output.status.success());
    assert_contains!(stderr(&output), "linux/amd64");
}

#[test]
fn scripts_of_the_context_are_read() {
    let site = site(
        "USER ContainerAdministrator\nCOPY s C:/s/\nRUN C:\\s\\setup.cmd C:\\app && mklink /d C:\\link C:\\app",
        &[],
    );
    site.write(
        "app/s/setup.cmd",
        "@echo off\r\nmkdir %1\r\n>%1\\where.txt echo %~dp0\r\ncall \"%~dp0more.bat\"\r\n",
    );
    site.write("app/s/more.bat", "mkdir C:\\more\r\nexit /b 0\r\n");
    let plan = plan(&site, &[]);
    let made = files(&plan);
    assert_eq!(made, ["app/where.txt", "link", "s/more.bat", "s/setup.cmd"]);
    let steps = plan["instructions"]["steps"].to_string();
    assert_contains!(steps, r"C:\\more", "C:/app");
}

#[test]
fn a_script_of_a_copied_folder_runs_without_its_extension() {
    let site = site(
        "USER ContainerAdministrator\nCOPY ./p C:/c/\nRUN C:\\c\\yy a",
        &[],
    );
    site.write("app/p/yy.bat", "@echo %1>C:\\d.txt\r\n");
    assert_eq!(files(&plan(&site, &[])), ["c/yy.bat", "d.txt"]);
}

#[test]
fn many_instructions_take_time_in_proportion() {
    let site = site("", &["a.txt"]);
    let mut text = format!("FROM {BASE}\n");
    for number in 0..2000 {
        let _ = write!(text, "ENV V{number}=v\nLABEL l{number}=v\n");
    }
    for number in 0..100 {
        let _ = writeln!(text, "COPY a.txt C:/x/{number}.txt");
    }
    site.write("app/Dockerfile", text);
    let bases = format!("{}/mcr", site.host());
    for arguments in [
        &["build", "./app", "--output", "oci:layout"][..],
        &["build", "./app", "--dry-run"],
        &["convert", "app/Dockerfile"],
        &["lint", "app/Dockerfile"],
    ] {
        // A limit on its own time, which other programs do not use up.
        let mut command = site.limited("ulimit -t 15", arguments);
        if arguments[0] != "lint" {
            command.args(["--host-build", "17763.973", "--base-registry", &bases]);
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_long_row_of_stages_is_built() {
    let site = site("", &["a.txt"]);
    let copied = |from: usize| format!("COPY --from=s{from} /a.txt /a.txt\n");
    let on_one_another = |number: usize| format!("FROM s{} AS s{number}\n", number - 1);
    let copying = |number: usize| format!("FROM {BASE} AS s{number}\n{}", copied(number - 1));
    let triggered = |number: usize| {
        let trigger = copied(number - 1);
        format!("FROM {BASE} AS t{number}\nONBUILD {trigger}FROM t{number} AS s{number}\n")
    };
    let shapes: [&dyn Fn(usize) -> String; 3] = [&on_one_another, &copying, &triggered];
    for shape in shapes {
        let stages: String = (1..2500).map(shape).collect();
        let text = format!("FROM {BASE} AS s0\nCOPY a.txt /a.txt\n{stages}");
        site.write("app/Dockerfile", text);
        assert_eq!(files(&plan(&site, &[])), ["a.txt"]);
    }
}

#[test]
fn the_base_of_a_stage_that_only_a_trigger_copies_from_is_read() {
    let site = site("", &["a.txt"]);
    let text = format!(
        "FROM mcr.microsoft.com/windows/nanoserver:ltsc2019 AS made\nCOPY a.txt /a.txt\nFROM {BASE} AS parent\n\
         ONBUILD COPY --from=made /a.txt /b.txt\nFROM parent\n"
    );
    site.write("app/Dockerfile", text);
    assert_eq!(files(&plan(&site, &[])), ["b.txt"]);
}
