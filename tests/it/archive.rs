//! docker-archives as sources and sinks, checked with skopeo and dockerd.

use std::fs;
use std::io::Read;

use serde_json::{Value, json};
use wincimg_common::diagnose::Diagnose;
use wincimg_oci::archive::DockerArchive;
use wincimg_oci::document::{
    Descriptor, Digest, Document, ImageConfig, Index, ManifestFormat, Verbatim, media_type, sha256,
};
use wincimg_oci::layout::Layout;
use wincimg_oci::store::Source;
use wincimg_testkit::dockerd::Dockerd;
use wincimg_testkit::image_locations::{
    OS_VERSION, base, base_at, copy, files, no_registry, path, sink, skopeo, try_copy,
};
use wincimg_testkit::mirror_fixture::FOREIGN;
use wincimg_testkit::windows_base::{StandIn, put_index};

use crate::site::Site;

#[test]
async fn skopeo_reads_the_archives_we_write() {
    let program = wincimg_testkit::component("skopeo");
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
    let config: Verbatim<ImageConfig> =
        Source::Layout(layout).read(&manifest.config).await.unwrap();
    assert_eq!(config.rootfs.diff_ids, image.image.config().rootfs.diff_ids);
    assert_eq!(config.os_version.as_deref(), Some(OS_VERSION));
}

#[test]
async fn we_read_the_archives_that_skopeo_writes() {
    let program = wincimg_testkit::component("skopeo");
    let dir = tempfile::tempdir().unwrap();
    let layout = format!("oci:{}:1", path(&dir, "layout"));
    let image = base_at(&layout).await;
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

#[test]
async fn archives_are_the_same_bytes_whatever_the_order_of_writing() {
    let dir = tempfile::tempdir().unwrap();
    let images = [
        base(),
        StandIn::new(ManifestFormat::Oci, "10.0.20348.10", &[(900, 9)]),
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

/// The entries of an archive's `manifest.json`.
fn saved_images(file: &str) -> Vec<Value> {
    let mut tar = tar::Archive::new(fs::File::open(file).unwrap());
    let manifest = tar
        .entries()
        .unwrap()
        .map(Result::unwrap)
        .find(|entry| entry.path().unwrap().ends_with("manifest.json"))
        .unwrap();
    serde_json::from_reader(manifest).unwrap()
}

#[test]
fn an_archive_keeps_the_whole_name_of_a_built_image() {
    let site = Site::new();
    for (tag, expected) in [
        ("ghcr.io/acme/sub/pause:1", "ghcr.io/acme/sub/pause:1"),
        ("pause:1", "pause:1"),
    ] {
        site.build("pause")
            .args(["--host-build", "17763.973", "-t", tag])
            .args(["--output", "docker-archive:app.tar"])
            .assert()
            .success();
        let saved = saved_images(site.path("app.tar").to_str().unwrap());
        assert_eq!(saved[0]["RepoTags"], serde_json::json!([expected]));
    }
}

#[test]
async fn an_index_in_an_archive_lists_its_images_for_docker_load() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let target = sink(&format!("docker-archive:{file}"), &no_registry()).await;
    let images = [
        base(),
        StandIn::new(ManifestFormat::Oci, "10.0.20348.10", &[(900, 9)]),
    ];
    put_index(ManifestFormat::Oci, &images, &target, Some("app:all")).await;
    images[1].put(&target, Some("app:2022")).await;
    target.finish().await.unwrap();
    let mut tags: Vec<_> = saved_images(&file)
        .iter()
        .map(|image| image["RepoTags"].to_string())
        .collect();
    tags.sort();
    assert_eq!(tags, [r#"["app:2022"]"#, "[]"]);
}

#[test]
async fn docker_loads_the_one_image_of_an_index_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let target = sink(&format!("docker-archive:{file}"), &no_registry()).await;
    let image = base();
    let mut about = StandIn::new(ManifestFormat::Oci, "", &[(100, 50)]);
    about.image = about
        .image
        .edit_config(|config| config.os = "unknown".to_owned())
        .unwrap();
    for part in [&image, &about] {
        part.put_blobs(&target, |_| true).await;
        target.put_document(&part.document()).await.unwrap();
    }
    let mut attestation = about.image.index_entry();
    attestation.annotations.insert(
        "vnd.docker.reference.digest".to_owned(),
        image.image.digest().to_string(),
    );
    let index = |entries| {
        let index = Index::new(ManifestFormat::Oci, entries);
        Document::Index(Verbatim::new(index).unwrap())
    };
    // The second one has the first in it, as some tools write it.
    let inner = index(vec![image.image.index_entry(), attestation]);
    let outer = index(vec![inner.descriptor()]);
    target.publish(&inner, Some("app:1")).await.unwrap();
    target.publish(&outer, Some("app:2")).await.unwrap();
    target.finish().await.unwrap();

    let saved = saved_images(&file);
    let [saved] = saved.as_slice() else {
        panic!("{saved:?}");
    };
    let config = image.image.manifest().config.digest.digest();
    assert_eq!(saved["Config"], format!("blobs/sha256/{config}"));
    assert_eq!(saved["RepoTags"], serde_json::json!(["app:1", "app:2"]));
}

#[test]
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
        DockerArchive::open(&file).await.unwrap_err()
    };
    let error = open(&whole[..whole.len() / 2]).await;
    assert!(error.to_string().contains("is truncated"), "{error}");
    let error = open(b"\x1f\x8b\x08\x00 and so on").await;
    let with_gzip = error.to_string().contains("gzip");
    assert!(with_gzip, "{error}");
    for bytes in [&b""[..], &[0; 1024], &[0xFF; 2048], b"no tar at all"] {
        let error = open(bytes).await;
        let is_other = error.to_string().contains("is not a docker-archive");
        assert!(is_other, "{error}");
    }

    fs::write(&file, &whole).unwrap();
    let archive = DockerArchive::open(&file).await.unwrap();
    let error = archive.resolve(Some("app:2")).await.unwrap_err();
    let is_named = error.to_string().contains("has no image \"app:2\"");
    assert!(is_named, "{error}");
}

#[test]
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
    let (first, _) = wincimg_testkit::windows_base::layer(50_000, 1);
    let (_, second) = wincimg_testkit::windows_base::layer(7_000, 2);
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
            ManifestFormat::Docker.layer(),
            ManifestFormat::Docker.layer_gzip(),
            ManifestFormat::Docker.config()
        ]
    );
    assert_eq!(
        report.blobs[2].digest,
        image.image.config().digest().to_string()
    );
}

