//! Who may see a credential: token servers, other hosts, redirects, foreign URLs, helpers.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use serde_json::json;
use tokio::io::AsyncReadExt;
use wincimg::oci::registry::{BlobSource, Login, Options, Registry, RegistryError};
use wincimg::progress::Silent;

use support::docker_registry::{DockerRegistry, PASSWORD, Setup};
use support::serve::{Served, serve};
use support::{chain, describe, options, repository};

/// One request as a server saw it.
#[derive(Debug, Clone)]
struct Seen {
    method: Method,
    uri: Uri,
    authorization: Option<String>,
    body: String,
}

/// What a token server and the registry that believes it have seen, and how they answer.
#[derive(Default)]
struct Office {
    /// Requests to the token server.
    asked: Vec<Seen>,
    /// Requests to the registry.
    shown: Vec<Seen>,
    /// Statuses with which the token server fails before it works.
    failures: Vec<StatusCode>,
    /// The tokens that the registry takes; the newest is the last.
    valid: Vec<String>,
}

type Shared = Arc<Mutex<Office>>;

fn seen(method: &Method, uri: &Uri, headers: &HeaderMap, body: String) -> Seen {
    let authorization = headers.get("authorization");
    Seen {
        method: method.clone(),
        uri: uri.clone(),
        authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
        body,
    }
}

async fn give_token(
    State(office): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let mut office = office.lock().unwrap();
    office.asked.push(seen(&method, &uri, &headers, body));
    if let Some(status) = office.failures.pop() {
        return (status, "no tokens today").into_response();
    }
    let token = format!("token-{}", office.asked.len());
    office.valid.push(token.clone());
    json!({ "token": token, "expires_in": 300 })
        .to_string()
        .into_response()
}

async fn registry(
    State((office, realm)): State<(Shared, String)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let mut office = office.lock().unwrap();
    let request = seen(&method, &uri, &headers, String::new());
    let bearer = request.authorization.clone().unwrap_or_default();
    office.shown.push(request);
    if !office
        .valid
        .iter()
        .any(|token| bearer == format!("Bearer {token}"))
    {
        let challenge =
            format!(r#"Bearer realm="{realm}",service="the registry",error="invalid_token""#);
        return (StatusCode::UNAUTHORIZED, [("WWW-Authenticate", challenge)]).into_response();
    }
    if uri.path().ends_with("/tags/list") {
        return r#"{"tags":["1"]}"#.into_response();
    }
    if method == "POST" {
        return StatusCode::CREATED.into_response();
    }
    "{}".into_response()
}

/// A token server, a registry that sends people to it, and their common memory.
async fn office() -> (Shared, Served, Served) {
    let office = Shared::default();
    let tokens = Router::new()
        .route("/token", any(give_token))
        .with_state(office.clone());
    let tokens = serve(tokens).await;
    let realm = tokens.url("token");
    let router = Router::new()
        .fallback(registry)
        .with_state((office.clone(), realm));
    (office, tokens, serve(router).await)
}

fn config(folder: &std::path::Path, content: &serde_json::Value) -> std::path::PathBuf {
    let file = folder.join("config.json");
    fs::write(&file, content.to_string()).unwrap();
    file
}

/// Options for the office: every port of loopback is insecure, and passwords may go there.
fn open_options(config_file: Option<std::path::PathBuf>) -> Options {
    let base = options("127.0.0.1");
    Options {
        config_file: config_file.or(base.config_file.clone()),
        plain_credentials: true,
        ..base
    }
}

fn query(seen: &Seen) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://x{}", seen.uri)).unwrap();
    url.query_pairs().into_owned().collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_token_is_fetched_once_for_a_scope_and_used_again() {
    let (office, _tokens, server) = office().await;
    let repository = repository(open_options(None), &format!("{}/some/app", server.host()));
    for _ in 0..3 {
        assert_eq!(repository.tags().await.unwrap(), ["1"]);
    }
    let office = office.lock().unwrap();
    assert_eq!(office.asked.len(), 1);
    let fields = query(&office.asked[0]);
    assert!(
        fields.contains(&pair("service", "the registry")),
        "{fields:?}"
    );
    assert!(
        fields.contains(&pair("scope", "repository:some/app:pull")),
        "{fields:?}"
    );
    assert_eq!(office.asked[0].authorization, None);
}

#[tokio::test]
async fn many_requests_at_once_wait_for_one_token() {
    let (office, _tokens, server) = office().await;
    let repository = repository(open_options(None), &format!("{}/a", server.host()));
    let digest = describe(b"x").digest().clone();
    let looks = (0..20).map(|_| repository.has_blob(&digest));
    for outcome in futures_util::future::join_all(looks).await {
        assert!(outcome.unwrap());
    }
    assert_eq!(office.lock().unwrap().asked.len(), 1);
}

#[tokio::test]
async fn a_token_that_expired_on_the_way_is_replaced() {
    let (office, _tokens, server) = office().await;
    let repository = repository(open_options(None), &format!("{}/a", server.host()));
    repository.tags().await.unwrap();
    office.lock().unwrap().valid.clear();
    repository.tags().await.unwrap();
    assert_eq!(office.lock().unwrap().asked.len(), 2);
}

#[tokio::test]
async fn a_mount_asks_for_both_repositories_and_a_push_token_also_reads() {
    let (office, _tokens, server) = office().await;
    let repository = repository(open_options(None), &format!("{}/target", server.host()));
    let digest = describe(b"x").digest().clone();
    assert!(repository.mount_blob(&digest, "source").await.unwrap());
    repository.tags().await.unwrap();
    let office = office.lock().unwrap();
    assert_eq!(office.asked.len(), 1);
    let fields = query(&office.asked[0]);
    assert!(
        fields.contains(&pair("scope", "repository:source:pull")),
        "{fields:?}"
    );
    assert!(
        fields.contains(&pair("scope", "repository:target:pull,push")),
        "{fields:?}"
    );
}

#[tokio::test]
async fn a_password_goes_to_the_token_server_and_only_the_token_to_the_registry() {
    let (office, _tokens, server) = office().await;
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "username": "bob", "password": "sesame" });
    let file = config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    let options = open_options(Some(file));
    repository(options.clone(), &format!("{}/a", server.host()))
        .tags()
        .await
        .unwrap();
    let registry = Registry::new(options, Arc::new(Silent)).unwrap();
    let ping = registry.ping(&server.host()).await.unwrap();
    assert_eq!(ping.login, Login::Token);

    let office = office.lock().unwrap();
    assert_eq!(
        office.asked[0].authorization.as_deref(),
        Some("Basic Ym9iOnNlc2FtZQ==")
    );
    let shown = office
        .shown
        .iter()
        .filter_map(|request| request.authorization.as_deref());
    assert!(
        shown
            .into_iter()
            .all(|value| value.starts_with("Bearer token-"))
    );
}

