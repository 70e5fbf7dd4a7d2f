//! Facts about the contents of a base: collected once, cached locally and attached to the base, and
//! used by builds without reading its layers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use axum::Router;
use axum::routing::get;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_inspect::base::{Extent, LayerPosition, assemble, collect_layer};
use wincimg_inspect::facts_provider::FactsSource;
use wincimg_oci::document::{Artifact, Descriptor, History, ManifestFormat, media_type, sha256};
use wincimg_oci::reference::parse_reference;
use wincimg_registry::RegistryData;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::{base_at, no_registry, put_at, registry, sink};
use wincimg_testkit::mirror_fixture::FOREIGN;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault, reads_blob};
use wincimg_testkit::serve::serve;
use wincimg_testkit::test_bases::{
    ENVIRONMENT, FILE, LayerTar, bottom_layer, gzip, image_of, made_software, made_system,
    rename_value, set, upper_layer, whole_hive,
};
use wincimg_testkit::windows_base::StandIn;

use crate::failure::{Failure, line, note, warning};
use crate::site::{each, run_by, write};

pub(crate) const VERSION: &str = "10.0.17763.973";
pub(crate) const NAME: &str = "windows/nanoserver";
pub(crate) const BASE_PATH: &str = r"%SystemRoot%\system32;%SystemRoot%";
const ARTIFACT: &str = "application/vnd.wincimg.base.v1";

/// A base whose upper layer adds a folder at the front of PATH.
fn base() -> StandIn {
    let path = RegistryData::expand_sz(&format!(r"C:\runtime;{BASE_PATH}"));
    let upper = upper_layer(&[set(ENVIRONMENT, "Path", path)]);
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    image_of(VERSION, vec![bottom.tar(), upper.tar()])
}

/// A registry with the base, and its reference.
async fn published() -> (FakeRegistry, String) {
    let server = FakeRegistry::start();
    let reference = publish(&base(), &server.host()).await;
    (server, reference)
}

/// Publishes the base in a registry under its version, and returns its reference.
pub(crate) async fn publish(base: &StandIn, host: &str) -> String {
    let reference = format!("{host}/{NAME}:{VERSION}");
    put_at(base, &reference).await;
    reference
}

/// A machine: a folder with its own cache.
pub(crate) struct Machine(pub TempDir);

impl Machine {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn cache(&self) -> PathBuf {
        self.0.path().join("cache")
    }

    /// Files of cached facts.
    fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache().join("bases"));
        let entries = entries.into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_none_or(|it| it != "none1"));
        paths.sort();
        paths
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Assert {
        let mut command = Command::from(self.command(arguments));
        command.timeout(Duration::from_mins(1)).assert()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.without_cache(arguments);
        command.arg("--cache-dir").arg(self.cache());
        command
    }

    /// The command with the cache of its user, below this folder.
    fn without_cache(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.0.path())
            .env("DOCKER_CONFIG", self.0.path())
            .env("XDG_CACHE_HOME", self.0.path())
            .args(arguments)
            .args(["--insecure-registry", "127.0.0.1"]);
        command
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--format", "json"]].concat());
        serde_json::from_slice(&done.success().get_output().stdout).unwrap()
    }

    /// The output of a build about the contents of its base.
    fn plans(&self, host: &str) -> Assert {
        self.run(&[
            "build", "pause", "--host-build", "17763.973", "--base-registry", host, "--dry-run",
            "-v",
        ])
        .success()
    }
}

/// Matches if the facts come from this source.
fn is_known(from: &FactsSource) -> impl Predicate<str> + use<> {
    contains(VERSION).and(contains(format!(": {from}")))
}

/// Matches if there are no facts.
fn is_unknown() -> impl Predicate<str> {
    is_known(&FactsSource::Nowhere)
}

/// Facts attached to the base in its repository.
fn beside(host: &str) -> FactsSource {
    FactsSource::Repository(format!("{host}/{NAME}"))
}

#[test(multi_thread)]
async fn what_one_machine_indexes_builds_everywhere_know() {
    let server = FakeRegistry::start();
    let host = server.host();
    let base = base();
    let reference = publish(&base, &host).await;
    let (here, there) = (Machine::new(), Machine::new());
    there.plans(&host).stderr(is_unknown());
    // A negative answer is cached for a while.
    let asked = |word: &str| {
        server
            .requests()
            .iter()
            .filter(|it| it.contains(word))
            .count()
    };
    assert_eq!(asked("/referrers/"), 1);
    there.plans(&host);
    assert_eq!(asked("/referrers/"), 1);

    let indexed = here.json(&["base", "index", &reference, "--push"]);
    let indexed = &indexed["images"][0];
    assert_eq!(indexed["digest"], base.image.digest().to_string());
    assert_eq!(indexed["pushed"], true);
    assert_eq!(indexed["problems"], json!([]));
    assert!(indexed["size"].as_u64() < indexed["layers"].as_u64());

    let elsewhere = Machine::new();
    let layers: Vec<String> = base
        .layers
        .iter()
        .map(|it| it.0.digest.to_string())
        .collect();
    let layer_reads = || {
        layers
            .iter()
            .map(|layer| asked(&format!("GET /v2/{NAME}/blobs/{layer}")))
            .sum::<usize>()
    };
    let before = layer_reads();
    elsewhere.plans(&host).stderr(is_known(&beside(&host)));
    elsewhere.plans(&host).stderr(is_known(&FactsSource::Cache));
    here.plans(&host).stderr(is_known(&FactsSource::Cache));
    assert_eq!(layer_reads(), before);
}

