//! `wincimg.toml`: its defaults, and flags that override them.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;
use wincimg_demo::{DemoRegistry, add_base_images};
use wincimg_testkit::harness::skip;

use crate::site::{HOSTS, wincimg};

/// A folder with a `wincimg.toml`, a node of 17763.973, and a registry with base images.
struct Folder {
    folder: tempfile::TempDir,
    registry: DemoRegistry,
}

impl Folder {
    fn new(defaults: &str) -> Self {
        let registry = DemoRegistry::start().unwrap();
        registry
            .with(|stored| add_base_images(stored, "windows/nanoserver", &HOSTS))
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
        self.run_in("", arguments)
    }

    /// Runs it in a folder below.
    fn run_in(&self, below: &str, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let mut command = wincimg(&self.folder.path().join(below), arguments);
        command
            .env("DOCKER_CONFIG", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("settings"))
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
    // Without the push, the file's output remains.
    folder.write(
        "wincimg.toml",
        "[build]\npush = true\noutput = \"oci:./of-file\"\n",
    );
    let kept = [&host_build[..], &["--push=false"]].concat();
    let kept = folder.build(&kept).code(0);
    kept.stdout(contains("of-file").and(contains("pushed").not()));
}

#[test]
fn a_switch_of_the_file_is_turned_off_by_its_value() {
    let folder = Folder::new("[check-compat]\nstrict = true\n");
    let warned = [
        "check-compat", "--host-build", "20348.3091", "--image-build", "20348.3207",
    ];
    folder.run(&warned).code(1);
    folder.run(&[&warned[..], &["--strict"]].concat()).code(1);
    let off = [&warned[..], &["--strict=false"]].concat();
    folder.run(&off).code(0);
    // It conflicts with nothing.
    folder.write("wincimg.toml", "[build]\njoin = true\n");
    folder
        .build(&[
            "--host-build", "17763.973", "--join=false", "--no-index", "--dry-run",
        ])
        .code(0);
    // A script may give the value to any.
    fs::remove_file(folder.folder.path().join("wincimg.toml")).unwrap();
    folder.run(&warned).code(0);
    folder.run(&off).code(0);
    let on = [&warned[..], &["--strict=true"]].concat();
    folder.run(&on).code(1);
}

#[test]
fn the_registry_of_a_node_script_and_the_image_of_a_builder_may_be_of_the_file() {
    let folder = Folder::new(
        "registry = \"repo.lan\"\n[node.builder]\nimage = \"repo.lan/node-builder:1\"\n",
    );
    let host = folder.registry.host();
    let hosts = ["--host-build", "17763.973"];
    let bases = ["--base-registry", &host, "--insecure-registry", &host];
    let script = [&["node", "script", "--dry-run"], &hosts[..], &bases].concat();
    folder
        .run(&script)
        .code(0)
        .stdout(contains("repo.lan/pause"));
    let builder = [&["node", "builder"], &hosts[..]].concat();
    let image = contains("repo.lan/node-builder:1");
    folder.run(&builder).code(0).stdout(image);
    folder.write("wincimg.toml", "");
    folder.run(&script).code(2).stderr(contains("--registry"));
    folder.run(&builder).code(2).stderr(contains("--image"));
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
            "check-compat", "--host-build", "17763.1", "--image-build", "17763.1",
        ])
        .code(2)
        .stderr(
            contains("wincimg.toml:2:10: ")
                .and(contains("`wincimg check-compat --strict`"))
                .and(contains("\"perhaps\"")),
        );
}

#[test]
fn help_version_and_completions_need_no_file() {
    let folder = Folder::new("x = \n");
    for arguments in [
        &["--version"][..],
        &["--help"],
        &["help", "build"],
        &["lint", "-h"],
        &["completions", "bash"],
        &["--config", "missing.toml", "--version"],
    ] {
        folder.run(arguments).code(0).stderr("");
    }
    folder
        .run(&["recipe", "list"])
        .code(2)
        .stderr(contains("wincimg.toml:1:"));
}

#[test]
fn arguments_are_refused_in_the_format_of_the_file() {
    let folder = Folder::new("format = \"json\"\n");
    for arguments in [
        &["lint", "--shel", "cmd"][..],
        &["build"],
        &["build", "pause", "--host-build", "never"],
        &["image", "digest", "a.lan/b:1", "c"],
    ] {
        let refused = folder.run(arguments).code(2);
        let answer: serde_json::Value =
            serde_json::from_slice(&refused.get_output().stdout).unwrap();
        assert_eq!(answer["error"]["code"], "usage", "{arguments:?}");
    }
    let typed = ["lint", "--shel", "cmd", "--format", "text"];
    folder.run(&typed).code(2).stdout("");
    folder.write("wincimg.toml", "[build]\nformat = \"json\"\n");
    folder.run(&["lint", "--shel", "cmd"]).code(2).stdout("");
}

