//! Registries that hide content from anonymous clients, over TLS: the client sends no credential
//! before it is challenged, and some registries never challenge.

use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{RegistryError, RegistryOptions};
use wincimg_testkit::scripted::{ScriptedRequest, answer, scripted, scripted_tls};
use wincimg_testkit::serve::TestServer;
use wincimg_testkit::{
    describe, docker_config, login_config, loopback_login, loopback_options, repository,
};

const DIGEST: &str = "sha256:6c3c624b58dbbcd3c0dd82b4c53f04194d1247c6eebdaab7c610cf7d66709b3b";
/// `bob:sesame`
const BOB: &str = "Basic Ym9iOnNlc2FtZQ==";

/// Options that trust only this server's CA, with a password for it.
fn trusting(server: &TestServer, folder: &tempfile::TempDir) -> RegistryOptions {
    RegistryOptions {
        config_file: Some(login_config(folder.path(), &server.host())),
        ..wincimg_testkit::trusting(server.ca())
    }
}

/// Accepts bob; anonymous clients get `status` except at the root, which has the challenge.
fn hiding(status: u16) -> impl Fn(&ScriptedRequest) -> Response + Clone {
    move |asked| match (asked.path.as_str(), asked.header("authorization")) {
        (_, Some(BOB)) => answer(200, &[], r#"{"tags":["1"]}"#),
        ("/v2/", _) => answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], ""),
        _ => answer(status, &[], ""),
    }
}

#[test]
async fn what_is_hidden_without_a_challenge_is_asked_for_again_with_the_credential() {
    for status in [401, 403, 404] {
        let (log, server) = scripted_tls(hiding(status));
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(trusting(&server, &folder), &format!("{}/a", server.host()));
        assert_eq!(repository.tags().await.unwrap(), ["1"], "{status}");
        assert_eq!(repository.tags().await.unwrap(), ["1"], "{status}");
        let list = "GET /v2/a/tags/list";
        assert_eq!(log.lines(), [list, "GET /v2/", list, list], "{status}");
    }
}

#[test]
async fn a_registry_that_asks_for_nothing_is_asked_for_a_challenge_once() {
    let absent = |asked: &ScriptedRequest| match asked.path.as_str() {
        "/v2/" => answer(200, &[], "{}"),
        _ => answer(404, &[], ""),
    };
    let (log, server) = scripted_tls(absent);
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(trusting(&server, &folder), &format!("{}/a", server.host()));
    for _ in 0..3 {
        assert!(repository.head_manifest("1").await.unwrap().is_none());
    }
    assert_eq!(log.count("GET", "/v2/"), 1);
    assert_eq!(log.all().len(), 4);
}

#[test]
async fn without_a_credential_nothing_more_is_asked() {
    let (log, server) = scripted_tls(hiding(404));
    let options = wincimg_testkit::trusting(server.ca());
    let repository = repository(options, &format!("{}/a", server.host()));
    assert!(repository.tags().await.unwrap_err().is_not_found());
    assert_eq!(log.lines(), ["GET /v2/a/tags/list"]);
}

#[test]
async fn a_credential_that_was_not_sent_is_not_said_to_be_tried() {
    let refusing = |asked: &ScriptedRequest| match asked.path.as_str() {
        "/v2/" => answer(200, &[], "{}"),
        _ => answer(403, &[], r#"{"message":"not from here"}"#),
    };
    let (log, server) = scripted_tls(refusing);
    let folder = tempfile::tempdir().unwrap();
    let repository = repository(trusting(&server, &folder), &format!("{}/a", server.host()));
    let printed = repository.tags().await.unwrap_err().to_string();
    let sent = |asked: &ScriptedRequest| asked.header("authorization").is_some();
    assert!(!log.all().iter().any(sent));
    assert_contains!(printed, "\"bob\"");
    assert!(!printed.contains("tried user"), "{printed}");
    assert!(printed.ends_with("not from here"), "{printed}");
}

#[test]
async fn a_repository_is_asked_for_with_the_credential_of_its_own() {
    let only_team = |asked: &ScriptedRequest| match asked.header("authorization") {
        // `team:x`
        Some("Basic dGVhbTp4") => answer(200, &[], r#"{"tags":["1"]}"#),
        _ => answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], ""),
    };
    let (_log, server) = scripted(only_team);
    let folder = tempfile::tempdir().unwrap();
    let host = server.host();
    let config = json!({ "auths": {
        host.clone(): { "username": "bob", "password": "sesame" },
        format!("{host}/team"): { "username": "team", "password": "x" },
    }});
    let options = loopback_options(Some(docker_config(folder.path(), &config)));
    let team = repository(options.clone(), &format!("{host}/team/app"));
    assert_eq!(team.tags().await.unwrap(), ["1"]);
    let others = repository(options, &format!("{host}/teams/app"));
    let printed = others.tags().await.unwrap_err().to_string();
    assert_contains!(printed, "\"bob\"");
}

