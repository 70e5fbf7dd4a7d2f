//! Resolution of image references, and the findings.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use wincimg_demo::DemoRegistry;
use wincimg_oci::document::sha256;
use wincimg_testkit::serve::{TestServer, serve};

use super::*;

use crate::api::windows_node;
use crate::failure::Fails;
use crate::site::each;

/// The answer about an image of a registry for a host.
fn checked(registry: &str, build: &str, image: &str) -> (i32, Value) {
    let mut command = wincimg();
    command.args(["--insecure-registry", registry, "--host-build", build]);
    answer_of(command.arg(format!("{registry}/{image}")))
}

#[test]
fn an_index_without_the_hosts_build_says_what_it_has_and_how_to_add_it() {
    let registry = shop();
    let image = format!("{}/shop/web:1.4", registry.host());
    let (code, report) = answer_of(
        wincimg()
            .args(["--insecure-registry", &registry.host(), &image])
            .args(["--host-build", "18363.900", "--host-build", "20348.2402"]),
    );
    assert_eq!(code, 1);
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "no-matching-platform");
    assert_eq!(check["verdict"], "incompatible");
    let reason = check["reason"].as_str().unwrap();
    assert_contains!(
        reason,
        "windows/amd64 10.0.17763.5696, windows/amd64 10.0.20348.2402"
    );
    assert_eq!(
        check["commands"][0],
        format!(
            "wincimg build RECIPE --host-build 17763.5696 --host-build 18363.900 \
             --host-build 20348.2402 --registry {0}/shop --name web --tag 1.4 --push \
             --insecure-registry {0} --registry-config {NO_CREDENTIALS}",
            registry.host()
        )
    );
    assert_eq!(report["checks"][1]["rule"], "build-match");
    assert_eq!(report["checks"][1]["image"]["build"], "20348.2402");
}

#[test]
fn a_single_version_is_judged_by_versions_and_no_index_is_read_into_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.json");
    let nodes = [
        windows_node("new", "10.0.26100.2894"),
        windows_node("unknown", ""),
    ];
    fs::write(
        &file,
        json!({"kind": "NodeList", "items": nodes}).to_string(),
    )
    .unwrap();
    let (_, report) = answer_of(
        wincimg()
            .args(["--image-build", "17763.1158"])
            .arg("--nodes")
            .arg(&file),
    );
    assert_eq!(report["checks"][0]["rule"], "too-old-for-host", "{report}");
    let fix = report["checks"][1]["fix"].as_str().unwrap();
    assert!(fix.contains("--simulate"), "{report}");
    assert_eq!(report["checks"][1]["commands"], json!([]));
}

#[test]
fn an_index_without_images_is_called_one() {
    let registry = FakeRegistry::start();
    registry.tag("shop/empty", "1", &registry.index(&[]));
    let (_, report) = checked(&registry.host(), "20348.2402", "shop/empty:1");
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "not-windows");
    assert_eq!(check["reason"], "the image is an index without images");
}

