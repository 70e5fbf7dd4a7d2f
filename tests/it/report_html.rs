//! The HTML report in a real browser: headless Chromium, driven over `WebDriver`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assert_cmd::Command;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use wincimg_testkit::harness::skip;

use crate::api::windows_node;
use crate::browser::Browser;
use crate::site::write;

const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters");
/// Folder for screenshots.
const ARTIFACTS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/report");

/// The shop's images, so that no registry is required.
fn shop_images() -> Value {
    let image = |name: &str, version: &str| json!({"reference": format!("registry.example/shop/{name}"), "os_version": version});
    json!({"images": [
        image("web:1.4", "10.0.17763.5696"),
        image("web:1.4", "10.0.20348.2402"),
        image("migrate:2.0", "10.0.17763.5696"),
        {"reference": "registry.example/shop/logs:latest"},
    ]})
}

/// Writes a report as a page and as text, and returns the page's path.
fn report(folder: &Path, nodes: &Path, images: &Value, workloads: &str) -> PathBuf {
    let (images_file, workloads_file) = (folder.join("images.json"), folder.join("w.yaml"));
    fs::write(&images_file, images.to_string()).unwrap();
    fs::write(&workloads_file, workloads).unwrap();
    let page = folder.join("report.html");
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(folder)
        .args([
            "check-compat", "--offline", "--plan", "--on", "2024-06-01", "--format", "html",
        ])
        .arg("--nodes")
        .arg(nodes)
        .arg("--images")
        .arg(images_file)
        .arg("--workloads")
        .arg(workloads_file)
        .args(["--report", "text:report.txt", "--output"])
        .arg(&page)
        .env("SOURCE_DATE_EPOCH", "1717243200")
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
        "10.0.17763.973", "10.0.17763.5696", "10.0.20348.2402", "10.0.20348.2655",
        "10.0.26100.2314", "10.0.14393.6796",
    ];
    let items: Vec<Value> = (0..nodes)
        .map(|index| {
            let kernel = BUILDS[index * 7 % BUILDS.len()];
            let mut node = windows_node(&format!("akswin{index:06x}"), kernel);
            node["metadata"]["labels"]["pool"] = json!(format!("p{}", index % 20));
            node
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
                "kind: Deployment\nmetadata: {{name: svc-{index}, namespace: team{}, uid: u{index}}}\nspec:\n  template:\n    spec:\n      \
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

/// The page and the text of a cluster of 300 nodes, which take seconds to make.
fn reports_of_300() -> &'static [String; 2] {
    static MADE: OnceLock<[String; 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        large(folder.path(), 300);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        ["report.html", "report.txt"].map(read)
    })
}

/// Writes that page.
fn page_of_300(folder: &Path) -> PathBuf {
    write(folder, "report.html", &reports_of_300()[0])
}

fn keep(name: &str, screenshot: &str) {
    fs::create_dir_all(ARTIFACTS).unwrap();
    let file = Path::new(ARTIFACTS).join(name);
    fs::write(file, BASE64.decode(screenshot).unwrap()).unwrap();
}

/// One browser for all of these, as its start takes most of their time.
#[test]
async fn a_page_answers_explains_and_can_be_used_by_everybody() {
    let browser = Browser::start().await;
    let folder = tempfile::tempdir().unwrap();
    let page = shop(folder.path());
    the_page_begins_with_the_answer_and_the_matrix(&browser, &page).await;
    tables_filter_and_explain(&browser, &page).await;
    workloads_and_nodes_can_be_linked_to(&browser, &page).await;
    keys_and_screen_readers_find_their_way(&browser, &page).await;
    signs_are_readable_in_light_and_dark(&browser, &page).await;
}

