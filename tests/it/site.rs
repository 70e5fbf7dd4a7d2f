//! A user's environment for `wincimg`: a registry with base images, and a working folder.

use std::fs;
use std::io::{Cursor, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;
use wincimg_demo::{DemoRegistry, RegistryState, add_base_images};
use wincimg_oci::remote::Repository;
use wincimg_testkit::options;
use wincimg_testkit::windows_base::StandIn;
use wincimg_windows::version::WindowsVersion;

/// The hosts of the base images.
pub(crate) const HOSTS: [WindowsVersion; 2] = [
    WindowsVersion::new(17763, 973),
    WindowsVersion::new(20348, 2402),
];

/// A registry that records requests and has base images below `mcr/`, and a folder.
pub(crate) struct Site {
    pub(crate) registry: Arc<DemoRegistry>,
    pub(crate) folder: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let registry = DemoRegistry::start().unwrap();
        for repository in [
            "mcr/windows/nanoserver",
            "mcr/windows/servercore/iis",
            "mcr/dotnet/framework/aspnet",
        ] {
            registry
                .with(|stored| add_base_images(stored, repository, &HOSTS))
                .unwrap();
        }
        Self {
            registry: Arc::new(registry),
            folder: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn host(&self) -> String {
        self.registry.host()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(self.folder.path(), name, content)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Builds the recipe of this folder into a layout in it, and returns the output about the new
    /// layer.
    pub(crate) fn built_layer(&self) -> Value {
        let built = json_of(
            self.build(".")
                .args(["--host-build", "17763.973", "--tag", "1"])
                .args(["--output", "oci:layout"]),
        );
        let layers = built["images"][0]["layers"].as_array().unwrap();
        layers.last().unwrap().clone()
    }

    /// `wincimg` with these arguments, which trusts this registry and ignores the user's settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command
            .current_dir(self.folder.path())
            .args(arguments)
            .args(["--insecure-registry", &self.host()])
            .env("DOCKER_CONFIG", self.folder.path())
            .env("XDG_CACHE_HOME", self.cache.path())
            .env("XDG_CONFIG_HOME", self.cache.path())
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
        for variable in [
            "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "SOURCE_DATE_EPOCH", "GITHUB_SHA",
            "CI_COMMIT_SHA",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// The same command below a limit of the shell, such as `ulimit -f 1024`.
    pub(crate) fn limited(&self, limit: &str, arguments: &[&str]) -> Command {
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("{limit}; exec \"$@\""), "bash"]);
        run_by(bash, &self.command(arguments))
    }

    /// The same command with this registry's base images.
    pub(crate) fn with_bases(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = self.command(arguments);
        command.args(["--base-registry", &format!("{}/mcr", self.host())]);
        let mut command = assert_cmd::Command::from(command);
        command.timeout(Duration::from_mins(1));
        command
    }

    /// The same command without a registry.
    pub(crate) fn with_no_bases(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::from(self.command(arguments));
        command.timeout(Duration::from_mins(1));
        command
    }

    /// `wincimg build IMAGE`.
    pub(crate) fn build(&self, image: &str) -> assert_cmd::Command {
        self.with_bases(&["build", image])
    }

    /// `wincimg build IMAGE --push` to this registry.
    pub(crate) fn push(&self, image: &str) -> assert_cmd::Command {
        let mut command = self.build(image);
        command.args(["--registry", &self.host(), "--push"]);
        command
    }

    /// A repository of the registry.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        let host = self.host();
        wincimg_testkit::repository(options(&host), &format!("{host}/{name}"))
    }

    /// The manifest or index under a tag of the registry.
    pub(crate) fn manifest(&self, name: &str, tag: &str) -> Value {
        let raw = block_on(self.repository(name).get_manifest(tag)).unwrap();
        serde_json::from_slice(&raw.bytes).unwrap()
    }

    /// Requests to the registry since `from`.
    pub(crate) fn requests_since(&self, from: usize) -> Vec<String> {
        self.registry
            .with(|stored| stored.requests()[from..].to_vec())
    }

    /// Those that write.
    pub(crate) fn writes_since(&self, from: usize) -> Vec<String> {
        let mut requests = self.requests_since(from);
        requests.retain(|request| !request.starts_with("GET ") && !request.starts_with("HEAD "));
        requests
    }

    pub(crate) fn requests(&self) -> usize {
        self.registry.with(|stored| stored.requests().len())
    }
}

/// `wincimg` with these arguments in a folder.
pub(crate) fn wincimg(folder: &Path, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command.current_dir(folder).args(arguments);
    command
}

/// Writes a file in a folder, and creates the folders above it.
pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// Writes a program, which is a script of the shell.
pub(crate) fn write_program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = write(folder, name, format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A folder with files.
pub(crate) fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

/// A zip of these members.
pub(crate) fn zip_of<B: AsRef<[u8]>>(members: &[(&str, B)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_ref()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Runs asynchronous work to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    Runtime::new().unwrap().block_on(work)
}

/// Adds a base with contents to the demo registry's bases, under one more tag.
pub(crate) fn add_base(stored: &mut RegistryState, repository: &str, tag: &str, base: StandIn) {
    for (_, layer) in base.layers {
        stored.add_blob(repository, layer);
    }
    stored.add_blob(repository, base.image.config().bytes().clone());
    let manifest = base.image.manifest();
    let bytes = manifest.bytes().clone();
    stored.add_manifest(repository, tag, manifest.media_type(), bytes);
}

/// Another program that runs a command, in its folder and environment.
pub(crate) fn run_by(mut program: Command, command: &Command) -> Command {
    program.arg(command.get_program()).args(command.get_args());
    program.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    program
}

/// Copies a folder recursively.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs a command that must succeed with `--format json` and returns its output.
pub(crate) fn json_of(command: &mut assert_cmd::Command) -> Value {
    let (code, answer, printed) = report_of(command);
    assert_eq!(code, 0, "{printed}");
    answer
}

/// Runs a command with `--format json` and returns its exit code and output.
pub(crate) fn answer_of(command: &mut assert_cmd::Command) -> (i32, Value) {
    let (code, answer, _) = report_of(command);
    (code, answer)
}

/// The same, with what it says on stderr.
pub(crate) fn report_of(command: &mut assert_cmd::Command) -> (i32, Value, String) {
    let output = command.args(["--format", "json"]).output().unwrap();
    let printed = stderr(&output);
    let answer =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"));
    (output.status.code().unwrap(), answer, printed)
}

/// One field of every item of a list.
pub(crate) fn each<'v>(list: &'v Value, field: &str) -> Vec<&'v Value> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| &item[field]).collect()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