#[test]
fn a_node_is_judged_by_what_its_version_of_containerd_takes_of_an_index() {
    let registry = FakeRegistry::start();
    let entries = ["10.0.17763.1012", "10.0.17763.1158"];
    let images = entries.map(|version| registry.image("windows", version));
    let entries = [0, 1].map(|place| (images[place].as_str(), Some(entries[place])));
    registry.tag("shop/web", "1.4", &registry.index(&entries));
    let old = registry.image("windows", "10.0.20348.2402");
    registry.tag("shop/old", "1.0", &old);
    let nodes: Vec<Value> = [
        ("10.0.17763.1158", "containerd://1.6.38"),
        ("10.0.17763.1158", "containerd://1.7.20"),
        ("10.0.17763.1158", "containerd://2.2.0"),
        ("10.0.26200.7171", "containerd://1.7.20"),
        ("10.0.26200.7171", "containerd://2.3.4"),
        ("10.0.26200.7171", "containerd://2.4.0"),
    ]
    .into_iter()
    .map(|(kernel, runtime)| {
        json!({
            "metadata": {"name": runtime, "labels": {"kubernetes.io/os": "windows"}},
            "status": {"nodeInfo": {"kernelVersion": kernel, "osImage": "Windows",
                "containerRuntimeVersion": runtime, "architecture": "amd64", "operatingSystem": "windows"}},
        })
    })
    .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.json");
    fs::write(
        &file,
        json!({"kind": "NodeList", "items": nodes}).to_string(),
    )
    .unwrap();
    let rules = |image: &str| {
        let (_, report) = answer_of(
            wincimg()
                .args(["--insecure-registry", &registry.host(), "--nodes"])
                .arg(&file)
                .arg(format!("{}/{image}", registry.host())),
        );
        let checks = report["checks"].as_array().unwrap().iter();
        let rules = checks.map(|check| check["rule"].as_str().unwrap().to_owned());
        rules.collect::<Vec<_>>()
    };
    assert_eq!(
        rules("shop/web:1.4")[..3],
        ["build-match", "baseline-2020-02", "build-match"]
    );
    assert_eq!(rules("shop/old:1.0")[3..], ["downlevel-ltsc"; 3]);
}

