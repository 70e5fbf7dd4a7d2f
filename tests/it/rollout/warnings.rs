//! Compatible images with warnings.

use predicates::Predicate as _;
use wincimg_registry::UnknownBase;
use wincimg_registry::hive::{FileTime, layer_hives};
use wincimg_testkit::test_bases::tar_of;
use wincimg_windows::shutdown::edits;

use super::what_if::node;
use super::*;

use crate::failure::{Fails, line};
use crate::site::stderr;

#[test]
fn support_that_ended_is_a_warning() {
    let registry = FakeRegistry::start();
    registry.publish("shop/old", &["1"], "10.0.18363.1556");
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host()])
        .arg(format!("{}/shop/old:1", registry.host()))
        .args(["--host-build", "18363.1556"]);
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["checks"][1]["rule"], "end-of-support");
    assert_eq!(report["checks"][1]["verdict"], "warning");
    command.arg("--strict").assert().code(1);
}

#[test]
fn each_image_of_an_index_is_warned_of_when_its_support_ended() {
    let registry = FakeRegistry::start();
    let versions = ["10.0.18363.1", "10.0.19041.1"];
    let images = versions.map(|version| (registry.image("windows", version), version));
    let entries = images
        .each_ref()
        .map(|(image, version)| (image.as_str(), Some(*version)));
    registry.tag("shop/old", "1", &registry.index(&entries));
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host()])
        .arg(format!("{}/shop/old:1", registry.host()))
        .args(["--host-build", "18363.1", "--host-build", "19041.1"]);
    let (_, report) = answer_of(&mut command);
    let checks = report["checks"].as_array().unwrap().iter();
    let ended = checks.filter(|check| check["rule"] == "end-of-support");
    let reasons: Vec<&str> = ended
        .map(|check| check["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert_ne!(reasons[0], reasons[1]);
}

#[test]
fn versions_alone_are_warned_of_when_their_support_ended() {
    let check = |version: &str, more: &[&str]| {
        let pair = ["--host-build", version, "--image-build", version];
        let (code, report) = answer_of(wincimg().args(pair).args(more));
        let rules = report["checks"].as_array().unwrap().iter();
        let rules: Vec<String> = rules.map(|it| it["rule"].to_string()).collect();
        (code, rules.join(" "))
    };
    let ended = r#""build-match" "end-of-support""#.to_owned();
    assert_eq!(check("19041.1", &[]), (0, ended.clone()));
    assert_eq!(check("19041.1", &["--strict"]), (1, ended));
    let supported = r#""build-match""#.to_owned();
    assert_eq!(check("20348.2402", &["--strict"]), (0, supported));
}

#[test]
fn a_plan_without_actions_refers_to_the_commands_of_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, value: &Value| {
        let file = folder.path().join(name);
        fs::write(&file, value.to_string()).unwrap();
        file
    };
    let nodes = [node("win", "20348.2402"), node("lin", "")];
    let image = json!({"images": [{"reference": "a:1", "os_version": "10.0.20348.2402"}]});
    let check = |selector: Value| {
        let pod = json!({"containers": [{"name": "a", "image": "a:1"}], "nodeSelector": selector});
        let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web"}, "spec": {"template": {"spec": pod}}});
        let mut command = wincimg();
        command
            .args(["--offline", "--plan", "--nodes"])
            .arg(file("nodes.json", &json!({"kind": "List", "items": nodes})))
            .arg("--workloads")
            .arg(file("web.json", &workload))
            .arg("--images")
            .arg(file("images.json", &image));
        let output = command.assert().code(0).get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    let text = check(json!({}));
    assert_contains!(
        text,
        "kubectl patch deployment web",
        "No planned action; run the commands of the warnings."
    );
    let selected = check(json!({"kubernetes.io/os": "windows"}));
    assert_contains!(selected, "Nothing to do.");
    let unplaced = check(json!({"kubernetes.io/os": "windows", "pool": "none"}));
    assert_contains!(
        unplaced,
        "No planned action; apply the fixes of what lands on no node."
    );
}

#[test]
fn several_manifests_of_an_object_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = |environment: &str, name: &str| {
        let file = folder.path().join(format!("{environment}.yaml"));
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name}, "spec": {"template": {"spec": {
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "containers": [{"name": environment, "image": "a:1"}]}}}});
        fs::write(file, object.to_string()).unwrap();
    };
    let said = || {
        let mut command = wincimg();
        command
            .args(["--offline", "--host-build", "20348.2402", "--workloads"])
            .arg(folder.path())
            .args(["--format", "junit"]);
        let output = command.output().unwrap();
        let cases = String::from_utf8_lossy(&output.stdout).into_owned();
        stderr(&output) + &cases
    };
    manifest("dev", "web");
    manifest("prod", "web");
    assert_contains!(said(), "dev.yaml starts", "prod.yaml starts");
    assert_contains!(
        said(),
        "2 manifests of Deployment default/web",
        "prod.yaml:1"
    );
    manifest("prod", "web2");
    assert!(!said().contains("manifests of"), "{}", said());
    assert_contains!(said(), "Deployment default/web starts");
}

