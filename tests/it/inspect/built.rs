//! Images built by `wincimg build`, in a real registry, a layout and an archive of skopeo's.

use std::{fs, process};

use predicates::str::contains;
use serde_json::json;
use tempfile::TempDir;
use wincimg_registry::regfile;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::windows_base::{StandIn, put_index};
use wincimg_testkit::{component, image_locations};

use super::*;

use crate::failure::{Fails, line, says};

const RECIPE: &str = r#"
name = "web"
description = "A web server that needs time to stop"
base = "nanoserver"
shutdown_timeout = 90
entrypoint = ['C:\web\server.exe', "--root", 'C:\my sites']
cmd = ["--port", "80"]
user = "ContainerUser"
working_dir = 'C:\web'
ports = ["80/tcp", "443/tcp"]
volumes = ['C:\data']
on_build = ["COPY . C:/web"]

[[files]]
content = "hello"
to = 'C:\web\hello.txt'

[healthcheck]
test = ["CMD", 'C:\web\check.exe', "--all"]

[env]
MODE = "production"

[labels]
"org.opencontainers.image.base.name" = "${base.name}"
"org.opencontainers.image.base.digest" = "${base.digest}"
owner = "the web team"

[[registry]]
key = 'HKLM\SOFTWARE\Contoso\Web'
values = { "Größe" = 7, Path = 'C:\web' }

[[registry]]
key = 'HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack'
delete = true
"#;

/// A registry with a base image of two versions, the image built on each, and an index.
struct Built {
    registry: DockerRegistry,
    folder: TempDir,
}

impl Built {
    fn start() -> Self {
        let registry = DockerRegistry::plain();
        let host = registry.host();
        block_on(async {
            let client = image_locations::registry(&host);
            for (version, seed) in [("10.0.17763.973", 1), ("10.0.20348.2402", 2)] {
                let base = StandIn::new(ManifestFormat::Docker, version, &[(20_000, seed)]);
                let place = format!("{host}/windows/nanoserver:{version}");
                let sink = sink(&place, &client).await;
                put_index(ManifestFormat::Docker, &[base], &sink, Some(version)).await;
            }
        });
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("recipe.toml"), RECIPE).unwrap();
        let built = Self { registry, folder };
        built
            .wincimg("build")
            .arg(built.folder.path())
            .args(["--host-build", "17763.973", "--host-build", "20348.2402"])
            .args(["--base-registry", &host, "--registry", &host, "--push"])
            .args(["--tag", "1.0"])
            .assert()
            .success();
        built
    }

    fn wincimg(&self, verb: &str) -> Command {
        let mut command = wincimg(verb);
        command.args(["--insecure-registry", &self.registry.host()]);
        command
    }

    fn reference(&self, tag: &str) -> String {
        format!("{}/web:{tag}", self.registry.host())
    }

    fn inspect(&self, tag: &str, arguments: &[&str]) -> Command {
        let mut command = self.wincimg("inspect");
        command.arg(self.reference(tag)).args(arguments);
        command
    }
}

#[test]
fn a_built_image_is_shown_with_all_that_its_recipe_said() {
    let built = Built::start();
    let names = [(&*built.registry.host(), "HOST")];
    let text = text_of(&mut built.inspect("1.0-10.0.17763.973", &["--registry"]));
    insta::assert_snapshot!("one_image", redacted(&text, &names));
    let text = text_of(&mut built.inspect("1.0", &[]));
    insta::assert_snapshot!("an_index", redacted(&text, &names));
    let text = text_of(
        built
            .inspect("1.0-10.0.17763.973", &["--registry"])
            .args(["--format", "json"]),
    );
    insta::assert_snapshot!("one_image_as_json", redacted(&text, &names));
}

