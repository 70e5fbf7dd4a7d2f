//! The script of the GitHub Action, which installs its own release, with a fake release server.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use wincimg_testkit::component;
use wincimg_testkit::file_server::{FileServer, ResponseFault};

use crate::site::write_program;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const LINUX: &str = "x86_64-unknown-linux-musl.tar.gz";
const WINDOWS: &str = "x86_64-pc-windows-gnu.zip";

/// A GitHub runner, and the releases.
struct Runner {
    folder: TempDir,
    server: FileServer,
    /// Digest of the archive for Linux.
    digest: String,
}

/// Result of a step.
struct Step {
    code: i32,
    printed: String,
    outputs: String,
    /// The PATH of later steps.
    path: String,
}

impl Runner {
    /// Creates a release of this version: one archive for each system.
    fn new() -> Self {
        for program in ["bash", "curl", "bsdtar"] {
            component(program);
        }
        let mut runner = Self {
            digest: String::new(),
            folder: tempfile::tempdir().unwrap(),
            server: FileServer::start(),
        };
        for folder in ["tools", "temp"] {
            fs::create_dir(runner.folder.path().join(folder)).unwrap();
        }
        let mut sums = String::new();
        for end in [LINUX, WINDOWS] {
            let bytes = runner.archive(end);
            let digest = digest(&bytes);
            writeln!(sums, "{digest}  {}", name(end)).unwrap();
            if end == LINUX {
                runner.digest = digest;
            }
            runner.server.put(&place(&name(end)), bytes);
        }
        runner.server.put(&place("SHA256SUMS"), sums);
        runner
    }

    /// A release archive in the form of `packaging/`.
    fn archive(&self, end: &str) -> Vec<u8> {
        let scratch = tempfile::tempdir_in(self.folder.path()).unwrap();
        let top = format!("wincimg-{VERSION}");
        let program = if end == WINDOWS {
            "wincimg.exe"
        } else {
            "wincimg"
        };
        let script = format!("echo wincimg {VERSION}");
        write_program(&scratch.path().join(&top), program, &script);
        let file = scratch.path().join(end);
        let mut pack = Command::new("bsdtar");
        pack.args(["-c", "-a", "-f"]).arg(&file).arg("-C");
        let status = pack.arg(scratch.path()).arg(&top).status().unwrap();
        assert!(status.success());
        fs::read(file).unwrap()
    }

    fn step(&self, environment: &[(&str, &str)]) -> Step {
        let file = |name: &str| {
            let file = self.folder.path().join(name);
            fs::write(&file, "").unwrap();
            file
        };
        let (outputs, path) = (file("outputs"), file("path"));
        let output = Command::new("bash")
            .arg(format!("{HERE}/actions/setup/install.sh"))
            .env("RELEASES", self.server.url("/releases"))
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("RUNNER_TOOL_CACHE", self.folder.path().join("tools"))
            .env("RUNNER_TEMP", self.folder.path().join("temp"))
            .env("GITHUB_OUTPUT", &outputs)
            .env("GITHUB_PATH", &path)
            .env_remove("SYSTEMROOT")
            .env("no_proxy", "127.0.0.1")
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        // Only installed files remain.
        let left: Vec<_> = fs::read_dir(self.folder.path().join("temp"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "{left:?}");
        Step {
            code: output.status.code().unwrap(),
            printed: String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr),
            outputs: fs::read_to_string(outputs).unwrap(),
            path: fs::read_to_string(path).unwrap(),
        }
    }

    fn installed(&self, program: &str) -> PathBuf {
        let folder = format!("tools/wincimg/{VERSION}/X64");
        self.folder.path().join(folder).join(program)
    }
}

fn name(end: &str) -> String {
    format!("wincimg-{VERSION}-{end}")
}

