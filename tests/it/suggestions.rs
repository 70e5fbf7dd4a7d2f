//! Suggestions for images that a registry does not have.

use std::process::Command;

use serde_json::json;
use wincimg_oci::document::ManifestFormat;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::image_locations;
use wincimg_testkit::scripted::{ScriptedRequest, answer, scripted};
use wincimg_testkit::windows_base::{StandIn, put_index};

use crate::failure::Failure;
use crate::site::block_on;

/// The error of a command.
fn failure(host: &str, arguments: &[&str]) -> Failure {
    let output = command(host, arguments)
        .args(["--format", "json"])
        .output()
        .unwrap();
    Failure::of(&output)
}

/// The output of a command that fails.
fn printed(host: &str, arguments: &[&str]) -> String {
    let output = command(host, arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
}

fn command(host: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command
        .current_dir(std::env::temp_dir())
        .env("REGISTRY_AUTH_FILE", "/nonexistent")
        .args(arguments)
        .args(["--insecure-registry", host, "--registry-config"])
        .arg(wincimg_testkit::NO_CREDENTIALS);
    command
}

/// A registry with some images.
fn registry() -> DockerRegistry {
    let server = DockerRegistry::plain();
    let host = server.host();
    let registry = image_locations::registry(&host);
    block_on(async {
        for name in [
            "shop/web:1.4",
            "shop/web:2.0-rc1",
            "windows/nanoserver:ltsc2019",
        ] {
            let image = StandIn::new(ManifestFormat::Docker, "10.0.17763.973", &[(1000, 1)]);
            let reference = format!("{host}/{name}");
            let sink = image_locations::sink(&reference, &registry).await;
            let tag = name.split_once(':').unwrap().1;
            put_index(ManifestFormat::Docker, &[image], &sink, Some(tag)).await;
        }
    });
    server
}

#[test]
fn a_name_and_a_tag_that_are_like_others_are_guessed() {
    let server = registry();
    let host = server.host();
    let image = |name: &str| format!("{host}/{name}");
    let inspect = |name: &str| failure(&host, &["inspect", &image(name)]);
    for (typed, meant) in [
        ("shop/web:1.5", "shop/web:1.4"),
        ("shop/wbe:1.4", "shop/web"),
        ("web:1.4", "shop/web"),
        ("mcr/windows/nanosever:ltsc2019", "windows/nanoserver"),
    ] {
        let failure = inspect(typed).is("registry/not-found", &["read manifest"]);
        let mut words = failure.hint.split_whitespace();
        let is_named = words.any(|word| word.trim_end_matches('?') == image(meant));
        assert!(is_named, "{typed}: {failure:#?}");
    }
    // The default tag `latest` is similar to none of them.
    inspect("shop/web")
        .is("registry/not-found", &[])
        .advises(&["1.4", "2.0-rc1"]);
    let digest = format!("shop/web@sha256:{}", "0".repeat(64));
    for unlike in ["team/ledger:1", &digest] {
        let other = inspect(unlike).is("registry/not-found", &["read manifest"]);
        assert!(!other.hint.is_empty(), "{other:#?}");
        assert!(!other.hint.contains(&host), "{other:#?}");
    }
    // Every command that reads an image suggests.
    let target = format!("{host}/copies");
    let mirrored = printed(&host, &["mirror", &image("shop/wbe:1.4"), "--to", &target]);
    assert_contains!(mirrored, &image("shop/web"));
    let typed = image("shop/web:1.5");
    let checked = printed(
        &host,
        &["check-compat", &typed, "--host-build", "17763.973"],
    );
    assert_contains!(checked, &image("shop/web:1.4"));
    let prefix = format!("{host}/windos");
    let resolved = printed(
        &host,
        &[
            "base", "resolve", "nanoserver", "--base-registry", &prefix, "--host-build",
            "17763.973",
        ],
    );
    assert_contains!(resolved, &image("windows/nanoserver"));
}

#[test]
fn a_base_that_does_not_exist_is_like_others_only_if_it_is_misspelt() {
    let server = registry();
    let host = server.host();
    let folder = tempfile::tempdir().unwrap();
    let dockerfile = folder.path().join("Dockerfile");
    std::fs::write(dockerfile, format!("FROM {host}/shop/web:1.5\n")).unwrap();
    let path = folder.path().display().to_string();
    let build = ["build", &path, "--host-build", "17763.973", "--dry-run"];
    failure(&host, &build)
        .is("registry/not-found", &["has no tag 1.5"])
        .advises(&[&format!("{host}/shop/web:1.4")]);
    let resolve = [
        "base", "resolve", "server", "--base-registry", &host, "--host-build", "17763.973",
    ];
    let failure = failure(&host, &resolve).is("base/not-found", &["windows/server"]);
    let other = format!("{host}/windows/nanoserver");
    assert!(!failure.hint.contains(&other), "{failure:#?}");
}

/// ASP.NET Core is not for IIS.
#[test]
fn another_product_of_the_same_name_is_not_meant() {
    let missing = json!({"errors": [{"code": "NAME_UNKNOWN"}]}).to_string();
    let catalog = json!({"repositories": ["dotnet/aspnet"]}).to_string();
    let (_, served) = scripted(without_images((404, missing), (200, catalog)));
    let host = served.host();
    let resolve = [
        "base", "resolve", "aspnet", "--base-registry", &host, "--host-build", "17763.973",
    ];
    let failure = failure(&host, &resolve)
        .is("base/not-found", &["dotnet/framework/aspnet"])
        .advises(&["image mirror base:aspnet ", " --host-build 17763.973 "]);
    assert!(!failure.hint.contains("did you mean"), "{failure:#?}");
}

#[test]
fn a_base_whose_repository_does_not_exist_is_not_told_as_a_missing_tag() {
    let refusal = |code: &str| (404, json!({"errors": [{"code": code}]}).to_string());
    for (tags, missing) in [
        (
            refusal("NAME_UNKNOWN"),
            "repository HOST/team/app not found",
        ),
        (
            (200, json!({"tags": ["2.0"]}).to_string()),
            "HOST/team/app has no tag 1.0",
        ),
        // It does not say which of both is missing.
        (refusal("NOT_FOUND"), "HOST/team/app has no tag 1.0"),
    ] {
        let (_, served) = scripted(without_images(tags, (200, "{}".to_owned())));
        let host = served.host();
        let folder = tempfile::tempdir().unwrap();
        let dockerfile = folder.path().join("Dockerfile");
        std::fs::write(dockerfile, format!("FROM {host}/team/app:1.0\n")).unwrap();
        let path = folder.path().display().to_string();
        let build = ["build", &path, "--host-build", "17763.973", "--dry-run"];
        failure(&host, &build).is("registry/not-found", &[&missing.replace("HOST", &host)]);
    }
}

/// A registry without images and with scripted responses to other requests.
fn without_images(
    tags: (u16, String),
    catalog: (u16, String),
) -> impl Fn(&ScriptedRequest) -> axum::response::Response + Clone {
    move |asked: &ScriptedRequest| {
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
fn tags_of_what_is_attached_are_not_suggested() {
    let list = format!("sha256-{}", "4d".repeat(32));
    let signature = format!("{list}.sig");
    let tags = json!({"tags": [&list, &signature, "2.0"]}).to_string();
    let (_, served) = scripted(without_images((200, tags), (200, "{}".to_owned())));
    let host = served.host();
    let failure = failure(&host, &["inspect", &format!("{host}/team/app")]);
    assert_eq!(failure.hint, "its only tag is 2.0");
}

#[test]
fn a_web_page_in_place_of_tags_names_the_proxy() {
    let page = (200, "\n<!doctype html><title>Sign in</title>".to_owned());
    let (_, served) = scripted(without_images(page, (200, "{}".to_owned())));
    let host = served.host();
    let list = ["base", "list", "nanoserver", "--base-registry", &host];
    failure(&host, &list)
        .is("network/answer", &["web page"])
        .advises(&["HTTPS_PROXY"]);
}

#[test]
fn a_guess_is_one_question_and_changes_nothing_else() {
    let many: Vec<String> = (0..400_000).map(|number| format!("tag-{number}")).collect();
    for (tags, catalog, guess) in [
        (
            (200, json!({"tags": null}).to_string()),
            (200, "{}".to_owned()),
            None,
        ),
        ((200, "no JSON".to_owned()), (200, "{}".to_owned()), None),
        ((500, String::new()), (200, "{}".to_owned()), None),
        ((404, String::new()), (401, String::new()), None),
        (
            (404, String::new()),
            (200, json!({"repositories": ["team/app"]}).to_string()),
            Some("/team/app?"),
        ),
        // Too large for a hint.
        (
            (200, json!({"tags": many}).to_string()),
            (200, "{}".to_owned()),
            None,
        ),
        // Names are untrusted text.
        (
            (200, json!({"tags": ["1.\u{1b}[2J"]}).to_string()),
            (200, "{}".to_owned()),
            Some(r"1.\u{1b}[2J"),
        ),
    ] {
        let (log, served) = scripted(without_images(tags, catalog));
        let image = format!("{}/team/ap:1.0", served.host());
        let failure = failure(&served.host(), &["inspect", &image]);
        let failure = failure.is(
            "registry/not-found",
            &["read manifest 1.0", "404 Not Found"],
        );
        match guess {
            Some(guess) => assert!(failure.stderr.contains(guess), "{failure:#?}"),
            None => {
                assert!(!failure.hint.is_empty(), "{failure:#?}");
                let failure = &failure.hint;
                assert!(!failure.contains("tag-"), "{failure}");
                assert!(!failure.contains(&served.host()), "{failure}");
            }
        }
        assert!(!failure.stderr.contains('\x1b'), "{failure:#?}");
        assert!(log.count("GET", "/tags/list") <= 1, "{:?}", log.lines());
        assert!(log.count("GET", "/_catalog") <= 1, "{:?}", log.lines());
    }
    // A digest is not misspelled.
    let (log, served) = scripted(without_images(
        (200, "{}".to_owned()),
        (200, "{}".to_owned()),
    ));
    let image = format!("{}/team/app@sha256:{}", served.host(), "0".repeat(64));
    printed(&served.host(), &["inspect", &image]);
    assert_eq!(log.count("GET", "/tags/list"), 0, "{:?}", log.lines());
    // Many missing images are not misspellings.
    let images: Vec<String> = (0..20)
        .map(|number| format!("{}/app-{number}:1", served.host()))
        .collect();
    let mut arguments = vec!["check-compat", "--host-build", "17763.973"];
    arguments.extend(images.iter().map(String::as_str));
    printed(&served.host(), &arguments);
    assert!(log.count("GET", "/tags/list") <= 8, "{:?}", log.lines());
}
