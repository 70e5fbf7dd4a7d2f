//! Docker's registry behind faults in the middle of a push: each push ends with the right image or
//! with a clear error, and sends little more than the image.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use wincimg_testkit::component;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::harness::skip;
use wincimg_testkit::noise;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first};

use crate::failure::Fails;
use crate::hostile::run_and_check;
use crate::site::Site;

/// Size of the image's layer.
const LAYER: usize = 3 << 20;
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// What a push must end with.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// The image is there, and at most this many layers were sent.
    Image(usize),
    /// An error that names these texts, after at most this many layers.
    Error(&'static [&'static str], usize),
}

type Rule = Box<dyn FnMut(&ProxiedRequest) -> ProxyFault + Send>;

fn answer(status: u16, wait: Option<&str>) -> ProxyFault {
    let wait = wait.map(|wait| ("retry-after", wait.to_owned()));
    ProxyFault::Answer(status, wait.into_iter().collect(), String::new())
}

fn lost() -> ProxyFault {
    let body = r#"{"errors":[{"code":"BLOB_UPLOAD_UNKNOWN","message":"blob upload unknown"}]}"#;
    ProxyFault::Answer(404, Vec::new(), body.to_owned())
}

fn sends_blob(passed: &ProxiedRequest) -> bool {
    matches!(passed.method.as_str(), "PATCH" | "PUT") && passed.path.contains("/blobs/uploads/")
}

/// A request for more than goes through a connection that is cut.
fn sends_much(passed: &ProxiedRequest) -> bool {
    let length = passed.header("content-length");
    let length = length.and_then(|text| text.parse().ok());
    sends_blob(passed) && length.is_some_and(|length: usize| length > LAYER / 4)
}

fn ends_upload(passed: &ProxiedRequest) -> bool {
    passed.method == "PUT" && passed.path.contains("/blobs/uploads/")
}

fn writes(passed: &ProxiedRequest) -> bool {
    !matches!(passed.method.as_str(), "GET" | "HEAD")
}

fn puts_manifest(passed: &ProxiedRequest) -> bool {
    passed.method == "PUT" && passed.path.contains("/manifests/")
}

/// Every fault, with its name.
fn cells() -> Vec<(&'static str, Rule, Expected)> {
    let every = |which: fn(&ProxiedRequest) -> bool, fault: ProxyFault| -> Rule {
        Box::new(first(usize::MAX, which, fault))
    };
    vec![
        (
            "none",
            every(|_| false, ProxyFault::Pass),
            Expected::Image(1),
        ),
        (
            "50 ms before each answer",
            Box::new(|_: &ProxiedRequest| {
                std::thread::sleep(Duration::from_millis(50));
                ProxyFault::Pass
            }),
            Expected::Image(1),
        ),
        (
            "429 twice",
            Box::new(first(2, writes, answer(429, None))),
            Expected::Image(1),
        ),
        (
            "429 twice, for a second",
            Box::new(first(2, writes, answer(429, Some("1")))),
            Expected::Image(1),
        ),
        (
            "429 for an hour",
            every(writes, answer(429, Some("3600"))),
            Expected::Error(&["429", "60 minutes"], 0),
        ),
        (
            "429 for ever",
            every(writes, answer(429, None)),
            Expected::Error(&["429", "later"], 0),
        ),
        (
            "an upload lost at its end",
            Box::new(first(1, ends_upload, lost())),
            Expected::Image(3),
        ),
        (
            "every upload lost at its end",
            every(ends_upload, lost()),
            Expected::Error(&["404"], 12),
        ),
        (
            "three connections cut after a quarter of the layer",
            Box::new(first(3, sends_much, ProxyFault::CutRequest(LAYER / 4))),
            Expected::Image(2),
        ),
        // Less than the smallest piece: no registry keeps a part of it.
        (
            "each connection cut after a quarter of the layer",
            every(sends_much, ProxyFault::CutRequest(LAYER / 4)),
            Expected::Error(&["attempts"], 3),
        ),
        (
            "the answer to the layer lost",
            Box::new(first(1, ends_upload, ProxyFault::LoseAnswer)),
            Expected::Image(2),
        ),
        (
            "the answer to a manifest lost",
            Box::new(first(1, puts_manifest, ProxyFault::LoseAnswer)),
            Expected::Image(1),
        ),
        (
            "503 twice at the manifest",
            Box::new(first(2, puts_manifest, answer(503, None))),
            Expected::Image(1),
        ),
    ]
}

/// A site with an image of one layer in a layout.
fn site() -> (Site, String) {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"own\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"noise\"\nto = 'C:\\noise'\n",
    );
    site.write("noise", noise(LAYER, 7));
    site.build(".")
        .args(["--host-build", "17763.973", "--tag", "1", "--no-index"])
        .args(["--output", "oci:layout"])
        .assert()
        .success();
    let index: serde_json::Value = serde_json::from_str(&site.text("layout/index.json")).unwrap();
    let digest = index["manifests"][0]["digest"].as_str().unwrap().to_owned();
    (site, digest)
}

/// Digest under a tag of the registry, whose content is read and verified.
fn published(site: &Site, host: &str) -> Option<String> {
    let name = format!("{host}/own:1");
    let digest = run_and_check(site.command(&["digest", &name]));
    if !digest.status.success() {
        return None;
    }
    let inspected = site.command(&["inspect", "--registry", "--layers", "all", "--quiet", &name]);
    assert!(
        run_and_check(inspected).status.success(),
        "{name} is not whole"
    );
    Some(String::from_utf8(digest.stdout).unwrap().trim().to_owned())
}

