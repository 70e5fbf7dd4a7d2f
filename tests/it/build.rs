//! `wincimg build`, driven as a user would: against the registry of the demonstration, which counts
//! what it is asked, and against real components.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::demo::{DemoRegistry, add_base_images};
use crate::support::component;
use crate::support::docker_registry::{DockerRegistry, Setup};
use crate::support::serve::serve;
use axum::Router;
use axum::http::StatusCode;
use bytes::Bytes;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg::windows::version::WindowsVersion;

const HOSTS: [WindowsVersion; 2] = [
    WindowsVersion::new(17763, 973),
    WindowsVersion::new(20348, 2402),
];

/// A registry with base images, and a folder to work in.
struct Site {
    registry: DemoRegistry,
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let registry = DemoRegistry::start().unwrap();
        registry
            .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &HOSTS))
            .unwrap();
        Self {
            registry,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn host(&self) -> String {
        self.registry.host()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// `wincimg build IMAGE` with the registries of this site.
    fn build(&self, image: &str) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::from(self.command(&["build", image]));
        command
            .args(["--base-registry", &format!("{}/mcr", self.host())])
            .timeout(Duration::from_mins(1));
        command
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .args(["--insecure-registry", &self.host()])
            .env_remove("SOURCE_DATE_EPOCH")
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
            .env("DOCKER_CONFIG", self.folder.path());
        command
    }

    /// Forgets nothing, but says what was asked since `from`.
    fn requests_since(&self, from: usize) -> Vec<String> {
        self.registry
            .with(|stored| stored.requests()[from..].to_vec())
    }

    fn requests(&self) -> usize {
        self.registry.with(|stored| stored.requests().len())
    }
}

fn json_of(command: &mut assert_cmd::Command) -> Value {
    let output = command.args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_pushed_pause_image_is_the_base_with_one_small_layer() {
    let site = Site::new();
    let built = json_of(site.build("pause").args([
        "--host-build",
        "17763.973",
        "--registry",
        &site.host(),
        "--push",
    ]));
    let image = &built["images"][0];
    assert_eq!(
        image["reference"],
        format!("{}/pause:10.0.17763.973", site.host())
    );
    assert_eq!(image["engine"], "direct");
    assert_eq!(image["host_build"], "17763.973");
    assert_eq!(image["os_version"], "10.0.17763.973");
    assert_eq!(image["base"]["match"], "exact");
    assert_eq!(image["base"]["os_version"], "10.0.17763.973");
    assert_eq!(image["pushed"], true);
    assert_eq!(built["index"], Value::Null);
    let layers = image["layers"].as_array().unwrap();
    let from: Vec<_> = layers.iter().map(|layer| &layer["from"]).collect();
    assert_eq!(from, ["base", "recipe"]);
    assert!(layers[1]["size"].as_u64().unwrap() < 64 * 1024);
}

#[test]
fn several_hosts_become_several_images_and_an_index() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
    command.args(["--registry", &site.host(), "--push", "--tag", "1.0"]);
    let built = json_of(&mut command);
    let references: Vec<_> = built["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["reference"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        references,
        [
            format!("{}/pause:1.0-10.0.17763.973", site.host()),
            format!("{}/pause:1.0-10.0.20348.2402", site.host()),
        ]
    );
    assert_eq!(
        built["index"]["reference"],
        format!("{}/pause:1.0", site.host())
    );
}

#[test]
fn a_second_run_sends_nothing_and_gives_the_same_digests() {
    let site = Site::new();
    let run = || {
        let mut command = site.build("pause");
        command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
        command.args(["--registry", &site.host(), "--push"]);
        json_of(&mut command)
    };
    let first = run();
    let before = site.requests();
    let second = run();
    assert_eq!(first["images"][0]["digest"], second["images"][0]["digest"]);
    assert_eq!(first["index"], second["index"]);
    let sent: Vec<String> = site
        .requests_since(before)
        .into_iter()
        .filter(|request| !request.starts_with("GET ") && !request.starts_with("HEAD "))
        .collect();
    assert!(sent.is_empty(), "{sent:?}");
}

#[test]
fn images_that_share_a_layer_send_it_once() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
    command.args(["--registry", &site.host(), "--push"]);
    let built = json_of(&mut command);
    let layers = |image: usize| built["images"][image]["layers"][1]["digest"].clone();
    assert_eq!(layers(0), layers(1));
    let uploads = site
        .requests_since(0)
        .into_iter()
        .filter(|request| request.starts_with("PUT ") && request.contains("/uploads/"))
        .count();
    assert_eq!(uploads, 3, "one layer and two configurations");
}