#[tokio::test]
async fn an_identity_token_is_exchanged_by_a_form() {
    let (office, _tokens, server) = office().await;
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "identitytoken": "a b&c" });
    let file = config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    repository(open_options(Some(file)), &format!("{}/a", server.host()))
        .tags()
        .await
        .unwrap();
    let office = office.lock().unwrap();
    let asked = &office.asked[0];
    assert_eq!((asked.method.as_str(), asked.uri.query()), ("POST", None));
    for field in [
        "grant_type=refresh_token",
        "refresh_token=a+b%26c",
        "scope=repository%3Aa%3Apull",
        "service=the+registry",
    ] {
        assert!(
            asked.body.split('&').any(|found| found == field),
            "{field} in {}",
            asked.body
        );
    }
}

#[tokio::test]
async fn a_token_server_that_stumbles_is_asked_again() {
    let (office, _tokens, server) = office().await;
    office.lock().unwrap().failures = vec![StatusCode::BAD_GATEWAY; 2];
    let repository = repository(open_options(None), &format!("{}/a", server.host()));
    assert_eq!(repository.tags().await.unwrap(), ["1"]);
}

#[tokio::test]
async fn a_token_server_that_fails_is_named() {
    let (office, tokens, server) = office().await;
    office.lock().unwrap().failures = vec![StatusCode::INTERNAL_SERVER_ERROR; 99];
    let repository = repository(open_options(None), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    let said = chain(&error);
    let expected = format!(
        "cannot get a token for {} from {}",
        server.host(),
        tokens.url("token")
    );
    assert!(said.contains(&expected), "{said}");
    assert!(
        said.contains("500 Internal Server Error: no tokens today"),
        "{said}"
    );
    assert_eq!(
        office.lock().unwrap().asked.len(),
        6,
        "its attempts are not multiplied by ours"
    );
}

#[tokio::test]
async fn a_token_server_that_refuses_a_password_is_a_refusal_of_that_password() {
    let (office, _tokens, server) = office().await;
    office.lock().unwrap().failures = vec![StatusCode::UNAUTHORIZED; 99];
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "username": "bob", "password": "sesame" });
    let file = config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    let repository = repository(open_options(Some(file)), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    assert!(
        matches!(error, RegistryError::Unauthorized { .. }),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("tried user \"bob\" from "),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("sesame"));
}

