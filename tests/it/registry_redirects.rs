//! Requests to other hosts: redirects, uploads elsewhere, foreign URLs.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use bytes::Bytes;
use serde_json::json;
use tokio::io::AsyncReadExt;
use wincimg_common::diagnose::Diagnose as _;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{BlobSource, HttpError, RegistryClient, RegistryError, RegistryOptions};
use wincimg_testkit::serve::{TestServer, serve};
use wincimg_testkit::{chain, describe, docker_config, loopback_options, options, repository};

/// A server with one blob that records request headers.
fn storage(bytes: &'static [u8]) -> (Arc<Mutex<Vec<HeaderMap>>>, TestServer) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let give = move |headers: HeaderMap| {
        log.lock().unwrap().push(headers);
        async move { bytes }
    };
    (seen, serve(Router::new().route("/data", any(give))))
}

/// A registry with a password that redirects every blob to a URL.
fn redirecting(to: String) -> TestServer {
    let answer = move |headers: HeaderMap| async move {
        match headers.get("authorization") {
            None => (
                StatusCode::UNAUTHORIZED,
                [("WWW-Authenticate", "Basic realm=\"x\"".to_owned())],
            ),
            Some(_) => (StatusCode::TEMPORARY_REDIRECT, [("Location", to)]),
        }
    };
    serve(Router::new().fallback(answer))
}

fn with_password(folder: &Path, host: &str) -> RegistryOptions {
    let entry = json!({ "username": "bob", "password": "sesame" });
    loopback_options(Some(docker_config(
        folder,
        &json!({ "auths": { host: entry } }),
    )))
}

#[test]
async fn a_redirect_to_another_host_is_followed_without_the_password() {
    let (seen, storage) = storage(b"from the storage");
    let server = redirecting(storage.url("data?signature=1"));
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let blob = describe(b"from the storage");
    assert_eq!(
        &repository.get_blob(&blob, 100).await.unwrap()[..],
        b"from the storage"
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].get("authorization"), None);
}

#[test]
async fn a_redirect_to_a_host_without_tls_that_is_not_listed_is_not_followed() {
    let (seen, storage) = storage(b"from the storage");
    let server = redirecting(storage.url("data?signature=very-secret"));
    let folder = tempfile::tempdir().unwrap();
    let options = RegistryOptions {
        insecure: vec![server.host()],
        ..with_password(folder.path(), &server.host())
    };
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository
        .get_blob(&describe(b"from the storage"), 100)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::Http(HttpError::InsecureUrl { .. })),
        "{error:?}"
    );
    assert!(!format!("{error:?} {error}").contains("very-secret"));
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
async fn a_redirect_to_a_file_is_called_that() {
    let server = redirecting("file:///etc/passwd".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    assert!(error.to_string().contains("invalid response"), "{error:?}");
}

#[test]
async fn redirects_without_end_are_an_error() {
    let server = redirecting("/v2/a/again".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    assert!(error.to_string().contains("is not followed"), "{error:?}");
}

#[test]
async fn an_upload_that_goes_to_another_host_goes_there_without_the_password() {
    let (seen, storage) = storage(b"");
    let location = storage.url("data");
    let answer = move |headers: HeaderMap| async move {
        match headers.get("authorization") {
            None => (
                StatusCode::UNAUTHORIZED,
                [("WWW-Authenticate", "Basic realm=\"x\"".to_owned())],
            ),
            Some(_) => (StatusCode::ACCEPTED, [("Location", location)]),
        }
    };
    let server = serve(Router::new().fallback(answer));
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    wincimg_testkit::put(&repository, &Bytes::from_static(b"bytes")).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].get("authorization"), None);
}

#[test]
async fn a_broken_connection_to_storage_does_not_show_the_signature_of_its_url() {
    let port = wincimg_testkit::docker_registry::free_port();
    let server = redirecting(format!(
        "http://127.0.0.1:{port}/data?signature=very-secret"
    ));
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    let printed = format!("{} {error:?}", chain(&error));
    assert_eq!(error.diagnosis().code, "network/unreachable");
    assert_contains!(printed, &format!("127.0.0.1:{port}"));
    assert!(!printed.contains("very-secret"), "{printed}");
}

#[test]
async fn a_foreign_layer_comes_from_the_first_of_its_urls_that_has_it() {
    let (seen, storage) = storage(b"foreign");
    let registry = RegistryClient::new(options("127.0.0.1"), Arc::new(Silent)).unwrap();
    let (_, login_page) = self::storage(b"<html>log in</html>");
    let urls = [
        storage.url("missing"),
        login_page.url("data"),
        storage.url("data"),
    ];
    let blob = registry.url_source(&urls, &describe(b"foreign"));
    let mut bytes = Vec::new();
    blob.open(0)
        .await
        .unwrap()
        .read_to_end(&mut bytes)
        .await
        .unwrap();
    assert_eq!(bytes, b"foreign");
    assert_eq!(seen.lock().unwrap()[0].get("authorization"), None);
}

#[test]
async fn a_foreign_layer_is_not_fetched_without_tls() {
    let (seen, storage) = storage(b"foreign");
    let registry = RegistryClient::new(options("elsewhere.lan"), Arc::new(Silent)).unwrap();
    let blob = registry.url_source(&[storage.url("data")], &describe(b"foreign"));
    let mut bytes = Vec::new();
    let error = blob
        .open(0)
        .await
        .unwrap()
        .read_to_end(&mut bytes)
        .await
        .unwrap_err();
    assert_contains!(error, &storage.host());
    assert!(seen.lock().unwrap().is_empty());
}
