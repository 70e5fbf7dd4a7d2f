//! End-to-end tests of `wincimg image inspect`, on images of `wincimg build` and on damaged ones of every
//! kind.

#![allow(
    clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs
)]

mod base_facts;
mod built;
mod not_images;
mod other_builders;
mod shutdown;
mod unclosed;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use assert_cmd::Command;
use bytes::Bytes;
use serde_json::Value;
use tempfile::TempDir;
use wincimg_common::progress::Silent;
use wincimg_oci::document::{Descriptor, History, ManifestFormat, sha256};
use wincimg_registry::hive::{FileTime, unfitted_hives};
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::NO_CREDENTIALS;
use wincimg_testkit::image_locations::{no_registry, put_at, sink};
use wincimg_testkit::test_bases::{create, delete_key, gzip, set, tar_of};
use wincimg_testkit::windows_base::StandIn;

use crate::site::{block_on, report_of};

/// `wincimg` in an empty folder, so that no local wincimg.toml applies.
fn wincimg(verb: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(std::env::temp_dir()).arg(verb);
    command.args(["--registry-config", NO_CREDENTIALS]);
    command.env_remove("SOURCE_DATE_EPOCH");
    command
}

fn inspect(image: &str, arguments: &[&str]) -> Command {
    let mut command = wincimg("inspect");
    command.arg(image).args(arguments);
    command
}

/// The output of a successful command.
fn text_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    String::from_utf8(output.stdout).unwrap()
}

/// Replaces digests, in order of appearance, and names that differ between runs.
fn redacted(text: &str, names: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (name, fixed) in names {
        text = text.replace(name, fixed);
    }
    let mut known: Vec<String> = Vec::new();
    let mut out = String::new();
    while let Some(at) = text.find("sha256:") {
        let hex = at + "sha256:".len();
        let digest: String = text[hex..]
            .chars()
            .take_while(char::is_ascii_hexdigit)
            .collect();
        let number = known.iter().position(|one| *one == digest);
        let number = number.unwrap_or_else(|| {
            known.push(digest.clone());
            known.len() - 1
        });
        out += &text[..hex];
        write!(out, "{:064}", number + 1).unwrap();
        text = text.split_off(hex + digest.len());
    }
    out + &text
}

/// The files of a layer, in the tar's order.
type Files = Vec<(String, Vec<u8>)>;

fn file(path: &str, content: impl Into<Vec<u8>>) -> (String, Vec<u8>) {
    (path.to_owned(), content.into())
}

/// Delta hives, such as `Hives/System_Delta`, with these changes.
fn deltas(edits: &[RegistryEdit]) -> Files {
    unfitted_hives(edits, FileTime::default())
        .unwrap()
        .into_iter()
        .map(|hive| file(&format!("Hives/{}", hive.name), hive.bytes))
        .collect()
}

/// A Windows image with an empty bottom layer.
fn windows() -> StandIn {
    StandIn::new(ManifestFormat::Oci, "10.0.17763.1040", &[(300, 1)])
}

/// An image without layers.
fn empty() -> StandIn {
    StandIn::new(ManifestFormat::Oci, "10.0.17763.1040", &[])
}

trait Push {
    /// Adds a gzipped layer.
    fn files(self, files: &Files) -> Self;
    /// Adds a layer that is stored as these bytes.
    fn stored(self, media_type: &str, tar: &[u8], stored: Vec<u8>) -> Self;
}

impl Push for StandIn {
    fn files(self, files: &Files) -> Self {
        let tar = tar_of(files);
        self.stored(ManifestFormat::Oci.layer_gzip(), &tar, gzip(&tar))
    }

    fn stored(mut self, media_type: &str, tar: &[u8], stored: Vec<u8>) -> Self {
        let stored = Bytes::from(stored);
        let blob = Descriptor::new(media_type, sha256(&stored), stored.len() as u64);
        let history = History::default();
        let layered = self.image.append_layer(blob.clone(), sha256(tar), history);
        self.image = layered.unwrap();
        self.layers.push((blob, stored));
        self
    }
}

/// A layout with one image.
struct LayoutImage {
    folder: TempDir,
    place: String,
}

impl LayoutImage {
    fn new(image: &StandIn) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = format!("oci:{}:app", folder.path().display());
        block_on(put_at(image, &place));
        Self { folder, place }
    }

    /// The file of a layer, counted from 1 at the bottom.
    fn blob(&self, image: &StandIn, layer: usize) -> std::path::PathBuf {
        let digest = &image.layers[layer - 1].0.digest;
        let blobs = Path::new("blobs/sha256");
        self.folder.path().join(blobs).join(digest.digest())
    }
}
