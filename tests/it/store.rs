//! Layouts and registries as sources and sinks, checked with skopeo.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::{Progress, Silent};
use wincimg_oci::copy::{BlobAction, Copier, CopyOptions, CopyPlan};
use wincimg_oci::document::{
    Artifact, Document, ImageConfig, Index, ManifestFormat, Platform, Verbatim, sha256,
};
use wincimg_oci::layout::Layout;
use wincimg_oci::remote::{RegistryClient, RegistryOptions};
use wincimg_oci::store::{Location, Sink, Source, StoreError};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::image_locations::{
    OS_VERSION, base, base_at, copy, files, no_registry, path, registry, sink, skopeo, try_copy,
};
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_testkit::windows_base::{StandIn, put_index};
use wincimg_testkit::{child_argument, in_child};

#[test]
fn locations_are_written_as_the_contract_says() {
    for (text, wanted) in [
        ("oci:some/dir", None),
        ("oci:some/dir:1.4", Some("1.4")),
        ("docker-archive:app.tar", None),
        ("docker-archive:app.tar:app:1.4", Some("app:1.4")),
        ("oci:C:\\images\\app:1.4", Some("1.4")),
        ("repo.lan:8888/app:1.4", Some("1.4")),
    ] {
        let location: Location = text.parse().unwrap();
        assert_eq!(location.to_string(), text);
        assert_eq!(location.tag_or_digest(), wanted, "{text}");
    }
    for text in ["oci:", "oci::tag", "docker-archive:", "a b"] {
        assert!(text.parse::<Location>().is_err(), "{text}");
    }
}

#[test]
async fn skopeo_reads_the_layouts_we_write() {
    let program = wincimg_testkit::component("skopeo");
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:1809", path(&dir, "layout"));
    let image = base_at(&location).await;

    let inspected: Value =
        serde_json::from_slice(&skopeo(&program, &["inspect", &location])).unwrap();
    assert_eq!(inspected["Digest"], image.image.digest().to_string());
    assert_eq!(inspected["Os"], "windows");
    let raw = skopeo(&program, &["inspect", "--config", "--raw", &location]);
    assert_eq!(&raw, image.image.config().bytes());
    let out = path(&dir, "out");
    skopeo(&program, &["copy", &location, &format!("dir:{out}")]);
    for (blob, bytes) in &image.layers {
        let copied = fs::read(Path::new(&out).join(blob.digest.digest())).unwrap();
        assert_eq!(&copied, bytes);
    }
}

#[test]
async fn we_read_the_layouts_that_skopeo_writes() {
    let program = wincimg_testkit::component("skopeo");
    let docker = DockerRegistry::plain();
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&docker.host());
    let reference = format!("{}/windows/nanoserver:1809", docker.host());
    let images = [
        base(),
        StandIn::new(ManifestFormat::Oci, "10.0.20348.10", &[(9_000, 3)]),
    ];
    let target = sink(&reference, &registry).await;
    let index = put_index(ManifestFormat::Oci, &images, &target, Some("1809")).await;
    let layout = format!("oci:{}:new", path(&dir, "layout"));
    skopeo(
        &program,
        &[
            "copy",
            "--all",
            "--src-tls-verify=false",
            "--preserve-digests",
            &format!("docker://{reference}"),
            &layout,
        ],
    );

    let source = Source::open(&layout.parse().unwrap(), &registry)
        .await
        .unwrap();
    let read = source.resolve(Some("new")).await.unwrap();
    assert_eq!(read.bytes(), index.bytes());
    let Document::Index(index) = read else {
        panic!("an index became something else");
    };
    let child = source.document(&index.manifests[0]).await.unwrap();
    let Document::Manifest(manifest) = child else {
        panic!("a manifest became something else");
    };
    let image = source.image(*manifest).await.unwrap();
    assert_eq!(image, images[0].image);
}

