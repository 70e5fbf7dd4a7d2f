//! Configuration and layers of built images, compared with base and recipe.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_testkit::component;
use wincimg_testkit::layout::{blob_in, config_in};

use super::readers::run;
use crate::site::{Site, each, json_of};

#[test]
fn the_configuration_keeps_the_base_and_gets_what_the_recipe_says() {
    let site = Site::new();
    site.write("files/a.txt", "a");
    site.write("files/web.exe", "MZ");
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

/// A base in Microsoft's format before 2023: its layer is foreign and stored elsewhere.
pub(crate) fn add_foreign_base(site: &Site) -> String {
    add_base(site, &[])
}

/// A base with instructions for child images.
fn add_base(site: &Site, on_build: &[&str]) -> String {
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
                "OnBuild": on_build,
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
            "mcr/windows/servercore", "10.0.17763.973", media_type, bytes,
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
    let mut command = site.push(".");
    command.args(["--host-build", "17763.973", "--manifest-format", "docker"]);
    let built = json_of(&mut command);
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
        site.write("recipe.toml", format!("{head}{recipe}"));
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
fn what_a_base_has_for_its_children_is_executed_or_needs_windows() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"child\"\nbase = \"servercore\"\nenv = { A = \"own\" }\n",
    );
    let build = || {
        let mut command = site.build(".");
        command.args(["--host-build", "17763.973", "--tag", "1"]);
        command
    };
    add_base(
        &site,
        &[
            "ENV A=base B=c", "WORKDIR /work", "EXPOSE 8080", r#"CMD ["z"]"#,
        ],
    );
    json_of(&mut build());
    let config = config_in(&site.path("child-1"));
    let container = &config["config"];
    assert_eq!(
        container["Env"],
        json!(["Path=C:\\base", "KEPT=1", "A=own", "B=c"])
    );
    assert_eq!(container["WorkingDir"], "C:\\work");
    assert_eq!(container["ExposedPorts"], json!({"8080/tcp": {}}));
    assert_eq!(container["Cmd"], json!(["z"]));
    assert_ne!(container["ArgsEscaped"], true);
    assert_eq!(container["OnBuild"], Value::Null);
    assert_eq!(
        config["history"][1]["empty_layer"],
        Value::Null,
        "the folder is made"
    );

    add_base(&site, &["ENV A=base", "COPY . /app"]);
    let printed = build().arg("--dry-run").output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    assert_contains!(printed, "onbuild     COPY . /app");
    for engine in ["auto", "direct"] {
        let output = build().args(["--engine", engine]).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert_contains!(printed, "ONBUILD COPY . /app");
    }
}

#[test]
fn a_zstd_layer_makes_an_image_in_ocis_words_that_skopeo_takes() {
    let skopeo = component("skopeo");
    let site = Site::new();
    let mut command = site.push("pause");
    let built = json_of(command.args(["--host-build", "17763.973", "--compression", "zstd"]));
    let image = format!(
        "docker://{}",
        built["images"][0]["reference"].as_str().unwrap()
    );
    let folder = format!("dir:{}", site.path("copy").display());
    let copy = [
        "copy", "--src-tls-verify=false", "--override-os=windows", "--quiet",
    ];
    run(&skopeo, &[&copy[..], &[&image, &folder]].concat());
    let manifest = fs::read(site.path("copy/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let oci = |what: &str| format!("application/vnd.oci.image.{what}");
    assert_eq!(manifest["mediaType"], oci("manifest.v1+json"));
    assert_eq!(manifest["config"]["mediaType"], oci("config.v1+json"));
    assert_eq!(
        each(&manifest["layers"], "mediaType"),
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
    let entries = |folder: &str, layers: &str| {
        let recipe =
            format!("name = \"w\"\nbase = \"nanoserver\"\nworking_dir = '{folder}'\n{layers}");
        site.write("recipe.toml", &recipe);
        let mut command = site.build(".");
        let built = json_of(command.args(["--host-build", "17763.973", "--output", "oci:out"]));
        let layer = built["images"][0]["layers"].as_array()?[1..].last()?;
        let blob = blob_in(&site.path("out"), &layer["digest"]);
        Some(run(Path::new("tar"), &["-tzf", blob.to_str().unwrap()]))
    };
    assert_eq!(
        entries(r"C:\work\here", "").unwrap(),
        "Hives\nFiles\nFiles/work\nFiles/work/here\n"
    );
    let mut layers = "[[layers]]\nfolders = ['C:\\work', 'C:\\other']\n".to_owned();
    let made = entries(r"C:\work", &layers).unwrap();
    assert_eq!(made, "Hives\nFiles\nFiles/other\nFiles/work\n");
    layers += "[[layers]]\ndeletes = ['C:\\work']\n";
    let again = entries(r"C:\work", &layers).unwrap();
    assert_eq!(again, "Hives\nFiles\nFiles/work\n");
    for there in [r"C:\", r"C:\windows\system32", r"C:\Users\ContainerUser"] {
        assert_eq!(entries(there, ""), None, "{there}");
    }
}
