//! The HTML report in a real browser: Chromium without a window, driven over `WebDriver`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::browser::Browser;
use assert_cmd::Command;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters");
const ARTIFACTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/artifacts");

/// What the shop's images are, so that no registry is needed.
fn shop_images() -> Value {
    let image = |name: &str, version: &str| json!({"reference": format!("registry.example/shop/{name}"), "os_version": version});
    json!({"images": [
        image("web:1.4", "10.0.17763.5696"),
        image("web:1.4", "10.0.20348.2402"),
        image("migrate:2.0", "10.0.17763.5696"),
        {"reference": "registry.example/shop/logs:latest"},
    ]})
}

/// Writes a report of nodes, images and workloads, and says where it is.
fn report(folder: &Path, nodes: &Path, images: &Value, workloads: &str) -> PathBuf {
    let (images_file, workloads_file) = (folder.join("images.json"), folder.join("w.yaml"));
    fs::write(&images_file, images.to_string()).unwrap();
    fs::write(&workloads_file, workloads).unwrap();
    let page = folder.join("report.html");
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(folder)
        .args([
            "check-compat",
            "--offline",
            "--plan",
            "--on",
            "2024-06-01",
            "--format",
            "html",
        ])
        .arg("--nodes")
        .arg(nodes)
        .arg("--images")
        .arg(images_file)
        .arg("--workloads")
        .arg(workloads_file)
        .arg("--output")
        .arg(&page)
        .assert()
        .code(1);
    page
}

fn shop(folder: &Path) -> PathBuf {
    let workloads = fs::read_to_string(format!("{CLUSTERS}/shop.yaml")).unwrap();
    let nodes = PathBuf::from(format!("{CLUSTERS}/aks.json"));
    let workloads = workloads.replace("REGISTRY", "registry.example");
    report(folder, &nodes, &shop_images(), &workloads)
}

/// A cluster of this many nodes, 500 workloads and 200 images.
fn large(folder: &Path, nodes: usize) -> PathBuf {
    const BUILDS: [&str; 6] = [
        "10.0.17763.973",
        "10.0.17763.5696",
        "10.0.20348.2402",
        "10.0.20348.2655",
        "10.0.26100.2314",
        "10.0.14393.6796",
    ];
    let items: Vec<Value> = (0..nodes)
        .map(|index| {
            json!({
                "metadata": {
                    "name": format!("akswin{index:06x}"),
                    "labels": {"kubernetes.io/os": "windows", "pool": format!("p{}", index % 20)},
                },
                "status": {"nodeInfo": {
                    "operatingSystem": "windows",
                    "architecture": "amd64",
                    "kernelVersion": BUILDS[index * 7 % BUILDS.len()],
                    "containerRuntimeVersion": "containerd://1.7.22",
                }},
            })
        })
        .collect();
    let nodes_file = folder.join("nodes.json");
    fs::write(
        &nodes_file,
        json!({"kind": "List", "items": items}).to_string(),
    )
    .unwrap();
    let name = |index: usize| format!("repo.example/team{}/service-{index}:1.{index}", index % 10);
    let images: Vec<Value> = (0..200)
        .flat_map(|index| {
            (0..=index % 3).map(move |more| {
                let version = BUILDS[(index + more) % BUILDS.len()];
                json!({"reference": name(index), "os_version": version})
            })
        })
        .collect();
    let workloads: Vec<String> = (0..500)
        .map(|index| {
            let pool = if index % 3 == 0 {
                format!(", pool: p{}", index % 20)
            } else {
                String::new()
            };
            format!(
                "kind: Deployment\nmetadata: {{name: svc-{index}, namespace: team{}}}\nspec:\n  template:\n    spec:\n      \
                 nodeSelector: {{kubernetes.io/os: windows{pool}}}\n      containers:\n      \
                 - {{name: a, image: {}}}\n      - {{name: b, image: {}}}\n",
                index % 10,
                name(index % 200),
                name(index * 7 % 200)
            )
        })
        .collect();
    report(
        folder,
        &nodes_file,
        &json!({"images": images}),
        &workloads.join("---\n"),
    )
}

