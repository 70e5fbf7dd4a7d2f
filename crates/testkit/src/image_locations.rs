//! Locations of images in tests, and skopeo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use wincimg_common::progress::Silent;
use wincimg_oci::copy::{Copier, CopyOptions, CopyPlan, CopyReport};
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Sink, Source, StoreError};

use super::windows_base::StandIn;

/// The version of Windows in [`base`].
pub const OS_VERSION: &str = "10.0.17763.973";

/// A client that treats one host as insecure.
pub fn registry(host: &str) -> RegistryClient {
    RegistryClient::new(super::options(host), Arc::new(Silent)).unwrap()
}

/// A client for tests that use no registry.
pub fn no_registry() -> RegistryClient {
    registry("127.0.0.1:1")
}

/// A small image in OCI format.
pub fn base() -> StandIn {
    StandIn::new(ManifestFormat::Oci, OS_VERSION, &[(50_000, 1), (7_000, 2)])
}

/// Writes that image to a layout, in the syntax of the command line.
pub async fn base_at(location: &str) -> StandIn {
    let image = base();
    put_at(&image, location).await;
    image
}

/// Writes an image to a layout or to a registry on this machine, under the tag that is named.
pub async fn put_at(image: &StandIn, location: &str) {
    let parsed: Location = location.parse().unwrap();
    let sink = sink(location, &registry("127.0.0.1")).await;
    image.put(&sink, parsed.tag()).await;
}

/// A destination, in the syntax of the command line.
pub async fn sink(location: &str, registry: &RegistryClient) -> Sink {
    Sink::create(&location.parse().unwrap(), registry)
        .await
        .unwrap()
}

/// Copies everything from one location to another, in the syntax of the command line.
pub async fn try_copy(
    from: &str,
    to: &str,
    registry: &RegistryClient,
) -> Result<CopyReport, StoreError> {
    let (from, to): (Location, Location) = (from.parse().unwrap(), to.parse().unwrap());
    let source = Source::open(&from, registry).await.unwrap();
    let sink = Sink::create(&to, registry).await.unwrap();
    let plan = CopyPlan::new(&source, from.tag_or_digest(), &CopyOptions::default()).await?;
    let copier = Copier::new(registry.clone(), Arc::new(Silent), 4);
    let report = copier.copy(&plan, &source, &sink, to.tag()).await?;
    sink.finish().await?;
    Ok(report)
}

/// Like [`try_copy`], but must succeed.
pub async fn copy(from: &str, to: &str, registry: &RegistryClient) -> CopyReport {
    try_copy(from, to, registry).await.unwrap()
}

/// A path in a directory, as text.
pub fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

/// Runs skopeo, which must succeed, and returns its output.
pub fn skopeo(program: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program)
        .args(["--override-os", "windows", "--override-arch", "amd64"])
        .arg("--insecure-policy")
        .args(arguments)
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "skopeo {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// All files below a directory, sorted, with their contents.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                open.push(entry);
            } else {
                let path = entry.strip_prefix(root).unwrap().to_owned();
                found.push((path, fs::read(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}