#[test(multi_thread)]
async fn a_mirror_learns_what_is_inside_from_the_bytes_that_pass_by() {
    let upstream = DockerRegistry::plain();
    let own = DockerRegistry::plain();
    let (front, mirror) = (
        FaultProxy::start(upstream.host(), |_| ProxyFault::Pass).await,
        FaultProxy::start(own.host(), |_| ProxyFault::Pass).await,
    );
    let base = base();
    publish(&base, &upstream.host()).await;
    let reference = format!("{}/{NAME}:{VERSION}", front.host());
    let machine = Machine::new();
    let arguments = ["mirror", &reference, "--to", &mirror.host()];
    let report = machine.json(&arguments);
    let recorded = &report["images"][0]["facts"][0];
    assert_eq!(recorded["outcome"], "made", "{report}");
    assert_eq!(recorded["image"], base.image.digest().to_string());
    // Each layer was downloaded once, and was not read back.
    let layers = base.layers.iter().map(|it| it.0.digest.to_string());
    for layer in layers {
        let reads = |proxy: &FaultProxy| {
            let log = proxy.log();
            let reads = log.iter().filter(|it| reads_blob(it));
            reads.filter(|it| it.path.ends_with(&layer)).count()
        };
        assert_eq!((reads(&front), reads(&mirror)), (1, 0));
    }
    let reads = |proxy: &FaultProxy| proxy.log().iter().filter(|it| reads_blob(it)).count();
    // Referrers of the base are listed under the tag of its digest.
    let tag = base.image.digest().to_string().replace(':', "-");
    let parsed = parse_reference(&format!("{}/{NAME}:{tag}", own.host())).unwrap();
    let list = registry(&own.host())
        .repository(&parsed)
        .get_manifest(&tag)
        .await;
    let list: Value = serde_json::from_slice(&list.unwrap().bytes).unwrap();
    assert_eq!(list["manifests"][0]["artifactType"], ARTIFACT);

    let again = machine.json(&arguments);
    assert_eq!(again["images"][0]["facts"][0]["outcome"], "present");
    let before = reads(&mirror);
    Machine::new()
        .plans(&mirror.host())
        .stderr(is_known(&beside(&mirror.host())));
    // The configuration and the facts.
    assert_eq!(reads(&mirror) - before, 2);

    // Mirroring from there believes no facts.
    let third = FakeRegistry::start();
    let from = format!("{}/{NAME}:{VERSION}", mirror.host());
    let on = Machine::new().json(&["mirror", &from, "--to", &third.host()]);
    assert_eq!(on["images"][0]["facts"][0]["outcome"], "made", "{on}");
}

/// Microsoft's old bases: the bottom layer is available only at its URL, and the mirror's manifest
/// differs.
#[test(multi_thread)]
async fn a_foreign_layer_is_looked_through_on_its_way_or_where_it_is() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let tar = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    let packed = bytes::Bytes::from(gzip(&tar));
    let body = packed.clone();
    let served = serve(Router::new().route("/layer", get(async move || body)));
    let mut blob = Descriptor::new(FOREIGN, sha256(&packed), packed.len() as u64);
    blob.urls = vec![served.url("layer")];
    let mut base = image_of(VERSION, Vec::new());
    base.image = base
        .image
        .append_layer(blob, sha256(&tar), History::default())
        .unwrap();
    let reference = publish(&base, &source.host()).await;
    let path = format!("path      {}", r"%SystemRoot%\system32");
    let shown = Machine::new().run(&["base", "show", &reference]);
    shown.success().stdout(contains(path));
    let report = Machine::new().json(&["mirror", &reference, "--to", &target.host()]);
    let image = &report["images"][0];
    assert_eq!(image["facts"][0]["outcome"], "made", "{report}");
    assert_eq!(image["facts"][0]["image"], image["digest"]);
    assert_ne!(image["digest"], image["source_digest"]);
    let plans = Machine::new().plans(&target.host());
    plans.stderr(is_known(&beside(&target.host())));
}

#[test(multi_thread)]
async fn a_key_and_a_file_that_a_base_lacks_have_one_code() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    for (flag, missing) in [("--registry", r"HKLM\SYSTEM\Nope"), ("--path", r"C:\Nope")] {
        let show = ["base", "show", &reference, flag, missing];
        let refused = machine.run(&[&show[..], &["--format", "json"]].concat());
        Failure::of(refused.code(1).get_output()).is("image/no-file", &[missing]);
    }
}

#[test(multi_thread)]
async fn layers_that_the_mirror_has_already_are_read_back_once() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &source.host()).await;
    let machine = Machine::new();
    let to = ["--to", &target.host()];
    let without = [&["mirror", &reference, "--no-facts"], &to[..]].concat();
    let report = machine.json(&without);
    assert_eq!(report["images"][0].get("facts"), None, "{report}");
    let with = [&["mirror", &reference], &to[..]].concat();
    let report = machine.json(&with);
    assert_eq!(report["images"][0]["up_to_date"], true, "{report}");
    assert_eq!(report["images"][0]["facts"][0]["outcome"], "made");
    let report = machine.json(&with);
    assert_eq!(report["images"][0]["facts"][0]["outcome"], "present");
    let plans = Machine::new().plans(&target.host());
    plans.stderr(is_known(&beside(&target.host())));
}

