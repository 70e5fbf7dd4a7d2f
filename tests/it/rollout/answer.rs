//! The outcome of each workload, which every report begins with.

use predicates::prelude::*;

use super::*;
use crate::failure::Fails;
use crate::terminal::on_terminal;

/// Nodes of two builds, the first of them labelled.
fn nodes(folder: &tempfile::TempDir) -> String {
    let mut list = [
        what_if::node("a", "17763.5696"),
        what_if::node("b", "17763.5696"),
        what_if::node("c", "20348.2402"),
        what_if::node("d", "20348.2402"),
    ];
    list[0]["metadata"]["labels"]["pool"] = json!("one");
    let file = folder.path().join("nodes.json");
    fs::write(&file, json!({"kind": "List", "items": list}).to_string()).unwrap();
    file.display().to_string()
}

/// Checks pods, each with its name, its images and further fields of its spec.
fn check_pods(folder: &tempfile::TempDir, pods: &[(&str, &[&str], &str)]) -> Command {
    let images = json!({"images": [
        {"reference": "r.example/old:1", "os_version": "10.0.17763.5696"},
        {"reference": "r.example/new:1", "os_version": "10.0.20348.2402"},
        {"reference": "r.example/both:1", "os_version": "10.0.17763.5696"},
        {"reference": "r.example/both:1", "os_version": "10.0.20348.2402"},
        {"reference": "r.example/gone:1", "os_version": "10.0.18363.1556"},
    ]});
    let file = folder.path().join("images.json");
    fs::write(&file, images.to_string()).unwrap();
    let items = pods.iter().map(|(name, images, more)| {
        let containers: Vec<Value> = images
            .iter()
            .map(|image| match *image {
                "" => json!({"name": "c"}),
                image => json!({"name": "c", "image": format!("r.example/{image}:1")}),
            })
            .collect();
        let mut pod = json!({
            "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeSelector": {"kubernetes.io/os": "windows"}, "containers": containers},
        });
        if let Some((key, value)) = more.split_once('=') {
            pod["spec"]["nodeSelector"][key] = json!(value);
        }
        if *more == "hyperv" {
            pod["metadata"]["annotations"] =
                json!({"experimental.windows.kubernetes.io/isolation-type": "hyperv"});
        }
        pod
    });
    let items: Vec<Value> = items.collect();
    let file = folder.path().join("workloads.json");
    fs::write(&file, json!({"kind": "List", "items": items}).to_string()).unwrap();
    let mut command = wincimg();
    command
        .current_dir(folder.path())
        .args(["--offline", "--workloads", "workloads.json"])
        .args(["--images", "images.json", "--nodes", &nodes(folder)]);
    command
}

