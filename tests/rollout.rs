//! `wincimg check-compat` for images in registries and for the workloads of whole clusters.
#![allow(clippy::unwrap_used)]

mod stand_in;

use std::fs;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use stand_in::StandIn;
use wincimg::windows::hive::{FileTime, write_deltas};
use wincimg::windows::shutdown::edits;

const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters");
const NO_CREDENTIALS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/support/empty-config.json"
);

fn wincimg() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    // An empty folder, so that no wincimg.toml of the developer's has a say.
    command
        .current_dir(std::env::temp_dir())
        .arg("check-compat")
        .args(["--registry-config", NO_CREDENTIALS, "--on", "2024-06-01"]);
    command
}

fn json_of(command: &mut Command) -> (i32, Value) {
    let output = command.args(["--format", "json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (output.status.code().unwrap(), report)
}

/// The shop's images: an index for two builds, a single image, one without a version.
fn shop() -> StandIn {
    let registry = StandIn::start();
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
fn check(registry: &StandIn, cluster: &str, folder: &tempfile::TempDir) -> Command {
    let workloads = folder.path().join("shop.yaml");
    let text = fs::read_to_string(format!("{CLUSTERS}/shop.yaml")).unwrap();
    fs::write(&workloads, text.replace("REGISTRY", &registry.host)).unwrap();
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host])
        .args(["--nodes", &format!("{CLUSTERS}/{cluster}.json")])
        .arg("--workloads")
        .arg(workloads);
    command
}

/// `HOST|KIND NAME|IMAGE|RULE` of every check that is not green, and of how many were green.
fn problems(report: &Value, registry: &StandIn) -> (usize, Vec<String>) {
    let checks = report["checks"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").replace(&registry.host, "R");
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

#[test]
fn on_aks_every_thing_that_is_wrong_with_the_shop_is_found() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = json_of(&mut check(&registry, "aks", &folder));
    assert_eq!(code, 1);
    let (green, lines) = problems(&report, &registry);
    assert_eq!(
        lines,
        [
            "akswin22000000|Deployment web|R/shop/migrate:2.0|too-old-for-host",
            "akswin22000001|Deployment web|R/shop/migrate:2.0|too-old-for-host",
            "akswin22000000|Pod forgotten|R/shop/migrate:2.0|too-old-for-host",
            "akswin22000001|Pod forgotten|R/shop/migrate:2.0|too-old-for-host",
            "-|CronJob nightly|-|no-host-selected",
            "-|DaemonSet logs|R/shop/logs:latest|floating-tag",
            "-|Pod forgotten|-|no-windows-selector",
        ]
    );
    // web on 4 nodes, its init container on 2, cache on 2, logs on 4, forgotten on 2.
    assert_eq!(green, 14);
    assert_eq!(report["summary"]["incompatible"], 4);
    let nowhere = &report["checks"].as_array().unwrap()[18];
    assert_eq!(nowhere["rule"], "no-host-selected");
    assert!(
        nowhere["reason"]
            .as_str()
            .unwrap()
            .contains("os=windows:NoSchedule"),
        "{nowhere}"
    );
}

#[test]
fn the_entry_that_the_node_would_take_is_the_one_that_is_judged() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = json_of(&mut check(&registry, "eks", &folder));
    let of_web: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["image"]["reference"] == format!("{}/shop/web:1.4", registry.host))
        .map(|check| {
            (
                check["host"]["build"].as_str().unwrap(),
                check["image"]["build"].as_str().unwrap(),
                check["rule"].as_str().unwrap(),
            )
        })
        .collect();
    let taken = [
        ("17763.5696", "17763.5696", "build-match"),
        ("26100.2314", "20348.2402", "downlevel-ltsc"),
    ];
    // EKS does not taint its Windows nodes, so the CronJob without a toleration lands there too.
    assert_eq!(of_web, [taken, taken].concat());
}

