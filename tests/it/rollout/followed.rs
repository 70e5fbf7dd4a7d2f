//! Reports that code hosts and CI systems follow from one day to the next.

use super::*;
use crate::failure::Fails;

/// `check-compat` in a folder with nodes of Windows 17763.973, and a workload at line 4 of its
/// manifest, whose image has this version.
fn check(folder: &tempfile::TempDir, nodes: usize, host: &str, image: &str) -> Command {
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    let nodes = (0..nodes).map(|number| what_if::node(&format!("n{number}"), host));
    let nodes: Vec<Value> = nodes.collect();
    write(
        "nodes.json",
        json!({"kind": "List", "items": nodes}).to_string(),
    );
    let images = ["web", "other"].map(|name| {
        let reference = format!("r.example/{name}:1");
        json!({"reference": reference, "os_version": format!("10.0.{image}")})
    });
    write("images.json", json!(images).to_string());
    let service = "apiVersion: v1\nkind: Service\n---\n";
    let pod = "kind: Pod\nmetadata: {name: web}\nspec: {nodeSelector: {kubernetes.io/os: windows}, \
               containers: [{name: c, image: 'r.example/web:1'}]}\n";
    write("pod.yaml", [service, pod].concat());
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command
        .current_dir(folder.path())
        .args(["check-compat", "--offline", "--images", "images.json"]);
    command
}

/// File and line of each result, with its rule.
fn places(command: &mut Command) -> (Vec<String>, String) {
    let output = command.args(["--format", "sarif"]).output().unwrap();
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let places = results.iter().map(|result| {
        // GitHub refuses the file for one result without either.
        let place = &result["locations"][0]["physicalLocation"];
        let file = place["artifactLocation"]["uri"].as_str().unwrap();
        let line = place["region"]["startLine"].as_u64().unwrap();
        format!("{} {file}:{line}", result["ruleId"].as_str().unwrap())
    });
    let errors = String::from_utf8(output.stderr).unwrap();
    (places.collect(), errors)
}

#[test]
fn every_result_of_sarif_is_in_a_file_that_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str]| {
        let mut command = check(&folder, 1, "17763.973", "17763.1158");
        places(
            command
                .args(["r.example/other:1", "--on", "2026-12-01"])
                .args(arguments),
        )
    };
    let workloads = ["--workloads", "pod.yaml"];
    let nodes = ["--nodes", "nodes.json"];
    let (found, errors) = check(&[workloads, nodes].concat());
    let expected = [
        "baseline-2020-02 pod.yaml:4",
        "baseline-2020-02 nodes.json:1",
        "behind nodes.json:1",
        "behind pod.yaml:4",
    ];
    assert_eq!(found, expected);
    assert!(!errors.contains("SARIF lacks"), "{errors}");
    let host = ["--host-build", "17763.973"];
    let (found, errors) = check(&[workloads, host].concat());
    let expected = [
        "baseline-2020-02 pod.yaml:4",
        "baseline-2020-02 pod.yaml:1",
        "behind pod.yaml:1",
        "behind pod.yaml:4",
    ];
    assert_eq!(found, expected);
    assert!(!errors.contains("SARIF lacks"), "{errors}");
    // Without a file, nothing is left for a code host to show, and that is said.
    let (found, errors) = check(&host);
    assert!(found.is_empty(), "{found:?}");
    assert_contains!(errors, "SARIF lacks 2 results", "--nodes FILE");
}

#[test]
fn cases_of_junit_keep_their_names_from_one_month_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    for nodes in [2, 50] {
        let names = |host: &str, image: &str, day: &str| -> Vec<String> {
            let text = check(&folder, nodes, host, image)
                .args(["r.example/other:1", "--on", day, "--format", "junit"])
                .args(["--workloads", "pod.yaml", "--nodes", "nodes.json"])
                .prints();
            assert_contains!(text, "is available");
            let named = text.split(" name=\"").skip(1);
            named
                .map(|rest| rest.split('"').next().unwrap().to_owned())
                .collect()
        };
        let before = names("17763.973", "17763.1158", "2026-12-01");
        assert!(before.len() > 4, "{before:?}");
        assert_eq!(names("17763.1339", "17763.1217", "2027-03-01"), before);
    }
}