#[test]
fn a_workload_starts_where_all_of_its_containers_start() {
    let folder = tempfile::tempdir().unwrap();
    let pods: [(&str, &[&str], &str); 10] = [
        ("everywhere", &["both"], ""),
        (
            "pinned",
            &["old"],
            "node.kubernetes.io/windows-build=10.0.17763",
        ),
        ("somewhere", &["both", "old"], ""),
        ("never-together", &["old", "new"], ""),
        ("nowhere", &["gone"], ""),
        ("no-node", &["both"], "pool=none"),
        ("unread", &["both", "secret"], ""),
        ("half-read", &["old", "secret"], ""),
        ("no-image", &["both", ""], ""),
        ("hidden", &["gone", ""], "pool=one"),
    ];
    let (code, report) = answer_of(&mut check_pods(&folder, &pods));
    assert_eq!(code, 1);
    let workloads = report["workloads"].as_array().unwrap();
    let found: Vec<(&str, &str, u64, u64)> = workloads
        .iter()
        .map(|workload| {
            (
                workload["name"].as_str().unwrap(),
                workload["starts"].as_str().unwrap(),
                workload["starts_on"].as_u64().unwrap(),
                workload["nodes"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("everywhere", "everywhere", 4, 4),
            ("pinned", "everywhere", 2, 2),
            ("somewhere", "somewhere", 2, 4),
            ("never-together", "nowhere", 0, 4),
            ("nowhere", "nowhere", 0, 4),
            ("no-node", "nowhere", 0, 0),
            ("unread", "unknown", 0, 4),
            // It does not start on nodes of 20348, whatever the other image is.
            ("half-read", "somewhere", 0, 4),
            ("no-image", "unknown", 0, 4),
            ("hidden", "nowhere", 0, 1),
        ]
    );
    assert_eq!(workloads[0]["rule"], Value::Null);
    assert_eq!(workloads[5]["rule"], "no-host-selected");
    assert_eq!(workloads[8]["rule"], "no-image");
    for workload in &workloads[2..] {
        assert!(workload["reason"].is_string(), "{workload}");
        assert!(workload["fix"].is_string(), "{workload}");
    }
}

#[test]
fn what_surely_does_not_start_is_said_despite_what_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let pods: [(&str, &[&str], &str); 2] =
        [("old", &["old"], ""), ("half-read", &["old", "secret"], "")];
    let text = check_pods(&folder, &pods).prints();
    let (_, half_read) = text.split_once("\nshop/half-read ").unwrap();
    let (half_read, _) = half_read.split_once("\n\n").unwrap();
    assert!(
        half_read.starts_with(
            "can land where it does not start; it does not start on 2 of 4 nodes, unknown on 2\n"
        ),
        "{text}"
    );
    for why in ["(too-old-for-host)", "(unknown-build)"] {
        assert!(half_read.contains(why), "{text}");
    }
}

#[test]
fn a_warning_counts_the_nodes_that_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, document: &Value| {
        fs::write(folder.path().join(name), document.to_string()).unwrap();
    };
    let pod = json!({
        "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"nodeSelector": {"kubernetes.io/os": "windows"},
                 "containers": [{"name": "c", "image": "r.example/web:1"}]},
    });
    write("pod.json", &pod);
    let images = json!([{"reference": "r.example/web:1", "os_version": "10.0.26100.3194"}]);
    write("images.json", &images);
    let text = |first: &str, format: &str| {
        let nodes = [first, "26100.3194", "26100.3194"];
        let nodes = ["a", "b", "c"]
            .iter()
            .zip(nodes)
            .map(|(name, version)| what_if::node(name, version));
        let nodes: Vec<Value> = nodes.collect();
        write("nodes.json", &json!({"kind": "List", "items": nodes}));
        let mut command = wincimg();
        command
            .current_dir(folder.path())
            .args(["--offline", "--workloads", "pod.json", "--images"])
            .args(["images.json", "--nodes", "nodes.json", "--format", format]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    for format in ["junit", "sarif", "html"] {
        // The first node lacks the image's update.
        let one = text("26100.2894", format);
        assert_contains!(one, "starts with a warning on 1 of 3 nodes");
        let none = text("26100.3194", format);
        assert!(!none.contains("starts with a warning on"), "{none}");
    }
}

#[test]
fn the_manifest_to_edit_is_named_unless_a_cluster_printed_the_object() {
    let folder = tempfile::tempdir().unwrap();
    let pods: [(&str, &[&str], &str); 2] = [("one", &["gone"], ""), ("two", &["gone"], "")];
    let mut command = check_pods(&folder, &pods);
    for format in ["json", "junit", "markdown", "html"] {
        let report = folder.path().join(format);
        command.args(["--report", &format!("{format}:{}", report.display())]);
    }
    let mut printed = || String::from_utf8(command.output().unwrap().stdout).unwrap();
    let text = printed();
    assert_contains!(text, "\n  in:  workloads.json:1\n  why: ");
    let report = |format| fs::read_to_string(folder.path().join(format)).unwrap();
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let manifest = json!({"file": "workloads.json", "line": 1});
    assert_eq!(json["workloads"][0]["manifest"], manifest);
    for format in ["junit", "markdown"] {
        assert_contains!(report(format), "in: workloads.json:1");
    }
    assert_contains!(report("html"), "\"manifest\":\"workloads.json:1\"");
    let file = folder.path().join("workloads.json");
    let mut list: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for pod in list["items"].as_array_mut().unwrap() {
        pod["metadata"]["uid"] = json!("a");
    }
    fs::write(&file, list.to_string()).unwrap();
    let text = printed();
    assert!(!text.contains("  in:  "), "{text}");
    assert_contains!(text, "\n  why: ");
}

#[test]
fn hyper_v_runs_what_is_older() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = check_pods(&folder, &[("shop", &["gone", "old"], "")]);
    let (code, report) = answer_of(command.args(["--isolation", "hyperv"]));
    // 18363 is newer than the hosts of 17763.
    assert_eq!(code, 1);
    assert_eq!(report["workloads"][0]["starts"], "somewhere");
    assert_eq!(report["workloads"][0]["starts_on"], 2);
}

