//! Builders on the nodes of a cluster: `wincimg node builder` and `wincimg build --builder`, with a
//! simulated API that starts the real `docker system dial-stdio`, and real Docker daemons for Linux
//! in place of those on Windows.

use std::process::{Command, Output};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::windows_stand_in::{Machine, WindowsStandIn};

use crate::api::{Api, windows_node};
use crate::build::host_process::files_of;
use crate::failure::{Fails, Failure};
use crate::hybrid::{FROM, building, json_of, site};
use crate::kube_schema::unknown_by_kind;
use crate::site::{Site, each, stderr, zip_of};

const BUILDER: &str = "kube://ci/builder";

fn pod_path(build: u32) -> String {
    format!("/api/v1/namespaces/ci/pods/builder-{build}-0")
}

fn ready_pod(uid: &str) -> Value {
    json!({
        "kind": "Pod",
        "metadata": {"name": "builder", "uid": uid},
        "status": {"phase": "Running", "containerStatuses": [{"name": "dockerd", "ready": true}]},
    })
}

/// A cluster with a builder's pod.
fn cluster(build: u32, daemon: &str) -> Api {
    let api = Api::start();
    add_pod(&api, build, daemon);
    api
}

fn add_pod(api: &Api, build: u32, daemon: &str) {
    api.put(&pod_path(build), &ready_pod("1"));
    api.set_daemon(&pod_path(build), daemon);
}

fn build(site: &Site, api: &Api, more: &[&str]) -> Command {
    let host = site.host();
    let arguments = ["--builder", BUILDER, "--registry", &host, "--push"];
    let mut command = building(site, &[&arguments[..], more].concat());
    command.env("KUBECONFIG", api.kubeconfig());
    command
}

#[test(multi_thread = 2)]
async fn steps_run_in_the_pod_of_their_build() {
    let site = site();
    let windows = WindowsStandIn::start(site.registry.clone());
    for (number, protocol) in (1..).zip(["v5.channel.k8s.io", "v4.channel.k8s.io"]) {
        let api = cluster(17763, &windows.host());
        api.set_exec_protocol(protocol);
        site.write(
            "app/Dockerfile",
            format!("{FROM}\nCOPY site C:/site/\nRUN [\"/Files/tool\", \"{number}\"]\n"),
        );
        let output = build(&site, &api, &[]).output().unwrap();
        let built = json_of(&output);
        assert_eq!(built["images"][0]["engine"], "hybrid", "{protocol}");
        assert_eq!(windows.builds().len(), number);
        let commands = api.commands();
        assert!(commands.len() > 3, "one for each connection: {commands:?}");
        for command in commands {
            assert_eq!(command, ["docker", "system", "dial-stdio"]);
        }
        // Only what the Role grants.
        let pod = pod_path(17763);
        for (method, target) in api.targets() {
            let path = target.split('?').next().unwrap();
            assert_eq!(method, "GET");
            assert!(path == pod || path == format!("{pod}/exec"), "{target}");
        }
        let requests = api.targets().len();
        let again = json_of(&build(&site, &api, &[]).output().unwrap());
        assert_eq!(again["images"][0]["digest"], built["images"][0]["digest"]);
        assert_eq!(api.targets().len(), requests, "no step is run");
    }
}

#[test(multi_thread = 2)]
async fn several_builds_run_at_once_each_on_its_node() {
    let site = site();
    let meeting = Arc::new(Barrier::new(2));
    let machines = [Machine::server_2019(), Machine::server_2022()].map(|machine| {
        let meeting = Some(Arc::clone(&meeting));
        WindowsStandIn::start_on(site.registry.clone(), Machine { meeting, ..machine })
    });
    let api = Api::start();
    add_pod(&api, 17763, &machines[0].host());
    add_pod(&api, 20348, &machines[1].host());
    site.write(
        "app/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:ltsc2019\nRUN [\"/Files/tool\", \"one\"]\n",
    );
    // Each build waits for the other.
    let both = ["--host-build", "20348.2402", "--timeout", "90s"];
    let built = json_of(&build(&site, &api, &both).output().unwrap());
    assert_eq!(
        each(&built["images"], "os_version"),
        ["10.0.17763.973", "10.0.20348.2402"]
    );
    for machine in &machines {
        assert_eq!(machine.builds().len(), 1);
    }
}

