//! What `mirror` reads of a base that it copies.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use wincimg_oci::document::{Descriptor, History, ManifestFormat, media_type, sha256};
use wincimg_oci::reference::parse_reference;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::registry;
use wincimg_testkit::mirror_fixture::FOREIGN;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault, reads_blob};
use wincimg_testkit::serve::serve;
use wincimg_testkit::test_bases::{bottom_layer, gzip, image_of, made_software, made_system};
use wincimg_testkit::windows_base::StandIn;

use super::{
    ARTIFACT, BASE_PATH, Machine, NAME, VERSION, base, beside, is_known, publish, published,
};
use crate::failure::Failure;

#[test(multi_thread)]
async fn a_mirror_learns_what_is_inside_from_the_bytes_that_pass_by() {
    let upstream = DockerRegistry::plain();
    let own = DockerRegistry::plain();
    let (front, mirror) = (
        FaultProxy::start(upstream.host(), |_| ProxyFault::Pass).await,
        FaultProxy::start(own.host(), |_| ProxyFault::Pass).await,
    );
    let base = base();
    publish(&base, &upstream.host()).await;
    let reference = format!("{}/{NAME}:{VERSION}", front.host());
    let machine = Machine::new();
    let arguments = ["mirror", &reference, "--to", &mirror.host()];
    let report = machine.json(&arguments);
    let recorded = &report["images"][0]["facts"][0];
    assert_eq!(recorded["outcome"], "made", "{report}");
    assert_eq!(recorded["image"], base.image.digest().to_string());
    // Each layer was downloaded once, and was not read back.
    let layers = base.layers.iter().map(|it| it.0.digest.to_string());
    for layer in layers {
        let reads = |proxy: &FaultProxy| {
            let log = proxy.log();
            let reads = log.iter().filter(|it| reads_blob(it));
            reads.filter(|it| it.path.ends_with(&layer)).count()
        };
        assert_eq!((reads(&front), reads(&mirror)), (1, 0));
    }
    let reads = |proxy: &FaultProxy| proxy.log().iter().filter(|it| reads_blob(it)).count();
    // Referrers of the base are listed under the tag of its digest.
    let tag = base.image.digest().to_string().replace(':', "-");
    let parsed = parse_reference(&format!("{}/{NAME}:{tag}", own.host())).unwrap();
    let list = registry(&own.host())
        .repository(&parsed)
        .get_manifest(&tag)
        .await;
    let list: Value = serde_json::from_slice(&list.unwrap().bytes).unwrap();
    assert_eq!(list["manifests"][0]["artifactType"], ARTIFACT);

    let again = machine.json(&arguments);
    assert_eq!(again["images"][0]["facts"][0]["outcome"], "present");
    let before = reads(&mirror);
    Machine::new()
        .plans(&mirror.host())
        .stderr(is_known(&beside(&mirror.host())));
    // The configuration and the facts.
    assert_eq!(reads(&mirror) - before, 2);

    // Mirroring from there believes no facts.
    let third = FakeRegistry::start();
    let from = format!("{}/{NAME}:{VERSION}", mirror.host());
    let on = Machine::new().json(&["mirror", &from, "--to", &third.host()]);
    assert_eq!(on["images"][0]["facts"][0]["outcome"], "made", "{on}");
}

/// Microsoft's old bases: the bottom layer is available only at its URL, and the mirror's manifest
/// differs.
#[test(multi_thread)]
async fn a_foreign_layer_is_looked_through_on_its_way_or_where_it_is() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let tar = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    let packed = bytes::Bytes::from(gzip(&tar));
    let body = packed.clone();
    let served = serve(Router::new().route("/layer", get(async move || body)));
    let mut blob = Descriptor::new(FOREIGN, sha256(&packed), packed.len() as u64);
    blob.urls = vec![served.url("layer")];
    let mut base = image_of(VERSION, Vec::new());
    base.image = base
        .image
        .append_layer(blob, sha256(&tar), History::default())
        .unwrap();
    let reference = publish(&base, &source.host()).await;
    let path = format!("path      {}", r"%SystemRoot%\system32");
    let shown = Machine::new().run(&["base", "show", &reference]);
    shown.success().stdout(contains(path));
    let report = Machine::new().json(&["mirror", &reference, "--to", &target.host()]);
    let image = &report["images"][0];
    assert_eq!(image["facts"][0]["outcome"], "made", "{report}");
    assert_eq!(image["facts"][0]["image"], image["digest"]);
    assert_ne!(image["digest"], image["source_digest"]);
    let plans = Machine::new().plans(&target.host());
    plans.stderr(is_known(&beside(&target.host())));
}

