//! The registry client against a real registry, and against networks and servers that misbehave.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;

use bytes::Bytes;
use oci_spec::image::{Descriptor, Digest, MediaType};
use wincimg::oci::reference::parse_reference;
use wincimg::oci::registry::{Hasher, Options, Registry, Repository};
use wincimg::progress::Silent;

use support::docker_registry::{DockerRegistry, Setup};

fn repository(options: Options, reference: &str) -> Repository {
    let registry = Registry::new(options, Arc::new(Silent)).unwrap();
    registry.repository(&parse_reference(reference).unwrap())
}

fn describe(bytes: &[u8]) -> Descriptor {
    let mut hasher = Hasher::sha256();
    hasher.update(bytes);
    let digest: Digest = hasher.digest().unwrap();
    Descriptor::new(MediaType::ImageLayerGzip, bytes.len() as u64, digest)
}

async fn put(repository: &Repository, bytes: &Bytes) -> Descriptor {
    let blob = describe(bytes);
    repository
        .put_blob(blob.digest(), blob.size(), bytes, &Silent)
        .await
        .unwrap();
    blob
}

#[tokio::test]
async fn what_is_pushed_is_there_and_reads_back() {
    let Some(docker) = DockerRegistry::start(Setup::default()) else {
        return;
    };
    let repository = repository(
        support::options(&docker.host()),
        &format!("{}/some/app:1", docker.host()),
    );
    let bytes = Bytes::from(support::noise(3_000_000, 1));
    let blob = describe(&bytes);
    assert!(!repository.has_blob(blob.digest()).await.unwrap());
    put(&repository, &bytes).await;
    assert!(repository.has_blob(blob.digest()).await.unwrap());
    assert_eq!(repository.get_blob(&blob, 4_000_000).await.unwrap(), bytes);
}
