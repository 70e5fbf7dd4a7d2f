//! Whole clusters of AKS, EKS and kubeadm with a shop's workloads.

use predicates::prelude::*;

use super::what_if::as_linux;
use super::*;

use crate::api::windows_node;
use crate::failure::{Fails, line};
use crate::site::each;

#[test]
fn on_aks_every_thing_that_is_wrong_with_the_shop_is_found() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (code, report) = answer_of(&mut check(&registry, "aks", &folder));
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
    assert_contains!(nowhere["reason"], "os=windows:NoSchedule");
}

#[test]
fn the_entry_that_the_node_would_take_is_the_one_that_is_judged() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = answer_of(&mut check(&registry, "eks", &folder));
    let of_web: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["image"]["reference"] == format!("{}/shop/web:1.4", registry.host()))
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
    // EKS does not taint its Windows nodes, so the CronJob without a toleration can be scheduled
    // there too.
    assert_eq!(of_web, [taken, taken].concat());
}

#[test]
fn under_docker_host_processes_do_not_run_and_cordoned_nodes_still_count() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = answer_of(&mut check(&registry, "kubeadm", &folder));
    let (_, lines) = problems(&report, &registry);
    for node in ["win-a", "win-b", "win-c"] {
        let line = format!("{node}|DaemonSet logs|R/shop/logs:latest|host-process-unsupported");
        assert!(lines.contains(&line), "{lines:?}");
    }
    let old_host = "win-a|Deployment web|R/shop/web:1.4|baseline-2020-02";
    assert!(lines.contains(&old_host.to_owned()), "{lines:?}");
}

#[test]
fn every_document_is_asked_for_once_and_those_of_other_systems_never() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    check(&registry, "aks", &folder).assert().code(1);
    let requests = registry.requests();
    let manifests = || requests.iter().filter(|it| it.contains("manifests"));
    // Three tags, and the two entries of one index that nodes would select.
    assert_eq!(manifests().count(), 5, "{requests:?}");
    let once: std::collections::BTreeSet<_> = requests.iter().collect();
    assert_eq!(once.len(), requests.len(), "{requests:?}");
}

#[test]
fn workloads_that_cannot_be_read_are_said_with_their_place() {
    let nodes = format!("{CLUSTERS}/aks.json");
    wincimg()
        .args(["--nodes", &nodes, "--workloads", "-"])
        .write_stdin("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: 7}]}\n")
        .fails(2, "cluster/workloads", &["stdin: line 1: "])
        .names(&["Pod p", "spec.containers[0].image"])
        .on_line(1);
    wincimg()
        .args(["--nodes", &nodes, "--workloads", "/nowhere.yaml"])
        .fails(3, "file/io", &["/nowhere.yaml"]);
}

#[test]
fn a_pod_that_cannot_be_placed_is_left_out_with_a_word() {
    wincimg()
        .args(["--nodes", &format!("{CLUSTERS}/aks.json")])
        .args(["--workloads", "-", "--offline"])
        .write_stdin("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: a/b:1}]}\n")
        .assert()
        .code(0)
        .stderr(line(&["Pod default/p"]));
}

#[test]
fn a_pod_that_could_land_is_not_green_without_a_known_system() {
    // EKS does not taint its Windows nodes.
    let mut command = wincimg();
    command
        .args(["--nodes", &format!("{CLUSTERS}/eks.json")])
        .args(["--workloads", "-", "--offline"])
        .write_stdin("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: a/b:1}]}\n");
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 1);
    let rules = each(&report["checks"], "rule");
    assert!(
        rules.iter().all(|rule| *rule == "unknown-build"),
        "nobody can say that it needs a selector for Windows: {rules:?}"
    );
}

#[test]
fn what_has_one_cause_on_all_nodes_is_said_once() {
    wincimg()
        .args(["--nodes", &format!("{CLUSTERS}/kubeadm.json")])
        .args(["--offline", "a/b:1"])
        .assert()
        .code(1)
        .stdout(line(&["why: ", "--offline"]).and(line(&["fix: ", "--offline"])));
}

