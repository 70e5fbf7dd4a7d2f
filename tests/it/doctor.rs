//! `wincimg doctor` with healthy and faulty registries.

use assert_cmd::Command;
use axum::response::{Html, IntoResponse as _};
use serde_json::Value;
use wincimg_testkit::NO_CREDENTIALS;
use wincimg_testkit::docker_registry::{DockerRegistry, PASSWORD, Setup, free_port};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::proxy::{FaultProxy, ProxiedRequest, ProxyFault};
use wincimg_testkit::scripted::{answer, scripted};

use crate::failure::Fails;
use crate::fake_catalog::FakeCatalog;
use crate::site::{answer_of, wincimg};

fn doctor(arguments: &[&str]) -> Command {
    let mut command = wincimg(&std::env::temp_dir(), &["doctor", "--timeout", "5s"]);
    command
        .env_remove("DOCKER_HOST")
        .env_remove("DOCKER_CONTEXT")
        // Nothing outside this machine is reachable: the proxy does not exist.
        .env("HTTPS_PROXY", format!("http://127.0.0.1:{}", free_port()))
        .env("NO_PROXY", "127.0.0.1,localhost,0.0.0.0")
        .args(arguments);
    command
}

/// The doctor with a registry of bases and without credentials.
fn with_base(base: &FakeRegistry, arguments: &[&str]) -> Command {
    let mut command = doctor(arguments);
    command
        .args(["--insecure-registry", &base.host()])
        .args(["--base-registry", &base.host()]);
    if !arguments.contains(&"--registry-config") {
        command.args(["--registry-config", NO_CREDENTIALS]);
    }
    command
}

/// The exit code, and the registry checks about a subject.
fn checks_of(command: &mut Command, subject: &str) -> (i32, Vec<Value>) {
    let (code, document) = answer_of(command);
    let about = document["checks"].as_array().unwrap().iter();
    let about = about.filter(|check| check["subject"] == subject).cloned();
    (code, about.collect())
}

/// The same with a healthy registry of bases, so that all problems come from the subject.
fn checks(arguments: &[&str], subject: &str) -> (i32, Vec<Value>) {
    checks_of(&mut with_base(&good_base(), arguments), subject)
}

/// A healthy base registry.
fn good_base() -> FakeRegistry {
    let registry = FakeRegistry::start();
    registry.publish("windows/nanoserver", &["10.0.17763.973"], "10.0.17763.973");
    registry
}

#[test]
fn a_registry_that_is_well_is_ok_in_every_line() {
    let base = good_base();
    let (code, checks) = checks_of(&mut with_base(&base, &[]), &base.host());
    assert_eq!(code, 0, "{checks:#?}");
    let names: Vec<&Value> = checks.iter().map(|check| &check["check"]).collect();
    assert_eq!(names, ["registry", "credentials", "base images"]);
    assert_contains!(checks[0]["finding"], "HTTP");
    assert_contains!(checks[2]["finding"], "nanoserver", '1');
    let text = with_base(&base, &[]).prints();
    let is_well = |line: &str| line.starts_with("ok       ") || line.starts_with("skipped  ");
    assert!(text.lines().all(is_well), "{text}");
    assert_contains!(text, "ok       registry ", "skipped  docker daemon ");
}

#[test]
fn plain_http_that_is_not_listed_is_a_problem_with_the_flag_as_its_fix() {
    let server = FakeRegistry::start();
    // An address that leads to this machine but is not among its own.
    let other = server.host().replace("127.0.0.1", "0.0.0.0");
    let (code, checks) = checks(&["--registry", &other], &other);
    assert_eq!(code, 1);
    assert_eq!(checks[0]["check"], "registry");
    let listing = format!("--insecure-registry {other}");
    assert_contains!(checks[0]["fix"], &listing);
}

#[test]
fn a_server_that_is_not_a_registry_is_named_as_one() {
    let (_, missing) = scripted(|_| answer(404, &[], "no such page"));
    let (_, portal) = scripted(|_| Html("<html>Sign in</html>").into_response());
    for other in [missing, portal] {
        let host = other.host();
        let (code, checks) = checks(&["--insecure-registry", &host], &host);
        assert_eq!(code, 1);
        let fix = checks[0]["fix"].as_str().unwrap();
        assert!(fix.contains("/v2/") && !fix.contains("tag"), "{fix}");
    }
}

#[test]
fn a_registry_that_is_not_running_is_a_problem() {
    let nobody = format!("127.0.0.1:{}", free_port());
    let (code, checks) = checks(&["--insecure-registry", &nobody], &nobody);
    assert_eq!(code, 1);
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0]["state"], "problem");
    assert_contains!(checks[0]["fix"], "HTTPS_PROXY");
}

#[test]
fn a_broken_credential_file_is_the_thing_to_fix() {
    let base = good_base();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    std::fs::write(&config, "{").unwrap();
    let config = config.to_str().unwrap();
    let mut command = with_base(&base, &["--registry-config", config]);
    let (code, checks) = checks_of(&mut command, &base.host());
    assert_eq!(code, 1);
    assert_eq!(checks[0]["check"], "credentials");
    let fix = checks[0]["fix"].as_str().unwrap();
    assert!(fix.starts_with(&format!("correct {config}")), "{fix}");
}

