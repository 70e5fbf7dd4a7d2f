//! The Docker engine on the command line: with a real daemon for Linux containers, and with a
//! replayed one for Windows (see `wincimg_testkit::windows_daemon`).

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_inspect::bases::BaseImage;
use wincimg_oci::document::{Image, sha256};
use wincimg_testkit::dockerd::Dockerd;
use wincimg_testkit::image_locations::registry;
use wincimg_testkit::windows_builds::{self, as_shown, base, build_all, id};
use wincimg_testkit::windows_daemon::{WindowsDaemon, info, server_2019};
use wincimg_windows::version::WindowsVersion;

use crate::build::joined::add_linux;
use crate::failure::{Fails, Failure};
use crate::hybrid::{FROM, json_of};
use crate::site::{HOSTS, Site, stderr};

const VERSION: WindowsVersion = WindowsVersion::new(17763, 973);

const WITH_COMMAND: &str = r#"
name = "app"
base = "nanoserver"
[[files]]
content = "hello"
to = 'C:\app\hello.txt'
[[run]]
command = ['C:\Windows\System32\hostname.exe']
"#;

/// A site with a recipe that has a command.
fn site() -> Site {
    let site = Site::new();
    site.write("recipe.toml", WITH_COMMAND);
    site
}

/// `wincimg` with the base images of this site, and no daemon given.
fn wincimg(site: &Site, arguments: &[&str]) -> Command {
    let mut command = site.command(arguments);
    command
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .env_remove("DOCKER_HOST");
    command
}

fn build(site: &Site, arguments: &[&str]) -> Output {
    let mut command = wincimg(site, &["build", ".", "--host-build", "17763.973"]);
    command.args(arguments).output().unwrap()
}

async fn base_of(site: &Site, version: WindowsVersion) -> BaseImage {
    let host = site.host();
    base(&registry(&host), &format!("{host}/mcr"), version).await
}

/// A Windows daemon that builds the recipe.
async fn windows(site: &Site) -> WindowsDaemon {
    let base = base_of(site, VERSION).await;
    let windows = WindowsDaemon::start();
    build_all(&windows, &site.registry, &[base]);
    windows
}

/// Builds the recipe with a daemon, and pushes the image.
fn push(site: &Site, windows: &WindowsDaemon, arguments: &[&str]) -> Output {
    let (host, daemon) = (site.host(), windows.host());
    let place = ["--docker-host", &daemon, "--registry", &host, "--push"];
    build(site, &[&place[..], &["--format=json"], arguments].concat())
}

