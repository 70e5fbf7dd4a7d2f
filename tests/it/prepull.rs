//! `wincimg fleet prepull`: the manifests are Kubernetes' own types, name what the registry has, and
//! are ordered by shared bases.

use serde_json::{Value, json};

use crate::failure::{Fails, says, warning};
use crate::fleet::{command, fleet, site, write_nodes};
use crate::kube_schema::unknown_by_kind;
use crate::site::{Site, answer_of, block_on, stderr};

const HOST_PROCESS: &str = "name = \"agent\"\nbase = \"hostprocess\"\nentrypoint = [\"a.exe\"]\n\
    [[files]]\ncontent = \"x\"\nto = 'C:\\a.exe'\n";

/// A site whose fleet is published.
fn published() -> Site {
    let site = site();
    command(&site, "build", &[]).assert().code(0);
    site
}

/// The objects of a list in JSON, each checked against its type.
fn objects(site: &Site, more: &[&str], code: i32) -> Vec<Value> {
    let (found, list) = answer_of(&mut command(site, "prepull", more));
    assert_eq!(found, code, "{list}");
    let objects = list["items"].as_array().unwrap().clone();
    for object in &objects {
        assert_eq!(unknown_by_kind(object), [""; 0], "{object:#}");
    }
    objects
}

fn pod(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]
}

fn names(objects: &[Value]) -> Vec<&str> {
    let names = objects
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap());
    names.collect()
}

/// The images of a pod's init containers, as `apps/NAME`, by the digest of what their tag names.
fn pulled(object: &Value) -> Vec<String> {
    let pulls = pod(object)["initContainers"].as_array().unwrap().iter();
    pulls
        .map(|pull| {
            let reference = pull["image"].as_str().unwrap();
            let (name, _) = reference.split_once('@').unwrap();
            name[name.find('/').unwrap() + 1..].to_owned()
        })
        .collect()
}

/// `HOST/NAME@DIGEST` of a tag.
fn pinned(site: &Site, name: &str, tag: &str) -> String {
    let place = format!("{}/{name}", site.host());
    let raw = block_on(site.repository(name).get_manifest(tag)).unwrap();
    format!("{place}@{}", raw.digest)
}

#[test]
fn each_build_has_a_daemon_set_that_pulls_by_digest() {
    let site = published();
    let objects = objects(&site, &["--max-unavailable", "2", "--pull-secret", "s"], 0);
    assert_eq!(
        names(&objects),
        ["wincimg-prepull", "prepull-17763", "prepull-20348"]
    );
    assert_eq!(objects[0]["metadata"].get("labels"), None);
    let web = pinned(&site, "apps/web", "1");
    let pause = pinned(&site, "apps/pause", "3.9");
    for (object, build) in objects[1..].iter().zip(["10.0.17763", "10.0.20348"]) {
        let pod = pod(object);
        assert_eq!(
            pod["nodeSelector"],
            json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build})
        );
        let pulls = pod["initContainers"].as_array().unwrap();
        assert_eq!(pulls.len(), 1);
        assert_eq!(pulls[0]["image"], web.as_str());
        assert_eq!(pod["containers"][0]["image"], pause.as_str());
        assert_eq!(pod["containers"][0].get("command"), None);
        for container in [&pulls[0], &pod["containers"][0]] {
            assert_eq!(container["imagePullPolicy"], "IfNotPresent");
            assert!(container["resources"]["limits"]["memory"].is_string());
        }
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "s"}]));
        let strategy = &object["spec"]["updateStrategy"];
        assert_eq!(strategy["rollingUpdate"]["maxUnavailable"], 2);
        let labels = &object["spec"]["template"]["metadata"]["labels"];
        let selected = &object["spec"]["selector"]["matchLabels"];
        for (key, value) in selected.as_object().unwrap() {
            assert_eq!(&labels[key], value);
        }
    }
}