/// The bytes of layers that a proxy has forwarded.
fn layer_bytes(proxy: &FaultProxy, base: &StandIn) -> usize {
    let mut log = proxy.log();
    log.retain(|it| {
        let mut layers = base.layers.iter();
        reads_blob(it) && layers.any(|(layer, _)| it.path.ends_with(layer.digest.as_ref()))
    });
    log.iter().map(|it| it.received).sum()
}

#[test(multi_thread)]
async fn what_cannot_be_read_is_read_once() {
    let noise = |number| bytes::Bytes::from(wincimg_testkit::noise(16_000_000, number));
    let mut unreadable = image_of(VERSION, Vec::new());
    for content in [noise(1), noise(2)] {
        let digest = sha256(&content);
        let blob = Descriptor::new(media_type::OCI_LAYER_GZIP, digest.clone(), 16_000_000);
        unreadable.layers.push((blob.clone(), content));
        let layered = unreadable
            .image
            .append_layer(blob, digest, History::default());
        unreadable.image = layered.unwrap();
    }
    // Its layers can be read, but have no registry.
    let no_base = StandIn::new(ManifestFormat::Oci, VERSION, &[(2_000_000, 1)]);
    for (base, problem) in [(unreadable, Some("cannot read layer 1")), (no_base, None)] {
        let upstream = DockerRegistry::plain();
        let own = DockerRegistry::plain();
        let front = FaultProxy::start(upstream.host(), |_| ProxyFault::Pass).await;
        let mirror = FaultProxy::start(own.host(), |_| ProxyFault::Pass).await;
        publish(&base, &upstream.host()).await;
        let reference = format!("{}/{NAME}:{VERSION}", front.host());
        let all: usize = base.layers.iter().map(|(_, bytes)| bytes.len()).sum();
        let read = |machine: &Machine| {
            let before = [&front, &mirror].map(|proxy| layer_bytes(proxy, &base));
            let report = machine.json(&["mirror", &reference, "--to", &mirror.host()]);
            let facts = &report["images"][0]["facts"][0];
            let found = facts["problem"].as_str().map(|it| it.get(..19).unwrap());
            assert_eq!(found, problem, "{report}");
            let after = [&front, &mirror].map(|proxy| layer_bytes(proxy, &base));
            [after[0] - before[0], after[1] - before[1]]
        };
        let machine = Machine::new();
        assert_eq!(read(&machine), [all, 0]);
        assert_eq!(read(&machine), [0, 0]);
        // Layers that are not transferred are read as far as they can be. What their digests do not
        // confirm is not remembered.
        let other = Machine::new();
        for is_first in [true, false] {
            let [from, back] = read(&other);
            let is_enough = match problem {
                Some(_) => back > 0 && back < all / 2,
                None => back == if is_first { all } else { 0 },
            };
            assert!(from == 0 && is_enough, "{back} of {all}");
        }
    }
}

#[test(multi_thread)]
async fn a_layer_whose_transfer_broke_is_read_again_by_the_next_run() {
    let (source, own) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &source.host()).await;
    let machine = Machine::new();
    machine
        .run(&["mirror", &reference, "--no-facts", "--to", &own.host()])
        .success();
    let broken = Arc::new(AtomicBool::new(true));
    let layer = base.layers[0].0.digest.to_string();
    let mirror = FaultProxy::start(own.host(), {
        let broken = Arc::clone(&broken);
        move |passed| {
            if reads_blob(passed) && passed.path.ends_with(&layer) && broken.load(Ordering::SeqCst)
            {
                return ProxyFault::Flip(200);
            }
            ProxyFault::Pass
        }
    })
    .await;
    let arguments = ["mirror", &reference, "--to", &mirror.host()];
    for fault in [true, false] {
        broken.store(fault, Ordering::SeqCst);
        let report = machine.json(&arguments);
        let outcome = &report["images"][0]["facts"][0]["outcome"];
        assert_eq!(*outcome, if fault { "failed" } else { "made" }, "{report}");
    }
}

#[test(multi_thread)]
async fn a_mirror_that_was_killed_is_mirrored_and_known_by_the_next_run() {
    let upstream = DockerRegistry::plain();
    let own = DockerRegistry::plain();
    let drip = ProxyFault::Drip(4_000, Duration::from_millis(20));
    let front = FaultProxy::start(upstream.host(), move |passed| {
        if reads_blob(passed) {
            drip.clone()
        } else {
            ProxyFault::Pass
        }
    })
    .await;
    publish(&base(), &upstream.host()).await;
    let machine = Machine::new();
    let reference = format!("{}/{NAME}:{VERSION}", front.host());
    let mirror = ["mirror", &reference, "--to", &own.host()];
    let mut child = machine.command(&mirror).spawn().unwrap();
    while front.requests("GET", "/blobs/").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(machine.kept(), Vec::<PathBuf>::new());
    let source = format!("{}/{NAME}:{VERSION}", upstream.host());
    let report = machine.json(&["mirror", &source, "--to", &own.host()]);
    assert_eq!(
        report["images"][0]["facts"][0]["outcome"], "made",
        "{report}"
    );
}

