//! Whole clusters, as AKS, EKS and kubeadm show them, and a shop's workloads on them.

use predicates::prelude::*;
use predicates::str::contains;

use super::*;

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
    // EKS does not taint its Windows nodes, so the CronJob without a toleration lands there too.
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
        .stderr(contains("cannot open /nowhere.yaml"));
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
        .stderr(
            contains("left out workloads for an unknown system").and(contains("Pod default/p")),
        );
}

#[test]
fn a_pod_that_could_land_is_not_green_because_nobody_knows_its_system() {
    // EKS does not taint its Windows nodes.
    let mut command = wincimg();
    command
        .args([
            "--nodes",
            &format!("{CLUSTERS}/eks.json"),
            "--workloads",
            "-",
            "--offline",
        ])
        .write_stdin("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: a/b:1}]}\n");
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 1);
    let rules: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["rule"].as_str().unwrap())
        .collect();
    assert!(
        rules.iter().all(|rule| *rule == "unknown-build"),
        "nobody can say that it needs a selector for Windows: {rules:?}"
    );
}

#[test]
fn what_has_one_cause_on_all_nodes_is_said_once() {
    wincimg()
        .args([
            "--nodes",
            &format!("{CLUSTERS}/kubeadm.json"),
            "--offline",
            "a/b:1",
        ])
        .assert()
        .code(1)
        .stdout(contains("--offline asks no registry").count(1));
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
            .assert()
            .code(2)
            .stderr(contains("found no workload in stdin").and(contains("hint: ")));
    }
    wincimg()
        .args(["--nodes", "-", "--workloads", "-"])
        .assert()
        .code(2)
        .stderr(contains("stdin can be read only once"));
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
fn of_many_versions_those_that_images_treat_alike_are_told_as_one() {
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
            // They are past the line, but lack updates that the image has.
            "warning"
        };
        assert_eq!(one["host"]["build"], format!("17763.{revision}"));
        assert_eq!(one["verdict"], verdict, "{one}");
    }
    let patched = report["plan"]["actions"][0]["hosts"].as_array().unwrap();
    assert_eq!(patched.len(), 39);
    assert_eq!(report["plan"]["then"]["compatible"], 39);
    assert_eq!(report["plan"]["then"]["warning"], 21);
    check().assert().code(1).stdout(
        contains("17763.1000 to 17763.1038 · Server 2019 · 39 nodes  NO")
            .and(contains(
                "17763.1039 to 17763.1059 · Server 2019 · 21 nodes  !",
            ))
            .and(
                contains(
                    "host 17763.1000 to 17763.1038 and image 17763.1158 are on different sides",
                )
                .count(1),
            ),
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
            "--offline",
            "--plan",
            "--format",
            "markdown",
            "--workloads",
            "-",
        ])
        .args(["--nodes", &format!("{CLUSTERS}/aks.json"), "--images"])
        .arg(file)
        .write_stdin(pods.join("---\n"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("### 300 workloads start nowhere\n\n| Workload | "),
        "{text}"
    );
    assert!((60_000..65_536).contains(&text.len()), "{}", text.len());
    assert_eq!(text.matches(" more, which `--format html`").count(), 2);
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