#[test]
async fn the_layers_of_an_archive_are_found_where_only_its_list_names_them() {
    let dir = tempfile::tempdir().unwrap();
    let image = base();
    let config = image.image.config().bytes();
    let diff_ids = &image.image.config().rootfs.diff_ids;
    let layers = [(50_000, 1), (7_000, 2)]
        .map(|(size, seed)| wincimg_testkit::windows_base::layer(size, seed).0);
    let member = |digest: &Digest| format!("blobs/sha256/{}", digest.digest());
    let mut empty = image.image.manifest().clone().into_value();
    empty.layers.clear();
    let empty = Verbatim::new(empty).unwrap();
    let entry = empty.descriptor(empty.media_type());
    let index = Verbatim::new(Index::new(ManifestFormat::Oci, vec![entry])).unwrap();
    let digest = image.image.config().digest();
    // Docker 25.0.0 wrote a manifest without layers, earlier ones on Windows `\\` in the list.
    let list = |config: &str, layers: [&str; 2]| {
        serde_json::json!([{"Config": config, "RepoTags": ["app:1"], "Layers": layers}]).to_string()
    };
    let names = [member(&diff_ids[0]), member(&diff_ids[1])];
    let new_list = list(&member(digest), [&names[0], &names[1]]);
    let old_list = list("config.json", [r"one\layer.tar", r"two\layer.tar"]);
    // Later ones on Windows name foreign layers by digests of what they do not store, and none list
    // an image without a tag.
    let mut foreign = image.image.manifest().clone().into_value();
    foreign.layers[0] = Descriptor::new(FOREIGN, sha256(b"compressed"), 10);
    foreign.layers[1] = Descriptor::new(media_type::OCI_LAYER, diff_ids[1].clone(), 1);
    let foreign = Verbatim::new(foreign).unwrap();
    let entry = foreign.descriptor(foreign.media_type());
    let foreign_index = Verbatim::new(Index::new(ManifestFormat::Oci, vec![entry])).unwrap();
    let untagged = br#"{"schemaVersion":2,"manifests":null}"#;
    let (image, one, two) = (member(digest), &*names[0], &*names[1]);
    let archives: [&[(&str, &[u8])]; 4] = [
        &[
            ("index.json", index.bytes()),
            ("manifest.json", new_list.as_bytes()),
            (&member(empty.digest()), empty.bytes()),
            (&image, config),
            (one, &layers[0]),
            (two, &layers[1]),
        ],
        &[
            ("index.json", foreign_index.bytes()),
            ("manifest.json", new_list.as_bytes()),
            (&member(foreign.digest()), foreign.bytes()),
            (&image, config),
            (one, &layers[0]),
            (two, &layers[1]),
        ],
        &[
            ("index.json", untagged),
            ("manifest.json", new_list.as_bytes()),
            (&image, config),
            (one, &layers[0]),
            (two, &layers[1]),
        ],
        &[
            ("manifest.json", old_list.as_bytes()),
            ("config.json", config),
            ("one/layer.tar", &layers[0]),
            ("two/layer.tar", &layers[1]),
        ],
    ];
    for members in archives {
        let file = path(&dir, "app.tar");
        write_tar(&file, members);
        let from = format!("docker-archive:{file}:app:1");
        let to = format!("oci:{}:x", path(&dir, "layout"));
        let report = copy(&from, &to, &no_registry()).await;
        let digests: Vec<_> = report.blobs.iter().map(|blob| &blob.digest).collect();
        let expected = [&diff_ids[0], &diff_ids[1], digest].map(ToString::to_string);
        assert_eq!(digests, expected.iter().collect::<Vec<_>>());
    }
}

