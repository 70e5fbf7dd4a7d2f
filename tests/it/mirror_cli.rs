//! End-to-end tests of `wincimg image mirror` between registries as packaged by Debian.

use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use wincimg_oci::document::ManifestFormat;
use wincimg_testkit::NO_CREDENTIALS;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::{registry, sink};
use wincimg_testkit::proxy::{FaultProxy, ProxyFault, reads_blob};
use wincimg_testkit::windows_base::{StandIn, put_index};

use crate::failure::{Fails, Failure, line, warning};
use crate::site::{block_on, json_of, report_of, wincimg};
use crate::terminal::{on_terminal, rows};

/// A registry with base images, and an empty one to mirror to.
struct Pair {
    source: DockerRegistry,
    target: DockerRegistry,
}

impl Pair {
    /// Starts both registries.
    fn start() -> Self {
        let source = DockerRegistry::plain();
        let target = DockerRegistry::plain();
        Self { source, target }
    }

    /// `windows/nanoserver` with a version tag for each revision; the oldest layer is shared.
    fn publish(&self, revisions: &[u32]) {
        for revision in revisions {
            let version = format!("10.0.17763.{revision}");
            let layers = [(40_000, 1), (5_000, u64::from(*revision))];
            let image = StandIn::new(ManifestFormat::Docker, &version, &layers);
            self.publish_index(&version, &[image]);
        }
    }

    /// `windows/nanoserver` with an index of images.
    fn publish_index(&self, tag: &str, images: &[StandIn]) {
        let registry = registry(&self.source.host());
        let reference = format!("{}/windows/nanoserver:{tag}", self.source.host());
        block_on(async {
            let sink = sink(&reference, &registry).await;
            put_index(ManifestFormat::Docker, images, &sink, Some(tag)).await;
        });
    }

    /// Flags of a copy between the two.
    fn flags(&self) -> Vec<String> {
        self.flags_from(&self.source.host())
    }

    /// Flags if the source has another address.
    fn flags_from(&self, source: &str) -> Vec<String> {
        let target = self.target.host();
        let flags = [
            ["--registry-config", NO_CREDENTIALS],
            ["--insecure-registry", source],
            ["--insecure-registry", &target],
            ["--base-registry", source],
            ["--to", &format!("{target}/mcr")],
        ];
        flags.concat().into_iter().map(str::to_owned).collect()
    }

    fn mirror(&self, arguments: &[&str]) -> Command {
        let mut command = mirror(arguments);
        command.args(self.flags());
        command
    }

    fn report(&self, arguments: &[&str]) -> Value {
        json_of(&mut self.mirror(arguments))
    }
}

/// `wincimg mirror` without flags for registries.
fn mirror(arguments: &[&str]) -> Command {
    let mut command = wincimg(&std::env::temp_dir(), &["mirror"]);
    command.args(arguments);
    command
}

#[test]
fn a_base_image_for_each_host_is_mirrored_and_found_there() {
    let pair = Pair::start();
    pair.publish(&[914, 973, 1158]);
    let hosts = ["--host-build", "17763.973", "--host-build", "17763.1200"];
    let arguments = [&["base:nanoserver"], hosts.as_slice()].concat();
    let report = pair.report(&arguments);
    let images = report["images"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    let mirrored = format!("{}/mcr", pair.target.host());
    assert_eq!(
        images[0]["target"],
        format!("{mirrored}/windows/nanoserver:10.0.17763.973")
    );
    assert_eq!(
        images[1]["target"],
        format!("{mirrored}/windows/nanoserver:10.0.17763.1158")
    );
    assert_eq!(images[0]["source_digest"], images[0]["digest"]);
    // Two configurations, two layers of their own, one shared.
    assert_eq!(report["totals"]["copied_blobs"], 5);

    let resolve = ["base", "resolve", "nanoserver", "--host-build", "17763.973"];
    wincimg(&std::env::temp_dir(), &resolve)
        .args(["--base-registry", &mirrored])
        .args(["--insecure-registry", &pair.target.host()])
        .args(["--registry-config", NO_CREDENTIALS])
        .assert()
        .code(0)
        .stdout(contains(format!(
            "{mirrored}/windows/nanoserver:10.0.17763.973@sha256:"
        )));

    // A mirror of the mirror is a registry of bases, too.
    let next = format!("{}/next", pair.target.host());
    let mut again = mirror(&arguments);
    again
        .args(["--base-registry", &mirrored, "--to", &next])
        .args(["--insecure-registry", &pair.target.host()])
        .args(["--registry-config", NO_CREDENTIALS, "--dry-run"]);
    assert_eq!(
        json_of(&mut again)["images"][0]["target"],
        format!("{next}/windows/nanoserver:10.0.17763.973")
    );
}

#[test]
fn a_second_run_transfers_nothing() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let image = format!("{}/windows/nanoserver:10.0.17763.973", pair.source.host());
    assert_eq!(pair.report(&[&image])["totals"]["copied_blobs"], 3);
    let again = pair.report(&[&image]);
    assert_eq!(again["images"][0]["up_to_date"], true);
    assert_eq!(again["totals"]["copied_blobs"], 0);
    assert_eq!(again["totals"]["copied_bytes"], 0);
    assert_eq!(again["totals"]["present_blobs"], 3);
}

