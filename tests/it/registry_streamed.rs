//! Blobs uploaded while they are generated: continued, cancelled, or refused.

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wincimg_oci::document::{Digest, sha256};
use wincimg_oci::remote::{PartialUpload, Repository};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first, method};
use wincimg_testkit::{noise, options, put, repository};

use crate::site::{Site, json_of, stderr};

const MIB: usize = 1024 * 1024;

/// A growing blob, and its upload.
struct GrowingBlob {
    bytes: Bytes,
    grown: watch::Sender<u64>,
    sending: JoinHandle<Option<PartialUpload>>,
}

impl GrowingBlob {
    fn to(repository: &Repository, size: usize) -> Self {
        let bytes = Bytes::from(noise(size, 1));
        let (grown, size) = watch::channel(0);
        let (blob, repository) = (bytes.clone(), repository.clone());
        let sending = tokio::spawn(async move { repository.stream_blob(&blob, size).await });
        Self {
            bytes,
            grown,
            sending,
        }
    }

    fn digest(&self) -> Digest {
        sha256(&self.bytes)
    }

    /// Grows the blob, and waits until the registry has received this number of requests.
    async fn grow(&self, size: usize, proxy: &FaultProxy, method: &str, requests: usize) {
        self.grown.send_replace(size as u64);
        while proxy.requests(method, "").len() < requests {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    async fn end(self) -> Option<PartialUpload> {
        drop(self.grown);
        self.sending.await.unwrap()
    }
}

async fn place(
    rule: impl FnMut(&ProxiedRequest) -> ProxyFault + Send + 'static,
) -> (FakeRegistry, FaultProxy, Repository) {
    let server = FakeRegistry::start();
    let proxy = FaultProxy::start(server.host(), rule).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    (server, proxy, repository)
}

fn sent(proxy: &FaultProxy) -> usize {
    proxy.log().iter().map(|passed| passed.sent).sum()
}

#[test]
async fn a_blob_goes_on_where_its_beginning_ended() {
    let (_server, proxy, repository) = place(|_| ProxyFault::Pass).await;
    let growing = GrowingBlob::to(&repository, 30 * MIB);
    growing.grow(9 * MIB, &proxy, "PATCH", 1).await;
    growing.grow(10 * MIB, &proxy, "PATCH", 1).await;
    growing.grow(18 * MIB, &proxy, "PATCH", 2).await;
    let (bytes, digest) = (growing.bytes.clone(), growing.digest());
    growing.end().await.unwrap().keep(&digest);
    assert!(repository.has_partial_upload(&digest));
    let blob = put(&repository, &bytes).await;
    assert_eq!(repository.get_blob(&blob, 32 << 20).await.unwrap(), bytes);
    let pieces = proxy.requests("PATCH", "");
    let sizes: Vec<_> = pieces.iter().map(|piece| piece.sent / MIB).collect();
    assert_eq!(sizes, [9, 9, 12]);
    assert_eq!(sent(&proxy), 30 * MIB, "no byte went twice");
    assert_eq!(proxy.requests("POST", "").len(), 1);
    assert!(!repository.has_partial_upload(&digest));
}

#[test]
async fn what_is_small_is_not_begun() {
    let (_server, proxy, repository) = place(|_| ProxyFault::Pass).await;
    let growing = GrowingBlob::to(&repository, 7 * MIB);
    growing.grow(7 * MIB, &proxy, "PATCH", 0).await;
    assert!(growing.end().await.is_none());
    assert!(proxy.log().is_empty());
}

#[test]
async fn a_registry_that_takes_no_pieces_gets_the_blob_when_it_is_whole() {
    for status in [405, 404, 413, 500] {
        let rule = first(
            1,
            method("PATCH"),
            ProxyFault::Answer(status, Vec::new(), String::new()),
        );
        let (_server, proxy, repository) = place(rule).await;
        let growing = GrowingBlob::to(&repository, 10 * MIB);
        growing.grow(10 * MIB, &proxy, "DELETE", 1).await;
        let bytes = growing.bytes.clone();
        assert!(growing.end().await.is_none(), "{status}");
        let blob = put(&repository, &bytes).await;
        assert_eq!(repository.get_blob(&blob, 32 << 20).await.unwrap(), bytes);
        assert_eq!(proxy.requests("POST", "").len(), 2);
    }
    let (_server, proxy, repository) = place(|_| ProxyFault::Pass).await;
    drop(proxy);
    let growing = GrowingBlob::to(&repository, 10 * MIB);
    growing.grown.send_replace(10 << 20);
    assert!(growing.end().await.is_none());
}

#[test]
async fn what_is_abandoned_is_cancelled() {
    let (_server, proxy, repository) = place(|_| ProxyFault::Pass).await;
    let growing = GrowingBlob::to(&repository, 10 * MIB);
    growing.grow(10 * MIB, &proxy, "PATCH", 1).await;
    let (bytes, digest) = (growing.bytes.clone(), growing.digest());
    growing.end().await.unwrap().keep(&digest);
    repository.cancel_partial_upload(&digest).await;
    assert_eq!(proxy.requests("DELETE", "/uploads/").len(), 1);
    assert!(!repository.has_partial_upload(&digest));
    put(&repository, &bytes).await;
    assert_eq!(proxy.requests("POST", "").len(), 2);

    let growing = GrowingBlob::to(&repository, 10 * MIB);
    growing.grow(10 * MIB, &proxy, "PATCH", 2).await;
    growing.end().await.unwrap().cancel().await;
    assert_eq!(proxy.requests("DELETE", "/uploads/").len(), 2);
}

/// Interrupted chunks: the whole blob is uploaded again.
#[test]
async fn a_connection_that_breaks_spoils_nothing() {
    let rule = first(1, method("PATCH"), ProxyFault::CutRequest(MIB));
    let (_server, proxy, repository) = place(rule).await;
    let growing = GrowingBlob::to(&repository, 10 * MIB);
    growing.grow(10 * MIB, &proxy, "DELETE", 1).await;
    let bytes = growing.bytes.clone();
    assert!(growing.end().await.is_none());
    let blob = put(&repository, &bytes).await;
    assert_eq!(repository.get_blob(&blob, 32 << 20).await.unwrap(), bytes);
}

/// A recipe with enough noise for its layer's upload to begin before it is complete.
fn large_site() -> Site {
    let site = Site::new();
    let recipe = "name = \"big\"\nbase = \"nanoserver\"\n\
        [[files]]\nfrom = \"a.bin\"\nto = 'C:\\a.bin'\n";
    site.write("recipe.toml", recipe);
    site.write("a.bin", noise(40 * MIB, 1));
    site
}

#[test]
fn a_build_sends_a_large_layer_while_it_is_written() {
    let site = large_site();
    let host = site.host();
    let before = site.requests();
    let to = ["--host-build", "17763.973", "--registry", &host, "--push"];
    let built = json_of(site.build(".").args(to));
    let layer = built["images"][0]["layers"][1]["digest"].as_str().unwrap();
    let asked = site.requests_since(before);
    let count = |method: &str, about: &str| {
        let alike = |it: &&String| it.starts_with(method) && it.contains(about);
        asked.iter().filter(alike).count()
    };
    assert_eq!(count("HEAD ", layer), 0, "{asked:#?}");
    assert!(count("PATCH ", "/uploads/") > 1, "{asked:#?}");
    assert_eq!(count("DELETE ", ""), 0, "{asked:#?}");
    // The same image as one that was written first.
    let args = ["--host-build", "17763.973", "--output", "oci:out"];
    let args = [&args[..], &["--manifest-format", "docker"]].concat();
    let kept = json_of(site.build(".").args(args));
    assert_eq!(kept["images"][0]["layers"][1]["digest"], layer);
}

/// A layer that the registry may have is not uploaded before the check; a changed one is.
#[test]
fn only_what_is_new_is_sent_ahead() {
    let site = large_site();
    let host = site.host();
    let build = |more: &[&str]| {
        let before = site.requests();
        let mut command = site.build(".");
        command.args(["--host-build", "17763.973", "--registry", &host, "--push"]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let asked = site.requests_since(before);
        let places = |method: &str| -> Vec<String> {
            let places = asked.iter().filter_map(|it| it.strip_prefix(method));
            places.map(str::to_owned).collect()
        };
        let begun = places("PATCH ");
        let closed = [places("PUT "), places("DELETE ")].concat();
        assert!(begun.iter().all(|it| closed.contains(it)), "{asked:#?}");
        begun.len()
    };
    assert!(build(&["--tag", "1"]) > 1);
    assert_eq!(build(&["--tag", "2"]), 0);
    assert_eq!(build(&["--tag", "1", "--no-cache"]), 0);
    site.write("a.bin", noise(40 * MIB, 2));
    assert!(build(&["--tag", "1"]) > 1);
}
