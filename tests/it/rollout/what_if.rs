//! Simulations, plans, and several reports at once.

use predicates::prelude::*;
use predicates::str::contains;

use super::*;
use crate::demo::{DemoRegistry, add_base_images};
use wincimg::windows::version::WindowsVersion;

/// `check-compat` of one image's version on the nodes of the kubeadm cluster.
fn kubeadm(image: &str) -> Command {
    let mut command = wincimg();
    command
        .args(["--nodes", &format!("{CLUSTERS}/kubeadm.json")])
        .args(["--image-build", image]);
    command
}

#[test]
fn a_simulation_answers_what_if_these_nodes_were_patched() {
    kubeadm("17763.1158").assert().code(1);
    kubeadm("17763.1158")
        .args(["--simulate", "win-a=17763.1158"])
        .assert()
        .code(0);
    kubeadm("17763.1158")
        .args(["--simulate", "win-*=20348.2402"])
        .assert()
        .code(1)
        .stdout(contains("too-old-for-host"));
    kubeadm("17763.1158")
        .args(["--simulate-hotfix", "KB4549949"])
        .assert()
        .code(0)
        .stdout(contains("What if: 1 node with KB4549949"));
}

#[test]
fn a_report_of_what_might_be_says_so() {
    let simulated = || {
        let mut command = kubeadm("17763.1158");
        command.args(["--simulate", "win-*=17763.1158"]);
        command
    };
    for format in ["text", "markdown", "html", "junit"] {
        simulated()
            .args(["--format", format])
            .assert()
            .code(0)
            .stdout(contains("What if: 3 nodes as win-"));
    }
    let (_, report) = answer_of(&mut simulated());
    assert_eq!(report["what_if"], json!(["3 nodes as win-*=17763.1158"]));
    let (_, report) = answer_of(&mut kubeadm("17763.1158"));
    assert_eq!(report["what_if"], Value::Null);
}

#[test]
fn a_simulation_of_nothing_is_a_mistake() {
    kubeadm("17763.1158")
        .args(["--simulate", "win-z=17763.1158"])
        .assert()
        .code(2)
        .stderr(contains("no node matches win-z").and(contains("hint: ")));
    kubeadm("17763.1158")
        .args(["--simulate-hotfix", "KB4000000"])
        .assert()
        .code(2)
        .stderr(contains("KB4000000 is not a cumulative update"));
    kubeadm("17763.1158")
        .args(["--simulate", "win-a"])
        .assert()
        .code(2)
        .stderr(contains("expected NODE=BUILD"));
}

#[test]
fn the_plan_is_in_every_report_that_people_read() {
    let (_, report) = answer_of(kubeadm("17763.1158").arg("--plan"));
    assert_eq!(
        report["plan"],
        json!({
            "actions": [{
                "kind": "patch", "to": "17763.1158", "kb": "KB4549949", "hosts": ["win-a"],
                "commands": [
                    "wincimg hotfix fetch 17763.1158 --output ./hotfix",
                    "wincimg hotfix script 17763.1158 --files ./hotfix --output install.ps1",
                ],
            }],
            "then": {"compatible": 3, "warning": 0, "incompatible": 0, "unknown": 0},
        })
    );
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    for format in ["text", "markdown", "html"] {
        check(&registry, "aks", &folder)
            .args(["--plan", "--format", format])
            .assert()
            .code(1)
            .stdout(contains("Then everything starts.").and(contains(format!(
                "wincimg build RECIPE --host-build 17763.5696 --host-build 20348.2402 \
                     --registry {}/shop --name migrate --tag 2.0 --push",
                registry.host()
            ))));
    }
}

#[test]
fn everything_starts_once_the_plan_is_carried_out() {
    let registry = DemoRegistry::start().unwrap();
    let host = registry.host();
    let bases = [
        WindowsVersion::new(17763, 973),
        WindowsVersion::new(20348, 2402),
    ];
    registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &bases))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(folder.path())
            .args(words)
            .args(["--insecure-registry", &host])
            .args(["--registry-config", NO_CREDENTIALS, "--format", "json"]);
        command
    };
    let base_registry = format!("{host}/mcr");
    let build = |words: &[&str]| {
        run(&[words, &["--base-registry", &base_registry]].concat())
            .assert()
            .code(0);
    };
    let team = format!("{host}/team");
    build(&[
        "build",
        "pause",
        "--host-build",
        "17763.973",
        "--registry",
        &team,
        "--name",
        "web",
        "--tag",
        "1.4",
        "--push",
    ]);
    let image = format!("{team}/web:1.4");
    let check = [
        "check-compat",
        &image,
        "--host-build",
        "17763.973",
        "--host-build",
        "20348.2402",
        "--plan",
    ];
    let output = run(&check).assert().code(1).get_output().stdout.clone();
    let report: Value = serde_json::from_slice(&output).unwrap();
    let actions = report["plan"]["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 1, "{report}");
    // The one thing that nobody but the user knows is how the image was made.
    let command = actions[0]["commands"][0].as_str().unwrap();
    let words: Vec<&str> = command
        .split(' ')
        .skip(1)
        .map(|word| if word == "RECIPE" { "pause" } else { word })
        .collect();
    build(&words);
    run(&check).assert().code(0);
}

#[test]
fn one_run_writes_as_many_forms_as_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    kubeadm("17763.1158")
        .args(["--report", &format!("html:{}", path("r.html"))])
        .args(["--report", &format!("junit:{}", path("r.xml"))])
        .assert()
        .code(1)
        .stdout(contains("baseline-2020-02"));
    let starts = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(starts("r.html").starts_with("<!DOCTYPE html>"));
    assert!(starts("r.xml").starts_with("<?xml"));
    for wrong in ["html", "pdf:x", "html:"] {
        kubeadm("17763.1158")
            .args(["--report", wrong])
            .assert()
            .code(2)
            .stderr(contains("expected FORMAT:FILE").and(contains("one of text, json")));
    }
}
