//! Base images, resolved against a registry that counts the requests.

use std::sync::Arc;

use serde_json::json;
use wincimg_common::progress::Silent;
use wincimg_inspect::bases::{BaseMatch, Resolution, ResolveError, resolve};
use wincimg_oci::reference::parse_reference;
use wincimg_oci::remote::{RegistryClient, RegistryOptions};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_windows::compat::HostBuild;

const NANO: &str = "windows/nanoserver";
const IIS: &str = "windows/servercore/iis";

async fn ask(
    registry: &FakeRegistry,
    repository: &str,
    host_build: &str,
    wanted: BaseMatch,
) -> Result<Resolution, ResolveError> {
    ask_at(&registry.host(), repository, host_build, wanted).await
}

async fn ask_at(
    host: &str,
    repository: &str,
    host_build: &str,
    wanted: BaseMatch,
) -> Result<Resolution, ResolveError> {
    let options = RegistryOptions {
        insecure: vec![host.to_owned()],
        ..RegistryOptions::default()
    };
    let reference = parse_reference(&format!("{host}/{repository}")).unwrap();
    let client = RegistryClient::new(options, Arc::new(Silent)).unwrap();
    resolve(
        &client,
        &reference.into(),
        HostBuild::new(host_build.parse().unwrap()),
        wanted,
    )
    .await
}

async fn nearest(registry: &FakeRegistry, repository: &str, host: &str) -> Resolution {
    ask(registry, repository, host, BaseMatch::Nearest)
        .await
        .unwrap()
}

/// Five thousand tags: 1,250 revisions with four tags each.
fn registry_with_5000_tags() -> FakeRegistry {
    let registry = FakeRegistry::start();
    for revision in 0..1250 {
        let version = format!("10.0.20348.{}", 2 * revision);
        let plain = version.as_str();
        let amd64 = format!("{version}-amd64");
        let kb = format!("ltsc2022-KB5{revision:06}");
        let kb_amd64 = format!("{kb}-amd64");
        registry.publish(NANO, &[plain, &amd64, &kb, &kb_amd64], &version);
    }
    registry
}

#[test]
async fn five_thousand_tags_take_one_request_a_page_and_the_one_image() {
    let registry = registry_with_5000_tags();
    let found = nearest(&registry, NANO, "20348.502").await.base;
    assert_eq!(found.os_version.to_string(), "20348.502");
    assert_eq!(found.matched, BaseMatch::Exact);
    assert_eq!(found.reference.tag(), Some("10.0.20348.502"));
    assert_eq!(found.reference.digest(), Some(found.digest().as_ref()));

    let requests = registry.requests();
    let (pages, others): (Vec<_>, Vec<_>) = requests
        .iter()
        .partition(|request| *request == "GET /v2/windows/nanoserver/tags/list");
    assert_eq!(pages.len(), 5, "{requests:#?}");
    let image = format!("GET /v2/{NANO}/manifests/{}", found.digest());
    assert_eq!(
        *others[0],
        format!("GET /v2/{NANO}/manifests/10.0.20348.502")
    );
    assert_eq!(*others[1], image);
    assert!(others[2].starts_with("GET /v2/windows/nanoserver/blobs/"));
    assert_eq!(others.len(), 3, "{others:#?}");

    // Without the host's revision, the one below is taken, and nothing else is read.
    let found = nearest(&registry, NANO, "20348.503").await.base;
    assert_eq!(found.os_version.to_string(), "20348.502");
    assert_eq!(found.matched, BaseMatch::Nearest);
    assert_eq!(registry.requests().len(), 2 * (5 + 3));
    let error = ask(&registry, NANO, "20348.503", BaseMatch::Exact)
        .await
        .unwrap_err();
    let ResolveError::NothingFits(nothing) = error else {
        panic!("{error}");
    };
    assert_eq!(nothing.below.unwrap().version.to_string(), "20348.502");
    assert_eq!(nothing.above.unwrap().version.to_string(), "20348.504");
}