#[test]
async fn an_image_comes_back_unchanged_from_registry_layout_and_archive() {
    let docker = DockerRegistry::plain();
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&docker.host());
    for format in [ManifestFormat::Docker, ManifestFormat::Oci] {
        let images = [
            StandIn::new(format, OS_VERSION, &[(5_000, 1), (6_000, 2)]),
            StandIn::new(format, "10.0.20348.10", &[(5_000, 1), (7_000, 3)]),
        ];
        let here = |place: &str| format!("{}-{format:?}", path(&dir, place));
        let places = [
            format!("oci:{}:first", here("first")),
            format!(
                "{}/{}/app:one",
                docker.host(),
                format!("{format:?}").to_lowercase()
            ),
            format!("docker-archive:{}:app:two", here("app.tar")),
            format!("oci:{}:last", here("last")),
        ];
        let first = sink(&places[0], &registry).await;
        let index = put_index(format, &images, &first, Some("first")).await;
        for step in places.windows(2) {
            let report = copy(&step[0], &step[1], &registry).await;
            assert_eq!(report.digest, index.digest().to_string(), "{step:?}");
            assert_eq!(report.blobs.len(), 5, "a shared layer is one blob");
        }
        let last = Source::open(&places[3].parse().unwrap(), &registry)
            .await
            .unwrap();
        let read = last.resolve(Some("last")).await.unwrap();
        assert_eq!(read.bytes(), index.bytes());
    }
}

#[test]
async fn an_image_in_dockers_words_is_translated_for_skopeo_where_asked() {
    let program = wincimg_testkit::component("skopeo");
    let dir = tempfile::tempdir().unwrap();
    let from = sink(&format!("oci:{}", path(&dir, "from")), &no_registry()).await;
    let image = StandIn::new(ManifestFormat::Docker, OS_VERSION, &[(5_000, 1)]);
    put_index(
        ManifestFormat::Docker,
        std::slice::from_ref(&image),
        &from,
        Some("a"),
    )
    .await;
    let layout = Layout::open(dir.path().join("from")).await.unwrap();
    let source = Source::Layout(layout);
    let to = format!("oci:{}:b", path(&dir, "to"));
    let target = sink(&to, &no_registry()).await;
    let options = CopyOptions {
        manifest_format: Some(ManifestFormat::Oci),
        ..CopyOptions::default()
    };
    let plan = CopyPlan::new(&source, Some("a"), &options).await.unwrap();
    let copier = Copier::new(no_registry(), Arc::new(Silent), 4);
    copier
        .copy(&plan, &source, &target, Some("b"))
        .await
        .unwrap();

    let raw = skopeo(&program, &["inspect", "--raw", &to]);
    assert_eq!(&raw, plan.root.bytes());
    let config = skopeo(&program, &["inspect", "--config", "--raw", &to]);
    assert_eq!(&config, image.image.config().bytes());
}

#[test]
async fn a_second_copy_into_a_layout_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (
        format!("oci:{}:a", path(&dir, "from")),
        format!("oci:{}:b", path(&dir, "to")),
    );
    base_at(&from).await;
    let first = copy(&from, &to, &no_registry()).await;
    assert!(
        first
            .blobs
            .iter()
            .all(|blob| blob.action == BlobAction::Copy)
    );
    let before = files(&dir.path().join("to"));
    let second = copy(&from, &to, &no_registry()).await;
    assert!(
        second
            .blobs
            .iter()
            .all(|blob| blob.action == BlobAction::Present)
    );
    assert_eq!(files(&dir.path().join("to")), before);
}

#[test]
async fn a_damaged_blob_in_a_layout_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (
        format!("oci:{}:a", path(&dir, "from")),
        format!("oci:{}:b", path(&dir, "to")),
    );
    let image = base_at(&from).await;
    copy(&from, &to, &no_registry()).await;
    let layout = Layout::open(dir.path().join("to")).await.unwrap();
    let (blob, bytes) = &image.layers[0];
    fs::write(layout.blob_path(&blob.digest), vec![0; bytes.len()]).unwrap();
    let report = copy(&from, &to, &no_registry()).await;
    let copied: Vec<_> = report
        .blobs
        .iter()
        .filter(|blob| blob.action == BlobAction::Copy)
        .collect();
    assert_eq!(copied.len(), 1);
    assert_eq!(copied[0].digest, blob.digest.to_string());
    assert_eq!(&fs::read(layout.blob_path(&blob.digest)).unwrap(), bytes);
}

/// What a client says.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Progress for Notes {
    fn note(&self, message: &dyn Display) {
        self.0.lock().unwrap().push(message.to_string());
    }

    fn warn(&self, _message: &dyn Display) {}
}

