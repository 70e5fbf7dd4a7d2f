//! What a registry has instead of an image that it does not have.

use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use wincimg_common::progress::Silent;
use wincimg_oci::document::Flavour;
use wincimg_oci::remote::Registry;
use wincimg_oci::store::Sink;
use wincimg_testkit::docker_registry::{DockerRegistry, Setup};
use wincimg_testkit::scripted::{Asked, answer, scripted};
use wincimg_testkit::windows_base::{StandIn, put_index};

/// What a command says that fails.
fn said(host: &str, arguments: &[&str]) -> String {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(std::env::temp_dir())
        .env("REGISTRY_AUTH_FILE", "/nonexistent")
        .args(arguments)
        .args(["--insecure-registry", host, "--registry-config"])
        .arg(wincimg_testkit::empty_config())
        .output()
        .unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_name_and_a_tag_that_are_like_others_are_guessed() {
    let server = DockerRegistry::start(Setup::default());
    let host = server.host();
    let registry = Registry::new(wincimg_testkit::options(&host), Arc::new(Silent)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for name in [
            "shop/web:1.4",
            "shop/web:2.0-rc1",
            "windows/nanoserver:ltsc2019",
        ] {
            let image = StandIn::new(Flavour::Docker, "10.0.17763.973", &[(1000, 1)]);
            let reference = format!("{host}/{name}");
            let sink = Sink::create(&reference.parse().unwrap(), &registry)
                .await
                .unwrap();
            let tag = name.split_once(':').unwrap().1;
            put_index(Flavour::Docker, &[image], &sink, Some(tag)).await;
        }
    });
    let image = |name: &str| format!("{host}/{name}");
    let inspect = |name: &str| said(&host, &["inspect", &image(name)]);
    let meant = |name: &str| format!("hint: did you mean {host}/{name}?\n");
    for (typed, expected) in [
        ("shop/web:1.5", meant("shop/web:1.4")),
        ("shop/wbe:1.4", meant("shop/web")),
        ("web:1.4", meant("shop/web")),
        (
            "mcr/windows/nanosever:ltsc2019",
            meant("windows/nanoserver"),
        ),
    ] {
        let said = inspect(typed);
        assert!(said.ends_with(&expected), "{typed}: {said}");
    }
    // Without a tag it is `latest`, which is like none of them.
    let said_of_latest = inspect("shop/web");
    assert!(
        ["1.4, 2.0-rc1", "2.0-rc1, 1.4"]
            .iter()
            .any(|tags| said_of_latest.ends_with(&format!("hint: its tags are {tags}\n"))),
        "{said_of_latest}"
    );
    let other = inspect("team/ledger:1");
    assert!(
        other.contains("hint: check the name and the tag"),
        "{other}"
    );
    // Every command that reads an image says so.
    let target = format!("{host}/copies");
    let mirrored = said(&host, &["mirror", &image("shop/wbe:1.4"), "--to", &target]);
    assert!(mirrored.contains(&meant("shop/web")), "{mirrored}");
    let typed = image("shop/web:1.5");
    let checked = said(
        &host,
        &["check-compat", &typed, "--host-build", "17763.973"],
    );
    assert!(
        checked.contains(&format!("did you mean {host}/shop/web:1.4?")),
        "{checked}"
    );
    let prefix = format!("{host}/windos");
    let resolved = said(
        &host,
        &[
            "base",
            "resolve",
            "nanoserver",
            "--base-registry",
            &prefix,
            "--host-build",
            "17763.973",
        ],
    );
    assert!(
        resolved.contains(&format!("did you mean {host}/windows/nanoserver?")),
        "{resolved}"
    );
}

/// A registry that has no image and answers other questions as told.
fn without_images(
    tags: (u16, String),
    catalog: (u16, String),
) -> impl Fn(&Asked) -> axum::response::Response + Clone {
    move |asked: &Asked| {
        let (status, body) = match asked.path.as_str() {
            "/v2/" => (200, "{}".to_owned()),
            "/v2/_catalog" => catalog.clone(),
            path if path.ends_with("/tags/list") => tags.clone(),
            _ => (
                404,
                r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#.to_owned(),
            ),
        };
        answer(status, &[], body)
    }
}

#[test]
fn a_guess_is_one_question_and_changes_nothing_else() {
    let plain = "hint: check the name and the tag or digest";
    let many: Vec<String> = (0..400_000).map(|number| format!("tag-{number}")).collect();
    for (tags, catalog, expected) in [
        (
            (200, json!({"tags": null}).to_string()),
            (200, "{}".to_owned()),
            plain,
        ),
        ((200, "no JSON".to_owned()), (200, "{}".to_owned()), plain),
        ((500, String::new()), (200, "{}".to_owned()), plain),
        ((404, String::new()), (401, String::new()), plain),
        (
            (404, String::new()),
            (200, json!({"repositories": ["team/app"]}).to_string()),
            "/team/app?",
        ),
        // More than anybody reads for a hint.
        (
            (200, json!({"tags": many}).to_string()),
            (200, "{}".to_owned()),
            plain,
        ),
        // Names are a stranger's words.
        (
            (200, json!({"tags": ["1.\u{1b}[2J"]}).to_string()),
            (200, "{}".to_owned()),
            r"hint: its only tag is 1.\u{1b}[2J",
        ),
    ] {
        let (log, served) = scripted(without_images(tags, catalog));
        let image = format!("{}/team/ap:1.0", served.host());
        let said = said(&served.host(), &["inspect", &image]);
        assert!(said.contains("404 Not Found"), "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(!said.contains('\x1b'), "{said:?}");
        assert!(log.count("GET", "/tags/list") <= 1, "{:?}", log.lines());
        assert!(log.count("GET", "/_catalog") <= 1, "{:?}", log.lines());
    }
    // A digest is not a slip of the keyboard.
    let (log, served) = scripted(without_images(
        (200, "{}".to_owned()),
        (200, "{}".to_owned()),
    ));
    let image = format!("{}/team/app@sha256:{}", served.host(), "0".repeat(64));
    said(&served.host(), &["inspect", &image]);
    assert_eq!(log.count("GET", "/tags/list"), 0, "{:?}", log.lines());
    // A check of many is not a spelling mistake.
    let images: Vec<String> = (0..20)
        .map(|number| format!("{}/app-{number}:1", served.host()))
        .collect();
    let mut arguments = vec!["check-compat", "--host-build", "17763.973"];
    arguments.extend(images.iter().map(String::as_str));
    said(&served.host(), &arguments);
    assert!(log.count("GET", "/tags/list") <= 8, "{:?}", log.lines());
}
