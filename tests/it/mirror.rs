//! Mirroring stand-in Windows base images between real registries.

use std::collections::HashSet;
use std::fmt::Display;
use std::process::Command;
use std::slice;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::{Progress, Silent, Task};
use wincimg_oci::archive::ArchiveWriter;
use wincimg_oci::copy::{BlobAction, Copier, CopyOptions, CopyPlan, ReferrerOutcome};
use wincimg_oci::document::{
    Artifact, Descriptor, Document, Index, ManifestFormat, Verbatim, media_type,
};
use wincimg_oci::mirror::{MirrorOptions, mirror};
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::parse_reference;
use wincimg_oci::store::{Sink, Source};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::mirror_fixture::{
    FOREIGN, MirrorFixture, NEW, OLD, client, dry_run, foreign_base, index_of, mirror_to, only,
    whole,
};
use wincimg_testkit::windows_base::{StandIn, put_index};

use crate::site::each;

#[test]
async fn an_index_keeps_its_digest_and_its_os_versions() {
    let world = MirrorFixture::new().await;
    for format in [ManifestFormat::Docker, ManifestFormat::Oci] {
        let name = format!("windows/{}:1809", format!("{format:?}").to_lowercase());
        let images = [OLD, NEW].map(|version| StandIn::new(format, version, &[(9_000, 1)]));
        let index = put_index(format, &images, &world.sink(&name), Some("1809")).await;
        let report = world.mirror(&[world.image(&name)], &whole()).await;
        assert!(report.images[0].error.is_none(), "{report:?}");
        let target = format!("{}/mcr/{name}", world.proxy.host());
        assert_eq!(report.images[0].target, target);
        let mirrored = world.mirrored(&format!("mcr/{name}")).await;
        assert_eq!(mirrored.bytes(), index.bytes());
    }
}

#[test]
async fn a_second_run_transfers_nothing() {
    let world = MirrorFixture::new().await;
    let (base, _served) = foreign_base(OLD, 1);
    world.publish("windows/servercore:1809", &base).await;
    let images = [world.image("windows/servercore:1809")];
    let first = world.mirror(&images, &whole()).await;
    assert_eq!(first.totals.failed_images, 0, "{first:?}");
    assert_eq!(first.totals.copied_blobs, 3);
    let before = world.changes().len();
    let second = world.mirror(&images, &whole()).await;
    assert_eq!(world.changes().len(), before, "{:?}", world.changes());
    assert!(second.images[0].copied.as_ref().unwrap().up_to_date);
    assert_eq!(second.totals.copied_bytes, 0);
    assert_eq!(second.totals.present_blobs, 3);
}

#[test]
async fn foreign_layers_are_fetched_from_their_urls_and_made_ordinary() {
    let world = MirrorFixture::new().await;
    let (old, _old_served) = foreign_base(OLD, 1);
    let (new, _new_served) = foreign_base(NEW, 5);
    let sink = world.sink("windows/servercore:1809");
    for base in [&old, &new] {
        base.put_blobs(&sink, |blob| blob.media_type != FOREIGN)
            .await;
        sink.put_document(&base.document()).await.unwrap();
    }
    let mut entries = vec![old.image.index_entry(), new.image.index_entry()];
    entries[0].urls = vec!["http://internet.invalid/manifest".to_owned()];
    let index = Verbatim::new(Index::new(ManifestFormat::Docker, entries)).unwrap();
    let index = Document::Index(index);
    sink.publish(&index, Some("1809")).await.unwrap();

    let report = world
        .mirror(&[world.image("windows/servercore:1809")], &whole())
        .await;
    let copied = report.images[0].copied.as_ref().unwrap();
    let downloads = copied
        .blobs
        .iter()
        .filter(|blob| matches!(blob.action, BlobAction::Download { .. }));
    assert_eq!(downloads.count(), 2);
    assert_eq!(copied.source_digest, index.digest().to_string());

    let mirrored = world.mirrored("mcr/windows/servercore:1809").await;
    assert_eq!(copied.digest, mirrored.digest().to_string());
    let mirrored = index_of(mirrored);
    let expected = [(old, OLD), (new, NEW)];
    for (entry, (base, os_version)) in mirrored.manifests.iter().zip(expected) {
        assert!(entry.urls.is_empty());
        let platform = entry.platform.as_ref().unwrap();
        assert_eq!(platform.os_version.as_deref(), Some(os_version));
        let name = format!("mcr/windows/servercore@{}", entry.digest);
        let Document::Manifest(manifest) = world.mirrored(&name).await else {
            panic!("a manifest became something else");
        };
        assert_eq!(manifest.config, base.image.manifest().config);
        for (layer, (original, bytes)) in manifest.layers.iter().zip(&base.layers) {
            assert_eq!(layer.media_type, media_type::DOCKER_LAYER_GZIP);
            assert_eq!(layer.digest, original.digest);
            assert!(layer.urls.is_empty());
            let stored = std::fs::read(world.own.blob_file(layer.digest.as_ref())).unwrap();
            assert_eq!(&stored, bytes);
        }
    }
}

