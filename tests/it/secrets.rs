//! Secrets are never sent to another host, whatever the redirect: origin × location of the secret ×
//! status × requester.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use wincimg_common::progress::Silent;
use wincimg_oci::remote::{RegistryOptions, Repository};
use wincimg_testkit::scripted::{RequestLog, ScriptedRequest, answer, scripted};
use wincimg_testkit::serve::TestServer;
use wincimg_testkit::{describe, docker_config, loopback_options, repository};

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
/// A password, a refresh token, a token and the state of an upload.
const SECRETS: [&str; 5] = [
    "sesame-password",
    "Ym9iOnNlc2FtZS1wYXNzd29yZA",
    "sesame-refresh",
    "sesame-token",
    "sesame-state",
];

/// The server that responds with a redirect.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RedirectingServer {
    Registry,
    Token,
    Upload,
}

/// Location of the secret.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SecretLocation {
    Header,
    Query,
    Body,
}

/// The server that redirects, and the one that must not receive a secret.
struct SecretSetup {
    own: (RequestLog, TestServer),
    other: (RequestLog, TestServer),
    _folder: tempfile::TempDir,
    repository: Repository,
}

/// The other host: another port, or another name of the same machine.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

impl SecretSetup {
    fn new(place: RedirectingServer, part: SecretLocation, status: u16, name: &str) -> Self {
        let other = scripted(|_| answer(200, &[], r#"{"token":"sesame-token","tags":[]}"#));
        let target = other.1.url("taken").replace("127.0.0.1", name);
        let own = scripted(move |asked: &ScriptedRequest| {
            let away = || answer(status, &[("Location", &target)], "");
            let bearer = asked.header("authorization") == Some("Bearer sesame-token");
            let known = asked.header("authorization").is_some();
            let host = asked.header("host").unwrap_or_default();
            match (asked.path.as_str(), place) {
                ("/token", RedirectingServer::Token) => away(),
                ("/token", _) => answer(200, &[], r#"{"token":"sesame-token"}"#),
                (_, RedirectingServer::Token | RedirectingServer::Upload) if !bearer => {
                    let realm = format!("Bearer realm=\"http://{host}/token\"");
                    answer(401, &[("WWW-Authenticate", &realm)], "")
                }
                (_, RedirectingServer::Registry) if !known => {
                    answer(401, &[("WWW-Authenticate", "Basic realm=\"r\"")], "")
                }
                ("/v2/", _) => answer(200, &[], "{}"),
                (path, RedirectingServer::Upload)
                    if path.ends_with("/uploads/") && part == SecretLocation::Query =>
                {
                    answer(202, &[("Location", "/v2/a/state?_state=sesame-state")], "")
                }
                _ => away(),
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let entry = match part {
            SecretLocation::Body if place == RedirectingServer::Token => {
                json!({ "identitytoken": "sesame-refresh" })
            }
            _ => json!({ "username": "bob", "password": "sesame-password" }),
        };
        let auths = json!({ "auths": { own.1.host(): entry } });
        let options = RegistryOptions {
            insecure: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
            timeout: Some(Duration::from_secs(20)),
            ..loopback_options(Some(docker_config(folder.path(), &auths)))
        };
        let repository = repository(options, &format!("{}/a", own.1.host()));
        Self {
            own,
            other,
            _folder: folder,
            repository,
        }
    }
}

fn secrets_in(log: &RequestLog) -> Vec<String> {
    let received = log.all().into_iter().map(|asked| {
        let headers: Vec<String> = asked
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
            .collect();
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        format!(
            "{} ?{}\n{}\n\n{body}",
            asked.line(),
            asked.query,
            headers.join("\n")
        )
    });
    received
        .filter(|received| SECRETS.iter().any(|secret| received.contains(secret)))
        .collect()
}

#[test]
async fn no_redirect_takes_a_secret_to_another_host() {
    let mut followed = 0;
    for place in [
        RedirectingServer::Registry,
        RedirectingServer::Token,
        RedirectingServer::Upload,
    ] {
        for part in [
            SecretLocation::Header,
            SecretLocation::Query,
            SecretLocation::Body,
        ] {
            for status in STATUSES {
                for name in NAMES {
                    let world = SecretSetup::new(place, part, status, name);
                    let blob = Bytes::from_static(b"a blob");
                    let digest = describe(&blob).digest;
                    // The result does not matter here.
                    let _ = world.repository.tags().await;
                    let _ = world.repository.has_blob(&digest).await;
                    let _ = world.repository.put_blob(&digest, 6, &blob, &Silent).await;
                    let manifest = Bytes::from_static(b"{}");
                    let _ = world.repository.put_manifest("1", "x/y", manifest).await;
                    let reported = secrets_in(&world.other.0);
                    assert!(
                        reported.is_empty(),
                        "{place:?} {part:?} {status} {name}: {reported:?}"
                    );
                    let asked = secrets_in(&world.own.0);
                    assert!(
                        !asked.is_empty(),
                        "{place:?} {part:?} {status}: no secret was sent"
                    );
                    followed += world.other.0.all().len();
                }
            }
        }
    }
    // Otherwise nothing was tested.
    assert!(followed > 100, "{followed}");
}

/// A redirect to the same host is followed with the credential.
#[test]
async fn on_the_same_host_a_redirect_is_followed_with_the_credential() {
    for status in STATUSES {
        let (log, served) = scripted(move |asked: &ScriptedRequest| {
            let known = asked.header("authorization").is_some();
            match asked.path.as_str() {
                "/v2/" => answer(200, &[], "{}"),
                "/moved" if known => answer(200, &[], r#"{"tags":["1"]}"#),
                _ if known => answer(status, &[("Location", "/moved")], ""),
                _ => answer(401, &[("WWW-Authenticate", "Basic realm=\"r\"")], ""),
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let entry = json!({ "username": "bob", "password": "sesame-password" });
        let auths = json!({ "auths": { served.host(): entry } });
        let options = loopback_options(Some(docker_config(folder.path(), &auths)));
        let repository = repository(options, &format!("{}/a", served.host()));
        assert_eq!(repository.tags().await.unwrap(), ["1"], "{status}");
        assert_eq!(log.count("GET", "/moved"), 1);
    }
}

/// The catalog uses no credential; one in its URL is sent nowhere either.
#[test]
fn the_address_of_a_catalog_has_no_password() {
    for status in STATUSES {
        let other = scripted(|_| answer(200, &[], "<html></html>"));
        let target = other.1.url("taken");
        let own = scripted(move |_: &ScriptedRequest| answer(status, &[("Location", &target)], ""));
        let address = format!("http://bob:sesame-password@{}/", own.1.host());
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .args(["hotfix", "search", "KB4549949", "--catalog", &address])
            .args(["--insecure-registry", "127.0.0.1", "--timeout", "10s"])
            .output()
            .unwrap();
        assert!(!output.status.success());
        assert_eq!(secrets_in(&other.0), [""; 0], "{status}");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!printed.contains("sesame"), "{printed}");
    }
}
