//! Layouts, archives and registries as sources and sinks, with skopeo as the judge of both.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use wincimg::oci::archive::{Archive, ArchiveError};
use wincimg::oci::copy::{Action, Copier, CopyError, CopyOptions, CopyPlan, CopyReport};
use wincimg::oci::document::{Document, Flavour, ImageConfig, Sealed};
use wincimg::oci::layout::{Layout, LayoutError};
use wincimg::oci::registry::Registry;
use wincimg::oci::store::{Location, Sink, Source};
use wincimg::oci::stream::StreamError;
use wincimg::progress::Silent;

use support::docker_registry::{DockerRegistry, Setup};
use support::proxy::{Fault, FaultProxy, Passed};
use support::windows_base::{StandIn, put_index};

const OS_VERSION: &str = "10.0.17763.973";

fn registry(host: &str) -> Registry {
    Registry::new(support::options(host), Arc::new(Silent)).unwrap()
}

/// A registry for tests that need none.
fn no_registry() -> Registry {
    registry("127.0.0.1:1")
}

fn base() -> StandIn {
    StandIn::new(Flavour::Oci, OS_VERSION, &[(50_000, 1), (7_000, 2)])
}

async fn sink(location: &str, registry: &Registry) -> Sink {
    Sink::create(&location.parse().unwrap(), registry)
        .await
        .unwrap()
}

/// Copies everything from one place to another, as the command line names them.
async fn try_copy(from: &str, to: &str, registry: &Registry) -> Result<CopyReport, CopyError> {
    let (from, to): (Location, Location) = (from.parse().unwrap(), to.parse().unwrap());
    let source = Source::open(&from, registry).await.unwrap();
    let sink = Sink::create(&to, registry).await.unwrap();
    let plan = CopyPlan::new(&source, from.wanted(), &CopyOptions::default()).await?;
    let copier = Copier::new(registry.clone(), Arc::new(Silent), 4);
    let report = copier.copy(&plan, &source, &sink, to.tag()).await?;
    sink.finish().await?;
    Ok(report)
}

async fn copy(from: &str, to: &str, registry: &Registry) -> CopyReport {
    try_copy(from, to, registry).await.unwrap()
}

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).display().to_string()
}

