//! `wincimg demo`, which requires only the program.

use std::fs;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::site::{each, json_of};

fn wincimg() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
}

#[test]
fn the_demonstration_runs_offline_in_seconds() {
    let started = Instant::now();
    wincimg()
        .current_dir(std::env::temp_dir())
        .arg("demo")
        .assert()
        .code(0)
        .stderr("")
        .stdout(
            contains("$ wincimg build pause")
                .and(contains("too-old-for-host"))
                .and(contains("Windows").and(contains("Docker"))),
        );
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_demonstration_exists_for_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    // The folder's defaults do not apply to the tour's commands.
    fs::write(folder.path().join("wincimg.toml"), "[build]\ntag = \"x\"\n").unwrap();
    let mut command = wincimg();
    command.current_dir(folder.path());
    let reported = json_of(command.arg("demo"));
    let steps = reported["steps"].as_array().unwrap();
    assert_eq!(each(&reported["steps"], "exit_code"), [0, 0, 0, 0, 0, 1]);
    let command = steps[0]["command"].as_str().unwrap();
    assert!(command.starts_with("wincimg image base resolve nanoserver"));
    assert_eq!(steps[0]["result"]["match"], "exact");
    let digest = |step: usize| &steps[step]["result"]["images"][0]["digest"];
    assert_eq!(digest(1), digest(3));
    let up_to_date = |step: usize| &steps[step]["result"]["images"][0]["up_to_date"];
    assert_eq!(
        (up_to_date(1), up_to_date(3)),
        (&Value::Bool(false), &Value::Bool(true))
    );
    assert_eq!(steps[4]["result"]["compatible"], true);
    assert_eq!(steps[5]["result"]["compatible"], false);
    let checks = steps[5]["result"]["checks"].as_array().unwrap();
    let mut advised = checks
        .iter()
        .filter_map(|check| check["commands"][0].as_str());
    // Not under the tag of one version.
    assert_contains!(advised.next().unwrap(), " --name pause --push ");
}

#[test]
fn the_demonstration_runs_where_temporary_folders_have_spaces() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("a b");
    fs::create_dir(&temporary).unwrap();
    wincimg()
        .current_dir(&temporary)
        .env("TMPDIR", &temporary)
        .arg("demo")
        .assert()
        .code(0)
        .stdout(contains("$ wincimg build pause --nodes nodes.json"));
}
