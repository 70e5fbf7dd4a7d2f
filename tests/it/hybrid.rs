//! Dockerfiles with steps that only Windows can run. A real Docker daemon for Linux stands in for
//! one on Windows (see `wincimg_testkit::windows_stand_in`): the steps run, and their layers come
//! back.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};
use std::sync::OnceLock;

use predicates::str::contains;
use serde_json::Value;
use wincimg_oci::document::{
    Descriptor, Document, History, Image, ManifestFormat, Platform, sha256,
};
use wincimg_oci::store::Source;
use wincimg_testkit::dockerd::Dockerd;
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::image_locations::no_registry;
use wincimg_testkit::layout::entries_of;
use wincimg_testkit::test_bases::image_of;
use wincimg_testkit::windows_base::StandIn;
use wincimg_testkit::windows_stand_in::{Machine, WindowsStandIn};

use crate::failure::Failure;
use crate::site::{Site, add_base, each, stderr};

/// Writes what it sees to a file of its own, or fails.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    if (strcmp(name, "slow") == 0) sleep(4);
    if (strcmp(name, "fail") == 0) { puts("cannot install"); return 7; }
    if (strcmp(name, "folder") == 0) return mkdir("/Files/folder", 0755);
    char path[256];
    snprintf(path, sizeof path, "/Files/made-%s.txt", name);
    FILE *made = fopen(path, "w");
    const char *value = getenv("A");
    fprintf(made, "A=%s site=%d late=%d", value ? value : "",
        access("/Files/site/a.txt", F_OK) == 0, access("/Files/late.txt", F_OK) == 0);
    return fclose(made);
}
"#;

pub(crate) const FROM: &str = "FROM mcr.microsoft.com/windows/nanoserver:1809";

/// The program, compiled once.
fn program() -> &'static [u8] {
    static COMPILED: OnceLock<Vec<u8>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let [source, program] = ["tool.c", "tool"].map(|name| folder.path().join(name));
        fs::write(&source, PROGRAM).unwrap();
        let mut compiler = Command::new(wincimg_testkit::component("cc"));
        compiler.args(["-static", "-o"]).args([&program, &source]);
        assert!(compiler.status().unwrap().success());
        fs::read(program).unwrap()
    })
}

/// A site whose bases have the program as `Files/tool`.
pub(crate) fn site() -> Site {
    let site = Site::new();
    let program = program();
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, "Files/tool", program).unwrap();
    let tar = tar.into_inner().unwrap();
    for version in ["10.0.17763.973", "10.0.20348.2402"] {
        let mut base = image_of(version, vec![tar.clone()]);
        base.image = base
            .image
            .edit_config(|config| config.created = Some("2020-01-14T00:00:00Z".into()))
            .unwrap();
        site.registry.with(|stored| {
            add_base(stored, "mcr/windows/nanoserver", version, base);
        });
    }
    site.write("app/site/a.txt", "a");
    site.write("app/late.txt", "late");
    site
}

/// The same with a daemon, and the hosts of both.
fn started() -> (Site, WindowsStandIn, [String; 2]) {
    let site = site();
    let windows = WindowsStandIn::start(site.registry.clone());
    let hosts = [site.host(), windows.host()];
    (site, windows, hosts)
}

fn build(site: &Site, arguments: &[&str]) -> Output {
    building(site, arguments).output().unwrap()
}

/// The command of a build.
pub(crate) fn building(site: &Site, arguments: &[&str]) -> Command {
    let mut command = site.command(&["build", "./app", "--host-build", "17763.973"]);
    command
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .args(["--format", "json"])
        .args(arguments);
    command
}

pub(crate) fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The instructions of a build below `FROM`.
pub(crate) fn instructions(dockerfile: &str) -> Vec<&str> {
    let (from, rest) = dockerfile.split_once('\n').unwrap();
    assert!(
        from.starts_with("FROM ") && from.contains("@sha256:"),
        "{from}"
    );
    rest.lines().collect()
}