async fn the_page_begins_with_the_answer_and_the_matrix(browser: &Browser, page: &Path) {
    browser.open(page).await;
    assert_eq!(
        browser.text("h1").await,
        "1 workload lands on no node: shop/nightly"
    );
    assert_eq!(
        browser.text("#rest").await,
        "2 can land where they do not start · 1 starts with a warning · 1 is safe"
    );
    let cases = browser.text("#cases").await;
    let places = [
        "shop/nightly lands on no node",
        "Fix: add tolerations for them to the pod's spec",
        "shop/web can land where it does not start; it starts on 2 of 4 nodes",
        "too-old-for-host",
        "kubectl patch deployment web --namespace shop",
        "default/forgotten can land",
    ]
    .map(|part| {
        cases
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} in {cases}"))
    });
    assert!(places.is_sorted(), "{cases}");
    let plan = browser.text("#plan").await;
    assert_contains!(plan, "Then everything starts. 1 workload lands on no node");
    let order = browser
        .eval("return [...document.querySelectorAll('main > section')].map(s => s.id).join(' ')")
        .await;
    assert_eq!(order, "board first plan todo pictures");
    let is_hidden = "return document.querySelector('#details').hidden";
    assert_eq!(
        browser.eval(is_hidden).await,
        true,
        "until a cell is chosen"
    );
    let foot = browser.text("footer").await;
    assert_contains!(
        foot,
        "Checked 2024-06-01 12:00 UTC · ",
        "aks.json · wincimg "
    );
    assert!(browser.text("#todo").await.contains("floating-tag"));

    browser.click("#cases .command button").await;
    browser
        .wait_for(
            "return document.querySelector('#cases .command button').textContent === 'Copied'",
        )
        .await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    assert_eq!(
        browser.fetched().await,
        0,
        "the page asks no network for anything"
    );
}