#[test]
fn nothing_of_the_base_is_downloaded_when_the_registry_has_it() {
    let site = Site::new();
    let built = json_of(site.build("pause").args([
        "--host-build",
        "17763.973",
        "--registry",
        &site.host(),
        "--push",
    ]));
    let base_layer = built["images"][0]["layers"][0]["digest"].as_str().unwrap();
    let downloads: Vec<String> = site
        .requests_since(0)
        .into_iter()
        .filter(|request| request.starts_with("GET ") && request.contains(base_layer))
        .collect();
    assert!(downloads.is_empty(), "{downloads:?}");
}

#[test]
fn the_time_comes_from_the_base_or_from_source_date_epoch() {
    let site = Site::new();
    let config_of = |epoch: Option<&str>, dir: &str| {
        let mut command = site.build("pause");
        command.args(["--host-build", "17763.973", "--output", dir]);
        if let Some(epoch) = epoch {
            command.env("SOURCE_DATE_EPOCH", epoch);
        }
        json_of(&mut command);
        config_in(&site.path(dir.trim_start_matches("oci:")))
    };
    assert_eq!(config_of(None, "oci:a")["created"], "2020-01-14T00:00:00Z");
    assert_eq!(
        config_of(Some("1600000000"), "oci:b")["created"],
        "2020-09-13T12:26:40Z"
    );
    site.build("pause")
        .args(["--host-build", "17763.973"])
        .env("SOURCE_DATE_EPOCH", "yesterday")
        .assert()
        .code(2)
        .stderr(contains("hint: "));
}

#[test]
fn a_push_with_an_output_tells_of_both_places() {
    let site = Site::new();
    let hosts = ["--host-build", "20348.2402", "--host-build", "17763.973"];
    let places = ["--registry", &site.host(), "--push", "--output", "oci:out"];
    let built = json_of(site.build("pause").args(hosts).args(places));
    let pushed = format!("{}/pause:10.0.17763.973", site.host());
    assert_eq!(built["images"][0]["reference"], pushed);
    let written = json_of(
        site.build("pause")
            .args(hosts)
            .args(["--output", "oci:alone"]),
    );
    let place = |text: &Value| text.as_str().unwrap().replace("alone", "out");
    for image in 0..2 {
        let copies = built["images"][image]["copies"].as_array().unwrap();
        assert_eq!(copies.len(), 1);
        let alone = &written["images"][image];
        assert_eq!(copies[0]["reference"], place(&alone["reference"]));
        assert_eq!(copies[0]["digest"], alone["digest"]);
    }
    let copy = &built["index"]["copies"][0];
    assert_eq!(copy["digest"], written["index"]["digest"]);
    site.build("pause")
        .args(hosts)
        .args(places)
        .assert()
        .code(0)
        .stdout(
            contains("up to date, nothing was sent")
                .count(2)
                .and(contains("written  oci:out:").count(3)),
        );
}

