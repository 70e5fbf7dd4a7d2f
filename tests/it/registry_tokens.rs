//! Token servers: scopes, credentials, number of requests, and failures.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde_json::json;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{AuthScheme, RegistryClient, RegistryError, RegistryOptions};
use wincimg_testkit::scripted::{ScriptedRequest, answer, scripted};
use wincimg_testkit::serve::{TestServer, serve};
use wincimg_testkit::{chain, describe, docker_config, loopback_options, repository};

/// A request received by a server.
#[derive(Debug, Clone)]
struct ReceivedRequest {
    method: Method,
    uri: Uri,
    authorization: Option<String>,
    body: String,
}

/// Requests received by a token server and its registry, and their responses.
#[derive(Default)]
struct TokenServerLog {
    /// Requests to the token server.
    asked: Vec<ReceivedRequest>,
    /// Requests to the registry.
    shown: Vec<ReceivedRequest>,
    /// Statuses with which the token server fails before it succeeds.
    failures: Vec<StatusCode>,
    /// The tokens that the registry accepts, the newest last.
    valid: Vec<String>,
}

type Shared = Arc<Mutex<TokenServerLog>>;

fn seen(method: &Method, uri: &Uri, headers: &HeaderMap, body: String) -> ReceivedRequest {
    let authorization = headers.get("authorization");
    ReceivedRequest {
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

/// A token server, a registry that uses it, and their shared state.
fn office() -> (Shared, TestServer, TestServer) {
    let office = Shared::default();
    let tokens = Router::new()
        .route("/token", any(give_token))
        .with_state(office.clone());
    let tokens = serve(tokens);
    let realm = tokens.url("token");
    let router = Router::new()
        .fallback(registry)
        .with_state((office.clone(), realm));
    (office, tokens, serve(router))
}

fn query(seen: &ReceivedRequest) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://x{}", seen.uri)).unwrap();
    url.query_pairs().into_owned().collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
async fn a_token_is_fetched_once_for_a_scope_and_used_again() {
    let (office, _tokens, server) = office();
    let repository = repository(
        loopback_options(None),
        &format!("{}/some/app", server.host()),
    );
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

#[test]
async fn many_requests_at_once_wait_for_one_token() {
    let (office, _tokens, server) = office();
    let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
    let digest = describe(b"x").digest;
    let looks = (0..20).map(|_| repository.has_blob(&digest));
    for outcome in futures_util::future::join_all(looks).await {
        assert!(outcome.unwrap());
    }
    assert_eq!(office.lock().unwrap().asked.len(), 1);
}

#[test]
async fn a_token_that_expired_on_the_way_is_replaced() {
    let (office, _tokens, server) = office();
    let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
    repository.tags().await.unwrap();
    office.lock().unwrap().valid.clear();
    repository.tags().await.unwrap();
    assert_eq!(office.lock().unwrap().asked.len(), 2);
}

#[test]
async fn a_mount_asks_for_both_repositories_and_a_push_token_also_reads() {
    let (office, _tokens, server) = office();
    let repository = repository(loopback_options(None), &format!("{}/target", server.host()));
    let digest = describe(b"x").digest;
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

#[test]
async fn a_password_goes_to_the_token_server_and_only_the_token_to_the_registry() {
    let (office, _tokens, server) = office();
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "username": "bob", "password": "sesame" });
    let file = docker_config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    let options = loopback_options(Some(file));
    repository(options.clone(), &format!("{}/a", server.host()))
        .tags()
        .await
        .unwrap();
    let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
    let ping = registry.ping(&server.host()).await.unwrap();
    assert_eq!(ping.login, AuthScheme::Token);

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

#[test]
async fn an_identity_token_is_exchanged_by_a_form() {
    let (office, _tokens, server) = office();
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "identitytoken": "a b&c" });
    let file = docker_config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    repository(
        loopback_options(Some(file)),
        &format!("{}/a", server.host()),
    )
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

#[test]
async fn a_token_server_that_stumbles_is_asked_again() {
    let (office, _tokens, server) = office();
    office.lock().unwrap().failures = vec![StatusCode::BAD_GATEWAY; 2];
    let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
    assert_eq!(repository.tags().await.unwrap(), ["1"]);
}

#[test]
async fn a_token_server_that_fails_is_named() {
    let (office, tokens, server) = office();
    office.lock().unwrap().failures = vec![StatusCode::INTERNAL_SERVER_ERROR; 99];
    let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
    let error = repository.tags().await.unwrap_err();
    let printed = chain(&error);
    let (server, realm) = (server.host(), tokens.url("token"));
    assert_contains!(
        printed,
        &server,
        &realm,
        "500 Internal Server Error",
        "no tokens today",
    );
    assert_eq!(
        office.lock().unwrap().asked.len(),
        6,
        "its attempts are not multiplied by ours"
    );
}

#[test]
async fn a_token_server_of_another_site_gets_no_password_unless_it_is_named() {
    let office = Shared::default();
    let tokens = serve(
        Router::new()
            .route("/token", any(give_token))
            .with_state(office.clone()),
    );
    let other = tokens.host().replace("127.0.0.1", "localhost");
    let realm = format!("http://{other}/token");
    let server = serve(
        Router::new()
            .fallback(registry)
            .with_state((office.clone(), realm)),
    );
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "username": "bob", "password": "sesame" });
    let file = docker_config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    let name = format!("{}/a", server.host());
    let mut options = loopback_options(Some(file));
    options.insecure.push("localhost".to_owned());
    let refused = repository(options.clone(), &name).tags().await.unwrap_err();
    assert!(
        matches!(&refused, RegistryError::TokenServer { server, .. } if *server == other),
        "{refused:?}"
    );
    assert!(office.lock().unwrap().asked.is_empty());

    options.token_servers = vec![other];
    assert_eq!(repository(options, &name).tags().await.unwrap(), ["1"]);
    assert!(office.lock().unwrap().asked[0].authorization.is_some());
}