#[test]
async fn foreign_layers_that_stay_foreign_go_to_disks_and_not_to_registries() {
    let world = MirrorFixture::new().await;
    let (base, _served) = foreign_base(OLD, 1);
    let name = "windows/servercore:1809";
    let sink = world.sink(name);
    base.put_blobs(&sink, |blob| blob.media_type != FOREIGN)
        .await;
    sink.publish(&base.document(), Some("1809")).await.unwrap();
    let Sink::Registry(repository) = sink else {
        panic!("a registry became something else");
    };
    let source = Source::Registry(repository);
    let options = CopyOptions::default();
    let plan = CopyPlan::new(&source, Some("1809"), &options)
        .await
        .unwrap();
    let copier = Copier::new(world.registry.clone(), Arc::new(Silent), 2);

    let reference = format!("{}/{name}", world.own.host());
    let registry = client(&[&world.own.host()]);
    let own = registry.repository(&parse_reference(&reference).unwrap());
    let target = Sink::Registry(own);
    let report = copier
        .copy(&plan, &source, &target, Some("1809"))
        .await
        .unwrap();
    assert_eq!(report.digest, base.image.digest().to_string());
    assert_eq!(report.blobs[0].action, BlobAction::Skip);
    let foreign = base.layers[0].0.digest.as_ref();
    assert!(!world.own.blob_file(foreign).exists());

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("base.tar");
    let target = Sink::Archive(ArchiveWriter::create(&file).unwrap());
    let report = copier
        .copy(&plan, &source, &target, Some("base:1"))
        .await
        .unwrap();
    target.finish().await.unwrap();
    assert!(matches!(
        report.blobs[0].action,
        BlobAction::Download { .. }
    ));
    let mut tar = tar::Archive::new(std::fs::File::open(&file).unwrap());
    let saved = tar
        .entries()
        .unwrap()
        .map(Result::unwrap)
        .find(|entry| entry.path().unwrap().ends_with("manifest.json"))
        .unwrap();
    let saved: Value = serde_json::from_reader(saved).unwrap();
    let diff_id = base.image.config().rootfs.diff_ids[0].as_ref();
    assert_eq!(saved[0]["LayerSources"][diff_id]["mediaType"], FOREIGN);
}

#[test]
async fn skopeo_pulls_what_was_mirrored() {
    let skopeo = wincimg_testkit::component("skopeo");
    let world = MirrorFixture::new().await;
    let (base, _served) = foreign_base(OLD, 1);
    world.publish("windows/servercore:1809", &base).await;
    world
        .mirror(&[world.image("windows/servercore:1809")], &whole())
        .await;
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(skopeo)
        .args(["--insecure-policy", "--override-os", "windows", "copy"])
        .arg("--src-tls-verify=false")
        .arg(format!(
            "docker://{}/mcr/windows/servercore:1809",
            world.own.host()
        ))
        .arg(format!("dir:{}", dir.path().display()))
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    for (blob, bytes) in &base.layers {
        let pulled = std::fs::read(dir.path().join(blob.digest.digest())).unwrap();
        assert_eq!(&pulled, bytes);
    }
}