#[test(multi_thread = 2)]
async fn a_recipe_with_commands_goes_to_the_daemon_and_v_says_why() {
    let site = site();
    let windows = windows(&site).await;
    let host = site.registry.host();
    let flags = [
        "--isolation=hyperv",
        "--memory=4g",
        "--pull",
        "--no-cache",
        "--build-arg=A=b=c",
        "--label=team=web servers",
        "-v",
    ];
    let output = push(&site, &windows, &flags);
    let document = json_of(&output);
    let printed = stderr(&output);
    assert_contains!(
        printed,
        "engine docker",
        "`C:\\Windows\\System32\\hostname.exe`"
    );
    let image = &document["images"][0];
    assert_eq!(image["engine"], "docker");
    assert_eq!(image["reference"], format!("{host}/app:10.0.17763.973"));
    assert_eq!(image["os_version"], "10.0.17763.973");
    assert_eq!(image["pushed"], true);
    assert_eq!(image["layers"][1]["from"], "recipe");
    let expected = windows_builds::build(&base_of(&site, VERSION).await);
    assert_eq!(image["digest"], expected.digest().to_string());
    for layer in image["layers"].as_array().unwrap() {
        assert!(
            layer["digest"].is_string() && layer["size"].is_u64(),
            "{layer}"
        );
    }
    assert_eq!(image["up_to_date"], false);
    assert_eq!(document["index"], Value::Null);
    let again = json_of(&push(&site, &windows, &[]));
    assert_eq!(again["images"][0]["up_to_date"], true);

    let asked = &windows.asked("/build")[0];
    for (name, value) in [
        ("isolation", "hyperv"),
        ("memory", "4294967296"),
        ("pull", "1"),
        ("nocache", "true"),
        ("buildargs", r#"{"A":"b=c"}"#),
    ] {
        assert_eq!(
            asked.query.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    let mut archive = tar::Archive::new(asked.body.as_slice());
    let mut sent = String::new();
    let mut names = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        // The base's own time, so that the same image gives the same bytes.
        assert_eq!(entry.header().mtime().unwrap(), 1_578_960_000);
        names.push(entry.path().unwrap().display().to_string());
        if names.len() == 1 {
            entry.read_to_string(&mut sent).unwrap();
        }
    }
    assert_eq!(names[0], "Dockerfile");
    assert!(
        names.contains(&"files/app/hello.txt".to_owned()),
        "{names:?}"
    );
    assert_contains!(sent, "hostname.exe", "web servers");
}

#[test(multi_thread = 2)]
async fn a_dockerfile_goes_to_the_daemon_as_it_is_on_the_base_of_the_host() {
    const TEXT: &str = "# escape=`\nARG TAG=1809\nFROM mcr.microsoft.com/windows/nanoserver:${TAG} `\n  AS one\n\
                        RUN hostname\n\
                        COPY --from=mcr.microsoft.com/windows/nanoserver:ltsc2022 /a C:/a\n\
                        FROM one\nCOPY . C:/app/\n";
    let site = site();
    let windows = windows(&site).await;
    for (file, text) in [
        ("own/Dockerfile", TEXT),
        ("own/.dockerignore", "secret\n"),
        ("own/secret/key", "no"),
        ("own/a/b.txt", "yes"),
    ] {
        site.write(file, text);
    }
    let host = site.registry.host();
    let mut command = wincimg(
        &site,
        &[
            "build", "./own", "--host-build", "17763.973", "--engine=docker",
        ],
    );
    command
        .args(["--docker-host", &windows.host(), "--registry", &host])
        .arg("--push");
    command.args([
        "--label=team=web", "--build-arg=A=1", "--target=one", "--format=json",
    ]);
    let document = json_of(&command.output().unwrap());
    let image = &document["images"][0];
    assert_eq!(image["reference"], format!("{host}/own:10.0.17763.973"));
    assert_eq!(image["engine"], "docker");
    assert_eq!(image["pushed"], true);

    let asked = &windows.asked("/build")[0];
    let name = asked.query["dockerfile"].clone();
    assert!(name.starts_with(".dockerfile."), "{name}");
    for (key, value) in [("target", "one"), ("buildargs", r#"{"A":"1"}"#)] {
        assert_eq!(
            asked.query.get(key).map(String::as_str),
            Some(value),
            "{key}"
        );
    }
    let labels: Value = serde_json::from_str(&asked.query["labels"]).unwrap();
    let base = &image["base"];
    let expected = json!({
        "team": "web",
        "org.opencontainers.image.base.name": format!("{host}/mcr/windows/nanoserver:10.0.17763.973"),
        "org.opencontainers.image.base.digest": base["digest"],
    });
    assert_eq!(labels, expected);
    let mut archive = tar::Archive::new(asked.body.as_slice());
    let mut sent = std::collections::BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        sent.insert(path.trim_end_matches('/').to_owned(), text);
    }
    let names: Vec<&str> = sent.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [&name, ".dockerignore", "Dockerfile", "a", "a/b.txt"]
    );
    assert_eq!(sent["Dockerfile"], TEXT);
    assert_eq!(sent[".dockerignore"], format!("secret\n\n{name}\n"));
    // Line numbers are unchanged, for the daemon's messages.
    let lines: Vec<&str> = sent[&name].lines().collect();
    let pinned = lines[2].strip_prefix(&format!("FROM {host}/mcr/windows/nanoserver:"));
    let pinned = pinned.unwrap_or_else(|| panic!("{lines:?}"));
    assert!(
        pinned.contains("@sha256:") && pinned.ends_with(" AS one"),
        "{pinned}"
    );
    let image = pinned.strip_suffix(" AS one").unwrap();
    let copy = format!("COPY --from={host}/mcr/windows/nanoserver:{image} /a C:/a");
    let rest = [
        "",
        "RUN hostname",
        copy.as_str(),
        "FROM one",
        "COPY . C:/app/",
    ];
    assert_eq!(lines[3..], rest);

    // The daemon builds the stage.
    let mut command = wincimg(
        &site,
        &[
            "build", "./own", "--host-build", "17763.973", "--engine=docker",
        ],
    );
    command
        .args(["--stage", "one=own/a", "--target=0"])
        .tells(2);
    let mut command = site.command(&["build", "./own", "--engine=docker"]);
    command
        .args(["--cache-to", "repo.lan/cache"])
        .fails(2, "usage", &["--cache-to"]);
}

/// Builds a Dockerfile that copies from images, with a mirror of the bases that has a login and
/// `own/tool:1`, for 17763 or a newer Windows. Returns the mirror, what the daemon got, and whether
/// the login is in it.
async fn copied_from(tool_version: &str, images: &[&str]) -> (String, String, bool) {
    let site = site();
    let windows = windows(&site).await;
    let mirror = Site::new();
    let (host, mirrored) = (site.host(), mirror.host());
    let base = format!("{mirrored}/mcr/windows/nanoserver:10.0.{tool_version}");
    let tool = format!("{mirrored}/mcr/own/tool:1");
    let mut copy = mirror.with_no_bases(&["copy", &base, &tool]);
    copy.assert().success();
    let copies = images.iter().map(|image| {
        let image = image.replace("MIRROR", &mirrored);
        format!("COPY --from={image} /a C:/a\n")
    });
    let copies: String = copies.collect();
    let base_line = format!("FROM {host}/mcr/windows/nanoserver:1809\nRUN hostname\n");
    site.write("own/Dockerfile", base_line + &copies);
    let login = json!({"username": "bob", "password": "S3cretPW"});
    let config = json!({"auths": {&mirrored: login}}).to_string();
    site.write("config.json", config);

    let mut command = site.command(&["build", "./own", "--host-build", "17763.973"]);
    command
        .args(["--base-registry", &format!("{mirrored}/mcr")])
        .args(["--insecure-registry", &mirrored, "--plain-credentials"])
        .args(["--engine=docker", "--docker-host", &windows.host()]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let asked = &windows.asked("/build")[0];
    let sent = String::from_utf8_lossy(&asked.body).into_owned();
    let logins = BASE64_STANDARD.decode(&asked.headers["x-registry-config"]);
    let logins: Value = serde_json::from_slice(&logins.unwrap()).unwrap();
    let has_login = logins[&mirrored]["username"] == "bob";
    (mirrored, sent, has_login)
}

#[test(multi_thread = 2)]
async fn a_daemon_copies_from_the_registry_of_bases_with_its_login_and_for_the_host() {
    let image = "mcr.microsoft.com/own/tool:1";
    let (mirrored, sent, has_login) = copied_from("17763.973", &[image]).await;
    let pinned = format!("COPY --from={mirrored}/mcr/own/tool:1@sha256:");
    assert!(sent.contains(&pinned) && has_login, "{pinned}");
}

#[test(multi_thread = 2)]
async fn an_image_to_copy_from_that_does_not_resolve_is_left_to_the_daemon() {
    let pinned = format!(
        "mcr.microsoft.com/windows/nanoserver@sha256:{}",
        "0".repeat(64)
    );
    // Nothing starts the image of a newer Windows.
    let images = [
        "mcr.microsoft.com/own/tool:1",
        "MIRROR/mcr/own/tool:1",
        "MIRROR/gone:ltsc2022",
        pinned.as_str(),
    ];
    let (mirrored, sent, has_login) = copied_from("20348.2402", &images).await;
    for image in images {
        let line = format!("COPY --from={} /a", image.replace("MIRROR", &mirrored));
        assert!(sent.contains(&line), "{line}");
    }
    assert!(has_login);
}

#[test(multi_thread = 2)]
async fn a_recipe_without_commands_is_built_directly_unless_a_daemon_is_asked_for() {
    let site = site();
    let windows = windows(&site).await;
    let recipe = WITH_COMMAND.split("[[run]]").next().unwrap();
    fs::write(site.folder.path().join("recipe.toml"), recipe).unwrap();
    // A flag without effect is refused; a daemon of the environment is not asked.
    let output = build(&site, &["--docker-host", &windows.host()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--engine docker"));
    let output = build(&site, &["-v"]);
    assert!(output.status.success());
    let printed = stderr(&output);
    assert_contains!(printed, "engine direct");
    assert!(windows.asked("/").is_empty());

    let arguments = ["--docker-host", &windows.host(), "--engine=docker"];
    let output = build(&site, &arguments);
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(printed.starts_with("app:10.0.17763.973\n"), "{printed}");
    let left = json_of(&build(
        &site,
        &[&arguments[..], &["--format=json"]].concat(),
    ));
    assert_eq!(left["images"][0]["reference"], "app:10.0.17763.973");
    assert_eq!(left["images"][0]["engine"], "docker");
    assert_eq!(left["images"][0]["pushed"], false);
    assert_eq!(
        left["images"][0]["digest"],
        left["images"][0]["config_digest"]
    );
    assert_eq!(left["images"][0]["layers"][1]["digest"], Value::Null);
    let named = &windows.asked("/tag")[0].query;
    assert_eq!(
        (named["repo"].as_str(), named["tag"].as_str()),
        ("app", "10.0.17763.973")
    );
    assert!(windows.asked("/push").is_empty());
}

#[test(multi_thread = 2)]
async fn images_for_several_hosts_get_an_index_over_what_was_pushed() {
    let site = site();
    let windows = WindowsDaemon::start();
    let bases = [
        base_of(&site, HOSTS[0]).await,
        base_of(&site, HOSTS[1]).await,
    ];
    build_all(&windows, &site.registry, &bases);
    let server_2022 = "Windows Server 2022 Datacenter Version 21H2 (OS Build 20348.2402)";
    windows.script(|script| script.info = info(server_2022, "process"));
    // Only Hyper-V isolation runs both builds on one host.
    let flags = ["--host-build=20348.2402", "--isolation=hyperv", "--tag=1.4"];
    let built = json_of(&push(&site, &windows, &flags));
    let name = format!("{}/app", site.host());
    for (place, version) in ["10.0.17763.973", "10.0.20348.2402"].iter().enumerate() {
        let image = &built["images"][place];
        assert_eq!(image["reference"], format!("{name}:1.4-{version}"));
    }
    assert_eq!(built["index"]["reference"], format!("{name}:1.4"));
    let raw = site.repository("app").get_manifest("1.4").await.unwrap();
    assert_eq!(built["index"]["digest"], raw.digest.to_string());
    let index: Value = serde_json::from_slice(&raw.bytes).unwrap();
    let entries = index["manifests"].as_array().unwrap().iter();
    let versions: Vec<&Value> = entries.map(|it| &it["platform"]["os.version"]).collect();
    assert_eq!(versions, ["10.0.20348.2402", "10.0.17763.973"]);
}

/// `docker save` of an image, in the format used since Docker 25 too.
fn saved(image: &Image, layers: &[Bytes]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    };
    let config = format!("{}.json", image.config().digest().digest());
    add(&config, image.config().bytes());
    let mut names = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        names.push(format!("{number}/layer.tar"));
        add(&names[number], layer);
    }
    let manifest = json!([{"Config": config, "RepoTags": ["team/app:1.4"], "Layers": names}]);
    add("manifest.json", manifest.to_string().as_bytes());
    archive.into_inner().unwrap()
}

#[test(multi_thread = 2)]
async fn an_image_can_be_taken_out_of_the_daemon_into_a_layout() {
    let site = site();
    let windows = windows(&site).await;
    let (lower, upper) = (Bytes::from("a tar below"), Bytes::from("a tar above"));
    // The daemon saves layers uncompressed; any other blob serves as the base here.
    let image = windows_builds::build(&base_of(&site, VERSION).await)
        .edit_config(|config| config.rootfs.diff_ids = vec![sha256(&lower), sha256(&upper)])
        .unwrap();
    windows.script(|script| script.saved = saved(&image, &[lower, upper]));
    let place = ["--docker-host", &windows.host(), "--output", "oci:layout"];
    let built = json_of(&build(&site, &[&place[..], &["--format=json"]].concat()));
    let asked = &windows.asked("/images/get")[0];
    assert_eq!(asked.query["names"], "app:10.0.17763.973");
    let image = &built["images"][0];
    assert_eq!(image["reference"], "oci:layout:10.0.17763.973");
    let digest = image["digest"].as_str().unwrap().replace(':', "/");
    let manifest: Value =
        serde_json::from_str(&site.text(&format!("layout/blobs/{digest}"))).unwrap();
    assert_eq!(
        manifest["mediaType"],
        "application/vnd.oci.image.manifest.v1+json"
    );
    for layer in image["layers"].as_array().unwrap() {
        assert_eq!(layer["digest"], layer["diff_id"]);
    }
}

#[test(multi_thread = 2)]
async fn what_the_daemon_built_is_held_against_the_plan() {
    let site = site();
    let windows = windows(&site).await;
    let image = windows_builds::build(&base_of(&site, VERSION).await);
    let other_layers = "on layers that are not those of the base";
    for (key, value, expected) in [
        (
            "OsVersion",
            json!("10.0.17763.1"),
            "image of windows 10.0.17763.1: expected windows 10.0.17763.973",
        ),
        ("Os", json!("linux"), "image of linux 10.0.17763.973"),
        (
            "RootFS",
            json!({"Type": "layers", "Layers": ["sha256:00"]}),
            other_layers,
        ),
        ("RootFS", Value::Null, other_layers),
    ] {
        let mut wrong = as_shown(&image);
        wrong[key] = value;
        windows.script(|script| {
            script.images.insert(id(&image), wrong);
        });
        let failure = Failure::of(&push(&site, &windows, &[]));
        failure
            .is("daemon/other-base", &[expected])
            .advises(&["--pull"]);
        // It got no name.
        assert!(windows.asked("/tag").is_empty());
    }
}

#[test(multi_thread = 2)]
async fn a_base_that_cannot_run_there_is_refused_before_anything_is_sent() {
    const OLDER_HOST: &str = "Windows Server 2016 Datacenter Version 1607 (OS Build 14393.5000)";
    const CLIENT: &str = "Windows 10 Pro Version 1809 (OS Build 17763.973)";
    let site = site();
    let windows = windows(&site).await;
    let (same, later) = (server_2019(973), server_2019(1158));
    let hyperv = Some("add --isolation hyperv");
    let older = Some("not older than the base");
    for (system, default, flags, expected) in [
        (later.as_str(), "process", &["--isolation=hyperv"][..], None),
        (&later, "process", &[], hyperv),
        (&later, "hyperv", &[], None),
        (&later, "hyperv", &["--isolation=process"], hyperv),
        (&same, "process", &[], None),
        (OLDER_HOST, "process", &[], older),
        (OLDER_HOST, "hyperv", &[], older),
        // Windows 10 runs it under Hyper-V isolation alone.
        (CLIENT, "process", &[], hyperv),
        // An old Docker does not report its host's revision, so the result is unknown.
        ("Windows Server 2019 Datacenter", "process", &[], None),
    ] {
        windows.script(|script| script.info = info(system, default));
        let builds = windows.asked("/build").len();
        let output = push(&site, &windows, flags);
        match expected {
            None => assert!(output.status.success(), "{system}: {}", stderr(&output)),
            Some(hint) => {
                let failure = Failure::of(&output);
                failure.is("daemon/cannot-run", &[]).advises(&[hint]);
                assert_eq!(windows.asked("/build").len(), builds);
            }
        }
    }
}

#[test(multi_thread = 2)]
async fn a_registry_that_the_daemon_does_not_trust_is_refused_with_what_to_write() {
    let site = site();
    let windows = windows(&site).await;
    windows.script(|script| script.info["RegistryConfig"]["InsecureRegistryCIDRs"] = json!([]));
    let host = site.host();
    let setting = format!(r#"{{"insecure-registries":["{host}"]}}"#);
    Failure::of(&push(&site, &windows, &[]))
        .is("daemon/registry-not-trusted", &[&host])
        .advises(&[&setting, "Restart-Service docker"]);
    assert!(windows.asked("/build").is_empty());
}

#[test(multi_thread = 2)]
async fn what_others_use_is_not_taken_away_by_a_daemon_either() {
    let site = site();
    let windows = windows(&site).await;
    let before = add_linux(&site);
    let host = site.host();
    let build = |more: &[&str]| push(&site, &windows, &[&["--tag=1.4"][..], more].concat());
    let repository =
        wincimg_testkit::repository(wincimg_testkit::options(&host), &format!("{host}/app"));
    let tag = async || {
        let raw = repository.get_manifest("1.4").await.unwrap();
        sha256(&raw.bytes).to_string()
    };
    let refused = build(&[]);
    assert_eq!(refused.status.code(), Some(1));
    Failure::of(&refused).is("tag/taken", &["app:1.4", "linux/amd64"]);
    assert_eq!(tag().await, before);

    let joined = json_of(&build(&["--join"]));
    assert_eq!(joined["images"][0]["engine"], "docker");
    assert_eq!(joined["index"]["kept"], json!(["linux/amd64"]));
    assert_eq!(joined["index"]["digest"], tag().await);
    let image = format!("{host}/app:1.4");
    let mut check = site.command(&["check-compat", &image, "--strict"]);
    check.args(["--host-build", "17763.973"]);
    assert!(check.status().unwrap().success());

    let replaced = json_of(&build(&["--replace"]));
    assert_eq!(replaced["index"], Value::Null);
    assert_eq!(replaced["images"][0]["digest"], tag().await);
}

#[test]
fn the_direct_engine_refuses_commands_and_names_the_other() {
    let site = site();
    let output = build(&site, &["--engine=direct", "--format=json"]);
    assert_eq!(output.status.code(), Some(4));
    Failure::of(&output)
        .is("windows/needed", &[])
        .advises(&["wincimg build IMAGE --engine docker"]);
}

#[test]
fn a_missing_daemon_or_address_gets_a_hint() {
    let site = site();
    let nowhere = "unix:///nonexistent/docker.sock";
    let flag = format!("--docker-host={nowhere}");
    let output = build(&site, &[&flag, "--format=json"]);
    assert_eq!(output.status.code(), Some(3));
    let failure = Failure::of(&output).is("daemon/unreachable", &[nowhere, "--docker-host"]);
    assert!(!failure.hint.is_empty(), "{failure:#?}");
    for arguments in [
        ["--docker-host=ssh://build01"],
        ["--docker-host=podman://build01"],
        ["--docker-host="],
        ["--memory=much"],
        ["--isolation=vm"],
        ["--engine=podman"],
    ] {
        let output = build(&site, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let mut command = wincimg(&site, &["build", ".", "--host-build", "17763.973"]);
    command
        .env("DOCKER_CONTEXT", "gone")
        .fails(2, "daemon/context", &["\"gone\""]);
}

#[test(multi_thread = 2)]
async fn what_is_no_context_is_refused_by_name_before_the_daemon_is_asked() {
    let site = site();
    let windows = windows(&site).await;
    let files = site.folder.path().join("site");
    fs::create_dir(&files).unwrap();
    let recipe = format!("{WITH_COMMAND}\n[[files]]\nfrom = 'site'\nto = 'C:\\site'\n");
    fs::write(site.folder.path().join("recipe.toml"), recipe).unwrap();
    for (names, link, expected) in [
        (vec!["CON.txt"], None, "CON.txt"),
        (vec!["end."], None, "end."),
        (vec!["a:b"], None, "a:b"),
        (vec!["Readme", "README"], None, "C:\\site\\README"),
        (vec!["a"], Some("../../secret"), "\"../../secret\""),
        (vec!["a"], Some("/etc/passwd"), "\"/etc/passwd\""),
        (vec!["[a", ".dockerignore"], None, ".dockerignore:1"),
    ] {
        for name in &names {
            fs::write(files.join(name), "[a").unwrap();
        }
        if let Some(target) = link {
            std::os::unix::fs::symlink(target, files.join("link")).unwrap();
        }
        let output = build(&site, &["--docker-host", &windows.host()]);
        let printed = stderr(&output);
        assert!(!output.status.success(), "{names:?} {link:?}");
        assert!(printed.contains(expected), "{names:?} {link:?}: {printed}");
        fs::remove_dir_all(&files).unwrap();
        fs::create_dir(&files).unwrap();
    }
    assert!(windows.asked("/build").is_empty());
}

#[test(multi_thread = 2)]
async fn a_result_of_steps_that_the_daemon_cannot_push_is_not_a_failed_step() {
    let site = site();
    let windows = windows(&site).await;
    site.write("app/Dockerfile", format!("{FROM}\nRUN x.exe\n"));
    let denied = "denied: requested access to the resource is denied";
    windows.script(|script| {
        let message = json!({"error": denied, "errorDetail": {"message": denied}});
        script.push = Box::new(move |_| vec![message.clone()]);
    });
    let (host, daemon) = (site.host(), windows.host());
    let mut command = wincimg(&site, &["build", "./app", "--host-build", "17763.973"]);
    command.args(["--docker-host", &daemon, "--registry", &host, "--push"]);
    let failure = command.fails(3, "daemon/refused", &["push", &host, denied, "line 2"]);
    assert!(!failure.message.contains("cannot run"), "{failure:#?}");
    assert!(!failure.stderr.contains("the next build"), "{failure:#?}");
    assert_eq!(failure.line, None);
}

#[test]
fn a_linux_daemon_is_refused_as_such() {
    let daemon = Dockerd::start();
    let site = site();
    let output = build(&site, &["--docker-host", &daemon.host(), "--format=json"]);
    assert_eq!(output.status.code(), Some(4));
    Failure::of(&output)
        .is("windows/needed", &["linux", "windows"])
        .advises(&["--docker-host"]);

    let mut command = wincimg(&site, &["doctor", "--docker-host", &daemon.host()]);
    let output = command.args(["--format", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let check = daemon_check(&output);
    assert_eq!(check["state"], "problem");
    assert_eq!(check["subject"], daemon.host());
}

/// The daemon check of `doctor --format json`.
fn daemon_check(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut checks = document["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["check"] == "docker daemon");
    check.unwrap().clone()
}

#[test(multi_thread = 2)]
async fn ctrl_c_ends_the_build_in_the_daemon() {
    let site = site();
    let windows = windows(&site).await;
    windows.script(|script| script.hangs = true);
    let mut command = wincimg(&site, &["build", ".", "--host-build", "17763.973"]);
    let process = command
        .args(["--docker-host", &windows.host()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while windows.asked("/build").is_empty() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(windows.abandoned_builds(), 0);
    let pid = process.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2));
    let errors = stderr(&output).matches("error: ").count();
    assert_eq!(errors, 1, "{}", stderr(&output));
    while windows.abandoned_builds() == 0 {
        assert!(Instant::now() < deadline, "the daemon still builds");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test(multi_thread = 2)]
async fn doctor_says_of_a_daemon_what_it_is_and_whom_it_trusts() {
    let site = site();
    let windows = windows(&site).await;
    let doctor = || {
        let mut command = wincimg(&site, &["doctor", "--docker-host", &windows.host()]);
        let output = command.args(["--format", "json"]).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = document["checks"].as_array().unwrap().clone();
        let about_docker = |check: &Value| check["check"].as_str().unwrap().starts_with("docker");
        let checks: Vec<Value> = checks.into_iter().filter(about_docker).collect();
        (output.status.code().unwrap(), checks)
    };
    let (code, checks) = doctor();
    assert_eq!(code, 0, "{checks:#?}");
    let finding = checks[0]["finding"].as_str().unwrap();
    assert_contains!(finding, "20.10.24", "1.41", "17763.973", "process");
    assert_eq!(checks[1]["check"], "docker trust");
    assert_eq!(checks[1]["subject"], site.registry.host());

    windows.script(|script| {
        script.info["RegistryConfig"]["InsecureRegistryCIDRs"] = json!([]);
    });
    let (code, checks) = doctor();
    assert_eq!(code, 1);
    let fix = checks[1]["fix"].as_str().unwrap();
    assert_contains!(fix, "insecure-registries", "Restart-Service");
}

#[test(multi_thread = 2)]
async fn doctor_reads_the_info_of_every_age_of_docker() {
    let site = site();
    let windows = windows(&site).await;
    let kinds = include_str!("../../crates/engine/tests/data/daemon-infos.json");
    let mut kinds: Vec<Value> = serde_json::from_str(kinds).unwrap();
    kinds.push(json!({"info": {"OSType": "", "OperatingSystem": "Alpine Linux v3.20"}}));
    for kind in &kinds {
        windows.script(|script| {
            script.info = info("", "");
            let fields = kind["info"].as_object().unwrap().clone();
            script.info.as_object_mut().unwrap().extend(fields);
        });
        let mut command = wincimg(&site, &["doctor", "--docker-host", &windows.host()]);
        let output = command.args(["--format", "json"]).output().unwrap();
        let check = daemon_check(&output);
        let version = kind["version"].as_str();
        let (findings, fix) = match (version, kind["isolation"].as_str(), &kind["client"]) {
            (_, None, _) => (vec!["windows"], "--docker-host"),
            (Some(_), _, Value::Null) => (
                vec!["Windows Server"],
                "(Get-CimInstance Win32_OperatingSystem).Caption",
            ),
            (Some(version), Some(isolation), _) if version.contains('.') => {
                (vec!["20.10.24", "1.41", version, isolation], "")
            }
            (Some(build), _, _) => (vec![build], "Docker"),
            (None, _, _) => (vec![], "Docker"),
        };
        let text = |name: &str| check[name].as_str().unwrap_or_default();
        for value in findings {
            assert!(text("finding").contains(value), "{kind}: {check}");
        }
        assert!(text("fix").contains(fix), "{kind}: {check}");
        let state = if fix.is_empty() { "ok" } else { "problem" };
        assert_eq!(check["state"], state, "{kind}: {check}");
    }
}

#[test(multi_thread = 2)]
async fn proxies_and_headers_of_dockers_configuration_count_as_for_docker_build() {
    let site = site();
    let windows = windows(&site).await;
    let docker = tempfile::tempdir().unwrap();
    let config = json!({
        "HttpHeaders": {"X-Meta": "team 7", "User-Agent": "another"},
        "proxies": {"default": {"httpProxy": "http://proxy:3128", "noProxy": "lan"}},
    });
    fs::write(docker.path().join("config.json"), config.to_string()).unwrap();
    let mut command = wincimg(&site, &["build", ".", "--host-build", "17763.973"]);
    command
        .args(["--docker-host", &windows.host()])
        .args(["--build-arg", "NO_PROXY=own"]);
    let output = command
        .env("DOCKER_CONFIG", docker.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for asked in windows.asked("/") {
        assert_eq!(asked.headers["x-meta"], "team 7", "{}", asked.path);
        let agent = asked.headers.get("user-agent");
        assert!(agent.is_none_or(|agent| agent != "another"));
    }
    let arguments = &windows.asked("/build")[0].query["buildargs"];
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(
        arguments,
        json!({
            "HTTP_PROXY": "http://proxy:3128", "http_proxy": "http://proxy:3128",
            "NO_PROXY": "own", "no_proxy": "lan",
        })
    );
}

#[test(multi_thread = 2)]
async fn what_a_daemon_says_where_it_fails_comes_with_the_next_step() {
    let site = site();
    let host = site.registry.host();
    let step = |instruction: &str| json!({"stream": format!("Step 1/1 : {instruction}")});
    let error = |message: &str| json!({"errorDetail": {"message": message}, "error": message});
    let from = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973";
    let denied = "denied: requested access to the resource is denied";
    for (build_fails, push_fails, code, values, hint) in [
        // A step.
        (
            vec![
                step("RUN x"),
                error(
                    "hcsshim::CreateComputeSystem a9fe: No hypervisor is present on this system.",
                ),
            ],
            None,
            "daemon/step",
            vec!["app:10.0.17763.973", "RUN x"],
            "--isolation process",
        ),
        // A pull.
        (
            vec![
                step(from),
                error(
                    "Get https://mcr.microsoft.com/v2/: dial tcp: lookup mcr.microsoft.com: no such host",
                ),
            ],
            None,
            "daemon/step",
            vec!["FROM"],
            "`Resolve-DnsName mcr.microsoft.com`",
        ),
        // A refusal before any step.
        (
            vec![error(
                "toomanyrequests: You have reached your pull rate limit.",
            )],
            None,
            "daemon/refused",
            vec!["toomanyrequests"],
            "wincimg login",
        ),
        // A push.
        (
            Vec::new(),
            Some(denied),
            "daemon/refused",
            vec!["HOST/app:10.0.17763.973", denied],
            "`wincimg login HOST`",
        ),
    ] {
        let windows = windows(&site).await;
        windows.script(|script| {
            if !build_fails.is_empty() {
                script.builds = vec![build_fails.clone()];
            }
            if let Some(words) = push_fails {
                script.push = Box::new(move |_| {
                    vec![json!({"errorDetail": {"message": words}, "error": words})]
                });
            }
        });
        let output = push(&site, &windows, &[]);
        assert_eq!(output.status.code(), Some(3));
        let values: Vec<String> = values.iter().map(|it| it.replace("HOST", &host)).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        Failure::of(&output)
            .is(code, &values)
            .advises(&[&hint.replace("HOST", &host)]);
    }
}

#[test]
fn doctor_asks_for_no_daemon_unless_one_is_named() {
    let site = site();
    let doctor = |host: Option<&str>| {
        let mut command = wincimg(&site, &["doctor", "--format", "json"]);
        let output = command
            .envs(host.map(|host| ("DOCKER_HOST", host)))
            .output()
            .unwrap();
        (output.status.code(), daemon_check(&output))
    };
    let (_, check) = doctor(None);
    assert_eq!(check["state"], "skipped", "{check}");
    let subject = check["subject"].as_str().unwrap();
    assert!(subject.starts_with("unix:///"), "{check}");
    let (code, check) = doctor(Some("tcp://127.0.0.1:1"));
    assert_eq!(code, Some(1));
    assert_eq!(check["state"], "problem", "{check}");
    assert_eq!(check["subject"], "tcp://127.0.0.1:1", "{check}");
}