#[test]
async fn dated_tags_are_resolved_through_the_one_index_that_matters() {
    let registry = FakeRegistry::start();
    for (date, version) in [
        ("20191112", "10.0.17763.864"),
        ("20191210", "10.0.17763.914"),
        ("20200114", "10.0.17763.973"),
        ("20200211", "10.0.17763.1040"),
    ] {
        let tag = format!("{date}-windowsservercore-ltsc2019");
        registry.publish(IIS, &[&tag], version);
    }
    registry.publish(
        IIS,
        &["windowsservercore-ltsc2019", "latest"],
        "10.0.17763.9121",
    );
    let found = nearest(&registry, IIS, "17763.973").await.base;
    assert_eq!(found.os_version.to_string(), "17763.973");
    assert_eq!(
        found.reference.tag(),
        Some("20200114-windowsservercore-ltsc2019")
    );
    assert_eq!(
        registry.requests().len(),
        1 + 3,
        "{:#?}",
        registry.requests()
    );
}

#[test]
async fn a_floating_tag_alone_is_resolved_through_its_index() {
    let registry = FakeRegistry::start();
    let old = registry.image("windows", "10.0.17763.973");
    let new = registry.image("windows", "10.0.20348.2402");
    let index = registry.index(&[
        (&old, Some("10.0.17763.973")),
        (&new, Some("10.0.20348.2402")),
    ]);
    registry.tag(IIS, "latest", &index);
    let found = nearest(&registry, IIS, "17763.1000").await.base;
    assert_eq!(found.digest().as_ref(), old);
    assert_eq!(found.index.unwrap().as_ref(), index);
    assert_eq!(registry.requests().len(), 1 + 3);
}

#[test]
async fn an_index_without_versions_is_answered_by_the_images() {
    let registry = FakeRegistry::start();
    let image = registry.image("windows", "10.0.20348.2402");
    let index = registry.index(&[(&image, None)]);
    registry.tag("base/app", "ltsc2022", &index);
    let found = nearest(&registry, "base/app", "20348.2402").await.base;
    assert_eq!(found.matched, BaseMatch::Exact);
}

#[test]
async fn a_plain_manifest_under_a_tag_is_read_once() {
    let registry = FakeRegistry::start();
    let image = registry.image("windows", "10.0.20348.2402");
    registry.tag(NANO, "10.0.20348.2402-amd64", &image);
    let found = nearest(&registry, NANO, "20348.2402").await.base;
    assert_eq!(found.digest().as_ref(), image);
    assert_eq!(found.index, None);
    assert_eq!(registry.requests().len(), 3, "{:#?}", registry.requests());
}

#[test]
async fn a_configuration_that_contradicts_its_tag_is_set_aside() {
    let registry = FakeRegistry::start();
    registry.publish(NANO, &["10.0.17763.914"], "10.0.17763.914");
    let lies = registry.publish(NANO, &[], "10.0.17763.805");
    let index = registry.index(&[(&lies, Some("10.0.17763.973"))]);
    registry.tag(NANO, "10.0.17763.973", &index);
    let resolution = nearest(&registry, NANO, "17763.973").await;
    assert_eq!(resolution.base.os_version.to_string(), "17763.914");
    let [aside] = &resolution.set_aside[..] else {
        panic!("{:?}", resolution.set_aside);
    };
    assert_eq!(aside.tag, "10.0.17763.973");
    for version in ["10.0.17763.973", "10.0.17763.805"] {
        assert!(aside.reason.contains(version), "{aside}");
    }
}

#[test]
async fn an_index_that_contradicts_its_tag_is_set_aside() {
    let registry = FakeRegistry::start();
    registry.publish(NANO, &["10.0.17763.973"], "10.0.17763.1158");
    let error = ask(&registry, NANO, "17763.973", BaseMatch::Nearest)
        .await
        .unwrap_err();
    let ResolveError::NothingFits(nothing) = error else {
        panic!("{error}");
    };
    let reason = &nothing.set_aside[0].reason;
    assert_contains!(reason, "10.0.17763.1158");
}

#[test]
async fn an_image_that_is_not_windows_is_set_aside() {
    let registry = FakeRegistry::start();
    let linux = registry.image("linux", "");
    registry.tag("base/app", "ltsc2022", &linux);
    let arm = json!({"os": "windows", "architecture": "arm64", "os.version": "10.0.20348.1"});
    let arm = registry.image_with(&arm);
    registry.tag("base/app", "10.0.20348.1", &arm);
    let error = ask(&registry, "base/app", "20348.1", BaseMatch::Nearest)
        .await
        .unwrap_err();
    let ResolveError::NothingFits(nothing) = error else {
        panic!("{error}");
    };
    let mut aside: Vec<(&str, &str)> = nothing
        .set_aside
        .iter()
        .map(|aside| (aside.tag.as_str(), aside.reason.as_str()))
        .collect();
    aside.sort_unstable();
    let [("10.0.20348.1", arm), ("ltsc2022", linux)] = aside[..] else {
        panic!("{aside:?}");
    };
    for (reason, platform) in [(arm, "windows/arm64"), (linux, "linux/amd64")] {
        assert_contains!(reason, platform, "windows/amd64");
    }
}

