//! `base show`, and builds that read an index.

use std::fs;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;
use wincimg_oci::document::sha256;
use wincimg_registry::RegistryData;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::{base_at, no_registry, sink};
use wincimg_testkit::test_bases::{
    ENVIRONMENT, bottom_layer, image_of, made_software, made_system, rename_value, set,
    upper_layer, whole_hive,
};

use super::{BASE_PATH, Machine, NAME, VERSION, base, publish};
use crate::failure::{Failure, line, note, warning};
use crate::site::{each, write};

/// The base as an OCI layout.
async fn layout(folder: &Path) -> String {
    let place = format!("oci:{}", folder.join("base").display());
    let sink = sink(&place, &no_registry()).await;
    base().put(&sink, None).await;
    place
}

#[test(multi_thread)]
async fn show_answers_what_is_in_this_bases_path() {
    let machine = Machine::new();
    let place = layout(machine.0.path()).await;
    machine.run(&["base", "show", &place]).success().stdout(
        contains("windows   10.0.17763.973")
            .and(contains("path      C:\\runtime\n            %SystemRoot%"))
            .and(contains(r"HKLM\SOFTWARE")),
    );
    let summary = machine.json(&["base", "show", &place]);
    assert_eq!(summary["path"], format!(r"C:\runtime;{BASE_PATH}"));
    assert_eq!(summary["from"], "cache");
    assert_eq!(summary["keys"][0]["hive"], r"HKLM\SYSTEM");
    let key = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment";
    machine
        .run(&["base", "show", &place, "--registry", key])
        .success()
        .stdout(
            contains(r"HKLM\SYSTEM\ControlSet001\Control")
                .and(contains("security  O:"))
                .and(contains(r#"Path = REG_EXPAND_SZ "C:\\runtime;"#)),
        );
    let above = r"HKLM\SYSTEM\ControlSet001\Services";
    let shown = machine.json(&["base", "show", &place, "--registry", above]);
    assert_eq!(shown["subkeys"], json!(["w3svc"]));
    assert_eq!(shown["values"], json!([]));
}

#[test(multi_thread)]
async fn show_answers_who_may_do_what_with_a_file() {
    let machine = Machine::new();
    let place = layout(machine.0.path()).await;
    machine
        .run(&["base", "show", &place, "--path", r"C:\Users\ContainerUser"])
        .success()
        .stdout(contains("folder").and(contains("O:S-1-5-93-2-2G:SYD:PAI(A;OICI;FA;;;SY)")));
    let file = r"C:\Windows\System32\cmd.exe";
    let shown = machine.json(&["base", "show", &place, "--path", file]);
    assert_eq!(shown["kind"], "file");
    assert_eq!(shown["size"], 2);
    assert_eq!(shown["sha256"], sha256(b"MZ").digest());
    assert_eq!(shown["attributes"], json!(["archive"]));
    assert_eq!(shown["content_kept"], false);
    let config = r"C:\Windows\System32\inetsrv\config\applicationHost.config";
    let shown = machine.json(&["base", "show", &place, "--path", config]);
    assert_eq!(shown["content_kept"], true);
    let drive = machine.json(&["base", "show", &place, "--path", r"C:\"]);
    assert_eq!(
        each(&drive["children"], "name"),
        ["Program Files", "Users", "Windows"]
    );
}

#[test(multi_thread)]
async fn show_says_what_is_nearest_to_what_does_not_exist() {
    let machine = Machine::new();
    let place = layout(machine.0.path()).await;
    let show = |flag: &str, name: &str| machine.run(&["base", "show", &place, flag, name]);
    for (flag, typed, nearest) in [
        (
            "--registry",
            r"HKLM\SYSTEM\ControlSet001\Services\w3svcc\Parameters",
            r"HKLM\SYSTEM\ControlSet001\Services\w3svc?",
        ),
        (
            "--path",
            r"C:\Windows\Sytem32\cmd.exe",
            r"C:\Windows\System32?",
        ),
    ] {
        let arguments = ["base", "show", &place, flag, typed, "--format", "json"];
        let shown = machine.run(&arguments).code(1);
        Failure::of(shown.get_output()).is("image/no-file", &[nearest]);
    }
    show("--registry", r"HKCU\Software").code(2);
    show("--registry", r"SYSTEM\x")
        .code(2)
        .stderr(contains("hint:"));
    show("--path", "inetpub").code(2).stderr(contains("hint:"));
    show("--path", r"D:\x").code(2);
    machine
        .run(&[
            "base", "show", &place, "--path", r"C:\x", "--registry", "HKLM",
        ])
        .code(2);
    let pushed = ["base", "index", &place, "--push", "--format", "json"];
    let pushed = machine.run(&pushed).code(2);
    Failure::of(pushed.get_output()).is("usage", &[&place]);
}

#[test(multi_thread)]
async fn what_is_no_windows_has_nothing_to_show() {
    let machine = Machine::new();
    let folder = machine.0.path().join("standin");
    let place = format!("oci:{}", folder.display());
    base_at(&place).await;
    let shown = machine.run(&["base", "show", &place, "--format", "json"]);
    Failure::of(shown.code(3).get_output())
        .is("base/unreadable", &["Files/Windows/System32/config/SYSTEM"]);
}

#[test(multi_thread)]
async fn lines_of_a_dockerfile_see_what_is_inside_the_base() {
    let server = FakeRegistry::start();
    let host = server.host();
    let path = RegistryData::expand_sz(&format!(r"C:\runtime;{BASE_PATH}"));
    let mut upper = upper_layer(&[set(ENVIRONMENT, "Path", path)]);
    for program in ["cmd", "setx"] {
        let file = format!("Files/Windows/System32/{program}.exe");
        upper.file(&file, b"MZ", None);
    }
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    let base = image_of(VERSION, vec![bottom.tar(), upper.tar()]);
    let reference = publish(&base, &host).await;
    let machine = Machine::new();
    let lines = r#"FROM mcr.microsoft.com/windows/nanoserver:1809
USER ContainerAdministrator
RUN setx /M PATH "%PATH%;C:\app" && mkdir C:\Windows\System32\made
"#;
    write(machine.0.path(), "app/Dockerfile", lines);
    let build = [
        "build", "./app", "--host-build", "17763.973", "--base-registry", &host, "--dry-run",
    ];
    // A dry run reads no layers, and reports the missing facts.
    machine
        .run(&build)
        .success()
        .stderr(note(&["Dockerfile:3", "%PATH%"]));
    machine.json(&["base", "index", &reference]);
    let plan = machine.json(&build);
    let layer = &plan["plans"][0]["instructions"]["steps"];
    let layer = layer.as_array().unwrap().last().unwrap();
    let path = layer["layer"]["registry"][0].to_string();
    let whole = r"C:\\runtime;C:\\Windows\\system32;C:\\Windows;C:\\Users\\ContainerAdministrator\\AppData\\Local\\Microsoft\\WindowsApps;C:\\app";
    assert_contains!(path, whole);
    assert_eq!(
        layer["layer"]["entries"][0]["path"],
        r"C:\Windows\System32\made"
    );
    // As a recipe, the folder is added to the base's PATH.
    let convert = [&["convert"], &build[1..6]].concat();
    let converted = machine.json(&convert);
    let recipe = converted["recipe"].as_str().unwrap();
    assert_contains!(recipe, r"path = { append = ['C:\app'] }");
    assert!(!recipe.contains("[[registry]]"), "{recipe}");
    fs::write(machine.0.path().join("app/recipe.toml"), recipe).unwrap();
    let again = [&["build", "./app/recipe.toml"], &build[2..]].concat();
    let plan = &machine.json(&again)["plans"][0];
    assert_eq!(plan["path"]["append"], json!([r"C:\app"]));
}

#[test(multi_thread)]
async fn of_two_values_path_the_first_one_counts_and_builds_say_so() {
    let server = FakeRegistry::start();
    let host = server.host();
    let mut system = whole_hive(&[
        set(ENVIRONMENT, "Path", RegistryData::expand_sz(BASE_PATH)),
        set(ENVIRONMENT, "Pa_h", RegistryData::expand_sz(r"C:\other")),
    ]);
    rename_value(&mut system, "Pa_h", "PATH");
    let bottom = bottom_layer(&system, &made_software());
    let reference = publish(&image_of(VERSION, vec![bottom.tar()]), &host).await;
    let machine = Machine::new();
    let recipe = format!("name = \"app\"\nbase = \"{NAME}\"\npath = ['C:\\app']\n");
    write(machine.0.path(), "app/recipe.toml", recipe);
    let common = ["--host-build", "17763.973", "--base-registry", &host];
    let build = ["build", "./app", "--output", "oci:out"];
    let twice = ["layer 1", ENVIRONMENT, "\"PATH\""];
    let base = format!("{host}/{NAME}");
    machine
        .run(&[&build[..], &common].concat())
        .success()
        .stderr(warning(&[&[base.as_str()], &twice[..]].concat()));
    let delta = {
        let show = ["inspect", "oci:out", "--registry"];
        machine.run(&show).success().get_output().stdout.clone()
    };
    let delta = String::from_utf8(delta).unwrap();
    let whole = format!(r"C:\app;{BASE_PATH}").replace('\\', r"\\");
    assert_contains!(delta, &whole);
    assert!(!delta.contains("other"), "{delta}");
    machine
        .run(&["base", "show", &reference])
        .success()
        .stdout(line(&twice).and(contains("other").not()));
    // A build that needs nothing from the base's hives reports nothing about them.
    machine.plans(&host).stderr(contains("\"PATH\"").not());
}

#[test(multi_thread)]
async fn show_looks_into_what_docker_saved() {
    let machine = Machine::new();
    let file = machine.0.path().join("base.tar");
    let place = format!("docker-archive:{}", file.display());
    let sink = sink(&place, &no_registry()).await;
    base().put(&sink, Some("base:1")).await;
    sink.finish().await.unwrap();
    let shown = machine.json(&["base", "show", &place, "--registry", ENVIRONMENT]);
    assert_eq!(shown["key"], ENVIRONMENT);
    let values = shown["values"].to_string();
    assert_contains!(values, r"C:\\runtime;%SystemRoot%");
    let shown = machine.json(&["base", "show", &place, "--path", r"C:\windows\system32"]);
    assert_eq!(shown["kind"], "folder");
    fs::remove_file(&file).unwrap();
    machine.run(&["base", "show", &place]).failure();
}