#[test]
fn a_dry_run_says_sizes_and_copies_nothing() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let image = format!("{}/windows/nanoserver:10.0.17763.973", pair.source.host());
    for _ in 0..2 {
        let report = pair.report(&[&image, "--dry-run"]);
        assert_eq!(report["dry_run"], true);
        assert_eq!(report["totals"]["copied_blobs"], 3);
        let blobs = report["images"][0]["blobs"].as_array().unwrap();
        assert!(blobs.iter().all(|blob| blob["action"] == "copy"));
        assert!(blobs[0]["size"].as_u64().unwrap() > 40_000);
    }
    pair.mirror(&[&image, "--dry-run", "--host-build", "17763.973"])
        .assert()
        .code(0)
        .stderr(line(&["base:NAME"]))
        .stdout(line(&["KiB", "3 blobs"]));
}

#[test]
fn nodes_choose_the_base_images() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let node = |name: &str, kernel: &str| {
        json!({"kind": "Node", "metadata": {"name": name}, "status": {"nodeInfo":
            {"operatingSystem": "windows", "kernelVersion": kernel, "osImage": "Windows Server 2019"}}})
    };
    let nodes = json!({"kind": "List", "items": [
        node("a", "10.0.17763.973"), node("b", "10.0.17763.973"), node("c", "")
    ]});
    pair.mirror(&["base:nanoserver", "--nodes", "-"])
        .write_stdin(nodes.to_string())
        .assert()
        .code(0)
        .stdout(line(&["KiB", "3 blobs"]))
        .stderr(warning(&["node c"]));
}

#[test]
fn a_host_without_a_base_image_is_said_before_anything_moves() {
    let pair = Pair::start();
    pair.publish(&[973]);
    pair.mirror(&["base:nanoserver", "--host-build", "20348.1"])
        .fails(1, "base/nothing-fits", &["20348.1", "17763.973"]);
}

#[test]
fn a_host_without_a_base_image_stops_no_other() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let odd = ["base:nanoserver", "--host-build", "20348.1"];
    let all = [&odd[..], &["--host-build", "17763.973"]].concat();
    pair.mirror(&all)
        .arg("--all-or-nothing")
        .fails(1, "base/nothing-fits", &["20348.1"]);
    let (code, report, said) = report_of(&mut pair.mirror(&all));
    assert_eq!(code, 1, "{said}");
    assert_contains!(said, "for host 20348.1");
    assert_eq!(report["images"].as_array().unwrap().len(), 1);
    assert_eq!(report["missing"][0]["host_build"], "20348.1");
    assert_eq!(report["missing"][0]["code"], "base/nothing-fits");
    assert_eq!(report["totals"]["copied_blobs"], 3);
    // A repository that does not exist is no obstacle either.
    let good = [
        "base:nanoserver", "base:servercore", "--host-build", "17763.973",
    ];
    let output = pair.mirror(&good).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_contains!(said, "servercore");
    assert_eq!(
        output.status.code(),
        Some(3),
        "its tags cannot be listed: {said}"
    );
}

