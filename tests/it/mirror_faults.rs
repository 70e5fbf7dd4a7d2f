//! Mirroring with faults: other images continue, and nothing is published too early.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use wincimg_common::diagnose::{Diagnose as _, error_chain};
use wincimg_common::progress::Silent;
use wincimg_oci::copy::{Copier, CopyOptions, CopyPlan};
use wincimg_oci::document::{Digest, ManifestFormat, media_type};
use wincimg_oci::layout::Layout;
use wincimg_oci::mirror::MirrorOptions;
use wincimg_oci::reference::parse_reference;
use wincimg_oci::store::{Sink, Source};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::mirror_fixture::{
    FOREIGN, MirrorFixture, NEW, OLD, client, foreign_base, mirror_to, whole,
};
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault, first};
use wincimg_testkit::serve::serve;
use wincimg_testkit::windows_base::{StandIn, put_index};

#[test]
async fn a_registry_that_lists_nothing_is_mirrored_to_all_the_same() {
    let rule = |passed: &ProxiedRequest| {
        if passed.path.contains("_catalog") {
            ProxyFault::Answer(500, Vec::new(), String::new())
        } else {
            ProxyFault::Pass
        }
    };
    let world = MirrorFixture::with_rule(rule).await;
    let image = StandIn::new(
        ManifestFormat::Docker,
        OLD,
        &[(5_000_000, 1), (5_000_000, 2)],
    );
    image.put(&world.sink("app:1"), Some("1")).await;
    let report = world.mirror(&[world.image("app:1")], &whole()).await;
    assert_eq!(report.totals.copied_blobs, 3, "{report:?}");
    assert_eq!(world.proxy.requests("GET", "_catalog").len(), 1);
}

#[test]
async fn one_image_that_fails_does_not_keep_the_others_out() {
    let world = MirrorFixture::new().await;
    let good = StandIn::new(ManifestFormat::Docker, OLD, &[(4_000, 1)]);
    good.put(&world.sink("good:1"), Some("1")).await;
    let (bad, served) = foreign_base(OLD, 5);
    drop(served);
    world.publish("bad:1", &bad).await;
    let images = ["bad:1", "good:1", "absent:1"].map(|name| world.image(name));
    let report = world.mirror(&images, &whole()).await;
    assert!(report.images[0].error.is_some());
    assert!(report.images[1].error.is_none());
    assert!(report.images[2].error.is_some());
    assert_eq!(report.totals.failed_images, 2);
    let json = serde_json::to_value(&report).unwrap();
    let text = json["images"][0]["error"].as_str().unwrap();
    let layer = bad.layers[0].0.digest.as_ref();
    assert_contains!(text, layer);
    for (image, printed) in report.images.iter().zip(json["images"].as_array().unwrap()) {
        let code = image.error.as_ref().map(|error| error.diagnosis().code);
        assert_eq!(printed["code"].as_str(), code, "{printed}");
    }
}

#[test]
async fn nothing_is_published_while_a_blob_is_missing_and_a_second_run_goes_on() {
    let broken = Arc::new(Mutex::new(true));
    let rule = {
        let broken = broken.clone();
        // The largest blob always fails.
        move |passed: &ProxiedRequest| {
            let size = passed
                .header("content-length")
                .and_then(|text| text.parse().ok());
            if *broken.lock().unwrap() && size.is_some_and(|size: u64| size > 100_000) {
                ProxyFault::CutRequest(50_000)
            } else {
                ProxyFault::Pass
            }
        }
    };
    let world = MirrorFixture::with_rule(rule).await;
    let layers = [(200_000, 1), (3_000, 2), (4_000, 3)];
    let images = [OLD, NEW].map(|version| StandIn::new(ManifestFormat::Docker, version, &layers));
    let name = "windows/nanoserver:1809";
    put_index(
        ManifestFormat::Docker,
        &images,
        &world.sink(name),
        Some("1809"),
    )
    .await;
    let references = [world.image(name)];
    let report = world.mirror(&references, &whole()).await;
    assert_eq!(report.totals.failed_images, 1);
    assert!(world.proxy.requests("PUT", "/manifests/").is_empty());

    *broken.lock().unwrap() = false;
    let report = world.mirror(&references, &whole()).await;
    assert_eq!(report.totals.failed_images, 0, "{report:?}");
    let manifests = world.proxy.requests("PUT", "/manifests/");
    let published: Vec<_> = manifests.iter().map(|passed| &passed.path).collect();
    assert_eq!(published.len(), 3, "{published:?}");
    assert!(published[2].ends_with("/manifests/1809"), "{published:?}");
}