#[test]
async fn what_two_images_share_is_sent_once_and_mounted_for_the_other() {
    let world = MirrorFixture::new().await;
    // The same base under two different layers in two repositories, mirrored concurrently.
    let names = ["app/one:1", "app/two:1", "app/one:2"];
    let mut images = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let layers = [(300_000, 1), (2_000, 10 + number as u64)];
        let image = StandIn::new(ManifestFormat::Docker, OLD, &layers);
        let tag = name.split_once(':').unwrap().1;
        image.put(&world.sink(name), Some(tag)).await;
        images.push(image);
    }
    let references = names.map(|name| world.image(name));
    let report = world.mirror(&references, &whole()).await;
    assert_eq!(report.totals.failed_images, 0, "{report:?}");

    let shared = images[0].layers[0].0.digest.to_string();
    let uploads: Vec<_> = world
        .changes()
        .into_iter()
        .filter(|passed| passed.method == "PUT" && passed.path.contains("digest="))
        .collect();
    let of_shared = uploads
        .iter()
        .filter(|passed| passed.path.contains(&shared.replace(':', "%3A")))
        .count();
    assert_eq!(of_shared, 1, "{uploads:?}");
    let actions: Vec<_> = report
        .images
        .iter()
        .flat_map(|image| &image.copied.as_ref().unwrap().blobs)
        .filter(|blob| blob.digest == shared)
        .map(|blob| &blob.action)
        .collect();
    let count = |wanted: fn(&BlobAction) -> bool| actions.iter().filter(|a| wanted(a)).count();
    assert_eq!(count(|action| matches!(action, BlobAction::Copy)), 1);
    assert_eq!(
        count(|action| matches!(action, BlobAction::Mount { .. })),
        1
    );
    assert_eq!(count(|action| matches!(action, BlobAction::Present)), 1);
}

#[test]
async fn within_one_registry_everything_is_mounted() {
    let docker = DockerRegistry::plain();
    let registry = client(&[&docker.host()]);
    let image = parse_reference(&format!("{}/app/one:1", docker.host())).unwrap();
    let base = StandIn::new(ManifestFormat::Docker, OLD, &[(5_000, 1), (6_000, 2)]);
    base.put(&Sink::Registry(registry.repository(&image)), Some("1"))
        .await;
    let target = format!("{}/copy", docker.host());
    let report = mirror_to(&registry, &[image], &target, &whole()).await;
    assert_eq!(report.totals.mounted_blobs, 3, "{report:?}");
    assert_eq!(report.totals.copied_blobs, 0);
}

#[test]
async fn a_wrong_size_is_found_of_layers_that_the_target_has() {
    let (docker, other) = (DockerRegistry::plain(), DockerRegistry::plain());
    let (host, target) = (docker.host(), format!("{}/copy", other.host()));
    let registry = client(&[&host, &other.host()]);
    let image = parse_reference(&format!("{host}/app/one:1")).unwrap();
    let sink = Sink::Registry(registry.repository(&image));
    let base = StandIn::new(ManifestFormat::Docker, OLD, &[(5_000, 1)]);
    base.put_blobs(&sink, |_| true).await;
    let wrong = base.image.manifest().edit(|it| it.layers[0].size = 7);
    let wrong = Document::Manifest(Box::new(wrong.unwrap()));
    sink.publish(&wrong, Some("1")).await.unwrap();
    let there = parse_reference(&format!("{target}/app/one:1")).unwrap();
    let there = Sink::Registry(registry.repository(&there));
    base.put_blobs(&there, |_| true).await;
    let report = mirror_to(&registry, slice::from_ref(&image), &target, &whole()).await;
    let json = serde_json::to_value(&report).unwrap();
    let error = json["images"][0]["error"].as_str().unwrap();
    assert_contains!(error, "wrong length");
}

#[test]
async fn a_large_layer_that_any_repository_of_the_target_has_is_mounted() {
    let world = MirrorFixture::new().await;
    let base = StandIn::new(ManifestFormat::Docker, OLD, &[(5_000_000, 1), (4_000, 2)]);
    let reference = parse_reference(&format!("{}/team/app:1", world.proxy.host())).unwrap();
    let there = Sink::Registry(world.registry.repository(&reference));
    base.put(&there, Some("1")).await;
    base.put(&world.sink("windows/servercore:1809"), Some("1809"))
        .await;
    let images = [world.image("windows/servercore:1809")];
    for options in [dry_run(), whole()] {
        let report = world.mirror(&images, &options).await;
        let blobs = &report.images[0].copied.as_ref().unwrap().blobs;
        let from = "team/app".to_owned();
        assert_eq!(blobs[0].action, BlobAction::Mount { from });
        assert_eq!(
            blobs[1].action,
            BlobAction::Copy,
            "too small to be looked for"
        );
    }
}