#[test]
fn one_image_that_fails_does_not_keep_the_others() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let good = format!("{}/windows/nanoserver:10.0.17763.973", pair.source.host());
    let gone = format!("{}/windows/nanoserver:gone", pair.source.host());
    let worse = format!("{}/windows/none:1", pair.source.host());
    pair.mirror(&[&good, &gone, &worse])
        .assert()
        .code(3)
        .stdout(line(&["2 of 3"]))
        .stderr(contains(gone).and(contains(worse)).and(contains("2 of 3")))
        .stderr(contains("run the same command").not());
}

#[test]
fn a_failure_of_everything_has_no_summary_that_reads_like_success() {
    let pair = Pair::start();
    let gone = format!("{}/windows/none:1", pair.source.host());
    pair.mirror(&[&gone])
        .assert()
        .code(3)
        .stdout("")
        .stderr(contains(gone));
}

#[test]
fn a_platform_that_an_image_has_not_is_said() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let image = format!("{}/windows/nanoserver:10.0.17763.973", pair.source.host());
    pair.mirror(&[&image, "--platform", "windows/amd64:20348"])
        .assert()
        .code(1)
        .stderr(contains("windows/amd64:10.0.17763.973"));
}

#[test]
fn a_mirrored_index_keeps_its_images_unless_told() {
    let pair = Pair::start();
    let image = |version: &str| StandIn::new(ManifestFormat::Docker, version, &[(1_000, 1)]);
    let images = ["10.0.17763.973", "10.0.20348.2402"].map(image);
    pair.publish_index("1", &images);
    let image = format!("{}/windows/nanoserver:1", pair.source.host());
    pair.mirror(&[&image]).assert().success();
    let only = [&image[..], "--platform", "windows/amd64:20348"];
    pair.mirror(&only)
        .fails(1, "tag/taken", &["10.0.17763.973"])
        .advises(&["--replace"]);
    // Its entries are there still, and may be mirrored again.
    pair.mirror(&[&image]).assert().success();
    pair.mirror(&[&only[..], &["--replace"]].concat())
        .assert()
        .success();
}

#[test]
fn wrong_usage_is_reported_before_any_registry_is_asked() {
    let refused = |arguments: &[&str], code: &str, values: &[&str]| -> Failure {
        mirror(arguments).fails(2, code, values)
    };
    let no_host = ["base:nanoserver", "--to", "repo.lan"];
    refused(&no_host, "usage", &["--host-build 17763.973"]);
    refused(&["a b", "--to", "repo.lan"], "usage", &["\"a b\""]);
    refused(
        &["oci:./pause", "--to", "repo.lan"],
        "usage",
        &["oci:./pause"],
    );
    mirror(&["repo.lan/a:1", "--to", "https://repo.lan"])
        .assert()
        .code(2)
        .stderr(contains("type repo.lan"));
    mirror(&["repo.lan/a:1", "--to", "oci:./offline"])
        .assert()
        .code(2)
        .stderr(contains(
            "wincimg copy IMAGE oci:./offline --ordinary-layers",
        ));
    let twins = ["one.lan/a:1", "two.lan/a:1"];
    let both = [&twins[..], &["--to", "repo.lan"]].concat();
    refused(&both, "mirror/names", &twins);
    for hub in ["docker.io", "index.docker.io", "registry-1.docker.io"] {
        let to_hub = ["mcr.microsoft.com/windows/nanoserver:1809", "--to", hub];
        refused(&to_hub, "mirror/names", &["docker.io/NAME"]).advises(&["--to docker.io/USER"]);
    }
}

#[test]
fn manifests_are_converted_when_asked() {
    let pair = Pair::start();
    pair.publish(&[973]);
    let image = format!("{}/windows/nanoserver:10.0.17763.973", pair.source.host());
    let report = pair.report(&[&image, "--all-platforms", "--manifest-format", "oci"]);
    let copied = &report["images"][0];
    assert_ne!(copied["digest"], copied["source_digest"]);
    let target = format!("{}/mcr/windows/nanoserver", pair.target.host());
    let repository =
        wincimg_testkit::repository(wincimg_testkit::options(&pair.target.host()), &target);
    let index = block_on(repository.get_manifest("10.0.17763.973")).unwrap();
    assert_eq!(index.media_type, ManifestFormat::Oci.index());
    let index: Value = serde_json::from_slice(&index.bytes).unwrap();
    assert_eq!(
        index["manifests"][0]["mediaType"],
        ManifestFormat::Oci.manifest()
    );
}