#[test]
fn a_push_through_faults_ends_with_the_image_or_a_clear_error() {
    let (site, digest) = site();
    let runtime = Runtime::new().unwrap();
    let mut counts = BTreeMap::new();
    for (name, rule, expected) in cells() {
        let docker = DockerRegistry::plain();
        let proxy = runtime.block_on(FaultProxy::start(docker.host(), rule));
        let started = Instant::now();
        let target = format!("{}/own:1", proxy.host());
        let push = site.command(&["push", "oci:layout", &target, "--timeout", "50s"]);
        let output = run_and_check(push);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let there = published(&site, &docker.host());
        assert!(
            there.as_ref().is_none_or(|it| *it == digest),
            "{name}: wrong content"
        );
        let log = proxy.log();
        let sent: usize = log
            .iter()
            .filter(|it| sends_blob(it))
            .map(|it| it.sent)
            .sum();
        let outcome = match expected {
            Expected::Image(layers) => {
                assert!(output.status.success(), "{name}: {printed}");
                assert_eq!(there.as_ref(), Some(&digest), "{name}");
                assert!(sent <= layers * (LAYER + (1 << 20)), "{name}: {sent} bytes");
                "image"
            }
            Expected::Error(texts, layers) => {
                assert_eq!(output.status.code(), Some(3), "{name}: {printed}");
                assert_eq!(there, None, "{name}");
                assert!(printed.contains("error: "), "{name}: {printed}");
                for text in texts {
                    assert!(printed.contains(text), "{name}: {text}: {printed}");
                }
                assert!(sent <= layers * (LAYER + (1 << 20)), "{name}: {sent} bytes");
                "clear error"
            }
        };
        eprintln!("{name}: {outcome}, {sent} bytes, {:.1?}", started.elapsed());
        *counts.entry(outcome).or_insert(0) += 1;
    }
    eprintln!("{counts:?}");
}

/// A file system of some bytes, which is unmounted on drop.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn mount(folder: PathBuf, size: usize) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new(component("mount"));
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&folder);
        if !mount.output().unwrap().status.success() {
            skip("the right to mount");
        }
        Self(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_registry_on_a_full_disk_is_sent_little_and_its_reason_is_shown() {
    let (site, _) = site();
    let docker = DockerRegistry::plain();
    let disk = SmallDisk::mount(docker.storage(), LAYER / 2);
    let runtime = Runtime::new().unwrap();
    let proxy = runtime.block_on(FaultProxy::start(docker.host(), |_| ProxyFault::Pass));
    let target = format!("{}/own:1", proxy.host());
    let push = site.command(&["push", "oci:layout", &target, "--timeout", "50s"]);
    let output = run_and_check(push);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert_contains!(printed, "no space left on device");
    let sent: usize = proxy.log().iter().map(|it| it.sent).sum();
    assert!(sent < 12 * LAYER, "{sent} bytes");
    drop(disk);
}

/// Publishes an index of two images through a proxy, checks it, and returns what was printed.
fn publish_two(
    docker: &DockerRegistry,
    rule: impl FnMut(&ProxiedRequest) -> ProxyFault + Send + 'static,
    flags: &[&str],
) -> String {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"own\"\nbase = \"nanoserver\"\nentrypoint = ['cmd']\n",
    );
    let runtime = Runtime::new().unwrap();
    let proxy = runtime.block_on(FaultProxy::start(docker.host(), rule));
    let printed = site
        .build(".")
        .args(["--host-build", "17763.973", "--host-build", "20348.2402"])
        .args(["--tag", "1", "--push", "--registry", &proxy.host()])
        .args(flags)
        .tells(0);
    let index = run_and_check(site.command(&[
        "inspect",
        "--registry",
        "--quiet",
        &format!("{}/own:1", docker.host()),
    ]));
    let shown = String::from_utf8_lossy(&index.stdout);
    assert!(index.status.success());
    assert_contains!(shown, "10.0.17763.973", "10.0.20348.2402");
    printed
}

#[test]
fn images_that_a_cleaner_deletes_before_their_index_are_published_again() {
    let docker = DockerRegistry::plain();
    let revisions = docker
        .storage()
        .join("docker/registry/v2/repositories/own/_manifests/revisions/sha256");
    let mut has_cleaned = false;
    let cleaner = move |passed: &ProxiedRequest| {
        if !has_cleaned && passed.header("content-type") == Some(INDEX) {
            has_cleaned = true;
            fs::remove_dir_all(&revisions).unwrap();
        }
        ProxyFault::Pass
    };
    let printed = publish_two(&docker, cleaner, &[]);
    assert_contains!(printed, "deleted meanwhile");
}

#[test]
fn an_index_that_cannot_be_seen_yet_is_published_again_and_no_other_build_is_blamed() {
    let docker = DockerRegistry::plain();
    let (mut is_published, mut was_hidden) = (false, false);
    let hides = move |passed: &ProxiedRequest| {
        is_published |= puts_manifest(passed) && passed.header("content-type") == Some(INDEX);
        let reads = !writes(passed) && passed.path.ends_with("/own/manifests/1");
        if is_published && reads && !was_hidden {
            was_hidden = true;
            return answer(404, None);
        }
        ProxyFault::Pass
    };
    let printed = publish_two(&docker, hides, &["--join"]);
    assert_contains!(printed, "was deleted or is not visible yet");
    assert!(!printed.contains("another build"), "{printed}");
}
