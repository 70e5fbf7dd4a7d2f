//! Artifacts attached to an image: stored and found again, with the referrers API or the fallback
//! tag.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_demo::DemoRegistry;
use wincimg_oci::document::{Artifact, Descriptor, Digest, sha256};
use wincimg_oci::remote::{Repository, cosign_tags};
use wincimg_oci::store::Source;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault};
use wincimg_testkit::scripted::{ScriptedRequest, answer, scripted};
use wincimg_testkit::{options, push_image, put, repository};

const OURS: &str = "application/vnd.example.facts.v1";
const THEIRS: &str = "application/vnd.example.signature";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

fn image_of(manifest: &Bytes) -> Descriptor {
    let media_type = wincimg_testkit::DOCKER_MANIFEST;
    Descriptor::new(media_type, sha256(manifest), manifest.len() as u64)
}

/// An artifact attached to an image, with its content stored.
async fn made(repository: &Repository, image: &Descriptor, kind: &str, text: &str) -> Artifact {
    let content = Bytes::from(text.to_owned());
    let blob = put(repository, &content).await;
    let blob = Descriptor::new("text/plain", blob.digest.clone(), blob.size);
    let notes = BTreeMap::from([("vnd.example.text".to_owned(), text.to_owned())]);
    Artifact::new(kind, image, vec![blob], notes).unwrap()
}

async fn found(repository: &Repository, image: &Digest, kind: &str) -> Vec<Artifact> {
    let mut artifacts = Vec::new();
    for entry in repository.referrers(image, Some(kind)).await.unwrap() {
        let artifact = repository
            .artifact(&entry, image, Some(kind))
            .await
            .unwrap();
        artifacts.push(artifact.unwrap());
    }
    artifacts
}

async fn attached_and_found(repository: &Repository) -> (Descriptor, Artifact, Artifact) {
    let (manifest, _) = push_image(repository, "1").await;
    let image = image_of(&manifest);
    assert_eq!(found(repository, &image.digest, OURS).await, []);
    let theirs = made(repository, &image, THEIRS, "signed").await;
    repository.attach(&theirs).await.unwrap();
    let ours = made(repository, &image, OURS, "known").await;
    for _ in 0..2 {
        repository.attach(&ours).await.unwrap();
        let found = found(repository, &image.digest, OURS).await;
        assert_eq!(found, std::slice::from_ref(&ours));
    }
    assert_eq!(
        found(repository, &image.digest, THEIRS).await,
        std::slice::from_ref(&theirs)
    );
    (image, ours, theirs)
}

#[test]
async fn a_registry_that_knows_subjects_is_asked() {
    let server = FakeRegistry::start();
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    Box::pin(attached_and_found(&repository)).await;
    assert_eq!(repository.tags().await.unwrap(), ["1"]);
    let asked = server.requests();
    let asks_a_tag = |asked: &String| asked.contains("manifests/sha256-");
    // Only until the registry has shown that it supports the API.
    let asked_a_tag = asked.iter().filter(|it| asks_a_tag(it)).count();
    assert_eq!(asked_a_tag, 1, "{asked:?}");
}

#[test]
async fn elsewhere_a_tag_is_the_list_and_entries_of_others_stay() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let (image, ours, theirs) = Box::pin(attached_and_found(&repository)).await;
    let tag = image.digest.to_string().replace(':', "-");
    let list = repository.get_manifest(&tag).await.unwrap();
    assert_eq!(list.media_type, INDEX);
    let list: Value = serde_json::from_slice(&list.bytes).unwrap();
    let entry = |artifact: &Artifact, text: &str| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": artifact.document().digest().to_string(),
            "size": artifact.document().bytes().len(),
            "annotations": {"vnd.example.text": text},
            "artifactType": artifact.artifact_type(),
        })
    };
    let expected = json!([entry(&theirs, "signed"), entry(&ours, "known")]);
    assert_eq!(list["manifests"], expected);
}

#[test]
async fn what_two_attach_at_once_is_listed_both() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let (manifest, _) = push_image(&repository, "1").await;
    let image = image_of(&manifest);
    let names: Vec<String> = (0..6).map(|number| format!("fact {number}")).collect();
    let tasks = names.iter().map(|name| async {
        let artifact = made(&repository, &image, OURS, name).await;
        repository.attach(&artifact).await.unwrap();
    });
    futures_util::future::join_all(tasks).await;
    let listed = found(&repository, &image.digest, OURS).await;
    let mut texts: Vec<&str> = listed
        .iter()
        .map(|artifact| artifact.annotations()["vnd.example.text"].as_str())
        .collect();
    texts.sort_unstable();
    assert_eq!(texts, names);
}

