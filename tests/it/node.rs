//! `wincimg node script`: its settings, and valid PowerShell.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use predicates::Predicate as _;
use serde_json::Value;
use wincimg_testkit::powershell::syntax_errors;

use crate::failure::line;

const REGISTRY: &str = "repo.mylan.k8s:8888";

fn script(more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wincimg"));
    command
        .args(["node", "script", "--registry", REGISTRY])
        .args(more)
        .current_dir(std::env::temp_dir())
        .env_remove("WINCIMG_CONFIG");
    command.output().unwrap()
}

fn text(more: &[&str]) -> String {
    let output = script(more);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(more: &[&str]) -> String {
    let output = script(more);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The table of settings, the only part that differs between scripts.
fn settings(script: &str) -> &str {
    let (_, rest) = script.split_once("$node = @{\n").unwrap();
    rest.split_once("\n}\n").unwrap().0
}

/// A CA created by openssl, in a temporary folder.
fn ca() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=repo.mylan.k8s", "-keyout"])
        .arg(folder.path().join("ca.key"))
        .arg("-out")
        .arg(&file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    (folder, file)
}

#[test]
fn every_version_among_the_nodes_gets_its_images() {
    let hosts = ["--host-build", "17763.973", "--host-build", "20348.2402"];
    let trust = ["--insecure-registry", REGISTRY, "--hold-updates"];
    insta::assert_snapshot!(settings(&text(&[&hosts[..], &trust].concat())));
}

#[test]
fn a_mirror_and_a_tag_of_ones_own_are_taken() {
    let text = text(&[
        "--host-build",
        "17763.973",
        "--tag",
        "latest",
        "--base",
        "servercore",
        "--base-registry",
        "repo.mylan.k8s:9999/mcr.microsoft.com",
        "--runtime",
        "docker",
        "--pull-deadline",
        "90s",
        "--undo",
    ]);
    insta::assert_snapshot!(settings(&text));
}

#[test]
fn certificates_travel_in_the_script_and_nothing_else_of_their_file() {
    let (folder, file) = ca();
    let key = fs::read_to_string(folder.path().join("ca.key")).unwrap();
    let certificate = fs::read_to_string(&file).unwrap();
    let both = folder.path().join("both.pem");
    fs::write(&both, format!("{key}{certificate}")).unwrap();
    let text = text(&[
        "--host-build",
        "17763.973",
        "--ca-file",
        both.to_str().unwrap(),
    ]);
    assert!(
        text.contains(&format!("Certificates = '{certificate}'")),
        "{text}"
    );
    assert!(!text.contains("PRIVATE KEY"));
    assert_eq!(syntax_errors(&text), [""; 0]);
}

#[test]
fn scripts_are_powershell_by_its_grammar() {
    for more in [
        &[][..],
        &["--undo", "--hold-updates", "--runtime", "containerd"],
        &[
            "--insecure-registry",
            "repo.mylan.k8s:8888",
            "--pause",
            "kube/pause",
        ],
    ] {
        let text = text(&[&["--host-build", "17763.973"][..], more].concat());
        assert_eq!(syntax_errors(&text), [""; 0]);
        assert_ne!(syntax_errors(&(text + "\nif (")), [""; 0]);
    }
}

#[test]
fn what_a_script_does_is_reported_without_it() {
    let args = ["--host-build", "17763.973", "--dry-run"];
    let reported = text(&args);
    assert!(
        reported.contains("pause     repo.mylan.k8s:8888/pause:10.0.17763.973\n"),
        "{reported}"
    );
    assert!(!reported.contains("function"));
    let json: Value =
        serde_json::from_str(&text(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(json["images"][0]["build"], "17763.973");
    assert_eq!(json["script"], Value::Null);
    let whole = text(&["--host-build", "17763.973", "--format", "json"]);
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["script"], text(&["--host-build", "17763.973"]));
}

#[test]
fn mistakes_are_reported_with_what_to_type() {
    let printed = refusal(&["--host-build", "17763"]);
    assert!(line(&["hint: ", "17763.973"]).eval(&printed), "{printed}");
    let printed = refusal(&[]);
    assert!(printed.contains("--host-build 17763.973"), "{printed}");
    let printed = refusal(&["--host-build", "17763.973", "--base", "nano server"]);
    assert!(printed.contains("nano server"), "{printed}");
    let printed = refusal(&["--host-build", "17763.973", "--ca-file", "missing.crt"]);
    assert!(printed.contains("missing.crt"), "{printed}");
}
