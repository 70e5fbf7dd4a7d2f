//! End-to-end tests of `wincimg image base`.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_testkit::NO_CREDENTIALS;
use wincimg_testkit::fake_registry::FakeRegistry;

use crate::failure::{Fails, note};
use crate::site::{answer_of, each};

const NANO: &str = "windows/nanoserver";

/// `wincimg image base VERB NAME` against a mirror that is listed as insecure.
fn base(registry: &FakeRegistry, arguments: &[&str]) -> Command {
    let mut command = wincimg(arguments);
    command.args(["--base-registry", &registry.host()]);
    command.args(["--insecure-registry", &registry.host()]);
    command
}

fn wincimg(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    // An empty folder, so that no local wincimg.toml applies.
    command.current_dir(std::env::temp_dir()).arg("base");
    command
        .args(arguments)
        .args(["--registry-config", NO_CREDENTIALS]);
    command
}

fn microsofts() -> FakeRegistry {
    let registry = FakeRegistry::start();
    registry.publish(
        NANO,
        &["10.0.17763.914", "1809-KB4530715"],
        "10.0.17763.914",
    );
    registry.publish(
        NANO,
        &[
            "10.0.17763.973", "10.0.17763.973-amd64", "1809-KB4534273", "ltsc2019",
        ],
        "10.0.17763.973",
    );
    registry.publish(NANO, &["ltsc2025-arm64"], "10.0.26100.1742");
    registry
}

#[test]
fn the_result_is_pinned_by_digest() {
    let registry = microsofts();
    let (code, result) = answer_of(&mut base(
        &registry,
        &["resolve", "nanoserver", "--host-build", "17763.973"],
    ));
    assert_eq!(code, 0);
    assert_eq!(result["os_version"], "10.0.17763.973");
    assert_eq!(result["match"], "exact");
    let digest = result["digest"].as_str().unwrap();
    assert_eq!(
        result["reference"],
        format!("{}/{NANO}:10.0.17763.973@{digest}", registry.host())
    );
}

#[test]
fn as_text_the_reference_is_all_of_stdout() {
    let registry = microsofts();
    base(
        &registry,
        &["resolve", "nanoserver", "--host-build", "17763.1000"],
    )
    .assert()
    .code(0)
    .stdout(
        predicate::str::starts_with(format!("{}/{NANO}:10.0.17763.973@sha256:", registry.host()))
            .and(predicate::function(|out: &str| out.lines().count() == 1)),
    )
    .stderr(note(&["17763.973", "17763.1000"]));
}

#[test]
fn a_mirrors_prefix_and_whole_repositories_are_understood() {
    let registry = FakeRegistry::start();
    registry.publish(
        "mcr.microsoft.com/windows",
        &["10.0.17763.973"],
        "10.0.17763.973",
    );
    let mirror = format!("{}/mcr.microsoft.com", registry.host());
    wincimg(&["resolve", "windows", "--host-build", "17763.973"])
        .args(["--base-registry", &mirror])
        .args(["--insecure-registry", &registry.host()])
        .assert()
        .code(0);
    let whole = format!("{mirror}/windows");
    wincimg(&["resolve", &whole, "--host-build", "10.0.17763.973"])
        .args(["--insecure-registry", &registry.host()])
        .assert()
        .code(0);
}

#[test]
fn nothing_that_fits_is_exit_1_with_what_is_nearest() {
    let registry = microsofts();
    let arguments = [
        "resolve", "nanoserver", "--host-build", "17763.950", "--match", "exact",
    ];
    let (code, result) = answer_of(&mut base(&registry, &arguments));
    assert_eq!(code, 1);
    assert_eq!(result["reference"], Value::Null);
    assert_eq!(result["error"]["code"], "base/nothing-fits");
    assert_eq!(
        result["nearest_below"],
        json!({"tag": "10.0.17763.914", "os_version": "10.0.17763.914"})
    );
    assert_eq!(result["nearest_above"]["tag"], "10.0.17763.973");

    base(
        &registry,
        &["resolve", "nanoserver", "--host-build", "17763.1158"],
    )
    .assert()
    .code(1)
    .stdout("")
    .stderr(contains("17763.973").and(contains("2020-02-11")));
}