/// The own layers of a pushed image.
fn own_layers(site: &Site, built: &Value) -> (Source, Vec<Descriptor>) {
    let image = &built["images"][0];
    let reference = image["reference"].as_str().unwrap();
    let repository = wincimg_testkit::repository(wincimg_testkit::options(&site.host()), reference);
    let own = image["layers"].as_array().unwrap()[1..].iter();
    let own = own.map(|layer| {
        Descriptor::new(
            layer["media_type"].as_str().unwrap(),
            layer["digest"].as_str().unwrap().parse().unwrap(),
            layer["size"].as_u64().unwrap(),
        )
    });
    (Source::Registry(repository), own.collect())
}

/// The files of an image's own layers: each layer's, with their contents.
pub(crate) async fn layers(site: &Site, built: &Value) -> Vec<BTreeMap<String, String>> {
    let (source, own) = own_layers(site, built);
    files_of(&source, &own).await
}

/// The number of hives of each of an image's own layers.
async fn hive_counts(site: &Site, built: &Value) -> Vec<usize> {
    let (source, own) = own_layers(site, built);
    let mut counts = Vec::new();
    for blob in &own {
        let bytes = source.bytes(blob, 1 << 20).await.unwrap();
        let hives = entries_of(&bytes).into_iter();
        let hives = hives.filter(|entry| entry.path.starts_with("Hives/") && entry.kind.is_file());
        counts.push(hives.count());
    }
    counts
}

async fn files_of(source: &Source, layers: &[Descriptor]) -> Vec<BTreeMap<String, String>> {
    let mut read = Vec::new();
    for blob in layers {
        let bytes = source.bytes(blob, 1 << 20).await.unwrap();
        let files = entries_of(&bytes).into_iter();
        let files = files.filter(|entry| entry.kind.is_file() && entry.path.starts_with("Files/"));
        let files = files.map(|entry| (entry.path, String::from_utf8(entry.bytes).unwrap()));
        read.push(files.collect());
    }
    read
}

pub(crate) fn only(path: &str, text: &str) -> BTreeMap<String, String> {
    [(path.to_owned(), text.to_owned())].into()
}

#[test(multi_thread = 2)]
async fn steps_for_windows_run_there_and_not_again() {
    let (site, windows, [host, daemon]) = started();
    let text = format!(
        "{FROM}\nARG COLOUR=red\nENV A=$COLOUR\nCOPY site C:/site/\nRUN mkdir C:\\data\n\
         RUN [\"/Files/tool\", \"one\"]\n# a comment\nENV A=second\nRUN [\"/Files/tool\", \\\n  \"two\"]\n\
         COPY late.txt C:/late.txt\nRUN [\"/Files/tool\", \"three\"]\nENV B=last\nCMD [\"x\"]\n"
    );
    site.write("app/Dockerfile", &text);
    let arguments = [
        "--docker-host", &daemon, "--registry", &host, "--push", "--build-arg", "COLOUR=blue",
    ];

    let planned = json_of(&build(&site, &[&arguments[..], &["--dry-run"]].concat()));
    let steps = &planned["plans"][0]["steps"];
    let lines = [2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14];
    assert_eq!(each(steps, "line"), lines);
    let engines = lines.map(|line| match line {
        6 | 8 | 9 | 12 => "windows",
        _ => "direct",
    });
    assert_eq!(each(steps, "engine"), engines);
    assert!(windows.builds().is_empty());

    let output = build(&site, &arguments);
    let built = json_of(&output);
    let said = stderr(&output);
    assert_contains!(said, "lines 6 to 9 run on Windows");
    assert!(!said.contains("the plan omits"), "{said}");
    let image = &built["images"][0];
    assert_eq!(image["engine"], "hybrid");
    assert_eq!(image["os_version"], "10.0.17763.973");
    let base = image["base"]["reference"].as_str().unwrap();
    assert_contains!(base, "/mcr/windows/nanoserver:");
    let builds = windows.builds();
    assert_eq!(builds.len(), 2);
    let two = ["RUN [\"/Files/tool\", \\", "  \"two\"]"];
    let first = [
        "ARG COLOUR",
        "RUN [\"/Files/tool\", \"one\"]",
        "# a comment",
        "ENV A=second",
    ];
    let first: Vec<&str> = first.into_iter().chain(two).collect();
    let sent: Vec<&str> = instructions(&builds[0]);
    assert_eq!(
        sent,
        first
            .iter()
            .filter(|line| !line.starts_with('#'))
            .copied()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        instructions(&builds[1]),
        ["ARG COLOUR", "RUN [\"/Files/tool\", \"three\"]"]
    );
    let layers = layers(&site, &built).await;
    let expected = [
        only("Files/site/a.txt", "a"),
        BTreeMap::new(),
        only("Files/made-one.txt", "A=blue site=1 late=0"),
        only("Files/made-two.txt", "A=second site=1 late=0"),
        only("Files/late.txt", "late"),
        only("Files/made-three.txt", "A=second site=1 late=1"),
    ];
    assert_eq!(layers, expected);
    // Those of Windows have hives; those of the stand-in have none.
    assert_eq!(hive_counts(&site, &built).await, [5, 5, 0, 0, 5, 0]);
    let plan = &planned["plans"][0]["instructions"]["container"];
    assert_eq!(plan["Env"], serde_json::json!(["A=second", "B=last"]));

    // Not a step is run again, also without a daemon.
    let gone = [&["--docker-host", "unix:///nonexistent"], &arguments[2..]].concat();
    let output = build(&site, &gone);
    let again = json_of(&output);
    let said = stderr(&output);
    assert_contains!(said, "lines 6 to 9 do not run again");
    assert_eq!(again["images"][0]["digest"], image["digest"]);
    assert_eq!(again["images"][0]["up_to_date"], true);

    // What follows a changed file is run again.
    site.write("app/late.txt", "later");
    let changed = json_of(&build(&site, &arguments));
    assert_ne!(changed["images"][0]["digest"], image["digest"]);
    assert_eq!(windows.builds().len(), 3);
    // And all of it, if asked.
    json_of(&build(&site, &[&arguments[..], &["--no-cache"]].concat()));
    assert_eq!(windows.builds().len(), 5);
}

