//! `mirror` copies artifacts attached to images, and reports those that it cannot copy.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_demo::DemoRegistry;
use wincimg_oci::document::{Artifact, Descriptor, Digest, sha256};
use wincimg_oci::remote::Repository;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::layout::json_in;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_testkit::{options, put, repository};

use crate::failure::{Fails, line, says};
use crate::site::{Site, block_on, json_of, stderr};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn mirror(site: &Site, image: &str, to: &str, more: &[&str]) -> (Value, std::process::Output) {
    let mut command = site.command(&["mirror", image, "--to", to, "--format", "json"]);
    command.args(["--insecure-registry", to]).args(more);
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (report, output)
}

/// An image with documents, a signature of one of them, and a cosign signature under its tag.
fn signed_image(site: &Site) -> (String, Value) {
    let mut command = site.push("pause");
    command.args(["--host-build", "17763.973"]);
    let built = json_of(command.args(["--sbom", "spdx", "--provenance"]));
    let image = &built["images"][0];
    let place = site.repository("pause");
    block_on(async {
        let bill = image["documents"][0]["digest"].as_str().unwrap();
        let raw = place.get_manifest(bill).await.unwrap();
        let about = Descriptor::new(&*raw.media_type, raw.digest, raw.bytes.len() as u64);
        let signature = put(&place, &Bytes::from_static(b"notation")).await;
        let signature = Descriptor::new("application/jose+json", signature.digest.clone(), 8);
        let kind = "application/vnd.cncf.notary.signature";
        let signed = Artifact::new(kind, &about, vec![signature], BTreeMap::new()).unwrap();
        place.attach(&signed).await.unwrap();
        cosign(&place, image["digest"].as_str().unwrap(), &[1]).await;
    });
    (image["reference"].as_str().unwrap().to_owned(), built)
}

/// Sets the tag of an image's signatures, as cosign does: of one payload, with other annotations.
async fn cosign(place: &Repository, image: &str, signatures: &[u8]) -> Digest {
    let layer = put(place, &Bytes::from_static(b"payload")).await;
    let config = put(place, &Bytes::from_static(b"{}")).await;
    let layers = signatures.iter().map(|signature| {
        json!({"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": layer.digest.to_string(), "size": layer.size,
            "annotations": {"dev.cosignproject.cosign/signature": signature.to_string()}})
    });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config.digest.to_string(), "size": config.size},
        "layers": layers.collect::<Vec<_>>(),
    });
    let manifest = Bytes::from(manifest.to_string());
    let digest = sha256(&manifest);
    let tag = signature_tag(image);
    let put = place.put_manifest(&tag, MANIFEST, manifest);
    put.await.unwrap();
    digest
}

fn signature_tag(image: &str) -> String {
    format!("{}.sig", image.replace(':', "-"))
}

