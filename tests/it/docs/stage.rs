//! Environment for a page's commands: a folder with the files that pages assume, and stand-ins for
//! registries, the Update Catalog and the programs whose output a page pipes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use wincimg_demo::{DemoRegistry, RegistryState, add_base_images};
use wincimg_testkit::file_server::FileServer;
use wincimg_testkit::test_bases::{bottom_layer, image_of, made_software, made_system};
use wincimg_windows::version::WindowsVersion;

use super::ROOT;
use crate::api::{Api, windows_node};
use crate::fake_catalog::setup::CatalogSetup;
use crate::iis_server::base_with_iis;
use crate::site::{add_base, copy_folder, write, write_program};

/// Environment for a page's commands.
pub(super) struct Stage {
    pub(super) folder: tempfile::TempDir,
    /// Stand-ins for `repo.mylan.k8s:8888`, `repo.mylan.k8s:9999` and `mcr.microsoft.com`.
    pub(super) registries: [DemoRegistry; 3],
    /// Stand-in for the Update Catalog.
    setup: CatalogSetup,
    /// Stand-in for `https://files.lan`.
    tools: FileServer,
    /// Stand-in for the cluster of the kubeconfig.
    pub(super) cluster: Api,
    /// Variables that the page sets.
    exports: String,
}

const HOSTS: [&str; 3] = [
    "repo.mylan.k8s:8888", "repo.mylan.k8s:9999", "mcr.microsoft.com",
];

impl Stage {
    pub(super) fn new() -> Self {
        let registries = [(); 3].map(|()| DemoRegistry::start().unwrap());
        let versions = [
            WindowsVersion::new(17763, 973),
            WindowsVersion::new(20348, 2402),
        ];
        let repositories = [
            "windows/nanoserver",
            "windows/servercore",
            "windows/servercore/iis",
            "dotnet/framework/aspnet",
        ];
        registries[2].with(|stored| {
            for repository in repositories {
                add_base_images(stored, repository, &versions).unwrap();
            }
        });
        registries[1].with(|stored| {
            let repository = "mcr.microsoft.com/windows/nanoserver";
            add_base_images(stored, repository, &versions).unwrap();
            add_base_with_something_inside(stored);
        });
        registries[2].with(add_bases_of_the_examples);
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            registries,
            setup: CatalogSetup::with_april_2020().0,
            tools: FileServer::with_tools(),
            cluster: Api::start(),
            exports: String::new(),
        };
        let items = nodes()["items"].as_array().unwrap().clone();
        stage.cluster.set("/api/v1/nodes", items);
        stage.write("defaults.toml", &stage.defaults());
        let program = assert_cmd::cargo::cargo_bin!("wincimg")
            .display()
            .to_string();
        let defaults = stage.path("defaults.toml").display().to_string();
        stage.program(
            "wincimg",
            &format!("exec '{program}' --config '{defaults}' \"$@\""),
        );
        stage.program(
            "kubectl",
            "[ \"$*\" = 'get nodes -o json' ] && cat cluster.json",
        );
        stage.program("helm", "[ \"$*\" = 'template ./chart' ] && cat deploy.yaml");
        stage.program(
            "git",
            "[ \"$*\" = 'log -1 --format=%ct' ] && echo 1579000000",
        );
        for (path, text) in [
            ("cluster.json", nodes().to_string()),
            ("nodes.json", nodes().to_string()),
            ("deploy.yaml", stage.here(DEPLOY)),
            (
                "Dockerfile",
                "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n".to_owned(),
            ),
        ] {
            stage.write(path, &text);
        }
        for folder in ["docs/examples", "templates/ci"] {
            copy_folder(&Path::new(ROOT).join(folder), &stage.path(folder));
        }
        let downloads = "docs/examples/zip-tool/Dockerfile";
        let text = fs::read_to_string(stage.path(downloads)).unwrap();
        let tools = stage.tools.url("");
        let text = text.replace("https://files.lan", tools.trim_end_matches('/'));
        stage.write(downloads, &text);
        stage
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        write(self.folder.path(), name, text);
    }

    pub(super) fn program(&self, name: &str, script: &str) {
        write_program(&self.path("programs"), name, script);
    }

    /// Defaults that direct commands to the stand-ins if the page names no host.
    pub(super) fn defaults(&self) -> String {
        format!(
            "base-registry = \"{}\"\ninsecure-registry = [\"127.0.0.1\"]\ncatalog = \"http://{}\"\n",
            self.registries[2].host(),
            self.setup.catalog.host
        )
    }

    /// Replaces hosts by the stand-ins' addresses; below a mirror, a host's name is that of a
    /// folder.
    pub(super) fn here(&self, text: &str) -> String {
        let mut text = text.replace("/mcr.microsoft.com", "/\0");
        for (host, registry) in HOSTS.iter().zip(&self.registries) {
            // The other stand-ins use plain HTTP too.
            text = text.replace(
                &format!("--insecure-registry {host}"),
                "--insecure-registry 127.0.0.1",
            );
            text = text.replace(host, &registry.host());
        }
        text.replace("/\0", "/mcr.microsoft.com")
    }

    pub(super) fn there(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (host, registry) in HOSTS.iter().zip(&self.registries) {
            text = text.replace(&registry.host(), host);
        }
        text
    }

    /// Runs a line and compares its stdout with the text shown.
    pub(super) fn run(&mut self, line: &str, shown: &str, code: i32) {
        let output = self.output(line, "");
        let stdout = self.there(&String::from_utf8_lossy(&output.stdout));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let printed = format!("$ {line}\n{stdout}{stderr}");
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(is_shown(&stdout, shown), "{printed}\nis shown as\n{shown}");
    }

    pub(super) fn output(&mut self, line: &str, before: &str) -> Output {
        if line.starts_with("export ") {
            self.exports += line;
            self.exports.push('\n');
        }
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args(["-o", "pipefail", "-c"])
            .arg(format!("{before}{}{}", self.exports, self.here(line)))
            .current_dir(self.folder.path())
            .env(
                "PATH",
                format!("{}:{path}", self.path("programs").display()),
            )
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("HOME", self.folder.path())
            .env("DOCKER_CONFIG", self.folder.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("DOCKER_HOST")
            .env_remove("SOURCE_DATE_EPOCH")
            .output()
            .unwrap()
    }
}