#[test]
fn an_entry_that_is_gone_fails_the_pull_of_a_containerd_that_fetches_all_entries() {
    let registry = FakeRegistry::start();
    let entries = ["10.0.26100.2314", "10.0.20348.2402"];
    let images = entries.map(|version| registry.image("windows", version));
    let index = [0, 1].map(|place| (images[place].as_str(), Some(entries[place])));
    let index = registry.index(&index);
    registry.lose(&images[1]);
    registry.tag("shop/web", "1.0", &index);
    let nodes = ["1.7.22", "2.2.0"].map(|version| {
        let mut node = windows_node(version, entries[0]);
        let runtime = format!("containerd://{version}");
        node["status"]["nodeInfo"]["containerRuntimeVersion"] = json!(runtime);
        node
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nodes.json");
    let list = json!({"kind": "NodeList", "items": nodes});
    fs::write(&file, list.to_string()).unwrap();
    let image = format!("{}/shop/web:1.0", registry.host());
    let insecure = ["--insecure-registry", &registry.host()];
    let saved = folder.path().join("images.json");
    fs::write(&saved, inspected(&registry, &image)).unwrap();
    let offline = ["--offline", "--images", saved.to_str().unwrap()];
    for source in [&insecure[..], &offline] {
        let (code, report) =
            answer_of(wincimg().args(source).arg("--nodes").arg(&file).arg(&image));
        assert_eq!(code, 1, "{report}");
        let rules = each(&report["checks"], "rule");
        assert_eq!(rules, ["build-match", "missing-manifest"], "{report}");
    }
}

/// What `inspect` says of an image, for a check without its registry.
fn inspected(registry: &FakeRegistry, image: &str) -> String {
    inspect(registry, image).args(["--format", "json"]).prints()
}

fn inspect(registry: &FakeRegistry, image: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command
        .args(["image", "inspect", image])
        .args(["--registry-config", NO_CREDENTIALS])
        .args(["--insecure-registry", &registry.host()]);
    command
}

#[test]
fn an_image_without_windows_is_selected_from_an_index_since_containerd_1_6_18() {
    let registry = FakeRegistry::start();
    let layer = registry.layer(b"small".to_vec());
    let config = json!({"os": "windows", "architecture": "amd64"});
    let image = registry.image_of(&config, &[layer]);
    registry.tag("agent", "1.0", &registry.index(&[(&image, None)]));
    let mut nodes = ["old", "new"].map(|name| windows_node(name, "10.0.20348.2402"));
    for (node, version) in nodes.iter_mut().zip(["1.6.17", "1.6.18"]) {
        let runtime = format!("containerd://{version}");
        node["status"]["nodeInfo"]["containerRuntimeVersion"] = json!(runtime);
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent"},
        "spec": {
            "hostNetwork": true,
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "securityContext": {"windowsOptions": {"hostProcess": true}},
            "containers": [{"name": "a", "image": format!("{}/agent:1.0", registry.host())}],
        },
    });
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let nodes = write(
        "nodes.json",
        json!({"kind": "NodeList", "items": nodes}).to_string(),
    );
    let (code, report) = answer_of(
        wincimg()
            .args(["--insecure-registry", &registry.host(), "--nodes"])
            .arg(nodes)
            .arg("--workloads")
            .arg(write("pod.json", pod.to_string())),
    );
    assert_eq!(code, 1, "{report}");
    let checks = report["checks"].as_array().unwrap();
    let of = |name: &str| {
        let mut checks = checks.iter();
        checks.find(|check| check["host"]["name"] == name).unwrap()
    };
    assert_eq!(of("new")["rule"], "host-process", "{report}");
    assert_eq!(of("old")["rule"], "filtered-at-pull", "{report}");
    let fix = of("old")["fix"].as_str().unwrap();
    let step = "move the node to containerd 1.6.18 or newer, or keep its pods off it";
    assert_eq!(fix, step);
}

#[test]
fn what_is_behind_an_entry_of_an_index_decides_what_starts() {
    let registry = FakeRegistry::start();
    let own = "10.0.20348.2402";
    // Of its own, as the registry keeps equal images once.
    let lost =
        json!({"os": "windows", "architecture": "amd64", "os.version": own, "author": "lost"});
    let lost = registry.image_with(&lost);
    let config = |os: &str, architecture: &str| {
        registry.image_with(&json!({"os": os, "architecture": architecture, "os.version": own}))
    };
    let images = [
        ("lost", lost.clone()),
        ("linux", config("linux", "amd64")),
        ("arm", config("windows", "arm64")),
        ("old", registry.image("windows", "10.0.17763.1158")),
        ("right", registry.image("windows", own)),
        (
            "unstated",
            registry.image_with(&json!({"os": "windows", "architecture": "amd64"})),
        ),
    ];
    for (name, image) in &images {
        let index = registry.index(&[(image, Some(own))]);
        registry.lose(&lost);
        registry.tag(name, "1.0", &index);
    }
    let on = |host: &str| {
        let mut command = wincimg();
        command
            .args(["--insecure-registry", &registry.host()])
            .args(["--host-build", host]);
        command.args(
            images
                .iter()
                .map(|(name, _)| format!("{}/{name}:1.0", registry.host())),
        );
        let (code, report) = answer_of(&mut command);
        let checks = report["checks"].as_array().unwrap().iter();
        let word = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
        let found = checks.map(|check| word(check, "rule") + " " + &word(check, "verdict"));
        (code, found.collect::<Vec<_>>())
    };
    let expected = [
        "missing-manifest incompatible",
        "not-windows incompatible",
        "contradicting-entry incompatible",
        "too-old-for-host incompatible",
        "build-match compatible",
        "build-match compatible",
    ];
    assert_eq!(on("20348.2402"), (1, expected.map(str::to_owned).into()));
    let index = registry.index(&[(&images[4].1, Some("10.0.20349.1"))]);
    registry.tag("wrong", "1.0", &index);
    let (code, report) = checked(&registry.host(), "26100.1", "wrong:1.0");
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["checks"][0]["rule"], "contradicting-entry");
    assert_eq!(report["checks"][0]["verdict"], "warning");
}