fn write_tar(file: &str, members: &[(&str, &[u8])]) {
    let mut tar = tar::Builder::new(fs::File::create(file).unwrap());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap();
}

fn members_of(file: &str) -> Vec<(String, Vec<u8>)> {
    let mut tar = tar::Archive::new(fs::File::open(file).unwrap());
    let members = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (name, bytes)
    });
    members.collect()
}

fn write_members(file: &str, members: &[(String, Vec<u8>)]) {
    let members = members.iter().map(|(name, bytes)| (&**name, &**bytes));
    write_tar(file, &members.collect::<Vec<_>>());
}

/// `docker save app:1 IMAGE_ID` lists the tagged one alone.
#[test]
async fn an_image_that_only_the_list_has_is_one_of_several() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let images = [
        base(),
        StandIn::new(ManifestFormat::Oci, "10.0.20348.10", &[(900, 9)]),
    ];
    let target = sink(&format!("docker-archive:{file}"), &no_registry()).await;
    images[0].put(&target, Some("app:1")).await;
    images[1].put(&target, None).await;
    target.finish().await.unwrap();
    let mut members = members_of(&file);
    let untagged = images[1].image.manifest();
    members.retain(|(_, bytes)| bytes != untagged.bytes());
    for (name, bytes) in &mut members {
        if *name == "index.json" {
            let mut index: Index = serde_json::from_slice(bytes).unwrap();
            let is_tagged = |entry: &Descriptor| entry.digest != *untagged.digest();
            index.manifests.retain(is_tagged);
            *bytes = serde_json::to_vec(&index).unwrap();
        }
    }
    write_members(&file, &members);

    let archive = DockerArchive::open(&file).await.unwrap();
    let error = archive.resolve(None).await.unwrap_err();
    assert_contains!(error, "several images", "app:1", "sha256:");
    let tagged = archive.resolve(Some("app:1")).await.unwrap();
    assert_eq!(tagged.digest(), images[0].image.digest());
}

#[test]
async fn a_layer_with_zstd_is_refused_with_what_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let image = StandIn::new(ManifestFormat::Docker, OS_VERSION, &[(900, 9)]);
    let list = r#"[{"Config": "config.json", "Layers": ["layer.tar.zst"]}]"#;
    write_tar(
        &file,
        &[
            ("manifest.json", list.as_bytes()),
            ("config.json", image.image.config().bytes()),
            ("layer.tar.zst", b"\x28\xb5\x2f\xfd and so on"),
        ],
    );
    let archive = DockerArchive::open(&file).await.unwrap();
    let error = archive.resolve(None).await.unwrap_err();
    assert_contains!(error, "zstd");
    assert_contains!(error.diagnosis().hint.unwrap(), "skopeo copy", &file);
}