/// A registry that issues every token and then rejects it as insufficient.
fn insufficient(asked: &ScriptedRequest) -> Response {
    let realm = format!("http://{}/token", asked.header("host").unwrap());
    let challenge = format!(r#"Bearer realm="{realm}",service="x",error="insufficient_scope""#);
    match (asked.path.as_str(), asked.header("authorization")) {
        ("/token", _) => answer(200, &[], r#"{"token":"t"}"#),
        ("/v2/", Some(_)) => answer(200, &[], "{}"),
        _ => answer(401, &[("WWW-Authenticate", &challenge)], ""),
    }
}

#[test]
async fn what_is_pushed_to_is_asked_about_with_the_right_to_write() {
    let (log, server) = scripted(insufficient);
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{}/new/app", server.host());
    let target = repository(loopback_login(folder.path(), &server.host()), &name).for_push();
    let blob = describe(b"x");
    assert!(target.head_manifest("1").await.unwrap().is_none());
    assert!(!target.has_blob(&blob.digest).await.unwrap());
    let all = log.all();
    let scopes = all.iter().filter_map(|asked| asked.field("scope"));
    let scopes: Vec<_> = scopes.collect();
    assert!(!scopes.is_empty());
    for scope in scopes {
        assert_eq!(scope, "repository%3Anew%2Fapp%3Apull%2Cpush");
    }
}

#[test]
async fn a_known_user_who_may_not_push_is_told_to_ask_the_owner() {
    let (_log, forbidden) = scripted(|asked: &ScriptedRequest| {
        if asked.header("authorization").is_some() {
            return answer(403, &[], "");
        }
        answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], "")
    });
    let (_log, insufficient) = scripted(insufficient);
    for server in [forbidden, insufficient] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("{}/a", server.host());
        let target = repository(loopback_login(folder.path(), &server.host()), &name).for_push();
        let (blob, bytes) = (describe(b"x"), Bytes::from_static(b"x"));
        let put = target.put_blob(&blob.digest, blob.size, &bytes, &Silent);
        let error = put.await.unwrap_err();
        let hint = error.diagnosis().hint.unwrap();
        assert_contains!(hint, "ask the owner of the repository", "wincimg login");
    }
}

#[test]
async fn a_refusal_to_say_what_exists_ends_a_pull_and_not_a_push() {
    for (status, known) in [(403, true), (401, false)] {
        let (_log, server) = scripted(move |asked: &ScriptedRequest| match asked.path.as_str() {
            "/v2/" => answer(401, &[("WWW-Authenticate", "Basic realm=\"x\"")], ""),
            _ => answer(status, &[], ""),
        });
        let folder = tempfile::tempdir().unwrap();
        let source = repository(
            loopback_login(folder.path(), &server.host()),
            &format!("{}/a", server.host()),
        );
        source.head_manifest("1").await.unwrap_err();
        let asked = source.for_push().head_manifest("1").await;
        // A refused password is wrong: another request would count as another failed login.
        assert_eq!(asked.is_ok(), known, "{status}: {asked:?}");
        if let Err(error) = asked {
            assert!(
                matches!(error, RegistryError::Denied { status, .. } if status == 401),
                "{error:?}"
            );
        }
    }
}

#[test]
async fn a_registry_without_head_is_asked_by_get_from_then_on() {
    for status in [400, 405, 501] {
        let (log, server) = scripted(move |asked: &ScriptedRequest| {
            match (asked.method.as_str(), asked.path.as_str()) {
                ("HEAD", _) => answer(status, &[], ""),
                (_, "/v2/a/manifests/1") => answer(200, &[("Docker-Content-Digest", DIGEST)], ""),
                _ => answer(404, &[], ""),
            }
        });
        let repository = repository(loopback_options(None), &format!("{}/a", server.host()));
        let found = repository.has_blob(&describe(b"x").digest).await.unwrap();
        assert!(!found, "{status}");
        assert!(repository.head_manifest("2").await.unwrap().is_none());
        let heads = log
            .all()
            .iter()
            .filter(|asked| asked.method == "HEAD")
            .count();
        // The first response may be that of a TLS server.
        let expected = if status == 400 { 2 } else { 1 };
        assert_eq!(heads, expected, "{status}");
    }
}