#[test]
fn under_docker_host_processes_do_not_run_and_cordoned_nodes_still_count() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = json_of(&mut check(&registry, "kubeadm", &folder));
    let (_, lines) = problems(&report, &registry);
    for node in ["win-a", "win-b", "win-c"] {
        let line = format!("{node}|DaemonSet logs|R/shop/logs:latest|host-process-unsupported");
        assert!(lines.contains(&line), "{lines:?}");
    }
    let old_host = "win-a|Deployment web|R/shop/web:1.4|baseline-2020-02";
    assert!(lines.contains(&old_host.to_owned()), "{lines:?}");
}

#[test]
fn every_image_is_asked_for_once_and_those_of_other_systems_never() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    check(&registry, "aks", &folder).assert().code(1);
    let requests = registry.requests();
    let manifests: Vec<_> = requests
        .iter()
        .filter(|request| request.contains("manifests"))
        .collect();
    assert_eq!(manifests.len(), 3, "{requests:?}");
}

#[test]
fn an_index_without_the_hosts_build_says_what_it_has_and_how_to_add_it() {
    let registry = shop();
    let image = format!("{}/shop/web:1.4", registry.host);
    let (code, report) = json_of(
        wincimg()
            .args(["--insecure-registry", &registry.host, &image])
            .args(["--host-build", "18363.900", "--host-build", "20348.2402"]),
    );
    assert_eq!(code, 1);
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "no-matching-platform");
    assert_eq!(check["verdict"], "incompatible");
    let reason = check["reason"].as_str().unwrap();
    assert!(
        reason.contains("windows/amd64 10.0.17763.5696, windows/amd64 10.0.20348.2402"),
        "{reason}"
    );
    assert_eq!(
        check["commands"][0],
        format!(
            "wincimg build RECIPE --host-build 17763.5696 --host-build 18363.900 \
             --host-build 20348.2402 --registry {}/shop --name web --tag 1.4 --push",
            registry.host
        )
    );
    assert_eq!(report["checks"][1]["rule"], "build-match");
    assert_eq!(report["checks"][1]["image"]["build"], "20348.2402");
}

#[test]
fn an_image_for_linux_is_not_windows() {
    let registry = shop();
    let linux = registry.image_with(&json!({"os": "linux", "architecture": "amd64"}));
    registry.tag("tools/curl", "8", &linux);
    let (code, report) = json_of(
        wincimg()
            .args(["--insecure-registry", &registry.host])
            .arg(format!("{}/tools/curl:8", registry.host))
            .args(["--host-build", "20348.2402"]),
    );
    assert_eq!(code, 1);
    assert_eq!(report["checks"][0]["rule"], "not-windows");
}

#[test]
fn what_cannot_be_read_is_unknown_and_does_not_stop_the_rest() {
    let registry = shop();
    let locked = locked_registry();
    let (code, report) = json_of(
        wincimg()
            .args([
                "--insecure-registry",
                &registry.host,
                "--insecure-registry",
                &locked,
            ])
            .arg(format!("{locked}/secret/app:1"))
            .arg(format!("{}/shop/gone:1", registry.host))
            .arg(format!("{}/shop/web:1.4", registry.host))
            .args(["--host-build", "20348.2402"]),
    );
    assert_eq!(code, 1, "a gate does not open on what nobody knows");
    let checks = &report["checks"];
    assert_eq!(checks[0]["verdict"], "unknown");
    assert_eq!(checks[0]["rule"], "unknown-build");
    assert!(
        checks[0]["reason"].as_str().unwrap().contains("401"),
        "{checks}"
    );
    assert!(
        checks[0]["fix"].as_str().unwrap().contains("docker login"),
        "{checks}"
    );
    assert!(
        checks[1]["reason"].as_str().unwrap().contains("404"),
        "{checks}"
    );
    assert_eq!(checks[2]["verdict"], "compatible");
}

/// A registry that answers 401 to everybody.
fn locked_registry() -> String {
    use axum::http::StatusCode;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let router = axum::Router::new().fallback(|| async {
        let challenge = [("www-authenticate", "Basic realm=\"secret\"")];
        (StatusCode::UNAUTHORIZED, challenge, "")
    });
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    host
}

