//! Hosts by name, whole names as tags, and flags without effect.

use serde_json::{Value, json};
use wincimg_oci::document::ManifestFormat;
use wincimg_testkit::windows_base::StandIn;
use wincimg_windows::release;
use wincimg_windows::update::Updates;

use crate::failure::{Fails, note, says};
use crate::site::{Site, add_base, answer_of, each, json_of, report_of, stderr};

fn newest(build: u32) -> String {
    let update = Updates::embedded().newest_published(build).unwrap();
    update.version().to_string()
}

/// A site with bases of this year.
fn current_site() -> Site {
    let site = Site::new();
    for (seed, version) in [(1, "10.0.17763.6893"), (2, "10.0.20348.3207")] {
        let base = StandIn::new(ManifestFormat::Docker, version, &[(400, seed)]);
        let tag = version;
        site.registry
            .with(|stored| add_base(stored, "mcr/windows/nanoserver", tag, base));
    }
    site
}

#[test]
fn all_recipes_and_dockerfiles_below_a_folder_are_built() {
    let site = Site::new();
    let from = "FROM mcr.microsoft.com/windows/nanoserver:1809\n";
    site.write("all/web/Dockerfile", format!("{from}ENV A=1\n"));
    site.write("all/broken/Dockerfile", format!("{from}COPY none C:/x\n"));
    let recipe = "name = \"shop\"\nbase = \"nanoserver\"\nentrypoint = ['C:\\a.exe']\n";
    site.write("all/b/recipe.toml", recipe);
    site.write("all/b/Dockerfile", from);
    let build = |arguments: &[&str]| {
        let mut command = site.build("./all");
        command.args(["--all", "--host-build", "17763.973"]);
        command.args(arguments);
        command
    };
    let (code, answer, printed) = report_of(&mut build(&["--tag", "1"]));
    assert_eq!(code, 2, "{printed}");
    says(&printed, &note(&["./all/b/Dockerfile", "recipe"]));
    let builds = &answer["builds"];
    let files = [
        "./all/b/recipe.toml",
        "./all/broken/Dockerfile",
        "./all/web/Dockerfile",
    ];
    assert_eq!(each(builds, "from"), files);
    assert_eq!(builds[0]["images"][0]["reference"], "oci:./shop-1:1");
    assert_eq!(builds[1]["error"]["line"], 2);
    assert_eq!(builds[2]["images"][0]["reference"], "oci:./web-1:1");
    // Of two images of one name, one would replace the other.
    site.write(
        "all/web/Dockerfile.dev",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\n",
    );
    build(&["--dry-run"]).fails(2, "usage", &["Dockerfile.dev", "web"]);
}

#[test]
fn no_image_has_the_default_outputs_of_those_built_with_it() {
    let site = Site::new();
    let from = "FROM mcr.microsoft.com/windows/nanoserver:1809\n";
    site.write("app/Dockerfile", format!("{from}COPY . C:/all/\n"));
    site.write("app/web/Dockerfile", format!("{from}ENV A=1\n"));
    let build = |arguments: &[&str]| {
        let mut command = site.build(".");
        let hosts = ["--all", "--host-build", "17763.973", "--tag", "1"];
        command.current_dir(site.path("app"));
        json_of(command.args(hosts).args(arguments))
    };
    build(&[]);
    assert!(site.path("app/web-1/oci-layout").is_file());
    let plan = build(&["--dry-run"])["builds"][0]["plans"][0]["content"].to_string();
    assert_contains!(plan, "Dockerfile");
    assert!(!plan.contains("oci-layout"), "{plan}");
}

#[test]
fn a_plan_names_the_destinations() {
    let site = Site::new();
    let host = site.host();
    let plan = |more: &[&str]| {
        let mut command = site.push("pause");
        command.args(["--dry-run", "--name", "p2", "--tag", "1.4"]);
        command.args(["--host-build", "17763.973"]).args(more);
        command
    };
    let one = format!("{host}/p2:1.4");
    let planned = json_of(&mut plan(&["--output", "oci:image"]));
    assert_eq!(planned["destinations"], json!([one, "oci:image:1.4"]));
    assert_contains!(plan(&[]).prints(), &format!("destination {one}\n"));
    let planned = json_of(&mut plan(&["--host-build", "20348.2402"]));
    let images = ["-10.0.17763.973", "-10.0.20348.2402", ""];
    let expected = images.map(|version| format!("{one}{version}"));
    assert_eq!(planned["destinations"], json!(expected));
}