#[test(multi_thread = 4)]
async fn an_eviction_costs_the_running_step_only() {
    let site = site();
    let windows = WindowsStandIn::start(site.registry.clone());
    let api = cluster(17763, &windows.host());
    let steps =
        "RUN [\"/Files/tool\", \"one\"]\nCOPY late.txt C:/\nRUN [\"/Files/tool\", \"slow\"]\n";
    site.write("app/Dockerfile", format!("{FROM}\n{steps}"));
    let mut command = build(&site, &api, &[]);
    let running = tokio::task::spawn_blocking(move || command.output().unwrap());
    let deadline = Instant::now() + Duration::from_mins(1);
    while windows.builds().len() < 2 {
        assert!(Instant::now() < deadline, "the second step does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    api.remove(&pod_path(17763));
    api.end_programs();
    tokio::time::sleep(Duration::from_millis(500)).await;
    api.put(&pod_path(17763), &ready_pod("2"));
    let output = running.await.unwrap();
    let built = json_of(&output);
    let said = stderr(&output);
    assert_contains!(said, "the pod builder-17763-0 is gone");
    assert_eq!(built["images"][0]["engine"], "hybrid");
    let builds = windows.builds();
    let steps: Vec<&str> = builds
        .iter()
        .map(|text| text.lines().last().unwrap())
        .collect();
    let [one, slow] = ["one", "slow"].map(|name| format!("RUN [\"/Files/tool\", \"{name}\"]"));
    assert_eq!(steps, [&one, &slow, &slow]);
}

#[test(multi_thread = 2)]
async fn what_keeps_a_builder_away_is_named() {
    let site = site();
    site.write(
        "app/Dockerfile",
        format!("{FROM}\nRUN [\"/Files/tool\", \"one\"]\n"),
    );
    let fails = |api: &Api, code: &str, values: &[&str]| {
        let failure = Failure::of(&build(&site, api, &[]).output().unwrap());
        failure.is(code, values)
    };
    let nobody = Api::start();
    fails(
        &nobody,
        "daemon/unreachable",
        &["builder-17763-0", "namespace ci"],
    )
    .advises(&["node builder", "--host-build 17763", "--namespace ci"]);

    // A missing daemon.
    let api = cluster(17763, "unix:///nonexistent/docker.sock");
    let failure = fails(&api, "daemon/unreachable", &[BUILDER, "--builder"]);
    failure.names(&["ci/builder-17763-0", "docker.sock", "dial-stdio"]);

    api.put(
        &pod_path(17763),
        &json!({"kind": "Pod", "metadata": {"uid": "1"}, "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}],
        }}),
    );
    fails(
        &api,
        "daemon/unreachable",
        &["builder-17763-0", "0/3 nodes"],
    )
    .advises(&["kubectl describe pod builder-17763-0"]);

    api.put(&pod_path(17763), &ready_pod("1"));
    for path in [pod_path(17763), format!("{}/exec", pod_path(17763))] {
        api.refuse(&format!("{}/exec", pod_path(17763)), 403);
        api.refuse(&path, 403);
        fails(&api, "cluster/denied", &["(403)"]).advises(&["Role builder-17763"]);
    }

    // Wrong words.
    let output = build(&site, &api, &["--docker-host", "tcp://x"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn node_builder(site: &Site, more: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command
        .current_dir(site.folder.path())
        .args(["node", "builder"])
        .env_remove("WINCIMG_CONFIG");
    command.args(more).output().unwrap()
}

/// The manifests that a command prints as YAML.
fn manifests(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let documents = text.split("---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

#[test]
fn the_manifests_are_kubernetes_own_types() {
    let site = Site::new();
    let arguments = [
        "--host-build",
        "ltsc2019",
        "--host-build",
        "20348.2402",
        "--image",
        "repo.lan:5000/node-builder:1",
        "--insecure-registry",
        "repo.lan:5000",
        "--user",
        "bob",
        "--group",
        "devs",
        "--pull-secret",
        "registry",
        "--node-selector",
        "pool=build",
    ];
    let objects = manifests(&node_builder(&site, &arguments));
    for object in &objects {
        assert_eq!(unknown_by_kind(object), [""; 0], "{object:#}");
    }
    let kinds: Vec<&str> = objects
        .iter()
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    let each = ["Role", "RoleBinding", "StatefulSet"];
    assert_eq!(kinds[..2], ["Namespace", "ServiceAccount"]);
    assert_eq!((&kinds[2..5], &kinds[5..]), (&each[..], &each[..]));
    let as_json = node_builder(&site, &[&arguments[..], &["--format", "json"]].concat());
    let list: Value = serde_json::from_slice(&as_json.stdout).unwrap();
    assert_eq!(list["items"].as_array(), Some(&objects));
    insta::assert_snapshot!(
        String::from_utf8(node_builder(&site, &arguments[2..]).stdout).unwrap()
    );
}

#[test]
fn the_role_grants_one_pod_and_nothing_else() {
    let site = Site::new();
    let output = node_builder(&site, &["--host-build", "17763.973", "--image", "x/y:1"]);
    let objects = manifests(&output);
    let of_kind = |kind: &str| {
        objects
            .iter()
            .find(|object| object["kind"] == kind)
            .unwrap()
    };
    let pod = json!(["builder-17763-0"]);
    assert_eq!(
        of_kind("Role")["rules"],
        json!([
            {"apiGroups": [""], "resources": ["pods"], "resourceNames": pod, "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": pod,
             "verbs": ["get", "create"]},
        ])
    );
    assert_eq!(
        of_kind("RoleBinding")["roleRef"]["name"],
        of_kind("Role")["metadata"]["name"]
    );
    let workload = of_kind("StatefulSet");
    assert_eq!(workload["metadata"]["name"], "builder-17763");
    let template = &workload["spec"]["template"];
    let selected = workload["spec"]["selector"]["matchLabels"]
        .as_object()
        .unwrap();
    for (key, value) in selected {
        assert_eq!(&template["metadata"]["labels"][key], value);
    }
    assert_eq!(template["spec"]["automountServiceAccountToken"], false);
    let command = template["spec"]["containers"][0]["command"].to_string();
    assert!(!command.contains("tcp://"), "{command}");
}

#[test]
fn nodes_of_the_cluster_decide_builds_and_tolerations() {
    let site = Site::new();
    let api = Api::start();
    let node = |name: &str, kernel: &str, taint: Value| {
        let mut node = windows_node(name, kernel);
        node["spec"]["taints"] = json!([taint]);
        node
    };
    let taint = json!({"key": "sku", "value": "Windows", "effect": "NoSchedule"});
    let passing = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"});
    api.set(
        "/api/v1/nodes",
        vec![
            node("win-a", "10.0.20348.2402", taint),
            node("win-b", "10.0.20348.2500", passing),
        ],
    );
    let run = |more: &[&str]| {
        let mut command = site.command(&["node", "builder", "--kube", "--context", "test"]);
        command.env("KUBECONFIG", api.kubeconfig());
        command.args(more).output().unwrap()
    };
    let objects = manifests(&run(&["--image", "x/y:1"]));
    let workloads: Vec<&Value> = objects
        .iter()
        .filter(|object| object["kind"] == "StatefulSet")
        .collect();
    assert_eq!(workloads.len(), 1, "one for each build");
    let pod = &workloads[0]["spec"]["template"]["spec"];
    assert_eq!(
        pod["tolerations"],
        json!([{"key": "sku", "operator": "Equal", "value": "Windows", "effect": "NoSchedule"}])
    );
    assert_eq!(
        pod["nodeSelector"],
        json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.20348"})
    );

    // Removal names the same objects.
    let output = run(&["--remove"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines[0],
        "kubectl --context test --namespace wincimg-builder exec builder-20348-0 -- docker system \
         prune --all --force"
    );
    let delete = lines[1].split_once(" delete ").unwrap().1;
    let (kinds, selector) = delete.split_once(" --selector ").unwrap();
    let (key, value) = selector.split_once('=').unwrap();
    for object in objects
        .iter()
        .filter(|object| object["kind"] != "Namespace")
    {
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        assert!(kinds.split(',').any(|it| it == kind), "{kind}");
        assert_eq!(object["metadata"]["labels"][key], value);
    }
    assert!(
        lines[3].ends_with("delete namespace wincimg-builder"),
        "{printed}"
    );

    // Nodes without HostProcess containers are selected only for the removal.
    let mut docker = windows_node("win-old", "10.0.20348.2402");
    docker["status"]["nodeInfo"]["containerRuntimeVersion"] = json!("docker://20.10.9");
    let mut usable = windows_node("win-a", "10.0.20348.2402");
    usable["metadata"]["labels"]["pool"] = json!("new");
    api.set("/api/v1/nodes", vec![docker, usable]);
    let refused = run(&["--image", "x/y:1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_contains!(
        stderr(&refused),
        "node win-old runs no HostProcess containers"
    );
    let selected = run(&["--image", "x/y:1", "--node-selector", "pool=new"]);
    assert!(selected.status.success(), "{}", stderr(&selected));
    assert!(run(&["--remove"]).status.success());

    // Builds without HostProcess containers.
    let old = node_builder(&site, &["--host-build", "14393.3504", "--image", "x/y:1"]);
    assert_eq!(old.status.code(), Some(2), "{}", stderr(&old));
}

#[test]
fn what_the_cluster_would_refuse_is_refused_before() {
    let site = Site::new();
    let run = |arguments: &[&str]| {
        let host = ["--host-build", "17763.973", "--output", "builder.yaml"];
        node_builder(&site, &[&host[..], arguments].concat())
    };
    for (flag, wrong, expected) in [
        ("--image", "x/Y:1", "expected [HOST[:PORT]/]NAME[:TAG]"),
        ("--memory", "4GB", "a quantity, such as 500m, 2 or 4Gi"),
        ("--cpu", "-1", "a quantity, such as 500m, 2 or 4Gi"),
        ("--node-selector", "pool", "a label, such as pool=web"),
        ("--node-selector", "a b=c", "a label, such as pool=web"),
        ("--node-selector", "pool=a,b=c", "a label, such as pool=web"),
        (
            "--pull-secret",
            "My_Secret",
            "letters, digits, dashes and dots",
        ),
        ("--namespace", "ci.build", "letters, digits and dashes"),
    ] {
        let wrong = format!("{flag}={wrong}");
        let image: &[&str] = match flag {
            "--image" => &[],
            _ => &["--image", "x/y:1"],
        };
        let output = run(&[image, &[wrong.as_str()]].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert_contains!(stderr(&output), expected);
    }
    let output = run(&[
        "--image",
        "x/y",
        "--memory=512Mi",
        "--cpu=1.5",
        "--node-selector=example.com/pool=",
        "--pull-secret=registry.lan",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_build_without_a_node_that_its_pod_selects_is_warned_about() {
    let site = Site::new();
    let api = Api::start();
    let mut labelled = windows_node("win-b", "10.0.20348.2402");
    let build = "node.kubernetes.io/windows-build";
    labelled["metadata"]["labels"][build] = json!("10.0.20348");
    labelled["metadata"]["labels"]["pool"] = json!("new");
    let nodes = vec![windows_node("win-a", "10.0.20348.2402"), labelled];
    api.set("/api/v1/nodes", nodes);
    let warnings = |selector: &str| {
        let mut command = site.command(&["node", "builder", "--kube", "--image", "x/y:1"]);
        command.env("KUBECONFIG", api.kubeconfig());
        let said = command.args(["--node-selector", selector]).tells(0);
        let warnings = said.lines().filter(|line| line.contains("no pod will run"));
        warnings.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(warnings("pool=new"), [""; 0], "win-b is enough");
    let found = warnings("pool=old");
    let [of_build, of_pool] = &found[..] else {
        panic!("{found:?}");
    };
    assert_contains!(
        of_build,
        "on win-a: the label node.kubernetes.io/windows-build=10.0.20348 is missing"
    );
    assert!(of_build.ends_with("`kubectl label node`"), "{of_build}");
    assert_contains!(of_pool, "on win-a, win-b: the label pool=old is missing");
    assert!(
        of_pool.ends_with(", or correct --node-selector"),
        "{of_pool}"
    );
}

#[test]
fn the_image_has_docker_from_a_zip_with_its_checksum() {
    let site = Site::new();
    let zip = zip_of(&["docker/docker.exe", "docker/dockerd.exe"].map(|name| (name, "MZ")));
    let digest = wincimg_oci::document::sha256(&zip).to_string();
    let digest = digest.strip_prefix("sha256:").unwrap().to_owned();
    let server = FileServer::with("/docker-28.0.2.zip", zip);
    let url = server.url("docker-28.0.2.zip");
    let run = |sha256: &str| {
        let mut command = site.build("node-builder");
        let url = format!("url={url}");
        let sha256 = format!("sha256={sha256}");
        command
            .args(["--set", &url, "--set", &sha256])
            .args(["--insecure-registry", &server.host()])
            .args(["--output", "oci:layout", "--tag", "1", "--format", "json"]);
        command.output().unwrap()
    };
    let built = json_of(&run(&digest));
    let layers = built["images"][0]["layers"].as_array().unwrap();
    let files = files_of(&site, layers.last().unwrap());
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for program in ["Files/docker.exe", "Files/dockerd.exe"] {
        assert!(names.contains(&program), "{names:?}");
    }
    Failure::of(&run(&digest.replace(|digit| digit != '0', "0"))).names(&["sha256"]);
}
