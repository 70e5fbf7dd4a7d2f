//! Token servers: scopes, credentials, number of requests, and failures.

use std::sync::{Arc, Mutex};

use axum::response::Response;
use serde_json::json;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{AuthScheme, RegistryClient, RegistryError, RegistryOptions};
use wincimg_testkit::scripted::{RequestLog, ScriptedRequest, answer, scripted};
use wincimg_testkit::serve::TestServer;
use wincimg_testkit::{
    chain, describe, docker_config, loopback_login, loopback_options, repository,
};

/// State of a token server.
#[derive(Default)]
struct Tokens {
    /// Statuses with which it fails before it succeeds.
    failures: Vec<u16>,
    /// Number of tokens so far.
    issued: usize,
    /// The tokens that the registry accepts.
    valid: Vec<String>,
}

impl Tokens {
    fn issue(&mut self) -> Response {
        if let Some(status) = self.failures.pop() {
            return answer(status, &[], "no tokens today");
        }
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        self.valid.push(token.clone());
        let body = json!({ "token": token, "expires_in": 300 });
        answer(200, &[], body.to_string())
    }

    /// The response of the registry.
    fn open(&self, asked: &ScriptedRequest, realm: &str) -> Response {
        let sent = asked.header("authorization");
        let token = sent.and_then(|sent| sent.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.valid.iter().any(|valid| valid == token)) {
            let challenge =
                format!(r#"Bearer realm="{realm}",service="the registry",error="invalid_token""#);
            return answer(401, &[("WWW-Authenticate", &challenge)], "");
        }
        match asked.method.as_str() {
            "POST" => answer(201, &[], ""),
            _ if asked.path.ends_with("/tags/list") => answer(200, &[], r#"{"tags":["1"]}"#),
            _ => answer(200, &[], "{}"),
        }
    }
}

/// A token server, a registry that uses it, and the requests to both.
struct Office {
    tokens: Arc<Mutex<Tokens>>,
    asked: RequestLog,
    token_server: TestServer,
    shown: RequestLog,
    registry: TestServer,
}

impl Office {
    fn start() -> Self {
        Self::with_realm(|url| url)
    }

    /// The registry names its token server by another URL.
    fn with_realm(realm: impl FnOnce(String) -> String) -> Self {
        let tokens = Arc::<Mutex<Tokens>>::default();
        let issuing = Arc::clone(&tokens);
        let (asked, token_server) = scripted(move |_| issuing.lock().unwrap().issue());
        let realm = realm(token_server.url("token"));
        let valid = Arc::clone(&tokens);
        let (shown, registry) = scripted(move |asked| valid.lock().unwrap().open(asked, &realm));
        Self {
            tokens,
            asked,
            token_server,
            shown,
            registry,
        }
    }

    fn host(&self) -> String {
        self.registry.host()
    }

    fn fails(&self, status: u16, times: usize) {
        self.tokens.lock().unwrap().failures = vec![status; times];
    }
}

fn query(asked: &ScriptedRequest) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://x/?{}", asked.query)).unwrap();
    url.query_pairs().into_owned().collect()
}

#[track_caller]
fn assert_field(asked: &ScriptedRequest, name: &str, value: &str) {
    let fields = query(asked);
    let field = (name.to_owned(), value.to_owned());
    assert!(fields.contains(&field), "{fields:?}");
}

#[test]
async fn a_token_is_fetched_once_for_a_scope_and_used_again() {
    let office = Office::start();
    let name = format!("{}/some/app", office.host());
    let repository = repository(loopback_options(None), &name);
    for _ in 0..3 {
        assert_eq!(repository.tags().await.unwrap(), ["1"]);
    }
    let asked = office.asked.all();
    assert_eq!(asked.len(), 1);
    assert_field(&asked[0], "service", "the registry");
    assert_field(&asked[0], "scope", "repository:some/app:pull");
    assert_eq!(asked[0].header("authorization"), None);
}

#[test]
async fn many_requests_at_once_wait_for_one_token() {
    let office = Office::start();
    let repository = repository(loopback_options(None), &format!("{}/a", office.host()));
    let digest = describe(b"x").digest;
    let looks = (0..20).map(|_| repository.has_blob(&digest));
    for outcome in futures_util::future::join_all(looks).await {
        assert!(outcome.unwrap());
    }
    assert_eq!(office.asked.all().len(), 1);
}

#[test]
async fn a_token_that_expired_on_the_way_is_replaced() {
    let office = Office::start();
    let repository = repository(loopback_options(None), &format!("{}/a", office.host()));
    repository.tags().await.unwrap();
    office.tokens.lock().unwrap().valid.clear();
    repository.tags().await.unwrap();
    assert_eq!(office.asked.all().len(), 2);
}

#[test]
async fn a_mount_asks_for_both_repositories_and_a_push_token_also_reads() {
    let office = Office::start();
    let repository = repository(loopback_options(None), &format!("{}/target", office.host()));
    let digest = describe(b"x").digest;
    assert!(repository.mount_blob(&digest, "source").await.unwrap());
    repository.tags().await.unwrap();
    let asked = office.asked.all();
    assert_eq!(asked.len(), 1);
    assert_field(&asked[0], "scope", "repository:source:pull");
    assert_field(&asked[0], "scope", "repository:target:pull,push");
}

#[test]
async fn a_password_goes_to_the_token_server_and_only_the_token_to_the_registry() {
    let office = Office::start();
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &office.host());
    let repository = repository(options.clone(), &format!("{}/a", office.host()));
    repository.tags().await.unwrap();
    let registry = RegistryClient::new(options, Arc::new(Silent)).unwrap();
    let ping = registry.ping(&office.host()).await.unwrap();
    assert_eq!(ping.login, AuthScheme::Token);

