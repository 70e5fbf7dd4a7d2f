//! The registry client with a real registry.

use std::fs;

use bytes::Bytes;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::RegistryOptions;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::image_locations::skopeo;
use wincimg_testkit::proxy::{FaultProxy, ProxyFault};
use wincimg_testkit::{
    DOCKER_MANIFEST, chain, component, describe, noise, options, push_image, put, repository,
};

use crate::registry_faults::SmallDisk;

#[test]
async fn what_is_pushed_exists_and_reads_back() {
    let docker = DockerRegistry::plain();
    let host = docker.host();
    let repository = repository(options(&host), &format!("{host}/some/app"));
    for bytes in [Bytes::from(noise(3_000_000, 1)), Bytes::new()] {
        let blob = describe(&bytes);
        assert!(!repository.has_blob(&blob.digest).await.unwrap());
        put(&repository, &bytes).await;
        assert!(repository.has_blob(&blob.digest).await.unwrap());
        assert_eq!(repository.get_blob(&blob, 4_000_000).await.unwrap(), bytes);
    }
}

#[test]
async fn a_manifest_keeps_its_bytes_its_type_and_its_digest_and_others_are_missing() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let (manifest, _) = push_image(&repository, "1.0").await;
    let digest = describe(&manifest).digest;
    for which in ["1.0", digest.as_ref()] {
        let found = repository.get_manifest(which).await.unwrap();
        assert_eq!(
            (&found.bytes, found.media_type.as_str()),
            (&manifest, DOCKER_MANIFEST)
        );
        assert_eq!(found.digest, digest);
        assert_eq!(
            repository.head_manifest(which).await.unwrap(),
            Some(found.descriptor())
        );
    }
    // A missing one is an error only when read.
    assert_eq!(repository.head_manifest("none").await.unwrap(), None);
    let error = repository.get_manifest("none").await.unwrap_err();
    assert!(error.is_not_found());
    let place = format!("{}/a", docker.host());
    assert_contains!(error, &place, "none", "404 Not Found");
}

#[test]
async fn tags_are_listed_and_an_unknown_repository_is_an_error() {
    let docker = DockerRegistry::plain();
    let host = docker.host();
    let known = repository(options(&host), &format!("{host}/a"));
    for tag in ["1.0", "2.0", "latest"] {
        push_image(&known, tag).await;
    }
    let mut tags = known.tags().await.unwrap();
    tags.sort();
    assert_eq!(tags, ["1.0", "2.0", "latest"]);
    let unknown = repository(options(&host), &format!("{host}/b"));
    assert!(unknown.tags().await.unwrap_err().is_not_found());
}

#[test]
async fn a_large_blob_goes_up_in_pieces() {
    let docker = DockerRegistry::plain();
    let proxy = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let options = RegistryOptions {
        chunk_size: 1_000_000,
        ..options(&proxy.host())
    };
    let repository = repository(options, &format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(2_500_000, 2));
    let blob = put(&repository, &bytes).await;
    let pieces: Vec<_> = proxy
        .requests("PATCH", "/v2/a/blobs/uploads/")
        .iter()
        .map(|piece| {
            (
                piece.header("content-range").unwrap().to_owned(),
                piece.sent,
            )
        })
        .collect();
    let expected = [
        ("0-999999".to_owned(), 1_000_000),
        ("1000000-1999999".to_owned(), 1_000_000),
        ("2000000-2499999".to_owned(), 500_000),
    ];
    assert_eq!(pieces, expected);
    assert_eq!(repository.get_blob(&blob, 3_000_000).await.unwrap(), bytes);
}

#[test]
async fn a_blob_is_mounted_from_another_repository() {
    let docker = DockerRegistry::plain();
    let host = docker.host();
    let source = repository(options(&host), &format!("{host}/source"));
    let target = repository(options(&host), &format!("{host}/target"));
    let blob = put(&source, &Bytes::from_static(b"shared")).await;
    assert!(!target.has_blob(&blob.digest).await.unwrap());
    assert!(target.mount_blob(&blob.digest, "source").await.unwrap());
    assert!(target.has_blob(&blob.digest).await.unwrap());
}

