//! A user at a command line, with a catalog, an empty folder and a cache.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use predicates::Predicate as _;
use serde_json::Value;
use tempfile::TempDir;

use super::{FakeCatalog, msu};
use crate::failure::{note, warning};

pub const TITLE: &str =
    "2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)";
pub const FILE: &str = "windows10.0-kb4549949-x64.msu";

/// A user's environment.
pub struct CatalogSetup {
    pub catalog: FakeCatalog,
    pub folder: TempDir,
}

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CatalogSetup {
    pub fn new() -> Self {
        Self {
            catalog: FakeCatalog::start(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// An environment whose catalog has the update of April 2020 among similar ones.
    pub fn with_april_2020() -> (Self, Vec<u8>) {
        let setup = Self::new();
        let bytes = msu("4549949", "amd64", 400_000);
        for other in [
            "2020-04 Cumulative Update for Windows 10 Version 1809 for x64-based Systems (KB4549949)",
            "2020-04 Dynamic Cumulative Update for Windows Server 2019 for x64-based Systems (KB4549949)",
            "2020-04 Cumulative Update for Windows Server 2019 for ARM64-based Systems (KB4549949)",
        ] {
            setup
                .catalog
                .publish(other, &[("other.msu", b"MSCF".to_vec())]);
        }
        setup.catalog.publish(TITLE, &[(FILE, bytes.clone())]);
        (setup, bytes)
    }

    /// The program in this environment, for any command.
    pub fn program(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy");
        command
    }

    /// Runs a line in a shell.
    pub fn shell(&self, line: &str) -> std::process::Output {
        let program = PathBuf::from(assert_cmd::cargo::cargo_bin!("wincimg"));
        let path = std::env::var("PATH").unwrap_or_default();
        std::process::Command::new("bash")
            .args(["-c", line])
            .current_dir(self.folder.path())
            .env(
                "PATH",
                format!("{}:{path}", program.parent().unwrap().display()),
            )
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy")
            .output()
            .unwrap()
    }

    pub fn wincimg(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command.arg("hotfix").args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&mut self.wincimg(arguments))
    }

    /// A command with flags for the catalog.
    pub fn catalog_command(&self, arguments: &[&str]) -> Command {
        let address = format!("http://{}", self.catalog.host);
        let mut command = self.wincimg(arguments);
        command.args(["--catalog", &address]);
        command.args(["--insecure-registry", &self.catalog.host]);
        command
    }

    /// Runs a command with flags for the catalog.
    pub fn run_with_catalog(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&mut self.catalog_command(arguments))
    }

    /// Like [`Self::run_with_catalog`], if the command has a flag for the catalog.
    pub fn run_with_catalog_if_supported(&self, arguments: &[&str]) -> Outcome {
        if arguments[0] == "resolve" {
            self.run(arguments)
        } else {
            self.run_with_catalog(arguments)
        }
    }

    pub fn fetch(&self) -> Outcome {
        Outcome::of(&mut self.fetch_command())
    }

    /// The command that fetches the update of April 2020.
    pub fn fetch_command(&self) -> Command {
        self.catalog_command(&["fetch", "17763.1158", "--output", "out"])
    }

    /// The folder of the update of April 2020.
    pub fn out(&self) -> PathBuf {
        self.folder.path().join("out/KB4549949")
    }

    /// The names of the files in the update's folder.
    pub fn names(&self) -> Vec<String> {
        self.names_in("out/KB4549949")
    }

    /// The names of the files in a folder.
    pub fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The requests for files since the last call.
    pub fn file_requests(&self) -> Vec<String> {
        let requests = self.catalog.requests();
        requests
            .into_iter()
            .filter(|request| request.contains("/files/"))
            .collect()
    }
}

impl Outcome {
    fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn assert_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn assert_printed(self, words: &str) -> Self {
        assert_contains!(self.stderr, words);
        self
    }

    #[track_caller]
    pub fn assert_not_printed(self, words: &str) -> Self {
        assert!(
            !self.stderr.contains(words),
            "{words:?} is in: {}",
            self.stderr
        );
        self
    }

    /// Asserts that one note names all of these values.
    #[track_caller]
    pub fn assert_note(self, values: &[&str]) -> Self {
        assert!(note(values).eval(&self.stderr), "{}", self.stderr);
        self
    }

    /// Asserts that one warning names all of these values.
    #[track_caller]
    pub fn assert_warning(self, values: &[&str]) -> Self {
        assert!(warning(values).eval(&self.stderr), "{}", self.stderr);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}