#[tokio::test]
async fn a_token_answer_that_is_none_does_not_show_its_content() {
    let tokens = serve(Router::new().route("/token", get(|| async { "\"very-secret\"" }))).await;
    let state = (Shared::default(), tokens.url("token"));
    let server = serve(Router::new().fallback(registry).with_state(state)).await;
    let repository = repository(open_options(None), &format!("{}/a", server.host()));
    let said = chain(&repository.tags().await.unwrap_err());
    assert!(said.contains("no JSON object with a token"), "{said}");
    assert!(!said.contains("very-secret"), "{said}");
}

#[tokio::test]
async fn a_token_server_without_tls_must_be_listed_too() {
    let (office, tokens, server) = office().await;
    let options = Options {
        insecure: vec![server.host()],
        ..open_options(None)
    };
    let error = repository(options, &format!("{}/a", server.host()))
        .tags()
        .await
        .unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.contains(&format!("--insecure-registry {}", tokens.host())),
        "{hint}"
    );
    assert_eq!(office.lock().unwrap().asked.len(), 0);
}

/// A server that gives one blob and remembers the headers it was asked with.
async fn storage(bytes: &'static [u8]) -> (Arc<Mutex<Vec<HeaderMap>>>, Served) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let give = move |headers: HeaderMap| {
        log.lock().unwrap().push(headers);
        async move { bytes }
    };
    (seen, serve(Router::new().route("/data", any(give))).await)
}

/// A registry with a password that redirects every blob to a URL.
async fn redirecting(to: String) -> Served {
    let answer = move |headers: HeaderMap| async move {
        match headers.get("authorization") {
            None => (
                StatusCode::UNAUTHORIZED,
                [("WWW-Authenticate", "Basic realm=\"x\"".to_owned())],
            ),
            Some(_) => (StatusCode::TEMPORARY_REDIRECT, [("Location", to)]),
        }
    };
    serve(Router::new().fallback(answer)).await
}

fn with_password(folder: &std::path::Path, host: &str) -> Options {
    let entry = json!({ "username": "bob", "password": "sesame" });
    open_options(Some(config(folder, &json!({ "auths": { host: entry } }))))
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_without_the_password() {
    let (seen, storage) = storage(b"from the storage").await;
    let server = redirecting(storage.url("data?signature=1")).await;
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

#[tokio::test]
async fn a_redirect_to_a_host_without_tls_that_is_not_listed_is_not_followed() {
    let (seen, storage) = storage(b"from the storage").await;
    let server = redirecting(storage.url("data?signature=very-secret")).await;
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        insecure: vec![server.host()],
        ..with_password(folder.path(), &server.host())
    };
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository
        .get_blob(&describe(b"from the storage"), 100)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::InsecureUrl { .. }),
        "{error:?}"
    );
    assert!(!format!("{error:?} {error}").contains("very-secret"));
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn redirects_without_end_are_an_error() {
    let server = redirecting("/v2/a/again".to_owned()).await;
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    assert!(matches!(error, RegistryError::Redirect { .. }), "{error:?}");
}

#[tokio::test]
async fn an_upload_that_goes_to_another_host_goes_there_without_the_password() {
    let (seen, storage) = storage(b"").await;
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
    let server = serve(Router::new().fallback(answer)).await;
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    support::put(&repository, &Bytes::from_static(b"bytes")).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].get("authorization"), None);
}

#[tokio::test]
async fn a_broken_connection_to_storage_does_not_show_the_signature_of_its_url() {
    let port = support::docker_registry::free_port();
    let server = redirecting(format!(
        "http://127.0.0.1:{port}/data?signature=very-secret"
    ))
    .await;
    let folder = tempfile::tempdir().unwrap();
    let options = with_password(folder.path(), &server.host());
    let repository = repository(options, &format!("{}/a", server.host()));
    let error = repository.get_blob(&describe(b"x"), 100).await.unwrap_err();
    let said = format!("{} {error:?}", chain(&error));
    assert!(
        said.contains(&format!("cannot reach 127.0.0.1:{port}")),
        "{said}"
    );
    assert!(!said.contains("very-secret"), "{said}");
}