async fn tables_filter_and_explain(browser: &Browser, page: &Path) {
    browser.open(page).await;
    assert_eq!(browser.count("tbody tr").await, 4);
    let signs = "return [...document.querySelectorAll('tbody td button')].map(b => b.textContent[0]).join('')";
    // Incompatible ones come first.
    assert_eq!(browser.eval(signs).await, "✓✓✓✓✓✓✕✓✓✕✓✓");

    browser.click("tbody tr:nth-child(3) td button").await;
    let details = browser.text("#details").await;
    for printed in [
        "registry.example/shop/migrate:2.0",
        "on akswin22000000: Server 2022, 20348.2402, containerd",
        "does not start\ntoo-old-for-host",
        "for shop/web",
        "for default/forgotten",
        "kubectl replace --force --filename pod-forgotten.json",
    ] {
        assert!(details.contains(printed), "{printed:?} in {details}");
    }
    assert_eq!(
        browser.eval("return location.hash").await,
        "#node=akswin22000000"
    );

    browser.type_into("#find-image", "web").await;
    browser.wait_for_count("tbody td", 4).await;
    assert_eq!(browser.text("#shown").await, "4 of 4 nodes, 1 of 3 images");
    browser.type_into("#find-node", "2022").await;
    browser.wait_for_count("tbody tr", 2).await;
    browser.click("#filters button[type=reset]").await;
    browser.wait_for_count("tbody td", 12).await;
    browser.click("#levels button").await;
    assert_eq!(
        browser.count("tbody td").await,
        2,
        "only what does not start is left"
    );
    browser.click("#levels button:nth-child(2)").await;
    assert_eq!(browser.text("#shown").await, "Nothing fits the filter.");
    browser.click("#levels button:nth-child(2)").await;
    browser.type_into("#find-workload", "cache").await;
    browser.wait_for_count("tbody td", 2).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

async fn workloads_and_nodes_can_be_linked_to(browser: &Browser, page: &Path) {
    browser.open_at(page, "#workload=shop/web").await;
    assert_eq!(browser.count("tbody tr").await, 5);
    let first =
        "return [...document.querySelectorAll('tbody th a')].map(a => a.textContent).join(' ')";
    assert_eq!(
        browser.eval(first).await,
        "shop/nightly shop/web default/forgotten kube-system/logs shop/cache"
    );
    assert_eq!(browser.text("tr[aria-current] a").await, "shop/web");
    let details = browser.text("#details").await;
    for printed in [
        "shop/web can land where it does not start",
        "registry.example/shop/migrate:2.0",
        "on 2 nodes of 20348.2402 · Server 2022",
        "registry.example/shop/web:1.4",
        "build-match",
    ] {
        assert!(details.contains(printed), "{printed:?} in {details}");
    }
    // All containers of a pod must start, so a workload has one result for each kind of node.
    let of_web = browser.text("tr[aria-current]").await;
    assert!(of_web.contains("✓") && of_web.contains("✕"), "{of_web}");

    browser.click("#details a").await;
    browser
        .wait_for("return document.querySelector('#views [aria-current]').hash === '#nodes'")
        .await;
    assert!(browser.text("#details").await.starts_with("akswin2200000"));
    browser.click("#views a[href='#workloads']").await;
    browser.wait_for_count("tbody tr", 5).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[test]
async fn names_hidden_images_and_equal_cards_are_shown_as_they_are() {
    let browser = Browser::start().await;
    what_is_hidden_is_said(&browser).await;
    names_that_look_like_markup_stay_names(&browser).await;
    cards_that_only_differ_in_their_workload_are_one(&browser).await;
}

async fn what_is_hidden_is_said(browser: &Browser) {
    let folder = tempfile::tempdir().unwrap();
    let pods = "kind: Pod\nmetadata: {name: p}\nspec: {nodeSelector: {kubernetes.io/os: windows, no: where}, \
                containers: [{image: 'r.example/away:1'}]}\n---\n\
                kind: Pod\nmetadata: {name: q}\nspec: {nodeSelector: {kubernetes.io/os: windows, \
                node.kubernetes.io/windows-build: 10.0.17763}, tolerations: [{operator: Exists}], \
                containers: [{image: 'r.example/here:1'}]}\n";
    let images = json!({"images": [
        {"reference": "r.example/away:1", "os_version": "10.0.20348.1"},
        {"reference": "r.example/here:1", "os_version": "10.0.20348.1"},
    ]});
    let nodes = PathBuf::from(format!("{CLUSTERS}/aks.json"));
    browser
        .open(&report(folder.path(), &nodes, &images, pods))
        .await;
    assert_eq!(
        browser.text("#hidden").await,
        "1 image lands on no node: away:1. No pod lands on 2 nodes: akswin22000000, akswin22000001."
    );
}

async fn keys_and_screen_readers_find_their_way(browser: &Browser, page: &Path) {
    browser.open(page).await;
    let nodes = browser.accessibility_tree().await;
    for (role, name) in [
        ("heading", "1 workload lands on no node: shop/nightly"),
        ("search", "Filter the table"),
        ("searchbox", "Node"),
        ("columnheader", "registry.example/shop/web:1.4"),
        ("rowheader", "akswin22000000 20348.2402 · Server 2022"),
        ("button", "does not start"),
        ("link", "Workloads"),
        (
            "image",
            "What changes: as it is: 1 workload lands on no node · 2 can land where they do not start · \
             1 starts with a warning · 1 is safe; after the plan: 1 workload lands on no node · \
             1 starts with a warning · 3 are safe",
        ),
        (
            "image",
            "Nodes by the end of their support: 2 nodes of Server 2019, support until 2029-01-09; \
             2 nodes of Server 2022, support until 2031-10-14",
        ),
        (
            "image",
            "Images by the age of their base: up to a month: 0; up to 3 months: 2; up to 6 months: 0; \
             up to a year: 0; over a year: 0; not known: 1",
        ),
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
    assert_contains!(details, "akswin22000000");
    let stops = browser
        .eval("return [...document.querySelectorAll('#table button, #table a')].filter(b => b.tabIndex === 0).length")
        .await;
    assert_eq!(stops, 1, "Tab does not have to pass every cell");
}

/// The text with long parts shortened.
fn beginnings(text: &str) -> String {
    let mut short = String::new();
    for part in text.split_inclusive("\n\n") {
        let lines: Vec<&str> = part.lines().collect();
        let shown = lines.len().min(10);
        short.push_str(&lines[..shown].join("\n"));
        short.push('\n');
        if shown < lines.len() {
            let _ = write!(short, "… {} lines more\n\n", lines.len() - shown);
        }
    }
    short
}

/// The first and last lines of a long text.
fn ends(text: &str) -> String {
    const SHOWN: usize = 120;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * SHOWN {
        return text.to_owned();
    }
    let (first, last) = (&lines[..SHOWN], &lines[lines.len() - SHOWN..]);
    format!("{}\n[…]\n{}\n", first.join("\n"), last.join("\n"))
}

#[test]
fn the_same_is_said_as_text() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path());
    let few = fs::read_to_string(folder.path().join("report.txt")).unwrap();
    for (nodes, text) in [(5, &few), (300, &reports_of_300()[1])] {
        insta::assert_snapshot!(format!("report_of_{nodes}_nodes"), ends(&beginnings(text)));
    }
}

/// A phone, a laptop, and a wall display.
const WIDTHS: [(&str, u64); 3] = [("phone", 390), ("laptop", 1366), ("wide", 2560)];

#[test]
async fn every_screen_shows_it_whole_in_light_and_dark() {
    let browser = Browser::start().await;
    let (few, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (nodes, page) in [(5, shop(few.path())), (300, page_of_300(many.path()))] {
        for (screen, width) in WIDTHS {
            for (scheme, view) in [("light", "#nodes"), ("dark", "#workloads")] {
                browser.resize(width, 900).await;
                browser.prefer(scheme).await;
                browser.open_at(&page, view).await;
                let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(browser.eval(overflow).await, 0, "{screen} {view}");
                let heads = browser
                    .eval(
                        "return [...document.querySelectorAll('thead th')].map(th => [\
                         getComputedStyle(th).writingMode, th.clientHeight])",
                    )
                    .await;
                for head in heads.as_array().unwrap() {
                    assert_eq!(head[0], "horizontal-tb");
                    assert!(head[1].as_f64().unwrap() < 60.0, "two lines: {heads}");
                }
                let name = format!("report-{nodes}-nodes-{screen}-{scheme}.png");
                keep(&name, &browser.screenshot().await);
            }
        }
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[test]
async fn axe_finds_nothing_inaccessible() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/target/axe/axe_playwright_python/axe.min.js"
    );
    let axe = fs::read_to_string(file)
        .unwrap_or_else(|_| skip("axe-core (tests/run installs it in target/axe)"));
    let browser = Browser::start().await;
    let folder = tempfile::tempdir().unwrap();
    let page = shop(folder.path());
    for (_, width) in WIDTHS {
        for scheme in ["light", "dark"] {
            for view in ["#nodes", "#workload=shop/web"] {
                browser.resize(width, 900).await;
                browser.prefer(scheme).await;
                browser.open_at(&page, view).await;
                browser.eval(&axe).await;
                let found = browser
                    .eval(
                        "return axe.run().then(found => [found.passes.length, found.violations\
                         .map(one => `${one.id}: ${one.nodes.map(node => node.html).join(' ')}`)])",
                    )
                    .await;
                assert!(found[0].as_u64().unwrap() > 20, "{found}");
                assert_eq!(found[1], json!([]), "{width} {scheme} {view}");
            }
        }
    }
}

async fn signs_are_readable_in_light_and_dark(browser: &Browser, page: &Path) {
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
            const style = getComputedStyle(document.querySelector(`#levels .l${level}`));
            const [a, b] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
            return (a + 0.05) / (b + 0.05);
        });";
    browser.open(page).await;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await;
        let contrasts = browser.eval(CONTRAST).await;
        for contrast in contrasts.as_array().unwrap() {
            assert!(contrast.as_f64().unwrap() >= 4.5, "{scheme}: {contrasts}");
        }
    }
}

