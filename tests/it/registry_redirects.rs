//! Requests to other hosts: redirects, uploads elsewhere, foreign URLs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use axum::response::Response;
use bytes::Bytes;
use tokio::io::AsyncReadExt;
use wincimg_common::diagnose::Diagnose as _;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{BlobSource, HttpError, RegistryClient, RegistryError, RegistryOptions};
use wincimg_testkit::scripted::{RequestLog, ScriptedRequest, answer, scripted};
use wincimg_testkit::serve::TestServer;
use wincimg_testkit::{chain, describe, loopback_login, loopback_options, options, repository};

/// A server with one blob, at `data`.
fn storage(content: &'static str) -> (RequestLog, TestServer) {
    scripted(move |asked| match asked.path.as_str() {
        "/data" => answer(200, &[], content),
        _ => answer(404, &[], ""),
    })
}

/// A registry with a password that answers each request with a status and a location.
fn redirecting(status: u16, to: String) -> TestServer {
    let respond = move |asked: &ScriptedRequest| -> Response {
        match asked.header("authorization") {
            None => answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], ""),
            Some(_) => answer(status, &[("Location", &to)], ""),
        }
    };
    scripted(respond).1
}

#[test]
async fn a_redirect_to_another_host_is_followed_without_the_password() {
    let (seen, storage) = storage("from the storage");
    let server = redirecting(307, storage.url("data?signature=1"));
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let blob = describe(b"from the storage");
    assert_eq!(
        &repository.get_blob(&blob, 100).await.unwrap()[..],
        b"from the storage"
    );
    let seen = seen.all();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header("authorization"), None);
}

#[test]
async fn a_redirect_to_a_host_without_tls_that_is_not_listed_is_not_followed() {
    let (seen, storage) = storage("from the storage");
    let server = redirecting(307, storage.url("data?signature=very-secret"));
    let folder = tempfile::tempdir().unwrap();
    let options = RegistryOptions {
        insecure: vec![server.host()],
        ..loopback_login(folder.path(), &server.host())
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
    assert_eq!(seen.lines(), [""; 0]);
}

#[test]
async fn a_redirect_to_a_file_is_called_that() {
    let server = redirecting(307, "file:///etc/passwd".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    assert_contains!(error, "invalid response");
}

#[test]
async fn redirects_without_end_are_an_error() {
    let server = redirecting(307, "/v2/a/again".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    assert_contains!(error, "is not followed");
}

#[test]
async fn an_upload_that_goes_to_another_host_goes_there_without_the_password() {
    let (seen, storage) = storage("");
    let server = redirecting(202, storage.url("data"));
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    wincimg_testkit::put(&repository, &Bytes::from_static(b"bytes")).await;
    let seen = seen.all();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header("authorization"), None);
}

#[test]
async fn a_broken_connection_to_storage_does_not_show_the_signature_of_its_url() {
    let port = wincimg_testkit::docker_registry::free_port();
    let server = redirecting(
        307,
        format!("http://127.0.0.1:{port}/data?signature=very-secret"),
    );
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    let printed = format!("{} {error:?}", chain(&error));
    assert_eq!(error.diagnosis().code, "network/unreachable");
    assert_contains!(printed, &format!("127.0.0.1:{port}"));
    assert!(!printed.contains("very-secret"), "{printed}");
}

#[test]
async fn a_foreign_layer_comes_from_the_first_of_its_urls_that_has_it() {
    let (seen, storage) = storage("foreign");
    let registry = RegistryClient::new(options("127.0.0.1"), Arc::new(Silent)).unwrap();
    let (_, login_page) = self::storage("<html>log in</html>");
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
    let asked = seen.all();
    assert_eq!(asked[0].header("authorization"), None);
}

#[test]
async fn a_foreign_layer_is_not_fetched_without_tls() {
    let (seen, storage) = storage("foreign");
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
    assert_eq!(seen.lines(), [""; 0]);
}

/// Two requests find the protocol.
#[test]
async fn invalid_headers_are_an_answer_that_is_not_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            seen.fetch_add(1, Ordering::Relaxed);
            let _ = client.read(&mut [0; 8192]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
        }
    });
    let repository = repository(loopback_options(None), &format!("{host}/a"));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    assert_eq!(error.diagnosis().code, "network/answer");
    assert!(count.load(Ordering::Relaxed) <= 3);
}