/// As where a mirror of other platforms ended during the copy.
#[test]
async fn a_tag_that_others_published_meanwhile_is_not_replaced() {
    let is_check = |passed: &ProxiedRequest| {
        passed.method == "HEAD" && passed.path.ends_with("/mcr/app/manifests/1")
    };
    let absent = ProxyFault::Answer(404, Vec::new(), String::new());
    let world = MirrorFixture::with_rule(first(1, is_check, absent)).await;
    let [theirs, ours] = [(OLD, 1), (NEW, 2)]
        .map(|(version, seed)| StandIn::new(ManifestFormat::Oci, version, &[(5_000, seed)]));
    let name = format!("{}/mcr/app:1", world.proxy.host());
    let target = world.registry.repository(&parse_reference(&name).unwrap());
    theirs.put(&Sink::Registry(target), Some("1")).await;
    ours.put(&world.sink("app:1"), Some("1")).await;
    let contend = async |options: &MirrorOptions| {
        let report = world.mirror(&[world.image("app:1")], options).await;
        let error = report.images[0].error.as_ref();
        assert_eq!(error.map(|it| it.diagnosis().code), Some("tag/contended"));
        let standing = world.mirrored("mcr/app:1").await;
        assert_eq!(standing.digest(), theirs.document().digest());
    };
    contend(&whole()).await;
    // The copy of another image may have taken hours since the check.
    let checked = |digest: Option<Digest>| MirrorOptions {
        checked: HashMap::from([(name.clone(), digest)]),
        ..whole()
    };
    contend(&checked(None)).await;
    let known = checked(Some(theirs.document().digest().clone()));
    let report = world.mirror(&[world.image("app:1")], &known).await;
    assert_eq!(report.totals.failed_images, 0, "{report:?}");
    let standing = world.mirrored("mcr/app:1").await;
    assert_eq!(standing.digest(), ours.document().digest());
}

/// As where another client that pushes the same blob has not finished.
#[test]
async fn a_blob_that_the_registry_loses_is_copied_again() {
    for lost in [1, 100] {
        let is_asked_for = |passed: &ProxiedRequest| {
            passed.method == "HEAD" && passed.path.contains("/mcr/app/blobs/")
        };
        let there = ProxyFault::Answer(200, Vec::new(), String::new());
        let world = MirrorFixture::with_rule(first(lost, is_asked_for, there)).await;
        let image = StandIn::new(ManifestFormat::Oci, OLD, &[(5_000, 1), (5_000, 2)]);
        image.put(&world.sink("app:1"), Some("1")).await;
        let report = world.mirror(&[world.image("app:1")], &whole()).await;
        let published = world.proxy.requests("PUT", "/manifests/1").len();
        if lost == 1 {
            assert_eq!(report.totals.failed_images, 0, "{report:?}");
            assert_eq!(published, 2);
        } else {
            let json = serde_json::to_value(&report).unwrap();
            let error = json["images"][0]["error"].as_str().unwrap();
            assert_contains!(error, "MANIFEST_BLOB_UNKNOWN");
            assert_eq!(published, 5, "{error}");
        }
    }
}

/// As Docker's registry, unless its configuration allows the URLs.
#[test]
async fn the_last_refusal_of_an_image_with_urls_says_why() {
    refused_urls(true, 400, "MANIFEST_BLOB_UNKNOWN").await;
    // That of 2.8 with its usual configuration.
    let both = r#"UNKNOWN"},{"code":"MANIFEST_BLOB_UNKNOWN"#;
    refused_urls(true, 500, both).await;
    refused_urls(false, 500, both).await;
}

