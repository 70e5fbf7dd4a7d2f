//! Files that the user names as outputs: links stay, devices are written, and a full disk is told.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Command, Stdio};

use crate::failure::Fails;
use crate::site::Site;

fn build(site: &Site, output: &str) -> assert_cmd::Command {
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "--output", output]);
    command
}

#[test]
fn an_archive_is_written_through_a_link_and_replaces_no_device() {
    let site = Site::new();
    fs::create_dir(site.path("kept")).unwrap();
    symlink("kept/app.tar", site.path("link")).unwrap();
    for _ in 0..2 {
        build(&site, "docker-archive:link").assert().success();
        assert!(site.path("link").is_symlink());
    }
    site.with_no_bases(&["inspect", "docker-archive:link"])
        .assert()
        .success();
    assert!(site.path("kept/app.tar").is_file());

    symlink("/dev/full", site.path("full")).unwrap();
    build(&site, "docker-archive:full").fails(3, "output/write", &["full"]);
    let device = fs::metadata("/dev/full").unwrap().file_type();
    assert!(device.is_char_device() && site.path("full").is_symlink());

    let made = Command::new("mkfifo").arg(site.path("pipe")).status();
    assert!(made.unwrap().success());
    let read = Command::new("cat")
        .arg(site.path("pipe"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    build(&site, "docker-archive:pipe").assert().success();
    let read = read.wait_with_output().unwrap().stdout;
    assert_eq!(read, fs::read(site.path("kept/app.tar")).unwrap());
}

#[test]
fn a_link_in_a_checkout_takes_no_output_out_of_its_folder() {
    let site = Site::new();
    let outside = |name: &str| site.path("outside").join(name);
    fs::create_dir_all(outside("empty")).unwrap();
    site.write(
        "shop/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:ltsc2019\nENV A=1\n",
    );
    symlink("../outside/new", site.path("shop/recipe.toml")).unwrap();
    let convert = |more: &[&str]| {
        let words = ["convert", "./shop", "--host-build", "17763.973"];
        site.with_bases(&[&words[..], more].concat())
    };
    let problem = ["shop/recipe.toml is a link to a missing file"];
    for force in [&[][..], &["--force"]] {
        convert(&[&["--output", "shop/recipe.toml"], force].concat())
            .fails(2, "usage", &problem)
            .advises(&["remove the link"]);
        site.with_no_bases(&[&["init", "shop"], force].concat())
            .fails(2, "usage", &problem);
    }
    assert!(!outside("new").exists());

    let build = |more: &[&str]| {
        let words = ["--host-build", "17763.973", "--name", "app", "--tag", "1"];
        let mut command = site.build("pause");
        command.args(words).args(more);
        command
    };
    symlink("outside/empty", site.path("app-1")).unwrap();
    let refused = build(&[]).fails(2, "output/write", &["./app-1 is a link"]);
    refused.advises(&["--output oci:./app-1"]);
    fs::remove_file(site.path("app-1")).unwrap();
    for link in ["app-1/blobs", "app-1/blobs/sha256"] {
        let link = site.path(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(outside("empty"), &link).unwrap();
        for output in [&[][..], &["--output", "oci:./app-1"][..]] {
            build(output).fails(2, "output/write", &["is a link"]);
        }
        fs::remove_file(link).unwrap();
    }
    assert_eq!(fs::read_dir(outside("empty")).unwrap().count(), 0);
    build(&[]).assert().success();
    // Named, a link may lead anywhere.
    symlink("outside/empty", site.path("app-2")).unwrap();
    build(&["--output", "oci:./app-2"]).assert().success();
    assert!(outside("empty").join("index.json").is_file());
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_pushed() {
    let site = Site::new();
    let host = ["--host-build", "17763.973"];
    site.write(
        "fleet.toml",
        format!(
            "registry = \"{}/fleet\"\n[[image]]\nbuild = \"pause\"\n",
            site.host()
        ),
    );
    let from = site.requests();
    for (flag, value) in [
        ("--metadata-file", "no/meta.json"),
        ("--iidfile", "no/iid"),
        ("--metadata-file", "."),
    ] {
        let mut command = site.push("pause");
        command.args(host).args([flag, value]);
        command.fails(3, "file/io", &[value]);
    }
    // An archive does not create its folder, and a layout only those above it.
    for (output, file) in [
        ("docker-archive:no/a.tar", "no/iid"),
        ("oci:no/image", "other/iid"),
        ("oci:no/image", "no/image/other/iid"),
    ] {
        let mut command = site.push("pause");
        command.args(host).args(["--output", output]);
        command.args(["--iidfile", file]);
        command.fails(3, "file/io", &[file]);
    }
    let mut command = site.with_bases(&["fleet", "build", "fleet.toml"]);
    command.args(host).args(["--report", "junit:no/x"]);
    command
        .fails(3, "file/io", &["no such folder: no"])
        .advises(&["create the folder"]);
    let mut command = site.push("pause");
    command.args(host);
    command.args(["--metadata-file", "one", "--iidfile", "./one"]);
    command.fails(2, "usage", &["two outputs", "./one"]);
    for file in ["--metadata-file", "--iidfile"] {
        let mut command = site.push("pause");
        command.args(host).args([file, "-"]);
        command.fails(2, "usage", &["two outputs", "stdout"]);
    }
    assert_eq!(site.requests_since(from), Vec::<String>::new());
}

#[test]
fn a_file_about_one_image_is_refused_for_several_without_an_index() {
    let site = Site::new();
    let hosts = ["--host-build", "17763.973", "--host-build", "20348.2402"];
    for flag in ["--metadata-file", "--iidfile"] {
        let push = |more: &[&str]| {
            let mut command = site.push("pause");
            command.args(hosts).args([flag, "file", "--tag", "1"]);
            command.args(more);
            command
        };
        push(&["--no-index"]).fails(2, "usage", &[flag]);
        let tag = format!("{}/pause:1-10.0.17763.973", site.host());
        site.with_no_bases(&["digest", &tag]).assert().code(3);
        assert!(!site.path("file").exists());
    }
    // With an index, the file is about that.
    let mut command = site.push("pause");
    command.args(hosts).args(["--metadata-file", "file"]);
    command.assert().success();
}

#[test]
fn a_file_can_be_in_a_folder_that_the_output_creates() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "--output", "oci:./out/image"]);
    let files = [
        "--metadata-file", "out/meta.json", "--iidfile", "out/image/iid",
    ];
    command.args(files).assert().success();
    for file in ["out/meta.json", "out/image/iid"] {
        assert!(site.path(file).is_file(), "{file}");
    }
}

#[test]
fn what_was_pushed_is_printed_though_a_file_fails() {
    let site = Site::new();
    symlink("/dev/full", site.path("full")).unwrap();
    let push = |more: &[&str]| {
        let mut command = site.push("pause");
        command.args(["--host-build", "17763.973", "--metadata-file", "full"]);
        let output = command.args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_contains!(
            String::from_utf8(output.stderr).unwrap(),
            "cannot write full"
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert_contains!(push(&["--quiet"]), "@sha256:");
    let answer: serde_json::Value = serde_json::from_str(&push(&["--format", "json"])).unwrap();
    assert!(answer["images"][0]["digest"].is_string(), "{answer:#}");
}

#[test]
fn what_cannot_be_printed_is_no_success() {
    for arguments in [&["--help"][..], &["--version"], &["build", "-h"]] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let status = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            .args(arguments)
            .stdout(full)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(3), "{arguments:?}");
    }
}
