//! Unchanged parts are reused: a layer that the tag or a given image already has is neither written
//! nor uploaded.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::Bytes;
use predicates::Predicate as _;
use serde_json::{Value, json};
use wincimg_oci::document::{ManifestFormat, sha256};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::noise;
use wincimg_testkit::windows_base::put_nanoserver;

use crate::failure::{self, Fails};
use crate::site::{Site, json_of, report_of, stderr};

const RECIPE: &str = "name = \"app\"\nbase = \"nanoserver\"\n\
    [[files]]\nlayer = \"deps\"\nfrom = \"deps\"\nto = 'C:\\deps'\n\
    [[files]]\nfrom = \"app.txt\"\nto = 'C:\\app.txt'\n";

/// A folder with an app whose libraries are large enough to be reused.
fn site() -> Site {
    let site = Site::new();
    site.write("recipe.toml", RECIPE);
    site.write("deps/a.bin", noise(1_200_000, 1));
    site.write("deps/b/c.txt", "some text\n".repeat(40_000));
    site.write("app.txt", "1");
    site
}

/// A build with push, its stderr, and its requests.
struct PushedBuild {
    built: Value,
    printed: String,
    asked: Vec<String>,
}

impl PushedBuild {
    fn layers(&self) -> &[Value] {
        self.built["images"][0]["layers"].as_array().unwrap()
    }

    fn digest(&self) -> &Value {
        &self.built["images"][0]["digest"]
    }

    /// Returns true if the layer with the libraries was reused.
    fn took_it(&self) -> bool {
        assert_ne!(
            self.printed.contains("unchanged"),
            self.layers_written() == 2,
            "{}",
            self.printed
        );
        self.printed.contains("unchanged")
    }

    fn layers_written(&self) -> usize {
        self.printed.matches("written").count()
    }

    fn sent(&self) -> Vec<&String> {
        let mut asked = self.asked.iter().collect::<Vec<_>>();
        asked.retain(|it| !it.starts_with("GET ") && !it.starts_with("HEAD "));
        asked
    }
}

fn push(site: &Site, more: &[&str]) -> PushedBuild {
    let before = site.requests();
    let host = site.host();
    let mut command = site.build(".");
    command.args(["--host-build", "17763.973", "--registry", &host, "--push"]);
    let (code, built, printed) = report_of(command.args(more));
    assert_eq!(code, 0, "{printed}");
    PushedBuild {
        built,
        printed,
        asked: site.requests_since(before),
    }
}

#[test]
fn a_second_build_neither_writes_nor_sends_nor_reads_a_layer() {
    let site = site();
    let first = push(&site, &[]);
    assert!(!first.took_it());
    let again = push(&site, &[]);
    assert!(again.took_it());
    assert_eq!(first.digest(), again.digest());
    assert_eq!(again.built["images"][0]["up_to_date"], true);
    assert_eq!(again.sent(), [""; 0]);
    let layer = first.layers()[1]["digest"].as_str().unwrap();
    let read = |it: &&String| it.starts_with("GET ") && it.contains(layer);
    assert_eq!(again.asked.iter().find(read), None);
}

#[test]
fn one_small_file_sends_its_own_layer_alone_on_any_machine() {
    let site = site();
    let first = push(&site, &[]);
    site.write("app.txt", "2");
    let elsewhere = site.path("other-machine");
    let second = push(&site, &["--cache-dir", elsewhere.to_str().unwrap()]);
    assert!(second.took_it());
    assert_eq!(first.layers()[1], second.layers()[1]);
    assert_ne!(first.layers()[2], second.layers()[2]);
    let uploads = second.sent();
    let uploads = uploads.iter().filter(|it| it.contains("/blobs/uploads/"));
    assert_eq!(
        uploads.filter(|it| it.starts_with("PUT ")).count(),
        2,
        "a small layer and a configuration: {:#?}",
        second.asked
    );
    // A layer that is written again is identical.
    let anew = push(&site, &["--no-cache", "--name", "anew"]);
    assert!(!anew.took_it());
    assert_eq!(anew.digest(), second.digest());
    site.write("deps/b/c.txt", "another text\n".repeat(40_000));
    assert!(!push(&site, &[]).took_it());
}