#[test(multi_thread)]
async fn a_key_and_a_file_that_a_base_lacks_have_one_code() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    for (flag, missing) in [("--registry", r"HKLM\SYSTEM\Nope"), ("--path", r"C:\Nope")] {
        let show = ["base", "show", &reference, flag, missing];
        let refused = machine.run(&[&show[..], &["--format", "json"]].concat());
        Failure::of(refused.code(1).get_output()).is("image/no-file", &[missing]);
    }
}

#[test(multi_thread)]
async fn layers_that_the_mirror_has_already_are_read_back_once() {
    let (source, target) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &source.host()).await;
    let machine = Machine::new();
    let to = ["--to", &target.host()];
    let without = [&["mirror", &reference, "--no-facts"], &to[..]].concat();
    let report = machine.json(&without);
    assert_eq!(report["images"][0].get("facts"), None, "{report}");
    let with = [&["mirror", &reference], &to[..]].concat();
    let report = machine.json(&with);
    assert_eq!(report["images"][0]["up_to_date"], true, "{report}");
    assert_eq!(report["images"][0]["facts"][0]["outcome"], "made");
    let report = machine.json(&with);
    assert_eq!(report["images"][0]["facts"][0]["outcome"], "present");
    let plans = Machine::new().plans(&target.host());
    plans.stderr(is_known(&beside(&target.host())));
}

/// The bytes of layers that a proxy has forwarded.
fn layer_bytes(proxy: &FaultProxy, base: &StandIn) -> usize {
    let mut log = proxy.log();
    log.retain(|it| {
        let mut layers = base.layers.iter();
        reads_blob(it) && layers.any(|(layer, _)| it.path.ends_with(layer.digest.as_ref()))
    });
    log.iter().map(|it| it.received).sum()
}

#[test(multi_thread)]
async fn what_cannot_be_read_is_read_once() {
    let noise = |number| bytes::Bytes::from(wincimg_testkit::noise(16_000_000, number));
    let mut unreadable = image_of(VERSION, Vec::new());
    for content in [noise(1), noise(2)] {
        let digest = sha256(&content);
        let blob = Descriptor::new(media_type::OCI_LAYER_GZIP, digest.clone(), 16_000_000);
        unreadable.layers.push((blob.clone(), content));
        let layered = unreadable
            .image
            .append_layer(blob, digest, History::default());
        unreadable.image = layered.unwrap();
    }
    // Its layers can be read, but have no registry.
    let no_base = StandIn::new(ManifestFormat::Oci, VERSION, &[(2_000_000, 1)]);
    for (base, problem) in [(unreadable, Some("cannot read layer 1")), (no_base, None)] {
        let upstream = DockerRegistry::plain();
        let own = DockerRegistry::plain();
        let front = FaultProxy::start(upstream.host(), |_| ProxyFault::Pass).await;
        let mirror = FaultProxy::start(own.host(), |_| ProxyFault::Pass).await;
        publish(&base, &upstream.host()).await;
        let reference = format!("{}/{NAME}:{VERSION}", front.host());
        let all: usize = base.layers.iter().map(|(_, bytes)| bytes.len()).sum();
        let read = |machine: &Machine| {
            let before = [&front, &mirror].map(|proxy| layer_bytes(proxy, &base));
            let report = machine.json(&["mirror", &reference, "--to", &mirror.host()]);
            let facts = &report["images"][0]["facts"][0];
            let found = facts["problem"].as_str().map(|it| it.get(..19).unwrap());
            assert_eq!(found, problem, "{report}");
            let after = [&front, &mirror].map(|proxy| layer_bytes(proxy, &base));
            [after[0] - before[0], after[1] - before[1]]
        };
        let machine = Machine::new();
        assert_eq!(read(&machine), [all, 0]);
        assert_eq!(read(&machine), [0, 0]);
        // Layers that are not transferred are read as far as they can be. What their digests do not
        // confirm is not remembered.
        let other = Machine::new();
        for is_first in [true, false] {
            let [from, back] = read(&other);
            let is_enough = match problem {
                Some(_) => back > 0 && back < all / 2,
                None => back == if is_first { all } else { 0 },
            };
            assert!(from == 0 && is_enough, "{back} of {all}");
        }
    }
}

