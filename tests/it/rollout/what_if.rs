//! Simulations, plans, and several reports at once.

use std::os::unix::fs::PermissionsExt;

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
        .args(["--simulate", "win-a=20348.2402"])
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
    assert_eq!(
        report["what_if"],
        json!(["2 nodes as win-*=17763.1158 (1 node of other builds left)"])
    );
    assert_eq!(report["checks"][0]["host"]["build"], "17763.1158");
    assert_eq!(report["checks"][1]["host"]["build"], "20348.2402");
    simulated("win-*=26100.1742").assert().code(2).stderr(
        contains("no node that matches win-* has build 26100")
            .and(contains("--simulate NODE=26100.1742")),
    );
    simulated("win-b=17763.1158")
        .args(["--simulate", "win-a=17763.1158"])
        .assert()
        .code(0);
}

#[test]
fn a_build_that_no_windows_has_is_warned_of_with_the_nearest() {
    let near = "no known Windows has build 20384; the nearest is 20348 (Windows Server 2022)";
    kubeadm("17763.1158")
        .args(["--simulate", "win-a=20384.1"])
        .assert()
        .code(1)
        .stderr(contains(near));
    for given in ["--host-build", "--image-build"] {
        kubeadm("17763.1158")
            .args([given, "20384.1"])
            .assert()
            .code(1)
            .stderr(contains(near));
    }
    kubeadm("17763.1158")
        .assert()
        .code(1)
        .stderr(contains("no known Windows").not());
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
                    "kubectl drain win-a --ignore-daemonsets",
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

/// A node as kubectl prints it.
fn node(name: &str, version: &str) -> Value {
    let build = version.split('.').next().unwrap();
    let system = if version.is_empty() {
        "linux"
    } else {
        "windows"
    };
    json!({
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/os": system,
            "node.kubernetes.io/windows-build": format!("10.0.{build}"),
        }},
        "status": {"nodeInfo": {
            "operatingSystem": system, "architecture": "amd64",
            "kernelVersion": format!("10.0.{version}"),
            "containerRuntimeVersion": "containerd://1.7.22",
        }},
    })
}

/// A place where commands are typed as they were printed: `RECIPE` is there, bases come from a
/// registry of its own, and a kubectl patches workloads in a file.
struct Shell {
    folder: tempfile::TempDir,
    workloads: Value,
}

impl Shell {
    fn new(host: &str, workloads: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["bin", "RECIPE"] {
            fs::create_dir(path(name)).unwrap();
        }
        let program = assert_cmd::cargo::cargo_bin!("wincimg");
        std::os::unix::fs::symlink(program, path("bin/wincimg")).unwrap();
        let kubectl = path("bin/kubectl");
        fs::write(&kubectl, "#!/bin/sh\nprintf '%s\\0' \"$@\" > said\n").unwrap();
        fs::set_permissions(kubectl, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            path("RECIPE/recipe.toml"),
            "name = \"web\"\nbase = \"nanoserver\"\n",
        )
        .unwrap();
        let config = format!("base-registry = \"{host}/mcr\"\n");
        fs::write(path("wincimg.toml"), config).unwrap();
        let shell = Self { folder, workloads };
        shell.save();
        shell
    }

    fn save(&self) {
        let file = self.folder.path().join("workloads.json");
        fs::write(file, self.workloads.to_string()).unwrap();
    }

    /// Types one command.
    fn run(&mut self, command: &str) -> assert_cmd::assert::Assert {
        let bin = self.folder.path().join("bin").display().to_string();
        let path = std::env::var("PATH").unwrap();
        let ended = Command::new("sh")
            .current_dir(self.folder.path())
            .env("PATH", format!("{bin}:{path}"))
            .args(["-c", command])
            .assert();
        if command.starts_with("kubectl") {
            let said = fs::read_to_string(self.folder.path().join("said")).unwrap();
            let words: Vec<&str> = said.split_terminator('\0').collect();
            self.patch(&words);
        }
        ended
    }

    /// What `kubectl patch KIND NAME --namespace N --type merge --patch JSON` does.
    fn patch(&mut self, words: &[&str]) {
        let [
            "patch",
            kind,
            name,
            "--namespace",
            namespace,
            "--type",
            "merge",
            "--patch",
            patch,
        ] = words
        else {
            panic!("{words:?}");
        };
        let items = self.workloads["items"].as_array_mut().unwrap();
        let item = items
            .iter_mut()
            .find(|item| {
                item["kind"].as_str().unwrap().to_lowercase() == *kind
                    && item["metadata"]["name"] == *name
                    && item["metadata"]["namespace"] == *namespace
            })
            .unwrap();
        merge(item, serde_json::from_str(patch).unwrap());
        self.save();
    }
}