fn place(name: &str) -> String {
    format!("/releases/v{VERSION}/{name}")
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[test]
fn the_release_of_this_tree_is_installed_once() {
    let runner = Runner::new();
    let step = runner.step(&[]);
    assert_eq!(step.code, 0, "{}", step.printed);
    assert_contains!(step.printed, &format!("wincimg {VERSION}"));
    let program = runner.installed("wincimg");
    let folder = program.parent().unwrap().display();
    assert_eq!(step.path, format!("{folder}\n"));
    let expected = format!("version={VERSION}\nwincimg={folder}/wincimg\ncached=false\n");
    assert_eq!(step.outputs, expected);
    let asked = [place("SHA256SUMS"), place(&name(LINUX))];
    assert_eq!(runner.server.requests(), asked);

    runner.server.forget();
    let again = runner.step(&[]);
    assert_eq!(again.code, 0, "{}", again.printed);
    assert_contains!(again.outputs, "cached=true");
    assert_eq!(again.path, step.path);
    assert!(runner.server.requests().is_empty());
}

#[test]
fn a_program_of_the_cache_that_was_changed_is_replaced() {
    let runner = Runner::new();
    runner.step(&[]);
    fs::write(runner.installed("wincimg"), "#!/bin/sh\necho no\n").unwrap();
    let step = runner.step(&[]);
    assert_eq!(step.code, 0, "{}", step.printed);
    assert_contains!(step.outputs, "cached=false");
    assert_contains!(step.printed, &format!("wincimg {VERSION}"));
}

#[test]
fn windows_gets_the_program_for_windows() {
    let runner = Runner::new();
    for architecture in ["X64", "ARM64"] {
        let step = runner.step(&[("RUNNER_OS", "Windows"), ("RUNNER_ARCH", architecture)]);
        assert_eq!(step.code, 0, "{}", step.printed);
        assert_contains!(step.outputs, "wincimg.exe\n");
    }
    assert!(runner.server.requests().contains(&place(&name(WINDOWS))));
}

#[test]
fn what_has_another_checksum_is_not_installed() {
    let runner = Runner::new();
    runner.server.put(&place(&name(LINUX)), "something else");
    let step = runner.step(&[]);
    assert_eq!(step.code, 1);
    assert_contains!(
        step.printed,
        "::error title=wincimg::",
        &name(LINUX),
        &digest(b"something else"),
    );
    assert!(step.path.is_empty() && step.outputs.is_empty());
    assert!(!runner.installed("wincimg").exists());
}

#[test]
fn a_pinned_digest_decides_whatever_the_release_says() {
    let runner = Runner::new();
    let other = runner.step(&[("SHA256", &"0".repeat(64))]);
    assert_eq!(other.code, 1);
    assert_contains!(other.printed, &name(LINUX));
    assert_eq!(runner.server.requests(), [place("SHA256SUMS")]);
    let step = runner.step(&[("SHA256", &runner.digest.to_uppercase())]);
    assert_eq!(step.code, 0, "{}", step.printed);
    // The cached release is not the pinned one.
    let other = runner.step(&[("SHA256", &"0".repeat(64))]);
    assert_eq!(other.code, 1, "{}", other.printed);
    let nonsense = runner.step(&[("SHA256", "abc")]);
    assert_eq!(nonsense.code, 1);
    assert_contains!(nonsense.printed, "\"abc\"");
}

#[test]
fn a_missing_release_is_named() {
    let runner = Runner::new();
    let step = runner.step(&[("VERSION", "v9.9.9")]);
    assert_eq!(step.code, 1);
    let url = runner.server.url("/releases/v9.9.9");
    assert_contains!(step.printed, &url, "hint: ");

    let sums = format!("{}  other.zip\n", "0".repeat(64));
    runner.server.put(&place("SHA256SUMS"), sums);
    let step = runner.step(&[]);
    assert_eq!(step.code, 1);
    assert_contains!(step.printed, &name(LINUX));

    let step = runner.step(&[("RUNNER_OS", "macOS"), ("RUNNER_ARCH", "ARM64")]);
    assert_eq!(step.code, 1);
    assert_contains!(step.printed, "macOS-ARM64");
}

#[test]
fn a_server_that_fails_once_is_asked_again() {
    let runner = Runner::new();
    runner
        .server
        .fail(&place(&name(LINUX)), [ResponseFault::Status(503)]);
    let step = runner.step(&[]);
    assert_eq!(step.code, 0, "{}", step.printed);
}

#[test]
fn both_paths_of_the_check_are_one_action() {
    let read = |path: &str| -> Value {
        let text = fs::read_to_string(Path::new(HERE).join(path)).unwrap();
        let text = text
            .replace("$GITHUB_ACTION_PATH/../../../../", "TREE/")
            .replace("$GITHUB_ACTION_PATH/../../templates/ci/", "CI/")
            .replace("$GITHUB_ACTION_PATH/../../check", "CI/check")
            .replace("$GITHUB_ACTION_PATH/../", "TREE/actions/");
        serde_saphyr::from_str(&text).unwrap()
    };
    let action = read("actions/check-compat/action.yml");
    assert_eq!(action, read("templates/ci/github/check-compat/action.yml"));
    let setup = read("actions/setup/action.yml");
    for input in ["sha256", "releases"] {
        assert_eq!(action["inputs"][input], setup["inputs"][input]);
    }
}
