//! Refused builds: the error has a hint, and nothing is left behind.

use std::fs;
use std::process::Command;

use predicates::prelude::*;
use predicates::str::contains;
use wincimg_testkit::docker_registry::free_port;
use wincimg_testkit::harness::skip_always;

use crate::failure::{Fails, note};
use crate::site::{Site, json_of, stderr};

#[test]
fn what_cannot_be_built_is_said_with_the_way_out() {
    let site = Site::new();
    site.write(
        "windows/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[run]]\ncommand = [\"cmd\", \"/c\", \"dir\"]\n",
    );
    site.write(
        "wants/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\nuser = \"${who}\"\n[variables.who]\n",
    );
    site.write(
        "wrong/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\nentry = 1\n",
    );
    site.write(
        "listed/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\nrun = [\"dir\"]\n",
    );
    site.write(
        "with-site/recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[files]]\ncontext = \"site\"\nto = \"/site\"\n",
    );
    for (image, exit, code, values) in [
        (
            "puase",
            2,
            "recipe/not-found",
            &["\"puase\"", "\"pause\""][..],
        ),
        ("./nothing", 3, "recipe/unreadable", &["./nothing"]),
        (".", 2, "recipe/not-found", &["recipe.toml", "Dockerfile"]),
        (
            "listed",
            2,
            "recipe/invalid",
            &["recipe.toml:3:8", "\"dir\""],
        ),
        ("windows", 3, "daemon/unreachable", &["`cmd /c dir`"]),
        ("wants", 2, "recipe/missing-value", &["--set who=VALUE"]),
        (
            "with-site",
            2,
            "recipe/context",
            &["./site", "--context DIR"],
        ),
        (
            "wrong",
            2,
            "recipe/unknown-key",
            &["wrong/recipe.toml:3:1", "`entry`"],
        ),
    ] {
        site.build(image)
            .args(["--host-build", "17763.973"])
            .fails(exit, code, values);
    }
    site.build("pause").fails(2, "usage", &["--host-build"]);
    // No update gives a host another build.
    site.build("pause")
        .args(["--host-build", "14393.1"])
        .fails(1, "base/nothing-fits", &["14393.1"])
        .advises(&["hosts of a build that has images"]);
    site.build("pause")
        .args(["--host-build", "17763.973", "--output", "somewhere/else:1"])
        .assert()
        .code(2)
        .stderr(contains("oci:DIR"));
    assert!(!site.path("w-10.0.17763.973").exists());
}

#[test]
fn a_whole_name_beside_a_registry_is_named_as_typed() {
    let site = Site::new();
    site.build("pause")
        .args(["--host-build", "17763.973", "--registry", "repo.lan:8888"])
        .args(["-t", "repo.lan:8888/z:1"])
        .fails(2, "usage", &["-t repo.lan:8888/z:1"]);
}

#[test]
fn a_base_that_is_none_is_answered_with_the_one_that_was_meant() {
    let site = Site::new();
    site.write("recipe.toml", "name = \"w\"\nbase = \"nano\"\n");
    site.build(".")
        .args(["--host-build", "17763.973"])
        .fails(3, "base/not-found", &[])
        .advises(&["nanoserver"]);
}

#[test]
fn a_recipe_of_ones_own_is_not_hidden_silently_by_one_that_ships() {
    let site = Site::new();
    site.write("pause/notes.txt", "what the recipe may take files from");
    let plan = ["--host-build", "17763.973", "--dry-run"];
    let built = |image: &str| site.build(image).args(plan).assert().code(0);
    built("pause").stderr("");
    site.write(
        "pause/recipe.toml",
        "name = \"own\"\nbase = \"nanoserver\"\n",
    );
    built("pause")
        .stdout(contains("WaitToKillServiceTimeout"))
        .stderr(note(&["\"pause\"", "./pause"]));
    built("./pause")
        .stdout(contains("WaitToKillServiceTimeout").not())
        .stderr("");
}