/// Adds a base with contents to the mirror.
fn add_base_with_something_inside(stored: &mut RegistryState) {
    let repository = "mcr.microsoft.com/windows/servercore";
    let system = made_system(r"%SystemRoot%\system32;%SystemRoot%");
    let bottom = bottom_layer(&system, &made_software()).tar();
    let base = image_of("10.0.20348.2402", vec![bottom]);
    add_base(stored, repository, "10.0.20348.2402", base);
}

/// Adds the Server 2022 bases for the examples' lines.
fn add_bases_of_the_examples(stored: &mut RegistryState) {
    let base = base_with_iis("10.0.20348.2402");
    for (repository, tag) in [
        ("windows/servercore", "10.0.20348.2402"),
        ("dotnet/framework/aspnet", "4.8-windowsservercore-ltsc2022"),
    ] {
        add_base(stored, repository, tag, base.clone());
    }
}

const DEPLOY: &str = "\
kind: Deployment
apiVersion: apps/v1
metadata: {name: shop}
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - image: repo.mylan.k8s:8888/pause
";

fn nodes() -> Value {
    let items = [
        windows_node("win-2019", "10.0.17763.973"),
        windows_node("win-2022", "10.0.20348.2402"),
    ];
    json!({"kind": "List", "apiVersion": "v1", "items": items})
}

/// Returns true if a text matches a page, where `…` stands for anything.
fn is_shown(text: &str, shown: &str) -> bool {
    if shown.is_empty() {
        return true;
    }
    let parts: Vec<&str> = shown.trim_end().split('…').collect();
    let Some(mut rest) = text.trim_end().strip_prefix(parts[0]) else {
        return false;
    };
    for part in &parts[1..] {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || shown.trim_end().ends_with('…')
}