#[test]
fn files_without_a_workload_do_not_open_the_gate() {
    let nodes = format!("{CLUSTERS}/aks.json");
    for input in [
        "",
        "kind: Service\n",
        "# Source: empty\n---\n",
        "{\"kind\":\"List\",\"items\":[]}",
    ] {
        wincimg()
            .args(["--nodes", &nodes, "--workloads", "-"])
            .write_stdin(input)
            .fails(2, "usage", &["stdin"])
            .advises(&["--workloads"]);
    }
    wincimg()
        .args(["--nodes", "-", "--workloads", "-"])
        .fails(2, "usage", &["stdin"]);
}

#[test]
fn files_that_powershell_wrote_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let utf16 = |name: &str, text: &str| {
        let file = folder.path().join(name);
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        fs::write(&file, units.flat_map(u16::to_le_bytes).collect::<Vec<_>>()).unwrap();
        file
    };
    let nodes = utf16(
        "nodes.json",
        &fs::read_to_string(format!("{CLUSTERS}/eks.json")).unwrap(),
    );
    let pod = "kind: Pod\nspec: {nodeSelector: {kubernetes.io/os: windows}, containers: [{image: 'a:1'}]}\n";
    let images = r#"{"images": [{"reference": "a:1", "os_version": "10.0.17763.5696"}]}"#;
    let mut command = wincimg();
    command
        .arg("--offline")
        .arg("--nodes")
        .arg(nodes)
        .arg("--workloads")
        .arg(utf16("pod.yaml", pod))
        .arg("--images")
        .arg(utf16("images.json", images));
    let (_, report) = answer_of(&mut command);
    assert_eq!(report["checks"][0]["image"]["build"], "17763.5696");
    assert_eq!(report["checks"][0]["verdict"], "compatible");
}

#[test]
fn versions_with_equal_results_are_reported_as_one() {
    let check = || {
        let mut command = wincimg();
        command.args(["--image-build", "17763.1158", "--plan"]);
        for revision in 1000..1060 {
            command.args(["--host-build", &format!("17763.{revision}")]);
        }
        command
    };
    let (code, report) = answer_of(&mut check());
    assert_eq!(code, 1);
    for (revision, one) in (1000..).zip(report["checks"].as_array().unwrap()) {
        let verdict = if revision < 1039 {
            "incompatible"
        } else {
            // They are past the breaking change, but lack updates that the image has.
            "warning"
        };
        assert_eq!(one["host"]["build"], format!("17763.{revision}"));
        assert_eq!(one["verdict"], verdict, "{one}");
    }
    let patched = report["plan"]["actions"][0]["hosts"].as_array().unwrap();
    assert_eq!(patched.len(), 39);
    assert_eq!(report["plan"]["then"]["compatible"], 39);
    assert_eq!(report["plan"]["then"]["warning"], 21);
    let reason = ["17763.1000", "17763.1038", "17763.1158"];
    check().assert().code(1).stdout(
        line(&["17763.1000", "17763.1038", "39 nodes"])
            .and(line(&["17763.1039", "17763.1059", "21 nodes"]))
            .and(line(&reason)),
    );
}

#[test]
fn a_comment_on_a_pull_request_never_grows_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let name =
        |index: usize| format!("repo.example/a-team-with-a-long-name/service-{index}:1.{index}");
    let images: Vec<Value> = (0..300)
        .map(|index| json!({"reference": name(index), "os_version": "10.0.14393.1"}))
        .collect();
    let file = folder.path().join("images.json");
    fs::write(&file, json!({"images": images}).to_string()).unwrap();
    let pods: Vec<String> = (0..300)
        .map(|index| {
            format!(
                "kind: Pod\nmetadata: {{name: p{index}}}\nspec: {{nodeSelector: {{kubernetes.io/os: windows}}, \
                 tolerations: [{{operator: Exists}}], containers: [{{image: '{}'}}]}}\n",
                name(index)
            )
        })
        .collect();
    let output = wincimg()
        .args([
            "--offline", "--plan", "--format", "markdown", "--workloads", "-",
        ])
        .args(["--nodes", &format!("{CLUSTERS}/aks.json"), "--images"])
        .arg(file)
        .write_stdin(pods.join("---\n"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("### 300 "), "{text}");
    assert_contains!(text, "\n\n| Workload | ");
    assert!((59_000..65_536).contains(&text.len()), "{}", text.len());
    assert_eq!(text.matches("`--format html`").count(), 2);
    assert_eq!(text.matches("<details>").count(), 1);
    assert_eq!(text.matches("</details>").count(), 1);
    assert!(text.contains("Then everything starts."));
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
            .replace(&registry.host(), "registry.example")
            .replace(folder.path().to_str().unwrap(), "manifests")
            .replace(NO_CREDENTIALS, "config.json");
        insta::assert_snapshot!(format!("shop_{format}"), text);
    }
}