#[test]
fn images_without_windows_are_pulled_by_a_host_process_pod() {
    let site = site();
    site.write("agent/recipe.toml", HOST_PROCESS);
    fleet(
        &site,
        "[[image]]\nbuild = \"pause\"\n[[image]]\nbuild = \"./agent\"\n[[image]]\nbuild = \"./web\"\n",
    );
    command(&site, "build", &[]).assert().code(0);
    let objects = objects(&site, &["--host-build", "26100.1742"], 0);
    let label = &objects[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(label, "privileged");
    assert_eq!(
        names(&objects)[1..],
        [
            "prepull-17763", "prepull-17763-2", "prepull-20348", "prepull-20348-2",
            // The agent is for any build, and the image of Server 2022 starts there too.
            "prepull-26100", "prepull-26100-2",
        ]
    );
    assert_eq!(pulled(&objects[1]), ["apps/web"]);
    for object in [&objects[2], &objects[6]] {
        assert_eq!(pulled(object), ["apps/agent"]);
        let pod = pod(object);
        assert_eq!(
            pod["securityContext"]["windowsOptions"]["hostProcess"],
            true
        );
        assert_eq!(pod["hostNetwork"], true);
        assert_eq!(
            pod["containers"][0]["image"],
            pod["initContainers"][0]["image"]
        );
    }
    assert_eq!(pod(&objects[1]).get("hostNetwork"), None);
}

#[test]
fn selectors_of_the_fleet_choose_the_nodes() {
    let site = site();
    let image = |name: &str, selector: &str| {
        format!("[[image]]\nbuild = \"./web\"\nname = \"{name}\"\nselector = \"{selector}\"\n")
    };
    let images = [
        image("a", "kubernetes.io/os=windows"),
        image("b", "pool in (web,api),!spot"),
        image("c", "kubernetes.io/os=windows"),
        image("d", "pool=other"),
    ];
    fleet(&site, &images.concat());
    write_nodes(&site, &[("win-a", Some("17763.973"), "web")]);
    command(&site, "build", &[]).assert().code(0);
    let objects = objects(&site, &["--pause", "repo.lan/pause:1"], 0);
    assert_eq!(names(&objects)[1..], ["prepull-17763", "prepull-17763-2"]);
    assert_eq!(pulled(&objects[1]), ["apps/a", "apps/c"]);
    assert_eq!(pod(&objects[1]).get("affinity"), None);
    assert_eq!(pulled(&objects[2]), ["apps/b"]);
    let term = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                /nodeSelectorTerms/0/matchExpressions";
    assert_eq!(
        pod(&objects[2]).pointer(term).unwrap(),
        &json!([
            {"key": "pool", "operator": "In", "values": ["web", "api"]},
            {"key": "spot", "operator": "DoesNotExist"},
        ])
    );
}

#[test]
fn nodes_without_the_labels_of_their_build_are_named() {
    let site = published();
    let said = || stderr(&command(&site, "prepull", &[]).output().unwrap());
    write_nodes(&site, &[("win-a", Some("17763.973"), "web")]);
    let lacks = "on win-a: the label node.kubernetes.io/windows-build=10.0.17763 is missing";
    assert_contains!(said(), lacks);
    let mut nodes: Value = serde_json::from_str(&site.text("nodes.json")).unwrap();
    let labels = &mut nodes["items"][0]["metadata"]["labels"];
    labels["node.kubernetes.io/windows-build"] = json!("10.0.17763");
    site.write("nodes.json", nodes.to_string());
    assert!(!said().contains("the label"), "{}", said());
    let secret = ["--pull-secret", "a_b"];
    command(&site, "prepull", &secret).assert().code(2);
    command(&site, "prepull", &["--pause", "Pause:1"])
        .assert()
        .code(2);
}

#[test]
fn what_is_missing_is_left_out_and_named() {
    let site = published();
    let nodes = [
        ("win-a", Some("17763.973"), "web"),
        ("win-c", Some("26100.1742"), "web"),
    ];
    write_nodes(&site, &nodes);
    let output = command(&site, "prepull", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(printed.contains("name: prepull-17763") && !printed.contains("26100"));
    let said = stderr(&output);
    assert_contains!(
        said,
        "apps/web:1 is not pulled: it has no image for build 26100"
    );

    write_nodes(&site, &nodes[1..]);
    command(&site, "prepull", &[]).fails(1, "no", &["fleet.toml"]);
}

#[test]
fn a_pause_image_that_is_missing_for_a_build_is_named() {
    let site = site();
    let nodes = [
        ("win-a", Some("17763.973"), "web"),
        ("win-b", Some("20348.2402"), "web"),
    ];
    write_nodes(&site, &nodes[..1]);
    command(&site, "build", &[]).assert().code(0);
    let both = site.text("fleet.toml");
    fleet(&site, "[[image]]\nbuild = \"./web\"\n");
    write_nodes(&site, &nodes);
    command(&site, "build", &[]).assert().code(0);
    site.write("fleet.toml", both);
    let output = command(&site, "prepull", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    says(
        &stderr(&output),
        &warning(&["apps/pause:3.9 is not pulled", "build 20348"]),
    );
    // Another one is not checked.
    objects(&site, &["--pause", "repo.lan/pause:1"], 0);
}

#[test]
fn what_does_not_start_on_a_node_is_left_out_and_named() {
    let site = published();
    let nodes = [
        ("win-a", Some("17763.1158"), "web"),
        ("win-c", Some("20348.2402"), "web"),
    ];
    write_nodes(&site, &nodes);
    let output = command(&site, "prepull", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(printed.contains("name: prepull-20348") && !printed.contains("17763"));
    let said = stderr(&output);
    assert_contains!(said, "does not start on host 17763.1158");
    for wrong in ["150%", "0", "0%", "x"] {
        let arguments = ["--max-unavailable", wrong];
        command(&site, "prepull", &arguments).assert().code(2);
    }
    command(&site, "prepull", &["--max-unavailable", "100%"])
        .assert()
        .code(1);
}

#[test]
fn a_node_that_an_image_does_not_start_on_is_left_out_by_itself() {
    let site = published();
    let nodes = [
        ("win-a", Some("17763.973"), "web"),
        ("win-b", Some("17763.1158"), "web"),
    ];
    write_nodes(&site, &nodes);
    let objects = objects(&site, &[], 1);
    assert_eq!(names(&objects)[1..], ["prepull-17763"]);
    let affinity = pod(&objects[1])["affinity"].to_string();
    assert_contains!(
        affinity,
        r#"{"key":"kubernetes.io/hostname","operator":"NotIn","values":["win-b"]}"#
    );
    let said = stderr(&command(&site, "prepull", &[]).output().unwrap());
    assert_contains!(
        said,
        "apps/web:1 is not pulled on win-b: it ",
        "host 17763.1158"
    );
}

#[test]
fn a_fleet_without_a_pause_image_has_to_name_one() {
    let site = site();
    fleet(&site, "[[image]]\nbuild = \"./web\"\n");
    command(&site, "build", &[]).assert().code(0);
    let failure = command(&site, "prepull", &[]).fails(2, "usage", &[]);
    assert_contains!(failure.hint, "--pause");
    let objects = objects(&site, &["--pause", "repo.lan/pause:1"], 0);
    assert_eq!(
        pod(&objects[1])["containers"][0]["image"],
        "repo.lan/pause:1"
    );
    command(&site, "prepull", &["--max-unavailable", "0%"])
        .assert()
        .code(2);
}

#[test]
fn a_fleet_that_leaves_nothing_to_pull_says_why() {
    let site = site();
    let fails = || command(&site, "prepull", &[]).fails(1, "no", &["fleet.toml"]);

    fleet(&site, "[[image]]\nbuild = \"pause\"\ntag = \"3.9\"\n");
    command(&site, "build", &[]).assert().code(0);
    let failure = fails();
    assert_contains!(failure.message, "only the pause image");
    let script = format!("--registry {}/apps --pause pause --tag 3.9", site.host());
    assert_contains!(
        failure.hint, "wincimg node script", &script, "--nodes nodes.json"
    );

    fleet(
        &site,
        "[[image]]\nbuild = \"./web\"\nselector = \"pool=none\"\n",
    );
    assert_contains!(fails().hint, "--show-labels");

    fleet(&site, "[[image]]\nbuild = \"./web\"\n");
    assert_contains!(
        fails().hint,
        "wincimg fleet build fleet.toml --nodes nodes.json"
    );
}

#[test]
fn nodes_whose_containerd_is_too_old_for_an_image_without_windows_are_named() {
    let site = site();
    site.write("agent/recipe.toml", HOST_PROCESS);
    fleet(&site, "[[image]]\nbuild = \"./agent\"\n");
    let nodes = site.text("nodes.json");
    let old = nodes.replace("containerd://1.7.0", "containerd://1.6.17");
    assert_ne!(nodes, old);
    site.write("nodes.json", old);
    for what in ["build", "check"] {
        let said = command(&site, what, &[]).tells(0);
        let needs = "needs containerd 1.6.18 or newer, which win-a and 1 more do not have; with ";
        let words = [needs, "1-hostprocess"];
        says(&said, &warning(&words));
    }
    let (_, report) = answer_of(&mut command(&site, "check", &[]));
    let said = report["images"][0]["warnings"][0].as_str().unwrap();
    assert_contains!(said, "needs containerd 1.6.18 or newer");
    let failure = command(&site, "prepull", &[]).fails(1, "no", &["fleet.toml"]);
    assert_contains!(failure.hint, "containerd 1.6.18", "-hostprocess");
    assert!(!failure.hint.contains("fleet build"), "{failure:#?}");
    assert_contains!(
        failure.stderr,
        "apps/agent:1 is not pulled on win-a: it contains no Windows"
    );

    site.write("nodes.json", nodes);
    let output = command(&site, "check", &[]).output().unwrap();
    assert!(!stderr(&output).contains("1.6.18"), "{}", stderr(&output));
}

#[test]
fn a_kustomization_lists_a_file_for_each_object() {
    let site = published();
    let output = command(&site, "prepull", &["--kustomize", "out"])
        .assert()
        .code(0);
    let printed = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let read = |name: &str| -> Value { serde_saphyr::from_str(&site.text(name)).unwrap() };
    let kustomization = read("out/kustomization.yaml");
    assert_eq!(unknown_by_kind(&kustomization), [""; 0]);
    let listed = kustomization["resources"].as_array().unwrap().iter();
    let listed: Vec<String> = listed
        .map(|name| format!("out/{}", name.as_str().unwrap()))
        .collect();
    let files: Vec<Value> = listed.iter().map(|name| read(name)).collect();
    assert_eq!(files, objects(&site, &[], 0));
    let expected = listed.iter().map(|name| format!("{name}\n"));
    assert_eq!(
        printed,
        expected.collect::<String>() + "out/kustomization.yaml\n"
    );
}

#[test]
fn a_kustomization_replaces_its_own_files_alone() {
    let site = published();
    let run = || command(&site, "prepull", &["--kustomize", "out"]);
    run().assert().code(0);
    let old = "out/daemonset-prepull-17763-2.yaml";
    site.write(old, site.text("out/daemonset-prepull-17763.yaml"));
    site.write("out/daemonset-mine.yaml", "# of somebody else\n");
    run().assert().code(0);
    assert!(!site.path(old).exists());
    assert!(site.path("out/daemonset-mine.yaml").exists());
    for name in ["kustomization.yaml", "namespace-wincimg-prepull.yaml"] {
        let file = format!("out/{name}");
        let (own, foreign) = (site.text(&file), "# of somebody else\n");
        site.write(&file, foreign);
        std::fs::remove_file(site.path("out/daemonset-prepull-17763.yaml")).unwrap();
        let printed = run().tells(2);
        assert_contains!(printed, name, "hint: ");
        assert_eq!(site.text(&file), foreign);
        assert!(!site.path("out/daemonset-prepull-17763.yaml").exists());
        site.write(&file, own);
        run().assert().code(0);
    }
}

#[test]
fn the_removal_selects_the_labels_of_the_objects() {
    let site = published();
    let output = command(&site, "prepull", &["--remove", "--name", "ahead"])
        .assert()
        .code(0);
    let removal = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert_eq!(
        removal,
        "kubectl --namespace wincimg-prepull delete daemonset --selector \
         app.kubernetes.io/instance=ahead\n"
    );
    let objects = objects(&site, &["--name", "ahead"], 0);
    for object in &objects[1..] {
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/instance"], "ahead");
    }
}