#[test]
fn names_and_tags_that_no_registry_takes_are_refused_for_every_destination() {
    let site = Site::new();
    for arguments in [
        ["--tag", "a b"],
        ["--tag", "../x"],
        ["--tag", ""],
        ["--name", "Up/per"],
        ["--name", "a//b"],
        ["--name", ""],
        ["--registry", "hub-folder"],
    ] {
        site.build("pause")
            .args(["--host-build", "17763.973"])
            .args(arguments)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(arguments[0]).and(contains(arguments[1])));
    }
    assert_eq!(site.requests(), 0);
    assert_eq!(fs::read_dir(site.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_password_in_the_registrys_name_is_not_repeated() {
    Site::new()
        .build("pause")
        .args(["--host-build", "17763.973", "--push"])
        .args(["--registry", "me:secret@repo.lan"])
        .assert()
        .code(2)
        .stderr(
            contains("wincimg login repo.lan")
                .and(contains("me:***@repo.lan"))
                .and(contains("secret").not()),
        );
}

#[test]
fn docker_hub_is_no_place_to_push_to_without_a_user() {
    let site = Site::new();
    let hub = ["--registry", "index.docker.io", "--push"];
    site.build("pause")
        .args(["--host-build", "17763.973"])
        .args(hub)
        .fails(2, "usage", &[])
        .advises(&["--registry docker.io/USER"]);
    assert_eq!(site.requests(), 0);
}

#[test]
fn a_push_by_default_needs_a_registry_too() {
    let site = Site::new();
    site.write("wincimg.toml", "[build]\npush = true\n");
    site.build("pause")
        .args(["--host-build", "17763.973"])
        .fails(2, "usage", &[])
        .advises(&["--registry"]);
}

#[test]
fn an_output_in_the_folder_that_goes_into_the_image_is_refused() {
    let site = Site::new();
    let files = "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n";
    for layer in ["layer = \"a\"\n", ""] {
        site.write("site/recipe.toml", format!("{files}{layer}"));
        for output in [
            "oci:site/out/image",
            "oci:site",
            "docker-archive:site/x.tar",
        ] {
            site.build("site")
                .args(["--host-build", "17763.973", "--output", output])
                .fails(2, "output/inside", &["site"])
                .advises(&["--output"]);
        }
    }
    assert_eq!(fs::read_dir(site.path("site")).unwrap().count(), 1);
    site.build("site")
        .args(["--host-build", "17763.973", "--output", "oci:site-image"])
        .assert()
        .code(0);
    site.write("site/.dockerignore", "out\n");
    site.build("site")
        .args([
            "--host-build", "17763.973", "--output", "oci:site/out/image",
        ])
        .assert()
        .code(0);
}

#[test]
fn a_place_that_is_none_is_refused_before_anything_is_asked() {
    let site = Site::new();
    let from = site.requests();
    for (flags, value) in [
        (&["--push"][..], "--registry"),
        (&["--push", "--registry", "https://here"], "https://here"),
        (&["--output", "here"], "oci:DIR"),
        (&["--output", "./here"], "\"./here\""),
        (&["--output", "oci:here:1.0"], "--tag"),
    ] {
        site.build("pause")
            .args(["--host-build", "17763.973"])
            .args(flags)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(value));
    }
    site.build("pause")
        .args(["--host-build", "17763.973", "--registry-config", "."])
        .fails(2, "usage", &["."]);
    assert_eq!(site.requests(), from);
}

#[test]
fn the_registry_and_the_host_may_come_from_the_file_of_defaults() {
    let site = Site::new();
    let defaults = format!("registry = {:?}\nhost-build = \"17763.973\"\n", site.host());
    site.write("wincimg.toml", &defaults);
    site.build("pause")
        .assert()
        .code(0)
        .stdout(contains("oci:./pause-10.0.17763.973"))
        .stderr(note(&["--push"]));
    site.build("pause")
        .arg("--push")
        .assert()
        .code(0)
        .stdout(contains(format!("{}/pause:10.0.17763.973", site.host())));
    site.write("bad.toml", "host-build = \"2018\"\n");
    site.build("pause")
        .args(["--config", "bad.toml"])
        .assert()
        .code(2)
        .stderr(contains("bad.toml:1:14").and(contains("\"2018\"").and(contains("--host-build"))));
    // The file can also provide a required flag.
    assert_cmd::Command::from(site.command(&["base", "resolve", "nanoserver"]))
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .assert()
        .code(0);
}

#[test]
fn a_registry_that_is_down_or_not_trusted_is_named_with_the_way_out() {
    let site = Site::new();
    // An address that leads to this machine but is not among its own.
    let host = site.host().replace("127.0.0.1", "0.0.0.0");
    Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .current_dir(site.folder.path())
        .args(["build", "pause", "--host-build", "17763.973"])
        .args(["--base-registry", &format!("{host}/mcr")])
        .output()
        .map(|output| {
            assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
            let hint = format!("--insecure-registry {host}");
            assert_contains!(stderr(&output), &hint);
        })
        .unwrap();
}

#[test]
fn who_owns_the_context_makes_no_difference() {
    let site = Site::new();
    site.write("files/a.txt", "a");
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    let digest = || {
        let built = json_of(site.build(".").args(["--host-build", "17763.973"]));
        built["images"][0]["digest"].clone()
    };
    let own = digest();
    for path in ["files/a.txt", "files"] {
        if std::os::unix::fs::chown(site.path(path), Some(12345), Some(12345)).is_err() {
            skip_always("root, who alone can give files away");
        }
    }
    assert_eq!(digest(), own);
}

#[test]
fn a_file_that_vanishes_is_named_and_nothing_is_left() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"gone\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"link\"\nto = 'C:\\link'\n",
    );
    std::os::unix::fs::symlink("nowhere", site.path("link")).unwrap();
    site.build(".").args(["--host-build", "17763.973"]).fails(
        2,
        "recipe/invalid",
        &["recipe.toml:4:8"],
    );
    assert!(!site.path("gone-10.0.17763.973").exists());
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let site = Site::new();
    site.write("file", "not a folder");
    site.build("pause")
        .args(["--host-build", "17763.973", "--output", "oci:file/x"])
        .fails(3, "layout/invalid", &["file/x"]);
}

