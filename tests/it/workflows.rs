//! The GitHub workflows: they are well-formed and have minimal permissions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wincimg_testkit::harness::skip;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Name, text and parsed value of each workflow.
fn workflows() -> Vec<(String, String, Value)> {
    let mut found: Vec<_> = fs::read_dir(Path::new(HERE).join(".github/workflows"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let meaning = serde_saphyr::from_str(&text).unwrap();
            (name, text, meaning)
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(!found.is_empty());
    found
}

/// A Python program that `tests/run` installs.
fn of_python(name: &str) -> PathBuf {
    let program = Path::new(HERE).join("target/venv/bin").join(name);
    if !program.is_file() {
        skip(&format!("{name} (tests/run installs it)"));
    }
    program
}

#[test]
fn actionlint_and_shellcheck_find_nothing() {
    let actionlint = of_python("actionlint");
    let shellcheck = of_python("shellcheck");
    let output = Command::new(actionlint)
        .args(["-no-color", "-shellcheck"])
        .arg(&shellcheck)
        .current_dir(HERE)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    let scripts = [
        "actions/setup/install.sh",
        "templates/ci/build.sh",
        "templates/ci/check-compat.sh",
        "templates/ci/lint.sh",
    ];
    let output = Command::new(shellcheck)
        .args(scripts)
        .current_dir(HERE)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
}

#[test]
fn zizmor_finds_nothing() {
    let zizmor = of_python("zizmor");
    let output = Command::new(zizmor)
        .args(["--offline", "--no-progress", "."])
        .current_dir(HERE)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
}

/// Name and text of each workflow and of each action.
fn all_texts() -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = workflows()
        .into_iter()
        .map(|(name, text, _)| (name, text))
        .collect();
    for entry in fs::read_dir(Path::new(HERE).join("actions")).unwrap() {
        let path = entry.unwrap().path().join("action.yml");
        let name = path.display().to_string();
        texts.push((name, fs::read_to_string(path).unwrap()));
    }
    texts
}

/// A tag can be moved to other code; a commit cannot.
#[test]
fn what_others_wrote_is_pinned_by_commit() {
    for (name, text) in all_texts() {
        let uses = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once("uses: "));
        for (_, what) in uses.filter(|(_, what)| !what.starts_with("./")) {
            let (action, version) = what.split_once(" # v").unwrap_or((what, ""));
            let (_, commit) = action.split_once('@').unwrap();
            assert!(
                commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{name}: {what}"
            );
            assert!(!version.is_empty(), "{name}: {what}");
        }
    }
}

#[test]
fn a_workflow_may_read_unless_a_job_says_why_more() {
    for (name, text, workflow) in workflows() {
        assert_eq!(workflow["permissions"]["contents"], "read", "{name}");
        assert_eq!(workflow["permissions"].as_object().unwrap().len(), 1);
        assert!(workflow["concurrency"]["group"].is_string(), "{name}");
        for (job, content) in workflow["jobs"].as_object().unwrap() {
            let limit = content["timeout-minutes"].as_u64();
            let is_called = content["uses"].is_string();
            assert!(
                is_called || limit.is_some_and(|limit| limit <= 120),
                "{name}: {job}"
            );
        }
        let mut writes = text.lines().filter(|line| line.contains(": write"));
        assert!(writes.all(|line| line.contains(": write # ")), "{name}");
        // An event's value inside a script would allow script injection.
        for script in scripts(&workflow) {
            assert!(!script.contains("${{"), "{name}: {script}");
        }
    }
}

fn scripts(workflow: &Value) -> Vec<String> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.filter_map(|job| job["steps"].as_array()).flatten();
    steps
        .filter_map(|step| Some(step["run"].as_str()?.to_owned()))
        .collect()
}

/// Files of this repository that a workflow runs exist.
#[test]
fn the_scripts_that_are_run_exist() {
    for (name, _, workflow) in workflows() {
        for script in scripts(&workflow) {
            let words = script.split(|c: char| c.is_whitespace() || "\"'|;()".contains(c));
            for word in words.filter(|word| {
                ["tests/", "packaging/", "actions/"]
                    .iter()
                    .any(|folder| word.trim_start_matches("./").starts_with(folder))
            }) {
                assert!(Path::new(HERE).join(word).exists(), "{name}: {word}");
            }
        }
    }
}
