//! `wincimg.toml`: its defaults, and flags that override them.

use std::fs;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use wincimg_demo::{DemoRegistry, add_base_images};
use wincimg_windows::version::WindowsVersion;

/// A folder with a `wincimg.toml`, a node of 17763.973, and a registry with base images.
struct Folder {
    folder: tempfile::TempDir,
    registry: DemoRegistry,
}

impl Folder {
    fn new(defaults: &str) -> Self {
        let registry = DemoRegistry::start().unwrap();
        let versions = [(17763, 973), (20348, 2402)];
        let versions = versions.map(|(build, revision)| WindowsVersion::new(build, revision));
        registry
            .with(|stored| add_base_images(stored, "windows/nanoserver", &versions))
            .unwrap();
        let folder = Self {
            folder: tempfile::tempdir().unwrap(),
            registry,
        };
        folder.write("wincimg.toml", defaults);
        folder.write(
            "nodes.json",
            r#"{"kind":"List","items":[{"kind":"Node","metadata":{"name":"a-node"},"status":
               {"nodeInfo":{"operatingSystem":"windows","kernelVersion":"10.0.17763.973"}}}]}"#,
        );
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.current_dir(self.folder.path()).args(arguments);
        command
            .env("DOCKER_CONFIG", self.folder.path())
            .env_remove("WINCIMG_CONFIG")
            .env_remove("SOURCE_DATE_EPOCH");
        command.assert()
    }

    fn build(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let host = self.registry.host();
        let common = ["--base-registry", &host, "--insecure-registry", &host];
        self.run(&[&["build", "pause"], &common[..], arguments].concat())
    }
}

#[test]
fn hosts_that_are_typed_take_the_place_of_those_in_the_file() {
    let folder = Folder::new("[build]\nhost-build = [\"20348.2402\"]\n");
    folder
        .build(&["--nodes", "nodes.json", "--dry-run"])
        .code(0)
        .stdout(contains("17763.973").and(contains("20348").not()));
    folder
        .build(&["--dry-run"])
        .code(0)
        .stdout(contains("20348.2402").and(contains("17763").not()));
    folder.write("wincimg.toml", "[check-compat]\nnodes = \"nodes.json\"\n");
    let image = ["check-compat", "--image-build", "20348.1"];
    folder.run(&image).code(1).stdout(contains("a-node"));
    let typed = [&image[..], &["--host-build", "20348.1"]].concat();
    folder.run(&typed).code(0).stdout(contains("a-node").not());
}

#[test]
fn images_that_are_typed_take_the_place_of_those_in_the_file() {
    let folder = Folder::new(
        "[check-compat]\nhost-build = \"20348.1\"\nimage-build = \"17763.1\"\nworkloads = \"no.yaml\"\n",
    );
    folder
        .run(&["check-compat", "--image-build", "20348.1"])
        .code(0);
}

#[test]
fn a_default_yields_to_a_flag_that_it_conflicts_with() {
    let folder = Folder::new("[lint]\nshell = \"powershell\"\n");
    folder.write("Dockerfile", "FROM x\nRUN tool.exe \"a b\"\n");
    let quotes = "quotes-under-powershell";
    folder.run(&["lint", "Dockerfile"]).stdout(contains(quotes));
    // The base decides its shell, and this one is unavailable.
    folder
        .run(&["lint", "Dockerfile", "--base", "oci:./nothing"])
        .code(3);
}

#[test]
fn an_output_that_is_typed_takes_the_place_of_a_push_by_default() {
    let folder = Folder::new("[build]\npush = true\n");
    let host = folder.registry.host();
    let host_build = ["--host-build", "17763.973", "--registry", &host];
    folder
        .build(&[&host_build[..], &["--output", "oci:./out"]].concat())
        .code(0)
        .stdout(contains("oci:./out").and(contains("pushed").not()));
    folder.build(&host_build).code(0).stdout(contains("pushed"));
}