#[test]
fn a_mistake_in_the_recipe_or_its_folder_is_reported_before_a_registry_is_asked() {
    let site = Site::new();
    site.write("app/server.exe", "MZ");
    let recipe = |name: &str, more: &str| {
        let text = format!("name = \"w\"\nbase = \"nanoserver\"\n{more}");
        site.write(&format!("{name}/recipe.toml"), text);
    };
    recipe(
        "typed",
        "user = \"${usr}\"\n[variables.user]\ndefault = \"web\"\n",
    );
    recipe("lacks", "[[files]]\ncontext = \"site\"\nto = '/site'\n");
    let file = |path: &str| format!("[[files]]\ncontent = \"x\"\nto = '{path}'\n");
    recipe("twice", &(file(r"C:\a") + &file(r"C:\A")));
    recipe("hosts", "shutdown_timeout = 9\n");
    let text = site.text("hosts/recipe.toml").replace(
        "nanoserver",
        "oss/kubernetes/windows-host-process-containers-base-image:v1.0.0",
    );
    site.write("hosts/recipe.toml", text);
    let nobody = format!("127.0.0.1:{}", free_port());
    for command in ["build", "render"] {
        for (arguments, code, values) in [
            (
                &["app", "--set", "program=sevrer.exe"][..],
                "recipe/invalid",
                &["\"sevrer.exe\"", "server.exe\"?"][..],
            ),
            (
                &["app", "--set", "progam=server.exe"],
                "recipe/unknown-variable",
                &["\"progam\"", "\"program\""],
            ),
            (
                &["typed"],
                "recipe/invalid",
                &["typed/recipe.toml:3:8", "\"user\""],
            ),
            (&["lacks"], "recipe/context", &["./site", "--context DIR"]),
            (
                &["twice"],
                "recipe/invalid",
                &["two files have the path C:\\A"],
            ),
            (&["hosts"], "base/no-windows", &["shutdown_timeout"]),
        ] {
            let failure = site
                .command(&[&[command], arguments].concat())
                .args(["--host-build", "17763.973", "--base-registry", &nobody])
                .fails(2, code, values)
                .hides(&nobody);
            if arguments == ["typed"] {
                let printed = failure.on_line(3).stderr;
                assert_contains!(printed, "       ^");
            }
        }
    }
}

#[test]
fn what_the_base_decides_is_looked_at_with_the_base() {
    let site = Site::new();
    site.write("files-10.0.17763.973/a.txt", "a");
    site.write(
        "recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n\
         [[files]]\nfrom = \"files-${base.os_version}\"\nto = 'C:\\files'\n",
    );
    let build = |host: &str| {
        let mut command = site.build(".");
        command.args(["--host-build", host]);
        command
    };
    build("17763.973").assert().code(0);
    build("20348.2402").fails(2, "recipe/invalid", &["./files-10.0.20348.2402"]);
}