#[test]
async fn two_thousand_nodes_are_painted_within_a_second() {
    let browser = Browser::start().await;
    let folder = tempfile::tempdir().unwrap();
    let page = large(folder.path(), 2000);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 5_000_000, "{size} bytes");
    // Other tests use the processors too: the best of several tries counts.
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        browser.open(&page).await;
        let paint = "performance.getEntriesByName('first-contentful-paint')";
        browser
            .wait_for(&format!("return {paint}.length === 1"))
            .await;
        let painted = browser.eval(&format!("return {paint}[0].startTime")).await;
        best = best.min(painted.as_f64().unwrap());
        if best < 1000.0 {
            break;
        }
    }
    assert!(best < 1000.0, "{best} ms");
    assert_eq!(
        browser.text("#shown").await,
        "2000 of 2000 nodes, 200 of 200 images"
    );
    keep("report-2000-nodes.png", &browser.screenshot().await);

    // Every node separately, one page at a time.
    browser.click("#grouped").await;
    browser.wait_for_count("tbody tr", 50).await;
    assert!(browser.text("#pages").await.contains("rows 1–50 of 2000"));
    browser
        .click("#pages button[aria-label='later rows']")
        .await;
    assert!(browser.text("#pages").await.contains("rows 51–100 of 2000"));
    browser.type_into("#find-node", "akswin0007cf").await;
    browser.wait_for_count("tbody tr", 1).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[test]