/// Runs skopeo, which must succeed, and returns what it printed.
fn skopeo(program: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program)
        .args(["--override-os", "windows", "--override-arch", "amd64"])
        .arg("--insecure-policy")
        .args(arguments)
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "skopeo {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// All files below a directory, sorted, with their contents.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                open.push(entry);
            } else {
                found.push((
                    entry.strip_prefix(root).unwrap().to_owned(),
                    fs::read(&entry).unwrap(),
                ));
            }
        }
    }
    found.sort();
    found
}

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
        assert_eq!(location.wanted(), wanted, "{text}");
    }
    for text in ["oci:", "oci::tag", "docker-archive:", "a b"] {
        assert!(text.parse::<Location>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn skopeo_reads_the_layouts_we_write() {
    let Some(program) = support::component("skopeo") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:1809", path(&dir, "layout"));
    let image = base();
    image
        .put(&sink(&location, &no_registry()).await, Some("1809"))
        .await;

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

#[tokio::test]
async fn we_read_the_layouts_that_skopeo_writes() {
    let (Some(program), Some(docker)) = (
        support::component("skopeo"),
        DockerRegistry::start(Setup::default()),
    ) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&docker.host());
    let reference = format!("{}/windows/nanoserver:1809", docker.host());
    let images = [
        base(),
        StandIn::new(Flavour::Oci, "10.0.20348.10", &[(9_000, 3)]),
    ];
    let target = sink(&reference, &registry).await;
    let index = put_index(Flavour::Oci, &images, &target, Some("1809")).await;
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

#[tokio::test]
async fn skopeo_reads_the_archives_we_write() {
    let Some(program) = support::component("skopeo") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let archive = format!("docker-archive:{}:app:1.4", path(&dir, "app.tar"));
    let image = base();
    let target = sink(&archive, &no_registry()).await;
    image.put(&target, Some("app:1.4")).await;
    target.finish().await.unwrap();

    let config = skopeo(&program, &["inspect", "--config", "--raw", &archive]);
    assert_eq!(&config, image.image.config().bytes());
    let out = path(&dir, "out");
    skopeo(&program, &["copy", &archive, &format!("oci:{out}:x")]);
    let layout = Layout::open(&out).await.unwrap();
    let Document::Manifest(manifest) = layout.resolve(Some("x")).await.unwrap() else {
        panic!("a manifest became something else");
    };
    let config: Sealed<ImageConfig> = Source::Layout(layout).read(&manifest.config).await.unwrap();
    assert_eq!(config.rootfs.diff_ids, image.image.config().rootfs.diff_ids);
    assert_eq!(config.os_version.as_deref(), Some(OS_VERSION));
}

#[tokio::test]
async fn we_read_the_archives_that_skopeo_writes() {
    let Some(program) = support::component("skopeo") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let layout = format!("oci:{}:1", path(&dir, "layout"));
    let image = base();
    image
        .put(&sink(&layout, &no_registry()).await, Some("1"))
        .await;
    let file = path(&dir, "app.tar");
    let archive = format!("docker-archive:{file}:app:1.4");
    skopeo(&program, &["copy", &layout, &archive]);

    let back = format!("oci:{}:again", path(&dir, "again"));
    for name in ["app:1.4", "docker.io/library/app:1.4", "1.4"] {
        copy(
            &format!("docker-archive:{file}:{name}"),
            &back,
            &no_registry(),
        )
        .await;
    }
    let source = Source::open(&back.parse().unwrap(), &no_registry())
        .await
        .unwrap();
    let Document::Manifest(manifest) = source.resolve(Some("again")).await.unwrap() else {
        panic!("a manifest became something else");
    };
    let read = source.image(*manifest).await.unwrap();
    assert_eq!(
        read.config().rootfs.diff_ids,
        image.image.config().rootfs.diff_ids
    );
    assert_eq!(read.config().os_version.as_deref(), Some(OS_VERSION));
}

#[tokio::test]
async fn an_image_comes_back_unchanged_from_registry_layout_and_archive() {
    let Some(docker) = DockerRegistry::start(Setup::default()) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(&docker.host());
    for flavour in [Flavour::Docker, Flavour::Oci] {
        let images = [
            StandIn::new(flavour, OS_VERSION, &[(5_000, 1), (6_000, 2)]),
            StandIn::new(flavour, "10.0.20348.10", &[(5_000, 1), (7_000, 3)]),
        ];
        let here = |place: &str| format!("{}-{flavour:?}", path(&dir, place));
        let places = [
            format!("oci:{}:first", here("first")),
            format!(
                "{}/{}/app:one",
                docker.host(),
                format!("{flavour:?}").to_lowercase()
            ),
            format!("docker-archive:{}:app:two", here("app.tar")),
            format!("oci:{}:last", here("last")),
        ];
        let first = sink(&places[0], &registry).await;
        let index = put_index(flavour, &images, &first, Some("first")).await;
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

#[tokio::test]
async fn an_image_in_dockers_words_is_translated_for_skopeo_where_asked() {
    let Some(program) = support::component("skopeo") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let from = sink(&format!("oci:{}", path(&dir, "from")), &no_registry()).await;
    let image = StandIn::new(Flavour::Docker, OS_VERSION, &[(5_000, 1)]);
    put_index(
        Flavour::Docker,
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
        flavour: Some(Flavour::Oci),
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

#[tokio::test]
async fn a_second_copy_into_a_layout_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (
        format!("oci:{}:a", path(&dir, "from")),
        format!("oci:{}:b", path(&dir, "to")),
    );
    base()
        .put(&sink(&from, &no_registry()).await, Some("a"))
        .await;
    let first = copy(&from, &to, &no_registry()).await;
    assert!(first.blobs.iter().all(|blob| blob.action == Action::Copy));
    let before = files(&dir.path().join("to"));
    let second = copy(&from, &to, &no_registry()).await;
    assert!(
        second
            .blobs
            .iter()
            .all(|blob| blob.action == Action::Present)
    );
    assert_eq!(second.moved_bytes(), 0);
    assert_eq!(files(&dir.path().join("to")), before);
}

#[tokio::test]
async fn a_damaged_blob_in_a_layout_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (
        format!("oci:{}:a", path(&dir, "from")),
        format!("oci:{}:b", path(&dir, "to")),
    );
    let image = base();
    image
        .put(&sink(&from, &no_registry()).await, Some("a"))
        .await;
    copy(&from, &to, &no_registry()).await;
    let layout = Layout::open(dir.path().join("to")).await.unwrap();
    let (blob, bytes) = &image.layers[0];
    fs::write(layout.blob_path(&blob.digest), vec![0; bytes.len()]).unwrap();
    let report = copy(&from, &to, &no_registry()).await;
    let copied: Vec<_> = report
        .blobs
        .iter()
        .filter(|blob| blob.action == Action::Copy)
        .collect();
    assert_eq!(copied.len(), 1);
    assert_eq!(copied[0].digest, blob.digest.to_string());
    assert_eq!(&fs::read(layout.blob_path(&blob.digest)).unwrap(), bytes);
}

#[tokio::test]
async fn a_tag_moves_to_the_new_image_and_other_tags_stay() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}", path(&dir, "layout"));
    let target = sink(&location, &no_registry()).await;
    let (old, new) = (
        base(),
        StandIn::new(Flavour::Oci, "10.0.20348.10", &[(900, 9)]),
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
    assert!(matches!(&error, LayoutError::SeveralImages { known, .. } if known == "1, old"));
    let error = layout.resolve(Some("2")).await.unwrap_err();
    assert!(
        error.to_string().contains("no image \"2\": it has 1, old"),
        "{error}"
    );
}

#[tokio::test]
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

#[tokio::test]
async fn a_directory_with_other_things_in_it_is_no_layout() {
    let dir = tempfile::tempdir().unwrap();
    let open = Layout::open(dir.path()).await.unwrap_err();
    assert!(
        open.to_string().ends_with("it has no file oci-layout"),
        "{open}"
    );
    fs::write(dir.path().join("thesis.txt"), "important").unwrap();
    let error = Layout::create(dir.path()).await.unwrap_err();
    assert!(error.to_string().ends_with("but thesis.txt"), "{error}");
    assert_eq!(files(dir.path()).len(), 1);
    fs::remove_file(dir.path().join("thesis.txt")).unwrap();
    fs::write(
        dir.path().join("oci-layout"),
        r#"{"imageLayoutVersion":"2.0.0"}"#,
    )
    .unwrap();
    let error = Layout::open(dir.path()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("its version is 2.0.0, expected 1.0.0"),
        "{error}"
    );
}

#[tokio::test]
async fn a_source_that_lies_leaves_nothing_half_made() {
    let dir = tempfile::tempdir().unwrap();
    let from = format!("oci:{}:a", path(&dir, "from"));
    let image = base();
    image
        .put(&sink(&from, &no_registry()).await, Some("a"))
        .await;
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
            let location: Location = to.parse().unwrap();
            let source = Source::open(&from.parse().unwrap(), &no_registry())
                .await
                .unwrap();
            let target = Sink::create(&location, &no_registry()).await.unwrap();
            let plan = CopyPlan::new(&source, Some("a"), &CopyOptions::default())
                .await
                .unwrap();
            let copier = Copier::new(no_registry(), Arc::new(Silent), 4);
            let error = copier
                .copy(&plan, &source, &target, Some("b"))
                .await
                .unwrap_err();
            assert!(
                error.to_string().contains(&blob.digest.to_string()),
                "{error}"
            );
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

#[tokio::test]
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
    assert!(
        error
            .to_string()
            .ends_with("and it names no url to get it from"),
        "{error}"
    );
    let layout = Layout::open(dir.path().join("to")).await.unwrap();
    assert!(layout.index().await.unwrap().manifests.is_empty());
}

#[tokio::test]
async fn a_download_into_a_layout_that_broke_goes_on_in_the_next_run() {
    let Some(docker) = DockerRegistry::start(Setup::default()) else {
        return;
    };
    let image = StandIn::new(Flavour::Oci, OS_VERSION, &[(400_000, 1)]);
    let layer = image.layers[0].0.digest.clone();
    let name = layer.to_string();
    let broken = Arc::new(AtomicBool::new(true));
    let rule = {
        let broken = broken.clone();
        move |passed: &Passed| {
            let hit = passed.method == "GET" && passed.path.ends_with(&name);
            match (hit && broken.load(Ordering::SeqCst), passed.header("range")) {
                (true, None) => Fault::CutAnswer(250_000),
                (true, Some(_)) => Fault::Answer(503, Vec::new(), String::new()),
                _ => Fault::Pass,
            }
        }
    };
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let registry = registry(&proxy.host());
    let from = format!("{}/app:1", proxy.host());
    image.put(&sink(&from, &registry).await, Some("1")).await;
    let dir = tempfile::tempdir().unwrap();
    let to = format!("oci:{}:1", path(&dir, "to"));
    assert!(try_copy(&from, &to, &registry).await.is_err());
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

#[tokio::test]
async fn a_blob_that_is_read_ends_well_only_where_it_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:a", path(&dir, "layout"));
    let image = base();
    image
        .put(&sink(&location, &no_registry()).await, Some("a"))
        .await;
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
    assert!(
        error.to_string().contains(&blob.digest.to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn a_damaged_layout_is_not_pushed() {
    let Some(docker) = DockerRegistry::start(Setup::default()) else {
        return;
    };
    let registry = registry(&docker.host());
    let dir = tempfile::tempdir().unwrap();
    let from = format!("oci:{}:a", path(&dir, "from"));
    let image = base();
    image.put(&sink(&from, &registry).await, Some("a")).await;
    let layout = Layout::open(dir.path().join("from")).await.unwrap();
    let (blob, bytes) = &image.layers[0];
    let to = format!("{}/app:1", docker.host());
    for content in [vec![0; bytes.len()], bytes[..1000].to_vec()] {
        fs::write(layout.blob_path(&blob.digest), content).unwrap();
        let error = try_copy(&from, &to, &registry).await.unwrap_err();
        assert!(
            error.to_string().contains(&blob.digest.to_string()),
            "{error}"
        );
    }
    let source = Source::open(&to.parse().unwrap(), &registry).await.unwrap();
    assert!(source.resolve(Some("1")).await.is_err());
}

#[tokio::test]
async fn archives_are_the_same_bytes_whatever_the_order_of_writing() {
    let dir = tempfile::tempdir().unwrap();
    let images = [
        base(),
        StandIn::new(Flavour::Oci, "10.0.20348.10", &[(900, 9)]),
    ];
    let mut archives = Vec::new();
    for order in [[0, 1], [1, 0]] {
        let file = path(&dir, "app.tar");
        let target = sink(&format!("docker-archive:{file}"), &no_registry()).await;
        for at in order {
            images[at].put(&target, Some(&format!("app:{at}"))).await;
        }
        target.finish().await.unwrap();
        archives.push(fs::read(file).unwrap());
    }
    assert!(archives[0] == archives[1]);
    assert_eq!(files(dir.path()).len(), 1, "the staging directory is gone");
}

#[tokio::test]
async fn an_index_in_an_archive_lists_its_images_for_docker_load() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let target = sink(&format!("docker-archive:{file}"), &no_registry()).await;
    let images = [
        base(),
        StandIn::new(Flavour::Oci, "10.0.20348.10", &[(900, 9)]),
    ];
    put_index(Flavour::Oci, &images, &target, Some("app:all")).await;
    images[1].put(&target, Some("app:2022")).await;
    target.finish().await.unwrap();
    let mut tar = tar::Archive::new(fs::File::open(&file).unwrap());
    let manifest = tar
        .entries()
        .unwrap()
        .map(Result::unwrap)
        .find(|entry| entry.path().unwrap().ends_with("manifest.json"))
        .unwrap();
    let saved: Value = serde_json::from_reader(manifest).unwrap();
    let mut tags: Vec<_> = saved
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["RepoTags"].to_string())
        .collect();
    tags.sort();
    assert_eq!(tags, [r#"["app:2022"]"#, "[]"]);
}

#[tokio::test]
async fn what_is_no_archive_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("app.tar");
    let target = sink(
        &format!("docker-archive:{}", file.display()),
        &no_registry(),
    )
    .await;
    base().put(&target, Some("app:1")).await;
    target.finish().await.unwrap();
    let whole = fs::read(&file).unwrap();

    let open = async |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        Archive::open(&file).await.unwrap_err()
    };
    let error = open(&whole[..whole.len() / 2]).await;
    assert!(matches!(error, ArchiveError::Truncated { .. }), "{error}");
    let error = open(b"\x1f\x8b\x08\x00 and so on").await;
    assert!(
        error
            .to_string()
            .ends_with("is compressed with gzip: unpack it first"),
        "{error}"
    );
    for bytes in [&b""[..], &[0; 1024], &[0xFF; 2048], b"no tar at all"] {
        let error = open(bytes).await;
        assert!(
            matches!(error, ArchiveError::NotAnArchive { .. }),
            "{error}"
        );
    }

    fs::write(&file, &whole).unwrap();
    let archive = Archive::open(&file).await.unwrap();
    let error = archive.resolve(Some("app:2")).await.unwrap_err();
    assert!(error.to_string().contains("no image \"app:2\""), "{error}");
}

#[tokio::test]
async fn an_archive_of_uncompressed_layers_gets_a_manifest_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old.tar");
    let image = base();
    let config = image.image.config().bytes();
    let mut tar = tar::Builder::new(fs::File::create(&file).unwrap());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes).unwrap();
    };
    let (first, _) = support::windows_base::layer(50_000, 1);
    let (_, second) = support::windows_base::layer(7_000, 2);
    add("config.json", config);
    add("./one/layer.tar", &first);
    add("two.tar.gz", &second);
    let manifest = serde_json::json!([{
        "Config": "config.json", "RepoTags": ["app:1"], "Layers": ["link/layer.tar", "two.tar.gz"]
    }]);
    add("manifest.json", manifest.to_string().as_bytes());
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    tar.append_link(&mut link, "link/layer.tar", "../one/layer.tar")
        .unwrap();
    tar.into_inner().unwrap();

    let to = format!("oci:{}:x", path(&dir, "layout"));
    let report = copy(
        &format!("docker-archive:{}", file.display()),
        &to,
        &no_registry(),
    )
    .await;
    let types: Vec<_> = report
        .blobs
        .iter()
        .map(|blob| blob.media_type.as_str())
        .collect();
    assert_eq!(
        types,
        [
            Flavour::Docker.layer(),
            Flavour::Docker.layer_gzip(),
            Flavour::Docker.config()
        ]
    );
    assert_eq!(
        report.blobs[2].digest,
        image.image.config().digest().to_string()
    );
}

#[tokio::test]
async fn a_config_that_is_not_what_its_digest_says_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let location = format!("oci:{}:a", path(&dir, "layout"));
    let image = base();
    image
        .put(&sink(&location, &no_registry()).await, Some("a"))
        .await;
    let layout = Layout::open(dir.path().join("layout")).await.unwrap();
    let config = image.image.manifest().config.clone();
    let lie = Bytes::from_static(b"{\"os\":\"windows\"}");
    fs::write(layout.blob_path(&config.digest), &lie).unwrap();
    let source = Source::Layout(layout.clone());
    assert!(source.read::<ImageConfig>(&config).await.is_err());
    let put = layout.put_blob(&config, &lie, &Silent).await.unwrap_err();
    assert!(
        matches!(put, LayoutError::Stream(StreamError::Length { .. })),
        "{put}"
    );
}