#[test]
async fn a_tag_that_moves_or_goes_away_after_the_list_does_no_harm() {
    let registry = FakeRegistry::start();
    registry.publish(NANO, &["10.0.17763.914"], "10.0.17763.914");
    registry.publish(NANO, &["10.0.17763.973"], "10.0.17763.973");
    let registry = Arc::new(registry);
    let moving = registry.clone();
    let rule = move |passed: &ProxiedRequest| {
        if passed.path.ends_with("/manifests/10.0.17763.973") {
            let other = moving.image("windows", "10.0.17763.1158");
            moving.tag(NANO, "10.0.17763.973", &other);
        }
        ProxyFault::Pass
    };
    let proxy = FaultProxy::start(registry.host(), rule).await;
    let resolution = ask_at(&proxy.host(), NANO, "17763.973", BaseMatch::Nearest)
        .await
        .unwrap();
    assert_eq!(resolution.base.os_version.to_string(), "17763.914");
    assert_eq!(resolution.set_aside.len(), 1);

    registry.publish(NANO, &["10.0.17763.973"], "10.0.17763.973");
    let gone = |passed: &ProxiedRequest| {
        if passed.path.ends_with("/manifests/10.0.17763.973") {
            ProxyFault::Answer(404, Vec::new(), String::new())
        } else {
            ProxyFault::Pass
        }
    };
    let proxy = FaultProxy::start(registry.host(), gone).await;
    let resolution = ask_at(&proxy.host(), NANO, "17763.973", BaseMatch::Nearest)
        .await
        .unwrap();
    assert_eq!(resolution.base.os_version.to_string(), "17763.914");
    assert_eq!(resolution.set_aside[0].tag, "10.0.17763.973");
}

#[test]
async fn a_lost_image_yields_to_the_next() {
    let registry = FakeRegistry::start();
    registry.publish(NANO, &["10.0.17763.914"], "10.0.17763.914");
    let lost = registry.image("windows", "10.0.17763.973");
    let index = registry.index(&[(&lost, Some("10.0.17763.973"))]);
    registry.lose(&lost);
    registry.tag(NANO, "10.0.17763.973", &index);
    let resolution = nearest(&registry, NANO, "17763.973").await;
    assert_eq!(resolution.base.os_version.to_string(), "17763.914");
}

#[test]
async fn server_2016_gets_its_own_revision_or_nothing() {
    let registry = FakeRegistry::start();
    registry.publish(NANO, &["10.0.14393.3384"], "10.0.14393.3384");
    registry.publish(NANO, &["10.0.14393.3504", "ltsc2016"], "10.0.14393.3504");
    let error = ask(&registry, NANO, "14393.3443", BaseMatch::Nearest)
        .await
        .unwrap_err();
    assert!(matches!(error, ResolveError::NothingFits(_)), "{error}");
    let message = error.to_string();
    assert_contains!(message, "14393.3384", "14393.3504");
    let found = nearest(&registry, NANO, "14393.3384").await.base;
    assert_eq!(found.matched, BaseMatch::Exact);
}

#[test]
async fn a_repository_without_base_tags_is_reported() {
    let registry = FakeRegistry::start();
    registry.publish("app/web", &["v1", "v2"], "10.0.17763.973");
    let error = ask(&registry, "app/web", "17763.973", BaseMatch::Nearest)
        .await
        .unwrap_err();
    let has_none = matches!(error, ResolveError::NoBaseTags { count: 2, .. });
    assert!(has_none, "{error}");
    let error = ask(&registry, "app/none", "17763.973", BaseMatch::Nearest)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ResolveError::NoRepository { .. }),
        "{error}"
    );
}

#[test]
async fn tags_that_say_too_little_are_not_asked_about_without_end() {
    let registry = FakeRegistry::start();
    for number in 0..100 {
        let tag = format!("1803-KB41000{number:02}");
        registry.publish(NANO, &[&tag], &format!("10.0.17134.{number}"));
    }
    let error = ask(&registry, NANO, "17134.999", BaseMatch::Nearest)
        .await
        .unwrap_err();
    assert_contains!(error, "64 tags");
    assert_eq!(registry.requests().len(), 1 + 64);
}
