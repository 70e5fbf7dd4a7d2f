//! Executes a plan: its commands are run in a shell as printed, and the check passes afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use assert_cmd::assert::Assert;
use wincimg_demo::{DemoRegistry, add_base_images};
use wincimg_testkit::component;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_windows::version::WindowsVersion;

use super::what_if::node;
use super::*;
use crate::build::joined::push_linux;
use crate::fake_catalog::setup::{CatalogSetup, FILE};
use crate::site::each;

/// The bases for both sides of the update of 2020-02, and for another release.
const BASES: [WindowsVersion; 3] = [
    WindowsVersion::new(17763, 973),
    WindowsVersion::new(17763, 1158),
    WindowsVersion::new(20348, 2402),
];

/// Cluster, registries and catalog for the commands of a plan.
struct PlanSetup {
    bases: DemoRegistry,
    target: DockerRegistry,
    vendor: FakeRegistry,
    setup: CatalogSetup,
}

impl PlanSetup {
    fn start() -> Self {
        let python = component("python3");
        let world = Self {
            bases: DemoRegistry::start().unwrap(),
            target: DockerRegistry::plain(),
            vendor: FakeRegistry::start(),
            setup: CatalogSetup::with_april_2020().0,
        };
        let bases = &world.bases;
        bases
            .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &BASES))
            .unwrap();
        fs::create_dir(world.path("bin")).unwrap();
        let program = assert_cmd::cargo::cargo_bin!("wincimg");
        std::os::unix::fs::symlink(program, world.path("bin/wincimg")).unwrap();
        std::os::unix::fs::symlink(python, world.path("bin/python3")).unwrap();
        fs::write(world.path("bin/kubectl"), include_str!("kubectl.py")).unwrap();
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(world.path("bin/kubectl"), runs).unwrap();
        fs::create_dir(world.path("RECIPE")).unwrap();
        let recipe = "name = \"web\"\nbase = \"nanoserver\"\n";
        fs::write(world.path("RECIPE/recipe.toml"), recipe).unwrap();
        let catalog = &world.setup.catalog.host;
        let defaults = format!(
            "base-registry = \"{}/mcr\"\ncatalog = \"http://{catalog}\"\n\
             insecure-registry = [\"{catalog}\"]\n",
            bases.host()
        );
        fs::write(world.path("wincimg.toml"), defaults).unwrap();
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.setup.folder.path().join(name)
    }

    fn write(&self, name: &str, items: &[Value]) {
        let list = json!({"kind": "List", "items": items});
        fs::write(self.path(name), list.to_string()).unwrap();
    }

    /// Runs one command.
    fn run(&self, command: &str) -> Assert {
        let path = std::env::var("PATH").unwrap();
        Command::new("sh")
            .current_dir(self.setup.folder.path())
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("WINCIMG_CONFIG", self.path("wincimg.toml"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .args(["-c", command])
            .assert()
    }

    /// Flags of commands with registries over plain HTTP.
    fn flags(&self) -> String {
        let hosts = [self.bases.host(), self.target.host(), self.vendor.host()];
        let insecure = hosts.map(|host| format!("--insecure-registry {host}"));
        format!("{} --registry-config {NO_CREDENTIALS}", insecure.join(" "))
    }

    fn check(&self) -> String {
        format!(
            "wincimg check-compat --nodes nodes.json --workloads workloads.json --plan --strict \
             --format json {}",
            self.flags()
        )
    }

    /// Builds the recipe for a host.
    fn build(&self, host: &str, more: &str) {
        let command = format!(
            "wincimg build RECIPE --host-build {host} --push {more} {}",
            self.flags()
        );
        self.run(&command).code(0);
    }

    /// Simulates running the script on a drained node: the node then has the script's build.
    fn install(&self, node: &str, to: &str) {
        let script = fs::read_to_string(self.path("KB4549949.ps1")).unwrap();
        assert_contains!(script, FILE);
        let nodes = fs::read(self.path("nodes.json")).unwrap();
        let mut nodes: Value = serde_json::from_slice(&nodes).unwrap();
        let items = nodes["items"].as_array_mut().unwrap();
        let node = items.iter_mut().find(|it| it["metadata"]["name"] == node);
        let node = node.unwrap();
        assert_eq!(node["spec"]["unschedulable"], true, "it was drained");
        node["status"]["nodeInfo"]["kernelVersion"] = format!("10.0.{to}").into();
        fs::write(self.path("nodes.json"), nodes.to_string()).unwrap();
    }
}

/// A workload of the shop with a node selector.
fn workload(kind: &str, name: &str, image: &str, label: (&str, &str)) -> Value {
    let (key, value) = label;
    let spec = json!({
        "containers": [{"name": "c", "image": image}],
        "nodeSelector": {"kubernetes.io/os": "windows", key: value},
    });
    let spec = match kind {
        "Pod" => spec,
        _ => json!({"template": {"spec": spec}}),
    };
    json!({"kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

/// A job whose pods have labels of the user's, by which it selects them.
fn job_with_own_selector(image: &str, label: (&str, &str)) -> Value {
    let labels = json!({"job": "own"});
    let mut job = workload("Job", "own", image, label);
    job["spec"]["manualSelector"] = json!(true);
    job["spec"]["selector"] = json!({"matchLabels": labels});
    job["spec"]["template"]["metadata"] = json!({"labels": labels});
    job
}

#[test]
fn everything_starts_once_the_printed_commands_are_typed() {
    let world = PlanSetup::start();
    let target = world.target.host();
    // A third-party image, which cannot be rebuilt, and a Linux image.
    let fixed = &world.vendor;
    fixed.tag(
        "vendor/tool",
        "1",
        &fixed.image("windows", "10.0.20348.2402"),
    );
    let linux = fixed.image_with(&json!({"os": "linux", "architecture": "amd64"}));
    fixed.tag("tools/curl", "8", &linux);
    let tool = format!("{}/vendor/tool:1", fixed.host());
    let curl = format!("{}/tools/curl:8", fixed.host());
    // Own images: one for one side of an update, one with an entry for Linux.
    world.build(
        "17763.973",
        &format!("--registry {target}/team --name web --tag 1.4"),
    );
    push_linux(&target);
    world.build(
        "17763.973",
        &format!("--registry {target} --name app --tag 1.4 --join"),
    );
    // Its toleration is for Windows, but it does not select that.
    let mut for_linux = workload("Deployment", "curl", &curl, ("kubernetes.io/os", "windows"));
    let spec = &mut for_linux["spec"]["template"]["spec"];
    spec["nodeSelector"] = json!({});
    spec["tolerations"] = json!([{"key": "os", "value": "windows"}]);
    let web = format!("{target}/team/web:1.4");
    let app = format!("{target}/app:1.4");
    let any = ("kubernetes.io/os", "windows");
    let of_build = |build| ("node.kubernetes.io/windows-build", build);
    world.write(
        "workloads.json",
        &[
            workload("Deployment", "web", &web, of_build("10.0.17763")),
            workload("Deployment", "app", &app, of_build("10.0.20348")),
            workload("Deployment", "tool", &tool, any),
            workload("Pod", "tool", &tool, any),
            workload("Job", "tool", &tool, any),
            job_with_own_selector(&tool, any),
            for_linux,
        ],
    );
    world.write(
        "nodes.json",
        &[
            node("win-a", "17763.973"),
            node("win-b", "17763.1158"),
            node("win-c", "20348.2402"),
            node("lin", ""),
        ],
    );

    let output = world
        .run(&world.check())
        .code(1)
        .get_output()
        .stdout
        .clone();
    let report: Value = serde_json::from_slice(&output).unwrap();
    let actions = &report["plan"]["actions"];
    assert_eq!(
        each(actions, "kind"),
        [
            "pin", "pin", "pin", "pin", "pin", "rebuild", "rebuild", "patch"
        ],
        "{report}"
    );
    let selectors = each(actions, "node_selector");
    let to_2022 = json!({"node.kubernetes.io/windows-build": "10.0.20348"});
    let to_linux = json!({"kubernetes.io/os": "linux"});
    assert_eq!(selectors[..4], [&to_2022; 4]);
    assert_eq!(selectors[4], &to_linux);
    assert_eq!(actions[0]["hosts"], json!(["win-c"]));
    assert_eq!(actions[7]["hosts"], json!(["win-a"]));

    // A finding's advice is part of the plan, so no other commands are run.
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
    let ends = |flag: &str| {
        let flag = format!(" --push {flag} ");
        planned.iter().filter(|it| it.contains(&flag)).count()
    };
    // No node has cached the new tags, of which one keeps the entry for Linux.
    assert_eq!((ends("--replace"), ends("--join")), (0, 1), "{planned:?}");
    let to_new_tag = |it: &&String| it.starts_with("kubectl set image deployment/web c=");
    assert_eq!(planned.iter().filter(to_new_tag).count(), 1, "{planned:?}");
    let is_copy = |it: &&String| it.starts_with(&format!("wincimg image tag {app} 1.4-"));
    assert_eq!(planned.iter().filter(is_copy).count(), 1, "{planned:?}");
    for command in &planned {
        world.run(command).code(0);
    }
    world.install("win-a", actions[7]["to"].as_str().unwrap());
    let output = world
        .run(&world.check())
        .code(0)
        .get_output()
        .stdout
        .clone();
    let report: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(report["plan"]["actions"], json!([]));
    assert_eq!(report["summary"]["warning"], 0, "{report}");
}

#[test]
fn a_new_tag_is_not_one_that_the_registry_has() {
    let world = PlanSetup::start();
    let target = world.target.host();
    for tag in ["1.4", "1.4-20240601"] {
        let name = format!("--registry {target} --name web --tag {tag}");
        world.build("17763.973", &name);
    }
    let web = format!("{target}/web:1.4");
    let build = ("node.kubernetes.io/windows-build", "10.0.20348");
    world.write(
        "workloads.json",
        &[workload("Deployment", "web", &web, build)],
    );
    world.write("nodes.json", &[node("win-c", "20348.2402")]);
    let check = format!("{} --on 2024-06-01", world.check());
    let output = world.run(&check).code(1).get_output().stdout.clone();
    let report: Value = serde_json::from_slice(&output).unwrap();
    let rebuild = &report["plan"]["actions"][0];
    assert_eq!(rebuild["new_tag"], "1.4-20240601-2", "{report}");
}
