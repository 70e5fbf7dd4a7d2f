//! Shared support for end-to-end tests: real components, and servers that misbehave on purpose.
//!
//! All servers listen on loopback at a free port and stop when their value is dropped.

#![expect(missing_docs, reason = "it is internal to the tests")]
#![expect(clippy::unwrap_used, reason = "it is part of tests")]
#![expect(clippy::print_stdout, reason = "it prints the skipped tests")]
#![expect(clippy::format_push_string, reason = "speed is irrelevant here")]

pub mod buildkitd;
pub mod cabinet;
pub mod docker_registry;
pub mod dockerd;
pub mod fake_registry;
pub mod file_server;
pub mod harness;
pub mod iis;
pub mod image_locations;
pub mod kernel_rules;
pub mod layout;
pub mod mirror_fixture;
pub mod portable_executable;
pub mod powershell;
pub mod programs;
pub mod proxy;
pub mod rounds;
pub mod sbom_readers;
pub mod scripted;
pub mod serve;
pub mod test_bases;
pub mod transform;
pub mod windows_base;
#[cfg(unix)]
pub mod windows_builds;
#[cfg(unix)]
pub mod windows_daemon;
#[cfg(unix)]
pub mod windows_stand_in;
pub mod wine;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub use programs::component;
use serde_json::json;
pub use wincimg_common::diagnose::error_chain as chain;
use wincimg_common::progress::Silent;
use wincimg_oci::document::media_type::OCI_LAYER_GZIP;
use wincimg_oci::document::{Descriptor, sha256};
use wincimg_oci::reference::parse_reference;
use wincimg_oci::remote::{
    CertificateFiles, RegistryClient, RegistryOptions, Repository, RetryPolicy,
};
pub use wincimg_testkit_macros::test;

pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A `config.json` without credentials.
pub const NO_CREDENTIALS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/empty-config.json");

/// Asserts that a text, or the message of an error, contains other texts, and prints it if not.
#[macro_export]
macro_rules! assert_contains {
    ($text:expr, $($part:expr),+ $(,)?) => {{
        let text = $text.to_string();
        $(assert!(text.contains($part), "{}: {text}", stringify!($part));)+
    }};
}

/// Options for a test: the host is insecure, nothing is read from the user's home, and waits are
/// short.
pub fn options(host: &str) -> RegistryOptions {
    RegistryOptions {
        insecure: vec![host.to_owned()],
        config_file: Some(NO_CREDENTIALS.into()),
        retries: RetryPolicy {
            first_wait: Duration::from_millis(5),
            longest_wait: Duration::from_millis(20),
            ..RetryPolicy::default()
        },
        ..RegistryOptions::default()
    }
}

/// Options that trust only servers with a certificate of this CA.
pub fn trusting(ca: PathBuf) -> RegistryOptions {
    RegistryOptions {
        insecure: Vec::new(),
        certificates: CertificateFiles {
            files: vec![ca],
            folders: Vec::new(),
            is_named: false,
        },
        ..options("unused")
    }
}

pub fn docker_config(folder: &Path, content: &serde_json::Value) -> PathBuf {
    let file = folder.join("config.json");
    std::fs::write(&file, content.to_string()).unwrap();
    file
}

/// A `config.json` with a password of bob for a host.
pub fn login_config(folder: &Path, host: &str) -> PathBuf {
    let entry = json!({ "username": "bob", "password": "sesame" });
    docker_config(folder, &json!({ "auths": { host: entry } }))
}

/// Options for servers on several ports of loopback: all are insecure, and passwords may be sent to
/// them.
pub fn loopback_options(config_file: Option<PathBuf>) -> RegistryOptions {
    RegistryOptions {
        config_file: config_file.or_else(|| Some(NO_CREDENTIALS.into())),
        plain_credentials: true,
        ..options("127.0.0.1")
    }
}

/// The same, with a password of bob for one of them.
pub fn loopback_login(folder: &Path, host: &str) -> RegistryOptions {
    loopback_options(Some(login_config(folder, host)))
}

/// Deterministic bytes that compress badly.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A folder in memory for sparse files: reading holes from a disk takes seconds per gigabyte,
/// because the kernel fills pages with zeros.
pub fn folder_for_holes() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub fn repository(options: RegistryOptions, reference: &str) -> Repository {
    let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
    registry.repository(&parse_reference(reference).unwrap())
}

/// A repository of an insecure host, to which blobs are uploaded in chunks of 1 MiB.
pub fn pieces_to(reference: &str) -> Repository {
    let host = reference.split('/').next().unwrap();
    let options = RegistryOptions {
        chunk_size: 1024 * 1024,
        ..options(host)
    };
    repository(options, reference)
}

pub fn describe(bytes: &[u8]) -> Descriptor {
    Descriptor::new(OCI_LAYER_GZIP, sha256(bytes), bytes.len() as u64)
}

pub async fn put(repository: &Repository, bytes: &Bytes) -> Descriptor {
    let blob = describe(bytes);
    let put = repository.put_blob(&blob.digest, blob.size, bytes, &Silent);
    put.await.unwrap();
    blob
}

/// Docker's media type of a manifest.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// Pushes a small image: a configuration, a layer, and the manifest of both.
pub async fn push_image(repository: &Repository, tag: &str) -> (Bytes, Bytes) {
    let config = Bytes::from(json!({"os": "windows", "architecture": "amd64"}).to_string());
    let layer = Bytes::from(noise(200_000, 7));
    put(repository, &config).await;
    put(repository, &layer).await;
    let entry = |bytes: &Bytes, media_type: &str| {
        json!({
            "mediaType": media_type,
            "size": bytes.len(),
            "digest": describe(bytes).digest.to_string(),
        })
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": DOCKER_MANIFEST,
        "config": entry(&config, "application/vnd.docker.container.image.v1+json"),
        "layers": [entry(&layer, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
    });
    let manifest = Bytes::from(manifest.to_string());
    repository
        .put_manifest(tag, DOCKER_MANIFEST, manifest.clone())
        .await
        .unwrap();
    (manifest, layer)
}

/// Runs one test of this program in its own process, to test properties of a whole process such as
/// its environment and memory. [`child_argument`] returns `argument` there; returns the process's
/// output.
pub fn in_child(test: &str, argument: &str, environment: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--nocapture"])
        .env("WINCIMG_TEST_CHILD", argument)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
    printed
}

/// The argument of [`in_child`], in the process that it started.
pub fn child_argument() -> Option<String> {
    std::env::var("WINCIMG_TEST_CHILD").ok()
}