#[test]
fn images_of_indexes_in_an_index_and_entries_without_a_platform_are_not_known_to_start() {
    let registry = FakeRegistry::start();
    let [old, new] = ["10.0.17763.5696", "10.0.20348.2402"];
    let images = [old, new].map(|version| registry.image("windows", version));
    let inner = registry.index(&[(&images[0], Some(old)), (&images[1], Some(new))]);
    let nested = registry.index_without_platforms(&[&inner]);
    registry.tag("nested", "1.0", &nested);
    let bare = registry.index_without_platforms(&[&images[0], &images[1]]);
    registry.tag("bare", "1.0", &bare);
    // What a runtime finds by its platform comes first.
    let mut entries = vec![registry.entry(&images[0])];
    entries.extend(images.iter().zip([old, new]).map(|(image, version)| {
        let mut entry = registry.entry(image);
        entry["platform"] =
            json!({"os": "windows", "architecture": "amd64", "os.version": version});
        entry
    }));
    registry.tag("both", "1.0", &registry.index_of(&entries));
    let names = ["nested", "bare", "both"].map(|name| format!("{}/{name}:1.0", registry.host()));
    let (code, report) = answer_of(
        wincimg()
            .args(["--insecure-registry", &registry.host()])
            .args(["--host-build", "17763.5696", "--host-build", "20348.2402"])
            .args(&names),
    );
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["summary"]["unknown"], 4, "{report}");
    assert_eq!(report["summary"]["compatible"], 2, "{report}");
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "unknown-build", "{report}");
    assert_contains!(check["fix"].as_str().unwrap(), "write the index again");
    registry.lose(&images[0]);
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("images.json");
    fs::write(&saved, inspected(&registry, &names[0])).unwrap();
    let (code, report) = answer_of(
        wincimg()
            .args(["--offline", "--host-build", "17763.5696", "--images"])
            .arg(&saved)
            .arg(&names[0]),
    );
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["checks"][0]["rule"], "unknown-build", "{report}");
}

#[test]
fn an_index_that_hides_the_image_of_a_host_is_written_again() {
    let registry = FakeRegistry::start();
    let [old, new] = ["10.0.17763.5696", "10.0.20348.2402"];
    let images = [old, new].map(|version| registry.image("windows", version));
    let swapped = registry.index(&[(&images[0], Some(new)), (&images[1], Some(old))]);
    registry.tag("swapped", "1.0", &swapped);
    let unstated = registry.index(&[(&images[1], None), (&images[0], None)]);
    registry.tag("unstated", "1.0", &unstated);
    let mut lie = registry.entry(&images[0]);
    lie["platform"] = json!({"os": "windows", "architecture": "arm64", "os.version": old});
    registry.tag("other", "1.0", &registry.index_of(&[lie]));
    let other = format!("{}/other:1.0", registry.host());
    let text = inspect(&registry, &other).prints();
    assert_contains!(text, "index entry says windows/arm64");
    for (name, warnings) in [
        (
            "swapped",
            [
                "index entry says 10.0.20348.2402",
                "index entry says 10.0.17763.5696",
            ],
        ),
        ("unstated", ["index entry has no os.version"; 2]),
    ] {
        let image = format!("{}/{name}:1.0", registry.host());
        let (code, report) = answer_of(
            wincimg()
                .args(["--insecure-registry", &registry.host(), "--plan"])
                .args(["--host-build", "17763.5696", &image]),
        );
        assert_eq!(code, 1, "{report}");
        let check = &report["checks"][0];
        assert_eq!(check["rule"], "contradicting-entry", "{report}");
        assert_eq!(check["commands"], json!([]));
        assert_contains!(check["fix"].as_str().unwrap(), "write the index again");
        assert!(
            !report.to_string().contains("wincimg build"),
            "nothing is built: {report}"
        );
        let text = inspect(&registry, &image).prints();
        for warning in warnings {
            assert_contains!(text, warning);
        }
    }
}