/// A layer whose registry sets this shutdown timeout in seconds.
fn patient_layer(seconds: u32) -> Vec<u8> {
    let hives = layer_hives(&edits(seconds), &UnknownBase, FileTime::default()).unwrap();
    let files = hives
        .into_iter()
        .map(|hive| (format!("Hives/{}", hive.name), hive.bytes));
    tar_of(&files.collect::<Vec<_>>())
}

#[test]
fn a_pod_that_is_more_patient_than_its_image_is_warned_about() {
    let registry = FakeRegistry::start();
    let config = json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.17763.5696"});
    let base = registry.layer(tar::Builder::new(Vec::new()).into_inner().unwrap());
    let hasty = registry.image_of(&config, std::slice::from_ref(&base));
    let patient = registry.image_of(&config, &[base, registry.layer(patient_layer(120))]);
    registry.tag("shop/hasty", "1.0", &hasty);
    registry.tag("shop/patient", "1.0", &patient);
    let pod = |name: &str, seconds: u32| {
        format!(
            "kind: Pod\nmetadata: {{name: {name}-{seconds}}}\nspec: {{os: {{name: windows}}, \
             nodeSelector: {{kubernetes.io/os: windows}}, tolerations: [{{operator: Exists}}], \
             terminationGracePeriodSeconds: {seconds}, \
             containers: [{{image: {}/shop/{name}:1.0}}]}}\n---\n",
            registry.host()
        )
    };
    let workloads =
        pod("hasty", 5) + &pod("hasty", 60) + &pod("patient", 60) + &pod("patient", 180);
    let mut command = wincimg();
    command
        .args(["--insecure-registry", &registry.host(), "--workloads", "-"])
        .args(["--nodes", &format!("{CLUSTERS}/kubeadm.json")])
        .args(["--simulate", "win-*=17763.5696"])
        .write_stdin(workloads);
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 0, "{report}");
    let (_, lines) = problems(&report, &registry);
    assert_eq!(
        lines,
        [
            "-|Pod hasty-60|R/shop/hasty:1.0|grace-period",
            "-|Pod patient-180|R/shop/patient:1.0|grace-period",
        ]
    );
    let mut checks = report["checks"].as_array().unwrap().clone();
    checks.retain(|check| check["rule"] == "grace-period");
    assert_contains!(checks[0]["reason"], "60 s", " 5 s");
    assert_contains!(checks[1]["reason"], "120 s");
}

#[test]
fn a_large_image_is_warned_about_where_docker_pulls_it() {
    let registry = FakeRegistry::start();
    let config = json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.17763.5696"});
    let (mut descriptor, diff_id) = registry.layer(b"never read".to_vec());
    descriptor["size"] = json!(2_400_000_000_u64);
    let large = registry.image_of(&config, &[(descriptor, diff_id)]);
    registry.tag("shop/large", "1.0", &large);
    let index = registry.index(&[(&large, Some("10.0.17763.5696"))]);
    registry.tag("shop/index", "1.0", &index);
    let pod = |name: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeSelector: {{kubernetes.io/os: windows}}, \
             tolerations: [{{operator: Exists}}], containers: [{{image: {}/shop/{name}:1.0}}]}}\n---\n",
            registry.host()
        )
    };
    let run = |cluster: &str| {
        let mut command = wincimg();
        command
            .args(["--insecure-registry", &registry.host(), "--workloads", "-"])
            .args(["--nodes", &format!("{CLUSTERS}/{cluster}.json")])
            .args(["--simulate", "*=17763.5696"])
            .write_stdin(pod("large") + &pod("index"));
        let (_, report) = answer_of(&mut command);
        problems(&report, &registry).1
    };
    assert_eq!(
        run("kubeadm"),
        [
            "-|Pod large|R/shop/large:1.0|pull-deadline",
            "-|Pod index|R/shop/index:1.0|pull-deadline",
        ]
    );
    let on_containerd = run("aks");
    assert!(
        on_containerd
            .iter()
            .all(|line| !line.ends_with("|pull-deadline")),
        "containerd has no such deadline: {on_containerd:?}"
    );
}

/// Checks a text's workloads on one host without a registry.
fn workloads_offline(text: &str) -> Command {
    let mut command = wincimg();
    command
        .args([
            "--host-build", "20348.2402", "--workloads", "-", "--offline",
        ])
        .write_stdin(text);
    command
}

#[test]
fn why_a_pod_is_refused_is_said_once_for_all_of_its_images() {
    let pod = "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, image: 'a/b:1', \
               securityContext: {windowsOptions: {hostProcess: true}}}, {name: b, image: 'a/c:1'}]}\n";
    let text = workloads_offline(pod).prints();
    assert_eq!(text.matches("refuses the pod").count(), 1, "{text}");
}