#[test]
fn a_registry_that_lets_nobody_in_is_heard_before_a_large_layer_is_compressed() {
    let site = Site::new();
    let locked = Router::new().fallback(|| async {
        let challenge = [("www-authenticate", "Basic realm=\"locked\"")];
        (StatusCode::UNAUTHORIZED, challenge, "")
    });
    let served = serve(locked);
    let locked = served.host();
    let large = fs::File::create(site.path("large.bin")).unwrap();
    large.set_len(16 << 30).unwrap();
    site.write(
        "recipe.toml",
        "name = \"large\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"large.bin\"\nto = 'C:\\large.bin'\n",
    );
    let asked = Instant::now();
    site.build(".")
        .args(["--host-build", "17763.973", "--push", "--registry", &locked])
        .args(["--insecure-registry", &locked])
        .assert()
        .code(3)
        .stderr(contains("401").and(contains("docker login")));
    assert!(asked.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_archive_in_no_folder_is_refused_by_its_own_name() {
    let site = Site::new();
    site.build("pause")
        .args(["--host-build", "17763.973"])
        .args(["--output", "docker-archive:no/such/x.tar"])
        .assert()
        .code(3)
        .stderr(contains("no/such/x.tar").and(contains(".docker-archive-").not()));
}

#[test]
fn an_output_that_cannot_be_is_refused_before_anything_is_pushed() {
    let site = Site::new();
    site.write("files/a.txt", "a");
    site.write(
        "recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    site.build(".")
        .args(["--host-build", "17763.973", "--registry", &site.host()])
        .args(["--push", "--output", "oci:files/out"])
        .assert()
        .code(2);
    let sent = site.requests_since(0);
    assert!(
        sent.iter().all(|request| !request.starts_with("PUT")),
        "{sent:?}"
    );
}

#[test]
fn an_image_for_two_hosts_is_listed_once_with_both() {
    let site = Site::new();
    let hosts = ["--host-build", "17763.973", "--host-build", "17763.1000"];
    let push = ["--registry", &site.host(), "--push"];
    let reference = format!("{}/pause:10.0.17763.973\n", site.host());
    site.build("pause")
        .args(hosts)
        .args(push)
        .assert()
        .code(0)
        .stdout(
            contains(reference.as_str())
                .count(1)
                .and(contains(
                    "host     17763.973 on base 10.0.17763.973 (exact)",
                ))
                .and(contains(
                    "host     17763.1000 on base 10.0.17763.973 (nearest)",
                )),
        );
    let built = json_of(site.build("pause").args(hosts).args(push));
    let of_host = |host: &str| {
        let mut images = built["images"].as_array().unwrap().iter();
        images.find(|image| image["host_build"] == host).unwrap()["digest"].clone()
    };
    assert_eq!(of_host("17763.973"), of_host("17763.1000"));
}

#[test]
fn a_node_without_a_version_is_named_with_the_mend_and_in_the_json() {
    let site = Site::new();
    let node = |name: &str, version: &str| {
        json!({"kind": "Node", "metadata": {"name": name}, "status": {"nodeInfo":
            {"operatingSystem": "windows", "kernelVersion": version}}})
    };
    let nodes =
        json!({"kind": "List", "items": [node("win-a", "10.0.17763.973"), node("win-b", "")]});
    site.write("nodes.json", &nodes.to_string());
    let mut command = site.build("pause");
    let output = command
        .args(["--nodes", "nodes.json", "--format", "json"])
        .assert()
        .code(0)
        .stderr(
            contains("left out node win-b, which does not report")
                .and(contains("--host-build 17763.973")),
        )
        .get_output()
        .stdout
        .clone();
    let built: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(built["images"].as_array().unwrap().len(), 1);
    assert_eq!(built["left_out"], json!(["win-b"]));
}

/// The configuration of the only image in an OCI layout.
fn config_in(layout: &Path) -> Value {
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().replace(':', "/");
        read(&layout.join("blobs").join(digest))
    };
    let index = read(&layout.join("index.json"));
    blob(&blob(&index["manifests"][0])["config"])
}

#[test]
fn the_configuration_keeps_the_base_and_gets_what_the_recipe_says() {
    let site = Site::new();
    site.write("files/a.txt", "a");
    let recipe = site.write(
        "recipe.toml",
        r#"
        name = "web"
        base = "nanoserver"
        entrypoint = ['C:\app\web.exe', "--port", "${port}"]
        user = "ContainerAdministrator"
        working_dir = 'C:\app'
        ports = ["${port}"]
        env = { PORT = "${port}" }
        labels = { "team" = "shop" }
        [variables.port]
        type = "integer"
        default = 8080
        [[files]]
        from = "files"
        to = 'C:\app'
        "#,
    );
    let mut command = site.build(recipe.to_str().unwrap());
    command.args(["--host-build", "17763.973", "--set", "port=81"]);
    json_of(command.args(["--tag", "1"]));
    let config = config_in(&site.path("web-1"));
    assert_eq!(config["os"], "windows");
    assert_eq!(config["os.version"], "10.0.17763.973");
    let container = &config["config"];
    assert_eq!(
        container["Entrypoint"],
        json!(["C:\\app\\web.exe", "--port", "81"])
    );
    assert_eq!(
        container["Cmd"],
        Value::Null,
        "it was for the base's program"
    );
    assert_eq!(container["User"], "ContainerAdministrator");
    assert_eq!(container["ExposedPorts"], json!({"81/tcp": {}}));
    assert_eq!(container["Env"], json!(["PORT=81"]));
    assert_eq!(container["Labels"]["team"], "shop");
    let history = config["history"].as_array().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[1]["created_by"], "wincimg build web");
    assert_eq!(config["rootfs"]["diff_ids"].as_array().unwrap().len(), 2);
}

/// A base as Microsoft made them before 2023: its layer is foreign, and elsewhere.
fn add_foreign_base(site: &Site) -> String {
    let host = site.host();
    site.registry.with(|stored| {
        let bytes = b"a layer of Windows";
        let layer = stored.add_blob("cdn", Bytes::from_static(bytes));
        let config = json!({
            "architecture": "amd64", "os": "windows", "os.version": "10.0.17763.973",
            "created": "2020-01-14T00:00:00Z",
            "config": {
                "Env": ["Path=C:\\base", "KEPT=1"],
                "Entrypoint": ["base.exe -x"], "Cmd": ["y"], "ArgsEscaped": true,
                "Shell": ["powershell", "-Command"], "StopSignal": "15",
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", "a".repeat(64))] },
            "history": [{ "created": "2020-01-14T00:00:00Z", "created_by": "Apply image" }],
            "unheard.of": ["kept"],
        })
        .to_string();
        let length = config.len();
        let config = stored.add_blob("mcr/windows/servercore", config.into());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": {
                "mediaType": "application/vnd.docker.container.image.v1+json",
                "digest": config, "size": length,
            },
            "layers": [{
                "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                "digest": layer, "size": bytes.len(),
                "urls": [format!("http://{host}/v2/cdn/blobs/{layer}")],
            }],
        });
        let media_type = manifest["mediaType"].as_str().unwrap();
        let bytes = manifest.to_string().into();
        stored.add_manifest(
            "mcr/windows/servercore",
            "10.0.17763.973",
            media_type,
            bytes,
        );
        layer
    })
}