#[test]
fn an_index_of_others_that_hides_an_image_is_for_its_publisher() {
    let registry = FakeRegistry::start();
    let [old, new] = ["10.0.17763.5696", "10.0.20348.2402"];
    let images = [old, new].map(|version| registry.image("windows", version));
    let unstated = registry.index(&[(&images[1], None), (&images[0], None)]);
    // The path of a mirrored base.
    let name = "mcr/windows/nanoserver";
    registry.tag(name, "1.0", &unstated);
    let repository = format!("{}/{name}", registry.host());
    let pod = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": {
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "containers": [{"name": "a", "image": format!("{repository}:1.0")}],
        }}},
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.json");
    fs::write(&file, pod.to_string()).unwrap();
    let (code, report) = answer_of(
        wincimg()
            .args(["--insecure-registry", &registry.host()])
            .args(["--host-build", "17763.5696", "--workloads"])
            .arg(&file),
    );
    assert_eq!(code, 1, "{report}");
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "contradicting-entry", "{report}");
    let by_digest = format!("{repository}@{}", images[0]);
    let fix = check["fix"].as_str().unwrap();
    assert_contains!(fix, "the publisher of", &by_digest);
    assert!(!fix.contains("another tag"), "{fix}");
    let command = format!("kubectl set image deployment/web a={by_digest} --namespace shop");
    assert_eq!(check["commands"], json!([command]));
}

#[test]
fn an_artifact_is_no_image_for_another_system() {
    const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    let registry = DemoRegistry::start().unwrap();
    let chart = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "size": 2,
            "digest": sha256(b"{}").to_string()}});
    registry.with(|stored| {
        stored.add_manifest("chart", "1.0", MANIFEST, chart.to_string().into());
    });
    let (code, report) = checked(&registry.host(), "20348.2402", "chart:1.0");
    assert_eq!(code, 1, "{report}");
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "not-windows");
    assert_contains!(
        check["reason"].as_str().unwrap(),
        "an artifact of type application/vnd.cncf.helm.config.v1+json, which pods cannot run"
    );
}

#[test]
fn what_inspect_keeps_of_an_index_is_judged_like_the_index_itself() {
    let registry = shop();
    let [old, new] = ["10.0.17763.5696", "10.0.20348.2402"];
    let images = [old, new].map(|version| registry.image("windows", version));
    let unstated = registry.index(&[(&images[0], None), (&images[1], None)]);
    registry.tag("unstated", "1.0", &unstated);
    registry.publish("one", &["1.0"], new);
    let bare = registry.index_without_platforms(&[&images[0], &images[1]]);
    registry.tag("bare", "1.0", &bare);
    let nested = registry.index(&[(&images[0], Some(old)), (&images[1], Some(new))]);
    let nested = registry.index_without_platforms(&[&nested]);
    registry.tag("nested", "1.0", &nested);
    let folder = tempfile::tempdir().unwrap();
    for name in ["unstated", "one", "bare", "nested", "shop/web:1.4"] {
        let image = if name.contains(':') {
            name.to_owned()
        } else {
            format!("{name}:1.0")
        };
        let image = format!("{}/{image}", registry.host());
        let file = folder.path().join("images.json");
        fs::write(&file, inspected(&registry, &image)).unwrap();
        let pod = format!(
            "kind: Pod\nmetadata: {{name: hpc}}\nspec: {{hostNetwork: true, nodeSelector: {{kubernetes.io/os: windows}}, \
             tolerations: [{{operator: Exists}}], securityContext: {{windowsOptions: {{hostProcess: \
             true}}}}, containers: [{{image: '{image}'}}]}}\n"
        );
        for isolation in ["process", "hyperv"] {
            let check = |more: &[&str]| {
                let mut command = wincimg();
                command
                    .args(["--nodes", &format!("{CLUSTERS}/aks.json"), &image])
                    .args(["--isolation", isolation, "--workloads", "-"])
                    .args(["--insecure-registry", &registry.host()])
                    .args(more)
                    .write_stdin(pod.clone());
                let (code, report) = answer_of(&mut command);
                (code, report["checks"].clone())
            };
            let offline = check(&["--offline", "--images", file.to_str().unwrap()]);
            assert_eq!(check(&[]), offline, "{name} {isolation}");
        }
    }
}

