//! Simulations, plans, and several reports at once.

use predicates::prelude::*;
use predicates::str::contains;

use super::*;

use crate::api::windows_node;
use crate::failure::{Fails, line, warning};
use crate::site::stderr;

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
        .args(["--simulate", "win-a=20348.2402"])
        .assert()
        .code(1)
        .stdout(contains("too-old-for-host"));
    kubeadm("17763.1158")
        .args(["--simulate-hotfix", "KB4549949"])
        .assert()
        .code(0)
        .stdout(line(&["1", "KB4549949"]));
}

#[test]
fn a_simulated_report_is_marked() {
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
            .stdout(contains("=17763.1158"));
    }
    let (_, report) = answer_of(&mut simulated());
    let what_if = report["what_if"][0].as_str().unwrap();
    assert_contains!(what_if, "3 nodes", "win-*=17763.1158");
    let (_, report) = answer_of(&mut kubeadm("17763.1158"));
    assert_eq!(report["what_if"], Value::Null);
}

#[test]
fn a_pattern_moves_nodes_of_one_build_and_says_how_many_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = folder.path().join("nodes.json");
    let list = [
        ("win-a", "17763.973"),
        ("win-b", "20348.2402"),
        ("win-c", "17763.1158"),
    ]
    .map(|(name, version)| node(name, version));
    fs::write(&nodes, json!({"kind": "List", "items": list}).to_string()).unwrap();
    let simulated = |simulation: &str| {
        let mut command = wincimg();
        command.arg("--nodes").arg(&nodes);
        command.args(["--image-build", "17763.1158", "--simulate", simulation]);
        command
    };
    let (code, report) = answer_of(&mut simulated("win-*=17763.1158"));
    assert_eq!(code, 1, "win-b still runs another build");
    let what_if = report["what_if"][0].as_str().unwrap();
    assert_contains!(what_if, "2 nodes", "win-*=17763.1158", "1 node");
    assert_eq!(report["checks"][0]["host"]["build"], "17763.1158");
    assert_eq!(report["checks"][1]["host"]["build"], "20348.2402");
    simulated("win-*=26100.1742")
        .fails(2, "usage", &["win-*", "26100"])
        .advises(&["--simulate NODE=26100.1742"]);
    simulated("win-b=17763.1158")
        .args(["--simulate", "win-a=17763.1158"])
        .assert()
        .code(0);
}

#[test]
fn a_build_that_no_windows_has_is_warned_of_with_the_nearest() {
    let near = ["20384", "20348", "Windows Server 2022"];
    kubeadm("17763.1158")
        .args(["--simulate", "win-a=20384.1"])
        .assert()
        .code(1)
        .stderr(warning(&near));
    for given in ["--host-build", "--image-build"] {
        kubeadm("17763.1158")
            .args([given, "20384.1"])
            .assert()
            .code(1)
            .stderr(warning(&near));
    }
    kubeadm("17763.1158")
        .assert()
        .code(1)
        .stderr(contains("warning: ").not());
}

#[test]
fn the_build_of_an_image_has_a_name_too() {
    let named = kubeadm("ltsc2019").output().unwrap();
    assert_contains!(stderr(&named), "image ltsc2019 is 17763.");
    let (_, checks) = answer_of(&mut kubeadm("ltsc2019"));
    let build = checks["checks"][0]["image"]["build"].as_str().unwrap();
    assert!(build.starts_with("17763."), "{checks:#}");
}

#[test]
fn a_simulation_of_nothing_is_a_mistake() {
    let nobody = kubeadm("17763.1158")
        .args(["--simulate", "win-z=17763.1158"])
        .fails(2, "usage", &["win-z"]);
    assert!(!nobody.hint.is_empty(), "{nobody:#?}");
    kubeadm("17763.1158")
        .args(["--simulate-hotfix", "KB4000000"])
        .fails(2, "usage", &["KB4000000"]);
    // No node has that build.
    kubeadm("17763.1158")
        .args(["--simulate-hotfix", "KB5051987"])
        .fails(2, "usage", &["KB5051987"]);
    kubeadm("17763.1158")
        .args(["--simulate", "win-a"])
        .assert()
        .code(2)
        .stderr(contains("NODE=BUILD"));
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
                    "wincimg node hotfix script 17763.1158 --output KB4549949.ps1",
                    "kubectl drain win-a --ignore-daemonsets",
                ],
                "nodes": [],
                "steps": [
                    {"command": "wincimg node hotfix script 17763.1158 --output KB4549949.ps1"},
                    {"command": "kubectl drain win-a --ignore-daemonsets"},
                    {"manual": "run KB4549949.ps1 on win-a as an administrator"},
                    {"command": "kubectl uncordon win-a"},
                ],
            }],
            "interruptions": [],
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
            .stdout(
                contains("Then everything starts.")
                    .and(contains("Deployment shop/web"))
                    .and(contains("Pod default/forgotten"))
                    .and(contains(
                        "kubectl replace --force --filename pod-forgotten.json",
                    )),
            );
    }
}

/// A node in kubectl's format.
pub(super) fn node(name: &str, version: &str) -> Value {
    let build = version.split('.').next().unwrap();
    let mut node = windows_node(name, &format!("10.0.{version}"));
    node["metadata"]["labels"]["node.kubernetes.io/windows-build"] = json!(format!("10.0.{build}"));
    if version.is_empty() {
        as_linux(&mut node);
    }
    node
}

/// Makes a node one with Linux.
pub(super) fn as_linux(node: &mut Value) {
    node["metadata"]["labels"]["kubernetes.io/os"] = json!("linux");
    node["status"]["nodeInfo"]["operatingSystem"] = json!("linux");
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
            .stderr(contains("FORMAT:FILE").and(contains("text, json")));
    }
}
