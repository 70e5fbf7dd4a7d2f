//! Downloads over faulty networks and from faulty registries: complete and verified, or a clear
//! error.

use std::time::{Duration, Instant};

use axum::Router;
use bytes::Bytes;
use tokio::io::AsyncReadExt;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::Silent;
use wincimg_oci::document::Descriptor;
use wincimg_oci::document::media_type::OCI_LAYER;
use wincimg_oci::remote::{BlobSource, HttpError, RegistryError, RegistryOptions, Repository};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first, reads_blob};
use wincimg_testkit::scripted::{answer, scripted};
use wincimg_testkit::serve::serve;
use wincimg_testkit::{chain, describe, noise, options, put, repository};

const MIB: usize = 1024 * 1024;

/// A registry with one blob behind a proxy with a rule.
async fn with_blob(
    bytes: &Bytes,
    rule: impl FnMut(&ProxiedRequest) -> ProxyFault + Send + 'static,
) -> (DockerRegistry, FaultProxy, Descriptor) {
    let docker = DockerRegistry::plain();
    let direct = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let blob = put(&direct, bytes).await;
    let proxy = FaultProxy::start(docker.host(), rule).await;
    (docker, proxy, blob)
}

fn short_timeouts(host: &str) -> Repository {
    let options = RegistryOptions {
        idle_timeout: Duration::from_millis(200),
        ..options(host)
    };
    repository(options, &format!("{host}/a"))
}

#[test]
async fn a_blob_that_the_registry_lost_is_no_wrong_name() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    put(&repository, &Bytes::from_static(b"other")).await;
    let error = repository.get_blob(&describe(b"lost"), 100).await;
    let diagnosis = error.unwrap_err().diagnosis();
    assert_eq!(diagnosis.code, "registry/not-found");
    assert_contains!(diagnosis.hint.unwrap(), "push it again");
}

#[test]
async fn a_download_that_is_cut_goes_on_by_range() {
    let bytes = Bytes::from(noise(3 * MIB, 1));
    let rule = first(2, reads_blob, ProxyFault::CutAnswer(MIB));
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    assert_eq!(repository.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
    let reads = proxy.requests("GET", "/blobs/sha256");
    let ranges: Vec<_> = reads
        .iter()
        .map(|read| read.header("range").unwrap_or("all"))
        .collect();
    assert_eq!(ranges.len(), 3);
    assert!(
        ranges[0] == "all" && ranges[1].starts_with("bytes="),
        "{ranges:?}"
    );
    let received: usize = reads.iter().map(|read| read.received).sum();
    // Bytes in flight may be lost when the connection breaks; nothing else is sent twice.
    assert!(
        received < 3 * MIB + 2 * 512 * 1024,
        "{received} bytes for a blob of 3 MiB"
    );
}

#[test]
async fn a_download_from_a_server_without_ranges_skips_what_it_has() {
    let bytes = Bytes::from(noise(2 * MIB, 2));
    let shared = bytes.clone();
    let blob = describe(&bytes);
    let server = serve(Router::new().fallback(async move || shared));
    let rule = first(1, reads_blob, ProxyFault::CutAnswer(MIB));
    let proxy = FaultProxy::start(server.host(), rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    assert_eq!(repository.get_blob(&blob, 4 << 20).await.unwrap(), bytes);
    assert_eq!(proxy.requests("GET", "/blobs/").len(), 2);
}

#[test]
async fn a_registry_that_asks_for_patience_gets_it() {
    let wait = vec![("Retry-After", "1".to_owned())];
    let fault = ProxyFault::Answer(429, wait, "slow down".into());
    let rule = first(1, reads_blob, fault);
    let bytes = Bytes::from_static(b"in time");
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let started = Instant::now();
    assert_eq!(repository.get_blob(&blob, 100).await.unwrap(), bytes);
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[test]
async fn a_registry_that_asks_for_too_much_patience_is_given_up() {
    let wait = vec![("Retry-After", "86400".to_owned())];
    let body = r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate limit"}]}"#;
    let rule = first(9, reads_blob, ProxyFault::Answer(429, wait, body.into()));
    let bytes = Bytes::from_static(b"never");
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let printed = chain(&repository.get_blob(&blob, 100).await.unwrap_err());
    assert_contains!(printed, "429", "pull rate limit", "TOOMANYREQUESTS");
    assert_eq!(proxy.requests("GET", "/blobs/").len(), 1);
}

#[test]
async fn server_errors_pass_or_are_reported_with_what_was_tried() {
    let bytes = Bytes::from_static(b"at last");
    let broken = ProxyFault::Answer(500, Vec::new(), "<html>oops</html>".into());
    let rule = first(3, reads_blob, broken.clone());
    let (docker, proxy, blob) = with_blob(&bytes, rule).await;
    let flaky = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    assert_eq!(flaky.get_blob(&blob, 100).await.unwrap(), bytes);

    let proxy = FaultProxy::start(docker.host(), first(99, reads_blob, broken)).await;
    let broken = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let error = broken.get_blob(&blob, 100).await.unwrap_err();
    let printed = chain(&error);
    let (host, digest) = (proxy.host(), blob.digest.to_string());
    assert_contains!(printed, " 6 ", &host, &digest, "500 Internal Server Error");
    // The error page is not shown.
    assert!(!printed.contains("oops"), "{printed}");
    assert_eq!(proxy.requests("GET", "/blobs/").len(), 6);
}

#[test]
async fn a_blob_that_is_not_what_its_digest_says_is_refused_everywhere() {
    let bytes = Bytes::from(noise(MIB, 8));
    let rule = first(99, reads_blob, ProxyFault::Flip(MIB / 2));
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));

    let error = repository.get_blob(&blob, 4 << 20).await.unwrap_err();
    assert!(matches!(error, RegistryError::Digest { .. }), "{error:?}");
    let digest = blob.digest.to_string();
    assert_contains!(error, &digest);

    let mut reader = repository.blob(&blob).open(0).await.unwrap();
    let mut read = Vec::new();
    let error = reader.read_to_end(&mut read).await.unwrap_err();
    assert_contains!(error, &digest);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer");
    repository
        .blob(&blob)
        .download(&file, &Silent)
        .await
        .unwrap_err();
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing wrong is kept"
    );
}