#[test]
fn an_image_for_linux_is_not_windows() {
    let registry = shop();
    let linux = registry.image_with(&json!({"os": "linux", "architecture": "amd64"}));
    registry.tag("tools/curl", "8", &linux);
    let (code, report) = checked(&registry.host(), "20348.2402", "tools/curl:8");
    assert_eq!(code, 1);
    let check = &report["checks"][0];
    assert_eq!(check["rule"], "not-windows");
    assert_eq!(check["commands"], json!([]), "nothing builds over it");
    assert_contains!(check["fix"].as_str().unwrap(), "kubernetes.io/os: linux");
}

#[test]
fn what_cannot_be_read_is_unknown_and_does_not_stop_the_rest() {
    let registry = shop();
    let served = locked_registry();
    let locked = served.host();
    let (code, report) = answer_of(
        wincimg()
            .args(["--insecure-registry", &registry.host()])
            .args(["--insecure-registry", &locked])
            .arg(format!("{locked}/secret/app:1"))
            .arg(format!("{}/shop/gone:1", registry.host()))
            .arg(format!("{}/shop/web:1.4", registry.host()))
            .args(["--host-build", "20348.2402"]),
    );
    assert_eq!(code, 1, "a gate does not open on what nobody knows");
    let checks = &report["checks"];
    assert_eq!(checks[0]["verdict"], "unknown");
    assert_eq!(checks[0]["rule"], "unknown-build");
    assert_contains!(checks[0]["reason"], "401");
    assert_contains!(checks[0]["fix"], "wincimg login");
    assert_contains!(checks[1]["reason"], "404");
    assert_eq!(checks[2]["verdict"], "compatible");
}