#[test(multi_thread)]
async fn facts_that_cannot_be_stored_do_not_fail_the_mirror() {
    let source = FakeRegistry::start();
    let own = DockerRegistry::plain();
    let base = base();
    let reference = publish(&base, &source.host()).await;
    let refused = base.image.digest().to_string().replace(':', "-");
    let mirror = FaultProxy::start(own.host(), move |passed| {
        if passed.method == "PUT" && passed.path.ends_with(&refused) {
            return ProxyFault::Answer(403, Vec::new(), "no".to_owned());
        }
        ProxyFault::Pass
    })
    .await;
    let machine = Machine::new();
    let to = ["--to", &mirror.host(), "--format", "json"];
    let done = machine.run(&[&["mirror", &reference], &to[..]].concat());
    let done = done
        .success()
        .stderr(contains("warning:").and(contains("403")));
    let report: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(report["images"][0]["facts"][0]["outcome"], "failed");
    assert_eq!(report["totals"]["failed_images"], 0);
}

/// Attaches facts to a base in the repository of a reference, as whoever may push there can.
pub(crate) async fn attach(reference: &str, base: &StandIn, facts: &[u8]) {
    let parsed = parse_reference(reference).unwrap();
    let host = reference.split_once('/').unwrap().0;
    let repository = registry(host).repository(&parsed).for_push();
    let blob = wincimg_testkit::put(&repository, &bytes::Bytes::copy_from_slice(facts)).await;
    let blob = Descriptor::new("application/x", blob.digest.clone(), blob.size);
    let manifest = base.image.manifest();
    let about = Descriptor::new(
        manifest.media_type(),
        manifest.digest().clone(),
        manifest.size(),
    );
    let artifact = Artifact::new(ARTIFACT, &about, vec![blob], BTreeMap::default());
    repository.attach(&artifact.unwrap()).await.unwrap();
}

#[test(multi_thread)]
async fn an_index_that_the_cache_cannot_keep_is_no_success() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    fs::create_dir(machine.cache()).unwrap();
    fs::write(machine.cache().join("bases"), "not a folder").unwrap();
    let index = ["base", "index", &reference, "--format", "json", "--quiet"];
    let done = machine.run(&index).code(3);
    let answer: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(answer["images"][0]["kept"], false);
    machine.run(&[&index[..], &["--push"]].concat()).code(0);
}

/// Its layer has other bytes then.
#[test(multi_thread)]
async fn a_build_says_that_its_base_is_indexed() {
    let server = FakeRegistry::start();
    let host = server.host();
    let reference = publish(&base(), &host).await;
    let machine = Machine::new();
    let build = |word: &'static str| {
        let flags = ["--host-build", "17763.973", "--base-registry", &host];
        let done = machine.run(&[&["build", "pause"], &flags[..]].concat());
        done.success().stdout(contains(word));
    };
    build("(exact)");
    machine.run(&["base", "index", &reference]).success();
    build("(exact, indexed)");
}

#[test(multi_thread)]
async fn facts_about_something_else_are_left_alone_with_a_word() {
    let server = FakeRegistry::start();
    let host = server.host();
    let base = base();
    let reference = publish(&base, &host).await;
    let machine = Machine::new();
    machine.run(&["base", "index", &reference]).success();
    let [own] = machine.kept().try_into().unwrap();
    let own = fs::read(own).unwrap();
    // Facts of one base attached to another with the same version.
    let mut other = self::base();
    other.image = other
        .image
        .edit_config(|config| config.config.shell = Some(vec!["cmd".into()]))
        .unwrap();
    publish(&other, &host).await;
    attach(&reference, &other, &own).await;
    Machine::new()
        .plans(&host)
        .stderr(is_unknown().and(contains(other.image.digest().to_string())));
    attach(&reference, &other, b"no facts at all").await;
    Machine::new()
        .plans(&host)
        .stderr(is_unknown().and(contains(other.image.digest().to_string())));
    let mut damaged = own.clone();
    let end = damaged.len() - 1;
    damaged[end] ^= 1;
    attach(&reference, &other, &damaged).await;
    Machine::new().plans(&host).stderr(is_unknown());
}

#[test(multi_thread)]
async fn what_one_repository_says_of_a_base_means_nothing_in_another() {
    let (one, two) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &one.host()).await;
    publish(&base, &two.host()).await;
    Machine::new()
        .run(&["base", "index", &reference, "--push"])
        .success();
    let machine = Machine::new();
    machine
        .plans(&one.host())
        .stderr(is_known(&beside(&one.host())));
    machine.plans(&two.host()).stderr(is_unknown());
    machine
        .plans(&one.host())
        .stderr(is_known(&FactsSource::Cache));
}