#[test]
fn a_large_entry_of_a_recipe_is_a_layer_of_its_own() {
    let site = Site::new();
    let recipe = "name = \"app\"\nbase = \"nanoserver\"\n\
        [[files]]\nfrom = \"lib\"\nto = 'C:\\app\\lib'\n\
        [[files]]\nfrom = \"app.txt\"\nto = 'C:\\app\\app.txt'\n";
    site.write("recipe.toml", recipe);
    site.write("lib/a.bin", noise(9 << 20, 1));
    site.write("lib/b.bin", noise(8 << 20, 2));
    site.write("app.txt", "1");
    let first = push(&site, &[]);
    assert_eq!(first.layers().len(), 3, "{:#}", first.built);
    site.write("app.txt", "2");
    let second = push(&site, &[]);
    assert_eq!(first.layers()[1], second.layers()[1]);
    assert_contains!(second.printed, r"layer of app: C:\app\lib: unchanged");
    let sent = second.sent();
    let puts = sent
        .iter()
        .filter(|it| it.starts_with("PUT ") && it.contains("/blobs/"));
    assert_eq!(
        puts.count(),
        2,
        "a small layer and a configuration: {:#?}",
        second.asked
    );
    let reference = second.built["images"][0]["reference"].as_str().unwrap();
    let seen = json_of(&mut site.with_no_bases(&["inspect", reference]));
    let history = r#""wincimg build app: C:\\app\\lib""#;
    assert!(seen.to_string().contains(history), "{seen:#}");
}

#[test]
fn zstd_and_gzip_are_not_taken_for_each_other() {
    let site = site();
    push(&site, &[]);
    let zstd = push(&site, &["--compression", "zstd"]);
    assert!(!zstd.took_it());
    assert!(push(&site, &["--compression", "zstd"]).took_it());
    assert!(!push(&site, &[]).took_it());
    // Both manifest formats have the same layers.
    let oci = push(&site, &["--manifest-format", "oci"]);
    assert!(oci.took_it());
    let media_type = oci.layers()[1]["media_type"].as_str().unwrap();
    assert_eq!(
        ManifestFormat::from_media_type(media_type),
        ManifestFormat::Oci
    );
}

#[test]
fn an_image_that_is_named_gives_its_layers_too() {
    let site = site();
    let first = push(&site, &[]);
    let from = format!("{}/app:10.0.17763.973", site.host());
    let mounted = push(&site, &["--name", "other", "--cache-from", &from]);
    assert!(mounted.took_it());
    assert_eq!(first.digest(), mounted.digest());
    let uploads = |asked: &[String], method: &str| {
        let sent = asked.iter().filter(|it| it.contains("/blobs/uploads/"));
        sent.filter(|it| it.starts_with(method)).count()
    };
    // Two mounts: the base's layer and the one with the libraries.
    assert_eq!(uploads(&mounted.asked, "POST "), 4, "{:#?}", mounted.asked);
    assert_eq!(uploads(&mounted.asked, "PUT "), 2, "{:#?}", mounted.asked);

    let other = Site::new();
    let folder = other.path("app");
    crate::site::copy_folder(site.folder.path(), &folder);
    let mut command = site.command(&["build", folder.to_str().unwrap()]);
    let host = other.host();
    command.args(["--host-build", "17763.973", "--registry", &host, "--push"]);
    command.args(["--base-registry", &format!("{}/mcr", site.host())]);
    command.args(["--insecure-registry", &host, "--cache-from", &from]);
    let before = site.requests();
    let copied = command.output().unwrap();
    assert!(stderr(&copied).contains("unchanged"), "{copied:?}");
    assert_eq!(uploads(&other.requests_since(0), "PUT "), 4);
    let layer = first.layers()[1]["digest"].as_str().unwrap();
    let reads = site.requests_since(before).into_iter();
    let reads = reads.filter(|it| it.starts_with("GET ") && it.contains(layer));
    assert_eq!(reads.count(), 1);
}