/// A node in kubectl's format.
fn node(name: &str, system: &str, spec: &Value) -> Value {
    let mut node = windows_node(name, "10.0.17763.973");
    node["spec"] = spec.clone();
    if system == "linux" {
        as_linux(&mut node);
    }
    node
}

/// `check-compat` of objects on nodes; only the names of images are known.
fn check_objects(nodes: &[Value], objects: &[Value]) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, items: &[Value]| {
        let path = folder.path().join(name);
        fs::write(&path, json!({"kind": "List", "items": items}).to_string()).unwrap();
        path
    };
    let images = json!([{"reference": "shop/old:1", "os_version": "10.0.14393.1"}]);
    let list = folder.path().join("images.json");
    fs::write(&list, images.to_string()).unwrap();
    let mut command = wincimg();
    command.arg("--offline").arg("--images").arg(list);
    command.arg("--nodes").arg(write("nodes.json", nodes));
    command
        .arg("--workloads")
        .arg(write("objects.json", objects));
    (command, folder)
}

fn pod_spec() -> Value {
    json!({"os": {"name": "windows"}, "containers": [{"name": "c", "image": "shop/old:1"}]})
}

#[test]
fn what_runs_nothing_is_counted_and_left_out_unless_it_is_asked_for() {
    let template = json!({"spec": pod_spec()});
    let object = |kind: &str, name: &str, spec: Value, status: Value| {
        let api = match kind {
            "Pod" => "v1",
            "Job" | "CronJob" => "batch/v1",
            "Rollout" => "argoproj.io/v1alpha1",
            _ => "apps/v1",
        };
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec, "status": status})
    };
    let none = json!({});
    let ended = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    let of_deployment = json!([{"kind": "Deployment", "name": "web", "controller": true}]);
    let mut set = object(
        "ReplicaSet",
        "web-1",
        json!({"replicas": 0, "template": template}),
        none.clone(),
    );
    set["metadata"]["ownerReferences"] = of_deployment;
    let objects = [
        object(
            "Deployment",
            "web",
            json!({"replicas": 2, "template": template}),
            none.clone(),
        ),
        set,
        object(
            "Deployment",
            "off",
            json!({"replicas": 0, "template": template}),
            none.clone(),
        ),
        object(
            "Rollout",
            "off",
            json!({"replicas": 0, "template": template}),
            none.clone(),
        ),
        object(
            "CronJob",
            "night",
            json!({"suspend": true, "jobTemplate": {"spec": {"template": template}}}),
            none.clone(),
        ),
        object(
            "Job",
            "wait",
            json!({"suspend": true, "template": template}),
            none.clone(),
        ),
        object(
            "Job",
            "paused",
            json!({"parallelism": 0, "template": template}),
            none.clone(),
        ),
        object(
            "Job",
            "done",
            json!({"template": template}),
            json!({"completionTime": "2026-01-01T00:00:00Z"}),
        ),
        object("Job", "failed", json!({"template": template}), ended),
        object("Pod", "once", pod_spec(), json!({"phase": "Succeeded"})),
    ];
    let nodes = [node("win-a", "windows", &json!({}))];
    let (mut command, _folder) = check_objects(&nodes, &objects);
    let (_, report) = answer_of(&mut command);
    let (mut with_all, _folder) = check_objects(&nodes, &objects);
    let names = |report: &Value| {
        let workloads = report["workloads"].as_array().unwrap().iter();
        let ids = workloads.map(|it| format!("{} {}", it["kind"], it["name"]).replace('"', ""));
        ids.collect::<Vec<_>>()
    };
    assert_eq!(names(&report), ["Deployment web"]);
    assert_eq!(report["inactive"], 8);
    let (_, report) = answer_of(with_all.arg("--include-inactive"));
    assert_eq!(names(&report).len(), 9, "{report}");
    // One of them may be for Windows.
    let (mut inactive, _folder) = check_objects(&nodes, &objects[2..3]);
    let nothing = line(&["warning: no active workload is for Windows"]);
    inactive.assert().code(0).stderr(nothing);
    assert_eq!(report.get("inactive"), None);
}