#[test]
fn a_mirror_without_base_images_says_how_to_fill_it() {
    let base = good_base();
    let prefix = format!("{}/mcr.microsoft.com", base.host());
    let arguments = [
        ["--registry-config", NO_CREDENTIALS],
        ["--insecure-registry", &base.host()],
        ["--base-registry", &prefix],
    ];
    let (code, checks) = checks_of(&mut doctor(arguments.as_flattened()), &prefix);
    assert_eq!(code, 1);
    assert_contains!(checks[0]["fix"], "wincimg image mirror base:nanoserver");
}

#[test]
fn a_password_is_proved_and_a_wrong_one_named_without_showing_it() {
    let registry = DockerRegistry::start(Setup::TLS_AND_PASSWORD);
    let host = registry.host();
    let with_password = |password: &str| {
        let config = registry.docker_config(&host, password);
        let config = ["--registry-config", config.to_str().unwrap()];
        checks(
            &[&config[..], &["--insecure-registry", &host]].concat(),
            &host,
        )
    };
    let (code, good) = with_password(PASSWORD);
    assert_eq!(code, 0, "{good:#?}");
    assert_eq!(good[0]["state"], "ok", "{good:#?}");
    assert_contains!(good[1]["finding"].as_str().unwrap(), "user \"bob\"");

    let (code, bad) = with_password("a guess");
    assert_eq!(code, 1);
    assert_eq!(bad[0]["check"], "credentials");
    assert!(!bad[0]["finding"].as_str().unwrap().contains("a guess"));
    assert_contains!(bad[0]["fix"], "wincimg login");
}

#[test]
fn a_certificate_is_verified_unless_the_registry_is_listed() {
    let base = good_base();
    let registry = DockerRegistry::start(Setup::TLS);
    let host = registry.host();
    let mut command = with_base(&base, &["--registry", &host]);
    let (code, untrusted) = checks_of(&mut command, &host);
    assert_eq!(code, 1);
    assert_contains!(untrusted[0]["fix"], "--ca-file FILE");

    with_base(&base, &["--registry", &host])
        .env("SSL_CERT_FILE", registry.ca())
        .assert()
        .code(0);
}

#[test]
fn a_catalog_that_is_named_has_to_answer() {
    let catalog = FakeCatalog::start();
    catalog.publish("Some update (KB4549949)", &[("a.msu", Vec::new())]);
    let address = format!("http://{}/", catalog.host);
    let named = ["--catalog", &address];
    let (code, unlisted) = checks(&named, &address);
    assert_eq!(code, 1);
    assert_eq!(unlisted[0]["check"], "update catalog");
    let listing = format!("--insecure-registry {}", catalog.host);
    assert_contains!(unlisted[0]["fix"], &listing);

    let listed = [&named[..], &["--insecure-registry", &catalog.host]].concat();
    let (code, answers) = checks(&listed, &address);
    assert_eq!(
        code, 0,
        "the catalog's host is not a registry: {answers:#?}"
    );
    assert_eq!(answers[0]["state"], "ok", "{answers:#?}");
    assert_contains!(answers[0]["finding"], "KB4549949");

    let nobody = format!("http://127.0.0.1:{}/", free_port());
    let listed = ["--catalog", &nobody, "--insecure-registry", "127.0.0.1"];
    let (code, silent) = checks(&listed, &nobody);
    assert_eq!(code, 1);
    assert_contains!(silent[0]["fix"], "--catalog");
}

#[test]
fn an_error_that_a_catalog_answers_is_not_the_networks() {
    const REDIRECT: &[(&str, &str)] = &[("location", "http://elsewhere.lan/")];
    for (status, headers) in [(302, REDIRECT), (500, &[]), (403, &[]), (404, &[])] {
        let (_, server) = scripted(move |_| answer(status, headers, ""));
        let host = server.host();
        let address = format!("http://{host}/");
        let arguments = ["--insecure-registry", &host, "--catalog", &address];
        let (code, checks) = checks(&arguments, &address);
        assert_eq!(code, 1);
        let fix = checks[0]["fix"].as_str().unwrap();
        assert!(fix.contains("answers") && !fix.contains("DNS"), "{fix}");
    }
}

#[test]
fn a_site_without_a_way_to_microsofts_catalog_is_well_all_the_same() {
    let microsofts = "https://www.catalog.update.microsoft.com/";
    let (code, catalog) = checks(&[], microsofts);
    assert_eq!(code, 0, "{catalog:#?}");
    assert_eq!(catalog[0]["state"], "skipped", "{catalog:#?}");
    assert_contains!(catalog[0]["finding"], "--catalog");
}

/// The result of a trial push, one line for each check of the repository.
fn trial(host: &str) -> (i32, Vec<String>) {
    let repository = format!("{host}/team/trial");
    let arguments = [
        "--insecure-registry", host, "--registry", &repository, "--push",
    ];
    let (code, found) = checks(&arguments, &repository);
    let line = |check: &Value| {
        let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
        let state = text("state");
        format!(
            "{state} {}: {} | {}",
            text("check"),
            text("finding"),
            text("fix")
        )
    };
    (code, found.iter().map(line).collect())
}

