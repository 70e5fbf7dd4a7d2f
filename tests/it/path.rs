//! A recipe's `path`, from a base in a registry to the PATH of a container.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tempfile::TempDir;
use wincimg_layer::{LayerReader, Limits};
use wincimg_registry::RegistryData;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::layout::{config_in, layers_in};
use wincimg_testkit::programs::python_with_regipy;
use wincimg_testkit::test_bases::{
    ENVIRONMENT, FOLDER, USER_FOLDER, bottom_layer, delta_hive, descriptor, image_of,
    made_software, made_system, real_system, set, upper_layer,
};
use wincimg_testkit::windows_base::StandIn;

use crate::failure::{line, note};

const VERSION: &str = "10.0.17763.973";
const BASE_PATH: &str = r"%SystemRoot%\system32;%SystemRoot%;";

const RECIPE: &str = r#"
name = "app"
base = "nanoserver"
path = { prepend = ['C:\app'], append = ['%ProgramFiles%\tools', '%SystemRoot%\System32\'] }
entrypoint = ['C:\Windows\System32\cmd.exe']
working_dir = 'C:\Program Files\tools'

[[files]]
content = "x"
to = 'C:\Users\ContainerUser\x.txt'
"#;

/// Merges the hives, lowest first, and prints type and data of PATH.
const MERGE: &str = r"
import sys
from regipy.registry import RegistryHive

path = None
for file in sys.argv[1:]:
    try:
        key = RegistryHive(file).get_key('\\ControlSet001\\Control\\Session Manager\\Environment')
    except Exception:
        continue
    for value in key.iter_values(trim_values=False):
        if value.name.upper() == 'PATH':
            path = value
print(path.value_type, path.value, end='')
";

/// Publishes the base and builds the recipe on it.
async fn build(base: &StandIn, server: &FakeRegistry, folder: &Path, more: &[&str]) -> Assert {
    let host = server.host();
    put_at(base, &format!("{host}/windows/nanoserver:{VERSION}")).await;
    fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(folder)
        .env("DOCKER_CONFIG", folder)
        .args(["build", ".", "--host-build", "17763.973"])
        .args(["--base-registry", &host, "--insecure-registry", "127.0.0.1"])
        .arg("--cache-dir")
        .arg(folder.join("cache"))
        .args(more)
        .timeout(Duration::from_mins(1))
        .assert()
}

/// The built image: its configuration, and the last layer's tar.
fn built(folder: &Path) -> (Value, PathBuf) {
    let layout = folder.join("out");
    (config_in(&layout), layers_in(&layout).pop().unwrap())
}

/// One file of a layer.
fn file_of(layer: &Path, wanted: &str) -> Vec<u8> {
    let blob = fs::File::open(layer).unwrap();
    let mut reader = LayerReader::new(blob, Limits::default()).unwrap();
    while let Some(entry) = reader.next_entry().unwrap() {
        if entry.path == wanted {
            return reader.content().unwrap();
        }
    }
    panic!("{wanted} is not in the layer")
}

fn merged_path(python: &Path, folder: &Path, hives: &[&[u8]]) -> String {
    let files = hives.iter().enumerate().map(|(place, hive)| {
        let file = folder.join(format!("hive-{place}"));
        fs::write(&file, hive).unwrap();
        file
    });
    let output = Program::new(python)
        .args(["-c", MERGE])
        .args(files.collect::<Vec<_>>())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds on a base with these hives, and compares the image's PATH with the expected one.
async fn joins(base: &StandIn, hives: &[&[u8]]) {
    let python = python_with_regipy();
    let server = FakeRegistry::start();
    let folder = TempDir::new().unwrap();
    let done = build(base, &server, folder.path(), &["--output", "oci:out"]).await;
    done.success().stderr(note(&["`wincimg image base index "]));
    let (config, layer) = built(folder.path());
    let delta = file_of(&layer, "Hives/System_Delta");
    let before = merged_path(&python, folder.path(), hives);
    let after = merged_path(&python, folder.path(), &[hives, &[&delta]].concat());
    let (kind, path) = before.split_once(' ').unwrap();
    let path = path.trim_end_matches(';');
    assert_eq!(
        after,
        format!(r"{kind} C:\app;{path};C:\Program Files\tools")
    );
    let env = config["config"]["Env"].as_array();
    let path = env.and_then(|env| {
        env.iter()
            .find_map(|line| line.as_str()?.strip_prefix("PATH="))
    });
    let has_own = base.image.config().config.env.is_empty();
    let expected = r"C:\app;C:\dotnet;C:\Windows\system32;C:\Program Files\tools";
    assert_eq!(path, (!has_own).then_some(expected));
}

#[test(multi_thread)]
async fn path_is_that_of_a_real_base_with_ours() {
    let system = real_system();
    let bottom = bottom_layer(&system, &made_software());
    joins(&image_of(VERSION, vec![bottom.tar()]), &[&system]).await;
}

#[test(multi_thread)]
async fn path_is_the_bases_with_ours_whatever_layer_it_comes_from() {
    let system = made_system(BASE_PATH);
    let bottom = || bottom_layer(&system, &made_software()).tar();
    let change = [set(
        ENVIRONMENT,
        "PATH",
        RegistryData::expand_sz(&format!(r"C:\runtime;{BASE_PATH}")),
    )];
    let upper = upper_layer(&change).tar();
    let two = image_of(VERSION, vec![bottom(), upper]);
    joins(&two, &[&system, &delta_hive(&change)]).await;
    let mut with_env = image_of(VERSION, vec![bottom()]);
    let env = vec![r"Path=C:\dotnet;C:\Windows\system32".to_owned()];
    with_env.image = with_env
        .image
        .edit_config(|config| config.config.env = env)
        .unwrap();
    joins(&with_env, &[&system]).await;
}

#[test(multi_thread)]
async fn a_base_that_is_indexed_keeps_its_folders_as_they_are() {
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    let base = image_of(VERSION, vec![bottom.tar()]);
    let (server, folder) = (FakeRegistry::start(), TempDir::new().unwrap());
    let reference = format!("{}/windows/nanoserver:{VERSION}", server.host());
    build(&base, &server, folder.path(), &["--dry-run"])
        .await
        .success()
        .stdout(line(&["path ", r"C:\app"]));
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .env("DOCKER_CONFIG", folder.path())
        .args([
            "base", "index", &reference, "--insecure-registry", "127.0.0.1", "--cache-dir",
        ])
        .arg(folder.path().join("cache"))
        .assert()
        .success();
    build(&base, &server, folder.path(), &["--output", "oci:out"])
        .await
        .success();
    let (_, layer) = built(folder.path());
    let blob = fs::File::open(layer).unwrap();
    let mut reader = LayerReader::new(blob, Limits::default()).unwrap();
    let mut found = BTreeMap::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        let mut records = reader.pax();
        let security = records.find(|(key, _)| key == b"MSWINDOWS.rawsd");
        found.insert(entry.path, security.map(|(_, value)| value.to_vec()));
    }
    let of = |name: &str| found[name].clone().unwrap();
    let encoded = |sddl: &str| BASE64_STANDARD.encode(descriptor(sddl)).into_bytes();
    assert_eq!(of("Files/Users/ContainerUser"), encoded(USER_FOLDER));
    assert_eq!(
        of("Files/Users/ContainerUser/x.txt"),
        encoded("O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;S-1-5-93-2-2)")
    );
    assert_eq!(of("Files/Program Files"), encoded(FOLDER));
    let new = "O:BAG:SYD:AI(A;OICIID;FA;;;BA)(A;OICIID;FA;;;SY)(A;OICIIOID;GA;;;CO)(A;OICIID;0x1200a9;;;BU)(A;CIID;LC;;;BU)(A;CIID;DC;;;BU)";
    assert_eq!(of("Files/Program Files/tools"), encoded(new));
}