#[test]
fn what_is_known_by_its_pods_alone_gets_the_name_of_its_owner_and_no_command() {
    let nodes = [node("win-a", "windows", &json!({}))];
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-5d4f8-x2x",
            "namespace": "default",
            "labels": {"pod-template-hash": "5d4f8"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d4f8", "controller": true}],
        },
        "spec": pod_spec(),
    });
    let (mut command, _folder) = check_objects(&nodes, &[pod]);
    let (code, report) = answer_of(command.args(["--plan", "--own", "docker.io/shop"]));
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["workloads"][0]["kind"], "Deployment", "{report}");
    let steps = report["plan"]["actions"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{report}");
    let step = steps[1]["manual"].as_str().unwrap();
    for words in [
        "shop/old:1-20240601 in Deployment default/web,",
        "kubectl get deployment web --namespace default --output yaml",
    ] {
        assert!(step.contains(words), "{step}");
    }
    for command in ["kubectl set", "kubectl patch", "kubectl replace"] {
        assert!(!report.to_string().contains(command), "{report}");
    }
}

#[test]
fn a_cordoned_node_is_said_to_be_one_and_counts() {
    let nodes = [
        node("win-a", "windows", &json!({"unschedulable": true})),
        node("linux", "linux", &json!({})),
    ];
    let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec()});
    let check = || check_objects(&nodes, std::slice::from_ref(&pod));
    let (mut command, _folder) = check();
    let (code, report) = answer_of(command.args(["--plan", "--own", "docker.io/shop"]));
    assert_eq!((code, &report["cordoned"]), (1, &json!(["win-a"])));
    assert_eq!(report["plan"]["actions"][0]["kind"], "rebuild", "{report}");
    let (mut command, _folder) = check();
    let text = command.output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.to_lowercase().contains("cordoned"), "{text}");
    let (mut command, _folder) = check();
    let (_, report) = answer_of(command.arg("--skip-cordoned"));
    assert_eq!(report.get("cordoned"), None);
    assert_eq!(report["checks"][0]["rule"], "no-host-selected");
}

