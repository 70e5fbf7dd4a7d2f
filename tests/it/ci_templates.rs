//! Templates for pipelines and clusters: they are valid and use only commands and flags that exist.

use std::fs;
use std::process::Command as Process;

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::failure::Fails;

const TEMPLATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/ci");
const KUBEADM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters/kubeadm.json");

fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{TEMPLATES}/{path}")).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

#[test]
fn the_guide_shows_the_role_that_ships() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/check.md");
    let guide = fs::read_to_string(guide).unwrap();
    let shown = guide
        .split("```yaml\n")
        .filter_map(|rest| rest.split("```").next())
        .find(|block| block.contains("kind: ClusterRole"))
        .unwrap();
    let shown: Vec<Value> = serde_saphyr::from_multiple(shown).unwrap();
    assert_eq!(shown[0], documents("kubernetes/rbac.yaml")[2]);
}

/// Runs a command line of a template with `wincimg` first in the PATH.
fn with_wincimg(
    script: &str,
    folder: &std::path::Path,
    environment: &[(&str, &str)],
) -> (i32, String) {
    let program = assert_cmd::cargo::cargo_bin!("wincimg");
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let output = Process::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), printed)
}

/// A workload for which the kubeadm cluster has one outdated node.
fn workload(folder: &std::path::Path) {
    let pod = "kind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {kubernetes.io/os: windows}, \
               tolerations: [{operator: Exists}], containers: [{image: 127.0.0.1:1/app:1}]}\n";
    fs::write(folder.join("w.yaml"), pod).unwrap();
}

#[test]
fn the_action_runs_the_script_with_every_input() {
    let action = &documents("github/check-compat/action.yml")[0];
    let [install, step] = [0, 1].map(|step| &action["runs"]["steps"][step]);
    assert!(install["run"].as_str().unwrap().contains("install.sh"));
    assert!(step["run"].as_str().unwrap().contains("check-compat.sh"));
    let environment = step["env"].as_object().unwrap();
    let inputs = action["inputs"].as_object().unwrap();
    let of_install = install["env"].as_object().unwrap();
    assert_eq!(environment.len() + of_install.len(), inputs.len());
    let script = fs::read_to_string(format!("{TEMPLATES}/check-compat.sh")).unwrap();
    for name in environment.keys() {
        assert!(script.contains(&format!("${{{name}:-")), "{name}");
    }
}

#[test]
fn the_script_writes_every_report_and_keeps_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path());
    let output = folder.path().join("output");
    let run = |builds: &str, images: &str| {
        with_wincimg(
            &format!("{TEMPLATES}/check-compat.sh"),
            folder.path(),
            &[
                ("HOST_BUILDS", builds),
                ("IMAGES", images),
                ("WORKLOADS", "w.yaml"),
                ("GITHUB_OUTPUT", output.to_str().unwrap()),
            ],
        )
    };
    let (code, printed) = run("17763.973 20348.1", "127.0.0.1:1/other:1");
    assert_eq!(code, 1, "{printed}");
    for (name, part) in [
        ("check-compat.md", "127.0.0.1:1/other:1"),
        ("check-compat.xml", "<testsuites"),
        ("check-compat.sarif", "\"2.1.0\""),
        ("check-compat.html", "<!DOCTYPE html>"),
        ("check-compat.json", "\"compatible\": false"),
    ] {
        let text = fs::read_to_string(folder.path().join("wincimg-report").join(name)).unwrap();
        assert!(text.contains(part), "{name}");
    }
    assert_eq!(fs::read_to_string(&output).unwrap(), "compatible=false\n");
    let (code, printed) = run("nonsense", "");
    assert_eq!(code, 2, "{printed}");
}

#[test]
fn the_gitlab_job_is_a_script_that_works() {
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path());
    let job = &documents("gitlab/check-compat.yml")[0][".wincimg-check-compat"];
    let lines: Vec<&str> = job["script"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let script = format!("set -e\n{}", lines.join("\n"));
    let environment = [
        ("NODES", KUBEADM),
        ("WORKLOADS", "w.yaml"),
        ("STRICT", "true"),
    ];
    let (code, printed) = with_wincimg(&script, folder.path(), &environment);
    assert_eq!(code, 1, "{printed}");
    let junit = job["artifacts"]["reports"]["junit"].as_str().unwrap();
    assert!(folder.path().join(junit).is_file());
}

#[test]
fn the_cron_job_gives_arguments_that_the_program_takes() {
    let job = &documents("kubernetes/cronjob.yaml")[0];
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let arguments: Vec<&str> = pod["containers"][0]["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|argument| argument.as_str().unwrap())
        .collect();
    // The arguments are valid; only the pod's file is missing.
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(&arguments)
        .env("KUBECONFIG", "/nowhere/config")
        .fails(3, "cluster/config", &[]);
    let account = &documents("kubernetes/rbac.yaml")[1]["metadata"];
    assert_eq!(pod["serviceAccountName"], account["name"]);
    assert_eq!(job["metadata"]["namespace"], account["namespace"]);
    assert_eq!(job["spec"]["jobTemplate"]["spec"]["backoffLimit"], json!(0));
}

/// The arguments of a fleet's pods, with local files instead of theirs.
#[test]
fn the_pods_of_a_fleet_get_arguments_that_the_program_takes() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache").display().to_string();
    let config = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/crates/testkit/src/empty-config.json"
    );
    for (file, pod, environment) in [
        ("follow", "/spec/template/spec", None),
        ("job", "/spec/template/spec", Some("3")),
        ("cronjob", "/spec/jobTemplate/spec/template/spec", None),
    ] {
        let manifest = &documents(&format!("kubernetes/fleet/{file}.yaml"))[0];
        let pod = manifest.pointer(pod).unwrap();
        let arguments = pod["containers"][0]["args"].as_array().unwrap();
        let arguments = arguments.iter().map(|argument| {
            let argument = argument.as_str().unwrap();
            argument
                .replace(
                    "/fleet/fleet.toml",
                    &format!("{TEMPLATES}/kubernetes/fleet/fleet.toml"),
                )
                .replace("/registry/config.json", config)
                .replace("/tmp/cache", &cache)
                // The port may be in use here.
                .replace("--listen=:8080", "--listen=127.0.0.1:0")
        });
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.args(arguments).env("KUBECONFIG", "/nowhere/config");
        command.env_remove("JOB_COMPLETION_INDEX");
        if let Some(index) = environment {
            command.env("JOB_COMPLETION_INDEX", index);
        }
        command.fails(3, "cluster/config", &[]);
        let account = &documents("kubernetes/fleet/rbac.yaml")[1]["metadata"];
        assert_eq!(pod["serviceAccountName"], account["name"], "{file}");
        assert_eq!(manifest["metadata"]["namespace"], account["namespace"]);
    }
    let job = &documents("kubernetes/fleet/job.yaml")[0];
    let shards = format!("--shards={}", job["spec"]["completions"]);
    let arguments = &job["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(arguments.as_array().unwrap().contains(&json!(shards)));
    assert_eq!(job["spec"]["completionMode"], "Indexed");
}