    let asked = office.asked.all();
    assert_eq!(
        asked[0].header("authorization"),
        Some("Basic Ym9iOnNlc2FtZQ==")
    );
    let shown = office.shown.all();
    let mut shown = shown
        .iter()
        .filter_map(|asked| asked.header("authorization"));
    assert!(shown.all(|value| value.starts_with("Bearer token-")));
}

#[test]
async fn an_identity_token_is_exchanged_by_a_form() {
    let office = Office::start();
    let folder = tempfile::tempdir().unwrap();
    let entry = json!({ "identitytoken": "a b&c" });
    let file = docker_config(folder.path(), &json!({ "auths": { office.host(): entry } }));
    let options = loopback_options(Some(file));
    let repository = repository(options, &format!("{}/a", office.host()));
    repository.tags().await.unwrap();
    let asked = office.asked.all();
    assert_eq!(
        (asked[0].line().as_str(), asked[0].query.as_str()),
        ("POST /token", "")
    );
    let body = String::from_utf8_lossy(&asked[0].body);
    for field in [
        "grant_type=refresh_token",
        "refresh_token=a+b%26c",
        "scope=repository%3Aa%3Apull",
        "service=the+registry",
    ] {
        let is_sent = body.split('&').any(|found| found == field);
        assert!(is_sent, "{field} in {body}");
    }
}

#[test]
async fn a_token_server_that_stumbles_is_asked_again() {
    let office = Office::start();
    office.fails(502, 2);
    let repository = repository(loopback_options(None), &format!("{}/a", office.host()));
    assert_eq!(repository.tags().await.unwrap(), ["1"]);
}

#[test]
async fn a_token_server_that_fails_is_named() {
    let office = Office::start();
    office.fails(500, 99);
    let repository = repository(loopback_options(None), &format!("{}/a", office.host()));
    let error = repository.tags().await.unwrap_err();
    let (server, realm) = (office.host(), office.token_server.url("token"));
    assert_contains!(
        chain(&error),
        &server,
        &realm,
        "500 Internal Server Error",
        "no tokens today",
    );
    // Its attempts are not multiplied by ours.
    assert_eq!(office.asked.all().len(), 6);
}

#[test]
async fn a_token_server_of_another_site_gets_no_password_unless_it_is_named() {
    let office = Office::with_realm(|url| url.replace("127.0.0.1", "localhost"));
    let other = office.token_server.host().replace("127.0.0.1", "localhost");
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{}/a", office.host());
    let mut options = loopback_login(folder.path(), &office.host());
    options.insecure.push("localhost".to_owned());
    let refused = repository(options.clone(), &name).tags().await.unwrap_err();
    assert!(
        matches!(&refused, RegistryError::TokenServer { server, .. } if *server == other),
        "{refused:?}"
    );
    assert_eq!(office.asked.lines(), [""; 0]);

    options.token_servers = vec![other];
    assert_eq!(repository(options, &name).tags().await.unwrap(), ["1"]);
    assert!(office.asked.all()[0].header("authorization").is_some());
}

#[test]
async fn a_token_server_that_refuses_a_password_is_a_refusal_of_that_password() {
    let office = Office::start();
    office.fails(401, 99);
    let folder = tempfile::tempdir().unwrap();
    let options = loopback_login(folder.path(), &office.host());
    let repository = repository(options, &format!("{}/a", office.host()));
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
        let (_, tokens) = scripted(move |_| answer(200, &[], body));
        let realm = tokens.url("token");
        let (_, server) = scripted(move |asked| Tokens::default().open(asked, &realm));
        let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
        let printed = chain(&repository.tags().await.unwrap_err());
        assert_contains!(printed, &tokens.host());
        assert!(!printed.contains("very-secret"), "{printed}");
    }
}

#[test]
async fn a_token_server_without_tls_must_be_listed_too() {
    let office = Office::start();
    let options = RegistryOptions {
        insecure: vec![office.host()],
        ..loopback_options(None)
    };
    let repository = repository(options, &format!("{}/a", office.host()));
    let error = repository.tags().await.unwrap_err();
    let hint = error.diagnosis().hint.unwrap();
    let listing = format!("--insecure-registry {}", office.token_server.host());
    assert_contains!(hint, &listing);
    assert_eq!(office.asked.lines(), [""; 0]);
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
