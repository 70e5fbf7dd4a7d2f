//! End-to-end tests of `wincimg check-compat`.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};
use serde_json::Value;

use crate::failure::{Fails, note};
use crate::site::{answer_of, folder_of, wincimg};

fn check_compat() -> Command {
    // An empty folder, so that no local wincimg.toml applies.
    wincimg(&std::env::temp_dir(), &["check-compat"])
}

const NODES: &str = r#"{"apiVersion":"v1","kind":"List","items":[
  {"kind":"Node","metadata":{"name":"win-a"},"status":{"nodeInfo":{"operatingSystem":"windows",
    "kernelVersion":"10.0.17763.973","osImage":"Windows Server 2019 Datacenter"}}},
  {"kind":"Node","metadata":{"name":"win-b"},"status":{"nodeInfo":{"operatingSystem":"windows",
    "kernelVersion":"10.0.17763.1158","osImage":"Windows Server 2019 Datacenter"}}},
  {"kind":"Node","metadata":{"name":"linux-a"},"status":{"nodeInfo":{"operatingSystem":"linux"}}}]}"#;

#[test]
fn the_line_of_2020_02_is_found_and_the_fix_names_the_kb() {
    let (code, report) = answer_of(
        check_compat().args(["--host-build", "17763.973", "--image-build", "17763.1158"]),
    );
    assert_eq!(code, 1);
    assert_eq!(report["compatible"], false);
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "baseline-2020-02");
    assert_eq!(check["verdict"], "incompatible");
    assert!(check["fix"].as_str().unwrap().contains("KB4549949"));
    assert_eq!(check["host"]["build"], "17763.973");
    assert_eq!(check["image"]["build"], "17763.1158");
    assert_eq!(check["workload"], Value::Null);
    assert_eq!(check["isolation"], "process");
}

#[test]
fn a_limit_of_yaml_is_no_message_for_programmers() {
    let anchors = (0..1_000_001).map(|number| format!("- &a{number} x\n"));
    let anchors = anchors.collect::<Vec<_>>().concat();
    for text in ["kind: &x [*x]\n", &anchors] {
        let printed = check_compat()
            .args(["--nodes", "-", "--image-build", "17763.1158"])
            .write_stdin(text)
            .tells(2);
        assert!(printed.contains("alias"), "{printed}");
        assert!(
            !printed.contains("budget") && !printed.contains("weak"),
            "{printed}"
        );
    }
}

#[test]
fn hyper_v_isolation_runs_older_images() {
    check_compat()
        .args(["--host-build", "20348.2402", "--image-build", "17763.5696"])
        .args(["--isolation", "hyperv"])
        .assert()
        .code(0)
        .stdout(contains("hyperv-ok"));
}

#[test]
fn newer_hosts_run_images_back_to_the_last_ltsc_release() {
    let (code, report) =
        answer_of(check_compat().args(["--host-build", "26100.2314", "--image-build", "20348.1"]));
    assert_eq!(code, 0);
    assert_eq!(report["checks"][0]["rule"], "downlevel-ltsc");
}

#[test]
fn nodes_come_from_kubectls_output_on_stdin() {
    check_compat()
        .args(["--nodes", "-", "--image-build", "17763.1158"])
        .write_stdin(NODES)
        .assert()
        .code(1)
        .stderr(note(&["1", "3"]))
        .stdout(
            contains("win-a (17763.973)")
                .and(contains("win-b (17763.1158)"))
                .and(contains("2 checks: 1 compatible, 1 incompatible")),
        );
}

#[test]
fn a_windows_node_without_a_version_is_unknown_and_no_error() {
    let nodes = r#"{"kind":"List","items":[{"metadata":{"name":"w"},
        "status":{"nodeInfo":{"operatingSystem":"windows","kernelVersion":"?"}}}]}"#;
    let (code, report) = answer_of(
        check_compat()
            .args(["--nodes", "-", "--image-build", "17763.1158"])
            .write_stdin(nodes),
    );
    assert_eq!(code, 1, "a gate does not open on what is unknown");
    assert_eq!(report["checks"][0]["verdict"], "unknown");
    assert_eq!(report["checks"][0]["rule"], "unknown-build");
    assert_eq!(report["checks"][0]["host"]["name"], "w");
    assert_eq!(report["checks"][0]["host"]["build"], Value::Null);
    // The verdict is also the beginning of the rule.
    check_compat()
        .args(["--nodes", "-", "--image-build", "17763.1158"])
        .write_stdin(nodes)
        .assert()
        .stdout(contains(": unknown (unknown-build)\n").and(contains("(unknown (").not()));
}