/// As `wincimg build` does.
#[test]
fn a_build_without_a_revision_stands_for_its_newest_one() {
    let registry = microsofts();
    let mut resolve = base(
        &registry,
        &["resolve", "nanoserver", "--host-build", "17763"],
    );
    resolve
        .assert()
        .code(1)
        .stderr(note(&["17763", "the newest revision known"]));
    registry.publish(NANO, &["10.0.17763.1158"], "10.0.17763.1158");
    resolve
        .assert()
        .code(0)
        .stdout(contains("10.0.17763.1158@"));
}

#[test]
fn a_registry_that_is_not_listed_as_insecure_names_the_flag() {
    let registry = microsofts();
    // An address that leads to this machine but is not among its own.
    let host = registry.host().replace("127.0.0.1", "0.0.0.0");
    wincimg(&["resolve", "nanoserver", "--host-build", "17763.973"])
        .args(["--base-registry", &host])
        .assert()
        .code(3)
        .stderr(contains(format!("--insecure-registry {host}")));
}

#[test]
fn a_missing_repository_says_where_base_images_are_looked_for() {
    let registry = microsofts();
    for arguments in [
        &["resolve", "nanosrever", "--host-build", "17763.973"][..],
        &["list", "nanosrever"],
    ] {
        base(&registry, arguments)
            .fails(3, "base/not-found", &["nanosrever"])
            .advises(&["nanoserver", "servercore", "--base-registry"]);
    }
    let server = ["resolve", "server", "--host-build", "17763.973"];
    base(&registry, &server)
        .fails(3, "base/not-found", &["windows/server"])
        .advises(&[
            "wincimg image mirror base:server --base-registry mcr.microsoft.com --host-build \
             17763.973 --to 127.0.0.1:",
        ]);
}

#[test]
fn an_empty_list_says_why() {
    let registry = microsofts();
    let empty = ["list", "nanoserver", "--host-build", "14393.1"];
    let (code, list) = answer_of(&mut base(&registry, &empty));
    assert_eq!((code, &list["images"]), (1, &json!([])));
    assert_eq!(list["error"]["code"], "base/nothing-fits");
    let said = base(&registry, &empty).tells(1);
    assert_contains!(said, "error: none of the ", "14393.1");
}

#[test]
fn a_name_that_is_none_is_wrong_usage() {
    wincimg(&[
        "resolve", "nanoserver:ltsc2019", "--host-build", "17763.973",
    ])
    .fails(2, "base/name", &["nanoserver", "ltsc2019"]);
    wincimg(&["resolve", "nanoserver", "--host-build", "17763.973"])
        .args(["--base-registry", "https://mcr.microsoft.com"])
        .assert()
        .code(2)
        .stderr(contains("a registry has no scheme"));
    wincimg(&["resolve", "nanoserver", "--host-build", "1810"])
        .assert()
        .code(2)
        .stderr(contains("1810").and(contains("17763.973")));
}

#[test]
fn a_list_has_one_line_an_image() {
    let registry = microsofts();
    let text = base(&registry, &["list", "nanoserver"]).prints();
    insta::assert_snapshot!(text);
    assert_eq!(registry.requests().len(), 1);
}

#[test]
fn a_list_can_be_for_one_host_and_for_programs() {
    let registry = microsofts();
    registry.publish(NANO, &["10.0.17763.1158"], "10.0.17763.1158");
    let (code, list) = answer_of(&mut base(
        &registry,
        &["list", "nanoserver", "--host-build", "17763.950"],
    ));
    assert_eq!(code, 0);
    assert_eq!(
        each(&list["images"], "os_version"),
        [
            &json!("10.0.17763.973"),
            &json!("10.0.17763.914"),
            &Value::Null
        ]
    );
    assert_eq!(list["images"][0]["kb"], "KB4534273");
    assert_eq!(list["other_tags"], 1);
}

#[test]
fn the_base_that_wincimg_makes_is_in_no_registry() {
    let registry = microsofts();
    for command in [
        &["list", "hostprocess"][..],
        &["resolve", "hostprocess", "--host-build", "17763.973"],
    ] {
        base(&registry, command)
            .fails(2, "base/name", &["hostprocess"])
            .advises(&["base = \"hostprocess\""]);
    }
    base(
        &registry,
        &["resolve", "hostproces", "--host-build", "17763.973"],
    )
    .fails(3, "base/not-found", &[])
    .advises(&["hostprocess"]);
}