#[tokio::test]
async fn a_foreign_layer_comes_from_the_first_of_its_urls_that_has_it() {
    let (seen, storage) = storage(b"foreign").await;
    let registry = Registry::new(options("127.0.0.1"), Arc::new(Silent)).unwrap();
    let urls = [storage.url("missing"), storage.url("data")];
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

#[tokio::test]
async fn a_foreign_layer_is_not_fetched_without_tls() {
    let (seen, storage) = storage(b"foreign").await;
    let registry = Registry::new(options("elsewhere.lan"), Arc::new(Silent)).unwrap();
    let blob = registry.url_source(&[storage.url("data")], &describe(b"foreign"));
    let mut bytes = Vec::new();
    let error = blob
        .open(0)
        .await
        .unwrap()
        .read_to_end(&mut bytes)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("is plain HTTP"), "{error}");
    assert!(seen.lock().unwrap().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_helper_is_asked_and_named() {
    use std::os::unix::fs::PermissionsExt;

    if let Some(argument) = support::child_argument() {
        let (host, file) = argument.split_once(' ').unwrap();
        let options = Options {
            config_file: Some(file.into()),
            ..options(host)
        };
        let registry = Registry::new(options, Arc::new(Silent)).unwrap();
        let ping = registry.ping(host).await.unwrap();
        assert!(
            ping.credential
                .starts_with("user \"bob\" from docker-credential-test (")
        );
        return;
    }
    let setup = Setup {
        tls: true,
        password: true,
    };
    let Some(docker) = DockerRegistry::start(setup) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("docker-credential-test");
    let answer = json!({ "ServerURL": "x", "Username": "bob", "Secret": PASSWORD });
    fs::write(
        &helper,
        format!("#!/bin/sh\ncat >/dev/null\necho '{answer}'\n"),
    )
    .unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    for content in [
        json!({ "credHelpers": { docker.host(): "test" } }),
        json!({ "auths": { docker.host(): {} }, "credsStore": "test" }),
    ] {
        let file = config(folder.path(), &content);
        let argument = format!("{} {}", docker.host(), file.display());
        support::in_child(
            "a_credential_helper_is_asked_and_named",
            &argument,
            &[("PATH", &path)],
        );
    }
}

#[tokio::test]
async fn docker_config_names_the_folder_of_the_configuration() {
    if let Some(host) = support::child_argument() {
        let options = Options {
            config_file: None,
            ..options(&host)
        };
        let registry = Registry::new(options, Arc::new(Silent)).unwrap();
        assert_eq!(registry.ping(&host).await.unwrap().login, Login::Basic);
        return;
    }
    let setup = Setup {
        tls: true,
        password: true,
    };
    let Some(docker) = DockerRegistry::start(setup) else {
        return;
    };
    let file = docker.docker_config(&docker.host(), PASSWORD);
    support::in_child(
        "docker_config_names_the_folder_of_the_configuration",
        &docker.host(),
        &[("DOCKER_CONFIG", file.parent().unwrap().to_str().unwrap())],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_from_the_environment_is_used_but_not_for_this_machine() {
    if let Some(argument) = support::child_argument() {
        let (host, expected) = argument.split_once(' ').unwrap();
        let registry = Registry::new(options(host), Arc::new(Silent)).unwrap();
        assert_eq!(registry.ping(host).await.is_ok(), expected == "answers");
        return;
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let answer = move |uri: Uri| {
        log.lock().unwrap().push(uri.to_string());
        async { "{}" }
    };
    let proxy = serve(Router::new().fallback(answer)).await;
    let environment = [("HTTP_PROXY", proxy.url("")), ("NO_PROXY", String::new())];
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let test = "a_proxy_from_the_environment_is_used_but_not_for_this_machine";

    let local = format!(
        "127.0.0.1:{} refuses",
        support::docker_registry::free_port()
    );
    support::in_child(test, &local, &environment);
    assert!(asked.lock().unwrap().is_empty());

    support::in_child(test, "registry.invalid:5000 answers", &environment);
    assert!(
        asked
            .lock()
            .unwrap()
            .iter()
            .all(|uri| uri.ends_with("/v2/"))
    );
    assert!(!asked.lock().unwrap().is_empty());
}