#[test]
fn the_matrix_fits_the_terminal_however_many_images_there_are() {
    let mut command = check_compat();
    command.args(["--host-build", "20348.2402", "--on", "2024-06-01"]);
    for revision in 0..120 {
        command.args(["--image-build", &format!("20348.{revision}")]);
    }
    let text = command.prints();
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert_contains!(text, "  20348.119\n");
    assert!(text.starts_with("120 images "), "{text}");
}

#[test]
fn many_hosts_are_shown_by_build() {
    let mut nodes = String::from(r#"{"kind":"List","items":["#);
    for index in 0..100 {
        let comma = if index == 0 { "" } else { "," };
        write!(
            nodes,
            r#"{comma}{{"metadata":{{"name":"n{index}"}},"status":{{"nodeInfo":
            {{"operatingSystem":"windows","kernelVersion":"10.0.17763.{}"}}}}}}"#,
            973 + index % 2
        )
        .unwrap();
    }
    nodes.push_str("]}");
    check_compat()
        .args(["--nodes", "-", "--image-build", "17763.973"])
        .write_stdin(nodes)
        .assert()
        .code(0)
        .stdout(
            contains("17763.973 · Server 2019 · 50 nodes  ok")
                .and(contains("17763.974 · Server 2019 · 50 nodes  ok")),
        );
}

#[test]
fn markdown_and_junit_carry_the_same_answer() {
    let run = |format| {
        check_compat()
            .args(["--host-build", "17763.973", "--image-build", "17763.1158"])
            .args(["--on", "2024-06-01", "--format", format])
            .prints()
    };
    insta::assert_snapshot!("markdown", run("markdown"));
    insta::assert_snapshot!("junit", run("junit"));
}

#[test]
fn a_report_goes_to_a_file_in_one_piece() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    check_compat()
        .args(["--host-build", "20348.1", "--image-build", "20348.1"])
        .args(["--format", "json", "--output"])
        .arg(&file)
        .assert()
        .code(0)
        .stdout("");
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(report["compatible"], true);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_report_for_a_dash_goes_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let check = |more: &[&str]| {
        let mut command = check_compat();
        command
            .current_dir(folder.path())
            .args(["--host-build", "20348.1", "--image-build", "20348.1"])
            .args(more);
        command
    };
    check(&["--output", "-"])
        .assert()
        .code(0)
        .stdout(contains("1 check: 1 compatible"));
    // Two reports on stdout would be no document.
    for output in [&[][..], &["--output", "-"], &["--output", "/dev/stdout"]] {
        check(&[&["--report", "json:-"], output].concat()).fails(
            2,
            "usage",
            &["two outputs", "stdout"],
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    check(&["--report", "json:-", "--output", "report.txt"])
        .assert()
        .code(0)
        .stdout(starts_with("{"));
}

#[test]
fn a_file_is_for_one_report() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let check = || {
        let mut command = check_compat();
        command
            .current_dir(folder.path())
            .args(["--host-build", "20348.1", "--image-build", "20348.1"]);
        command
    };
    for (first, second) in [("r.json", "./r.json"), ("out/r", "out/../out/r")] {
        let refused = check()
            .args(["--report", &format!("html:{first}"), "--output", second])
            .fails(2, "usage", &["two outputs"]);
        assert!(!refused.hint.is_empty(), "{refused:#?}");
        assert!(!folder.path().join(first).exists());
    }
    check()
        .args(["--report", "html:/dev/null", "--output", "/dev/null"])
        .assert()
        .code(0);
}

#[test]
fn a_report_goes_through_a_pipe_and_leaves_links_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let report = |to: &std::path::Path| {
        check_compat()
            .args(["--host-build", "20348.1", "--image-build", "20348.1"])
            .args(["--format", "json", "--output"])
            .arg(to)
            .assert()
            .code(0);
    };
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    // A pipe open at both ends does not block.
    let mut both_ends = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    report(&pipe);
    assert!(!std::fs::metadata(&pipe).unwrap().is_file());
    let mut read = [0; 2];
    both_ends.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"{\n");

    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    report(&link);
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with('{'));
}