#[test]
async fn a_wait_for_another_process_that_tags_in_a_layout_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let layout = path(&dir, "layout");
    let notes = Arc::new(Notes::default());
    let client = RegistryClient::new(RegistryOptions::default(), notes.clone());
    let target = sink(&format!("oci:{layout}"), &client.unwrap()).await;
    let held = fs::File::open(Path::new(&layout).join("oci-layout")).unwrap();
    held.lock().unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        drop(held);
    };
    let image = base();
    tokio::join!(image.put(&target, Some("1")), release);
    let expected = format!("waiting for another wincimg that holds {layout}");
    assert_eq!(*notes.0.lock().unwrap(), [expected]);
}

#[test]
async fn an_artifact_that_a_layout_lists_and_lacks_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("layout");
    let notes = Arc::new(Notes::default());
    let layout = Layout::create(&root).await.unwrap();
    let layout = layout.with_progress(notes.clone());
    let digest = sha256(b"gone");
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/spdx+json",
            "digest": digest.to_string(),
            "size": 2,
        }],
    });
    fs::write(root.join("index.json"), index.to_string()).unwrap();
    for image in [b"first", b"other"] {
        let found = layout.artifacts(&sha256(image)).await.unwrap();
        assert!(found.is_empty());
    }
    let notes = notes.0.lock().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with(&format!("ignored {digest}, ")));
}

#[test]
async fn artifacts_are_found_in_a_list_under_the_images_tag_and_without_a_type() {
    let dir = tempfile::tempdir().unwrap();
    let target = sink(&format!("oci:{}", path(&dir, "layout")), &no_registry()).await;
    let image = base();
    image.put(&target, Some("1")).await;
    let layout = Layout::open(dir.path().join("layout")).await.unwrap();
    let about = image.document().descriptor();
    let artifact = |kind| Artifact::new(kind, &about, Vec::new(), BTreeMap::new()).unwrap();
    let (listed, untyped) = (
        artifact("application/listed"),
        artifact("application/untyped"),
    );
    for artifact in [&listed, &untyped] {
        layout.put_document(artifact.document()).await.unwrap();
    }
    let entry = untyped.document().descriptor();
    layout.tag(entry, None).await.unwrap();
    // As regctl writes it.
    let list = Index::new(ManifestFormat::Oci, vec![listed.entry()]);
    let list = Document::Index(Verbatim::new(list).unwrap());
    let tag = about.digest.to_string().replace(':', "-");
    target.publish(&list, Some(&tag)).await.unwrap();
    let found = layout.artifacts(&about.digest).await.unwrap();
    assert_eq!(found, [listed, untyped]);
    let error = layout.resolve(Some("2")).await.unwrap_err().to_string();
    assert!(!error.contains(&tag), "{error}");
}

#[test]
async fn an_index_with_only_some_images_says_how_to_copy_them() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:1", path(&dir, "layout"));
    let target = sink(&location, &no_registry()).await;
    let image = base();
    image.put(&target, None).await;
    let other = StandIn::new(ManifestFormat::Oci, "10.0.20348.10", &[(900, 9)]);
    let mut attestation = other.document().descriptor().with_platform(Platform {
        os: "unknown".to_owned(),
        architecture: "unknown".to_owned(),
        ..Platform::default()
    });
    attestation.digest = sha256(b"attestation");
    let about = (
        "vnd.docker.reference.digest".to_owned(),
        image.image.digest().to_string(),
    );
    attestation.annotations.extend([about]);
    let entries = [&image, &other].map(|image| image.image.index_entry());
    let entries = entries.into_iter().chain([attestation]).collect();
    let index = Verbatim::new(Index::new(ManifestFormat::Oci, entries)).unwrap();
    let index = Document::Index(index);
    target.publish(&index, Some("1")).await.unwrap();

    let (location, registry) = (location.parse().unwrap(), no_registry());
    let source = Source::open(&location, &registry).await.unwrap();
    let all = CopyPlan::new(&source, Some("1"), &CopyOptions::default()).await;
    let hint = all.unwrap_err().diagnosis().hint.unwrap();
    let (_, flag) = hint.split_once("--platform ").unwrap();
    let some = CopyOptions {
        platforms: vec![flag.parse().unwrap()],
        ..CopyOptions::default()
    };
    let plan = CopyPlan::new(&source, Some("1"), &some).await.unwrap();
    let [copied] = plan.children.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(copied.digest(), image.image.digest());
}