/// A JSON merge patch that deletes nothing.
fn merge(value: &mut Value, patch: Value) {
    match patch {
        Value::Object(fields) => {
            for (name, field) in fields {
                merge(&mut value[name.as_str()], field);
            }
        }
        other => *value = other,
    }
}

/// A deployment of the shop.
fn deployment(name: &str, image: &str, system: &str) -> Value {
    json!({
        "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": {"spec": {
            "containers": [{"name": "c", "image": image}],
            "nodeSelector": {"kubernetes.io/os": system},
        }}},
    })
}

#[test]
fn everything_starts_once_the_printed_commands_are_typed() {
    let registry = DemoRegistry::start().unwrap();
    let host = registry.host();
    let bases = ["17763.973", "20348.2402"].map(str::parse::<WindowsVersion>);
    registry
        .with(|stored| {
            add_base_images(stored, "mcr/windows/nanoserver", &bases.map(Result::unwrap))
        })
        .unwrap();
    let fixed = FakeRegistry::start();
    let vendor = fixed.image("windows", "10.0.20348.2402");
    fixed.tag("vendor/tool", "1", &vendor);
    let linux = fixed.image_with(&json!({"os": "linux", "architecture": "amd64"}));
    fixed.tag("tools/curl", "8", &linux);
    let own = format!("{host}/team/web:1.4");
    let pod = json!({
        "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": own}],
                 "nodeSelector": {"kubernetes.io/os": "windows"}},
    });
    let vendor = format!("{}/vendor/tool:1", fixed.host());
    let curl = format!("{}/tools/curl:8", fixed.host());
    let mut shell = Shell::new(
        &host,
        json!({"kind": "List", "items": [
            pod, deployment("tool", &vendor, "windows"), deployment("curl", &curl, "windows"),
        ]}),
    );
    let nodes = [
        node("win-2019", "17763.973"),
        node("win-2022", "20348.2402"),
        node("lin", ""),
    ];
    let nodes = json!({"kind": "List", "items": nodes}).to_string();
    fs::write(shell.folder.path().join("nodes.json"), nodes).unwrap();
    let flags = format!("--insecure-registry {host} --registry-config {NO_CREDENTIALS}");
    shell
        .run(&format!(
            "wincimg build RECIPE --host-build 17763.973 --registry {host}/team --name web \
             --tag 1.4 --push {flags}"
        ))
        .code(0);
    let check = format!(
        "wincimg check-compat --nodes nodes.json --workloads workloads.json --plan \
         --format json {flags} --insecure-registry {}",
        fixed.host()
    );
    let output = shell.run(&check).code(1).get_output().stdout.clone();
    let report: Value = serde_json::from_slice(&output).unwrap();
    let actions = report["plan"]["actions"].as_array().unwrap();
    let kinds: Vec<_> = actions.iter().map(|action| &action["kind"]).collect();
    assert_eq!(kinds, ["pin", "pin", "rebuild"], "{report}");
    assert_eq!(
        actions[0]["node_selector"],
        json!({"node.kubernetes.io/windows-build": "10.0.20348"})
    );
    assert_eq!(actions[0]["hosts"], json!(["win-2022"]));
    assert_eq!(actions[0]["workload"]["name"], "tool");
    assert_eq!(
        actions[1]["node_selector"],
        json!({"kubernetes.io/os": "linux"})
    );
    // What a single finding advises is the plan's, so that nothing else is typed than that.
    let commands = |value: &Value| -> Vec<String> {
        let of_all = value.as_array().unwrap().iter();
        of_all
            .flat_map(|one| one["commands"].as_array().unwrap())
            .map(|command| command.as_str().unwrap().to_owned())
            .collect()
    };
    let planned = commands(&report["plan"]["actions"]);
    let mut advised = commands(&report["checks"]);
    advised.retain(|command| !planned.contains(command));
    assert_eq!(advised, [""; 0]);
    for command in &planned {
        shell.run(command).code(0);
    }
    shell.run(&check).code(0);
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