#[test]
fn a_value_that_a_command_does_not_take_is_named_with_its_place_and_the_values_it_takes() {
    let folder = Folder::new("format = \"markdown\"\nhost-build = \"17763.973\"\n");
    folder.build(&[]).code(2).stdout("").stderr(
        contains("wincimg.toml:1:10: ")
            .and(contains("`wincimg build --format`"))
            .and(contains("\"markdown\""))
            .and(contains("text, json"))
            .and(contains("hint: ")),
    );
    folder.build(&["--format", "text", "--dry-run"]).code(0);
    folder
        .run(&["check-compat", "--image-build", "17763.973"])
        .code(0)
        .stdout(contains("### "));
    folder.write("wincimg.toml", "[check-compat]\nstrict = \"perhaps\"\n");
    folder
        .run(&[
            "check-compat",
            "--host-build",
            "17763.1",
            "--image-build",
            "17763.1",
        ])
        .code(2)
        .stderr(
            contains("wincimg.toml:2:10: ")
                .and(contains("`wincimg check-compat --strict`"))
                .and(contains("\"perhaps\"")),
        );
}

#[test]
fn a_file_in_a_folder_above_counts_and_the_nearest_one_alone() {
    let folder = Folder::new("[check-compat]\nhost-build = \"20348.1\"\n");
    let below = folder.folder.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let check = || {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.current_dir(&below).env_remove("WINCIMG_CONFIG");
        command.args(["check-compat", "--image-build", "20348.1"]);
        command.assert()
    };
    check().code(0);
    folder.write(
        "a/wincimg.toml",
        "[check-compat]\nhost-build = \"17763.1\"\n",
    );
    check().code(1).stdout(contains("17763.1"));
}

#[test]
fn what_lowers_security_counts_only_from_a_file_that_the_user_names() {
    let folder = Folder::new("");
    let host = folder.registry.host();
    let defaults = format!(
        "base-registry = {host:?}\ninsecure-registry = [{host:?}]\nplain-credentials = true\n\
         docker-host = \"tcp://evil.example:2375\"\n[build]\nhost-build = \"17763.973\"\n"
    );
    folder.write("wincimg.toml", &defaults);
    let plan = ["build", "pause", "--dry-run", "--timeout", "20s"];
    let left_out = "docker-host, insecure-registry, plain-credentials";
    folder.run(&plan).code(3).stdout("").stderr(
        contains(left_out)
            .and(contains("--config wincimg.toml or WINCIMG_CONFIG"))
            .and(contains("--insecure-registry")),
    );
    // Flags override defaults, and defaults of other commands are not mentioned.
    let typed = [&plan[..], &["--insecure-registry", &host]].concat();
    let others = "docker-host, plain-credentials";
    folder.run(&typed).code(0).stderr(contains(others));
    folder
        .run(&[
            "check-compat",
            "--host-build",
            "17763.1",
            "--image-build",
            "17763.1",
        ])
        .code(0)
        .stderr(contains("docker-host").not());
    folder.run(&["images"]).code(0).stderr("");

    let named = [&plan[..], &["--config", "wincimg.toml"]].concat();
    folder.run(&named).code(0).stderr("");
    let mut by_variable = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    by_variable.current_dir(folder.folder.path()).args(plan);
    by_variable
        .env("DOCKER_CONFIG", folder.folder.path())
        .env("WINCIMG_CONFIG", folder.folder.path().join("wincimg.toml"));
    by_variable.assert().code(0).stderr("");
    // A pipe of that name is ignored.
    #[cfg(unix)]
    {
        fs::remove_file(folder.folder.path().join("wincimg.toml")).unwrap();
        let pipe = folder.folder.path().join("wincimg.toml");
        let made = std::process::Command::new("mkfifo")
            .arg(pipe)
            .status()
            .unwrap();
        assert!(made.success());
        folder.run(&["images"]).code(0);
    }
}