#[test]
async fn a_dry_run_says_what_would_move_and_changes_nothing() {
    let world = MirrorFixture::new().await;
    let (base, served) = foreign_base(OLD, 1);
    world.publish("windows/servercore:1809", &base).await;
    let mut app = base.clone();
    app.push(media_type::DOCKER_LAYER_GZIP, 100, 77, Vec::new());
    world.publish("app:1", &app).await;

    let images = [world.image("windows/servercore:1809"), world.image("app:1")];
    let planned = world.mirror(&images, &dry_run()).await;
    assert!(world.changes().is_empty(), "{:?}", world.changes());
    let json = serde_json::to_value(&planned).unwrap();
    assert_eq!(json["dry_run"], true);
    let first = &json["images"][0]["blobs"][0];
    assert_eq!(first["action"], "download");
    assert_eq!(first["from"], served.url("layer"));
    assert_eq!(first["size"], base.layers[0].0.size);
    assert_eq!(
        each(&json["images"][1]["blobs"], "action"),
        ["mount", "mount", "copy", "copy"]
    );

    let done = world.mirror(&images, &whole()).await;
    assert_eq!(done.totals, planned.totals);
}

/// An image for each of two builds, with layers of their own.
fn old_and_new() -> [StandIn; 2] {
    [OLD, NEW].map(|version| {
        let layer = (4_000, version.len() as u64);
        StandIn::new(ManifestFormat::Oci, version, &[layer])
    })
}

#[test]
async fn chosen_platforms_make_a_smaller_index() {
    let world = MirrorFixture::new().await;
    let images = old_and_new();
    let name = "windows/nanoserver:multi";
    put_index(
        ManifestFormat::Oci,
        &images,
        &world.sink(name),
        Some("multi"),
    )
    .await;
    let report = world
        .mirror(&[world.image(name)], &only(&["windows/amd64:20348"]))
        .await;
    assert_eq!(report.totals.failed_images, 0, "{report:?}");
    let index = index_of(world.mirrored(&format!("mcr/{name}")).await);
    assert_eq!(index.manifests.len(), 1);
    assert_eq!(&index.manifests[0].digest, images[1].image.digest());
    let platform = index.manifests[0].platform.as_ref().unwrap();
    assert_eq!(platform.os_version.as_deref(), Some(NEW));

    let report = world
        .mirror(&[world.image(name)], &only(&["linux/arm64"]))
        .await;
    let error = report.images[0].error.as_ref().unwrap();
    assert_eq!(error.diagnosis().code, "image/no-platform", "{error}");
    let text = error.to_string();
    assert_contains!(text, "linux/arm64", "windows/amd64:10.0.17763.973");

    let single = "windows/nanoserver:single";
    images[0].put(&world.sink(single), Some("single")).await;
    for (platform, failures) in [("windows/amd64:17763.973", 0), ("windows/amd64:20348", 1)] {
        let report = world
            .mirror(&[world.image(single)], &only(&[platform]))
            .await;
        assert_eq!(report.totals.failed_images, failures, "{platform}");
    }
}