/// An index of other contents under the right digest cannot be told from a true one without the
/// layers: it counts in its own repository, and yields to what was read.
#[test(multi_thread)]
async fn a_forged_index_goes_no_further_than_its_repository_and_yields_to_the_layers() {
    const FORGED: &str = r"C:\forged";
    let (server, other) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &server.host()).await;
    let elsewhere = publish(&base, &other.host()).await;
    let everything = Extent::Everything;
    let bottom = gzip(&bottom_layer(&made_system(FORGED), &made_software()).tar());
    let layer = collect_layer(bottom.as_slice(), LayerPosition::Bottom, &everything).unwrap();
    let forged = assemble(base.image.digest(), Some(VERSION), &everything, vec![layer]).unwrap();
    attach(&reference, &base, &forged).await;

    let path = |machine: &Machine, reference: &str| {
        let shown = machine.json(&["base", "show", reference]);
        shown["path"].as_str().unwrap().to_owned()
    };
    let own = format!(r"C:\runtime;{BASE_PATH}");
    let here = Machine::new();
    assert_eq!(path(&here, &reference), FORGED);
    assert_eq!(path(&here, &elsewhere), own);
    let there = Machine::new();
    assert_eq!(path(&there, &reference), FORGED);
    let mirror = FakeRegistry::start();
    let mirrored = there.json(&["mirror", &reference, "--to", &mirror.host()]);
    assert_eq!(mirrored["images"][0]["facts"][0]["outcome"], "made");
    let mirrored = format!("{}/{NAME}:{VERSION}", mirror.host());
    assert_eq!(path(&Machine::new(), &mirrored), own);
    let there = Machine::new();
    assert_eq!(path(&there, &reference), FORGED);
    there.run(&["base", "index", &reference]).success();
    assert_eq!(path(&there, &reference), own);
}

#[test(multi_thread)]
async fn a_registry_that_does_not_answer_holds_up_no_build_that_needs_no_answer() {
    let server = FakeRegistry::start();
    publish(&base(), &server.host()).await;
    let proxy = FaultProxy::start(server.host(), |passed| {
        if passed.path.contains("/referrers/") {
            return ProxyFault::Drip(1, Duration::from_secs(10));
        }
        ProxyFault::Pass
    })
    .await;
    let machine = Machine::new();
    let started = Instant::now();
    machine
        .plans(&proxy.host())
        .stderr(is_unknown().and(contains(format!("from {}/{NAME}: ", proxy.host()))));
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
    // A second build does not wait at all.
    let started = Instant::now();
    machine.plans(&proxy.host()).stderr(is_unknown());
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
}

#[test(multi_thread)]
async fn an_index_that_arrives_slowly_holds_up_no_build_that_does_not_need_it() {
    let (server, reference) = published().await;
    let here = Machine::new();
    here.run(&["base", "index", &reference, "--push"]).success();
    let [index] = here.kept().try_into().unwrap();
    let digest = sha256(&fs::read(index).unwrap()).to_string();
    let proxy = FaultProxy::start(server.host(), move |passed| {
        if reads_blob(passed) && passed.path.ends_with(&digest) {
            return ProxyFault::Drip(1, Duration::from_secs(1));
        }
        ProxyFault::Pass
    })
    .await;
    let machine = Machine::new();
    let started = Instant::now();
    let expected = warning(&["cannot read facts about the base", "15 s ", "blob"]);
    machine
        .plans(&proxy.host())
        .stderr(is_unknown().and(expected));
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
}

/// The part of IIS's configuration for an application pool.
const SERVER_CONFIG: &[u8] = br#"<configuration>
  <configSections>
    <sectionGroup name="system.applicationHost">
      <section name="applicationPools" allowDefinition="AppHostOnly" overrideModeDefault="Deny" />
    </sectionGroup>
  </configSections>
  <system.applicationHost>
    <applicationPools><add name="DefaultAppPool" /></applicationPools>
  </system.applicationHost>
</configuration>
"#;

/// IIS's settings go into the base's file, which must therefore be known.
#[test(multi_thread)]
async fn layers_are_read_for_a_build_only_where_its_recipe_needs_that() {
    let server = FakeRegistry::start();
    let host = server.host();
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    let mut upper = LayerTar::default();
    let config = "Files/Windows/System32/inetsrv/config/applicationHost.config";
    upper.file(config, SERVER_CONFIG, Some(FILE));
    let base = image_of(VERSION, vec![bottom.tar(), upper.tar()]);
    publish(&base, &host).await;
    let machine = Machine::new();
    let recipe = format!(
        "name = \"web\"\nbase = \"{NAME}\"\n[iis.app_pool]\nsettings = \"processModel.idleTimeout=00:00:00\"\n"
    );
    write(machine.0.path(), "web/recipe.toml", recipe);
    let common = ["--host-build", "17763.973", "--base-registry", &host];
    let run = |first: &[&str]| machine.run(&[first, &common].concat());
    run(&["build", "./web", "--dry-run", "-v"])
        .success()
        .stderr(note(&[&format!("{host}/{NAME}")]).and(is_unknown()));
    run(&["render", "./web"])
        .success()
        .stderr(contains("wincimg image base index").not());
    assert_eq!(machine.kept(), Vec::<PathBuf>::new());
    run(&["build", "./web", "--output", "oci:one", "-v"])
        .success()
        .stderr(note(&["`wincimg image base index "]));
    assert_eq!(machine.kept().len(), 1);
    run(&["build", "./web", "--output", "oci:two", "-v"])
        .success()
        .stderr(
            contains("wincimg image base index")
                .not()
                .and(is_known(&FactsSource::Cache)),
        );
    // Partial facts serve only commands that need no more.
    machine.plans(&host).stderr(is_unknown());
}