#[test]
fn a_trial_push_shows_what_a_registry_takes_and_leaves_nothing() {
    let docker = DockerRegistry::plain();
    let mut known = Vec::new();
    for _ in 0..2 {
        let (code, lines) = trial(&docker.host());
        assert_eq!(code, 0, "{lines:#?}");
        known.push(lines[0].clone());
        let is_well = |(line, check): (&String, &str)| {
            line.starts_with(&format!("ok {check}: ")) && line.ends_with(" | ")
        };
        assert_eq!(lines.len(), 4, "{lines:#?}");
        let mut all = lines[1..].iter().zip(["upload", "mount", "manifest"]);
        assert!(all.all(is_well), "{lines:#?}");
    }
    // Without a repository, and with one without tags.
    assert_ne!(known[0], known[1]);
    assert!(known[1].contains('0'), "{known:#?}");
}

#[test(multi_thread)]
async fn a_trial_push_says_what_a_registry_lacks_and_what_becomes_of_it() {
    let docker = DockerRegistry::plain();
    let rule = |passed: &ProxiedRequest| {
        let docker_format = passed.header("content-type") == Some(wincimg_testkit::DOCKER_MANIFEST);
        match passed.method.as_str() {
            "PATCH" | "DELETE" => ProxyFault::Answer(405, Vec::new(), String::new()),
            "POST" if passed.path.contains("mount=") => {
                ProxyFault::Answer(403, Vec::new(), String::new())
            }
            "PUT" if docker_format => ProxyFault::Answer(415, Vec::new(), String::new()),
            _ => ProxyFault::Pass,
        }
    };
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let (_, healthy) = trial(&docker.host());
    let (code, lines) = trial(&proxy.host());
    assert_eq!(code, 1);
    for (line, check) in [(1, "upload"), (2, "mount")] {
        let is_ok = lines[line].starts_with(&format!("ok {check}: "));
        assert!(is_ok && lines[line] != healthy[line], "{lines:#?}");
    }
    assert!(lines[3].starts_with("problem manifest: "), "{lines:#?}");
    assert_contains!(lines[3], "OCI", "Docker");
    assert!(lines[3].ends_with("--manifest-format oci"), "{lines:#?}");
    assert!(lines[4].starts_with("ok left behind: "), "{lines:#?}");
    assert!(
        lines[4].contains("-oci (") && lines[4].contains("405"),
        "{lines:#?}"
    );
}

#[test(multi_thread)]
async fn a_trial_push_that_is_refused_is_a_problem_with_its_fix() {
    let docker = DockerRegistry::plain();
    let rule = |passed: &ProxiedRequest| match passed.method.as_str() {
        "POST" => ProxyFault::Answer(403, Vec::new(), r#"{"error":"read only"}"#.to_owned()),
        _ => ProxyFault::Pass,
    };
    let proxy = FaultProxy::start(docker.host(), rule).await;
    let (code, lines) = trial(&proxy.host());
    assert_eq!((code, lines.len()), (1, 2), "{lines:#?}");
    assert!(lines[1].starts_with("problem upload: "), "{lines:#?}");
    assert_contains!(lines[1], "read only", "wincimg login");
}

#[test]
fn a_trial_push_needs_a_repository() {
    for arguments in [&["--push"][..], &["--push", "--registry", "127.0.0.1:1"]] {
        doctor(arguments).assert().code(2);
    }
    for (named, expected) in [
        ("repo.lan:1", "repo.lan:1/wincimg-doctor"),
        ("docker.io", "docker.io/USER/wincimg-doctor"),
        ("registry-1.docker.io/me", "docker.io/me/wincimg-doctor"),
    ] {
        doctor(&["--push", "--registry", named])
            .fails(2, "usage", &[])
            .advises(&[&format!("--registry {expected} --push")]);
    }
}

/// The age of the table of updates is mentioned where an answer depends on it, and nowhere else.
#[test]
fn the_table_of_updates_and_programs_are_looked_at() {
    let output = with_base(&good_base(), &[])
        .env("PATH", "/nowhere")
        .env("WINELOADER", "/nowhere/wine")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "skipped  program wine: wine not found at /nowhere/wine; ",
        "skipped  program kubectl: not found; ",
        "updates table: KB numbers are known up to ",
    ] {
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let is_stale = said.contains("to read newer ones: wincimg node hotfix resolve --latest");
    let warns = |arguments: &[&str]| {
        let output = wincimg(&std::env::temp_dir(), arguments).output().unwrap();
        String::from_utf8_lossy(&output.stderr).contains("KB numbers are known up to")
    };
    assert_eq!(warns(&["hotfix", "resolve", "--latest", "17763"]), is_stale);
    assert!(!warns(&["hotfix", "resolve", "KB4549949"]));
    assert!(!warns(&["hotfix", "resolve", "17763.1158"]));
}
