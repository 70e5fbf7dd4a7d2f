//! The registry client against a real registry, as users meet one.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use wincimg::oci::registry::{Connection, Login, Options, Registry, RegistryError, Repository};
use wincimg::progress::Silent;

use support::docker_registry::{DockerRegistry, PASSWORD, Setup, USER};
use support::proxy::{Fault, FaultProxy};
use support::{chain, component, describe, noise, options, put, repository};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

fn plain() -> Option<DockerRegistry> {
    DockerRegistry::start(Setup::default())
}

/// A small image: a configuration, a layer, and the manifest that names both.
async fn push_image(repository: &Repository, tag: &str) -> (Bytes, Bytes) {
    let config = Bytes::from(json!({"os": "windows", "architecture": "amd64"}).to_string());
    let layer = Bytes::from(noise(200_000, 7));
    put(repository, &config).await;
    put(repository, &layer).await;
    let entry = |bytes: &Bytes, media_type: &str| {
        json!({
            "mediaType": media_type,
            "size": bytes.len(),
            "digest": describe(bytes).digest().to_string(),
        })
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": entry(&config, "application/vnd.docker.container.image.v1+json"),
        "layers": [entry(&layer, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
    });
    let manifest = Bytes::from(manifest.to_string());
    repository
        .put_manifest(tag, MANIFEST, manifest.clone())
        .await
        .unwrap();
    (manifest, layer)
}

#[tokio::test]
async fn what_is_pushed_is_there_and_reads_back() {
    let Some(docker) = plain() else { return };
    let repository = repository(
        options(&docker.host()),
        &format!("{}/some/app", docker.host()),
    );
    let bytes = Bytes::from(noise(3_000_000, 1));
    let blob = describe(&bytes);
    assert!(!repository.has_blob(blob.digest()).await.unwrap());
    put(&repository, &bytes).await;
    assert!(repository.has_blob(blob.digest()).await.unwrap());
    assert_eq!(repository.get_blob(&blob, 4_000_000).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_blob_without_bytes_goes_there_and_back() {
    let Some(docker) = plain() else { return };
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let blob = put(&repository, &Bytes::new()).await;
    assert_eq!(repository.get_blob(&blob, 10).await.unwrap(), Bytes::new());
}

#[tokio::test]
async fn a_manifest_keeps_its_bytes_its_type_and_its_digest() {
    let Some(docker) = plain() else { return };
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let (manifest, _) = push_image(&repository, "1.0").await;
    let digest = describe(&manifest).digest().clone();
    for which in ["1.0", digest.as_ref()] {
        let found = repository.get_manifest(which).await.unwrap();
        assert_eq!(
            (&found.bytes, found.media_type.as_str()),
            (&manifest, MANIFEST)
        );
        assert_eq!(found.digest, digest);
        assert_eq!(
            repository.head_manifest(which).await.unwrap(),
            Some(found.descriptor())
        );
    }
}

#[tokio::test]
async fn a_manifest_that_is_not_there_is_no_error_to_look_for_and_one_to_read() {
    let Some(docker) = plain() else { return };
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    assert_eq!(repository.head_manifest("none").await.unwrap(), None);
    let error = repository.get_manifest("none").await.unwrap_err();
    assert!(error.is_not_found());
    let expected = format!(
        "{0} failed to read manifest none of {0}/a: 404 Not Found: ",
        docker.host()
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn tags_are_listed_and_an_unknown_repository_is_an_error() {
    let Some(docker) = plain() else { return };
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

#[tokio::test]
async fn a_large_blob_goes_up_in_pieces() {
    let Some(docker) = plain() else { return };
    let proxy = FaultProxy::start(docker.host(), |_| Fault::Pass).await;
    let options = Options {
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

#[tokio::test]
async fn a_blob_is_mounted_from_another_repository() {
    let Some(docker) = plain() else { return };
    let host = docker.host();
    let source = repository(options(&host), &format!("{host}/source"));
    let target = repository(options(&host), &format!("{host}/target"));
    let blob = put(&source, &Bytes::from_static(b"shared")).await;
    assert!(!target.has_blob(blob.digest()).await.unwrap());
    assert!(target.mount_blob(blob.digest(), "source").await.unwrap());
    assert!(target.has_blob(blob.digest()).await.unwrap());
}

#[tokio::test]
async fn an_upload_that_is_opened_instead_of_a_mount_is_used() {
    let Some(docker) = plain() else { return };
    let proxy = FaultProxy::start(docker.host(), |_| Fault::Pass).await;
    let target = repository(options(&proxy.host()), &format!("{}/target", proxy.host()));
    let bytes = Bytes::from_static(b"nowhere yet");
    assert!(
        !target
            .mount_blob(describe(&bytes).digest(), "source")
            .await
            .unwrap()
    );
    put(&target, &bytes).await;
    assert_eq!(proxy.requests("POST", "/uploads/").len(), 1);
}

#[tokio::test]
async fn a_blob_streams_from_one_registry_to_another() {
    let (Some(one), Some(two)) = (plain(), plain()) else {
        return;
    };
    let source = repository(options(&one.host()), &format!("{}/a", one.host()));
    let target = repository(options(&two.host()), &format!("{}/b", two.host()));
    let bytes = Bytes::from(noise(5_000_000, 3));
    let blob = put(&source, &bytes).await;
    let remote = source.blob(&blob);
    target
        .put_blob(blob.digest(), blob.size(), &remote, &Silent)
        .await
        .unwrap();
    assert_eq!(target.get_blob(&blob, 5_000_000).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_download_goes_on_from_what_an_earlier_one_left() {
    let Some(docker) = plain() else { return };
    let proxy = FaultProxy::start(docker.host(), |_| Fault::Pass).await;
    let repository = repository(options(&proxy.host()), &format!("{}/a", proxy.host()));
    let bytes = Bytes::from(noise(1_000_000, 4));
    let blob = put(&repository, &bytes).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer");
    fs::write(folder.path().join("layer.part"), &bytes[..600_000]).unwrap();
    repository
        .download_blob(&blob, &file, &Silent)
        .await
        .unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let reads = proxy.requests("GET", "/blobs/sha256");
    assert_eq!(reads.len(), 1);
    assert_eq!(
        (reads[0].header("range"), reads[0].received),
        (Some("bytes=600000-"), 400_000)
    );
}

#[tokio::test]
async fn a_wrong_beginning_is_thrown_away() {
    let Some(docker) = plain() else { return };
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let bytes = Bytes::from(noise(1_000_000, 5));
    let blob = put(&repository, &bytes).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer");
    fs::write(folder.path().join("layer.part"), [0; 1000]).unwrap();
    repository
        .download_blob(&blob, &file, &Silent)
        .await
        .unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[tokio::test]
async fn two_downloads_of_one_file_do_not_disturb_each_other() {
    let Some(docker) = plain() else { return };
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let bytes = Bytes::from(noise(1_000_000, 6));
    let blob = put(&repository, &bytes).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer");
    let (one, two) = tokio::join!(
        repository.download_blob(&blob, &file, &Silent),
        repository.download_blob(&blob, &file, &Silent),
    );
    one.and(two).unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_leaves_no_file() {
    let Some(docker) = plain() else { return };
    let repository = repository(options(&docker.host()), &format!("{}/a", docker.host()));
    let blob = put(&repository, &Bytes::from(noise(1_000_000, 8))).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("layer.part")).unwrap();
    let error = repository
        .download_blob(&blob, &file, &Silent)
        .await
        .unwrap_err();
    let said = chain(&error);
    assert!(
        said.contains("cannot write") && said.contains("layer.part"),
        "{said}"
    );
    assert!(said.contains("No space left"), "{said}");
    assert!(!file.exists());
}

fn skopeo(arguments: &[&str]) -> Option<Vec<u8>> {
    let program = component("skopeo")?;
    let output = Command::new(program)
        .arg("--insecure-policy")
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "skopeo {arguments:?}: {said}");
    Some(output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn skopeo_reads_what_was_pushed_and_we_read_what_skopeo_pushed() {
    let Some(docker) = plain() else { return };
    let host = docker.host();
    let ours = repository(options(&host), &format!("{host}/ours"));
    let (manifest, layer) = push_image(&ours, "1").await;
    let image = format!("docker://{host}/ours:1");
    let Some(raw) = skopeo(&["inspect", "--raw", "--tls-verify=false", &image]) else {
        return;
    };
    assert_eq!(raw, manifest);

    let copy = format!("docker://{host}/theirs:1");
    let plain = ["--src-tls-verify=false", "--dest-tls-verify=false"];
    skopeo(&[
        "copy",
        "--preserve-digests",
        plain[0],
        plain[1],
        &image,
        &copy,
    ])
    .unwrap();
    let theirs = repository(options(&host), &format!("{host}/theirs"));
    assert_eq!(theirs.get_manifest("1").await.unwrap().bytes, manifest);
    assert_eq!(
        theirs.get_blob(&describe(&layer), 1_000_000).await.unwrap(),
        layer
    );
}

#[tokio::test]
async fn a_certificate_of_an_unknown_ca_is_refused_until_its_ca_or_its_host_is_named() {
    let setup = Setup {
        tls: true,
        ..Setup::default()
    };
    let Some(docker) = DockerRegistry::start(setup) else {
        return;
    };
    let host = docker.host();
    let secure = Options {
        insecure: Vec::new(),
        ..options(&host)
    };

    let error = repository(secure.clone(), &format!("{host}/a"))
        .head_manifest("1")
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::Certificate { .. }),
        "{error:?}"
    );
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("SSL_CERT_FILE") && hint.contains(&format!("--insecure-registry {host}"))
    );

    let trusting = Options {
        extra_roots: Some(docker.ca()),
        ..secure
    };
    let registry = Registry::new(trusting, Arc::new(Silent)).unwrap();
    assert_eq!(
        registry.ping(&host).await.unwrap().connection,
        Connection::Https
    );

    let listed = Registry::new(options(&host), Arc::new(Silent)).unwrap();
    assert_eq!(
        listed.ping(&host).await.unwrap().connection,
        Connection::UnverifiedHttps
    );
    let pushed = repository(options(&host), &format!("{host}/a"));
    push_image(&pushed, "1").await;
}

#[tokio::test]
async fn ssl_cert_file_names_a_ca() {
    if let Some(host) = support::child_argument() {
        let secure = Options {
            insecure: Vec::new(),
            ..options(&host)
        };
        push_image(&repository(secure, &format!("{host}/a")), "1").await;
        return;
    }
    let setup = Setup {
        tls: true,
        ..Setup::default()
    };
    let Some(docker) = DockerRegistry::start(setup) else {
        return;
    };
    let ca = docker.ca();
    support::in_child(
        "ssl_cert_file_names_a_ca",
        &docker.host(),
        &[("SSL_CERT_FILE", ca.to_str().unwrap())],
    );
}

#[tokio::test]
async fn plain_http_is_refused_with_the_flag_that_allows_it() {
    let Some(docker) = plain() else { return };
    let host = docker.host();
    let secure = Options {
        insecure: Vec::new(),
        ..options(&host)
    };
    let error = repository(secure, &format!("{host}/a"))
        .tags()
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::PlainHttp { .. }),
        "{error:?}"
    );
    assert!(
        error
            .hint()
            .unwrap()
            .contains(&format!("--insecure-registry {host}"))
    );
}

#[tokio::test]
async fn nobody_there_says_so() {
    let host = format!("127.0.0.1:{}", support::docker_registry::free_port());
    let error = repository(options(&host), &format!("{host}/a"))
        .tags()
        .await
        .unwrap_err();
    let said = chain(&error);
    assert!(said.contains("gave up after 6 attempts"), "{said}");
    assert!(said.contains(&format!("cannot reach {host}")), "{said}");
    assert!(said.contains("refused"), "{said}");
}

fn locked(tls: bool) -> Option<DockerRegistry> {
    DockerRegistry::start(Setup {
        tls,
        password: true,
    })
}

#[tokio::test]
async fn a_password_from_docker_config_opens_a_locked_registry() {
    let Some(docker) = locked(true) else { return };
    let host = docker.host();
    let options = Options {
        config_file: Some(docker.docker_config(&host, PASSWORD)),
        ..options(&host)
    };
    push_image(&repository(options.clone(), &format!("{host}/a")), "1").await;

    let registry = Registry::new(options, Arc::new(Silent)).unwrap();
    let ping = registry.ping(&host).await.unwrap();
    assert_eq!(ping.login, Login::Basic);
    assert!(
        ping.credential.starts_with(&format!("user {USER:?} from ")),
        "{}",
        ping.credential
    );
    assert!(!format!("{registry:?} {ping:?}").contains(PASSWORD));
}

#[tokio::test]
async fn a_refusal_says_which_credential_from_where_was_tried() {
    let Some(docker) = locked(true) else { return };
    let host = docker.host();
    let nobody = repository(options(&host), &format!("{host}/a"));
    let error = nobody.tags().await.unwrap_err();
    assert!(
        matches!(error, RegistryError::Unauthorized { .. }),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("tried no credential (none in "),
        "{error}"
    );
    assert!(error.to_string().contains("empty-config.json"), "{error}");
    assert!(
        error
            .hint()
            .unwrap()
            .contains(&format!("docker login {host}"))
    );

    let file = docker.docker_config(&host, "wrong secret");
    let config_file = Some(file.clone());
    let wrong = repository(
        Options {
            config_file,
            ..options(&host)
        },
        &format!("{host}/a"),
    );
    let error = wrong.tags().await.unwrap_err();
    let tried = format!("tried user \"bob\" from {}", file.display());
    assert!(error.to_string().contains(&tried), "{error}");
    assert!(!format!("{error:?} {}", chain(&error)).contains("wrong secret"));
}

#[tokio::test]
async fn a_password_goes_over_plain_http_only_if_that_is_asked_for() {
    let Some(docker) = locked(false) else { return };
    let seen = FaultProxy::start(docker.host(), |_| Fault::Pass).await;
    let host = seen.host();
    let careful = Options {
        config_file: Some(docker.docker_config(&host, PASSWORD)),
        ..options(&host)
    };
    let error = repository(careful.clone(), &format!("{host}/a"))
        .head_manifest("1")
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::PlainCredentials { .. }),
        "{error:?}"
    );
    assert!(
        seen.log()
            .iter()
            .all(|request| request.header("authorization").is_none())
    );

    let asked = Options {
        plain_credentials: true,
        ..careful
    };
    push_image(&repository(asked, &format!("{host}/a")), "1").await;
}

#[tokio::test]
async fn a_configuration_that_is_not_there_is_named() {
    let Some(docker) = locked(true) else { return };
    let host = docker.host();
    let config_file = Some(Path::new("/nonexistent/config.json").to_owned());
    let repository = repository(
        Options {
            config_file,
            ..options(&host)
        },
        &format!("{host}/a"),
    );
    let error = repository.tags().await.unwrap_err();
    assert!(
        error.to_string().contains("/nonexistent/config.json"),
        "{error}"
    );
}