#[test]
async fn a_list_that_is_overwritten_is_written_again() {
    let docker = DockerRegistry::plain();
    let host = docker.host();
    let plain = repository(options(&host), &format!("{host}/a"));
    let (manifest, _) = push_image(&plain, "1").await;
    let image = image_of(&manifest);
    let theirs = made(&plain, &image, THEIRS, "signed").await;
    // Another writer read the list before our update, and overwrote it.
    let writes = Arc::new(AtomicUsize::new(0));
    let stale = json!({
        "schemaVersion": 2, "mediaType": INDEX, "manifests": [theirs.entry()],
    });
    plain.attach(&theirs).await.unwrap();
    let tag = image.digest.to_string().replace(':', "-");
    let ours = made(&plain, &image, OURS, "known").await;
    let overwrite = async {
        for _ in 0..200 {
            let list = plain.get_manifest(&tag).await.unwrap();
            let text = String::from_utf8_lossy(&list.bytes).into_owned();
            if text.contains(OURS) {
                let bytes = Bytes::from(stale.to_string());
                plain.put_manifest(&tag, INDEX, bytes).await.unwrap();
                writes.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    };
    let (attached, ()) = tokio::join!(plain.attach(&ours), overwrite);
    attached.unwrap();
    assert_eq!(writes.load(Ordering::Relaxed), 1);
    assert_eq!(found(&plain, &image.digest, OURS).await, [ours]);
    assert_eq!(found(&plain, &image.digest, THEIRS).await, [theirs]);
}

#[test]
async fn what_has_the_lists_tag_and_is_none_is_left_alone() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let (manifest, _) = push_image(&repository, "1").await;
    let image = image_of(&manifest);
    let tag = image.digest.to_string().replace(':', "-");
    push_image(&repository, &tag).await;
    let ours = made(&repository, &image, OURS, "known").await;
    let error = repository.attach(&ours).await.unwrap_err().to_string();
    assert_contains!(error, &tag);
    assert_eq!(found(&repository, &image.digest, OURS).await, []);
    let kept = repository.get_manifest(&tag).await.unwrap();
    assert_eq!(kept.digest, image.digest);
}

#[test]
async fn what_the_registry_deleted_is_not_attached_until_it_is_again() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let (image, ours, theirs) = Box::pin(attached_and_found(&repository)).await;
    // A registry that cleans up deletes what has no tag, but not the list.
    for artifact in [&ours, &theirs] {
        let digest = artifact.document().digest().as_ref();
        repository.delete_manifest(digest).await.unwrap();
    }
    let found = repository.artifacts(&image.digest, None).await.unwrap();
    assert_eq!(found, []);
    // The registry takes no list that names what is gone.
    let more = made(&repository, &image, OURS, "more").await;
    for artifact in [&more, &ours] {
        repository.attach(artifact).await.unwrap();
    }
    let found = repository.artifacts(&image.digest, None).await.unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&more) && found.contains(&ours), "{found:?}");
}

#[test]
async fn all_artifacts_are_found_however_many() {
    let server = DemoRegistry::start().unwrap();
    let pushed = repository(options(&server.host()), &format!("{}/a", server.host()));
    let (manifest, _) = push_image(&pushed, "1").await;
    let image = image_of(&manifest);
    server.with(|stored| {
        for number in 0..250 {
            let notes = BTreeMap::from([("number".to_owned(), number.to_string())]);
            let artifact = Artifact::new(OURS, &image, Vec::new(), notes).unwrap();
            let document = artifact.document();
            let (digest, media_type) = (document.digest().as_ref(), document.media_type());
            stored.add_manifest("a", digest, media_type, document.bytes().clone());
        }
    });
    // One after the other, all of them would take ten seconds.
    let pause = Duration::from_millis(40);
    let slow = FaultProxy::start(server.host(), move |passed| {
        if passed.path.contains("/manifests/sha256:") {
            return ProxyFault::Drip(1 << 20, pause);
        }
        ProxyFault::Pass
    })
    .await;
    let repository = repository(options(&slow.host()), &format!("{}/a", slow.host()));
    let listed = repository.referrers(&image.digest, None).await.unwrap();
    let started = Instant::now();
    let found = repository.artifacts(&image.digest, None).await.unwrap();
    assert!(started.elapsed() < pause * 200);
    let digests = found.iter().map(|artifact| artifact.document().digest());
    assert!(digests.eq(listed.iter().map(|entry| &entry.digest)));
    assert_eq!(found.len(), 250);
}

