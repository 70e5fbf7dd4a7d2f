//! Templates for pipelines and clusters: they are valid and use only commands and flags that exist.

use std::fs;
use std::process::Command as Process;

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::failure::Fails;
use crate::site::{Site, each, json_of};

const TEMPLATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/ci");
const KUBEADM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters/kubeadm.json");

fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{TEMPLATES}/{path}")).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
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
fn lists_of_the_script_go_on_after_a_line_end() {
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path());
    let pod = fs::read_to_string(folder.path().join("w.yaml")).unwrap();
    let other = pod.replace("name: p", "name: q").replace("app:1", "late:1");
    fs::write(folder.path().join("v.yaml"), other).unwrap();
    let (code, printed) = with_wincimg(
        &format!("{TEMPLATES}/check-compat.sh"),
        folder.path(),
        &[
            ("HOST_BUILDS", "17763.973\n20348.1\n"),
            ("IMAGES", "\n127.0.0.1:1/a:1\r\n\r\n127.0.0.1:1/b:1\r\n"),
            ("WORKLOADS", "w.yaml\r\nv.yaml\n"),
        ],
    );
    assert_eq!(code, 1, "{printed}");
    let report = folder.path().join("wincimg-report/check-compat.json");
    let report = fs::read_to_string(report).unwrap();
    assert_contains!(report, "20348.1", "/a:1", "/b:1", "/app:1", "/late:1");
}

/// A Dockerfile with an error and one without, in a folder `images`.
fn dockerfiles(folder: &std::path::Path) {
    let base = "FROM mcr.microsoft.com/windows/servercore:10.0.17763.973\n";
    for (name, line) in [("bad", "RUN rm -rf C:/x\n"), ("good", "RUN mkdir C:\\x\n")] {
        let place = folder.join("images").join(name);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("Dockerfile"), format!("{base}{line}")).unwrap();
    }
}

#[test]
fn the_lint_action_runs_the_script_with_every_input() {
    let text = fs::read_to_string(format!("{TEMPLATES}/../../actions/lint/action.yml")).unwrap();
    let action: Value = serde_saphyr::from_str(&text).unwrap();
    let [install, step] = [0, 1].map(|step| &action["runs"]["steps"][step]);
    assert!(install["run"].as_str().unwrap().contains("install.sh"));
    let script = step["run"].as_str().unwrap();
    let script = script.replace("$GITHUB_ACTION_PATH/../../templates/ci", TEMPLATES);
    let of_install = install["env"].as_object().unwrap();
    let environment = step["env"].as_object().unwrap();
    let inputs = action["inputs"].as_object().unwrap();
    assert_eq!(environment.len() + of_install.len(), inputs.len());
    let template = fs::read_to_string(format!("{TEMPLATES}/lint.sh")).unwrap();
    for name in environment.keys() {
        assert!(template.contains(&format!("${{{name}:-")), "{name}");
    }

    let folder = tempfile::tempdir().unwrap();
    dockerfiles(folder.path());
    let output = folder.path().join("output");
    let run = |dockerfiles: &str, ignore: &str| {
        let _ = fs::remove_file(&output);
        let environment = [
            ("DOCKERFILES", dockerfiles),
            ("IGNORE", ignore),
            ("GITHUB_OUTPUT", output.to_str().unwrap()),
        ];
        let (code, said) = with_wincimg(&script, folder.path(), &environment);
        (code, said, fs::read_to_string(&output).unwrap())
    };
    let (code, said, clean) = run("images/*/Dockerfile", "");
    assert_eq!((code, clean.as_str()), (1, "clean=false\n"), "{said}");
    assert_contains!(said, "::error file=images/bad/Dockerfile,line=2");
    let sarif = fs::read_to_string(folder.path().join("wincimg-report/lint.sarif")).unwrap();
    assert_contains!(sarif, "unix-command");
    let (code, said, clean) = run("images", "floating-base, unix-command");
    assert_eq!((code, clean.as_str()), (0, "clean=true\n"), "{said}");
    let (code, said, _) = run("images/good/Dockerfile\r\nimages/bad/Dockerfile\r\n", "");
    assert_eq!(code, 1, "{said}");
    let (code, said, _) = run("images", "nonsense");
    assert_eq!(code, 2, "{said}");
    let sarif = folder.path().join("wincimg-report/lint.sarif");
    assert!(!sarif.exists(), "there are no results");
}