#[test]
async fn a_token_server_that_refuses_a_password_is_a_refusal_of_that_password() {
    let (office, _tokens, server) = office();
    office.lock().unwrap().failures = vec![StatusCode::UNAUTHORIZED; 99];
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "username": "bob", "password": "sesame" });
    let file = docker_config(folder.path(), &json!({ "auths": { server.host(): entry } }));
    let repository = repository(
        loopback_options(Some(file)),
        &format!("{}/a", server.host()),
    );
    let error = repository.tags().await.unwrap_err();
    assert!(
        matches!(error, RegistryError::Denied { status, .. } if status == 401),
        "{error:?}"
    );
    assert_contains!(error, "\"bob\"");
    assert!(!format!("{error:?}").contains("sesame"));
}

#[test]
async fn a_token_answer_that_is_none_does_not_show_its_content() {
    for body in ["\"very-secret\"", r#"{"token": "very-secret\n"}"#] {
        let tokens = serve(Router::new().route("/token", get(move || async move { body })));
        let state = (Shared::default(), tokens.url("token"));
        let server = serve(Router::new().fallback(registry).with_state(state));
        let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
        let printed = chain(&repository.tags().await.unwrap_err());
        assert_contains!(printed, &tokens.host());
        assert!(!printed.contains("very-secret"), "{printed}");
    }
}

#[test]
async fn a_token_server_without_tls_must_be_listed_too() {
    let (office, tokens, server) = office();
    let options = RegistryOptions {
        insecure: vec![server.host()],
        ..loopback_options(None)
    };
    let error = repository(options, &format!("{}/a", server.host()))
        .tags()
        .await
        .unwrap_err();
    let hint = error.diagnosis().hint.unwrap();
    assert_contains!(hint, &format!("--insecure-registry {}", tokens.host()));
    assert_eq!(office.lock().unwrap().asked.len(), 0);
}

#[test]
async fn a_token_is_found_in_every_answer_that_has_one() {
    for body in [
        r#"{"token":"t","access_token":"t","expires_in":300,"issued_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"access_token":"t","token":"t","refresh_token":null}"#,
        r#"{"access_token":"t"}"#,
        r#"{"token":"","access_token":"t"}"#,
        r#"{"token":null,"access_token":"t"}"#,
        r#"{"token":"t","expires_in":"300"}"#,
        r#"{"token":"t","expires_in":300.5}"#,
        r#"{"token":"t","expires_in":-1}"#,
        r#"{"token":"t","expires_in":1e300}"#,
        r#"{"token":"t","expires_in":null,"issued_at":null,"scope":null,"x":{"y":[1]}}"#,
        r#"{"token":"t","expires_in":"soon"}"#,
        r#"{"token":"t","expires_in":{}}"#,
    ] {
        let (log, server) = scripted(move |asked: &ScriptedRequest| {
            let realm = format!("http://{}/token", asked.header("host").unwrap());
            let challenge = format!(r#"Bearer realm="{realm}",service="x""#);
            match (asked.path.as_str(), asked.header("authorization")) {
                ("/token", _) => answer(200, &[], body),
                (_, Some("Bearer t")) => answer(200, &[], r#"{"tags":["1"]}"#),
                _ => answer(401, &[("WWW-Authenticate", &challenge)], ""),
            }
        });
        let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
        for _ in 0..2 {
            assert_eq!(repository.tags().await.unwrap(), ["1"], "{body}");
        }
        assert_eq!(log.count("GET", "/token"), 1, "{body}");
    }
}