#[test]
async fn an_upload_that_is_opened_instead_of_a_mount_is_used() {
    let docker = DockerRegistry::plain();
    let proxy = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let target = repository(options(&proxy.host()), &format!("{}/target", proxy.host()));
    let bytes = Bytes::from_static(b"nowhere yet");
    let mounted = target.mount_blob(&describe(&bytes).digest, "source").await;
    assert!(!mounted.unwrap());
    put(&target, &bytes).await;
    assert_eq!(proxy.requests("POST", "/uploads/").len(), 1);
}

#[test]
async fn a_blob_streams_from_one_registry_to_another() {
    let one = DockerRegistry::plain();
    let two = DockerRegistry::plain();
    let source = repository(options(&one.host()), &format!("{}/a", one.host()));
    let target = repository(options(&two.host()), &format!("{}/b", two.host()));
    let bytes = Bytes::from(noise(5_000_000, 3));
    let blob = put(&source, &bytes).await;
    let remote = source.blob(&blob);
    target
        .put_blob(&blob.digest, blob.size, &remote, &Silent)
        .await
        .unwrap();
    assert_eq!(target.get_blob(&blob, 5_000_000).await.unwrap(), bytes);
}

#[test]
async fn a_download_goes_on_from_what_an_earlier_one_left_and_two_are_one() {
    let docker = DockerRegistry::plain();
    let proxy = FaultProxy::start(docker.host(), |_| ProxyFault::Pass).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(1_000_000, 4));
    let blob = put(&repository, &bytes).await;
    let blob = repository.blob(&blob);
    let folder = tempfile::tempdir().unwrap();
    let [file, part] = ["layer", "layer.part"].map(|name| folder.path().join(name));
    let reads = || proxy.requests("GET", "/blobs/sha256");
    fs::write(&part, &bytes[..600_000]).unwrap();
    blob.download(&file, &Silent).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let [read] = &reads()[..] else {
        panic!("several requests");
    };
    assert_eq!(
        (read.header("range"), read.received),
        (Some("bytes=600000-"), 400_000)
    );

    // A wrong beginning is thrown away.
    fs::remove_file(&file).unwrap();
    fs::write(&part, [0; 1000]).unwrap();
    blob.download(&file, &Silent).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);

    fs::remove_file(&file).unwrap();
    let before = reads().len();
    let (one, two) = tokio::join!(blob.download(&file, &Silent), blob.download(&file, &Silent));
    one.and(two).unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(reads().len(), before + 1);
}

#[cfg(unix)]
#[test]
async fn a_full_disk_is_a_clear_error_and_leaves_no_file() {
    let docker = DockerRegistry::plain();
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let blob = put(&repository, &Bytes::from(noise(1_000_000, 8))).await;
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path().join("disk"), 500_000);
    let file = folder.path().join("disk/layer");
    let error = repository
        .blob(&blob)
        .download(&file, &Silent)
        .await
        .unwrap_err();
    drop(disk);
    assert_contains!(chain(&error), "layer.part", "No space left");
    assert!(!file.exists());
}

#[test(multi_thread)]
async fn skopeo_reads_what_was_pushed_and_we_read_what_skopeo_pushed() {
    let skopeo = |arguments: &[&str]| skopeo(&component("skopeo"), arguments);
    let docker = DockerRegistry::plain();
    let host = docker.host();
    let ours = repository(options(&host), &format!("{host}/ours"));
    let (manifest, layer) = push_image(&ours, "1").await;
    let image = format!("docker://{host}/ours:1");
    let raw = skopeo(&["inspect", "--raw", "--tls-verify=false", &image]);
    assert_eq!(raw, manifest);

    let copy = format!("docker://{host}/theirs:1");
    let plain = ["--src-tls-verify=false", "--dest-tls-verify=false"];
    skopeo(&[
        "copy", "--preserve-digests", plain[0], plain[1], &image, &copy,
    ]);
    let theirs = repository(options(&host), &format!("{host}/theirs"));
    assert_eq!(theirs.get_manifest("1").await.unwrap().bytes, manifest);
    assert_eq!(
        theirs.get_blob(&describe(&layer), 1_000_000).await.unwrap(),
        layer
    );
}