/// The text of `check-compat --plan` for a Deployment on nodes.
fn plan_of_web(nodes: &[Value]) -> String {
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": pod_spec()}},
    });
    let (mut command, _folder) = check_objects(nodes, &[web]);
    let output = command.args(["--plan", "--own", "docker.io/shop"]).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn a_plan_does_not_promise_that_pods_find_a_node() {
    let mut cordoned = what_if::node("win-b", "14393.1");
    cordoned["spec"] = json!({"unschedulable": true});
    let text = plan_of_web(&[what_if::node("win-a", "17763.973"), cordoned]);
    for words in [
        "(keeps 1 of 2 nodes; no new pods go to win-b while cordoned or not ready)",
        "Then everything starts that finds a node.",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_plan_does_not_promise_what_is_reported_to_fail() {
    let mut nodes = [
        what_if::node("win-11", "26200.7019"),
        what_if::node("win-25", "26100.1742"),
    ];
    for node in &mut nodes {
        node["status"]["nodeInfo"]["containerRuntimeVersion"] = json!("containerd://2.2.0");
    }
    let text = plan_of_web(&nodes);
    for words in [
        "containerd of win-11 refuses it in an index",
        "fix: build the image again",
        "Then everything starts except on win-11 (26200.7019), where such images are reported to \
         fail.",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_pod_that_names_its_node_is_judged_by_the_kubelet_there() {
    let nodes = [
        node("win-a", "windows", &json!({})),
        node("linux", "linux", &json!({})),
    ];
    let pod = |name: &str, node: &str, selector: Value| {
        let mut spec = pod_spec();
        spec["nodeName"] = node.into();
        spec["nodeSelector"] = selector;
        json!({"kind": "Pod", "metadata": {"name": name}, "spec": spec})
    };
    let objects = [
        pod("elsewhere", "linux", json!({})),
        pod("refused", "win-a", json!({"pool": "x"})),
        pod("gone", "win-z", json!({})),
    ];
    let (mut command, _folder) = check_objects(&nodes, &objects);
    let (_, report) = answer_of(&mut command);
    let found = |name: &str| {
        let mut checks = report["checks"].as_array().unwrap().iter();
        let check = checks
            .find(|check| check["workload"]["name"] == name)
            .unwrap();
        (
            check["verdict"].as_str().unwrap(),
            check["rule"].as_str().unwrap(),
        )
    };
    assert_eq!(found("elsewhere"), ("incompatible", "no-host-selected"));
    assert_eq!(found("refused"), ("incompatible", "no-host-selected"));
    assert_eq!(found("gone"), ("warning", "no-host-selected"));
}

#[test]
fn a_pod_of_another_system_than_the_nodes_that_it_selects_starts_nowhere() {
    let nodes = [
        node("win-a", "windows", &json!({})),
        node("linux", "linux", &json!({})),
    ];
    let pod = |name: &str, os: &str, selector: Value| {
        let mut spec = pod_spec();
        spec["os"]["name"] = os.into();
        spec["nodeSelector"] = selector;
        if name.starts_with("linux") {
            spec["containers"][0]["image"] = "shop/other:1".into();
        }
        json!({"kind": "Pod", "metadata": {"name": name}, "spec": spec})
    };
    let os = |system: &str| json!({"kubernetes.io/os": system});
    let build = json!({"node.kubernetes.io/windows-build": "10.0.17763"});
    let objects = [
        pod("a", "linux", os("windows")),
        pod("b", "linux", build),
        pod("c", "windows", os("linux")),
        pod("linux", "linux", json!({})),
        pod("linux-too", "linux", os("linux")),
    ];
    let (mut command, _folder) = check_objects(&nodes, &objects);
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 1);
    let mut checks = report["checks"].as_array().unwrap().iter();
    let astray = checks.next_back().unwrap();
    assert_eq!(astray["rule"], "no-linux-selector", "{astray}");
    let reason = astray["reason"].as_str().unwrap();
    assert!(reason.ends_with(": Pod default/linux"), "{reason}");
    let found: Vec<(&str, &str, &str)> = checks
        .map(|check| {
            let reason = check["reason"].as_str().unwrap();
            assert!(reason.contains("PodOSNotSupported"), "{reason}");
            (
                check["workload"]["name"].as_str().unwrap(),
                check["verdict"].as_str().unwrap(),
                check["rule"].as_str().unwrap(),
            )
        })
        .collect();
    let refused = |name| (name, "incompatible", "no-host-selected");
    assert_eq!(found, ["a", "b", "c"].map(refused));
    assert_eq!(each(&report["workloads"], "starts"), ["nowhere"; 3]);
}

#[test]
fn workloads_for_linux_alone_are_counted_where_they_can_land_on_windows() {
    let nodes = [
        node("win-a", "windows", &json!({})),
        node("linux", "linux", &json!({})),
    ];
    let first_line = |names: &[&str]| {
        let pods = names.iter().map(|name| {
            let mut spec = pod_spec();
            spec["os"]["name"] = "linux".into();
            spec["containers"][0]["image"] = "shop/other:1".into();
            json!({"kind": "Pod", "metadata": {"name": name}, "spec": spec})
        });
        let (mut command, _folder) = check_objects(&nodes, &pods.collect::<Vec<_>>());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let printed = String::from_utf8_lossy(&output.stdout);
        printed.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        first_line(&["a"]),
        "1 workload for Linux can land on Windows nodes"
    );
    assert_eq!(
        first_line(&["a", "b"]),
        "2 workloads for Linux can land on Windows nodes"
    );
}