/// A registry that takes its time to say that it has nothing, and how many requests it had at once.
fn slow() -> (axum::Router, Arc<AtomicUsize>) {
    let (asked, at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = (asked, at_once.clone());
    let routes = axum::Router::new().fallback(move || {
        let (asked, at_once) = counters.clone();
        async move {
            at_once.fetch_max(asked.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
            asked.fetch_sub(1, Ordering::SeqCst);
            StatusCode::NOT_FOUND
        }
    });
    (routes, at_once)
}

#[test]
fn images_are_asked_for_at_the_same_time() {
    let (routes, at_once) = slow();
    let served = serve(routes);
    let slow = served.host();
    let images = (0..8).map(|index| format!("{slow}/app-{index}:1"));
    let (_, report) = answer_of(
        wincimg()
            .args(["--insecure-registry", &slow, "--host-build", "20348.1"])
            .args(images),
    );
    assert_eq!(report["summary"]["unknown"], 8);
    assert!(at_once.load(Ordering::SeqCst) > 1);
}

#[test]
fn entries_of_an_index_are_asked_for_at_the_same_time() {
    let (routes, at_once) = slow();
    let registry = FakeRegistry::start();
    let entry = |number: u64| {
        json!({"mediaType": registry.entry(&registry.image("windows", ""))["mediaType"],
            "digest": format!("sha256:{number:064}"), "size": 7,
            "platform": {"os": "windows", "architecture": "amd64"}})
    };
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": (0..16).map(entry).collect::<Vec<_>>()});
    let routes = routes.route(
        "/v2/app/manifests/1",
        axum::routing::get(move || std::future::ready(index.to_string())),
    );
    let served = serve(routes);
    let host = served.host();
    let (_, report) = checked(&host, "20348.1", "app:1");
    assert_eq!(report["checks"][0]["rule"], "missing-manifest", "{report}");
    assert!(at_once.load(Ordering::SeqCst) > 1);
}

#[test]
fn an_index_without_end_is_refused_before_its_entries_are_read() {
    let registry = FakeRegistry::start();
    let version = "10.0.20348.2402";
    let image = registry.image("windows", version);
    let many = |count: usize, digest: &str| registry.index_of(&vec![registry.entry(digest); count]);
    registry.tag("many", "1.0", &many(1001, &image));
    let half = many(600, &image);
    registry.tag("nested", "1.0", &many(2, &half));
    // The entries of the first nested index are within the limit: a manifest and a configuration each.
    for (name, most) in [("many", 50), ("nested", 4000)] {
        let reference = format!("{}/{name}:1.0", registry.host());
        let before = registry.requests().len();
        let (code, report) = checked(&registry.host(), "20348.2402", &format!("{name}:1.0"));
        assert_eq!(code, 1);
        assert_eq!(report["checks"][0]["verdict"], "unknown", "{report}");
        let reason = report["checks"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("1000"), "{reason}");
        inspect(&registry, &reference).fails(3, "image/document", &["1000", "index"]);
        let requests = registry.requests().len() - before;
        assert!(requests < most, "{name}: {requests} requests");
    }
}

#[test]
fn a_long_index_is_read_without_what_is_for_other_systems() {
    let registry = FakeRegistry::start();
    let host = "10.0.20348.2402";
    let image = |os: &str, number: usize| {
        let config = json!({"os": os, "architecture": "amd64", "os.version": host,
            "author": number.to_string()});
        let mut entry = registry.entry(&registry.image_with(&config));
        entry["platform"] = json!({"os": os, "architecture": "amd64"});
        entry
    };
    let mut entries: Vec<Value> = (0..190).map(|number| image("linux", number)).collect();
    entries.extend((0..10).map(|number| image("windows", number)));
    registry.tag("app", "1.0", &registry.index_of(&entries));
    let reference = format!("{}/app:1.0", registry.host());
    let (code, report) = checked(&registry.host(), "20348.2402", "app:1.0");
    assert_eq!(code, 0, "{report}");
    let (code, found) = answer_of(&mut inspect(&registry, &reference));
    assert_eq!((code, found["images"].as_array().unwrap().len()), (0, 10));
    assert_eq!(found["others"].as_array().unwrap().len(), 190);
    assert!(registry.requests().len() < 100);
}

#[test]
fn an_entry_with_a_size_that_its_manifest_does_not_have_is_not_called_compatible() {
    let registry = FakeRegistry::start();
    let own = "10.0.20348.2402";
    let mut entry = registry.entry(&registry.image("windows", own));
    entry["platform"] = json!({"os": "windows", "architecture": "amd64", "os.version": own});
    entry["size"] = json!(entry["size"].as_u64().unwrap() + 1);
    registry.tag("app", "1.0", &registry.index_of(&[entry]));
    let (code, report) = checked(&registry.host(), "20348.2402", "app:1.0");
    assert_eq!(code, 1, "{report}");
    let reason = report["checks"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("bytes"), "{report}");
    // As a base, it is no better.
    let base = |name: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.args(["image", "base", "resolve", name]);
        command.args(["--host-build", "20348.2402"]);
        command.args(["--base-registry", &registry.host()]);
        command.args(["--insecure-registry", &registry.host()]);
        command.args(["--registry-config", NO_CREDENTIALS]);
        command
    };
    registry.tag(
        "windows/nanoserver",
        own,
        &registry.index_of(&[json!({
            "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "digest": registry.image("windows", own),
            "size": 5,
            "platform": {"os": "windows", "architecture": "amd64", "os.version": own},
        })]),
    );
    let failure = base("nanoserver").fails(1, "base/nothing-fits", &[]);
    assert!(failure.stderr.contains("5 bytes"), "{failure:?}");
}

/// A registry that responds with 401 to every request.
fn locked_registry() -> TestServer {
    let routes = axum::Router::new().fallback(|| async {
        let challenge = [("www-authenticate", "Basic realm=\"secret\"")];
        (StatusCode::UNAUTHORIZED, challenge, "")
    });
    serve(routes)
}

#[test]
fn offline_only_what_is_given_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("built.json");
    let images = json!({
        "images": [
            {"reference": "repo.example/app:1-a", "digest": "sha256:0", "os_version": "10.0.17763.973"},
            {"reference": "repo.example/app:1-b", "digest": "sha256:1", "os_version": "10.0.20348.2402"},
        ],
        "index": {"reference": "repo.example/app:1", "digest": "sha256:2"},
    });
    fs::write(&built, images.to_string()).unwrap();
    let (code, report) = answer_of(
        wincimg()
            .args(["--offline", "repo.example/app:1", "repo.example/other:1"])
            .args(["--host-build", "20348.2402", "--images"])
            .arg(&built),
    );
    assert_eq!(code, 1);
    assert_eq!(report["checks"][0]["image"]["build"], "20348.2402");
    assert_eq!(report["checks"][0]["verdict"], "compatible");
    assert_eq!(report["checks"][1]["verdict"], "unknown");
    assert_contains!(report["checks"][1]["reason"], "--offline");
}