#[test(multi_thread)]
async fn a_damaged_file_goes_and_is_made_again() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    machine.run(&["base", "show", &reference]).success();
    let [file] = machine.kept().try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let show = || machine.run(&["base", "show", &reference]).success();
    let is_told = || warning(&[&file.display().to_string()]);
    show()
        .stderr(is_told())
        .stdout(contains(FactsSource::Layers.to_string()));
    assert_eq!(fs::read(&file).unwrap(), whole);
    show().stdout(contains(FactsSource::Cache.to_string()));
    // Another version of the program wrote it.
    let mut newer = whole.clone();
    newer[b"wincimg-base".len()] += 1;
    fs::write(&file, &newer).unwrap();
    show()
        .stderr(is_told())
        .stdout(contains(FactsSource::Layers.to_string()));
    assert_eq!(fs::read(&file).unwrap(), whole);
    // Damage in a part that is read later.
    let mut damaged = whole.clone();
    damaged[200] ^= 0x55;
    fs::write(&file, &damaged).unwrap();
    show().stderr(warning(&[]));
    assert_eq!(fs::read(&file).unwrap(), whole);
}

#[test(multi_thread)]
async fn a_cache_that_cannot_be_written_is_a_warning() {
    let (server, reference) = published().await;
    let machine = Machine::new();
    fs::write(machine.cache(), "a file where the folder would be").unwrap();
    machine
        .run(&["base", "show", &reference])
        .success()
        .stderr(warning(&[&machine
            .cache()
            .join("bases")
            .display()
            .to_string()]));
    let printed = machine.plans(&server.host());
    printed.stderr(is_unknown());
    fs::remove_file(machine.cache()).unwrap();
    machine
        .run(&["base", "show", &reference, "--cache-size", "1K"])
        .success();
    assert_eq!(machine.kept(), Vec::<PathBuf>::new());
}

#[test(multi_thread)]
async fn any_number_of_processes_share_a_cache() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                machine.run(&["base", "show", &reference]).success();
            });
        }
    });
    assert_eq!(machine.kept().len(), 1);
}

#[test(multi_thread)]
async fn the_cache_of_a_file_of_defaults_counts_only_from_a_file_that_is_named() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    let folder = machine.0.path();
    fs::write(folder.join("wincimg.toml"), "cache-dir = \"theirs\"\n").unwrap();
    let show = |config: &[&str]| {
        let command = machine.without_cache(&[&["base", "show", &reference], config].concat());
        Command::from(command).assert().success()
    };
    show(&[]).stderr(warning(&["cache-dir", "wincimg.toml"]));
    assert!(folder.join("wincimg/bases").is_dir());
    assert!(!folder.join("theirs").exists());
    show(&["--config", "wincimg.toml"]);
    assert!(folder.join("theirs/bases").is_dir());
}

/// What is in a cache is trusted, so nobody else may write there.
#[test(multi_thread)]
async fn a_cache_that_others_can_change_is_not_used_unless_it_is_named() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    const STRANGER: u32 = 12_345;
    let (_server, reference) = published().await;
    let machine = Machine::new();
    let folder = machine.0.path();
    let cache = folder.join("wincimg");
    fs::create_dir(&cache).unwrap();
    let own = fs::metadata(&cache).unwrap().uid();
    let show = |more: &[&str]| {
        let command = machine.without_cache(&[&["base", "show", &reference], more].concat());
        Command::from(command).assert().success()
    };
    let is_used = || fs::read_dir(&cache).unwrap().next().is_some();
    let named = cache.to_str().unwrap();
    let group = fs::metadata(&cache).unwrap().gid();
    for (mode, owner, group) in [
        (0o777, own, group),
        (0o1777, own, group),
        (0o755, STRANGER, group),
        (0o2775, own, STRANGER),
    ] {
        if chown(&cache, Some(owner), Some(group)).is_err() {
            // Only root can give a folder away.
            continue;
        }
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        show(&[]).stderr(warning(&[named, "--cache-dir"]));
        assert!(!is_used(), "{mode:o} {owner} {group}");
    }
    // A part of it, or the folder around it.
    chown(&cache, Some(own), Some(group)).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    let bases = cache.join("bases");
    fs::create_dir(&bases).unwrap();
    fs::set_permissions(&bases, fs::Permissions::from_mode(0o777)).unwrap();
    show(&[]).stderr(warning(&[named, "--cache-dir"]));
    fs::remove_dir(&bases).unwrap();
    for (mode, is_open) in [(0o777, true), (0o1777, false)] {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        let shown = show(&[]);
        assert_eq!(
            shown.get_output().stderr.starts_with(b"warning: the cache"),
            is_open
        );
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    show(&["--cache-dir", named]).stderr(warning(&[named]).not());
    assert!(is_used());
    // In the group of its number, a user is alone.
    if chown(&cache, Some(own), Some(own)).is_ok() {
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o775)).unwrap();
        show(&[]).stderr(warning(&[named]).not());
    }
}