#[test]
fn the_registry_file_of_an_image_holds_its_edits() {
    let built = Built::start();
    let mut command = built.inspect("1.0", &["--format", "reg", "--platform"]);
    let output = command.arg("windows/amd64:17763").output().unwrap();
    assert!(output.status.success());
    assert!(
        output.stdout.starts_with(&[0xFF, 0xFE]),
        "a name outside ASCII needs UTF-16"
    );
    let edits: Vec<String> = regfile::import(&output.stdout)
        .unwrap()
        .edits
        .iter()
        .map(ToString::to_string)
        .filter(|edit| !edit.starts_with("create"))
        .collect();
    assert_eq!(
        edits,
        [
            r#"set HKLM\SYSTEM\ControlSet001\Control "WaitToKillServiceTimeout" = REG_SZ "90000""#,
            r#"set HKLM\SYSTEM\ControlSet001\Services\cexecsvc "ProcessShutdownTimeoutSeconds" = REG_DWORD 90"#,
            r"delete HKLM\SYSTEM\ControlSet001\Services\DiagTrack",
            r#"set HKLM\SOFTWARE\Contoso\Web "Größe" = REG_DWORD 7"#,
            r#"set HKLM\SOFTWARE\Contoso\Web "Path" = REG_SZ "C:\\web""#,
        ]
    );
    built
        .inspect("1.0", &["--format", "reg"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("--platform windows/amd64:OSVERSION"));
}

#[test]
fn an_image_is_the_same_wherever_it_is() {
    let built = Built::start();
    let skopeo = component("skopeo");
    let tag = "1.0-10.0.17763.973";
    let (_, there, _) = report_of(&mut built.inspect(tag, &["--registry"]));
    let path = built.folder.path().join("saved").display().to_string();
    for (kind, name) in [("oci", ":web"), ("docker-archive", ":web:1.0")] {
        let place = format!("{kind}:{path}.{kind}{name}");
        let output = process::Command::new(&skopeo)
            .args(["--override-os", "windows", "--override-arch", "amd64"])
            .args(["--insecure-policy", "copy", "--src-tls-verify=false"])
            .args([format!("docker://{}", built.reference(tag)), place.clone()])
            .env("HOME", "/nonexistent")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "skopeo: {printed}");
        let (code, here, _) = report_of(&mut inspect(&place, &["--registry"]));
        assert_eq!(code, 0);
        assert_eq!(here["reference"], json!(place));
        let (here, there) = (&here["images"][0], &there["images"][0]);
        for field in ["os_version", "entrypoint", "labels", "ports", "created"] {
            assert_eq!(here[field], there[field], "{kind}: {field}");
        }
        assert_eq!(here["shutdown"]["seconds"], 90);
        assert_eq!(here["registry"]["result"], there["registry"]["result"]);
        // Archives store layers uncompressed, so only the uncompressed bytes have the same digest.
        for layer in 0..2 {
            let (here, there) = (&here["layers"][layer], &there["layers"][layer]);
            assert_eq!(here["diff_id"], there["diff_id"], "{kind}");
        }
    }
}

#[test]
fn a_platform_chooses_among_the_images_of_an_index() {
    let built = Built::start();
    let (code, found, _) =
        report_of(&mut built.inspect("1.0", &["--platform", "windows/amd64:20348"]));
    assert_eq!(code, 0);
    assert_eq!(found["images"].as_array().unwrap().len(), 1);
    assert_eq!(found["images"][0]["os_version"], "10.0.20348.2402");
    assert_eq!(
        found["others"][0]["platform"],
        "windows/amd64:10.0.17763.973"
    );
    built
        .inspect("1.0", &["--platform", "windows/amd64:26100"])
        .fails(1, "image/no-platform", &["windows/amd64:26100"])
        .lists(&[
            "windows/amd64:10.0.20348.2402",
            "windows/amd64:10.0.17763.973",
        ]);
}

#[test]
fn a_host_among_the_defaults_of_flags_is_no_wish_to_see_the_registry() {
    let built = Built::start();
    let host = built.registry.host();
    let defaults = format!("registry = {host:?}\ninsecure-registry = [{host:?}]\n");
    fs::write(built.folder.path().join("wincimg.toml"), defaults).unwrap();
    let (code, found, printed) = report_of(
        wincimg("inspect")
            .current_dir(built.folder.path())
            .args(["--config", "wincimg.toml"])
            .arg(built.reference("1.0")),
    );
    assert_eq!(code, 0, "{printed}");
    assert_eq!(found["images"][0]["registry"], json!(null));
}

#[test]
fn what_a_registry_does_not_have_is_an_error_with_a_name() {
    let built = Built::start();
    built
        .inspect("2.0", &[])
        .assert()
        .code(3)
        .stdout("")
        .stderr(contains(built.reference("2.0").rsplit_once(':').unwrap().0));
    // An address that leads to this machine but is not among its own.
    let other = |text: &str| text.replace("127.0.0.1", "0.0.0.0");
    inspect(&other(&built.reference("1.0")), &[])
        .assert()
        .code(3)
        .stderr(contains(format!(
            "--insecure-registry {}",
            other(&built.registry.host())
        )));
}

#[test]
fn a_layer_that_a_registry_damaged_is_named_and_the_rest_is_shown() {
    let built = Built::start();
    let tag = "1.0-10.0.17763.973";
    let (_, found, _) = report_of(&mut built.inspect(tag, &[]));
    let digest = found["images"][0]["layers"][1]["digest"].as_str().unwrap();
    let file = built.registry.blob_file(digest);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xFF;
    fs::write(&file, bytes).unwrap();
    let (code, found, printed) = report_of(&mut built.inspect(tag, &["--registry"]));
    assert_eq!(code, 3);
    says(&printed, &line(&["error: ", "layer 2", digest]));
    let image = &found["images"][0];
    assert_eq!(image["os_version"], "10.0.17763.973");
    assert_eq!(image["layers"][1]["read"], "failed");
    assert_eq!(image["shutdown"]["complete"], false);
}

#[test]
fn the_help_says_when_the_bottom_layer_is_read() {
    let output = wincimg("inspect").arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("the bottom one is read for --merged alone"),
        "{help}"
    );
}