#[test]
async fn a_tag_moves_to_the_new_image_and_other_tags_stay() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}", path(&dir, "layout"));
    let target = sink(&location, &no_registry()).await;
    let (old, new) = (
        base(),
        StandIn::new(ManifestFormat::Oci, "10.0.20348.10", &[(900, 9)]),
    );
    old.put(&target, Some("1")).await;
    old.put(&target, Some("old")).await;
    new.put(&target, Some("1")).await;
    let layout = Layout::open(dir.path().join("layout")).await.unwrap();
    let digest = |document: Document| document.digest().clone();
    assert_eq!(
        &digest(layout.resolve(Some("1")).await.unwrap()),
        new.image.digest()
    );
    assert_eq!(
        &digest(layout.resolve(Some("old")).await.unwrap()),
        old.image.digest()
    );
    let by_digest = layout
        .resolve(Some(old.image.digest().as_ref()))
        .await
        .unwrap();
    assert_eq!(&digest(by_digest), old.image.digest());
    let error = layout.resolve(None).await.unwrap_err();
    assert_contains!(error, "select one of 1, old");
    let empty = Layout::create(dir.path().join("empty")).await.unwrap();
    let error = empty.resolve(None).await.unwrap_err();
    let printed = error.to_string();
    assert!(printed.ends_with("/empty has no images"), "{printed}");
    let error = layout.resolve(Some("2")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound(_)), "{error}");
    assert_contains!(error, "has no image \"2\": it has 1, old");
}

#[test]
async fn many_writers_of_one_layout_lose_no_tag() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("layout");
    let image = base();
    let writers = (0..16).map(|number| {
        let (root, image) = (root.clone(), image.clone());
        tokio::spawn(async move {
            let target = Sink::Layout(Layout::create(root).await.unwrap());
            image.put(&target, Some(&format!("tag-{number}"))).await;
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let index = Layout::open(&root).await.unwrap().index().await.unwrap();
    assert_eq!(index.manifests.len(), 16);
}

/// Another process that creates the layout on NFS, and has not closed a file that it removed.
#[test]
async fn a_removed_file_that_is_open_on_nfs_does_not_prevent_a_layout() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".nfs00000000000200080000000b"), "").unwrap();
    Layout::create(dir.path()).await.unwrap();
    assert!(Layout::is_at(dir.path()));
}

#[test]
async fn an_index_that_has_no_name_for_a_moment_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::create(dir.path()).await.unwrap();
    // So does NFS with an open file that is replaced.
    let [index, removed] = ["index.json", ".nfs0b"].map(|name| dir.path().join(name));
    fs::rename(&index, &removed).unwrap();
    let replacing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        fs::rename(removed, index).unwrap();
    });
    assert!(layout.index().await.unwrap().manifests.is_empty());
    replacing.join().unwrap();
}

#[test]
async fn a_directory_with_other_things_in_it_is_no_layout() {
    let dir = tempfile::tempdir().unwrap();
    let reason = |error: StoreError| {
        let error = error.to_string();
        let (_, reason) = error.split_once(" is not an OCI layout: ").unwrap();
        reason.to_owned()
    };
    let open = reason(Layout::open(dir.path()).await.unwrap_err());
    assert_contains!(open, "oci-layout");
    let nothing = Layout::open(dir.path().join("none")).await.unwrap_err();
    let nothing = reason(nothing);
    let file = tempfile::NamedTempFile::new().unwrap();
    let a_file = Layout::open(file.path()).await.unwrap_err();
    assert!(a_file.diagnosis().hint.unwrap().contains("docker-archive:"));
    let a_file = reason(Layout::open(file.path()).await.unwrap_err());
    assert!(open != nothing && nothing != a_file, "{nothing}: {a_file}");
    fs::write(dir.path().join("thesis.txt"), "important").unwrap();
    let error = Layout::create(dir.path()).await.unwrap_err();
    assert_contains!(error, "thesis.txt");
    assert_eq!(files(dir.path()).len(), 1);
    fs::remove_file(dir.path().join("thesis.txt")).unwrap();
    fs::write(
        dir.path().join("oci-layout"),
        r#"{"imageLayoutVersion":"2.0.0"}"#,
    )
    .unwrap();
    let error = Layout::open(dir.path()).await.unwrap_err();
    let version = reason(error);
    assert_contains!(version, "2.0.0", "1.0.0");
}

