//! Passwords in the wrong arguments.

use predicates::prelude::*;
use predicates::str::contains;

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
