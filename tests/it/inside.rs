//! Facts about the contents of a base: collected once, cached locally and attached to the base, and
//! used by builds without reading its layers.

mod attached;
mod cache;
mod mirrored;
mod show;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_inspect::facts_provider::FactsSource;
use wincimg_oci::document::{Artifact, Descriptor};
use wincimg_oci::reference::parse_reference;
use wincimg_registry::RegistryData;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::{put_at, registry};
use wincimg_testkit::test_bases::{
    ENVIRONMENT, bottom_layer, image_of, made_software, made_system, set, upper_layer,
};
use wincimg_testkit::windows_base::StandIn;

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