#[test(multi_thread)]
async fn the_default_cache_is_its_users_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let (_server, reference) = published().await;
    let machine = Machine::new();
    let folder = machine.0.path();
    for _ in 0..2 {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$@\"", "sh"]);
        let mut command = run_by(shell, &machine.without_cache(&["base", "show", &reference]));
        command.env("XDG_CACHE_HOME", folder.join("a/b"));
        let shown = Command::from(command).assert().success();
        shown.stderr(warning(&["the cache"]).not());
    }
    for name in ["a", "a/b", "a/b/wincimg"] {
        let found = fs::metadata(folder.join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o700, "{name}");
    }
    assert!(folder.join("a/b/wincimg/bases").is_dir());
}

/// The base as an OCI layout.
async fn layout(folder: &Path) -> String {
    let place = format!("oci:{}", folder.join("base").display());
    let sink = sink(&place, &no_registry()).await;
    base().put(&sink, None).await;
    place
}

#[test(multi_thread)]
async fn show_answers_what_is_in_this_bases_path() {
    let machine = Machine::new();
    let place = layout(machine.0.path()).await;
    machine.run(&["base", "show", &place]).success().stdout(
        contains("windows   10.0.17763.973")
            .and(contains("path      C:\\runtime\n            %SystemRoot%"))
            .and(contains(r"HKLM\SOFTWARE")),
    );
    let summary = machine.json(&["base", "show", &place]);
    assert_eq!(summary["path"], format!(r"C:\runtime;{BASE_PATH}"));
    assert_eq!(summary["from"], "cache");
    assert_eq!(summary["keys"][0]["hive"], r"HKLM\SYSTEM");
    let key = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment";
    machine
        .run(&["base", "show", &place, "--registry", key])
        .success()
        .stdout(
            contains(r"HKLM\SYSTEM\ControlSet001\Control")
                .and(contains("security  O:"))
                .and(contains(r#"Path = REG_EXPAND_SZ "C:\\runtime;"#)),
        );
    let above = r"HKLM\SYSTEM\ControlSet001\Services";
    let shown = machine.json(&["base", "show", &place, "--registry", above]);
    assert_eq!(shown["subkeys"], json!(["w3svc"]));
    assert_eq!(shown["values"], json!([]));
}

#[test(multi_thread)]
async fn show_answers_who_may_do_what_with_a_file() {
    let machine = Machine::new();
    let place = layout(machine.0.path()).await;
    machine
        .run(&["base", "show", &place, "--path", r"C:\Users\ContainerUser"])
        .success()
        .stdout(contains("folder").and(contains("O:S-1-5-93-2-2G:SYD:PAI(A;OICI;FA;;;SY)")));
    let file = r"C:\Windows\System32\cmd.exe";
    let shown = machine.json(&["base", "show", &place, "--path", file]);
    assert_eq!(shown["kind"], "file");
    assert_eq!(shown["size"], 2);
    assert_eq!(shown["sha256"], sha256(b"MZ").digest());
    assert_eq!(shown["attributes"], json!(["archive"]));
    assert_eq!(shown["content_kept"], false);
    let config = r"C:\Windows\System32\inetsrv\config\applicationHost.config";
    let shown = machine.json(&["base", "show", &place, "--path", config]);
    assert_eq!(shown["content_kept"], true);
    let drive = machine.json(&["base", "show", &place, "--path", r"C:\"]);
    assert_eq!(
        each(&drive["children"], "name"),
        ["Program Files", "Users", "Windows"]
    );
}

#[test(multi_thread)]
async fn show_says_what_is_nearest_to_what_does_not_exist() {
    let machine = Machine::new();
    let place = layout(machine.0.path()).await;
    let show = |flag: &str, name: &str| machine.run(&["base", "show", &place, flag, name]);
    for (flag, typed, nearest) in [
        (
            "--registry",
            r"HKLM\SYSTEM\ControlSet001\Services\w3svcc\Parameters",
            r"HKLM\SYSTEM\ControlSet001\Services\w3svc?",
        ),
        (
            "--path",
            r"C:\Windows\Sytem32\cmd.exe",
            r"C:\Windows\System32?",
        ),
    ] {
        let arguments = ["base", "show", &place, flag, typed, "--format", "json"];
        let shown = machine.run(&arguments).code(1);
        Failure::of(shown.get_output()).is("image/no-file", &[nearest]);
    }
    show("--registry", r"HKCU\Software").code(2);
    show("--registry", r"SYSTEM\x")
        .code(2)
        .stderr(contains("hint:"));
    show("--path", "inetpub").code(2).stderr(contains("hint:"));
    show("--path", r"D:\x").code(2);
    machine
        .run(&[
            "base", "show", &place, "--path", r"C:\x", "--registry", "HKLM",
        ])
        .code(2);
    let pushed = ["base", "index", &place, "--push", "--format", "json"];
    let pushed = machine.run(&pushed).code(2);
    Failure::of(pushed.get_output()).is("usage", &[&place]);
}

#[test(multi_thread)]
async fn what_is_no_windows_has_nothing_to_show() {
    let machine = Machine::new();
    let folder = machine.0.path().join("standin");
    let place = format!("oci:{}", folder.display());
    base_at(&place).await;
    let shown = machine.run(&["base", "show", &place, "--format", "json"]);
    Failure::of(shown.code(3).get_output())
        .is("base/unreadable", &["Files/Windows/System32/config/SYSTEM"]);
}

#[test(multi_thread)]
async fn lines_of_a_dockerfile_see_what_is_inside_the_base() {
    let server = FakeRegistry::start();
    let host = server.host();
    let path = RegistryData::expand_sz(&format!(r"C:\runtime;{BASE_PATH}"));
    let mut upper = upper_layer(&[set(ENVIRONMENT, "Path", path)]);
    for program in ["cmd", "setx"] {
        let file = format!("Files/Windows/System32/{program}.exe");
        upper.file(&file, b"MZ", None);
    }
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software());
    let base = image_of(VERSION, vec![bottom.tar(), upper.tar()]);
    let reference = publish(&base, &host).await;
    let machine = Machine::new();
    let lines = r#"FROM mcr.microsoft.com/windows/nanoserver:1809
USER ContainerAdministrator
RUN setx /M PATH "%PATH%;C:\app" && mkdir C:\Windows\System32\made
"#;
    write(machine.0.path(), "app/Dockerfile", lines);
    let build = [
        "build", "./app", "--host-build", "17763.973", "--base-registry", &host, "--dry-run",
    ];
    // A dry run reads no layers, and reports the missing facts.
    machine
        .run(&build)
        .success()
        .stderr(note(&["Dockerfile:3", "%PATH%"]));
    machine.json(&["base", "index", &reference]);
    let plan = machine.json(&build);
    let layer = &plan["plans"][0]["instructions"]["steps"];
    let layer = layer.as_array().unwrap().last().unwrap();
    let path = layer["layer"]["registry"][0].to_string();
    let whole = r"C:\\runtime;C:\\Windows\\system32;C:\\Windows;C:\\Users\\ContainerAdministrator\\AppData\\Local\\Microsoft\\WindowsApps;C:\\app";
    assert_contains!(path, whole);
    assert_eq!(
        layer["layer"]["entries"][0]["path"],
        r"C:\Windows\System32\made"
    );
    // As a recipe, the folder is added to the base's PATH.
    let convert = [&["convert"], &build[1..6]].concat();
    let converted = machine.json(&convert);
    let recipe = converted["recipe"].as_str().unwrap();
    assert_contains!(recipe, r"path = { append = ['C:\app'] }");
    assert!(!recipe.contains("[[registry]]"), "{recipe}");
    fs::write(machine.0.path().join("app/recipe.toml"), recipe).unwrap();
    let again = [&["build", "./app/recipe.toml"], &build[2..]].concat();
    let plan = &machine.json(&again)["plans"][0];
    assert_eq!(plan["path"]["append"], json!([r"C:\app"]));
}

#[test(multi_thread)]
async fn of_two_values_path_the_first_one_counts_and_builds_say_so() {
    let server = FakeRegistry::start();
    let host = server.host();
    let mut system = whole_hive(&[
        set(ENVIRONMENT, "Path", RegistryData::expand_sz(BASE_PATH)),
        set(ENVIRONMENT, "Pa_h", RegistryData::expand_sz(r"C:\other")),
    ]);
    rename_value(&mut system, "Pa_h", "PATH");
    let bottom = bottom_layer(&system, &made_software());
    let reference = publish(&image_of(VERSION, vec![bottom.tar()]), &host).await;
    let machine = Machine::new();
    let recipe = format!("name = \"app\"\nbase = \"{NAME}\"\npath = ['C:\\app']\n");
    write(machine.0.path(), "app/recipe.toml", recipe);
    let common = ["--host-build", "17763.973", "--base-registry", &host];
    let build = ["build", "./app", "--output", "oci:out"];
    let twice = ["layer 1", ENVIRONMENT, "\"PATH\""];
    let base = format!("{host}/{NAME}");
    machine
        .run(&[&build[..], &common].concat())
        .success()
        .stderr(warning(&[&[base.as_str()], &twice[..]].concat()));
    let delta = {
        let show = ["inspect", "oci:out", "--registry"];
        machine.run(&show).success().get_output().stdout.clone()
    };
    let delta = String::from_utf8(delta).unwrap();
    let whole = format!(r"C:\app;{BASE_PATH}").replace('\\', r"\\");
    assert_contains!(delta, &whole);
    assert!(!delta.contains("other"), "{delta}");
    machine
        .run(&["base", "show", &reference])
        .success()
        .stdout(line(&twice).and(contains("other").not()));
    // A build that needs nothing from the base's hives reports nothing about them.
    machine.plans(&host).stderr(contains("\"PATH\"").not());
}

#[test(multi_thread)]
async fn show_looks_into_what_docker_saved() {
    let machine = Machine::new();
    let file = machine.0.path().join("base.tar");
    let place = format!("docker-archive:{}", file.display());
    let sink = sink(&place, &no_registry()).await;
    base().put(&sink, Some("base:1")).await;
    sink.finish().await.unwrap();
    let shown = machine.json(&["base", "show", &place, "--registry", ENVIRONMENT]);
    assert_eq!(shown["key"], ENVIRONMENT);
    let values = shown["values"].to_string();
    assert_contains!(values, r"C:\\runtime;%SystemRoot%");
    let shown = machine.json(&["base", "show", &place, "--path", r"C:\windows\system32"]);
    assert_eq!(shown["kind"], "folder");
    fs::remove_file(&file).unwrap();
    machine.run(&["base", "show", &place]).failure();
}