#[test]
fn bad_input_is_reported_with_its_place_and_exit_code_2() {
    let image = ["--image-build", "20348.1"];
    for (input, line, values) in [
        (r#"{"kind":"List","items":["#, Some(1), &["24"][..]),
        (
            "{\"kind\":\"List\",\n\"items\":[7]}",
            Some(2),
            &["10", "items[0]"],
        ),
        (r#"{"kind":"List","items":[]}"#, None, &[]),
        (r#"{"kind":"PodList","items":[]}"#, None, &["\"PodList\""]),
        ("", None, &[]),
        ("nodes", Some(1), &["1"]),
    ] {
        let failure = check_compat()
            .args(["--nodes", "-"])
            .args(image)
            .write_stdin(input)
            .fails(2, "cluster/nodes", &["stdin"])
            .names(values);
        assert_eq!(failure.line, line, "{failure:#?}");
        let file = line.map(|_| "stdin");
        assert_eq!(failure.file.as_deref(), file, "{failure:#?}");
        assert!(!failure.hint.is_empty(), "{failure:#?}");
        assert!(failure.stderr.lines().count() <= 4, "{failure:#?}");
    }
    check_compat()
        .args(["--host-build", "1776.3"])
        .args(image)
        .assert()
        .code(2)
        .stderr(contains("\"1776.3\"").and(contains("17763.973")));
    check_compat()
        .args(["--host-build", "20348.1", "--on", "yesterday"])
        .args(image)
        .assert()
        .code(2)
        .stderr(contains("\"yesterday\"").and(contains("YYYY-MM-DD")));
    check_compat().assert().code(2).stderr(contains("hint: "));
    check_compat()
        .args(["--host-build", "20348.1", "--images", "built.json"])
        .fails(2, "usage", &["--images"]);
    check_compat()
        .args(["--nodes", "/nowhere/nodes.json"])
        .args(image)
        .fails(3, "file/io", &["/nowhere/nodes.json"]);
}

#[test]
fn a_cluster_without_windows_nodes_is_distinguished_from_an_empty_list() {
    let refused = |items: &str, code: &str| {
        check_compat()
            .args(["--nodes", "-", "--image-build", "20348.1"])
            .write_stdin(format!(r#"{{"kind":"List","items":[{items}]}}"#))
            .fails(2, code, &["stdin"]);
    };
    let linux = r#"{"status":{"nodeInfo":{"operatingSystem":"linux"}}}"#;
    refused(linux, "usage");
    refused("", "cluster/nodes");
}

#[test]
fn a_file_of_40_mb_that_is_not_a_node_list_is_refused_at_its_first_bad_byte() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{{\"kind\": \"List\", \"items\": [").unwrap();
    file.as_file().set_len(40 << 20).unwrap();
    check_compat()
        .arg("--nodes")
        .arg(file.path())
        .args(["--image-build", "20348.1"])
        .timeout(std::time::Duration::from_secs(20))
        .assert()
        .code(2)
        .stderr(contains("line 2, column 1"));
}

#[test]
fn defaults_come_from_the_folders_wincimg_toml() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("wincimg.toml"), text).unwrap();
    let run = |arguments: &[&str]| {
        check_compat()
            .current_dir(folder.path())
            .args(arguments)
            .assert()
    };
    write("[check-compat]\nhost-build = [\"17763.973\"]\nimage-build = \"17763.1158\"\n");
    run(&[]).code(1).stdout(contains("baseline-2020-02"));
    run(&["--host-build", "17763.1158"]).code(0);
    write("strct = true\n");
    let excerpt = "\n  1 | strct = true\n    | ^^^^^\nhint: ";
    let guessed = contains("--strct").and(contains(excerpt).and(contains("strict")));
    run(&[]).code(2).stderr(guessed);
    write("[check-compat]\nhost-build = [17763.973]\n");
    let place = contains("wincimg.toml:2:15").and(contains("host-build"));
    run(&[]).code(2).stderr(place.and(contains("17763.973")));
    write("[check-compat]\nstrict = true");
    run(&["--config", "/nowhere.toml"])
        .code(3)
        .stderr(contains("/nowhere.toml"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.args([
        "check-compat", "--format", "json", "--host-build", "20348.1", "--on", "2026-09-15",
    ]);
    for revision in 0..1000 {
        command.arg(format!("--image-build=20348.{revision}"));
    }
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The reading end closes while more than a pipe's buffer is still to be written.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn images_that_lack_the_months_update_are_named_and_nothing_else_changes() {
    let checked = |format: &str, day: &str| {
        let output = check_compat()
            .args(["--host-build", "26100.33296", "--strict"])
            .args([
                "--image-build", "26100.33296", "--on", day, "--format", format,
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for format in ["text", "markdown", "html", "junit"] {
        let text = checked(format, "2026-09-20");
        // Text is wrapped for the screen.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for value in ["26100.33296", "KB5120233", "KB5122871", "2026-09-08"] {
            assert!(text.contains(value), "{format}: {text}");
        }
    }
    let report: Value = serde_json::from_str(&checked("json", "2026-09-20")).unwrap();
    assert_eq!(
        report["behind"],
        serde_json::json!([{
            "image": {"reference": null, "build": "26100.33296"},
            "kb": "KB5120233",
            "newest": {"build": "26100.33438", "kb": "KB5122871", "date": "2026-09-08"},
            "months": 1,
            "at_least": false,
        }])
    );
    // No update was out yet.
    assert!(!checked("json", "2024-06-01").contains("behind"));
    // The table does not cover the day, but what it has is certain.
    let report: Value = serde_json::from_str(&checked("json", "2027-01-01")).unwrap();
    let behind = &report["behind"][0];
    assert_eq!(behind["months"], 1);
    assert_eq!(behind["at_least"], true);
    let text = checked("markdown", "2027-01-01");
    assert_contains!(text, "at least 1 month behind");
}

#[test]
fn a_kustomization_is_said_to_be_built_first() {
    let folder = folder_of(&[
        (
            "kustomization.yaml",
            "resources: [pod.yaml]\npatches: [{path: ./patch.yaml}, {patch: 'kind: Pod'}]\n",
        ),
        ("pod.yaml", POD),
        (
            "patch.yaml",
            "kind: Pod\nmetadata: {name: patched}\nspec: {nodeSelector: {pool: a}}\n",
        ),
    ]);
    let build = format!(
        "kubectl kustomize {} | wincimg check-compat --host-build 20348.1 --offline -f -",
        folder.path().display()
    );
    let check = || {
        let mut command = check_compat();
        command.args(["--offline", "--host-build", "20348.1", "-f"]);
        command.arg(folder.path());
        command
    };
    check()
        .assert()
        .code(1)
        .stdout(contains("default/p ").and(contains("patched").not()))
        .stderr(contains(&build).and(note(&["patch.yaml"])));
    // Reports say what is not checked, with --quiet, too.
    let (_, report) = answer_of(check().arg("-q"));
    assert_eq!(report["skipped"][0]["kind"], "Kustomization", "{report}");
    let file = report["skipped"][0]["file"].as_str().unwrap();
    assert_contains!(file, "kustomization.yaml");
    std::fs::remove_file(folder.path().join("pod.yaml")).unwrap();
    let failure = check().arg("-q").fails(2, "usage", &[]);
    assert_contains!(failure.hint, &build);
    // Stdin has the images already.
    let failure = check()
        .args(["--images", "-"])
        .write_stdin("[]")
        .fails(2, "usage", &[]);
    assert!(failure.hint.ends_with(" > rendered.yaml"), "{failure:#?}");
    check_compat()
        .args(["--host-build", "20348.1", "--images", "-", "-f", "-"])
        .write_stdin("[]")
        .fails(2, "usage", &["only once"]);
}

const POD: &str =
    "kind: Pod\nmetadata: {name: p}\nspec: {os: {name: windows}, containers: [{image: a/b:1}]}\n";

#[test]
fn the_templates_of_a_chart_are_said_to_be_rendered_first() {
    let template = "{{- if .Values.web }}\nkind: Pod\n{{- end }}\n";
    let folder = folder_of(&[
        ("pod.yaml", POD),
        ("web/Chart.yaml", "apiVersion: v2\nname: web\n"),
        ("web/templates/web.yaml", template),
        ("web/charts/db/Chart.yaml", "apiVersion: v2\nname: db\n"),
        ("web/charts/db/templates/db.yaml", template),
    ]);
    let check = |path: &str| {
        let mut command = wincimg(folder.path(), &["check-compat", "--host-build", "20348.1"]);
        command.args(["--image-build", "20348.1", "--offline", "-f", path]);
        command
    };
    let render = "helm template web | wincimg check-compat --host-build 20348.1 --offline -f -";
    let step =
        format!("error: skipped the templates of web: render the Helm chart first\nhint: {render}");
    check("pod.yaml")
        .args(["-f", "web", "-q"])
        .assert()
        .code(1)
        .stderr(contains(step).count(1));
    let (_, report) = answer_of(check("pod.yaml").args(["-f", "web", "-q"]));
    assert_eq!(report["skipped"][0]["kind"], "Chart", "{report}");
    // A chart that is not checked does not pass.
    let images = r#"[{"reference": "a/b:1", "os_version": "10.0.20348.1"}]"#;
    std::fs::write(folder.path().join("images.txt"), images).unwrap();
    check("pod.yaml")
        .args(["-f", "web", "--images", "images.txt"])
        .assert()
        .code(2)
        .stdout(contains("default/p"));
    for (path, code) in [
        ("web", "usage"),
        ("web/templates", "usage"),
        ("web/templates/web.yaml", "cluster/workloads"),
    ] {
        let failure = check(path).fails(2, code, &[]);
        assert_contains!(failure.hint, render);
    }
    let templates = folder.path().join("web/templates");
    let failure = wincimg(&templates, &["check-compat", "--host-build", "20348.1"])
        .args(["--offline", "-f", "."])
        .fails(2, "usage", &[]);
    assert_contains!(failure.hint, "helm template /", "/web | wincimg");
}

#[test]
fn nodes_in_place_of_workloads_are_said_to_be_nodes() {
    let folder = folder_of(&[("nodes.json", NODES)]);
    wincimg(folder.path(), &["check-compat", "--offline"])
        .args(["--nodes", "nodes.json", "-f", "nodes.json"])
        .fails(2, "usage", &["it lists nodes"]);
}

#[test]
fn the_others_of_a_folder_are_checked_if_a_manifest_cannot_be_read() {
    let folder = folder_of(&[
        ("a.yaml", "kind: Pod\nspec: {containers: [{image: 7}]}\n"),
        ("b.yaml", "kind: [\n"),
        ("pod.yaml", POD),
    ]);
    let images = r#"[{"reference": "a/b:1", "os_version": "10.0.20348.1"}]"#;
    std::fs::write(folder.path().join("images.txt"), images).unwrap();
    let check = |build: &str, path: &str| {
        let mut command = wincimg(folder.path(), &["check-compat", "--host-build", build]);
        command.args(["--images", "images.txt", "--offline", "-f", path]);
        command
    };
    let both = || contains("error: ./a.yaml: line 1").and(contains("error: ./b.yaml: line"));
    check("20348.1", ".")
        .arg("-q")
        .assert()
        .code(2)
        .stdout(contains("default/p"))
        .stderr(both());
    // What does not start is the worse news.
    check("17763.1", ".").assert().code(1).stderr(both());
    check("20348.1", "a.yaml").fails(2, "cluster/workloads", &[]);
    std::fs::remove_file(folder.path().join("pod.yaml")).unwrap();
    check("20348.1", ".").fails(2, "cluster/workloads", &["./b.yaml"]);
}

#[test]
fn a_file_in_place_of_an_image_is_not_looked_up() {
    let folder = folder_of(&[("a.yaml", "kind: Pod\n"), ("b.yaml", "kind: Pod\n")]);
    let failure = wincimg(folder.path(), &["check-compat", "--host-build", "20348.1"])
        .args(["-f", "a.yaml", "b.yaml"])
        .fails(2, "usage", &["b.yaml"]);
    assert_contains!(failure.hint, "-f b.yaml", "'*.yaml'");
}