fn keep(name: &str, screenshot: &str) {
    fs::create_dir_all(ARTIFACTS).unwrap();
    let file = Path::new(ARTIFACTS).join(name);
    fs::write(file, BASE64.decode(screenshot).unwrap()).unwrap();
}

#[tokio::test]
async fn the_page_shows_filters_and_explains() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&shop(folder.path())).await;

    let headline = "1 workload lands on no node · 2 can land where they do not start · \
                    1 starts with a warning · 1 is safe";
    assert_eq!(browser.text("h1").await, headline);
    assert_eq!(browser.count("tbody tr").await, 4);
    assert_eq!(browser.count("tbody td").await, 12);
    let signs = browser.eval("return [...document.querySelectorAll('tbody td button')].map(b => b.textContent).join('')").await;
    assert_eq!(signs, "✓✓✓✓✓✓✕✓✓✕✓✓");

    browser.click("tbody tr:nth-child(3) td button").await;
    let details = browser.text("#details").await;
    for said in [
        "registry.example/shop/migrate:2.0",
        "on akswin22000000: Windows Server 2022, 20348.2402, containerd",
        "incompatible · too-old-for-host",
        "for Deployment shop/web",
        "for Pod default/forgotten",
        "kubectl replace --force --filename pod-forgotten.json",
    ] {
        assert!(details.contains(said), "{said:?} in {details}");
    }
    browser.click("#details .command button").await;
    browser
        .wait_for(
            "return document.querySelector('#details .command button').textContent === 'Copied'",
        )
        .await;

    browser.type_into("#find-image", "web").await;
    browser
        .wait_for("return document.querySelectorAll('tbody td').length === 4")
        .await;
    assert_eq!(
        browser.text("#shown").await,
        "4 nodes of 4 and 1 image of 3"
    );
    browser.type_into("#find-node", "2022").await;
    browser
        .wait_for("return document.querySelectorAll('tbody tr').length === 2")
        .await;
    browser.click("#filters button[type=reset]").await;
    browser.type_into("#find-node", "2022").await;
    browser
        .wait_for("return document.querySelectorAll('#problems > li').length === 2")
        .await;
    let problems = browser.text("#problems").await;
    assert!(problems.contains("too-old-for-host"), "{problems}");
    browser.click("#filters button[type=reset]").await;
    browser.type_into("#find-node", "2019").await;
    browser
        .wait_for(
            "return document.querySelector('#problems').innerText === 'Nothing fits the filter.'",
        )
        .await;
    browser.click("#filters button[type=reset]").await;
    browser
        .wait_for("return document.querySelectorAll('tbody td').length === 12")
        .await;

    let plan = browser.text("#plan").await;
    assert!(plan.contains("Then everything starts."), "{plan}");

    browser.click("#levels button").await;
    assert_eq!(
        browser.count("tbody td").await,
        2,
        "only what does not start is left"
    );
    browser.click("#levels button:nth-child(2)").await;
    assert_eq!(
        browser.text("#shown").await,
        "No node and image fit the filter."
    );
    assert_eq!(
        browser.count("#problems > li").await,
        3,
        "warnings about workloads have no cell"
    );
    browser.click("#levels button:nth-child(2)").await;
    browser.type_into("#find-workload", "cache").await;
    browser
        .wait_for("return document.querySelectorAll('tbody td').length === 2")
        .await;
    browser.click("#filters button[type=reset]").await;

    keep("report-5-nodes.png", &browser.screenshot().await);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    assert_eq!(
        browser.fetched().await,
        0,
        "the page asks no network for anything"
    );
}