#[test]
fn each_layer_is_a_line_in_a_log() {
    let pair = Pair::start();
    pair.publish(&[973, 1040]);
    let image = "base:nanoserver";
    let builds = ["--host-build", "17763.973", "--host-build", "17763.1040"];
    let output = pair.mirror(&[image]).args(builds).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    let repository = format!("{}/mcr/windows/nanoserver ", pair.target.host());
    let copied: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix(&repository))
        .collect();
    let is_layer = |line: &&&str| {
        line.get(12..)
            .is_some_and(|end| end.starts_with(": copied, "))
    };
    // Two layers for each image, one of them shared, and two configurations.
    assert_eq!(copied.iter().filter(is_layer).count(), 5, "{printed}");
    assert!(
        !printed.contains('\x1b') && !printed.contains('\r'),
        "{printed:?}"
    );

    let again = pair.mirror(&[image, "-q"]).args(builds).output().unwrap();
    assert_eq!(String::from_utf8(again.stderr).unwrap(), "");
}

/// Terminal output of mirroring a base image over a slow network.
fn slow_mirror(before: &str, width: usize) -> String {
    let pair = Pair::start();
    pair.publish(&[973]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let drips = |passed: &_| {
        if reads_blob(passed) {
            ProxyFault::Drip(6_000, Duration::from_millis(250))
        } else {
            ProxyFault::Pass
        }
    };
    let slow = runtime.block_on(FaultProxy::start(pair.source.host(), drips));
    let flags = pair.flags_from(&slow.host()).join(" ");
    let line = format!(
        "{before} wincimg image mirror {flags} base:nanoserver --host-build 17763.973 >/dev/null"
    );
    let (shown, is_success) = on_terminal(&std::env::temp_dir(), width, &line);
    assert!(is_success, "{shown}");
    shown
}

#[test]
fn each_layer_has_one_line_of_a_terminal() {
    for width in [60, 80, 120] {
        let shown = slow_mirror("", width);
        assert!(shown.contains('\x1b'), "{shown:?}");
        let (mut copied, mut moving) = (0, 0);
        for row in rows(&shown, width) {
            let is_end = row.ends_with(" copied");
            let is_moving = row.contains("B/s");
            if is_end || is_moving {
                // A wrapped line has its name in the row before.
                assert!(row.starts_with("127.0.0"), "{row:?} of {width}");
                assert!(row.contains("/nanoserver "), "{row:?} of {width}");
                assert!(row.chars().count() < width, "{row:?} of {width}");
            }
            copied += usize::from(is_end);
            moving += usize::from(is_moving);
        }
        assert!(copied >= 3, "{copied} of {width}: {shown:?}");
        assert!(moving >= 3, "{moving} of {width}: {shown:?}");
    }
}

#[test]
fn a_terminal_that_wants_no_colour_gets_the_lines_of_a_log() {
    for kind in ["NO_COLOR=1", "TERM=dumb"] {
        let shown = slow_mirror(kind, 80);
        assert!(!shown.contains('\x1b'), "{kind}: {shown:?}");
        let copied = shown.lines().filter(|line| line.contains(": copied, "));
        assert_eq!(copied.count(), 3, "{kind}: {shown}");
    }
}

#[test]
fn images_of_an_index_in_an_index_are_mirrored() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let version = "10.0.20348.2402";
    let windows = source.image("windows", version);
    let linux = source.image_with(&json!({"os": "linux", "architecture": "amd64"}));
    let indexes = [
        source.index(&[(&windows, Some(version))]),
        source.index_without_platforms(&[&linux]),
    ];
    let nested = source.index_without_platforms(&[&indexes[0], &indexes[1]]);
    source.tag("app", "1.0", &nested);
    mirror(&[&format!("{}/app:1.0", source.host())])
        .args(["--to", &target.host(), "--no-facts"])
        .args(["--insecure-registry", &source.host()])
        .args(["--insecure-registry", &target.host()])
        .args(["--registry-config", NO_CREDENTIALS])
        .assert()
        .success();
    let requests = target.requests();
    let is_sent = |digest: &str| {
        let mut sent = requests.iter().filter(|it| it.starts_with("PUT "));
        sent.any(|request| request.ends_with(digest))
    };
    assert!(is_sent(&windows), "{requests:?}");
    assert!(!is_sent(&linux), "{requests:?}");
}