#[test(multi_thread)]
async fn a_layer_whose_transfer_broke_is_read_again_by_the_next_run() {
    let (source, own) = (FakeRegistry::start(), FakeRegistry::start());
    let base = base();
    let reference = publish(&base, &source.host()).await;
    let machine = Machine::new();
    machine
        .run(&["mirror", &reference, "--no-facts", "--to", &own.host()])
        .success();
    let broken = Arc::new(AtomicBool::new(true));
    let layer = base.layers[0].0.digest.to_string();
    let mirror = FaultProxy::start(own.host(), {
        let broken = Arc::clone(&broken);
        move |passed| {
            if reads_blob(passed) && passed.path.ends_with(&layer) && broken.load(Ordering::SeqCst)
            {
                return ProxyFault::Flip(200);
            }
            ProxyFault::Pass
        }
    })
    .await;
    let arguments = ["mirror", &reference, "--to", &mirror.host()];
    for fault in [true, false] {
        broken.store(fault, Ordering::SeqCst);
        let report = machine.json(&arguments);
        let outcome = &report["images"][0]["facts"][0]["outcome"];
        assert_eq!(*outcome, if fault { "failed" } else { "made" }, "{report}");
    }
}

#[test(multi_thread)]
async fn a_mirror_that_was_killed_is_mirrored_and_known_by_the_next_run() {
    let upstream = DockerRegistry::plain();
    let own = DockerRegistry::plain();
    let drip = ProxyFault::Drip(4_000, Duration::from_millis(20));
    let front = FaultProxy::start(upstream.host(), move |passed| {
        if reads_blob(passed) {
            drip.clone()
        } else {
            ProxyFault::Pass
        }
    })
    .await;
    publish(&base(), &upstream.host()).await;
    let machine = Machine::new();
    let reference = format!("{}/{NAME}:{VERSION}", front.host());
    let mirror = ["mirror", &reference, "--to", &own.host()];
    let mut child = machine.command(&mirror).spawn().unwrap();
    while front.requests("GET", "/blobs/").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(machine.kept(), Vec::<PathBuf>::new());
    let source = format!("{}/{NAME}:{VERSION}", upstream.host());
    let report = machine.json(&["mirror", &source, "--to", &own.host()]);
    assert_eq!(
        report["images"][0]["facts"][0]["outcome"], "made",
        "{report}"
    );
}

#[test(multi_thread)]
async fn facts_that_cannot_be_stored_do_not_fail_the_mirror() {
    let source = FakeRegistry::start();
    let own = DockerRegistry::plain();
    let base = base();
    let reference = publish(&base, &source.host()).await;
    let refused = base.image.digest().to_string().replace(':', "-");
    let mirror = FaultProxy::start(own.host(), move |passed| {
        if passed.method == "PUT" && passed.path.ends_with(&refused) {
            return ProxyFault::Answer(403, Vec::new(), "no".to_owned());
        }
        ProxyFault::Pass
    })
    .await;
    let machine = Machine::new();
    let to = ["--to", &mirror.host(), "--format", "json"];
    let done = machine.run(&[&["mirror", &reference], &to[..]].concat());
    let done = done
        .success()
        .stderr(contains("warning:").and(contains("403")));
    let report: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(report["images"][0]["facts"][0]["outcome"], "failed");
    assert_eq!(report["totals"]["failed_images"], 0);
}

#[test(multi_thread)]
async fn an_index_that_the_cache_cannot_keep_is_no_success() {
    let (_server, reference) = published().await;
    let machine = Machine::new();
    fs::create_dir(machine.cache()).unwrap();
    fs::write(machine.cache().join("bases"), "not a folder").unwrap();
    let index = ["base", "index", &reference, "--format", "json", "--quiet"];
    let done = machine.run(&index).code(3);
    let answer: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(answer["images"][0]["kept"], false);
    machine.run(&[&index[..], &["--push"]].concat()).code(0);
}

/// Its layer has other bytes then.
#[test(multi_thread)]
async fn a_build_says_that_its_base_is_indexed() {
    let server = FakeRegistry::start();
    let host = server.host();
    let reference = publish(&base(), &host).await;
    let machine = Machine::new();
    let build = |word: &'static str| {
        let flags = ["--host-build", "17763.973", "--base-registry", &host];
        let done = machine.run(&[&["build", "pause"], &flags[..]].concat());
        done.success().stdout(contains(word));
    };
    build("(exact)");
    machine.run(&["base", "index", &reference]).success();
    build("(exact, indexed)");
}