#[test]
async fn a_source_that_lies_leaves_nothing_half_made() {
    let dir = tempfile::tempdir().unwrap();
    let from = format!("oci:{}:a", path(&dir, "from"));
    let image = base_at(&from).await;
    let (blob, bytes) = &image.layers[0];
    let file = Layout::open(dir.path().join("from"))
        .await
        .unwrap()
        .blob_path(&blob.digest);
    let damaged = [vec![0; bytes.len()], bytes[..bytes.len() - 1].to_vec()];
    for content in damaged {
        fs::write(&file, content).unwrap();
        for to in [
            format!("oci:{}:b", path(&dir, "to")),
            format!("docker-archive:{}:b", path(&dir, "to.tar")),
        ] {
            let error = try_copy(&from, &to, &no_registry()).await.unwrap_err();
            assert_contains!(error, &blob.digest.to_string());
        }
    }
    let layout = Layout::open(dir.path().join("to")).await.unwrap();
    assert!(layout.index().await.unwrap().manifests.is_empty());
    assert!(!layout.blob_path(&blob.digest).exists());
    let leftovers: Vec<_> = files(dir.path())
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.to_string_lossy().contains("tmp") || path.ends_with("to.tar"))
        .collect();
    assert_eq!(leftovers, Vec::<PathBuf>::new());
}

#[test]
async fn a_foreign_layer_without_url_is_missed_before_anything_is_published() {
    let dir = tempfile::tempdir().unwrap();
    let mut image = base();
    let foreign = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
    image.push(foreign, 4_000, 9, Vec::new());
    let from = sink(&format!("oci:{}", path(&dir, "from")), &no_registry()).await;
    image
        .put_blobs(&from, |blob| blob.media_type != foreign)
        .await;
    from.publish(&image.document(), Some("a")).await.unwrap();
    let layout = Layout::open(dir.path().join("from")).await.unwrap();
    let source = Source::Layout(layout);
    let target = sink(&format!("oci:{}", path(&dir, "to")), &no_registry()).await;
    let plan = CopyPlan::new(&source, Some("a"), &CopyOptions::default())
        .await
        .unwrap();
    let copier = Copier::new(no_registry(), Arc::new(Silent), 4);
    let error = copier
        .copy(&plan, &source, &target, Some("b"))
        .await
        .unwrap_err();
    let layer = image.layers.last().unwrap().0.digest.to_string();
    assert_contains!(error, &layer);
    let layout = Layout::open(dir.path().join("to")).await.unwrap();
    assert!(layout.index().await.unwrap().manifests.is_empty());

    // Nor can clients of a registry get it elsewhere.
    let docker = DockerRegistry::plain();
    let target = sink(
        &format!("{}/app:b", docker.host()),
        &registry(&docker.host()),
    )
    .await;
    let sent = copier.copy(&plan, &source, &target, Some("b")).await;
    let error = sent.unwrap_err();
    assert_contains!(error, &layer);
    assert!(!error.is_part_missing(), "{error}");
}

