//! `wincimg.exe` run under wine.
//!
//! `tests/programs/prng.c` provides what wine 8 lacks. Not covered: Windows' own consoles,
//! certificate stores and Docker daemon; see `tests/windows`.

mod environment;
mod exe;
mod executable;
mod paths;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::exe::Exe;
use crate::site::Site;

/// A command with a limit; its output in UTF-8.
fn run(command: Command) -> (i32, String, String) {
    let output: Output = assert_cmd::Command::from_std(command)
        .timeout(Duration::from_mins(2))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().unwrap_or(-1);
    (code, text(&output.stdout), text(&output.stderr))
}

/// The output of a command that must succeed.
fn succeed(command: Command) -> String {
    let (code, output, errors) = run(command);
    assert_eq!(code, 0, "{output}{errors}");
    output
}

/// Builds `pause` with further arguments; returns its JSON.
fn build_pause(exe: &Exe, site: &Site, folder: &Path, more: &[&str]) -> Value {
    let host = site.host();
    let base = format!("{host}/mcr");
    let mut command = exe.command(folder, &["build", "pause", "--host-build", "17763.973"]);
    command
        .args(["--base-registry", &base, "--insecure-registry", &host])
        .args(["--format", "json"])
        .args(more);
    serde_json::from_str(&succeed(command)).unwrap()
}

#[test]
fn the_tour_works() {
    let exe = Exe::find();
    let folder = tempfile::tempdir().unwrap();
    let printed = succeed(exe.command(folder.path(), &["demo"]));
    assert_contains!(printed, "pause:10.0.17763.973");
    assert!(!printed.contains('\x1b'), "{printed}");
}

/// Results are the same on Windows.
#[test]
fn answers_are_those_of_linux_byte_for_byte() {
    let exe = Exe::find();
    let folder = tempfile::tempdir().unwrap();
    let dockerfile = "FROM mcr.microsoft.com/windows/servercore:ltsc2019\n\
                      RUN reg add HKLM\\SOFTWARE\\x /v y /d c:\\\nRUN echo \"ü 漢\"\n";
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    let nodes = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clusters/kubeadm.json");
    std::fs::copy(nodes, folder.path().join("nodes.json")).unwrap();
    let pair = ["--host-build", "17763.973", "--image-build", "17763.1158"];
    for (arguments, code) in [
        (vec!["--version"], 0),
        (vec!["images"], 0),
        (vec!["recipe", "show", "pause"], 0),
        (vec!["hotfix", "resolve", "17763.1158"], 0),
        (vec!["completions", "powershell"], 0),
        (vec!["lint", "Dockerfile", "--format", "json"], 1),
        ([&["check-compat"], &pair[..]].concat(), 1),
        (
            [&["check-compat", "--format", "html"], &pair[..]].concat(),
            1,
        ),
        (
            [&["check-compat", "--format", "sarif"], &pair[..]].concat(),
            1,
        ),
        (
            vec![
                "check-compat", "--nodes", "nodes.json", "--image-build", "17763.973",
            ],
            0,
        ),
        (
            vec![
                "node", "script", "--host-build", "17763.973", "--registry", "r.lan",
            ],
            0,
        ),
    ] {
        let mut linux = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        linux.args(&arguments).current_dir(folder.path());
        for variable in ["DOCKER_CONFIG", "WINCIMG_CONFIG", "SOURCE_DATE_EPOCH"] {
            linux.env_remove(variable);
        }
        let (expected_code, expected, _) = run(linux);
        let (is_code, is, errors) = run(exe.command(folder.path(), &arguments));
        assert_eq!(is_code, expected_code, "{arguments:?}: {errors}");
        assert_eq!(is, expected, "{arguments:?}");
        let is_known = expected_code == code || arguments.contains(&"--nodes");
        assert!(is_known, "{arguments:?}: {expected_code}");
    }
}

#[test]
fn an_image_has_the_digest_that_linux_gives_it() {
    let exe = Exe::find();
    let site = Site::new();
    let linux = crate::site::json_of(
        site.build("pause")
            .args(["--host-build", "17763.973", "--output", "oci:on-linux"]),
    );
    let windows = build_pause(
        &exe,
        &site,
        site.folder.path(),
        &["--output", "oci:on-windows"],
    );
    assert_eq!(windows["images"][0]["digest"], linux["images"][0]["digest"]);
    let printed = succeed(exe.command(
        site.folder.path(),
        &["inspect", "oci:on-linux", "--registry"],
    ));
    assert_contains!(printed, "EpMapDisallowedProtocols");
}

#[test]
fn ctrl_c_ends_a_command_with_130() {
    let exe = Exe::find();
    let folder = tempfile::tempdir().unwrap();
    // It accepts the connection and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let arguments = ["base", "list", "nanoserver", "--base-registry", &host];
    let mut command = exe.command(folder.path(), &arguments);
    command.args(["--insecure-registry", &host]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(silent.accept().map(Arc::new).map(std::mem::forget));
    let interrupt = format!("kill -INT {}", child.id());
    let status = Command::new("sh").args(["-c", &interrupt]).status();
    assert!(status.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert_eq!(errors.matches("error: ").count(), 1, "{errors}");
}