#[test]
fn a_default_format_for_all_commands_does_not_change_copies() {
    let folder = Folder::new("manifest-format = \"docker\"\n");
    let host = folder.registry.host();
    folder
        .build(&["--host-build", "17763.973", "--output", "oci:made"])
        .code(0);
    let keeps_digest = |command: &str, tag: &str| {
        let target = format!("{host}/own/app:{tag}");
        let words = [command, "oci:made", &target, "--insecure-registry", &host];
        let ran = folder.run(&[&words[..], &["--format", "json"]].concat());
        let ran = ran.code(0);
        let report: serde_json::Value = serde_json::from_slice(&ran.get_output().stdout).unwrap();
        report["digest"] == report["source_digest"]
    };
    assert!(keeps_digest("copy", "1") && keeps_digest("push", "2"));
    folder.write("wincimg.toml", "[push]\nmanifest-format = \"docker\"\n");
    assert!(keeps_digest("copy", "3") && !keeps_digest("push", "4"));
}

#[test]
fn a_list_for_a_flag_that_is_not_repeatable_is_a_mistake() {
    let folder = Folder::new("[build]\nname = [\"app\", \"web\"]\n");
    let host = ["--host-build", "17763.973", "--dry-run"];
    folder.build(&host).code(2).stdout("").stderr(
        contains("wincimg.toml:2:8: ")
            .and(contains("`wincimg build --name`"))
            .and(contains("only one value")),
    );
    folder
        .build(&[&host[..], &["--name", "shop"]].concat())
        .code(0);
    folder.write("wincimg.toml", "[build]\nname = [\"app\"]\n");
    folder.build(&host).code(0);
    folder.write(
        "wincimg.toml",
        "[build]\nhost-build = [\"17763.973\", \"20348.2402\"]\n",
    );
    folder
        .build(&["--dry-run"])
        .code(0)
        .stdout(contains("20348"));
}

#[test]
fn a_file_in_a_folder_above_counts_and_the_nearest_one_alone() {
    let folder = Folder::new("[check-compat]\nhost-build = \"20348.1\"\n");
    fs::create_dir_all(folder.folder.path().join("a/b")).unwrap();
    let check = || folder.run_in("a/b", &["check-compat", "--image-build", "20348.1"]);
    check().code(0);
    folder.write(
        "a/wincimg.toml",
        "[check-compat]\nhost-build = \"17763.1\"\n",
    );
    check().code(1).stdout(contains("17763.1"));
}

#[test]
fn paths_are_relative_to_the_folder_of_the_file() {
    let folder = Folder::new("[build]\nnodes = \"nodes.json\"\noutput = \"oci:out\"\n");
    let made = folder.folder.path();
    fs::create_dir(made.join("sub")).unwrap();
    let host = folder.registry.host();
    let build = ["build", "pause", "--base-registry", &host];
    folder.run_in("sub", &build).code(0);
    assert!(made.join("out/index.json").is_file());
    assert!(!made.join("sub/out").exists());
    // Typed paths are relative to the working directory.
    let typed = [&build[..], &["--output", "oci:out"]].concat();
    folder.run_in("sub", &typed).code(0);
    assert!(made.join("sub/out/index.json").is_file());
    folder.write(
        "sub/named.toml",
        "[build]\nnodes = \"../nodes.json\"\noutput = \"oci:named\"\n",
    );
    let named = [&build[..], &["--config", "sub/named.toml"]].concat();
    folder.run(&named).code(0);
    assert!(made.join("sub/named/index.json").is_file());
}