#[test]
fn a_foreign_layer_of_the_base_is_fetched_from_its_place_and_becomes_an_ordinary_one() {
    let site = Site::new();
    let layer = add_foreign_base(&site);
    site.write(
        "recipe.toml",
        "name = \"web\"\nbase = \"servercore\"\nentrypoint = [\"a.exe\"]\n",
    );
    let built = json_of(site.build(".").args([
        "--host-build",
        "17763.973",
        "--registry",
        &site.host(),
        "--push",
    ]));
    let known = &built["images"][0]["layers"][0];
    assert_eq!(known["digest"], *layer);
    assert_eq!(
        known["media_type"],
        "application/vnd.docker.image.rootfs.diff.tar.gzip"
    );
    let requests = site.requests_since(0);
    let uploaded = |request: &String| request.starts_with("PUT /v2/web/blobs/uploads/");
    assert_eq!(
        requests.iter().filter(|request| uploaded(request)).count(),
        2
    );
    assert!(requests.contains(&format!("GET /v2/cdn/blobs/{layer}")));
}

#[test]
fn what_the_recipe_does_not_say_stays_as_the_base_has_it() {
    let site = Site::new();
    add_foreign_base(&site);
    let config = |recipe: &str, name: &str| {
        let head = format!("name = \"{name}\"\nbase = \"servercore\"\n");
        site.write("recipe.toml", &format!("{head}{recipe}"));
        json_of(
            site.build(".")
                .args(["--host-build", "17763.973", "--tag", "1"]),
        );
        config_in(&site.path(&format!("{name}-1")))
    };
    let env = config("env = { PATH = 'C:\\own', NEW = 2 }\n", "env");
    let container = &env["config"];
    assert_eq!(
        container["Env"],
        json!(["PATH=C:\\own", "KEPT=1", "NEW=2"]),
        "Windows does not tell Path and PATH apart"
    );
    assert_eq!(container["Entrypoint"], json!(["base.exe -x"]));
    assert_eq!(container["Cmd"], json!(["y"]));
    assert_eq!(container["ArgsEscaped"], true);
    assert_eq!(container["Shell"], json!(["powershell", "-Command"]));
    assert_eq!(container["StopSignal"], "15");
    assert_eq!(env["unheard.of"], json!(["kept"]));
    assert_eq!(env["history"][1]["empty_layer"], true);

    let cmd = &config("cmd = [\"z\"]\n", "cmd")["config"];
    assert_eq!(cmd["Entrypoint"], json!(["base.exe -x"]));
    assert_eq!(cmd["Cmd"], json!(["z"]));
    assert_ne!(cmd["ArgsEscaped"], true, "an exec form is not escaped");

    let entrypoint = &config("entrypoint = [\"a.exe\"]\n", "entrypoint")["config"];
    assert_eq!(entrypoint["Entrypoint"], json!(["a.exe"]));
    assert_eq!(entrypoint["Cmd"], Value::Null);
    assert_ne!(entrypoint["ArgsEscaped"], true);
}

#[test]
fn a_zstd_layer_makes_an_image_in_ocis_words_that_skopeo_takes() {
    let Some(skopeo) = component("skopeo") else {
        return;
    };
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "--compression", "zstd"]);
    let built = json_of(command.args(["--registry", &site.host(), "--push"]));
    let image = format!(
        "docker://{}",
        built["images"][0]["reference"].as_str().unwrap()
    );
    let folder = format!("dir:{}", site.path("copy").display());
    let copy = [
        "copy",
        "--src-tls-verify=false",
        "--override-os=windows",
        "--quiet",
    ];
    run(&skopeo, &[&copy[..], &[&image, &folder]].concat());
    let manifest = fs::read(site.path("copy/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let oci = |what: &str| format!("application/vnd.oci.image.{what}");
    assert_eq!(manifest["mediaType"], oci("manifest.v1+json"));
    assert_eq!(manifest["config"]["mediaType"], oci("config.v1+json"));
    let layers = manifest["layers"].as_array().unwrap();
    let types: Vec<_> = layers.iter().map(|layer| &layer["mediaType"]).collect();
    assert_eq!(
        types,
        [&oci("layer.v1.tar+gzip"), &oci("layer.v1.tar+zstd")]
    );
}

#[test]
fn a_zstd_layer_has_ocis_type_wherever_the_image_goes() {
    let site = Site::new();
    let push = ["--registry", &site.host(), "--push"].map(str::to_owned);
    let write = ["--output", "oci:out", "--quiet"].map(str::to_owned);
    let pack = ["--output", "docker-archive:out.tar", "--quiet"].map(str::to_owned);
    for destination in [push, write, pack] {
        let mut command = site.build("pause");
        command.args(["--host-build", "17763.973", "--compression", "zstd"]);
        let built = json_of(command.args(destination));
        assert_eq!(
            built["images"][0]["layers"][1]["media_type"],
            "application/vnd.oci.image.layer.v1.tar+zstd"
        );
    }
}

#[test]
fn a_recipe_that_changes_no_file_adds_no_layer() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"plain\"\nbase = \"nanoserver\"\ncmd = [\"cmd\"]\n",
    );
    let built = json_of(site.build(".").args(["--host-build", "17763.973"]));
    assert_eq!(built["images"][0]["layers"].as_array().unwrap().len(), 1);
}