#[test(multi_thread = 2)]
async fn files_come_from_a_stage_that_windows_built() {
    let (site, windows, [host, daemon]) = started();
    site.write(
        "app/Dockerfile",
        format!(
            "# escape=`\n{FROM} AS build\nENV A=1\nRUN [\"/Files/tool\", \"app\"]\n\
             {FROM}\nCOPY --from=build C:\\made-app.txt C:\\app\\\nRUN copy C:\\app\\made-app.txt C:\\copy.txt\n"
        ),
    );
    let cache = format!("{host}/cache/steps");
    let output = site.path("layout");
    let output = format!("oci:{}", output.display());
    let arguments = [
        "--docker-host", &daemon, "--cache-to", &cache, "--output", &output,
    ];
    let elsewhere = build(&site, &arguments);
    let built = json_of(&elsewhere);
    let readable = "can read the files and build arguments of the stage build: --cache-to";
    let said = stderr(&elsewhere);
    assert!(!said.contains(readable), "{said}");
    let builds = windows.builds();
    assert_eq!(builds.len(), 1);
    // The base itself: the settings are applied by the daemon.
    let lines: Vec<&str> = builds[0].lines().collect();
    assert_eq!(lines[0], "# escape=`");
    assert!(
        lines[1].starts_with(&format!("FROM {host}/mcr/windows/nanoserver:")),
        "{lines:?}"
    );
    assert_eq!(lines[2..], ["ENV A=1", "RUN [\"/Files/tool\", \"app\"]"]);
    assert_eq!(built["images"][0]["engine"], "direct");
    let layers = built["images"][0]["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 3);

    let planned = json_of(&build(&site, &[&arguments[..], &["--dry-run"]].concat()));
    let engines = each(&planned["plans"][0]["steps"], "engine");
    assert_eq!(engines, ["windows", "windows", "direct", "direct"]);

    let of_image = ["--docker-host", &daemon, "--registry", &host, "--push"];
    let pushed = build(&site, &of_image);
    json_of(&pushed);
    assert_contains!(stderr(&pushed), readable);
}

/// One daemon for all of these, as its start takes most of their time.
#[test(multi_thread = 2)]
async fn steps_see_what_is_above_and_below_them() {
    let (site, windows, hosts) = started();
    each_step_sees_the_arguments_of_its_line_and_their_declarations_are_one_layer(
        &site, &windows, &hosts,
    )
    .await;
    a_file_is_copied_into_a_folder_that_windows_made(&site, &windows, &hosts).await;
    results_are_found_for_an_image_of_another_name(&site, &windows, &hosts).await;
    windows_goes_on_from_an_image_in_a_folder(&site, &hosts).await;
    a_url_without_a_digest_is_read_again(&site, &windows, &hosts).await;
}

async fn each_step_sees_the_arguments_of_its_line_and_their_declarations_are_one_layer(
    site: &Site,
    windows: &WindowsStandIn,
    [host, daemon]: &[String; 2],
) {
    site.write(
        "app/Dockerfile",
        format!(
            "{FROM}\nARG B=b\nARG A=1\nARG UNSET\nARG HIDDEN=1\nENV HIDDEN=2\nCOPY site C:/site/\n\
             RUN [\"/Files/tool\", \"one\"]\nARG A=2\nRUN [\"/Files/tool\", \"two\"]\n"
        ),
    );
    let arguments = ["--docker-host", daemon, "--registry", host, "--push"];
    let built = json_of(&build(site, &arguments));
    let made = [
        only("Files/site/a.txt", "a"),
        only("Files/made-one.txt", "A=1 site=1 late=0"),
        only("Files/made-two.txt", "A=2 site=1 late=0"),
    ];
    assert_eq!(layers(site, &built).await, made);
    let builds = windows.builds();
    let sent: Vec<_> = builds.iter().map(|build| instructions(build)).collect();
    let run = |name: &str| format!("RUN [\"/Files/tool\", \"{name}\"]");
    let expected = ["one", "two"].map(|name| ["ARG B A".to_owned(), run(name)]);
    assert_eq!(sent, expected);
}

async fn a_file_is_copied_into_a_folder_that_windows_made(
    site: &Site,
    windows: &WindowsStandIn,
    [host, daemon]: &[String; 2],
) {
    site.write(
        "app/Dockerfile",
        format!(
            "{FROM}\nRUN [\"/Files/tool\", \"folder\"]\nCOPY late.txt C:/folder\n\
             COPY late.txt C:/other\n"
        ),
    );
    let arguments = ["--docker-host", daemon, "--registry", host, "--push"];
    let before = windows.builds().len();
    let built = json_of(&build(site, &arguments));
    let made = [
        BTreeMap::new(),
        only("Files/folder/late.txt", "late"),
        only("Files/other", "late"),
    ];
    assert_eq!(layers(site, &built).await, made);
    assert_eq!(windows.builds().len(), before + 1);
}

async fn results_are_found_for_an_image_of_another_name(
    site: &Site,
    windows: &WindowsStandIn,
    [host, daemon]: &[String; 2],
) {
    site.write(
        "app/Dockerfile",
        format!(
            "{FROM} AS one\nRUN [\"/Files/tool\", \"one\"]\n\
             FROM one\nRUN [\"/Files/tool\", \"two\"]\n"
        ),
    );
    let arguments = ["--registry", host, "--push", "--tag", "1"];
    let before = windows.builds().len();
    let first = ["--docker-host", daemon, "--name", "first"];
    let first = json_of(&build(site, &[&arguments[..], &first].concat()));
    let made = [
        only("Files/made-one.txt", "A= site=0 late=0"),
        only("Files/made-two.txt", "A= site=0 late=0"),
    ];
    assert_eq!(layers(site, &first).await, made);
    let cache = format!("{host}/first:1");
    let nowhere = [
        "--docker-host", "unix:///nonexistent", "--cache-from", &cache,
    ];
    let named = [&arguments[..], &nowhere, &["--name", "second"]].concat();
    let second = json_of(&build(site, &named));
    assert_eq!(layers(site, &second).await, made);
    assert_eq!(windows.builds().len(), before + 2);
}

async fn windows_goes_on_from_an_image_in_a_folder(site: &Site, [host, daemon]: &[String; 2]) {
    site.write("app/Dockerfile", format!("{FROM}\nCOPY site C:/site/\n"));
    json_of(&build(site, &["--output", "oci:one", "--tag", "1"]));
    site.write(
        "app/Dockerfile",
        format!(
            "{FROM} AS made\nRUN msbuild.exe\nFROM made\nRUN [\"/Files/tool\", \"one\"]\n\
             COPY late.txt C:/\n"
        ),
    );
    let arguments = ["--docker-host", daemon, "--registry", host, "--push"];
    let built = json_of(&build(
        site,
        &[&arguments[..], &["--stage", "made=oci:one:1"]].concat(),
    ));
    let expected = [
        only("Files/site/a.txt", "a"),
        only("Files/made-one.txt", "A= site=1 late=0"),
        only("Files/late.txt", "late"),
    ];
    assert_eq!(layers(site, &built).await, expected);
}

async fn a_url_without_a_digest_is_read_again(
    site: &Site,
    windows: &WindowsStandIn,
    [host, daemon]: &[String; 2],
) {
    let server = FileServer::start();
    let url = server.url("a.txt");
    site.write(
        "app/Dockerfile",
        format!("{FROM}\nADD {url} /Files/a.txt\n"),
    );
    let arguments = ["--docker-host", daemon, "--registry", host, "--push"];
    let before = windows.builds().len();
    for content in ["old", "old", "new"] {
        server.put("/a.txt", content);
        let built = json_of(&build(site, &arguments));
        assert_eq!(layers(site, &built).await, [only("Files/a.txt", content)]);
    }
    assert_eq!(windows.builds().len(), before + 3);
}

#[test(multi_thread = 2)]
async fn a_failed_step_is_named_by_its_line_and_what_is_below_is_kept() {
    let (site, windows, [host, daemon]) = started();
    let dockerfile = |last: &str| {
        let text = format!(
            "{FROM}\nCOPY site C:/site/\nRUN [\"/Files/tool\", \"one\"]\nCOPY late.txt C:/\n\
             ENV C=1\nRUN [\"/Files/tool\", \"{last}\"]\n"
        );
        site.write("app/Dockerfile", text);
    };
    dockerfile("fail");
    let arguments = ["--docker-host", &daemon, "--registry", &host, "--push"];
    let failure = Failure::of(&build(&site, &arguments));
    let failure = failure
        .is(
            "daemon/step",
            &["Dockerfile:6: ", "exit code 7", "cannot install"],
        )
        .on_line(6);
    for part in [&format!("{host}/app"), "layers before line 6"] {
        assert!(failure.stderr.contains(part), "{failure:#?}");
    }
    assert_eq!(windows.builds().len(), 2);

    // The lines of the program stay lines, and the checks of a pull request get the line.
    let annotated = |format: &str| {
        let mut command = site.build("./app");
        command.args(["--host-build", "17763.973", "--format", format]);
        let output = command.args(arguments).output().unwrap();
        assert_contains!(stderr(&output), "\n    | cannot install\n");
        String::from_utf8(output.stdout).unwrap()
    };
    let place = "file=app/Dockerfile,line=6,endLine=6,title=daemon/step::step ";
    assert_contains!(annotated("github"), place);
    let report: Value = serde_json::from_str(&annotated("gitlab")).unwrap();
    assert_eq!(report[0]["location"]["lines"]["begin"], 6);
    let described = report[0]["description"].as_str().unwrap();
    assert_contains!(described, "cannot install");
    let failed: Value = serde_json::from_slice(&build(&site, &arguments).stdout).unwrap();
    let step = &failed["error"]["lines"][0];
    assert_eq!(step["line"], 6);
    assert_eq!(step["command"], "RUN [\"/Files/tool\", \"fail\"]");
    assert_eq!(step["command"], failed["error"]["command"]);

    dockerfile("two");
    json_of(&build(&site, &arguments));
    assert_eq!(windows.builds().len(), 6);
}

#[test(multi_thread = 2)]
async fn a_daemon_that_does_not_run_the_steps_is_told_before_anything_is_pushed() {
    let site = site();
    let text = format!("{FROM}\nCOPY site C:/site/\nRUN x.exe\n");
    site.write("app/Dockerfile", text);
    let (host, linux) = (site.host(), Dockerd::start());
    let nowhere = "unix:///nonexistent/docker.sock".to_owned();
    for (daemon, exit, code) in [
        (nowhere, 3, "daemon/unreachable"),
        (linux.host(), 4, "windows/needed"),
    ] {
        let arguments = ["--docker-host", &daemon, "--registry", &host, "--push"];
        let output = build(&site, &arguments);
        assert_eq!(output.status.code(), Some(exit));
        let failure = Failure::of(&output).is(code, &[&daemon]);
        let failure = failure.advises(&["--docker-host"]);
        assert!(!failure.hint.contains("--engine"), "{failure:#?}");
        assert!(!failure.stderr.contains("on Windows, on"), "{failure:#?}");
    }
    let machine = Machine {
        product: "Windows Server 2016 Datacenter Version 1607 (OS Build 14393.3504)".to_owned(),
        ..Machine::server_2019()
    };
    let older = WindowsStandIn::start_on(site.registry.clone(), machine);
    let daemon = older.host();
    let arguments = ["--docker-host", &daemon, "--registry", &host, "--push"];
    Failure::of(&build(&site, &arguments)).is("daemon/cannot-run", &[&daemon]);
    assert_eq!(site.writes_since(0), [""; 0]);
}

/// The image of an output.
async fn output_image(location: &str) -> (Source, Image) {
    let source = Source::open(&location.parse().unwrap(), &no_registry()).await;
    let source = source.unwrap();
    let Document::Manifest(manifest) = source.resolve(None).await.unwrap() else {
        panic!("{location} has an index");
    };
    let image = source.image(*manifest).await.unwrap();
    (source, image)
}

#[test(multi_thread = 2)]
async fn without_a_registry_the_images_between_steps_are_in_the_daemon() {
    let (site, windows, [_, daemon]) = started();
    let text = format!(
        "{FROM}\nENV A=1\nCOPY site C:/site/\nRUN mkdir C:\\data\nRUN [\"/Files/tool\", \"one\"]\n\
         RUN [\"/Files/tool\", \"two\"]\nCOPY late.txt C:/late.txt\n\
         RUN [\"/Files/tool\", \"three\"]\nENV B=last\nCMD [\"x\"]\n"
    );
    site.write("app/Dockerfile", &text);
    let layout = format!("oci:{}", site.path("layout").display());
    let arguments = ["--docker-host", &daemon, "--output", &layout];

    let place = "docker-daemon:wincimg-cache";
    let rehearsal = [&arguments[..], &["--dry-run"]].concat();
    let planned = json_of(&build(&site, &rehearsal));
    assert_eq!(planned["plans"][0]["step_images"], place);
    let mut shown = site.build("./app");
    let shown = shown.args(["--host-build", "17763.973"]).args(&rehearsal);
    shown.assert().success().stdout(contains(place));
    assert!(windows.builds().is_empty() && windows.loads().is_empty());

    let built = json_of(&build(&site, &arguments));
    assert_eq!(built["images"][0]["engine"], "hybrid");
    let builds = windows.builds();
    assert_eq!(builds.len(), 2);
    for build in &builds {
        assert!(
            build.starts_with("FROM wincimg-cache:windows-base-"),
            "{build}"
        );
    }
    // The base is pulled; the second image has one layer more than the first steps' result.
    let blobs = |files: &Vec<String>| files.iter().filter(|it| it.starts_with("blobs/")).count();
    let loads = windows.loads();
    // Each with its manifest and configuration.
    assert_eq!(loads.iter().map(blobs).collect::<Vec<_>>(), [2 + 2, 2 + 1]);
    let (source, image) = output_image(&layout).await;
    let expected = [
        only("Files/site/a.txt", "a"),
        BTreeMap::new(),
        only("Files/made-one.txt", "A=1 site=1 late=0"),
        only("Files/made-two.txt", "A=1 site=1 late=0"),
        only("Files/late.txt", "late"),
        only("Files/made-three.txt", "A=1 site=1 late=1"),
    ];
    assert_eq!(
        files_of(&source, &image.manifest().layers[1..]).await,
        expected
    );
    let layers = &image.manifest().layers;
    assert!(
        layers[1..]
            .iter()
            .all(|layer| layer.media_type.ends_with("+gzip"))
    );
    let config = image.config();
    assert_eq!(config.os_version.as_deref(), Some("10.0.17763.973"));
    assert_eq!(config.config.env, ["A=1", "B=last"]);
    let mut known = site.registry.with(|stored| stored.requests().to_vec());
    known.retain(|request| request.contains("/app/") || request.contains("wincimg-cache"));
    assert!(known.is_empty(), "{known:?}");

    // Not a step is run again, nor is an image loaded.
    let file = format!("docker-archive:{}", site.path("app.tar").display());
    let output = build(&site, &["--docker-host", &daemon, "--output", &file]);
    let again = json_of(&output);
    let said = stderr(&output);
    assert_contains!(said, "lines 5 to 6 do not run again");
    assert_eq!(again["images"][0]["digest"], built["images"][0]["digest"]);
    let (_, same) = output_image(&file).await;
    assert_eq!(same.digest(), image.digest());
    assert_eq!((windows.builds().len(), windows.loads().len()), (2, 2));

    // What follows a changed file is run again.
    site.write("app/late.txt", "later");
    let changed = json_of(&build(&site, &arguments));
    assert_ne!(changed["images"][0]["digest"], built["images"][0]["digest"]);
    assert_eq!((windows.builds().len(), windows.loads().len()), (3, 3));
    json_of(&build(&site, &[&arguments[..], &["--no-cache"]].concat()));
    assert_eq!(windows.builds().len(), 5);
}

#[test(multi_thread = 2)]
async fn without_a_registry_a_base_is_pulled_or_loaded_whole() {
    let (site, windows, hosts) = started();
    a_base_in_a_folder_is_loaded_whole(&site, &windows, &hosts).await;
    a_base_that_the_daemon_cannot_pull_is_refused_with_the_ways_out(&site, &windows, &hosts);
}

async fn a_base_in_a_folder_is_loaded_whole(
    site: &Site,
    windows: &WindowsStandIn,
    [_, daemon]: &[String; 2],
) {
    site.write("app/Dockerfile", format!("{FROM}\nCOPY site C:/site/\n"));
    json_of(&build(site, &["--output", "oci:one", "--tag", "1"]));
    site.write(
        "app/Dockerfile",
        format!(
            "{FROM} AS made\nRUN msbuild.exe\nFROM made AS more\nRUN [\"/Files/tool\", \"one\"]\n\
             FROM {}\nCOPY --from=more C:/made-one.txt C:/\n",
            &FROM["FROM ".len()..]
        ),
    );
    let layout = format!("oci:{}", site.path("layout").display());
    let arguments = [
        "--docker-host", daemon, "--stage", "made=oci:one:1", "--output", &layout,
    ];
    json_of(&build(site, &arguments));
    let (source, image) = output_image(&layout).await;
    let expected = [only("Files/made-one.txt", "A= site=1 late=0")];
    assert_eq!(
        files_of(&source, &image.manifest().layers[1..]).await,
        expected
    );
    let [load] = windows.loads().try_into().unwrap();
    assert_eq!(load.iter().filter(|it| it.starts_with("blobs/")).count(), 4);
}

fn a_base_that_the_daemon_cannot_pull_is_refused_with_the_ways_out(
    site: &Site,
    windows: &WindowsStandIn,
    [_, daemon]: &[String; 2],
) {
    let version = "10.0.17763.973";
    let image = Image::empty(ManifestFormat::Docker, Platform::windows(version)).unwrap();
    let gone = sha256(b"gone");
    let blob = Descriptor::new(ManifestFormat::Docker.layer_gzip(), gone.clone(), 4);
    let image = image.append_layer(blob, gone, History::default()).unwrap();
    let layers = Vec::new();
    site.registry.with(|stored| {
        add_base(
            stored,
            "mcr/windows/servercore",
            version,
            StandIn { image, layers },
        );
    });
    site.write(
        "app/Dockerfile",
        "FROM mcr.microsoft.com/windows/servercore:1809\nCOPY site C:/site/\nRUN [\"/Files/tool\"]\n",
    );
    let before = windows.builds().len();
    let output = build(site, &["--docker-host", daemon]);
    Failure::of(&output)
        .is("daemon/refused", &["pull", "windows/servercore"])
        .advises(&["--push", "--cache-to"]);
    let said = stderr(&output);
    assert!(!said.contains("the next build reuses"), "{said}");
    assert_eq!(windows.builds().len(), before);
}
