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

/// Checks files against the schema of that name, and returns the problems.
fn schema_problems(schema: &str, files: &[PathBuf]) -> Option<String> {
    let mut command = Command::new(of_python("check-jsonschema"));
    command.args(["--builtin-schema", &format!("vendor.{schema}")]);
    if schema != "github-actions" {
        command.args(["--data-transform", schema]);
    }
    let output = command.args(files).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (!output.status.success()).then_some(printed)
}

/// The example in a template's first comment.
fn example(text: &str) -> String {
    let comment = text.lines().take_while(|line| line.starts_with('#'));
    let example = comment.filter_map(|line| line.strip_prefix("#   "));
    example.collect::<Vec<_>>().join("\n")
}

/// The steps for GitHub that actions and pages show.
fn steps_for_github() -> Vec<String> {
    let read = |path: String| fs::read_to_string(Path::new(HERE).join(path)).unwrap();
    let actions = ["build", "check-compat", "lint", "setup"].into_iter();
    let actions = actions.map(|name| example(&read(format!("actions/{name}/action.yml"))));
    let pages = ["check", "dockerfiles"].into_iter();
    let blocks = pages.flat_map(|page| {
        let text = read(format!("docs/guide/{page}.md"));
        let blocks = text.split("```yaml\n").skip(1);
        let blocks = blocks.filter_map(|block| block.split("```").next());
        let steps = blocks.filter(|block| block.contains("uses: "));
        steps.map(str::to_owned).collect::<Vec<_>>()
    });
    actions.chain(blocks).collect()
}

/// It also refuses actions of others that run on a runtime that GitHub removes.
#[test]
fn actionlint_finds_nothing_in_the_steps_that_users_copy() {
    let actionlint = of_python("actionlint");
    let folder = tempfile::tempdir().unwrap();
    let shown = steps_for_github();
    assert_eq!(shown.len(), 6, "{shown:?}");
    for steps in shown {
        let key = if steps.starts_with('-') {
            "steps:\n"
        } else {
            ""
        };
        let job = format!("runs-on: ubuntu-latest\n{key}{steps}").replace('\n', "\n    ");
        let file = folder.path().join("workflow.yml");
        fs::write(&file, format!("on: push\njobs:\n  example:\n    {job}\n")).unwrap();
        let mut command = Command::new(&actionlint);
        let output = command.arg("-no-color").arg(&file).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}");
    }
}

/// The example in a template's first comment, and the template. GitLab's schema allows anything in a
/// hidden job, so its dot is removed.
fn example_and_template(path: &str, folder: &Path) -> [PathBuf; 2] {
    let text = fs::read_to_string(Path::new(HERE).join(path)).unwrap();
    let jobs = text.replace("\n.wincimg", "\nwincimg");
    [("example", example(&text)), ("template", jobs)].map(|(kind, text)| {
        let file = folder.join(format!("{kind}-{}", path.replace('/', "-")));
        fs::write(&file, text).unwrap();
        file
    })
}

#[test]
fn the_templates_fit_the_schemas_of_their_services() {
    let folder = tempfile::tempdir().unwrap();
    let places = |service: &str, names: &[&str]| -> Vec<PathBuf> {
        let paths = names
            .iter()
            .map(|name| format!("templates/ci/{service}/{name}.yml"));
        paths
            .flat_map(|path| example_and_template(&path, folder.path()))
            .collect()
    };
    let gitlab = places("gitlab", &["build", "check-compat", "lint"]);
    let azure = places("azure", &["build"]);
    let actions = ["build", "check-compat", "lint", "setup"].map(|name| {
        Path::new(HERE)
            .join("actions")
            .join(name)
            .join("action.yml")
    });
    for (schema, files) in [
        ("gitlab-ci", &gitlab[..]),
        ("azure-pipelines", &azure),
        ("github-actions", &actions),
    ] {
        assert_eq!(schema_problems(schema, files), None, "{schema}");
    }
    // The schemas do find what is wrong.
    let template = fs::read_to_string(&gitlab[1]).unwrap();
    assert!(template.contains("\nwincimg-build:"));
    fs::write(&gitlab[1], template.replace("reports:", "report:")).unwrap();
    let found = schema_problems("gitlab-ci", &gitlab[1..2]);
    assert!(found.is_some_and(|found| found.contains("wincimg-build")));
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

/// The variable with the base of an image of the release.
const SHELL_BASE: &str = "WINCIMG_SHELL_BASE";

/// A tag can be moved to other code; a commit or digest cannot.
#[test]
fn what_others_wrote_is_pinned() {
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
        let fields = text.lines().filter_map(|line| line.trim().split_once(": "));
        for (field, image) in fields.filter(|(field, _)| matches!(*field, "image" | SHELL_BASE)) {
            assert!(image.contains("@sha256:"), "{name}: {field}: {image}");
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