#[test(multi_thread)]
async fn a_download_into_a_layout_that_broke_goes_on_in_the_next_run() {
    const TEST: &str = "a_download_into_a_layout_that_broke_goes_on_in_the_next_run";
    if let Some(places) = child_argument() {
        let (from, to) = places.split_once(' ').unwrap();
        let registry = registry(from.split('/').next().unwrap());
        assert!(try_copy(from, to, &registry).await.is_err());
        return;
    }
    let docker = DockerRegistry::plain();
    let image = StandIn::new(ManifestFormat::Oci, OS_VERSION, &[(400_000, 1)]);
    let layer = image.layers[0].0.digest.clone();
    let name = layer.to_string();
    let broken = Arc::new(AtomicBool::new(true));
    let rule = {
        let broken = broken.clone();
        move |passed: &ProxiedRequest| {
            let hit = passed.method == "GET" && passed.path.ends_with(&name);
            match (hit && broken.load(Ordering::SeqCst), passed.header("range")) {
                (true, None) => ProxyFault::CutAnswer(250_000),
                (true, Some(_)) => ProxyFault::Answer(503, Vec::new(), String::new()),
                _ => ProxyFault::Pass,
            }
        }
    };
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let registry = registry(&proxy.host());
    let from = format!("{}/app:1", proxy.host());
    image.put(&sink(&from, &registry).await, Some("1")).await;
    let dir = tempfile::tempdir().unwrap();
    let to = format!("oci:{}:1", path(&dir, "to"));
    // In a separate process: a program started by another test at that moment would inherit the
    // open file, and thus its lock.
    tokio::task::block_in_place(|| in_child(TEST, &format!("{from} {to}"), &[]));
    let layout = Layout::open(dir.path().join("to")).await.unwrap();
    assert!(layout.index().await.unwrap().manifests.is_empty());
    assert!(!layout.blob_path(&layer).exists());

    broken.store(false, Ordering::SeqCst);
    let before = proxy.log().len();
    copy(&from, &to, &registry).await;
    let fetched = &proxy.log()[before..];
    let of_layer = fetched
        .iter()
        .find(|passed| passed.method == "GET" && passed.path.ends_with(layer.as_ref()))
        .unwrap();
    assert!(of_layer.received < 200_000, "{of_layer:?}");
    let names: Vec<_> = files(dir.path())
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
async fn a_copy_that_is_given_up_leaves_no_half_made_file() {
    let docker = DockerRegistry::plain();
    let image = StandIn::new(ManifestFormat::Oci, OS_VERSION, &[(400_000, 1)]);
    let layer = image.layers[0].0.digest.to_string();
    let (reached, stalled) = tokio::sync::oneshot::channel();
    let mut reached = Some(reached);
    let proxy = FaultProxy::start(docker.host(), move |passed| {
        if passed.method != "GET" || !passed.path.ends_with(&layer) {
            return ProxyFault::Pass;
        }
        if let Some(reached) = reached.take() {
            reached.send(()).unwrap();
        }
        ProxyFault::Stall(100_000)
    })
    .await;
    let registry = registry(&proxy.host());
    let from = format!("{}/app:1", proxy.host());
    image.put(&sink(&from, &registry).await, Some("1")).await;
    let dir = tempfile::tempdir().unwrap();
    let to = format!("docker-archive:{}:app:1", path(&dir, "app.tar"));
    let copying = tokio::spawn(async move { try_copy(&from, &to, &registry).await.is_ok() });
    stalled.await.unwrap();
    copying.abort();
    assert!(copying.await.unwrap_err().is_cancelled());
    // Concurrent work ends with the copy, but not at the same moment.
    let deadline = Instant::now() + Duration::from_secs(10);
    while !files(dir.path()).is_empty() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(files(dir.path()), Vec::new());
}

#[test]
async fn a_blob_that_is_read_ends_well_only_where_it_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:a", path(&dir, "layout"));
    let image = base_at(&location).await;
    let layout = Layout::open(dir.path().join("layout")).await.unwrap();
    let source = Source::Layout(layout.clone());
    let (blob, bytes) = &image.layers[0];
    let mut read = Vec::new();
    let mut reader = source.open_blob(blob).await.unwrap();
    reader.read_to_end(&mut read).await.unwrap();
    assert_eq!(&read, bytes);
    read[100] ^= 1;
    fs::write(layout.blob_path(&blob.digest), &read).unwrap();
    let mut reader = source.open_blob(blob).await.unwrap();
    let error = reader.read_to_end(&mut read).await.unwrap_err();
    assert_contains!(error, &blob.digest.to_string());
}

#[test]
async fn a_damaged_layout_is_not_pushed() {
    let docker = DockerRegistry::plain();
    let registry = registry(&docker.host());
    let dir = tempfile::tempdir().unwrap();
    let from = format!("oci:{}:a", path(&dir, "from"));
    let image = base_at(&from).await;
    let layout = Layout::open(dir.path().join("from")).await.unwrap();
    let (blob, bytes) = &image.layers[0];
    let to = format!("{}/app:1", docker.host());
    for content in [vec![0; bytes.len()], bytes[..1000].to_vec()] {
        fs::write(layout.blob_path(&blob.digest), content).unwrap();
        let error = try_copy(&from, &to, &registry).await.unwrap_err();
        assert_contains!(error, &blob.digest.to_string());
    }
    let source = Source::open(&to.parse().unwrap(), &registry).await.unwrap();
    assert!(source.resolve(Some("1")).await.is_err());
}

#[test]
async fn a_config_that_is_not_what_its_digest_says_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:a", path(&dir, "layout"));
    let image = base_at(&location).await;
    let layout = Layout::open(dir.path().join("layout")).await.unwrap();
    let config = image.image.manifest().config.clone();
    let lie = Bytes::from_static(b"{\"os\":\"windows\"}");
    fs::write(layout.blob_path(&config.digest), &lie).unwrap();
    let source = Source::Layout(layout.clone());
    assert!(source.read::<ImageConfig>(&config).await.is_err());
    let put = layout.put_blob(&config, &lie, &Silent).await.unwrap_err();
    assert!(put.to_string().contains("bytes: expected"), "{put}");
}