#[test]
fn the_gitlab_lint_job_is_a_script_that_works() {
    let folder = tempfile::tempdir().unwrap();
    dockerfiles(folder.path());
    let job = &documents("gitlab/lint.yml")[0][".wincimg-lint"];
    let script = script_of(job);
    for (ignore, expected) in [("", 1), ("unix-command", 0)] {
        let environment = [("DOCKERFILES", "images"), ("IGNORE", ignore)];
        let (code, said) = with_wincimg(&script, folder.path(), &environment);
        assert_eq!(code, expected, "{said}");
        let report = job["artifacts"]["reports"]["codequality"].as_str().unwrap();
        let report = fs::read_to_string(folder.path().join(report)).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report.as_array().unwrap().len(), usize::from(expected == 1));
    }
}

fn script_of(job: &Value) -> String {
    let lines = job["script"].as_array().unwrap().iter();
    let lines: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
    format!("set -e\n{}", lines.join("\n"))
}

#[test]
fn the_gitlab_job_is_a_script_that_works() {
    let folder = tempfile::tempdir().unwrap();
    workload(folder.path());
    let job = &documents("gitlab/check-compat.yml")[0][".wincimg-check-compat"];
    let script = script_of(job);
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
    let config = wincimg_testkit::NO_CREDENTIALS;
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

/// The environment of a step that builds, with a registry, its bases and a project.
fn build_site() -> (Site, String) {
    let site = Site::new();
    site.write(
        "web/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nENV A=1\n",
    );
    let name = format!("{}/acme/web:1.4", site.host());
    (site, name)
}

/// Asserts that an image was pushed under this name, and returns its digest.
fn digest_of(site: &Site, name: &str) -> String {
    let output = site.command(&["digest", name]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_build_action_runs_its_script_with_every_input() {
    let text = fs::read_to_string(format!("{TEMPLATES}/../../actions/build/action.yml")).unwrap();
    let action: Value = serde_saphyr::from_str(&text).unwrap();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let [install, cache, step] = [0, 1, 2].map(|step| &steps[step]);
    assert!(install["run"].as_str().unwrap().contains("install.sh"));
    assert!(step["run"].as_str().unwrap().contains("build.sh"));
    let environment = step["env"].as_object().unwrap();
    let script = fs::read_to_string(format!("{TEMPLATES}/build.sh")).unwrap();
    for name in environment.keys() {
        assert!(script.contains(&format!("${{{name}:")), "{name}");
    }
    let inputs = action["inputs"].as_object().unwrap();
    let all = [install, cache, step].map(Value::to_string).concat();
    for name in inputs.keys() {
        let used = [format!("inputs.{name} "), format!("inputs.{name}\"")];
        assert!(used.iter().any(|used| all.contains(used)), "{name}");
    }
    for output in action["outputs"].as_object().unwrap().keys() {
        assert!(script.contains(&format!("\"{output}=$")), "{output}");
    }
}

#[test]
fn the_build_script_pushes_and_gives_later_steps_the_digest() {
    let (site, name) = build_site();
    let bases = format!("{}/mcr", site.host());
    let output = site.write("output", "");
    let summary = site.write("summary", "");
    let common = [
        ("IMAGE", "./web"),
        ("NAME", &name),
        ("HOST_BUILDS", "17763.973 20348.2402"),
        ("BASE_REGISTRY", &bases),
        ("SBOM", "spdx cyclonedx"),
        ("PROVENANCE", "true"),
        ("ARGS", "--label team=web --join"),
        ("GITHUB_OUTPUT", output.to_str().unwrap()),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
    ];
    let script = format!("{TEMPLATES}/build.sh");
    let (code, said) = with_wincimg(&script, site.folder.path(), &common);
    assert_eq!(code, 0, "{said}");
    let digest = digest_of(&site, &name);
    let reference = format!("{}/acme/web@{digest}", site.host());
    let metadata = "wincimg-report/metadata.json";
    assert_eq!(
        site.text("output"),
        format!("digest={digest}\nreference={reference}\nmetadata={metadata}\n")
    );
    assert!(site.text("summary").contains(&format!("`{reference}`")));
    assert_eq!(site.text("wincimg-report/digest"), digest);
    let metadata: Value = serde_json::from_str(&site.text(metadata)).unwrap();
    assert_eq!(metadata["containerimage.digest"], digest);
    // The context of the next build is the same.
    site.write(
        "Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nCOPY . /app/\n",
    );
    let mut here = common;
    here[0].1 = ".";
    let digests = [(); 2].map(|()| {
        fs::write(&output, "").unwrap();
        fs::write(&summary, "").unwrap();
        let here = [&here[..], &[("PUSH", "false")]].concat();
        let (code, said) = with_wincimg(&script, site.folder.path(), &here);
        assert_eq!(code, 0, "{said}");
        site.text("wincimg-report/digest")
    });
    assert_eq!(digests[0], digests[1]);

    let local = [&common[..], &[("PUSH", "false")]].concat();
    let (code, said) = with_wincimg(&script, site.folder.path(), &local);
    assert_eq!(code, 0, "{said}");
    assert!(site.path("wincimg-report/image/index.json").is_file());
    // One of the hosts has no base.
    let partly = [&common[..], &[("HOST_BUILDS", "17763.973 18363.592")]].concat();
    let (code, said) = with_wincimg(&script, site.folder.path(), &partly);
    assert_eq!(code, 1, "{said}");
    assert_eq!(site.text("wincimg-report/digest"), digest_of(&site, &name));
    let broken = [&common[..], &[("HOST_BUILDS", "nonsense")]].concat();
    assert_eq!(with_wincimg(&script, site.folder.path(), &broken).0, 2);
    let nameless = &common[..1];
    let (code, said) = with_wincimg(&script, site.folder.path(), nameless);
    assert!(code != 0 && said.contains("NAME"), "{said}");
}

#[test]
fn the_gitlab_build_pushes_and_writes_variables_for_later_jobs() {
    let (site, name) = build_site();
    let job = &documents("gitlab/build.yml")[0][".wincimg-build"];
    let lines = job["script"].as_array().unwrap().iter();
    let lines: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
    let script = format!("set -e\n{}", lines.join("\n"));
    let bases = format!("{}/mcr", site.host());
    let mut environment = vec![
        ("IMAGE", "./web"),
        ("NAME", name.as_str()),
        ("HOST_BUILDS", "17763.973"),
        ("BASE_REGISTRY", &bases),
    ];
    let set: Vec<&str> = environment.iter().map(|(name, _)| *name).collect();
    let defaults = job["variables"].as_object().unwrap().iter();
    let defaults = defaults.filter(|(name, _)| !set.contains(&name.as_str()));
    environment.extend(defaults.map(|(name, value)| (name.as_str(), value.as_str().unwrap())));
    let dotenv = job["artifacts"]["reports"]["dotenv"].as_str().unwrap();
    let repository = name.rsplit_once(':').unwrap().0;
    // The port is not a tag.
    for name in [name.as_str(), repository] {
        environment[1].1 = name;
        let (code, said) = with_wincimg(&script, site.folder.path(), &environment);
        assert_eq!(code, 0, "{said}");
        let digest = digest_of(&site, name);
        assert_eq!(
            site.text(dotenv),
            format!("IMAGE_DIGEST={digest}\nIMAGE_REFERENCE={repository}@{digest}\n")
        );
    }
    let cached = job["cache"]["paths"][0].as_str().unwrap();
    assert!(script.contains(&format!("--cache-dir {}", cached.trim_end_matches('/'))));
    // What the job writes is not in an image of the whole project.
    let recipe = "name = \"web\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n";
    site.write("project/recipe.toml", recipe);
    let whole = format!("{}/acme/whole:1", site.host());
    environment[..2].copy_from_slice(&[("IMAGE", "."), ("NAME", whole.as_str())]);
    let built = [(); 2].map(|()| {
        let (code, said) = with_wincimg(&script, &site.path("project"), &environment);
        assert_eq!(code, 0, "{said}");
        site.text(&format!("project/{dotenv}"))
    });
    assert!(site.path("project").join(cached).is_dir());
    assert_eq!(built[0], built[1]);
}

#[test]
fn the_azure_steps_build_and_set_variables() {
    let (site, name) = build_site();
    let template = &documents("azure/build.yml")[0];
    let parameters = template["parameters"].as_array().unwrap();
    let step = &template["steps"][1];
    let parameter = |text: &str| {
        let name = text.strip_prefix("${{ parameters.")?.strip_suffix(" }}")?;
        parameters.iter().find(|it| it["name"] == name)
    };
    let given = [
        ("IMAGE", "./web"),
        ("NAME", name.as_str()),
        ("HOST_BUILDS", "17763.973"),
    ];
    let bases = format!("{}/mcr", site.host());
    let mut environment = given.to_vec();
    environment.push(("BASE_REGISTRY", &bases));
    for (variable, text) in step["env"].as_object().unwrap() {
        let parameter = parameter(text.as_str().unwrap());
        let default = parameter.unwrap()["default"].as_str().unwrap_or_default();
        if !environment.iter().any(|(known, _)| known == variable) {
            environment.push((variable, default));
        }
    }
    let script = step["script"].as_str().unwrap();
    let repository = name.rsplit_once(':').unwrap().0;
    // The port is not a tag.
    for name in [name.as_str(), repository] {
        environment[1].1 = name;
        let (code, said) = with_wincimg(script, site.folder.path(), &environment);
        assert_eq!(code, 0, "{said}");
        let digest = digest_of(&site, name);
        for (variable, value) in [
            ("digest", &digest),
            ("reference", &format!("{repository}@{digest}")),
        ] {
            let set = format!("##vso[task.setvariable variable=wincimg.{variable}]{value}\n");
            assert_contains!(said, &set);
        }
    }
}

#[test]
fn the_tekton_step_builds_and_writes_its_results() {
    let (site, name) = build_site();
    let task = &documents("tekton/build.yaml")[0];
    let step = &task["spec"]["steps"][0];
    let results = each(&task["spec"]["results"], "name");
    assert_eq!(results, ["IMAGE_URL", "IMAGE_DIGEST"]);
    let (url, digest) = (site.path("url"), site.path("digest"));
    let bases = format!("--base-registry {}/mcr", site.host());
    let given = [
        ("IMAGE", "./web"),
        ("NAME", &name),
        ("TAGS", ""),
        ("LABELS", ""),
        ("BUILD_ARGS", ""),
        ("HOST_BUILDS", "17763.973"),
        ("ARGS", &bases),
        ("CONFIG", ""),
        ("URL_RESULT", url.to_str().unwrap()),
        ("DIGEST_RESULT", digest.to_str().unwrap()),
    ];
    let declared = each(&step["env"], "name");
    assert_eq!(declared.len(), given.len());
    assert!(
        given
            .iter()
            .all(|(name, _)| declared.iter().any(|it| it == name))
    );
    let script = step["script"].as_str().unwrap();
    // Two runs of the tests share no file.
    let script = script.replace("/tmp/", &format!("{}/tmp-", site.folder.path().display()));
    let (code, said) = with_wincimg(&script, site.folder.path(), &given);
    assert_eq!(code, 0, "{said}");
    assert_eq!(site.text("digest"), digest_of(&site, &name));
    assert_eq!(site.text("url"), name);
}

/// The scripts that build, with one value a line in three lists.
#[test]
fn the_build_scripts_take_values_with_spaces_and_quotes() {
    let build = fs::read_to_string(format!("{TEMPLATES}/build.sh")).unwrap();
    let gitlab = script_of(&documents("gitlab/build.yml")[0][".wincimg-build"]);
    let azure = &documents("azure/build.yml")[0]["steps"][1]["script"];
    let tekton = &documents("tekton/build.yaml")[0]["spec"]["steps"][0]["script"];
    let scripts: [&str; 4] = [
        &build,
        &gitlab,
        azure.as_str().unwrap(),
        tekton.as_str().unwrap(),
    ];
    for script in scripts {
        let (site, name) = build_site();
        let dockerfile = "FROM mcr.microsoft.com/windows/nanoserver:1809\nARG SAID\nENV A=$SAID\n";
        site.write("web/Dockerfile", dockerfile);
        // A pattern that is expanded would become this.
        site.write("star=1", "");
        let other = format!("{}/acme/web:latest", site.host());
        // The ends of lines as Windows and forms of the web write them.
        let tags = format!("{other}\r\n {}/acme/web:1 \r\n", site.host());
        let bases = format!("--base-registry {}/mcr --label star=*\r\n", site.host());
        let (url, digest) = (site.path("url"), site.path("digest"));
        let environment = [
            ("IMAGE", "./web"),
            ("NAME", &name),
            ("TAGS", &tags),
            ("LABELS", "title=A \"web\" shop\r\nteam=it's ours\n"),
            ("BUILD_ARGS", "SAID=two words *\r\n\r\nUNUSED=1"),
            ("HOST_BUILDS", "17763.973\r"),
            ("ARGS", &bases),
            ("NODES", ""),
            ("SBOM", ""),
            ("BASE_REGISTRY", ""),
            ("CONFIG", ""),
            ("URL_RESULT", url.to_str().unwrap()),
            ("DIGEST_RESULT", digest.to_str().unwrap()),
        ];
        let script = script.replace("/tmp/", &format!("{}/tmp-", site.folder.path().display()));
        let (code, said) = with_wincimg(&script, site.folder.path(), &environment);
        assert_eq!(code, 0, "{said}");
        assert_eq!(digest_of(&site, &other), digest_of(&site, &name));
        let found = json_of(&mut site.with_no_bases(&["inspect", &name]));
        let image = &found["images"][0];
        for (label, value) in [
            ("title", "A \"web\" shop"),
            ("team", "it's ours"),
            ("star", "*"),
        ] {
            assert_eq!(image["labels"][label], value);
        }
        let variables = image["env"].as_array().unwrap();
        assert!(variables.contains(&json!("A=two words *")), "{image}");
    }
}

#[test]
fn the_first_of_the_tags_is_the_name_of_the_build_script() {
    let (site, name) = build_site();
    let bases = format!("{}/mcr", site.host());
    let tags = format!("{name}\n{}/acme/web:latest", site.host());
    let environment = [
        ("IMAGE", "./web"),
        ("TAGS", tags.as_str()),
        ("HOST_BUILDS", "17763.973"),
        ("BASE_REGISTRY", &bases),
    ];
    let script = format!("{TEMPLATES}/build.sh");
    let (code, said) = with_wincimg(&script, site.folder.path(), &environment);
    assert_eq!(code, 0, "{said}");
    let metadata: Value = serde_json::from_str(&site.text("wincimg-report/metadata.json")).unwrap();
    assert_eq!(metadata["image.name"], tags.replace('\n', ","));
    // A layout has one name.
    let local = [&environment[..], &[("PUSH", "false")]].concat();
    let (code, said) = with_wincimg(&script, site.folder.path(), &local);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn the_build_job_gives_arguments_that_the_program_takes() {
    let (site, name) = build_site();
    let job = &documents("kubernetes/build.yaml")[0];
    let pod = &job["spec"]["template"]["spec"];
    let arguments = pod["containers"][0]["args"].as_array().unwrap().iter();
    let tag = format!("--tag={name}");
    let arguments: Vec<String> = arguments
        .map(|argument| match argument.as_str().unwrap() {
            "/source" => "./web".to_owned(),
            "--registry-config=/registry/config.json" => String::new(),
            "--cache-dir=/tmp/cache" => "--cache-dir=cache".to_owned(),
            text if text.starts_with("--tag=") => tag.clone(),
            // The stand-in bases are of these versions.
            "--host-build=ltsc2019" => "--host-build=17763.973".to_owned(),
            "--host-build=ltsc2022" => "--host-build=20348.2402".to_owned(),
            text => text.to_owned(),
        })
        .filter(|argument| !argument.is_empty())
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    site.with_bases(&words).assert().success();
    digest_of(&site, &name);
    assert_eq!(pod["automountServiceAccountToken"], false);
}

/// `read` splits a list without expanding patterns: the program does.
#[test]
fn the_check_script_takes_patterns() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deploy")).unwrap();
    workload(&folder.path().join("deploy"));
    for workloads in ["deploy/*.yaml", "deploy"] {
        let (code, said) = with_wincimg(
            &format!("{TEMPLATES}/check-compat.sh"),
            folder.path(),
            &[("HOST_BUILDS", "17763.973"), ("WORKLOADS", workloads)],
        );
        assert_eq!(code, 1, "{workloads}: {said}");
    }
}