#[test]
fn a_name_that_is_no_base_image_is_answered_with_the_one_that_was_meant() {
    let registry = microsofts();
    let host = ["--host-build", "17763.973"];
    // The suggestion precedes the full list.
    for (name, mentions) in [("nano", 2), ("ubuntu", 1)] {
        let failure =
            base(&registry, &["resolve", name])
                .args(host)
                .fails(3, "base/not-found", &[name]);
        let found = failure.hint.matches("nanoserver").count();
        assert_eq!(found, mentions, "{failure:#?}");
    }
}

/// .NET in two versions, each for two releases, with Microsoft's tags.
fn dotnet() -> FakeRegistry {
    let registry = FakeRegistry::start();
    for (flavour, revision) in [("8.0", 5696), ("9.0", 5820)] {
        let tags = [
            format!("{flavour}-nanoserver-1809"),
            format!("{flavour}-nanoserver-ltsc2022"),
        ];
        let versions = [
            format!("10.0.17763.{revision}"),
            format!("10.0.20348.{revision}"),
        ];
        for (tag, version) in tags.iter().zip(&versions) {
            registry.publish("dotnet/aspnet", &[tag], version);
        }
    }
    registry
}

#[test]
fn a_repository_with_several_flavours_needs_one() {
    let registry = dotnet();
    let resolve = |name: &str| base(&registry, &["resolve", name, "--host-build", "20348.6000"]);
    resolve("dotnet/aspnet")
        .fails(1, "base/flavour", &["9.0, 8.0"])
        .advises(&["/dotnet/aspnet:9.0"]);
    let (code, result) = answer_of(&mut resolve("dotnet/aspnet:8.0"));
    assert_eq!(code, 0);
    assert_eq!(result["tag"], "8.0-nanoserver-ltsc2022");
    assert_eq!(result["os_version"], "10.0.20348.5696");
    resolve("dotnet/aspnet:8.1")
        .fails(1, "base/flavour", &["\"8.1\""])
        .advises(&["aspnet:8.0"]);
}

#[test]
fn a_list_is_of_the_flavour_that_was_named() {
    let registry = dotnet();
    let list = |name: &str| base(&registry, &["list", name]);
    let tags = |name: &str| -> Vec<String> {
        let (code, list) = answer_of(&mut list(name));
        assert_eq!(code, 0, "{list}");
        let images = list["images"].as_array().unwrap().iter();
        images
            .map(|image| image["tags"][0].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        tags("dotnet/aspnet:8.0"),
        ["8.0-nanoserver-ltsc2022", "8.0-nanoserver-1809"]
    );
    assert_eq!(tags("dotnet/aspnet").len(), 4);
    list("dotnet/aspnet:8.1").fails(1, "base/flavour", &["\"8.1\"", "9.0, 8.0"]);
    let version = "10.0.17763.973";
    registry.publish("windows/own", &[version], version);
    list("windows/own:9")
        .fails(1, "base/flavour", &["\"9\"", "it has none"])
        .advises(&["/windows/own"]);
}

#[test]
fn all_hosts_of_a_build_get_one_flavour() {
    let registry = dotnet();
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str| {
        let recipe = folder.path().join("recipe.toml");
        std::fs::write(&recipe, format!("name = \"web\"\nbase = \"{name}\"\n")).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(folder.path())
            .args(["build", "recipe.toml", "--dry-run"])
            .args(["--host-build", "17763.6000", "--host-build", "20348.6000"])
            .args(["--base-registry", &registry.host()])
            .args(["--insecure-registry", &registry.host()])
            .args(["--registry-config", NO_CREDENTIALS]);
        command
    };
    build("dotnet/aspnet").fails(1, "base/flavour", &["9.0, 8.0"]);
    build("dotnet/aspnet:8.0").assert().code(0).stdout(
        contains("dotnet/aspnet:8.0-nanoserver-1809")
            .and(contains("dotnet/aspnet:8.0-nanoserver-ltsc2022")),
    );
    // A version for only one of the hosts is not selected.
    registry.publish(
        "dotnet/aspnet",
        &["10.0-nanoserver-ltsc2022"],
        "10.0.20348.5900",
    );
    build("dotnet/aspnet:10.0").assert().code(1).stderr(
        contains("/dotnet/aspnet:10.0 starts on host 17763.6000")
            .and(contains("9.0, 8.0"))
            .and(contains("/dotnet/aspnet:9.0")),
    );
    base(
        &registry,
        &[
            "resolve", "dotnet/aspnet:10.0", "--host-build", "17763.6000",
        ],
    )
    .fails(1, "base/nothing-fits", &["/dotnet/aspnet:10.0 "])
    .advises(&["9.0, 8.0"]);
}