#[tokio::test]
async fn keys_and_screen_readers_find_their_way() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&shop(folder.path())).await;
    let nodes = browser.accessibility_tree().await;
    for (role, name) in [
        (
            "heading",
            "1 workload lands on no node · 2 can land where they do not start · \
             1 starts with a warning · 1 is safe",
        ),
        ("search", "Filter the matrix"),
        ("searchbox", "Node"),
        ("columnheader", "web:1.4 registry.example/shop/"),
        ("rowheader", "akswin22000000 20348.2402 · Server 2022"),
        ("button", "does not start"),
        ("button", "incompatible 4"),
        ("complementary", "Details"),
    ] {
        assert!(
            nodes.iter().any(|(own, text)| own == role && text == name),
            "{role} {name:?} in {nodes:#?}"
        );
    }
    let unnamed: Vec<_> = nodes
        .iter()
        .filter(|(role, name)| role == "button" && name.is_empty())
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");

    browser
        .eval("document.querySelector('tbody td button').focus()")
        .await;
    browser.press("\u{E015}\u{E015}\u{E007}").await;
    let details = browser.text("#details").await;
    assert!(
        details.contains("akswin22000000"),
        "down, down, Enter: {details}"
    );
    let stops = browser
        .eval("return [...document.querySelectorAll('td button')].filter(b => b.tabIndex === 0).length")
        .await;
    assert_eq!(stops, 1, "Tab does not have to pass every cell");
}

#[tokio::test]
async fn signs_are_readable_in_light_and_dark() {
    const CONTRAST: &str = r"
        const numbers = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
        const light = (colour) => {
            const [r, g, b] = numbers(colour).map((part) => {
                const share = part / 255;
                return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        return [0, 1, 2, 3].map((level) => {
            const style = getComputedStyle(document.querySelector(`#legend .l${level}`));
            const [a, b] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
            return (a + 0.05) / (b + 0.05);
        });";
    let Some(browser) = Browser::start().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    browser.open(&shop(folder.path())).await;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await;
        let contrasts = browser.eval(CONTRAST).await;
        for contrast in contrasts.as_array().unwrap() {
            assert!(contrast.as_f64().unwrap() >= 4.5, "{scheme}: {contrasts}");
        }
    }
    keep("report-dark.png", &browser.screenshot().await);
}

#[tokio::test]
async fn two_thousand_nodes_are_painted_within_a_second() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = large(folder.path(), 2000);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 5_000_000, "{size} bytes");
    browser.open(&page).await;
    let paint = "performance.getEntriesByName('first-contentful-paint')";
    browser
        .wait_for(&format!("return {paint}.length === 1"))
        .await;
    let painted = browser.eval(&format!("return {paint}[0].startTime")).await;
    eprintln!("{size} bytes, first contentful paint after {painted} ms");
    assert!(painted.as_f64().unwrap() < 1000.0, "{painted}");
    assert_eq!(
        browser.text("#shown").await,
        "2000 nodes of 2000 and 200 images of 200"
    );
    keep("report-2000-nodes.png", &browser.screenshot().await);

    // Every node by itself, a page at a time.
    browser.click("#grouped").await;
    browser
        .wait_for("return document.querySelectorAll('tbody tr').length === 50")
        .await;
    assert!(browser.text("#pages").await.contains("nodes 1–50 of 2000"));
    browser
        .click("#pages button[aria-label='later nodes']")
        .await;
    assert!(
        browser
            .text("#pages")
            .await
            .contains("nodes 51–100 of 2000")
    );
    browser.type_into("#find-node", "akswin0007cf").await;
    browser
        .wait_for("return document.querySelectorAll('tbody tr').length === 1")
        .await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn names_that_look_like_markup_stay_names() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let nodes = folder.path().join("nodes.json");
    let evil = "</script><img src=x onerror=alert(1)>{{script}}";
    let list = json!({"kind": "List", "items": [{
        "metadata": {"name": evil},
        "status": {"nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.14393.1"}},
    }]});
    fs::write(&nodes, list.to_string()).unwrap();
    let workloads = fs::read_to_string(format!("{CLUSTERS}/shop.yaml")).unwrap();
    let workloads = workloads.replace("REGISTRY", "registry.example");
    browser
        .open(&report(folder.path(), &nodes, &shop_images(), &workloads))
        .await;
    assert_eq!(browser.count("img").await, 0);
    let heading = browser
        .eval("return document.querySelector('tbody th').firstChild.textContent")
        .await;
    assert_eq!(heading.as_str().unwrap().trim(), evil);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