#[test]
fn a_path_that_is_not_utf8_does_not_stop_other_builds() {
    use std::os::unix::ffi::OsStrExt as _;

    let site = Site::new();
    let from = "FROM mcr.microsoft.com/windows/nanoserver:1809\nENV A=1\n";
    let bad = std::ffi::OsStr::from_bytes(b"all/b\xff");
    for folder in [site.folder.path().join(bad), site.path("all/web")] {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("Dockerfile"), from).unwrap();
    }
    let mut build = site.build("all");
    build.args(["--all", "--host-build", "17763.973", "--dry-run"]);
    let (code, answer) = answer_of(&mut build);
    assert_eq!(code, 3, "{answer:#}");
    assert_eq!(answer["builds"][0]["error"]["code"], "file/io");
    assert!(answer["builds"][1]["plans"].is_array(), "{answer:#}");
}

#[test]
fn an_invalid_argument_is_an_error_in_json_too() {
    let site = Site::new();
    let stage = ["build", "./app", "--stage", "build"];
    let (_, answer) = answer_of(&mut site.with_no_bases(&stage));
    assert_eq!(answer["error"]["kind"], "usage");
    let message = answer["error"]["message"].as_str().unwrap();
    assert_contains!(message, "NAME=DIR");
    // A missing folder is the first problem, and one with neither file is another.
    let mut missing = site.build("./none");
    missing
        .args(["--stage", "build=made"])
        .fails(3, "recipe/unreadable", &["./none"]);
    std::fs::create_dir(site.path("empty")).unwrap();
    let mut empty = site.build("./empty");
    empty.fails(2, "recipe/not-found", &["Dockerfile"]);
}

fn plan_of(site: &Site, image: &str, arguments: &[&str]) -> (Value, String) {
    let mut command = site.build(image);
    let (code, mut plans, printed) = report_of(command.arg("--dry-run").args(arguments));
    assert_eq!(code, 0, "{printed}");
    (plans["plans"][0].take(), printed)
}

#[test]
fn a_host_is_named_as_people_name_it_and_the_revision_is_told() {
    let site = current_site();
    let newest_ltsc = release::from_name("latest").unwrap().build;
    assert!(newest_ltsc >= 26100);
    for (name, build) in [
        ("ltsc2022", 20348),
        ("win2022", 20348),
        ("2022", 20348),
        ("20348", 20348),
        ("ltsc2019", 17763),
        ("2019", 17763),
        ("1809", 17763),
        ("17763", 17763),
        ("WIN2019", 17763),
        ("10.0.17763", 17763),
    ] {
        let (plan, said) = plan_of(&site, "pause", &["--host-build", name]);
        let version = newest(build);
        assert_contains!(plan["host_build"], &version);
        says(&said, &note(&[&version, "newest revision known"]));
    }
    let mut unknown = site.build("pause");
    unknown
        .args(["--host-build", "ltsc2023"])
        .assert()
        .code(2)
        .stderr(predicates::str::contains("ltsc2022"));
}

#[test]
fn the_tag_of_the_base_says_the_host_and_a_note_the_nodes() {
    let site = current_site();
    for (tag, version, nodes) in [
        (
            "ltsc2022",
            newest(20348),
            &["Windows Server 2022", "Windows Server 2025"][..],
        ),
        ("1809", newest(17763), &["17763.1039"]),
        (
            "10.0.17763.973",
            "17763.973".to_owned(),
            &["up to 17763.1012"],
        ),
    ] {
        site.write(
            "app/Dockerfile",
            format!("FROM mcr.microsoft.com/windows/nanoserver:{tag}\nENV A=1\n"),
        );
        let (plan, said) = plan_of(&site, "./app", &[]);
        assert_contains!(plan["host_build"], &version);
        let told = [&[version.as_str()][..], nodes].concat();
        says(&said, &note(&told));
    }
    // A host that is named decides.
    let (plan, _) = plan_of(&site, "./app", &["--host-build", "20348.2402"]);
    assert_contains!(plan["host_build"], "20348.2402");
    // A base without Windows in its tag says nothing.
    site.write("app/Dockerfile", "FROM repo.lan/own/base:1\nENV A=1\n");
    let unknown = site.build("./app").fails(2, "usage", &["host"]);
    unknown.advises(&["--host-build ltsc2022"]);
    site.build("pause").fails(2, "usage", &["host"]);
}