#[test]
fn an_outage_comes_before_a_risk_and_both_before_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let pods: [(&str, &[&str], &str); 4] = [
        ("risk", &["old"], ""),
        ("safe", &["both"], ""),
        ("down", &["gone"], ""),
        ("pending", &["both"], "pool=none"),
    ];
    let headline = "1 workload starts nowhere: shop/down · 1 lands on no node: shop/pending · \
                    1 can land where it does not start · 1 is safe";
    for (format, places) in [
        (
            "text",
            [headline, "\nshop/down starts", "\nplan:", "\nnode "],
        ),
        (
            "markdown",
            [
                "### 1 workload starts nowhere · 1 lands on no node · 1 can land where it does \
                 not start · 1 is safe\n",
                "| shop/down | starts nowhere, on none of 4 nodes |",
                "#### Plan",
                "<details><summary>Nodes and images</summary>",
            ],
        ),
    ] {
        let text = check_pods(&folder, &pods)
            .args(["--plan", "--format", format])
            .prints();
        let found = places.map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
        assert!(found.is_sorted() && found[0] == 0, "{text}");
        let [down, risk] = ["shop/down start", "shop/risk can land"].map(|part| text.find(part));
        assert!(
            format == "markdown" || (down < risk && risk.is_some()),
            "{text}"
        );
    }
}

#[test]
fn workloads_that_the_same_fixes_are_one_case() {
    let folder = tempfile::tempdir().unwrap();
    let pods: [(&str, &[&str], &str); 3] = [
        ("one", &["gone"], "pool=one"),
        ("two", &["gone", "both"], "pool=one"),
        ("three", &["gone"], "pool=one"),
    ];
    check_pods(&folder, &pods).assert().code(1).stdout(
        predicates::str::contains("shop/one, shop/two, shop/three ")
            // One build, and the new tag for each workload.
            .and(predicates::str::contains("  run: ").count(4)),
    );
}

#[test]
fn a_simulation_says_what_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    check_pods(&folder, &[("risk", &["new"], "")])
        .args(["--simulate", "a=20348.2402", "--simulate", "b=20348.2402"])
        .assert()
        .code(0)
        .stdout(predicates::str::contains(
            "\n1 workload is safe\nWithout the simulation: 1 workload can land where it does not start\n",
        ));
}

#[test]
fn on_a_terminal_lines_fit_and_verdicts_have_colours() {
    let folder = tempfile::tempdir().unwrap();
    check_pods(&folder, &[("risk", &["old"], ""), ("safe", &["both"], "")]);
    let on_terminal = |before: &str, width: usize| {
        let check = format!(
            "{before} wincimg check-compat --offline --workloads workloads.json \
             --images images.json --nodes nodes.json --on 2024-06-01"
        );
        let (shown, _) = on_terminal(folder.path(), width, &check);
        shown.replace('\r', "")
    };
    let text = on_terminal("", 60);
    assert_contains!(text, "\x1b[33m1 ", "\x1b[36m(too-old-for-host)\x1b[0m");
    for width in [60, 80, 120, 200] {
        let text = on_terminal("NO_COLOR=1", width);
        assert!(!text.contains('\x1b'), "{text}");
        for line in text.lines().filter(|line| !line.starts_with("  run: ")) {
            assert!(line.chars().count() <= width, "{line:?} of {width}");
        }
    }
}