#[test]
async fn a_manifest_that_is_not_what_its_digest_says_is_refused() {
    let manifest = r#"{"schemaVersion":2,"config":{},"layers":[]}"#;
    let digest = describe(b"something else").digest.to_string();
    let promised = digest.clone();
    let (_, server) =
        scripted(move |_| answer(200, &[("Docker-Content-Digest", &promised)], manifest));
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    for which in ["1", &digest] {
        let error = repository.get_manifest(which).await.unwrap_err();
        assert!(
            matches!(error, RegistryError::Digest { .. }),
            "{which}: {error:?}"
        );
    }
}

#[test]
async fn a_length_that_lies_is_an_error() {
    let bytes = Bytes::from(noise(1000, 9));
    let rule = first(1, reads_blob, ProxyFault::Shorten(500));
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let error = repository.get_blob(&blob, 2000).await.unwrap_err();
    assert_contains!(error, "1000", "500");

    for size in [999, 1001] {
        let lie = Descriptor::new(OCI_LAYER, blob.digest.clone(), size);
        let error = repository.get_blob(&lie, 2000).await.unwrap_err();
        assert!(matches!(error, RegistryError::Length { .. }), "{error:?}");
    }
}

#[test]
async fn a_body_without_a_length_is_as_good_and_may_not_be_too_long() {
    let bytes = Bytes::from(noise(1000, 10));
    let rule = first(99, reads_blob, ProxyFault::Hide("content-length"));
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    assert_eq!(repository.get_blob(&blob, 2000).await.unwrap(), bytes);
    let longer = Descriptor::new(OCI_LAYER, blob.digest.clone(), 999);
    let error = repository.get_blob(&longer, 2000).await.unwrap_err();
    assert!(matches!(error, RegistryError::Length { .. }), "{error:?}");
}

#[test]
async fn a_slow_drip_is_progress() {
    let bytes = Bytes::from(noise(400, 11));
    let fault = ProxyFault::Drip(20, Duration::from_millis(30));
    let rule = first(1, reads_blob, fault);
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let repository = short_timeouts(&proxy.host());
    assert_eq!(repository.get_blob(&blob, 500).await.unwrap(), bytes);
    assert_eq!(proxy.requests("GET", "/blobs/").len(), 1);
}

#[test]
async fn a_connection_that_falls_silent_is_left_and_the_rest_asked_for_again() {
    let bytes = Bytes::from(noise(400, 12));
    let rule = first(1, reads_blob, ProxyFault::Stall(100));
    let (docker, proxy, blob) = with_blob(&bytes, rule).await;
    let silent = short_timeouts(&proxy.host());
    assert_eq!(silent.get_blob(&blob, 500).await.unwrap(), bytes);
    let reads = proxy.requests("GET", "/blobs/");
    assert_eq!(reads[1].header("range"), Some("bytes=100-"));

    let proxy = FaultProxy::start(docker.host(), first(99, reads_blob, ProxyFault::Stall(0))).await;
    let dead = short_timeouts(&proxy.host());
    let error = dead.get_blob(&blob, 500).await.unwrap_err();
    assert_eq!(error.diagnosis().code, "network/interrupted");
    assert_contains!(chain(&error), &proxy.host());
}

#[test]
async fn the_time_limit_ends_everything() {
    let bytes = Bytes::from(noise(10_000, 13));
    let fault = ProxyFault::Drip(1, Duration::from_millis(50));
    let rule = first(99, reads_blob, fault);
    let (_docker, proxy, blob) = with_blob(&bytes, rule).await;
    let options = RegistryOptions {
        timeout: Some(Duration::from_millis(600)),
        ..options(&proxy.host())
    };
    let repository = repository(options, &format!("{}/a", proxy.host()));
    let started = Instant::now();
    let error = repository.get_blob(&blob, 20_000).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(
        matches!(error, RegistryError::Http(HttpError::TimeLimit { .. })),
        "{error:?}"
    );
    assert!(error.diagnosis().hint.unwrap().contains("--timeout"));
}

#[test]
async fn a_manifest_without_its_digest_in_a_header_is_read_to_know_it() {
    let docker = DockerRegistry::plain();
    let proxy =
        FaultProxy::start(docker.host(), |_| ProxyFault::Hide("docker-content-digest")).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let config = put(&repository, &Bytes::from_static(b"{}")).await;
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "size": 2, "digest": config.digest},
        "layers": [],
    });
    let bytes = Bytes::from(manifest.to_string());
    let digest = repository
        .put_manifest("1", media_type, bytes.clone())
        .await
        .unwrap();
    let found = repository.head_manifest("1").await.unwrap().unwrap();
    assert_eq!((&found.digest, found.size), (&digest, bytes.len() as u64));
    assert_eq!(repository.head_manifest("2").await.unwrap(), None);
}

#[test]
async fn a_manifest_that_is_too_large_is_not_read() {
    let (_, server) = scripted(|_| answer(200, &[], " ".repeat(5 * MIB)));
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let error = repository.get_manifest("1").await.unwrap_err();
    assert_contains!(error, "larger than the limit");
}