#[test]
fn offline_only_what_is_given_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("built.json");
    let images = json!({
        "images": [
            {"reference": "repo.example/app:1-a", "digest": "sha256:0", "os_version": "10.0.17763.973"},
            {"reference": "repo.example/app:1-b", "digest": "sha256:1", "os_version": "10.0.20348.2402"},
        ],
        "index": {"reference": "repo.example/app:1", "digest": "sha256:2"},
    });
    fs::write(&built, images.to_string()).unwrap();
    let (code, report) = json_of(
        wincimg()
            .args(["--offline", "repo.example/app:1", "repo.example/other:1"])
            .args(["--host-build", "20348.1", "--images"])
            .arg(&built),
    );
    assert_eq!(code, 1);
    assert_eq!(report["checks"][0]["image"]["build"], "20348.2402");
    assert_eq!(report["checks"][0]["verdict"], "compatible");
    assert_eq!(report["checks"][1]["verdict"], "unknown");
    assert!(
        report["checks"][1]["reason"]
            .as_str()
            .unwrap()
            .contains("--offline"),
        "{report}"
    );
}

#[test]
fn support_that_ended_is_a_warning() {
    let registry = StandIn::start();
    registry.publish("shop/old", &["1"], "10.0.18363.1556");
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host])
        .arg(format!("{}/shop/old:1", registry.host))
        .args(["--host-build", "18363.1556"]);
    let (code, report) = json_of(&mut command);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["checks"][1]["rule"], "end-of-support");
    assert_eq!(report["checks"][1]["verdict"], "warning");
    command.arg("--strict").assert().code(1);
}

#[test]
fn workloads_that_cannot_be_read_are_said_with_their_place() {
    let nodes = format!("{CLUSTERS}/aks.json");
    wincimg()
        .args(["--nodes", &nodes, "--workloads", "-"])
        .write_stdin("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: 7}]}\n")
        .assert()
        .code(2)
        .stderr(contains("stdin: line 1: Pod p: invalid type").and(contains("hint: ")));
    wincimg()
        .args(["--nodes", &nodes, "--workloads", "/nowhere.yaml"])
        .assert()
        .code(3)
        .stderr(contains("cannot read /nowhere.yaml"));
}

#[test]
fn a_pod_that_nobody_can_place_is_left_out_with_a_word() {
    wincimg()
        .args([
            "--nodes",
            &format!("{CLUSTERS}/aks.json"),
            "--workloads",
            "-",
            "--offline",
        ])
        .write_stdin("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: a/b:1}]}\n")
        .assert()
        .code(0)
        .stderr(contains("1 workloads do not say their system").and(contains("Pod default/p")));
}

#[test]
fn reports_of_workloads_say_whose_pods_do_not_start() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    for format in ["text", "markdown", "junit", "sarif"] {
        let output = check(&registry, "aks", &folder)
            .args(["--format", format])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout)
            .unwrap()
            .replace(&registry.host, "registry.example")
            .replace(folder.path().to_str().unwrap(), "manifests");
        insta::assert_snapshot!(format!("shop_{format}"), text);
    }
}

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

/// A layer whose registry gives a container this many seconds to stop.
fn patient_layer(seconds: u32) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for hive in write_deltas(&edits(seconds), FileTime::default()).unwrap() {
        let mut header = tar::Header::new_ustar();
        header.set_size(hive.bytes.len() as u64);
        header.set_mode(0o644);
        let path = format!("Hives/{}", hive.root.delta_name());
        tar.append_data(&mut header, path, hive.bytes.as_slice())
            .unwrap();
    }
    tar.into_inner().unwrap()
}

