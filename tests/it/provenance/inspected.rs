//! `inspect --sbom` and `--provenance` print attached documents unchanged, from any tool.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_oci::document::{Artifact, Descriptor, Index, ManifestFormat, Verbatim};
use wincimg_oci::remote::Repository;
use wincimg_testkit::put;

use crate::failure::{note, says};
use crate::site::{Site, json_of, stderr};
use crate::terminal::on_terminal;

fn inspect(site: &Site, arguments: &[&str]) -> std::process::Output {
    let mut all = vec!["inspect"];
    all.extend(arguments);
    site.command(&all).output().unwrap()
}

/// The document that a flag prints, and what is said on stderr.
#[track_caller]
fn printed(site: &Site, image: &str, flag: &str) -> (Value, String) {
    let output = inspect(site, &[image, flag]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
fn what_a_build_attached_is_printed_and_of_the_rest_it_is_said_what_exists() {
    let site = Site::new();
    let mut command = site.push("pause");
    command.args(["--host-build", "17763.973"]);
    command.args(["--sbom", "cyclonedx", "--sbom", "spdx", "--provenance"]);
    let built = json_of(&mut command);
    let image = built["images"][0]["reference"].as_str().unwrap();
    let print = |flag: &str| printed(&site, image, flag).0;
    assert_eq!(print("--sbom=spdx")["spdxVersion"], "SPDX-2.3");
    assert_eq!(print("--sbom=cyclonedx")["specVersion"], "1.6");
    assert_eq!(
        print("--provenance")["predicateType"],
        "https://slsa.dev/provenance/v1"
    );
    let (_, said) = printed(&site, image, "--sbom");
    says(&said, &note(&["sha256:"]));

    let base = format!("{}/mcr/windows/nanoserver:10.0.17763.973", site.host());
    let output = inspect(&site, &[&base, "--sbom"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let printed = stderr(&output);
    assert_contains!(printed, &base, "--sbom=spdx --push");
    let mut command = site.push("pause");
    command.args(["--host-build", "20348.2402"]);
    json_of(command.args(["--sbom", "spdx"]));
    let other = image.replace("10.0.17763.973", "10.0.20348.2402");
    let output = inspect(&site, &[&other, "--sbom=cyclonedx"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = stderr(&output);
    assert_contains!(printed, "SPDX");
}

#[test]
fn of_an_index_one_image_is_chosen() {
    let site = Site::new();
    let mut command = site.push("pause");
    command.args([
        "--host-build", "17763.973", "--host-build", "20348.2402", "--tag", "1",
    ]);
    json_of(command.args(["--sbom", "spdx"]));
    let index = format!("{}/pause:1", site.host());
    let output = inspect(&site, &[&index, "--sbom"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--platform"));
    let platform = ["--platform", "windows/amd64:20348"];
    let output = inspect(&site, &[&index, "--sbom", platform[0], platform[1]]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_contains!(String::from_utf8(output.stdout).unwrap(), "10.0.20348.2402");
}

/// An image without attached documents, and its repository.
async fn plain_image(site: &Site) -> (Repository, Descriptor) {
    let mut command = site.push("pause");
    command.args(["--host-build", "17763.973"]);
    json_of(command.args(["--name", "theirs", "--tag", "1"]));
    let place = site.repository("theirs");
    let raw = place.get_manifest("1").await.unwrap();
    let image = Descriptor::new(&*raw.media_type, raw.digest, raw.bytes.len() as u64);
    (place, image)
}

async fn stored(repository: &Repository, media_type: &str, text: &str) -> Descriptor {
    let blob = put(repository, &Bytes::from(text.to_owned())).await;
    Descriptor::new(media_type, blob.digest.clone(), blob.size)
}

/// Attaches a document of this type to an image or an index.
async fn attach(repository: &Repository, about: &Descriptor, kind: &str, text: &str) {
    let content = stored(repository, kind, text).await;
    let artifact = Artifact::new(kind, about, vec![content], BTreeMap::new()).unwrap();
    repository.attach(&artifact).await.unwrap();
}

fn enveloped(statement: &Value) -> String {
    json!({
        "payloadType": "application/vnd.in-toto+json",
        "payload": STANDARD.encode(statement.to_string()),
        "signatures": [{"sig": "AAAA"}],
    })
    .to_string()
}

fn statement(predicate_type: &str, predicate: &Value) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [],
        "predicateType": predicate_type,
        "predicate": predicate,
    })
}

#[test(multi_thread)]
async fn what_cosign_and_others_attached_is_taken_out_of_its_envelope() {
    let site = Site::new();
    let (theirs, image) = plain_image(&site).await;
    // An SBOM attested by cosign: a tag of the digest, one envelope for each layer.
    let bill = json!({"bomFormat": "CycloneDX", "by": "cosign"});
    let envelope = enveloped(&statement("https://cyclonedx.org/bom", &bill));
    let mut layer = stored(&theirs, "application/vnd.dsse.envelope.v1+json", &envelope).await;
    let kind = (
        "predicateType".to_owned(),
        "https://cyclonedx.org/bom".to_owned(),
    );
    layer.annotations.extend([kind]);
    let config = stored(&theirs, "application/vnd.oci.image.config.v1+json", "{}").await;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": [layer],
    });
    let tag = format!("{}.att", image.digest.to_string().replace(':', "-"));
    let oci = "application/vnd.oci.image.manifest.v1+json";
    theirs
        .put_manifest(&tag, oci, manifest.to_string().into())
        .await
        .unwrap();
    // The new bundle format: a referrer whose annotations do not name its content.
    let provenance = statement("https://slsa.dev/provenance/v1", &json!({"by": "bundle"}));
    let bundle =
        json!({"dsseEnvelope": serde_json::from_str::<Value>(&enveloped(&provenance)).unwrap()});
    let kind = "application/vnd.dev.sigstore.bundle.v0.3+json";
    attach(&theirs, &image, kind, &bundle.to_string()).await;

    let reference = format!("{}/theirs:1", site.host());
    let (found, said) = printed(&site, &reference, "--sbom=cyclonedx");
    says(&said, &note(&["cosign"]));
    assert_eq!(found, bill);
    let (found, _) = printed(&site, &reference, "--provenance");
    assert_eq!(found, provenance);
}

#[test(multi_thread)]
async fn an_envelope_without_signatures_is_not_called_signed() {
    let site = Site::new();
    let (theirs, image) = plain_image(&site).await;
    for (predicate_type, flag, signatures, is_signed) in [
        (
            "https://slsa.dev/provenance/v1",
            "--provenance",
            json!([]),
            false,
        ),
        (
            "https://spdx.dev/Document",
            "--sbom=spdx",
            json!([{"sig": "AAAA"}]),
            true,
        ),
    ] {
        let statement = statement(predicate_type, &json!({}));
        let mut envelope: Value = serde_json::from_str(&enveloped(&statement)).unwrap();
        envelope["signatures"] = signatures;
        let kind = "application/vnd.dsse.envelope.v1+json";
        attach(&theirs, &image, kind, &envelope.to_string()).await;
        let (_, said) = printed(&site, &format!("{}/theirs:1", site.host()), flag);
        assert_eq!(said.contains("is signed"), is_signed, "{said}");
    }
}

#[test(multi_thread)]
async fn a_statement_about_another_image_is_printed_with_a_warning() {
    const PLAIN: &str = "application/vnd.in-toto+json";
    const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
    for is_other in [true, false] {
        let site = Site::new();
        let (theirs, image) = plain_image(&site).await;
        let own = image.digest.digest().to_owned();
        let digest = if is_other { "0".repeat(64) } else { own };
        let about = |kind: &str| {
            let mut statement = statement(kind, &json!({}));
            statement["subject"] = json!([{"name": "x", "digest": {"sha256": digest}}]);
            statement
        };
        let provenance = about("https://slsa.dev/provenance/v1").to_string();
        let bill = about("https://spdx.dev/Document").to_string();
        let signed = enveloped(&about("https://cyclonedx.org/bom"));
        for (kind, text) in [(PLAIN, provenance), (PLAIN, bill), (ENVELOPE, signed)] {
            attach(&theirs, &image, kind, &text).await;
        }
        let reference = format!("{}/theirs:1", site.host());
        for flag in ["--provenance", "--sbom=spdx", "--sbom=cyclonedx"] {
            let (_, said) = printed(&site, &reference, flag);
            assert_eq!(said.contains("as its subject"), is_other, "{flag}: {said}");
        }
    }
}

#[test(multi_thread)]
async fn what_a_stranger_attached_is_not_read_to_be_compared() {
    let site = Site::new();
    let (theirs, image) = plain_image(&site).await;
    let kind = "application/vnd.in-toto+json";
    let text = format!("[{}0]", "0,".repeat(100_000));
    let content = stored(&theirs, kind, &text).await;
    let forged = format!("GET /v2/theirs/blobs/{}", content.digest);
    let predicate = (
        "in-toto.io/predicate-type".to_owned(),
        "https://slsa.dev/provenance/v1".to_owned(),
    );
    let artifact = Artifact::new(kind, &image, vec![content], BTreeMap::from([predicate]));
    theirs.attach(&artifact.unwrap()).await.unwrap();
    let before = site.requests();
    let mut command = site.push("pause");
    command.args([
        "--host-build", "17763.973", "--name", "theirs", "--tag", "1",
    ]);
    let built = json_of(command.arg("--provenance"));
    assert_eq!(built["images"][0]["digest"], image.digest.to_string());
    assert_eq!(built["images"][0]["documents"][0]["up_to_date"], false);
    let requests = site.requests_since(before);
    assert!(!requests.contains(&forged), "{requests:#?}");
}

#[test(multi_thread)]
async fn what_a_stranger_attached_moves_no_terminal() {
    let site = Site::new();
    let (theirs, image) = plain_image(&site).await;
    let text = "{\"name\": \"\u{9b}2J\u{202e}\"}\n\x1b]0;title\x07";
    attach(&theirs, &image, "application/spdx+json", text).await;

    let host = site.host();
    let arguments = [&*format!("{host}/theirs:1"), "--sbom=spdx"];
    let output = inspect(&site, &arguments);
    assert_eq!(
        output.stdout,
        format!("{text}\n").as_bytes(),
        "a pipe gets every byte"
    );
    let words = arguments.join(" ");
    let line = format!("wincimg image inspect {words} --insecure-registry {host}");
    let (shown, succeeded) = on_terminal(site.folder.path(), 200, &line);
    assert!(succeeded, "{shown}");
    assert!(shown.contains(r"\u{9b}2J\u{202e}"), "{shown:?}");
    assert!(shown.contains(r"\u{1b}]0;title\u{7}"), "{shown:?}");
}

#[test(multi_thread)]
async fn attestations_of_buildx_are_found_in_the_index_once() {
    for is_artifact in [false, true] {
        let (site, attested, bill) = Box::pin(attested_by_buildx(is_artifact)).await;
        let (found, said) = printed(&site, &attested, "--sbom");
        assert_eq!(found, bill);
        assert!(!said.contains("another"), "{said}");
    }
}

#[test(multi_thread)]
async fn what_is_attached_to_the_index_is_found() {
    let site = Site::new();
    let (theirs, image) = plain_image(&site).await;
    let platform = wincimg_oci::document::Platform::windows("10.0.17763.973");
    let index = Index::new(ManifestFormat::Oci, vec![image.with_platform(platform)]);
    let index = Verbatim::new(index).unwrap();
    let media_type = index.media_type();
    let put = theirs.put_manifest("2", media_type, index.bytes().clone());
    put.await.unwrap();
    let kind = "application/vnd.in-toto+json";
    let mut provenance = statement("https://slsa.dev/provenance/v1", &json!({"by": "actions"}));
    provenance["subject"] = json!([{"name": "", "digest": {"sha256": index.digest().digest()}}]);
    let about = index.descriptor(media_type);
    attach(&theirs, &about, kind, &provenance.to_string()).await;
    let image = format!("{}/theirs:2", site.host());
    let (found, said) = printed(&site, &image, "--provenance");
    assert_eq!(found, provenance);
    assert!(!said.contains("another"), "{said}");
}

/// An index with an attestation of buildx, whose newer ones are artifacts too, and the SBOM in it.
async fn attested_by_buildx(is_artifact: bool) -> (Site, String, Value) {
    let site = Site::new();
    let host = site.host();
    let (theirs, image) = plain_image(&site).await;
    let bill = json!({"spdxVersion": "SPDX-2.3", "by": "buildx"});
    let printed = statement("https://spdx.dev/Document", &bill).to_string();
    let mut layer = stored(&theirs, "application/vnd.in-toto+json", &printed).await;
    let kind = (
        "in-toto.io/predicate-type".to_owned(),
        "https://spdx.dev/Document".to_owned(),
    );
    layer.annotations.extend([kind]);
    let config = stored(&theirs, "application/vnd.oci.image.config.v1+json", "{}").await;
    let oci = "application/vnd.oci.image.manifest.v1+json";
    let mut manifest = json!({
        "schemaVersion": 2, "mediaType": oci, "config": config, "layers": [layer],
    });
    if is_artifact {
        manifest["artifactType"] = "application/vnd.docker.attestation.manifest.v1+json".into();
        manifest["subject"] = json!(image);
    }
    let manifest = Bytes::from(manifest.to_string());
    let digest = wincimg_oci::document::sha256(&manifest);
    theirs
        .put_manifest(digest.as_ref(), oci, manifest.clone())
        .await
        .unwrap();
    let mut attestation = Descriptor::new(oci, digest, manifest.len() as u64);
    attestation.annotations.extend([
        (
            "vnd.docker.reference.type".to_owned(),
            "attestation-manifest".to_owned(),
        ),
        (
            "vnd.docker.reference.digest".to_owned(),
            image.digest.to_string(),
        ),
    ]);
    let platform = wincimg_oci::document::Platform::windows("10.0.17763.973");
    let index = Index::new(
        ManifestFormat::Oci,
        vec![image.with_platform(platform), attestation],
    );
    let index = Verbatim::new(index).unwrap();
    theirs
        .put_manifest("2", index.media_type(), index.bytes().clone())
        .await
        .unwrap();
    (site, format!("{host}/theirs:2"), bill)
}
