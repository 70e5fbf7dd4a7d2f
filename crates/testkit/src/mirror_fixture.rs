//! Two registries for mirroring, and images to mirror.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use wincimg_common::progress::Silent;
use wincimg_oci::document::{Document, Index, ManifestFormat, media_type};
use wincimg_oci::mirror::{MirrorOptions, MirrorReport, mirror};
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{Reference, parse_reference};
use wincimg_oci::remote::{RegistryClient, RegistryOptions};
use wincimg_oci::store::{Sink, Source};

use super::docker_registry::DockerRegistry;
use super::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use super::serve::{TestServer, serve};
use super::windows_base::{StandIn, layer};

pub const FOREIGN: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
pub const OLD: &str = "10.0.17763.973";
pub const NEW: &str = "10.0.20348.10";

/// Two registries: a stand-in for Microsoft's, and the user's own behind a proxy that counts.
pub struct MirrorFixture {
    pub upstream: DockerRegistry,
    pub own: DockerRegistry,
    pub proxy: FaultProxy,
    pub registry: RegistryClient,
}

impl MirrorFixture {
    pub async fn new() -> Self {
        Self::with_rule(|_| ProxyFault::Pass).await
    }

    pub async fn with_rule(
        rule: impl FnMut(&ProxiedRequest) -> ProxyFault + Send + 'static,
    ) -> Self {
        let upstream = DockerRegistry::plain();
        let own = DockerRegistry::plain();
        let proxy = FaultProxy::start(own.host(), rule).await;
        let registry = client(&[&upstream.host(), &proxy.host(), "127.0.0.1"]);
        Self {
            upstream,
            own,
            proxy,
            registry,
        }
    }

    /// A reference to an image upstream.
    pub fn image(&self, name: &str) -> Reference {
        parse_reference(&format!("{}/{name}", self.upstream.host())).unwrap()
    }

    pub fn sink(&self, name: &str) -> Sink {
        Sink::Registry(self.registry.repository(&self.image(name)))
    }

    /// Publishes an image upstream, without its foreign layers.
    pub async fn publish(&self, name: &str, image: &StandIn) {
        let sink = self.sink(name);
        image
            .put_blobs(&sink, |blob| blob.media_type != FOREIGN)
            .await;
        let tag = self.image(name);
        sink.publish(&image.document(), tag.tag()).await.unwrap();
    }

    /// The document that a node would pull.
    pub async fn mirrored(&self, name: &str) -> Document {
        let reference = parse_reference(&format!("{}/{name}", self.own.host())).unwrap();
        let registry = client(&[&self.own.host()]);
        let source = Source::Registry(registry.repository(&reference));
        source
            .resolve(reference.digest().or(reference.tag()))
            .await
            .unwrap()
    }

    pub async fn mirror(&self, images: &[Reference], options: &MirrorOptions) -> MirrorReport {
        let target = format!("{}/mcr", self.proxy.host());
        mirror_to(&self.registry, images, &target, options).await
    }

    /// Requests that change the user's registry: uploads, chunks, mounts, manifests.
    pub fn changes(&self) -> Vec<ProxiedRequest> {
        let mut log = self.proxy.log();
        log.retain(|passed| !matches!(passed.method.as_str(), "GET" | "HEAD"));
        log
    }
}

/// Mirrors images, of which none may stop the others.
pub async fn mirror_to(
    registry: &RegistryClient,
    images: &[Reference],
    target: &str,
    options: &MirrorOptions,
) -> MirrorReport {
    let target: RegistryPrefix = target.parse().unwrap();
    let images: Vec<_> = images.iter().cloned().map(Into::into).collect();
    mirror(registry, &images, &target, options, None, Arc::new(Silent))
        .await
        .unwrap()
}

pub fn client(insecure: &[&str]) -> RegistryClient {
    let options = RegistryOptions {
        insecure: insecure.iter().map(|&host| host.to_owned()).collect(),
        ..super::options("unused")
    };
    RegistryClient::new(options, Arc::new(Silent)).unwrap()
}

pub fn whole() -> MirrorOptions {
    MirrorOptions::default()
}

pub fn only(platforms: &[&str]) -> MirrorOptions {
    MirrorOptions {
        platforms: platforms.iter().map(|text| text.parse().unwrap()).collect(),
        ..MirrorOptions::default()
    }
}

pub fn dry_run() -> MirrorOptions {
    MirrorOptions {
        dry_run: true,
        ..MirrorOptions::default()
    }
}

pub fn index_of(document: Document) -> Index {
    match document {
        Document::Index(index) => index.into_value(),
        Document::Manifest(manifest) => panic!("expected an index: {}", manifest.digest()),
    }
}

/// A base image whose first layer is foreign and only available at a URL.
pub fn foreign_base(os_version: &str, seed: u64) -> (StandIn, TestServer) {
    let mut base = StandIn::new(ManifestFormat::Docker, os_version, &[]);
    let (_, gzip) = layer(40_000, seed);
    let served = serve(Router::new().route("/layer", get(async move || gzip)));
    base.push(FOREIGN, 40_000, seed, vec![served.url("layer")]);
    base.push(media_type::DOCKER_LAYER_GZIP, 3_000, seed + 1, Vec::new());
    (base, served)
}