fn entry(number: usize, kind: &str) -> Value {
    json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": sha256(number.to_string().as_bytes()).to_string(),
        "size": 1,
        "artifactType": kind,
    })
}

fn listed(entries: &[Value]) -> Response {
    let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let mut response = answer(200, &[], list.to_string());
    response
        .headers_mut()
        .insert("content-type", INDEX.parse().unwrap());
    response
}

fn with_link(mut response: Response, link: &str) -> Response {
    response.headers_mut().insert("link", link.parse().unwrap());
    response
}

/// A registry with these responses for referrers, by query.
async fn listed_by(
    answers: impl Fn(&ScriptedRequest) -> Response + Clone + Send + Sync + 'static,
) -> (Vec<Descriptor>, Vec<String>) {
    let (log, server) = scripted(move |asked| match asked.path.as_str() {
        "/v2/" => answer(200, &[], "{}"),
        _ => answers(asked),
    });
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let image = sha256(b"image");
    let found = repository.referrers(&image, Some(OURS)).await.unwrap();
    (found, log.lines())
}

#[test]
async fn a_long_list_comes_in_pages_and_a_registry_need_not_filter() {
    let (found, asked) = listed_by(|asked| {
        let next = r#"</v2/a/referrers/x?page=2>; rel="next""#;
        match asked.field("page") {
            None => with_link(listed(&[entry(1, OURS), entry(2, THEIRS)]), next),
            Some(_) => listed(&[entry(3, OURS)]),
        }
    })
    .await;
    assert_eq!(found.len(), 2);
    assert_eq!(asked.len(), 3, "{asked:?}");
}

#[test]
async fn pages_without_end_are_left_after_some() {
    let pages = Arc::new(AtomicUsize::new(0));
    let (found, asked) = listed_by(move |_| {
        let page = pages.fetch_add(1, Ordering::Relaxed);
        let next = format!(r#"</v2/a/referrers/x?page={page}>; rel="next""#);
        with_link(listed(&[entry(1, OURS)]), &next)
    })
    .await;
    assert_eq!(found.len(), 64);
    assert!(asked.len() <= 65, "{}", asked.len());
}

#[test]
async fn who_does_not_know_the_question_is_asked_for_the_tag() {
    let page = "<html>Welcome</html>";
    for (status, body) in [(404, ""), (400, ""), (405, ""), (501, ""), (200, page)] {
        let (found, _) = listed_by(move |asked| {
            if asked.path.contains("/manifests/sha256-") {
                return listed(&[entry(1, OURS)]);
            }
            answer(status, &[], body)
        })
        .await;
        assert_eq!(found.len(), 1, "{status}");
    }
}

#[test]
async fn a_list_is_known_by_what_it_states() {
    let (found, _) = listed_by(|asked| {
        if asked.path.contains("/manifests/sha256-") {
            let list = json!({
                "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(1, OURS)],
            });
            return answer(200, &[], list.to_string());
        }
        answer(404, &[], "")
    })
    .await;
    assert_eq!(found.len(), 1);
}

/// Artifactory answers 403 for a tag that does not exist.
#[test]
async fn a_refused_tag_that_is_derived_from_a_digest_does_not_exist() {
    let (_, server) = scripted(|asked| match asked.path.as_str() {
        "/v2/" => answer(200, &[], "{}"),
        path if path.contains("/referrers/") => answer(404, &[], ""),
        _ => answer(403, &[], ""),
    });
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let image = sha256(b"image");
    let found = repository.referrers(&image, None).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let source = Source::Registry(repository.clone());
    for (_, tag) in cosign_tags(&image) {
        assert_eq!(source.head(&tag).await.unwrap(), None);
        // One that the registry lists exists.
        repository.head_manifest(&tag).await.unwrap_err();
    }
    source.head("1").await.unwrap_err();
}

#[test]
async fn what_is_listed_is_believed_only_when_it_names_the_image_itself() {
    let server = FakeRegistry::start();
    let repository = repository(options(&server.host()), &format!("{}/a", server.host()));
    let (manifest, _) = push_image(&repository, "1").await;
    let image = image_of(&manifest);
    let other = Descriptor::new(&*image.media_type, sha256(b"other"), 5);
    let about_other = made(&repository, &other, OURS, "known").await;
    repository.attach(&about_other).await.unwrap();
    let entry = about_other.entry();
    let read = repository.artifact(&entry, &image.digest, Some(OURS)).await;
    assert_eq!(read.unwrap(), None);
    let read = repository
        .artifact(&entry, &other.digest, Some(THEIRS))
        .await;
    assert_eq!(read.unwrap(), None);
}