#[test]
async fn an_image_that_cannot_be_read_does_not_hide_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let target = sink(&format!("docker-archive:{file}"), &no_registry()).await;
    base().put(&target, Some("app:1")).await;
    target.finish().await.unwrap();
    let mut members = members_of(&file);
    let saved = json!({
        "Config": "other.json", "RepoTags": ["other:1"], "Layers": ["layer.tar.zst"],
    });
    for (name, bytes) in &mut members {
        if *name == "manifest.json" {
            let mut list: Vec<Value> = serde_json::from_slice(bytes).unwrap();
            list.push(saved.clone());
            *bytes = serde_json::to_vec(&list).unwrap();
        }
    }
    let other = StandIn::new(ManifestFormat::Docker, OS_VERSION, &[(900, 9)]);
    let mut add = |name: &str, bytes: &[u8]| members.push((name.to_owned(), bytes.to_vec()));
    add("other.json", other.image.config().bytes());
    add("layer.tar.zst", b"\x28\xb5\x2f\xfd and so on");
    write_members(&file, &members);

    let archive = DockerArchive::open(&file).await.unwrap();
    let found = archive.resolve(Some("app:1")).await.unwrap();
    assert_eq!(found.digest(), base().image.digest());
    let error = archive.resolve(Some("other:1")).await.unwrap_err();
    assert_contains!(error, "zstd");
    let error = archive.resolve(None).await.unwrap_err();
    assert_contains!(error, "several images", "app:1", "other:1");
}

#[test]
async fn docker_loads_what_we_write_and_we_read_what_docker_saves() {
    let daemon = Dockerd::start();
    let dir = tempfile::tempdir().unwrap();
    let ours = path(&dir, "ours.tar");
    let mut image = StandIn::new(
        ManifestFormat::Docker,
        OS_VERSION,
        &[(5_000, 1), (6_000, 2)],
    );
    // A daemon on Linux cannot load Windows images.
    image.image = image
        .image
        .edit_config(|config| config.os = "linux".to_owned())
        .unwrap();
    let target = sink(&format!("docker-archive:{ours}"), &no_registry()).await;
    image.put(&target, Some("app:1.4")).await;
    target.finish().await.unwrap();

    let printed = daemon.must(&["load", "--input", &ours]);
    assert_contains!(printed, "app:1.4");
    let id = daemon.must(&["inspect", "--format", "{{.Id}}", "app:1.4"]);
    assert_eq!(id, image.image.config().digest().to_string());

    let theirs = path(&dir, "theirs.tar");
    daemon.must(&["save", "--output", &theirs, "app:1.4"]);
    let layout = format!("oci:{}:back", path(&dir, "back"));
    let report = copy(
        &format!("docker-archive:{theirs}:app:1.4"),
        &layout,
        &no_registry(),
    )
    .await;
    let config = report.blobs.last().unwrap();
    assert_eq!(config.digest, image.image.config().digest().to_string());
}

#[test]
async fn a_damaged_archive_never_passes_for_another_image() {
    let dir = tempfile::tempdir().unwrap();
    let file = path(&dir, "app.tar");
    let archive = format!("docker-archive:{file}");
    let image = StandIn::new(ManifestFormat::Oci, OS_VERSION, &[(600, 1)]);
    let target = sink(&archive, &no_registry()).await;
    image.put(&target, Some("app:1")).await;
    target.finish().await.unwrap();
    let whole = fs::read(&file).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(97) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x01;
        for damaged in [flipped.as_slice(), &whole[..at]] {
            fs::write(&file, damaged).unwrap();
            let to = format!("oci:{}", path(&dir, &format!("{at}-{}", damaged.len())));
            let opened = DockerArchive::open(&file).await;
            match opened {
                Ok(_) => match try_copy(&archive, &to, &no_registry()).await {
                    Ok(report) => assert_eq!(report.digest, image.image.digest().to_string()),
                    Err(_) => refused += 1,
                },
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > whole.len() / 97, "only {refused} were refused");
}
