//! Output without a build: the plan, a recipe, the help.

use std::fs;
use std::process::Command;

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::failure::Fails;
use crate::site::{Site, json_of};

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
        command.args(["recipe", "show", "pause", "--format", format]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let text = show("text");
    assert_contains!(text, "name = \"pause\"");
    let json: Value = serde_json::from_str(&show("json")).unwrap();
    assert_eq!(json, json!({ "name": "pause", "recipe": text }));
}

#[test]
fn the_help_has_under_dockers_heading_only_what_is_dockers() {
    let help = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["build", "--help"])
        .prints();
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
