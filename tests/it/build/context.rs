//! Files of a context: those in `.dockerignore` are excluded, links must not lead out, and likely
//! secrets are reported.

use std::fs;
use std::process::Command;

use predicates::prelude::*;
use predicates::str::contains;

use super::host_process::files_of;
use crate::failure::Fails;
use crate::site::{Site, json_of, stderr};

const HOST: [&str; 2] = ["--host-build", "17763.973"];

/// A site with a recipe that takes `site` from its own folder and `assets` from the context.
fn site() -> Site {
    let site = Site::new();
    site.write(
        "web/recipe.toml",
        "name = \"web\"\nbase = \"nanoserver\"\n\
         [[files]]\nfrom = \"site\"\nto = 'C:\\site'\n\
         [[files]]\ncontext = \"assets\"\nto = 'C:\\assets'\n",
    );
    for file in [
        "web/site/index.html",
        "web/site/.env",
        "web/site/logs/today.log",
        "web/site/deep/server.key",
        "assets/logo.png",
        "assets/.env",
        "assets/id_rsa",
    ] {
        site.write(file, "twelve bytes");
    }
    site
}

/// The paths of the included files, as listed by a dry run.
fn listed(site: &Site) -> Vec<String> {
    let plans = json_of(site.build("web").args(HOST).arg("--dry-run"));
    let content = plans["plans"][0]["content"].as_array().unwrap();
    let path = |file: &serde_json::Value| file["path"].as_str().unwrap().to_owned();
    content.iter().map(path).collect()
}

#[test]
fn the_dockerignore_at_the_top_counts_for_every_entry() {
    let site = site();
    site.write("web/.dockerignore", "**/.env\nsite/logs\n**/*.key\n");
    site.write(".dockerignore", "assets/.env\nassets/id_*\nsite\n");
    let expected = [r"C:\assets\logo.png", r"C:\site\index.html"];
    assert_eq!(listed(&site), expected);

    let output = ["--output", "oci:layout"];
    let built = json_of(site.build("web").args(HOST).args(output));
    let layers = built["images"][0]["layers"].as_array().unwrap();
    let packed = files_of(&site, layers.last().unwrap());
    let files: Vec<&str> = packed
        .iter()
        .map(|(path, _)| path.as_str())
        .filter(|path| path.contains('.'))
        .collect();
    assert_eq!(files, ["Files/site/index.html", "Files/assets/logo.png"]);
}

#[test]
fn a_dry_run_lists_what_goes_in_with_its_size() {
    let site = site();
    site.build("web")
        .args(HOST)
        .arg("--dry-run")
        .assert()
        .code(0)
        .stdout(
            contains("content     7 files, 84 B\n")
                .and(contains(" 12 B  C:\\assets\\.env\n"))
                .and(contains(" 12 B  C:\\site\\deep\\server.key\n")),
        );
}

#[test]
fn what_looks_like_a_secret_is_reported_in_one_line_by_a_dry_run_and_by_a_build() {
    let site = site();
    for name in ["a.pfx", "b.pfx", "c.pfx"] {
        site.write(&format!("assets/tls/{name}"), "x");
    }
    for arguments in [&["--dry-run"][..], &["--output", "oci:out"]] {
        let output = site
            .build("web")
            .args(HOST)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success());
        let printed = stderr(&output);
        let warnings: Vec<&str> = printed
            .lines()
            .filter(|it| it.contains("warning:"))
            .collect();
        let [warning] = warnings[..] else {
            panic!("{printed}");
        };
        assert_contains!(warning, "assets/.env, ", '3');
        assert!(warning.contains(".dockerignore"), "{printed}");
    }
    let own = site
        .build("web")
        .args(HOST)
        .args(["--dry-run", "-q"])
        .output()
        .unwrap();
    assert_eq!(stderr(&own), "");
}

#[test]
fn a_file_that_is_named_and_left_out_is_an_error_with_its_place() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"settings.json\"\nto = 'C:\\'\n",
    );
    site.write("settings.json", "{}");
    site.write(".dockerignore", "*.json\n");
    site.build(".")
        .args(HOST)
        .fails(2, "recipe/invalid", &["./settings.json", "./.dockerignore"])
        .names(&["recipe.toml:4:8"])
        .advises(&["!settings.json"]);
    site.write(".dockerignore", "[a\n");
    site.build(".")
        .args(HOST)
        .assert()
        .code(2)
        .stderr(contains(".dockerignore:1"));
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_by_a_dry_run_too() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"w\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"pipe\"\nto = 'C:\\pipe'\n",
    );
    let made = Command::new("mkfifo")
        .arg(site.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    for arguments in [&["--dry-run"][..], &["--output", "oci:out"]] {
        site.build(".")
            .args(HOST)
            .args(arguments)
            .fails(2, "layer/failed", &["./pipe"]);
    }
}