#[test]
fn a_workload_without_an_image_is_no_silent_green() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {os: {name: windows}, \
               nodeSelector: {kubernetes.io/os: windows}, containers: [{name: a}]}\n";
    let check = |more: &[&str]| answer_of(workloads_offline(pod).args(more));
    let (code, report) = check(&[]);
    assert_eq!(
        (code, &report["compatible"]),
        (1, &json!(false)),
        "{report}"
    );
    assert_eq!(report["checks"][0]["rule"], "no-image");
    let reason = report["checks"][0]["reason"].as_str().unwrap();
    assert_contains!(reason, " a ");
}

#[test]
fn a_placeholder_in_the_name_of_an_image_is_named() {
    let pod = "kind: Pod\nmetadata: {name: x}\nspec: {hostNetwork: true, containers: [{image: 'a/b:${TAG/+/_}-hpc', \
               securityContext: {windowsOptions: {hostProcess: true}}}]}\n";
    let (code, report) = answer_of(&mut workloads_offline(pod));
    assert_eq!(code, 1);
    let check = &report["checks"][0];
    assert_eq!(check["verdict"], "unknown");
    let reason = check["reason"].as_str().unwrap();
    assert!(reason.ends_with("placeholder ${TAG/+/_}"), "{reason}");
}

#[test]
fn a_name_that_no_image_can_have_is_not_asked_for_with_images() {
    let pod = "kind: Pod\nmetadata: {name: x}\nspec: {os: {name: windows}, containers: [{name: a, \
               image: '<NAME>.azurecr.io/a:1'}]}\n";
    let (_, report) = answer_of(&mut workloads_offline(pod));
    let check = &report["checks"][0];
    assert_eq!(check["verdict"], "unknown");
    let text = |key: &str| check[key].as_str().unwrap();
    assert_contains!(text("reason"), "<NAME>.azurecr.io/a:1");
    assert_contains!(text("fix"), "docker pull");
}

#[test]
fn a_rollout_without_its_template_names_what_is_missing() {
    let text = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: ro, namespace: \
                shop}\nspec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n";
    let missing = ["Rollout.argoproj.io shop/ro", "Deployment shop/web"];
    let failure = workloads_offline(text).fails(2, "usage", &missing);
    assert!(
        failure
            .hint
            .ends_with("kubectl get deployment web --namespace shop --output yaml"),
        "{failure:#?}"
    );
}

#[test]
fn an_object_of_an_unknown_kind_alone_is_named_in_the_error() {
    let text = "apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: build, namespace: ci}\n\
                spec: {taskSpec: {steps: [{name: s, image: 'a:1'}]}}\n";
    workloads_offline(text)
        .fails(2, "usage", &["TaskRun.tekton.dev ci/build (stdin, line 1)"])
        .advises(&["kubectl get pods --output yaml"]);
}

#[test]
fn objects_of_unknown_kinds_are_listed_in_every_form() {
    let text = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: '<web>'}\n---\n\
                apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {hostNetwork: true, containers: \
                [{image: x, securityContext: {windowsOptions: {hostProcess: true}}}]}\n";
    let check = |format: &str| {
        let mut command = workloads_offline(text);
        let output = command.args(["--format", format]).output().unwrap();
        // A host process needs no version, but an image.
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&check("json")).unwrap();
    assert_eq!(
        report["skipped"],
        json!([{"kind": "Certificate", "group": "cert-manager.io", "namespace": "default",
            "name": "<web>", "file": "stdin", "line": 1}])
    );
    assert_eq!(report["checks"][0]["rule"], "unknown-build");
    let sarif: Value = serde_json::from_str(&check("sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let last = &results[results.len() - 1];
    assert_eq!(last["ruleId"], "skipped");
    assert_eq!(last["level"], "note");
    let skipped = line(&[
        "Certificate.cert-manager.io default/<web>",
        "stdin",
        "line 1",
    ]);
    assert!(skipped.eval(&check("text")));
    assert_contains!(check("text"), "not checked");
    for format in ["markdown", "junit", "html"] {
        let report = check(format);
        assert_contains!(
            report,
            "Certificate.cert-manager.io default/",
            "o pod template found; not checked"
        );
        assert!(
            format == "markdown" || !report.contains("default/<web>"),
            "{format}"
        );
    }
}

#[test]
fn a_host_that_lags_is_to_be_patched_before_its_images() {
    let check = |more: &[&str]| {
        let mut command = wincimg();
        command
            .args(["--host-build", "26100.2894", "--image-build", "26100.3194"])
            .args(more);
        answer_of(&mut command)
    };
    let (code, report) = check(&[]);
    assert_eq!(code, 0, "{report}");
    let found = &report["checks"][0];
    assert_eq!(found["verdict"], "warning");
    assert_eq!(found["rule"], "image-newer-revision");
    assert_contains!(
        found["reason"].as_str().unwrap(),
        "runner-images/issues/11582"
    );
    let fix = found["fix"].as_str().unwrap();
    assert_contains!(fix, "26100.3194");
    assert_eq!(check(&["--strict"]).0, 1);
    assert_eq!(check(&["--isolation", "hyperv", "--strict"]).0, 0);
}