#[test]
fn a_layout_gives_its_layers_and_an_archive_gets_them() {
    let site = site();
    let build = |more: &[&str]| {
        let mut command = site.build(".");
        let output = command.args(["--host-build", "17763.973", "--tag", "1"]);
        let output = output.args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(!build(&["--output", "oci:out"]).contains("unchanged"));
    assert!(build(&["--output", "oci:out"]).contains("unchanged"));
    let pushed = push(&site, &["--cache-from", "oci:out"]);
    assert!(pushed.took_it());
    assert_eq!(
        pushed.digest(),
        push(&site, &["--name", "anew", "--no-cache"]).digest()
    );

    build(&["--output", "docker-archive:anew.tar"]);
    let from = format!("{}/app:10.0.17763.973", site.host());
    let taken = [
        "--output",
        "docker-archive:taken.tar",
        "--cache-from",
        &from,
    ];
    assert!(build(&taken).contains("unchanged"));
    let bytes = |name: &str| fs::read(site.path(name)).unwrap();
    assert!(bytes("anew.tar") == bytes("taken.tar"));

    // A modified layer in a layout is not reused.
    let layer = pushed.layers()[1]["digest"].as_str().unwrap();
    let blob = layer.replace("sha256:", "out/blobs/sha256/");
    let length = fs::metadata(site.path(&blob)).unwrap().len();
    site.write(&blob, vec![0; usize::try_from(length).unwrap()]);
    assert!(!build(&["--output", "oci:out"]).contains("unchanged"));
    assert_eq!(sha256(&bytes(&blob)).to_string(), layer);
}

#[test]
fn a_file_to_reuse_layers_from_that_does_not_exist_is_named_once() {
    let small = Site::new();
    let recipe = "name = \"app\"\nbase = \"nanoserver\"\n\
        [[files]]\ncontent = \"x\"\nto = 'C:\\x.txt'\n";
    small.write("recipe.toml", recipe);
    for site in [small, site()] {
        let printed = site
            .build(".")
            .args(["--host-build", "17763.973", "--output", "oci:out"])
            .args(["--cache-from", "oci:nope"])
            .args(["--cache-from", "docker-archive:nope.tar"])
            .tells(0);
        for place in ["oci:nope", "docker-archive:nope.tar"] {
            let note = format!("no layers reused from {place}: image not found");
            assert_eq!(printed.matches(&note).count(), 1, "{printed}");
        }
    }
}

#[test]
fn documents_are_the_same_for_a_layer_that_was_not_written() {
    let site = site();
    site.write(
        "deps/package.json",
        r#"{"name": "left", "version": "1.0.0"}"#,
    );
    let with = ["--sbom", "spdx", "--tag", "1"];
    push(&site, &["--tag", "0"]);
    let from = format!("{}/app:0", site.host());
    let anew = push(&site, &[&with[..], &["--no-cache"]].concat());
    assert!(!anew.took_it());
    let taken = [&with[..], &["--name", "other", "--cache-from", &from]].concat();
    let taken = push(&site, &taken);
    assert!(taken.took_it());
    let document = |pushed: &PushedBuild| pushed.built["images"][0]["documents"].clone();
    assert_ne!(document(&anew), Value::Null);
    assert_eq!(
        document(&anew)[0]["document"],
        document(&taken)[0]["document"]
    );
}

#[test]
fn missing_and_wrong_layers_are_not_reused() {
    let site = site();
    let first = push(&site, &[]);
    let manifest = |which: &str| {
        let path = format!("app/manifests/{which}");
        get(&site, &path)
    };
    let manifest: Value = serde_json::from_slice(&manifest("10.0.17763.973")).unwrap();
    let config = manifest["config"]["digest"].as_str().unwrap();
    let config: Value =
        serde_json::from_slice(&get(&site, &format!("app/blobs/{config}"))).unwrap();
    let layer = first.layers()[1]["digest"].as_str().unwrap();
    let blob = get(&site, &format!("app/blobs/{layer}"));
    assert_eq!(manifest["layers"][1]["digest"], layer);
    let history = config["history"].as_array().unwrap();
    let comments: Vec<_> = history
        .iter()
        .map(|step| step["comment"].as_str())
        .collect();
    let [_, Some(note), None] = comments[..] else {
        panic!("{comments:?}");
    };
    assert!(note.starts_with("io.wincimg.inputs=sha256:"), "{note}");

    let reporter = |name: &str, manifest: &Value, config: &Value, has_blob: bool| {
        let config = Bytes::from(config.to_string());
        let mut manifest = manifest.clone();
        manifest["config"]["digest"] = json!(sha256(&config).to_string());
        manifest["config"]["size"] = json!(config.len());
        let media_type = manifest["mediaType"].as_str().unwrap().to_owned();
        site.registry.with(|stored| {
            stored.add_blob(name, config);
            if has_blob {
                stored.add_blob(name, blob.clone());
            }
            let bytes = Bytes::from(manifest.to_string());
            stored.add_manifest(name, "1", &media_type, bytes);
        });
    };
    let take = |name: &str| {
        let from = format!("{}/{name}:1", site.host());
        let pushed = push(
            &site,
            &["--name", &format!("of-{name}"), "--cache-from", &from],
        );
        assert_eq!(pushed.digest(), first.digest(), "{name}");
        pushed
    };
    reporter("honest", &manifest, &config, true);
    assert!(take("honest").took_it());
    reporter("gone", &manifest, &config, false);
    assert!(!take("gone").took_it());

    let mut short = config.clone();
    short["rootfs"]["diff_ids"].as_array_mut().unwrap().pop();
    reporter("short", &manifest, &short, true);
    let mut other = config.clone();
    other["rootfs"]["diff_ids"][1] = other["rootfs"]["diff_ids"][0].clone();
    reporter("other", &manifest, &other, true);
    let note = |name: &str, note: Value| {
        let mut config = config.clone();
        config["history"][1]["comment"] = note;
        reporter(name, &manifest, &config, true);
    };
    note("note", json!(format!("io.wincimg.inputs={layer}")));
    note("without-note", Value::Null);
    let lie = |name: &str, key: &str, value: Value| {
        let mut manifest = manifest.clone();
        manifest["layers"][1][key] = value;
        reporter(name, &manifest, &config, true);
    };
    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    lie("foreign", "mediaType", json!(foreign));
    let zstd = "application/vnd.oci.image.layer.v1.tar+zstd";
    lie("zstd", "mediaType", json!(zstd));
    lie("urls", "urls", json!(["http://127.0.0.1:9/layer"]));
    for name in [
        "short", "other", "foreign", "zstd", "urls", "note", "without-note",
    ] {
        assert!(!take(name).took_it(), "{name}");
    }

    let nothing = format!("{}/nothing:1", site.host());
    let pushed = push(&site, &["--name", "last", "--cache-from", &nothing]);
    let is_told = failure::note(&[&nothing]).eval(&pushed.printed);
    assert!(is_told, "{}", pushed.printed);
}

/// Returns the registry's content below `/v2/`.
fn get(site: &Site, path: &str) -> Bytes {
    let mut stream = TcpStream::connect(site.host()).unwrap();
    write!(stream, "GET /v2/{path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let body = answer.split_off(head.unwrap() + 4);
    assert!(answer.starts_with(b"HTTP/1.0 200"), "{path}");
    body.into()
}

#[test]
fn an_index_gives_the_layers_of_its_images() {
    let site = site();
    let build = |tag: &str, more: &[&str]| {
        let mut command = site.build(".");
        command.args(["--host-build", "17763.973", "--host-build", "20348.2402"]);
        command.args(["--registry", &site.host(), "--push", "--tag", tag]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(!build("1", &[]).contains("unchanged"));
    let from = format!("{}/app:1", site.host());
    assert!(build("2", &["--cache-from", &from]).contains("unchanged"));
}

/// Distribution preserves the annotation in Docker's manifests byte for byte.
#[test(multi_thread)]
async fn distribution_takes_the_note_and_the_layer_back() {
    let docker = DockerRegistry::plain();
    put_nanoserver(&docker.host(), "10.0.17763.973").await;
    let site = site();
    let host = docker.host();
    let mut digests = Vec::new();
    for expected in [false, true] {
        let mut command = site.with_no_bases(&["build", ".", "--host-build", "17763.973"]);
        command.args(["--base-registry", &host, "--registry", &host, "--push"]);
        let (code, built, printed) = report_of(command.args(["--insecure-registry", &host]));
        assert_eq!(code, 0, "{printed}");
        assert_eq!(printed.contains("unchanged"), expected, "{printed}");
        digests.push(built["images"][0]["digest"].clone());
    }
    assert_eq!(digests[0], digests[1]);
}