#[cfg(unix)]
#[test]
fn no_link_leads_out_of_the_folder_that_files_come_from() {
    use std::os::unix::fs::symlink;

    let site = Site::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("passwd"), "the host's secret").unwrap();
    fs::write(outside.path().join("x.reg"), "REGEDIT4\n").unwrap();
    site.write("web/site/index.html", "hello");
    symlink(outside.path(), site.path("web/lnk")).unwrap();
    symlink(outside.path().join("passwd"), site.path("web/one")).unwrap();
    symlink("site", site.path("web/inside")).unwrap();
    let out = outside.path().display().to_string();
    let head = "name = \"web\"\nbase = \"nanoserver\"\n";
    for (entry, context) in [
        ("[[files]]\nfrom = \"lnk/passwd\"\nto = 'C:\\p'\n", "."),
        ("[[files]]\nfrom = \"lnk\"\nto = 'C:\\p'\n", "."),
        ("[[files]]\nfrom = \"one\"\nto = 'C:\\p'\n", "."),
        ("[[files]]\ncontext = \"lnk/passwd\"\nto = 'C:\\p'\n", "web"),
        ("[[registry]]\nimport = \"lnk/x.reg\"\n", "."),
    ] {
        site.write("web/recipe.toml", format!("{head}{entry}"));
        site.build("web")
            .args(HOST)
            .args(["--context", context, "--output", "oci:out"])
            .fails(2, "recipe/invalid", &["recipe.toml:4:", &out]);
        assert!(!site.path("out").exists(), "{entry}");
    }
    let entry = "[[files]]\nfrom = \"inside/index.html\"\nto = 'C:\\p'\n";
    site.write("web/recipe.toml", format!("{head}{entry}"));
    site.build("web")
        .args(HOST)
        .arg("--dry-run")
        .assert()
        .code(0);
}

#[cfg(unix)]
#[test]
fn a_definition_that_is_a_link_out_of_its_folder_is_read_only_if_it_is_named() {
    use std::os::unix::fs::symlink;

    let site = Site::new();
    let outside = tempfile::tempdir().unwrap();
    let out = outside.path().display().to_string();
    for (file, code, text, way_out) in [
        (
            "Dockerfile",
            "dockerfile/unreadable",
            "FROM mcr.microsoft.com/windows/nanoserver:1809\n",
            "name it: d/Dockerfile",
        ),
        (
            "recipe.toml",
            "recipe/unreadable",
            "name = \"web\"\nbase = \"nanoserver\"\n",
            "d/recipe.toml",
        ),
    ] {
        let target = outside.path().join(file);
        site.write("d/real/x", text);
        symlink(&target, site.path("d").join(file)).unwrap();
        fs::write(&target, "S3CRET of the host\n").unwrap();
        let mut build = site.build("d");
        let refused = build.args(HOST).arg("--dry-run").fails(2, code, &[&out]);
        refused.advises(&[way_out]).hides("S3CRET");
        fs::write(&target, text).unwrap();
        let mut build = site.build(&format!("d/{file}"));
        build.args(HOST).arg("--dry-run").assert().code(0);
        // A link inside the folder may be found.
        fs::remove_file(site.path("d").join(file)).unwrap();
        symlink("real/x", site.path("d").join(file)).unwrap();
        site.build("d").args(HOST).arg("--dry-run").assert().code(0);
        fs::remove_file(site.path("d").join(file)).unwrap();
    }
    let target = outside.path().join("secret");
    fs::write(&target, "S3CRET of the host\n").unwrap();
    symlink(&target, site.path("d/Dockerfile")).unwrap();
    let mut convert = site.with_bases(&["convert", "d"]);
    convert
        .args(HOST)
        .fails(2, "dockerfile/unreadable", &[&out])
        .hides("S3CRET");
}

#[cfg(unix)]
#[test]
fn rules_and_locks_that_are_links_out_of_their_folder_are_refused() {
    use std::os::unix::fs::symlink;

    let site = Site::new();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("secret");
    fs::write(&target, "[S3CRET of the host\n").unwrap();
    let out = target.display().to_string();
    site.write(
        "d/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\n",
    );
    site.write("r/site/index.html", "");
    site.write(
        "r/recipe.toml",
        "name = \"web\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"site\"\nto = 'C:\\site'\n",
    );
    for (folder, file, code) in [
        ("d", ".dockerignore", "dockerfile/request"),
        ("d", "Dockerfile.dockerignore", "dockerfile/request"),
        ("r", ".dockerignore", "recipe/invalid"),
        ("r", "site/.dockerignore", "recipe/invalid"),
        ("d", "wincimg.lock", "download/lock"),
        ("r", "wincimg.lock", "download/lock"),
    ] {
        let link = site.path(folder).join(file);
        symlink(&target, &link).unwrap();
        let mut build = site.build(folder);
        let build = build.args(HOST).args(["--dry-run"]);
        let refused = build.fails(2, code, &[file, "leads out of", &out]);
        refused.advises(&["copy the link's target"]).hides("S3CRET");
        fs::remove_file(&link).unwrap();
        site.build(folder)
            .args(HOST)
            .arg("--dry-run")
            .assert()
            .code(0);
    }
}