#[test]
fn a_working_directory_is_made_unless_windows_has_it() {
    let site = Site::new();
    let entries = |folder: &str| {
        let recipe = format!("name = \"w\"\nbase = \"nanoserver\"\nworking_dir = '{folder}'\n");
        site.write("recipe.toml", &recipe);
        let mut command = site.build(".");
        let built = json_of(command.args(["--host-build", "17763.973", "--output", "oci:out"]));
        let layer = built["images"][0]["layers"].get(1)?;
        let digest = layer["digest"].as_str().unwrap().replace(':', "/");
        let blob = site.path("out/blobs").join(digest);
        Some(run(Path::new("tar"), &["-tzf", blob.to_str().unwrap()]))
    };
    assert_eq!(
        entries(r"C:\work\here").unwrap(),
        "Hives\nFiles\nFiles/work\nFiles/work/here\n"
    );
    for there in [r"C:\", r"C:\windows\system32", r"C:\Users\ContainerUser"] {
        assert_eq!(entries(there), None, "{there}");
    }
}

#[test]
fn a_dry_run_prints_the_plan_and_builds_nothing() {
    let site = Site::new();
    site.build("pause")
        .args(["--host-build", "17763.973", "--dry-run"])
        .assert()
        .code(0)
        .stdout(contains("WaitToKillServiceTimeout").and(contains("base.digest=sha256:")));
    assert_eq!(fs::read_dir(site.folder.path()).unwrap().count(), 0);
    let plans = json_of(
        site.build("pause")
            .args(["--host-build", "17763.973", "--dry-run"]),
    );
    assert_eq!(plans["plans"][0]["shutdown_timeout"], 30);
}