#[test]
async fn an_image_of_an_index_that_the_registry_lacks_is_named() {
    let world = MirrorFixture::new().await;
    let images = old_and_new();
    let sink = world.sink("app:1");
    for image in &images {
        image.put(&sink, None).await;
    }
    let mut entries: Vec<_> = images.iter().map(|it| it.image.index_entry()).collect();
    // Only the configuration of the second one states its version.
    entries[1].platform.as_mut().unwrap().os_version = None;
    let index = Verbatim::new(Index::new(ManifestFormat::Oci, entries)).unwrap();
    sink.publish(&Document::Index(index), Some("1"))
        .await
        .unwrap();
    let gone = images[1].image.digest().to_string();
    let name = [world.image("app:1")];
    let repository = world.registry.repository(&name[0]);
    repository.delete_manifest(&gone).await.unwrap();

    let report = world.mirror(&name, &whole()).await;
    let error = report.images[0].error.as_ref().unwrap();
    assert_contains!(error, &*gone, "for windows/amd64,");
    let diagnosis = error.diagnosis();
    assert_eq!(diagnosis.code, "registry/not-found");
    let hint = diagnosis.hint.unwrap();
    let way = format!("copy those with --platform windows/amd64:{OLD}");
    assert!(hint.ends_with(&way), "{hint}");
    let report = world.mirror(&name, &only(&["windows/amd64:17763"])).await;
    assert_eq!(report.totals.failed_images, 0, "{report:?}");
}

#[test]
async fn attestations_go_with_the_image_that_they_are_about() {
    let world = MirrorFixture::new().await;
    let images = old_and_new();
    let about = StandIn::new(ManifestFormat::Oci, "", &[(100, 50)]);
    let sink = world.sink("app:1");
    for image in images.iter().chain([&about]) {
        image.put_blobs(&sink, |_| true).await;
        sink.put_document(&image.document()).await.unwrap();
    }
    let mut entries: Vec<_> = images
        .iter()
        .map(|image| image.image.index_entry())
        .collect();
    entries.push(attestation(&about, &images[0]));
    let index = Verbatim::new(Index::new(ManifestFormat::Oci, entries)).unwrap();
    sink.publish(&Document::Index(index), Some("1"))
        .await
        .unwrap();

    for (version, left) in [("17763", 2), ("20348", 1)] {
        let platform = format!("windows/amd64:{version}");
        let report = world
            .mirror(&[world.image("app:1")], &only(&[&platform]))
            .await;
        assert_eq!(report.totals.failed_images, 0, "{report:?}");
        let index = index_of(world.mirrored("mcr/app:1").await);
        assert_eq!(index.manifests.len(), left, "{version}");
    }
}

/// The entry of buildx's attestation of an image.
fn attestation(attestation: &StandIn, image: &StandIn) -> Descriptor {
    let mut entry = attestation.image.index_entry();
    entry.platform =
        serde_json::from_value(json!({"architecture": "unknown", "os": "unknown"})).unwrap();
    entry.annotations.insert(
        "vnd.docker.reference.digest".to_owned(),
        image.image.digest().to_string(),
    );
    entry
}

#[test]
async fn attestations_of_a_changed_image_stay_behind() {
    let world = MirrorFixture::new().await;
    let (base, _served) = foreign_base(OLD, 1);
    let about = StandIn::new(ManifestFormat::Oci, "", &[(100, 50)]);
    let sink = world.sink("app:1");
    for image in [&base, &about] {
        image
            .put_blobs(&sink, |blob| blob.media_type != FOREIGN)
            .await;
        sink.put_document(&image.document()).await.unwrap();
    }
    let attestation = attestation(&about, &base);
    let entries = vec![base.image.index_entry(), attestation.clone()];
    let index = Verbatim::new(Index::new(ManifestFormat::Oci, entries)).unwrap();
    sink.publish(&Document::Index(index), Some("1"))
        .await
        .unwrap();

    let report = world.mirror(&[world.image("app:1")], &whole()).await;
    let [left] = report.images[0].beside.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(left.outcome, ReferrerOutcome::Left);
    assert_eq!(left.about, base.image.digest().to_string());
    assert_eq!(left.digest, Some(attestation.digest.to_string()));
    let index = index_of(world.mirrored("mcr/app:1").await);
    let [image] = index.manifests.as_slice() else {
        panic!("{index:?}");
    };
    assert_ne!(&image.digest, base.image.digest());
}

