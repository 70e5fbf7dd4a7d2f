//! Passwords in the wrong arguments.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;
use wincimg_testkit::docker_config;
use wincimg_testkit::scripted::{answer, scripted};

fn wincimg(arguments: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(std::env::temp_dir()).args(arguments);
    for variable in ["DOCKER_HOST", "DOCKER_CONTEXT", "WINCIMG_CONFIG"] {
        command.env_remove(variable);
    }
    command
}

#[test]
fn a_password_in_an_argument_is_not_repeated_and_login_is_named() {
    let host = ["--host-build", "17763.973"];
    for arguments in [
        &["build", "pause", "--registry", "bob:SECRET@repo.lan:5000"][..],
        &["build", "pause", "--registry=bob:SECRET@repo.lan:5000/apps"],
        &[
            "build",
            "pause",
            "--base-registry",
            "bob:SECRET@repo.lan:5000",
        ],
        &[
            "build",
            "pause",
            "--insecure-registry",
            "bob:SECRET@repo.lan:5000",
        ],
        &[
            "render",
            "pause",
            "--base-registry",
            "https://bob:SECRET@repo.lan:5000",
        ],
        &["inspect", "bob:SECRET@repo.lan:5000/app:1"],
        &["inspect", "docker://bob:SECRET@repo.lan:5000/app:1"],
        &["mirror", "app:1", "--to", "bob:SECRET@repo.lan:5000"],
        &[
            "mirror",
            "bob:SECRET@repo.lan:5000/app:1",
            "--to",
            "repo.lan:5000",
        ],
        &["check-compat", "bob:SECRET@repo.lan:5000/app:1"],
        &[
            "base",
            "resolve",
            "bob:SECRET@repo.lan:5000/windows/nanoserver",
        ],
        &["doctor", "--registry", "bob:SECRET@repo.lan:5000"],
        &["doctor", "--insecure-registry", "bob:SECRET@repo.lan:5000"],
    ] {
        let takes_hosts = ["build", "render", "check-compat", "base"].contains(&arguments[0]);
        let mut command = wincimg(arguments);
        if takes_hosts {
            command.args(host);
        }
        command
            .assert()
            .code(2)
            .stdout(contains("SECRET").not())
            .stderr(
                contains("SECRET")
                    .not()
                    .and(contains("bob:***@repo.lan").or(contains("bob").not()))
                    .and(contains("wincimg login repo.lan:5000")),
            );
    }
}

#[test]
fn the_doctor_prints_no_password() {
    for arguments in [
        &["--docker-host", "tcp://bob:SECRET@127.0.0.1:1"][..],
        &["--docker-host", "tcp://:SECRET@127.0.0.1:1"],
        &["--catalog", "https://bob:SECRET@127.0.0.1:1/x"],
        &["--catalog", "bob:SECRET@127.0.0.1:1"],
    ] {
        for format in ["text", "json"] {
            wincimg(&["doctor", "--timeout", "2s", "--format", format])
                .args(["--base-registry", "127.0.0.1:1"])
                .args(arguments)
                .assert()
                .code(1)
                .stdout(contains("127.0.0.1:1").and(contains("SECRET").not()))
                .stderr(contains("SECRET").not());
        }
    }
}

#[test]
fn a_token_as_the_user_of_a_url_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let run = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n\
        RUN curl -o C:\\f https://ghp_SECRET@repo.lan/f\n";
    std::fs::write(folder.path().join("Dockerfile"), run).unwrap();
    let dockerfile = folder.path().to_str().unwrap();
    for arguments in [
        &["inspect", "https://ghp_SECRET@repo.lan/app:1"][..],
        &["mirror", "app:1", "--to", "https://ghp_SECRET@repo.lan"],
        &["mirror", "https://bob:SECRET@reg/x:1", "--to", "repo.lan/y"],
        &["doctor", "--docker-host", "tcp://bob:SECRET@reg"],
        &["build", dockerfile, "--host-build", "17763.973"],
    ] {
        let mut command = wincimg(arguments);
        if arguments[0] == "build" {
            command.args(["--base-registry", "127.0.0.1:1"]);
        }
        let output = command.output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert_ne!(output.status.code(), Some(101), "{printed}");
        assert_ne!(output.status.code(), Some(0), "{printed}");
        assert!(!printed.contains("SECRET"), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_registry_that_repeats_a_credential_discloses_nothing() {
    for status in [400, 401, 403, 500] {
        let (_, registry) = scripted(move |asked| match asked.header("authorization") {
            Some(sent) => {
                let message = format!("{sent} is bob:S3cretPW, not S3cretPW");
                let body = json!({"errors": [{"code": "DENIED", "message": message}]});
                answer(status, &[], body.to_string())
            }
            None => answer(401, &[("WWW-Authenticate", "Basic realm=\"r\"")], ""),
        });
        let host = registry.host();
        let folder = tempfile::tempdir().unwrap();
        let entry = json!({ "username": "bob", "password": "S3cretPW" });
        docker_config(folder.path(), &json!({ "auths": { &host: entry } }));
        let image = format!("{host}/x:1");
        for arguments in [
            &["inspect", &image][..],
            &["inspect", &image, "--format", "json"],
            &["login", &host, "--user", "bob", "--password-stdin"],
            &["doctor", "--registry", &host, "--base-registry", &host],
        ] {
            let output = wincimg(arguments)
                .args(["--plain-credentials", "--insecure-registry", &host])
                .env("DOCKER_CONFIG", folder.path())
                .write_stdin("S3cretPW")
                .output()
                .unwrap();
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8(printed).unwrap();
            assert!(printed.contains("***"), "{status} {arguments:?}: {printed}");
            for secret in ["S3cretPW", "Ym9iOlMzY3JldFBX"] {
                assert!(
                    !printed.contains(secret),
                    "{status} {arguments:?}: {printed}"
                );
            }
        }
    }
}