#[test]
fn a_recipe_that_ships_is_shown_as_its_text_or_as_json() {
    let show = |format: &str| {
        let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.current_dir(std::env::temp_dir());
        command.args(["images", "--show", "pause", "--format", format]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let text = show("text");
    assert!(text.contains("name = \"pause\""), "{text}");
    let json: Value = serde_json::from_str(&show("json")).unwrap();
    assert_eq!(json, json!({ "name": "pause", "recipe": text }));
}

#[test]
fn the_help_has_under_dockers_heading_only_what_is_dockers() {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["build", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let section = |heading: &str| {
        let (_, rest) = help.split_once(&format!("\n{heading}:\n")).unwrap();
        let next = rest
            .match_indices("\n\n")
            .find(|(at, _)| !rest[at + 2..].starts_with(' '));
        next.map_or(rest, |(at, _)| &rest[..at])
    };
    assert!(section("Arguments").contains("<IMAGE>"), "{help}");
    for flag in ["--host-build", "--nodes", "--set", "--context", "--push"] {
        assert!(section("Options").contains(flag), "{flag}: {help}");
    }
    for flag in ["--docker-host", "--isolation", "--no-cache"] {
        assert!(section("Docker options").contains(flag), "{flag}: {help}");
    }
    assert!(section("Registry options").contains("--timeout"), "{help}");
}

#[test]
fn what_cannot_be_built_is_said_with_the_way_out() {
    let site = Site::new();
    site.write(
        "windows/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[run]]\ncommand = [\"cmd\", \"/c\", \"dir\"]\n",
    );
    site.write(
        "wants/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\nuser = \"${who}\"\n[variables.who]\n",
    );
    site.write(
        "wrong/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\nentry = 1\n",
    );
    site.write(
        "listed/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\nrun = [\"dir\"]\n",
    );
    site.write(
        "with-site/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[files]]\ncontext = \"site\"\nto = \"/site\"\n",
    );
    for (image, code, said) in [
        ("puase", 2, "did you mean \"pause\"?"),
        ("./nothing", 3, "cannot read the recipe ./nothing"),
        (
            ".",
            3,
            "hint: IMAGE is a recipe's file, or a folder with a recipe.toml",
        ),
        (
            "listed",
            2,
            "recipe.toml:3:8: invalid type: string \"dir\", expected a table",
        ),
        ("windows", 3, "step 1 of 1 is `cmd /c dir`"),
        ("wants", 2, "add --set who=VALUE"),
        (
            "with-site",
            2,
            "the context, which is the folder .: name another",
        ),
        ("wrong", 2, "wrong/recipe.toml:3:1: unknown field `entry`"),
    ] {
        site.build(image)
            .args(["--host-build", "17763.973"])
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(said));
    }
    site.build("pause")
        .assert()
        .code(2)
        .stderr(contains("no host given"));
    site.build("pause")
        .args(["--host-build", "14393.1"])
        .assert()
        .code(1)
        .stderr(contains("no image of"));
    site.build("pause")
        .args(["--host-build", "17763.973", "--output", "somewhere/else:1"])
        .assert()
        .code(2)
        .stderr(contains("oci:DIR"));
    assert!(!site.path("w-10.0.17763.973").exists());
}

#[test]
fn a_base_that_is_none_is_answered_with_the_one_that_was_meant() {
    let site = Site::new();
    site.write("recipe.toml", "name = \"w\"\nbase = \"nano\"\n");
    site.build(".")
        .args(["--host-build", "17763.973"])
        .assert()
        .code(3)
        .stderr(contains("hint: did you mean nanoserver?"));
}

#[test]
fn a_recipe_of_ones_own_is_not_hidden_silently_by_one_that_ships() {
    let site = Site::new();
    site.write("pause/notes.txt", "what the recipe may take files from");
    let plan = ["--host-build", "17763.973", "--dry-run"];
    let built = |image: &str| site.build(image).args(plan).assert().code(0);
    built("pause").stderr("");
    site.write(
        "pause/recipe.toml",
        "name = \"own\"\nbase = \"nanoserver\"\n",
    );
    built("pause")
        .stdout(contains("WaitToKillServiceTimeout"))
        .stderr(contains("note: using the recipe \"pause\" that ships").and(contains("./pause")));
    built("./pause")
        .stdout(contains("WaitToKillServiceTimeout").not())
        .stderr("");
}

#[test]
fn names_and_tags_that_no_registry_takes_are_refused_for_every_destination() {
    let site = Site::new();
    for arguments in [
        ["--tag", "a b"],
        ["--tag", "../x"],
        ["--tag", ""],
        ["--name", "Up/per"],
        ["--name", "a//b"],
        ["--name", ""],
        ["--registry", "https://repo.lan"],
        ["--registry", "hub-folder"],
    ] {
        site.build("pause")
            .args(["--host-build", "17763.973"])
            .args(arguments)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains("expected"));
    }
    assert_eq!(site.requests(), 0);
    assert_eq!(fs::read_dir(site.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_password_in_the_registrys_name_is_not_repeated() {
    Site::new()
        .build("pause")
        .args(["--host-build", "17763.973", "--push"])
        .args(["--registry", "me:secret@repo.lan"])
        .assert()
        .code(2)
        .stderr(contains("config.json"));
}

#[test]
fn a_push_by_default_needs_a_registry_too() {
    let site = Site::new();
    site.write("wincimg.toml", "[build]\npush = true\n");
    site.build("pause")
        .args(["--host-build", "17763.973"])
        .assert()
        .code(2)
        .stderr(contains("hint: name it with --registry"));
}

#[test]
fn an_output_in_the_folder_that_goes_into_the_image_is_refused() {
    let site = Site::new();
    site.write(
        "site/recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n",
    );
    for output in [
        "oci:site/out/image",
        "oci:site",
        "docker-archive:site/x.tar",
    ] {
        site.build("site")
            .args(["--host-build", "17763.973", "--output", output])
            .assert()
            .code(2)
            .stderr(contains("which goes into the image").and(contains("hint: ")));
    }
    assert_eq!(fs::read_dir(site.path("site")).unwrap().count(), 1);
    site.build("site")
        .args(["--host-build", "17763.973", "--output", "oci:site-image"])
        .assert()
        .code(0);
    site.write("site/.dockerignore", "out\n");
    site.build("site")
        .args([
            "--host-build",
            "17763.973",
            "--output",
            "oci:site/out/image",
        ])
        .assert()
        .code(0);
}

#[test]
fn two_files_with_one_place_are_the_recipes_fault() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n\
         [[files]]\ncontent = \"1\"\nto = 'C:\\a'\n[[files]]\ncontent = \"2\"\nto = 'C:\\A'\n",
    );
    site.build(".")
        .args(["--host-build", "17763.973"])
        .assert()
        .code(2)
        .stderr(contains("same path on Windows"));
}

#[test]
fn a_place_that_is_none_is_refused_before_anything_is_asked() {
    let site = Site::new();
    let from = site.requests();
    for (flags, said) in [
        (&["--push"][..], "name it with --registry"),
        (&["--push", "--registry", "https://here"], "expected"),
        (&["--push", "--registry", "here:5000/UPPER"], "expected"),
        (&["--output", "here"], "oci:DIR"),
        (
            &["--output", "./here"],
            "invalid output \"./here\": expected oci:DIR",
        ),
        (&["--output", "oci:here:1.0"], "--tag"),
        (&["--registry-config", "."], ". is a folder"),
    ] {
        site.build("pause")
            .args(["--host-build", "17763.973"])
            .args(flags)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(said));
    }
    assert_eq!(site.requests(), from);
}

#[test]
fn the_registry_and_the_host_may_come_from_the_file_of_defaults() {
    let site = Site::new();
    let defaults = format!("registry = {:?}\nhost-build = \"17763.973\"\n", site.host());
    site.write("wincimg.toml", &defaults);
    site.build("pause")
        .assert()
        .code(0)
        .stdout(contains("oci:./pause-10.0.17763.973"))
        .stderr(contains("nothing is pushed without --push"));
    site.build("pause")
        .arg("--push")
        .assert()
        .code(0)
        .stdout(contains(format!("{}/pause:10.0.17763.973", site.host())));
    site.write("bad.toml", "host-build = \"2019\"\n");
    site.build("pause")
        .args(["--config", "bad.toml"])
        .assert()
        .code(2)
        .stderr(contains(
            "bad.toml:1:14: `wincimg build --host-build` does not take \"2019\"",
        ));
    // A flag that the command demands is given by the file as well.
    assert_cmd::Command::from(site.command(&["base", "resolve", "nanoserver"]))
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .assert()
        .code(0);
}

#[test]
fn a_registry_that_is_down_or_not_trusted_is_named_with_the_way_out() {
    let site = Site::new();
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(site.folder.path())
        .args(["build", "pause", "--host-build", "17763.973"])
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .output()
        .map(|output| {
            assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
            let hint = format!("--insecure-registry {}", site.host());
            assert!(stderr(&output).contains(&hint), "{}", stderr(&output));
        })
        .unwrap();
}

#[test]
fn who_owns_the_context_makes_no_difference() {
    let site = Site::new();
    site.write("files/a.txt", "a");
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    let digest = || {
        let built = json_of(site.build(".").args(["--host-build", "17763.973"]));
        built["images"][0]["digest"].clone()
    };
    let own = digest();
    for path in ["files/a.txt", "files"] {
        if std::os::unix::fs::chown(site.path(path), Some(12345), Some(12345)).is_err() {
            eprintln!("skipped: only root can give files away");
            return;
        }
    }
    assert_eq!(digest(), own);
}

#[test]
fn a_file_that_vanishes_is_named_and_nothing_is_left() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"gone\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"link\"\nto = 'C:\\link'\n",
    );
    std::os::unix::fs::symlink("nowhere", site.path("link")).unwrap();
    site.build(".")
        .args(["--host-build", "17763.973"])
        .assert()
        .code(2)
        .stderr(contains("recipe.toml:4:8: cannot read"));
    assert!(!site.path("gone-10.0.17763.973").exists());
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let site = Site::new();
    site.write("file", "not a folder");
    site.build("pause")
        .args(["--host-build", "17763.973", "--output", "oci:file/x"])
        .assert()
        .code(3)
        .stderr(contains("file/x"));
}