#[test]
fn what_lowers_security_counts_only_from_a_file_that_the_user_names() {
    let folder = Folder::new("");
    // Another address of this machine than those that need no flag.
    let host = folder.registry.host().replace("127.0.0.1", "0.0.0.0");
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
    // It may be the cause of an error, and is not printed without one.
    let quiet = |more: &[&str]| folder.run(&[&plan[..], &["--quiet"], more].concat());
    quiet(&[]).code(3).stderr(contains(left_out));
    quiet(&["--insecure-registry", &host]).code(0).stderr("");
    // Flags override defaults, and defaults of other commands are not mentioned.
    let typed = [&plan[..], &["--insecure-registry", &host]].concat();
    let others = "docker-host, plain-credentials";
    folder.run(&typed).code(0).stderr(contains(others));
    folder
        .run(&[
            "check-compat", "--host-build", "17763.1", "--image-build", "17763.1",
        ])
        .code(0)
        .stderr(contains("docker-host").not());
    folder.run(&["images"]).code(0).stderr("");

    let named = [&plan[..], &["--config", "wincimg.toml"]].concat();
    folder.run(&named).code(0).stderr("");
    let mut by_variable = wincimg(folder.folder.path(), &plan);
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

#[test]
fn what_is_typed_adds_to_what_the_file_trusts() {
    let folder = Folder::new("");
    // Another address of this machine than those that need no flag.
    let host = folder.registry.host().replace("127.0.0.1", "0.0.0.0");
    let defaults = format!(
        "base-registry = {host:?}\ninsecure-registry = [{host:?}]\n\
         [build]\nhost-build = \"17763.973\"\n"
    );
    folder.write("named.toml", &defaults);
    let plan = ["build", "pause", "--dry-run", "--timeout", "20s"];
    for other in [
        &["--insecure-registry", "other.lan:8888"][..],
        &["--insecure-registry=other.lan:8888"],
    ] {
        let typed = [&plan[..], &["--config", "named.toml"], other].concat();
        folder.run(&typed).code(0).stderr("");
        // Not to what the file may not set.
        folder.write("wincimg.toml", &defaults);
        let typed = [&plan[..], other].concat();
        folder.run(&typed).code(3).stdout("");
    }
}

/// The user's own file may hold what a file of a checkout may not, and comes before it.
#[test]
fn the_users_own_file_may_set_any_flag() {
    let folder = Folder::new("base-registry = \"repo.lan\"\n[build]\nhost-build = \"17763.973\"\n");
    let host = folder.registry.host().replace("127.0.0.1", "0.0.0.0");
    let plan = ["build", "pause", "--dry-run", "--timeout", "20s"];
    let own = |text: &str| {
        let own = folder.folder.path().join("settings/wincimg");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.toml"), text).unwrap();
    };
    own(&format!(
        "base-registry = \"own.lan\"\ninsecure-registry = [{host:?}]\n[build]\nhost-build = \"20348.2402\"\n"
    ));
    // The folder's file replaces the user's, flag by flag.
    let defaults = format!("base-registry = {host:?}\n");
    folder.write("wincimg.toml", &defaults);
    folder
        .run(&plan)
        .code(0)
        .stderr("")
        .stdout(contains("20348.2402"));
    folder.write(
        "wincimg.toml",
        &format!("{defaults}[build]\nhost-build = \"17763.973\"\n"),
    );
    folder
        .run(&plan)
        .code(0)
        .stdout(contains("17763.973").and(contains("20348").not()));
    // So does the command line, and a mistake names its file.
    let typed = [&plan[..], &["--host-build", "20348.2402"]].concat();
    folder.run(&typed).code(0).stdout(contains("20348.2402"));
    own("[build]\nhost-build = \"never\"\n");
    folder.write("wincimg.toml", &defaults);
    folder
        .run(&plan)
        .code(2)
        .stderr(contains("settings/wincimg/config.toml:2:"));
}

/// The flag's value in the file is invalid, so the error shows that it applies.
#[test]
fn a_table_applies_to_a_command_under_each_of_its_names() {
    let folder = Folder::new("");
    for (table, command) in [
        (
            "hotfix.resolve",
            &["node", "hotfix", "resolve", "17763.1158"][..],
        ),
        ("hotfix", &["node", "hotfix", "resolve", "17763.1158"]),
        ("node.hotfix", &["hotfix", "resolve", "17763.1158"]),
        ("init", &["recipe", "init", "x"]),
        ("convert", &["recipe", "convert", "."]),
        ("render", &["recipe", "render", "pause"]),
        ("images", &["recipe", "list"]),
        ("images", &["recipe", "show", "pause"]),
        ("recipe.list", &["images"]),
        ("inspect", &["image", "inspect", "oci:x"]),
        ("push", &["image", "push", "oci:x", "a.lan/b:1"]),
        ("copy", &["image", "copy", "a.lan/b:1", "a.lan/c:1"]),
        ("tag", &["image", "tag", "a.lan/b:1", "2"]),
        ("digest", &["image", "digest", "a.lan/b:1"]),
        ("manifest", &["image", "manifest", "a.lan/b:1"]),
        ("image.push", &["push", "oci:x", "a.lan/b:1"]),
        (
            "mirror",
            &["image", "mirror", "base:nanoserver", "--to", "a.lan"],
        ),
        (
            "update",
            &["image", "update", "a.lan/b:1", "--host-build", "1809"],
        ),
        (
            "base.resolve",
            &[
                "image", "base", "resolve", "nanoserver", "--host-build", "1809",
            ],
        ),
    ] {
        let is_raw = table == "manifest";
        let flag = if is_raw { "timeout" } else { "format" };
        folder.write("wincimg.toml", &format!("[{table}]\n{flag} = \"never\"\n"));
        let problem = format!("--{flag}` does not accept \"never\"");
        folder.run(command).code(2).stderr(contains(problem));
    }
    // The table of the typed name takes precedence.
    let both = "[images]\nformat = \"never\"\n[recipe.list]\nformat = \"json\"\n";
    folder.write("wincimg.toml", both);
    folder
        .run(&["recipe", "list"])
        .code(0)
        .stdout(predicates::str::starts_with("{").or(predicates::str::starts_with("[")));
}

#[test]
fn an_unknown_table_is_named_with_those_that_exist() {
    let folder = Folder::new("[bild]\npush = true\n");
    folder.run(&["images"]).code(2).stderr(
        contains("wincimg.toml:1:2: unknown command \"bild\": expected build, check-compat, ")
            .and(contains("fleet, image, lint, "))
            .and(contains("did you mean build?")),
    );
    let folder = Folder::new("[mirrror]\nformat = \"json\"\n");
    let refused = folder.run(&["images"]).code(2);
    refused.stderr(contains("did you mean mirror?"));
    let folder = Folder::new("[image.mirrror]\nformat = \"json\"\n");
    let refused = folder.run(&["images"]).code(2);
    refused.stderr(contains("expected base, copy, ").and(contains("did you mean mirror?")));
}

#[test]
fn a_global_flag_in_a_table_is_answered_with_its_place() {
    let folder = Folder::new("[build]\nquiet = true\n");
    let refused = folder.run(&["images"]).code(2);
    refused.stderr(contains("unknown flag --quiet").and(contains("at the top of the file")));
}

#[test]
fn a_table_for_a_flag_is_not_taken_for_a_command() {
    for (text, hint) in [
        ("set = { port = 8080 }\n", "set = [\"port=8080\"]"),
        ("[build.set]\nport = 8080\n", "set = [\"port=8080\"]"),
        ("[registry]\nhost = \"repo.lan\"\n", "registry is a flag"),
    ] {
        let folder = Folder::new(text);
        let refused = folder.run(&["images"]).code(2);
        refused.stderr(
            contains(hint)
                .and(contains("is a flag: "))
                .and(contains("unknown command").not()),
        );
    }
}

#[test]
fn a_checkout_runs_nothing_and_stays_in_its_folder() {
    let outside = tempfile::tempdir().unwrap();
    let metadata = outside.path().join("metadata.json");
    fs::write(&metadata, "old").unwrap();
    let folder = Folder::new(&format!(
        "[build]\nbuild-arg = [\"HOME\"]\nkubeconfig = \"kubeconfig\"\nmetadata-file = \"{}\"\n\
         stage = [\"web={}\"]\n[image.delete]\nyes = true\n",
        metadata.display(),
        outside.path().display(),
    ));
    let ignored = "ignored build-arg, kubeconfig, metadata-file, stage in wincimg.toml";
    folder
        .build(&["--host-build", "17763.973", "--output", "oci:out"])
        .code(0)
        .stderr(contains(ignored));
    assert_eq!(fs::read_to_string(&metadata).unwrap(), "old");
    assert!(folder.folder.path().join("out/index.json").is_file());
    folder
        .run(&["image", "delete", "127.0.0.1:1/web:1"])
        .stderr(contains("ignored yes in wincimg.toml"));
}

#[cfg(unix)]
#[test]
fn the_file_of_another_user_in_a_parent_folder_is_not_read() {
    let folder = Folder::new("unheard-of = 7");
    fs::create_dir(folder.folder.path().join("checkout")).unwrap();
    let images = || folder.run_in("checkout", &["images"]);
    images().code(2).stderr(contains("unheard-of"));
    let file = folder.folder.path().join("wincimg.toml");
    if std::os::unix::fs::chown(file, Some(12345), None).is_err() {
        skip("a file of another user, which requires root");
    }
    images().code(0).stderr("");
}

#[cfg(unix)]
#[test]
fn a_file_that_is_a_link_out_of_its_folder_is_read_only_if_it_is_named() {
    use std::os::unix::fs::symlink;

    let folder = Folder::new("");
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("secret");
    fs::write(&target, "S3CRET of the host").unwrap();
    fs::create_dir(folder.folder.path().join("below")).unwrap();
    let path = folder.folder.path().join("wincimg.toml");
    fs::remove_file(&path).unwrap();
    symlink(&target, &path).unwrap();
    for below in ["", "below"] {
        folder.run_in(below, &["images"]).code(2).stderr(
            contains("it leads out of ")
                .and(contains("name it: --config "))
                .and(contains("S3CRET").not()),
        );
    }
    fs::write(&target, "unheard-of = 7").unwrap();
    let named = folder.run(&["images", "--config", "wincimg.toml"]);
    named.code(2).stderr(contains("unheard-of"));
    // A link inside the folder may be found.
    fs::remove_file(&path).unwrap();
    symlink("below/own.toml", &path).unwrap();
    folder.write("below/own.toml", "unheard-of = 7");
    let found = folder.run(&["images"]);
    found.code(2).stderr(contains("unheard-of"));
}
