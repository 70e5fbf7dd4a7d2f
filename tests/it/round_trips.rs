//! Number of round trips of commands, which dominate with a distant registry.

use std::fmt::Write as _;
use std::fs;

use futures_util::future::try_join_all;
use wincimg_oci::reference::parse_reference;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::registry;
use wincimg_testkit::rounds::Rounds;
use wincimg_testkit::scripted::{ScriptedRequest, answer, scripted};
use wincimg_testkit::windows_base::put_nanoserver;

use crate::site::{Site, block_on, json_of};

#[test(multi_thread)]
async fn a_push_is_five_round_trips_deep_and_less_again() {
    let docker = DockerRegistry::plain();
    for version in ["10.0.17763.973", "10.0.20348.2402"] {
        put_nanoserver(&docker.host(), version).await;
    }
    let rounds = Rounds::start(docker.host());
    let (site, host) = (Site::new(), rounds.host());
    let push = |name: &str, more: &[&str]| {
        let mut command = site.command(&["build", "pause", "--host-build", "17763.973"]);
        command.args(["--base-registry", &host, "--registry", &host, "--push"]);
        command.args(["--insecure-registry", &host, "--name", name]);
        command.args(more);
        json_of(&mut command.into());
    };
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("one").display().to_string();
    // The list of tags with the manifests of base and target; the base's configuration with its
    // facts; starts of uploads; uploads; the manifest.
    rounds.check(&[3, 3, 3, 3, 1], || push("app", &["--cache-dir", &cache]));
    rounds.check(&[3], || push("app", &["--cache-dir", &cache]));
    // Base and previous image are cached then.
    rounds.check(&[3, 3, 2, 1], || {
        push("app", &["--cache-dir", &cache, "--label", "changed=yes"]);
    });
    // One more for the index, whose tag is checked again while the manifests are uploaded.
    let cache = folder.path().join("two").display().to_string();
    rounds.check(&[6, 6, 4, 4, 3, 1], || {
        push(
            "two",
            &["--host-build", "20348.2402", "--cache-dir", &cache],
        );
    });
}

#[test]
fn tokens_for_many_repositories_are_fetched_at_once() {
    let challenge = [("WWW-Authenticate", r#"Bearer realm="/token",service="s""#)];
    let (_log, server) = scripted(move |asked: &ScriptedRequest| match asked.path.as_str() {
        "/token" => answer(200, &[], r#"{"token":"t"}"#),
        _ if asked.header("authorization").is_none() => answer(401, &challenge, ""),
        _ => answer(200, &[], r#"{"tags":["1"]}"#),
    });
    let rounds = Rounds::start(server.host());
    // A refusal, a token, the list.
    rounds.check(&[20, 20, 20], || {
        let registry = registry(&rounds.host());
        let lists = (0..20).map(|number| {
            let reference = format!("{}/r{number}", rounds.host());
            let repository = registry.repository(&parse_reference(&reference).unwrap());
            async move { repository.tags().await }
        });
        let tags = block_on(try_join_all(lists)).unwrap();
        assert_eq!(tags, vec![["1"]; 20]);
    });
}

#[test]
fn a_check_of_fifty_images_is_two_round_trips_deep_and_one_again() {
    let registry = FakeRegistry::start();
    let rounds = Rounds::start(registry.host());
    let host = rounds.host();
    let mut workloads = String::new();
    for number in 0..50 {
        let digest = registry.image("windows", &format!("10.0.17763.{number}"));
        let repository = format!("team/service-{number}");
        registry.tag(&repository, "1.0", &digest);
        write!(
            workloads,
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: pod-{number}}}\nspec:\n  \
             nodeSelector: {{kubernetes.io/os: windows}}\n  \
             containers: [{{name: app, image: '{host}/{repository}:1.0'}}]\n---\n"
        )
        .unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("workloads.yaml");
    fs::write(&file, workloads).unwrap();
    let check = |host_build: &str, code: i32| {
        let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.args(["check-compat", "--host-build", host_build]);
        command.arg("--workloads").arg(&file);
        command.args(["--insecure-registry", &host, "--cache-dir"]);
        command.arg(folder.path().join("cache")).assert().code(code);
    };
    rounds.check(&[50, 50], || check("17763.973", 0));
    rounds.check(&[50], || check("17763.973", 0));
    // The fix of an image that does not start has a tag that is free.
    rounds.check(&[50, 50], || check("20348.2402", 1));
}