/// A folder with enough in it that a build takes its time.
fn large_context(site: &Site) {
    fs::create_dir_all(site.path("big/files")).unwrap();
    for number in 0..24 {
        let bytes = support::noise(4 << 20, number);
        fs::write(site.path(&format!("big/files/{number}")), bytes).unwrap();
    }
    site.write(
        "big/recipe.toml",
        "name = \"big\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\big'\n",
    );
}

/// Waits until a build has begun to write its layer.
fn wait_for_a_file_in(temporary: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::read_dir(temporary).unwrap().count() == 0 {
        assert!(Instant::now() < deadline, "the layer was never begun");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What Ctrl-C does.
fn interrupt(child: &Child) {
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
}

#[test]
fn ctrl_c_in_the_middle_leaves_nothing_half_made_and_a_second_run_works() {
    an_end_in_the_middle_leaves_nothing("-INT");
}

#[test]
fn the_request_of_a_ci_system_to_end_does_as_ctrl_c_does() {
    an_end_in_the_middle_leaves_nothing("-TERM");
}

fn an_end_in_the_middle_leaves_nothing(signal: &str) {
    let site = Site::new();
    large_context(&site);
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let arguments = [
        "build",
        "big",
        "--host-build",
        "17763.973",
        "--output",
        "oci:out",
        "--base-registry",
        &format!("{}/mcr", site.host()),
    ];
    let child = site
        .command(&arguments)
        .env("TMPDIR", &temporary)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_a_file_in(&temporary);
    interrupt(&child);
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::read_dir(&temporary).unwrap().count() == 0 {
        assert!(Instant::now() < deadline, "the layer was never begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupted = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("interrupted"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "left in TMPDIR"
    );
    let index = fs::read_to_string(site.path("out/index.json")).unwrap_or_default();
    assert!(!index.contains("digest"), "{index}");

    let output = site.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn ctrl_c_does_not_wait_for_a_layer_that_takes_minutes() {
    let site = Site::new();
    fs::create_dir_all(site.path("big/files")).unwrap();
    let file = fs::File::create(site.path("big/files/sparse")).unwrap();
    file.set_len(60 << 30).unwrap();
    site.write(
        "big/recipe.toml",
        "name = \"big\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\big'\n",
    );
    let temporary = site.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let base = format!("{}/mcr", site.host());
    let child = site
        .command(&["build", "big", "--host-build", "17763.973"])
        .args(["--base-registry", &base])
        .env("TMPDIR", &temporary)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_a_file_in(&temporary);
    let asked = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

/// Runs a program and returns what it prints.
fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}",
        program.display(),
        stderr(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn docker_registry_and_skopeo_take_what_is_pushed() {
    let (Some(skopeo), Some(registry)) =
        (component("skopeo"), DockerRegistry::start(Setup::default()))
    else {
        return;
    };
    let site = Site::new();
    let target = registry.host();
    let mut command = site.build("pause");
    command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
    command.args([
        "--registry",
        &format!("{target}/k8s"),
        "--push",
        "--tag",
        "3.9",
    ]);
    command.args(["--insecure-registry", &target]);
    let built = json_of(&mut command);

    let index = format!("docker://{target}/k8s/pause:3.9");
    let raw = run(&skopeo, &["inspect", "--raw", "--tls-verify=false", &index]);
    let raw: Value = serde_json::from_str(&raw).unwrap();
    let versions: Vec<_> = raw["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["platform"]["os.version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["10.0.17763.973", "10.0.20348.2402"]);

    let one = format!("docker://{target}/k8s/pause:3.9-10.0.17763.973");
    let inspected = run(
        &skopeo,
        &[
            "inspect",
            "--override-os",
            "windows",
            "--tls-verify=false",
            &one,
        ],
    );
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["Digest"], built["images"][0]["digest"]);
    assert_eq!(inspected["Os"], "windows");

    let copy = site.path("copy");
    let to = format!("oci:{}:all", copy.display());
    run(
        &skopeo,
        &[
            "--insecure-policy",
            "copy",
            "--all",
            "--src-tls-verify=false",
            &index,
            &to,
        ],
    );
}

#[test]
fn skopeo_reads_layouts_and_archives_and_tar_their_layers() {
    let Some(skopeo) = component("skopeo") else {
        return;
    };
    let site = Site::new();
    site.write("files/Ärger/naïve file.txt", "text");
    fs::create_dir_all(site.path("files/empty")).unwrap();
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\nshutdown_timeout = 60\n\
         [[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    let built = json_of(
        site.build(".")
            .args(["--host-build", "17763.973", "--tag", "1"])
            .args(["--output", "oci:layout"]),
    );
    json_of(
        site.build(".")
            .args(["--host-build", "17763.973", "--tag", "1"])
            .args(["--output", "docker-archive:app.tar"]),
    );
    let layout = format!("oci:{}:1", site.path("layout").display());
    let archive = format!("docker-archive:{}", site.path("app.tar").display());
    for place in [&layout, &archive] {
        let text = run(
            &skopeo,
            &["inspect", "--config", "--override-os", "windows", place],
        );
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["os.version"], "10.0.17763.973", "{place}");
    }

    let layer = built["images"][0]["layers"][1]["digest"].as_str().unwrap();
    let blob = site.path("layout/blobs").join(layer.replace(':', "/"));
    let blob = blob.to_str().unwrap();
    let expected = [
        "Hives",
        "Hives/System_Delta",
        "Files",
        "Files/app",
        "Files/app/empty",
        "Files/app/Ärger",
        "Files/app/Ärger/naïve file.txt",
    ];
    let listing = run(Path::new("tar"), &["--quoting-style=literal", "-tzf", blob]);
    let names: Vec<_> = listing
        .lines()
        .map(|line| line.trim_end_matches('/'))
        .collect();
    assert_eq!(names, expected);
    let script = "import sys, tarfile\nfor m in tarfile.open(sys.argv[1]): print(m.name)";
    let listing = run(Path::new("python3"), &["-c", script, blob]);
    assert_eq!(listing.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_image() {
    let site = Site::new();
    large_context(&site);
    // The shell's limit on the size of files stands in for the disk's.
    let program = assert_cmd::cargo::cargo_bin!("wincimg");
    let output = Command::new("bash")
        .current_dir(site.folder.path())
        .args(["-c", "trap '' XFSZ; ulimit -f 20480; exec \"$@\"", "bash"])
        .arg(program)
        .args([
            "build",
            "big",
            "--host-build",
            "17763.973",
            "--output",
            "oci:out",
        ])
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .args(["--insecure-registry", &site.host()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("File too large"),
        "{}",
        stderr(&output)
    );
    assert!(
        !site.path("out/index.json").exists() || {
            !fs::read_to_string(site.path("out/index.json"))
                .unwrap()
                .contains("digest")
        }
    );
}
