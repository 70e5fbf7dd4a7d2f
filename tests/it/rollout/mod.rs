//! `wincimg check-compat` for images in registries and for the workloads of whole clusters.

mod answer;
mod clusters;
mod followed;
mod images;
mod plan_commands;
mod warnings;
mod what_if;

use std::fs;

use assert_cmd::Command;
use serde_json::{Value, json};
use wincimg_testkit::NO_CREDENTIALS;
use wincimg_testkit::fake_registry::FakeRegistry;

use crate::site::answer_of;

const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters");

fn wincimg() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    // An empty folder, so that no local wincimg.toml applies.
    command
        .current_dir(std::env::temp_dir())
        .arg("check-compat")
        .args(["--registry-config", NO_CREDENTIALS, "--on", "2024-06-01"])
        .arg("--each-node");
    command
}

/// The shop's images: an index for two builds, a single image, one without a version.
fn shop() -> FakeRegistry {
    let registry = FakeRegistry::start();
    let (old, new) = ("10.0.17763.5696", "10.0.20348.2402");
    let images = [old, new].map(|version| registry.image("windows", version));
    let index = registry.index(&[(&images[0], Some(old)), (&images[1], Some(new))]);
    registry.tag("shop/web", "1.4", &index);
    registry.tag("shop/migrate", "2.0", &images[0]);
    let host_process = registry.image_with(&json!({"os": "windows", "architecture": "amd64"}));
    registry.tag("shop/logs", "latest", &host_process);
    registry
}

/// `check-compat` of the shop's workloads on a cluster.
fn check(registry: &FakeRegistry, cluster: &str, folder: &tempfile::TempDir) -> Command {
    let workloads = folder.path().join("shop.yaml");
    let text = fs::read_to_string(format!("{CLUSTERS}/shop.yaml")).unwrap();
    fs::write(&workloads, text.replace("REGISTRY", &registry.host())).unwrap();
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host()])
        .args(["--nodes", &format!("{CLUSTERS}/{cluster}.json")])
        .arg("--workloads")
        .arg(workloads);
    command
}

/// `HOST|KIND NAME|IMAGE|RULE` of every check that fails, and the number of those that pass.
fn problems(report: &Value, registry: &FakeRegistry) -> (usize, Vec<String>) {
    let checks = report["checks"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").replace(&registry.host(), "R");
    let green = checks
        .iter()
        .filter(|check| check["verdict"] == "compatible")
        .count();
    let lines = checks
        .iter()
        .filter(|check| check["verdict"] != "compatible")
        .map(|check| {
            format!(
                "{}|{} {}|{}|{}",
                text(&check["host"]["name"]),
                text(&check["workload"]["kind"]),
                text(&check["workload"]["name"]),
                text(&check["image"]["reference"]),
                text(&check["rule"]),
            )
        })
        .collect();
    (green, lines)
}