async fn paper_has_everything_in_columns_that_can_be_read() {
    let browser = Browser::start().await;
    let folder = tempfile::tempdir().unwrap();
    browser.open(&page_of_300(folder.path())).await;
    browser.emulate_print().await;
    let heads = "document.querySelectorAll('#both thead th:not(:first-child)')";
    assert_eq!(browser.eval(&format!("return {heads}.length")).await, 200);
    let narrowest = format!("return Math.min(...[...{heads}].map(th => th.clientWidth))");
    let narrowest = browser.eval(&narrowest).await;
    assert!(narrowest.as_f64().unwrap() >= 60.0, "{narrowest}");
    let beside =
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.eval(beside).await, 0);
    // Folded parts cannot be opened on paper, so they are printed.
    let plan = browser.text("#plan").await;
    assert_contains!(plan, "wincimg build RECIPE");
    for hidden in ["#filter-box", "#details", "#pages", ".command button"] {
        let display =
            format!("return getComputedStyle(document.querySelector('{hidden}')).display");
        assert_eq!(browser.eval(&display).await, "none", "{hidden}");
    }
    keep("report-300-nodes-paper.png", &browser.whole_page().await);
    browser.eval("dispatchEvent(new Event('afterprint'))").await;
    assert_eq!(browser.count("#both table").await, 1);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

async fn names_that_look_like_markup_stay_names(browser: &Browser) {
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
        .eval("return document.querySelector('tbody th a').textContent")
        .await;
    assert_eq!(heading.as_str().unwrap().trim(), evil);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[test]
async fn the_matrix_is_on_the_first_screen_of_a_large_cluster() {
    let browser = Browser::start().await;
    let folder = tempfile::tempdir().unwrap();
    let page = page_of_300(folder.path());
    for (screen, width) in WIDTHS {
        browser.resize(width, 900).await;
        browser.open(&page).await;
        let top = "return document.querySelector('tbody td').getBoundingClientRect().bottom";
        let top = browser.eval(top).await;
        assert!(top.as_f64().unwrap() < 600.0, "{screen}: {top}");
    }
    // No word of a command is broken at a hyphen.
    let parts = "return [...document.querySelectorAll('.command code .word')].every(word => \
                 word.getClientRects().length === 1)";
    for width in [390, 700, 1366] {
        browser.resize(width, 900).await;
        assert_eq!(browser.eval(parts).await, true, "{width}");
    }
}

async fn cards_that_only_differ_in_their_workload_are_one(browser: &Browser) {
    let folder = tempfile::tempdir().unwrap();
    let workload = |name: &str| {
        format!(
            "kind: Deployment\nmetadata: {{name: {name}}}\nspec: {{template: {{spec: {{nodeSelector: \
             {{kubernetes.io/os: windows}}, tolerations: [{{operator: Exists}}], containers: [{{name: a, \
             image: 'registry.example/shop/web:1.4'}}]}}}}}}\n"
        )
    };
    let workloads: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(workload).into();
    let images = json!({"images": [
        {"reference": "registry.example/shop/web:1.4", "os_version": "10.0.20348.2402"},
    ]});
    let nodes = PathBuf::from(format!("{CLUSTERS}/aks.json"));
    let page = report(folder.path(), &nodes, &images, &workloads.join("---\n"));
    browser.open(&page).await;
    assert_eq!(browser.count("#cases > li").await, 1);
    assert_eq!(browser.count("#cases .command").await, 6, "some are folded");
    let text = fs::read_to_string(folder.path().join("report.txt")).unwrap();
    assert_eq!(text.matches("  why: ").count(), 1, "{text}");
    assert_eq!(text.matches("  run: kubectl patch ").count(), 6, "{text}");
}