#[test]
fn a_flag_without_effect_is_refused() {
    let site = Site::new();
    site.write("recipe.toml", "name = \"a\"\nbase = \"nanoserver\"\n");
    site.write("b/one.txt", "1");
    site.write(
        "Own.Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nENV A=1\n",
    );
    let of = |image: &str, flags: &[&str]| {
        let mut command = site.build(image);
        command
            .args(["--host-build", "17763.973", "-o", "oci:out"])
            .args(flags);
        command
    };
    for (flags, hint) in [
        (&["--build-arg", "A=1"][..], "--set"),
        (&["--target", "x"], "--target"),
        (&["--context", "/nope"], "context"),
        (&["--context", "b"], "from"),
        (&["--docker-host", "tcp://127.0.0.1:1"], "--engine docker"),
    ] {
        let printed = of(".", flags).tells(2);
        assert_contains!(printed, flags[0], hint);
    }
    // Scripts give settings of containers to all builds.
    let containers = ["--pull", "--isolation", "hyperv", "--memory", "2g"];
    for image in [".", "Own.Dockerfile"] {
        json_of(&mut of(image, &containers));
        json_of(of(image, &containers).arg("--dry-run"));
    }
    // A file of defaults is for all builds.
    site.write("own.toml", "docker-host = \"tcp://127.0.0.1:1\"\n");
    json_of(&mut of(".", &["--config", "own.toml"]));
    // A recipe that uses its context.
    site.write(
        "recipe.toml",
        "name = \"a\"\nbase = \"nanoserver\"\nfiles = [{ context = \"one.txt\", to = '/one.txt' }]\n",
    );
    json_of(&mut of(".", &["--context", "b"]));
}

#[test]
fn a_tag_that_is_the_name_is_noted() {
    let site = Site::new();
    for (tag, is_noted) in [("pause", true), ("pause:pause", false), ("1.4", false)] {
        let mut command = site.build("pause");
        command.args(["--host-build", "17763.973", "-t", tag]);
        let printed = stderr(&command.output().unwrap());
        assert_eq!(printed.contains("pause:latest"), is_noted, "{printed}");
    }
}

#[test]
fn a_mistake_is_answered_with_a_right_example() {
    let site = Site::new();
    for (line, hint) in [
        ("base = 5", "base = \"nanoserver\""),
        ("base = \"nanoserver\"\nports = 8080", "ports = [8080]"),
        (
            "base = \"nanoserver\"\nentrypoint = \"a.exe\"",
            "entrypoint = [",
        ),
        ("base = \"nanoserver\"\nenv = \"A=1\"", "env = {"),
    ] {
        site.write("recipe.toml", format!("name = \"a\"\n{line}\n"));
        let printed = site.build(".").args(["--host-build", "17763.973"]).tells(2);
        assert_contains!(printed, hint);
    }
    // A file of the wrong kind, or in another folder.
    site.write(
        "app/Own",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\n",
    );
    site.write(
        "Own.Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\n",
    );
    for (words, hint) in [
        (
            &["build", ".", "-f", "recipe.toml"][..],
            "wincimg build recipe.toml",
        ),
        (
            &["build", ".", "-f", "Onw.Dockerfile"],
            "mean Own.Dockerfile?",
        ),
        (&["build", "app", "-f", "Own"], "mean app/Own?"),
        (&["inspect", "recipe.toml"], "wincimg build recipe.toml"),
        (&["inspect", "pause"], "wincimg build pause"),
    ] {
        let output = site.command(words).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert_contains!(stderr(&output), hint);
    }
}

#[test]
fn a_whole_name_is_a_tag() {
    let site = Site::new();
    let host = site.host();
    let mut command = site.build("pause");
    command
        .args(["--host-build", "17763.973", "--push"])
        .args(["-t", &format!("{host}/team/web:1.4")]);
    let built = json_of(&mut command);
    assert_eq!(
        built["images"][0]["reference"],
        format!("{host}/team/web:1.4")
    );
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "-t", "web:1.5"]);
    command.args(["--registry", &host, "--push"]);
    let built = json_of(&mut command);
    assert_eq!(built["images"][0]["reference"], format!("{host}/web:1.5"));
    let mut command = site.build("pause");
    command.args([
        "--host-build", "17763.973", "-t", "repo.lan/web:1", "--name", "other",
    ]);
    command.fails(2, "usage", &["--name"]);
    let mut command = site.build("pause");
    command.args(["--host-build", "17763.973", "--push", "-t", "1.4"]);
    command
        .fails(2, "usage", &["--push"])
        .advises(&["-t HOST/NAME:TAG"]);
}