#[test]
async fn an_attached_index_is_copied_with_what_it_lists() {
    let world = MirrorFixture::new().await;
    let image = StandIn::new(ManifestFormat::Oci, OLD, &[(100, 1)]);
    world.publish("app:1", &image).await;
    let part = StandIn::new(ManifestFormat::Oci, "", &[(100, 2)]);
    let sink = world.sink("app:1");
    part.put_blobs(&sink, |_| true).await;
    sink.put_document(&part.document()).await.unwrap();
    let mut index = Index::new(ManifestFormat::Oci, vec![part.document().descriptor()]);
    let kind = "application/vnd.example.list";
    index.other.insert("artifactType".to_owned(), kind.into());
    let subject = json!(image.document().descriptor());
    index.other.insert("subject".to_owned(), subject);
    let index = Document::Index(Verbatim::new(index).unwrap());
    let artifact = Artifact::read(index.clone()).unwrap();
    sink.attach(&artifact).await.unwrap();

    for outcome in [ReferrerOutcome::Copied, ReferrerOutcome::Present] {
        let report = world.mirror(&[world.image("app:1")], &whole()).await;
        let [copied] = report.images[0].beside.as_slice() else {
            panic!("{report:?}");
        };
        assert_eq!((&*copied.kind, copied.outcome), (kind, outcome));
    }
    for document in [&index, &part.document()] {
        let name = format!("mcr/app@{}", document.digest());
        assert_eq!(world.mirrored(&name).await.bytes(), document.bytes());
    }
}

#[test]
async fn an_image_without_tag_is_published_by_its_digest() {
    let world = MirrorFixture::new().await;
    let (base, _served) = foreign_base(OLD, 1);
    let sink = world.sink("app:1");
    base.put_blobs(&sink, |blob| blob.media_type != FOREIGN)
        .await;
    sink.publish(&base.document(), None).await.unwrap();
    let image = world.image(&format!("app@{}", base.image.digest()));
    let report = world.mirror(&[image], &whole()).await;
    let copied = report.images[0].copied.as_ref().unwrap();
    assert_ne!(copied.digest, copied.source_digest);
    assert!(
        report.images[0]
            .target
            .ends_with(&format!("@{}", copied.digest))
    );
    world.mirrored(&format!("mcr/app@{}", copied.digest)).await;
}

/// Records the labels of all tasks and the maximum number open at once.
#[derive(Default)]
struct Watch {
    labels: Mutex<HashSet<String>>,
    open: Arc<Mutex<(usize, usize)>>,
}

struct WatchTask(Arc<Mutex<(usize, usize)>>);

impl Progress for Watch {
    fn task(&self, label: &str, total: Option<u64>) -> Arc<dyn Task> {
        assert!(total.is_some());
        self.labels.lock().unwrap().insert(label.to_owned());
        let mut open = self.open.lock().unwrap();
        open.0 += 1;
        open.1 = open.1.max(open.0);
        Arc::new(WatchTask(self.open.clone()))
    }

    fn note(&self, _message: &dyn Display) {}

    fn warn(&self, _message: &dyn Display) {}
}

impl Task for WatchTask {
    fn advance(&self, _bytes: u64) {}

    fn set_position(&self, _bytes: u64) {}

    fn done(&self, outcome: &str) {
        assert_eq!(outcome, "copied");
    }
}

impl Drop for WatchTask {
    fn drop(&mut self) {
        self.0.lock().unwrap().0 -= 1;
    }
}

#[test]
async fn no_more_blobs_are_on_their_way_than_allowed_and_each_has_a_line() {
    let world = MirrorFixture::new().await;
    let layers: Vec<(usize, u64)> = (0..10).map(|seed| (20_000, seed)).collect();
    let image = StandIn::new(ManifestFormat::Docker, OLD, &layers);
    image.put(&world.sink("app:1"), Some("1")).await;
    let options = MirrorOptions {
        jobs: 3,
        ..MirrorOptions::default()
    };
    let watch = Arc::new(Watch::default());
    let target: RegistryPrefix = world.proxy.host().parse().unwrap();
    let images = [world.image("app:1").into()];
    let report = tokio::spawn({
        let (registry, watch) = (world.registry.clone(), watch.clone());
        async move { mirror(&registry, &images, &target, &options, None, watch).await }
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!(report.totals.copied_blobs, 11);
    assert_eq!(watch.labels.lock().unwrap().len(), 11);
    let most = watch.open.lock().unwrap().1;
    assert!((2..=3).contains(&most), "{most} at once");
    let json: Value = serde_json::to_value(&report).unwrap();
    assert_eq!(json["totals"]["copied_blobs"], 11);
}
