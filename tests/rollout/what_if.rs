//! Simulations, plans, and several reports at once.

use predicates::prelude::*;
use predicates::str::contains;

use super::*;

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
        .stderr(contains("KB4549949 reaches 1 of 3 nodes"));
}

#[test]
fn a_simulation_of_nothing_is_a_mistake() {
    kubeadm("17763.1158")
        .args(["--simulate", "win-z=17763.1158"])
        .assert()
        .code(2)
        .stderr(contains("no node is called win-z").and(contains("hint: ")));
    kubeadm("17763.1158")
        .args(["--simulate-hotfix", "KB4000000"])
        .assert()
        .code(2)
        .stderr(contains("KB4000000 is no cumulative update"));
    kubeadm("17763.1158")
        .args(["--simulate", "win-a"])
        .assert()
        .code(2)
        .stderr(contains("expected NODE=BUILD"));
}

#[test]
fn the_plan_is_in_every_report_that_people_read() {
    let (_, report) = json_of(kubeadm("17763.1158").arg("--plan"));
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
                registry.host
            ))));
    }
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
            .code(2);
    }
}