/// The outcomes, by kind.
fn outcomes(report: &Value) -> Vec<(&str, &str)> {
    let beside = report["images"][0]["beside"].as_array().unwrap().iter();
    let mut outcomes: Vec<(&str, &str)> = beside
        .map(|it| {
            (
                it["kind"].as_str().unwrap(),
                it["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    outcomes.sort_unstable();
    outcomes
}

const KINDS: [&str; 4] = [
    "application/spdx+json",
    "application/vnd.cncf.notary.signature",
    "application/vnd.in-toto+json",
    "sig",
];

fn assert_mirrored(site: &Site, to: &str) {
    let (image, _) = signed_image(site);
    let (plan, _) = mirror(site, &image, to, &["--dry-run"]);
    assert_eq!(outcomes(&plan).len(), 4, "{plan}");
    let (first, output) = mirror(site, &image, to, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(outcomes(&first), KINDS.map(|kind| (kind, "copied")));
    let (second, _) = mirror(site, &image, to, &[]);
    assert_eq!(outcomes(&second), KINDS.map(|kind| (kind, "present")));
    let there = image.replace(&site.host(), to);
    let mut command = site.command(&["inspect", &there, "--sbom=spdx"]);
    let printed = command.args(["--insecure-registry", to]).output().unwrap();
    assert!(printed.status.success(), "{}", stderr(&printed));
    assert_contains!(String::from_utf8(printed.stdout).unwrap(), "SPDX-2.3");
}

#[test]
fn all_attached_documents_are_copied_once() {
    let target = DemoRegistry::start().unwrap();
    assert_mirrored(&Site::new(), &target.host());
}

#[test]
fn it_goes_to_a_registry_that_lists_it_under_a_tag() {
    let docker = DockerRegistry::plain();
    assert_mirrored(&Site::new(), &docker.host());
}

#[test]
fn a_copy_has_all_attached_documents_and_signatures_too() {
    let site = Site::new();
    let (image, built) = signed_image(&site);
    let there = format!("{}/promoted:1", site.host());
    for (words, to) in [
        (["copy", &*image, "oci:layout:1"], "oci:layout"),
        (["push", "oci:layout", &*there], &*there),
    ] {
        let copied = json_of(&mut site.with_no_bases(&words));
        assert_eq!(copied["artifacts"], KINDS.len(), "{words:?}");
        let output = site.command(&["digest", to]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let built = &built["images"][0];
    let place = site.repository("promoted");
    block_on(async {
        let image = built["digest"].as_str().unwrap();
        let tag = signature_tag(image);
        assert!(place.find_manifest(&tag).await.unwrap().is_some());
        let bill = built["documents"][0]["digest"].as_str().unwrap();
        let signatures = place.referrers(&bill.parse().unwrap(), None).await;
        assert_eq!(signatures.unwrap().len(), 1);
    });
}

#[test]
fn signatures_of_a_copy_are_kept_unless_all_are_in_the_source() {
    let site = Site::new();
    let (image, built) = signed_image(&site);
    let digest = built["images"][0]["digest"].as_str().unwrap();
    let there = format!("{}/promoted:1", site.host());
    let copy = |more: &[&str]| {
        let mut command = site.with_no_bases(&["copy", &image, &there]);
        command.args(more).tells(0)
    };
    copy(&[]);
    let (source, target) = (site.repository("pause"), site.repository("promoted"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sign =
        |place: &Repository, signatures: &[u8]| runtime.block_on(cosign(place, digest, signatures));
    let in_target = || {
        let tag = signature_tag(digest);
        let found = runtime.block_on(target.head_manifest(&tag));
        found.unwrap().unwrap().digest
    };
    let own = sign(&target, &[1, 2]);
    let printed = copy(&[]);
    assert_contains!(printed, "warning: sig attached to", digest, "--replace");
    assert_eq!(in_target(), own);
    let newer = sign(&source, &[1, 2, 3]);
    assert!(!copy(&[]).contains("--replace"));
    assert_eq!(in_target(), newer);

    sign(&target, &[4]);
    copy(&["--replace"]);
    assert_eq!(in_target(), newer);
    let other = DemoRegistry::start().unwrap();
    let host = other.host();
    sign(
        &repository(options(&host), &format!("{host}/pause")),
        &[1, 4],
    );
    let outcome = |more: &[&str]| {
        let (report, output) = mirror(&site, &image, &host, more);
        assert!(output.status.success(), "{}", stderr(&output));
        let outcomes = outcomes(&report);
        let (_, outcome) = outcomes.iter().find(|(kind, _)| *kind == "sig").unwrap();
        (*outcome).to_owned()
    };
    assert_eq!(outcome(&[]), "left");
    assert_eq!(outcome(&["--replace"]), "copied");
}

/// A registry that cleans up may keep a list of thousands of documents that it deleted.
#[test]
fn documents_that_a_registry_lists_and_lacks_are_noted_once() {
    let site = Site::new();
    let built = json_of(site.push("pause").args(["--host-build", "17763.973"]));
    let image = built["images"][0]["reference"].as_str().unwrap();
    let gone: Vec<String> = (0..250_u8).map(|it| sha256(&[it]).to_string()).collect();
    let entries = gone.iter().map(|digest| {
        json!({"mediaType": MANIFEST, "digest": digest, "size": 1, "artifactType": "text/gone"})
    });
    let list =
        json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries.collect::<Vec<_>>()});
    // One after the other, all of them would take ten seconds.
    let pause = Duration::from_millis(40);
    let rule = move |passed: &ProxiedRequest| {
        if passed.path.contains("/referrers/") {
            let headers = vec![("content-type", INDEX.to_owned())];
            return ProxyFault::Answer(200, headers, list.to_string());
        }
        if gone.iter().any(|digest| passed.path.ends_with(digest)) {
            return ProxyFault::Drip(1 << 20, pause);
        }
        ProxyFault::Pass
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(FaultProxy::start(site.host(), rule));
    let image = image.replace(&site.host(), &proxy.host());
    let started = Instant::now();
    let output = site
        .command(&["copy", &image, "oci:layout:1"])
        .output()
        .unwrap();
    assert!(started.elapsed() < pause * 200);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stderr(&output);
    let notes = printed
        .lines()
        .filter(|line| line.contains("does not have"));
    assert_eq!(notes.count(), 1, "{printed}");
    assert_contains!(printed, "ignored 250 documents");
}

#[test]
fn signatures_of_documents_under_cosigns_tags_are_copied_and_deep_ones_reported() {
    let site = Site::new();
    let (image, built) = signed_image(&site);
    let bill = built["images"][0]["documents"][0]["digest"].as_str();
    let bill = bill.unwrap();
    let place = site.repository("pause");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        cosign(&place, bill, &[1]).await;
        let raw = place.get_manifest(bill).await.unwrap();
        let mut about = Descriptor::new(&*raw.media_type, raw.digest, raw.bytes.len() as u64);
        for _ in 0..6 {
            let deep = Artifact::new("text/deep", &about, Vec::new(), BTreeMap::new());
            let deep = deep.unwrap();
            place.attach(&deep).await.unwrap();
            about = deep.document().descriptor();
        }
    });
    let there = format!("{}/promoted:1", site.host());
    for words in [
        ["copy", &*image, "oci:layout:1"],
        ["push", "oci:layout", &*there],
    ] {
        let mut command = site.with_no_bases(&words);
        let printed = command.tells(0);
        let deep = |line: &&str| line.starts_with("warning: ") && line.contains("text/deep");
        let warnings = printed.lines().filter(deep).count();
        // The layout has no more than it got.
        assert_eq!(warnings, usize::from(words[0] == "copy"), "{words:?}");
    }
    let place = site.repository("promoted");
    let tag = signature_tag(bill);
    let found = runtime.block_on(place.find_manifest(&tag)).unwrap();
    assert!(found.is_some());
}

/// Attaches an artifact whose content is missing.
fn attach_lost(site: &Site, built: &Value) {
    let place = site.repository("pause");
    block_on(async {
        let image = built["images"][0]["digest"].as_str().unwrap();
        let raw = place.get_manifest(image).await.unwrap();
        let about = Descriptor::new(&*raw.media_type, raw.digest, raw.bytes.len() as u64);
        let nowhere = Descriptor::new("text/plain", sha256(b"nowhere"), 7);
        let lost = Artifact::new("text/lost", &about, vec![nowhere], BTreeMap::new()).unwrap();
        place.attach(&lost).await.unwrap();
    });
}

#[test]
fn a_document_that_cannot_be_copied_is_an_error_after_the_images_exist() {
    let site = Site::new();
    let (image, built) = signed_image(&site);
    attach_lost(&site, &built);
    let target = DemoRegistry::start().unwrap();
    let (report, output) = mirror(&site, &image, &target.host(), &[]);
    assert_eq!(output.status.code(), Some(3));
    let printed = stderr(&output);
    says(&printed, &line(&["error: ", "1"]));
    assert_contains!(printed, "--no-referrers");
    let failed = outcomes(&report)
        .iter()
        .filter(|(_, outcome)| *outcome == "failed")
        .count();
    assert_eq!(failed, 1, "{report}");

    let there = format!("{}/promoted:1", site.host());
    let mut copy = site.with_no_bases(&["copy", &image, &there]);
    let printed = copy.tells(3);
    assert_contains!(printed, "text/lost", "--no-referrers");
    let output = site.command(&["inspect", &there, "--sbom"]).output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "the others are copied: {}",
        stderr(&output)
    );
}

#[test]
fn an_artifact_of_an_unknown_format_is_an_error_and_the_others_are_copied() {
    const OLD: &str = "application/vnd.oci.artifact.manifest.v1+json";
    let site = Site::new();
    let (image, built) = signed_image(&site);
    json_of(&mut site.with_no_bases(&["copy", &image, "oci:layout:1"]));
    let about = &built["images"][0]["digest"];
    let old = Bytes::from(
        json!({
            "mediaType": OLD, "artifactType": "text/old", "blobs": [],
            "subject": {"mediaType": MANIFEST, "digest": about, "size": 7},
        })
        .to_string(),
    );
    let digest = sha256(&old);
    let layout = site.path("layout");
    fs::write(layout.join("blobs/sha256").join(digest.digest()), &old).unwrap();
    let mut index = json_in(&layout.join("index.json"));
    let entry = json!({
        "mediaType": OLD, "artifactType": "text/old", "digest": digest.to_string(),
        "size": old.len(),
    });
    index["manifests"].as_array_mut().unwrap().insert(0, entry);
    fs::write(layout.join("index.json"), index.to_string()).unwrap();
    let place = site.repository("pause");
    let put = place.put_manifest(digest.as_ref(), OLD, old);
    block_on(put).unwrap();

    for (source, name) in [(&*image, "first"), ("oci:layout:1", "second")] {
        let there = format!("{}/{name}:1", site.host());
        let output = site.with_no_bases(&["copy", source, &there]).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(3), "{source}");
        assert_contains!(stderr(&output), "text/old", OLD);
        let output = site.command(&["inspect", &there, "--sbom"]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let output = site
        .command(&["inspect", "oci:layout:1", "--sbom"])
        .output();
    assert_contains!(stderr(&output.unwrap()), &*digest.to_string());
}

#[test]
fn documents_that_stay_are_reported_unless_that_is_asked() {
    let site = Site::new();
    let (image, _) = signed_image(&site);
    // An archive has no place for them.
    for (words, expected) in [(&[][..], KINDS.len() - 1), (&["--no-referrers"][..], 0)] {
        let mut command = site.with_no_bases(&["copy", &image, "docker-archive:app.tar"]);
        let printed = command.args(words).tells(0);
        // The signature of the SBOM is not listed apart from it.
        let warnings = printed.matches("cannot contain it").count();
        assert_eq!(warnings, expected, "{printed}");
    }
    let target = DemoRegistry::start().unwrap();
    let (report, _) = mirror(&site, &image, &target.host(), &["--no-referrers"]);
    assert_eq!(report["images"][0].get("beside"), None);
    // They are about other bytes than those of the copy.
    let target = DemoRegistry::start().unwrap();
    let words = ["--manifest-format", "docker"];
    let (report, output) = mirror(&site, &image, &target.host(), &words);
    let printed = stderr(&output);
    assert!(output.status.success(), "{printed}");
    assert!(
        outcomes(&report)
            .iter()
            .all(|(_, outcome)| *outcome == "left"),
        "{report}"
    );
    let warnings = printed.lines().filter(|line| line.starts_with("warning: "));
    assert_eq!(warnings.count(), outcomes(&report).len(), "{printed}");
}