async fn refused_urls(are_foreign: bool, status: u16, code: &'static str) {
    let rule = move |passed: &ProxiedRequest| {
        if passed.method == "PUT" && passed.path.contains("/manifests/") {
            let body = format!(r#"{{"errors":[{{"code":"{code}","message":"blob unknown"}}]}}"#);
            ProxyFault::Answer(status, Vec::new(), body)
        } else {
            ProxyFault::Pass
        }
    };
    let world = MirrorFixture::with_rule(rule).await;
    let (mut base, _served) = foreign_base(OLD, 1);
    let name = "windows/servercore:1809";
    if !are_foreign {
        let urls = base.layers[0].0.urls.clone();
        base = StandIn::new(ManifestFormat::Docker, OLD, &[]);
        base.push(media_type::DOCKER_LAYER_GZIP, 900, 1, urls);
    }
    world.publish(name, &base).await;
    let image = world.image(name);
    let source = Source::Registry(world.registry.repository(&image));
    let options = CopyOptions::default();
    let plan = CopyPlan::new(&source, Some("1809"), &options).await;
    let plan = plan.unwrap();
    let target = parse_reference(&format!("{}/{name}", world.proxy.host())).unwrap();
    let target = Sink::Registry(world.registry.repository(&target));
    let copier = Copier::new(world.registry.clone(), Arc::new(Silent), 2);
    let result = copier.copy(&plan, &source, &target, Some("1809")).await;
    let error = result.unwrap_err();
    assert_contains!(error.diagnosis().hint.unwrap(), "--ordinary-layers");
    // The blob may be an ordinary one, which the registry lost.
    assert_eq!(world.proxy.requests("PUT", "/manifests/").len(), 5);
}

#[test]
async fn a_foreign_layer_that_is_another_one_is_not_taken() {
    let world = MirrorFixture::new().await;
    let mut base = StandIn::new(ManifestFormat::Docker, OLD, &[]);
    let (_, gzip) = wincimg_testkit::windows_base::layer(40_000, 1);
    let mut lie = gzip.to_vec();
    lie[20_000] ^= 1;
    let served = serve(Router::new().route("/layer", get(async move || lie)));
    base.push(FOREIGN, 40_000, 1, vec![served.url("layer")]);
    world.publish("windows/servercore:1809", &base).await;
    let report = world
        .mirror(&[world.image("windows/servercore:1809")], &whole())
        .await;
    assert_eq!(report.totals.failed_images, 1, "{report:?}");
    let error = error_chain(report.images[0].error.as_ref().unwrap());
    let layer = base.layers[0].0.digest.to_string();
    assert_contains!(error, &*layer, &*served.host());
    assert!(world.proxy.requests("PUT", "/manifests/").is_empty());
    assert!(
        !world
            .own
            .blob_file(base.layers[0].0.digest.as_ref())
            .exists()
    );
}

/// Its URL was not typed.
#[test]
async fn a_foreign_layer_that_is_gone_is_not_a_wrong_tag() {
    let world = MirrorFixture::new().await;
    let mut base = StandIn::new(ManifestFormat::Docker, OLD, &[]);
    let served = serve(Router::new());
    base.push(FOREIGN, 4_000, 1, vec![served.url("layer")]);
    let name = "windows/servercore:1809";
    world.publish(name, &base).await;
    let source = Source::Registry(world.registry.repository(&world.image(name)));
    let plan = CopyPlan::new(&source, Some("1809"), &CopyOptions::default())
        .await
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let target = Sink::Layout(Layout::create(dir.path().join("base")).await.unwrap());
    let copier = Copier::new(world.registry.clone(), Arc::new(Silent), 2);
    let outcome = copier.copy(&plan, &source, &target, Some("1809")).await;
    let hint = outcome.unwrap_err().diagnosis().hint.unwrap();
    assert_contains!(hint, "another registry");
    assert!(!hint.contains("tag"), "{hint}");
}

#[test]
async fn a_tag_is_asked_for_once_and_all_else_by_digest() {
    let upstream = DockerRegistry::plain();
    let own = DockerRegistry::plain();
    // The tag moves to another image after the first request.
    let front = FaultProxy::start(upstream.host(), |_| ProxyFault::Pass).await;
    let registry = client(&[&front.host(), &own.host()]);
    let image = parse_reference(&format!("{}/app:1", front.host())).unwrap();
    let sink = Sink::Registry(registry.repository(&image));
    let images =
        [OLD, NEW].map(|version| StandIn::new(ManifestFormat::Oci, version, &[(4_000, 1)]));
    let index = put_index(ManifestFormat::Oci, &images, &sink, Some("1")).await;
    let before = front.log().len();
    let report = mirror_to(&registry, &[image], &own.host(), &whole()).await;
    assert_eq!(report.totals.failed_images, 0, "{report:?}");
    // Tags derived from digests are those of signatures and the like.
    let is_manifest = |path: &str| path.contains("/manifests/") && !path.contains("/sha256-");
    let asked: Vec<String> = front.log()[before..]
        .iter()
        .filter(|passed| is_manifest(&passed.path))
        .map(|passed| passed.path.clone())
        .collect();
    let by_tag = asked.iter().filter(|path| path.ends_with("/1")).count();
    assert_eq!(by_tag, 1, "{asked:?}");
    assert_eq!(asked.len(), 3, "{asked:?}");
    let copied = report.images[0].copied.as_ref().unwrap();
    assert_eq!(copied.digest, index.digest().to_string());
}