#[test]
fn a_pod_that_is_more_patient_than_its_image_is_warned_about() {
    let registry = StandIn::start();
    let config = json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.17763.5696"});
    let base = registry.layer(tar::Builder::new(Vec::new()).into_inner().unwrap());
    let hasty = registry.image_of(&config, std::slice::from_ref(&base));
    let patient = registry.image_of(&config, &[base, registry.layer(patient_layer(120))]);
    registry.tag("shop/hasty", "1.0", &hasty);
    registry.tag("shop/patient", "1.0", &patient);
    let pod = |name: &str, seconds: u32| {
        format!(
            "kind: Pod\nmetadata: {{name: {name}-{seconds}}}\nspec: {{os: {{name: windows}}, \
             nodeSelector: {{kubernetes.io/os: windows}}, tolerations: [{{operator: Exists}}], \
             terminationGracePeriodSeconds: {seconds}, \
             containers: [{{image: {}/shop/{name}:1.0}}]}}\n---\n",
            registry.host
        )
    };
    let workloads =
        pod("hasty", 5) + &pod("hasty", 60) + &pod("patient", 60) + &pod("patient", 180);
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host, "--workloads", "-"])
        .args([
            "--nodes",
            &format!("{CLUSTERS}/kubeadm.json"),
            "--simulate",
            "win-*=17763.5696",
        ])
        .write_stdin(workloads);
    let (code, report) = json_of(&mut command);
    assert_eq!(code, 0, "{report}");
    let (_, lines) = problems(&report, &registry);
    assert_eq!(
        lines,
        [
            "-|Pod hasty-60|R/shop/hasty:1.0|grace-period",
            "-|Pod patient-180|R/shop/patient:1.0|grace-period",
        ]
    );
    let reasons: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["rule"] == "grace-period")
        .map(|check| check["reason"].as_str().unwrap())
        .collect();
    assert!(
        reasons[0].contains("60 s to stop") && reasons[0].contains("have 5 s"),
        "{reasons:?}"
    );
    assert!(reasons[1].contains("have 120 s"), "{reasons:?}");
}

#[test]
fn a_large_image_is_warned_about_where_docker_pulls_it() {
    let registry = StandIn::start();
    let config = json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.17763.5696"});
    let (mut descriptor, diff_id) = registry.layer(b"never read".to_vec());
    descriptor["size"] = json!(2_400_000_000_u64);
    let large = registry.image_of(&config, &[(descriptor, diff_id)]);
    registry.tag("shop/large", "1.0", &large);
    let index = registry.index(&[(&large, Some("10.0.17763.5696"))]);
    registry.tag("shop/index", "1.0", &index);
    let pod = |name: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeSelector: {{kubernetes.io/os: windows}}, \
             tolerations: [{{operator: Exists}}], containers: [{{image: {}/shop/{name}:1.0}}]}}\n---\n",
            registry.host
        )
    };
    let run = |cluster: &str| {
        let mut command = wincimg();
        command
            .args(["--insecure-registry", &registry.host, "--workloads", "-"])
            .args([
                "--nodes",
                &format!("{CLUSTERS}/{cluster}.json"),
                "--simulate",
                "*=17763.5696",
            ])
            .write_stdin(pod("large") + &pod("index"));
        let (_, report) = json_of(&mut command);
        problems(&report, &registry).1
    };
    assert_eq!(
        run("kubeadm"),
        [
            "-|Pod large|R/shop/large:1.0|pull-deadline",
            "-|Pod index|R/shop/index:1.0|pull-deadline",
        ]
    );
    assert!(run("aks").is_empty(), "containerd has no such deadline");
}

#[test]
fn a_workload_cannot_name_files_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let pod = format!(
        "kind: Pod\nspec: {{nodeSelector: {{kubernetes.io/os: windows}}, containers: [{{image: \"oci:{}\"}}]}}",
        folder.path().display()
    );
    let mut command = wincimg();
    command
        .args(["--host-build", "20348.1", "--workloads", "-"])
        .write_stdin(pod);
    let (_, report) = json_of(&mut command);
    let reason = report["checks"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("is no image reference"), "{reason}");
}