#[test]
fn a_name_that_can_be_no_images_is_a_mistake() {
    wincimg()
        .args(["Bad Image!", "--host-build", "20348.1"])
        .fails(2, "usage/location", &["\"Bad Image!\""]);
}

#[test]
fn a_check_has_every_field_that_the_contract_names() {
    let registry = shop();
    let folder = tempfile::tempdir().unwrap();
    let (_, report) = answer_of(check(&registry, "aks", &folder).arg("--plan"));
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(
        keys(&report),
        ["checks", "compatible", "plan", "summary", "workloads"]
    );
    assert_eq!(
        keys(&report["summary"]),
        ["compatible", "incompatible", "unknown", "warning"]
    );
    let checks = report["checks"].as_array().unwrap();
    let counted: u64 = keys(&report["summary"])
        .iter()
        .map(|key| report["summary"][key].as_u64().unwrap())
        .sum();
    assert_eq!(counted, checks.len() as u64);
    for check in checks {
        assert_eq!(
            keys(check),
            [
                "commands", "fix", "host", "image", "isolation", "reason", "rule", "verdict",
                "workload"
            ]
        );
        assert_eq!(keys(&check["host"]), ["build", "name"]);
        assert_eq!(keys(&check["image"]), ["build", "reference"]);
        assert_eq!(keys(&check["workload"]), ["kind", "name", "namespace"]);
    }
}

#[test]
fn a_workload_cannot_name_files_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let pod = format!(
        "kind: Pod\nspec: {{nodeSelector: {{kubernetes.io/os: windows}}, containers: [{{image: \"oci:{}\"}}]}}",
        folder.path().display()
    );
    let mut command = wincimg();
    command
        .args(["--host-build", "20348.1", "--workloads", "-"])
        .write_stdin(pod);
    let (_, report) = answer_of(&mut command);
    let reason = report["checks"][0]["reason"].as_str().unwrap();
    let place = format!("oci:{}", folder.path().display());
    assert_contains!(reason, &place);
}

#[test]
fn what_inspect_said_is_taken_with_its_time_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inspected.json");
    let inspected = json!({
        "reference": "repo.example/app:1.0",
        "images": [{
            "digest": "sha256:0", "os": "windows", "architecture": "amd64",
            "os_version": "10.0.20348.2402", "size": 22732,
            "shutdown": {"seconds": 5, "complete": true},
        }],
        "others": [],
    });
    fs::write(&file, inspected.to_string()).unwrap();
    let pod = "kind: Pod\nspec: {os: {name: windows}, nodeSelector: {kubernetes.io/os: windows}, \
               terminationGracePeriodSeconds: 90, containers: [{image: \"repo.example/app:1.0\"}]}";
    let mut command = wincimg();
    command
        .args([
            "--offline", "--host-build", "20348.2402", "--workloads", "-", "--images",
        ])
        .arg(&file)
        .write_stdin(pod);
    let (code, report) = answer_of(&mut command);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["checks"][0]["rule"], "build-match");
    assert_eq!(report["checks"][1]["rule"], "grace-period");
}
