//! The Renovate preset: its expressions find what recipes and lock files have.
//!
//! They are of the syntax that RE2 and this test's engine share.

use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use super::ROOT;
use super::page::{Block, Page};
use crate::site::Site;

/// `DATASOURCE NAME VALUE DIGEST` of each match in a file of that name.
fn found(preset: &Value, file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for manager in preset["customManagers"].as_array().unwrap() {
        assert_eq!(manager["customType"], "regex");
        let texts = |key: &str| {
            let list = manager[key].as_array().unwrap().iter();
            list.map(|text| text.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        // A pattern between slashes is an expression.
        let is_for_file = texts("managerFilePatterns").iter().any(|pattern| {
            let pattern = pattern
                .strip_prefix('/')
                .unwrap()
                .strip_suffix('/')
                .unwrap();
            Regex::new(pattern).unwrap().is_match(file)
        });
        if !is_for_file {
            continue;
        }
        for expression in texts("matchStrings") {
            for groups in Regex::new(&expression).unwrap().captures_iter(text) {
                let group = |name: &str| groups.name(name).map_or("-", |group| group.as_str());
                let template = manager["packageNameTemplate"].as_str();
                let name = template
                    .unwrap_or("{{{depName}}}")
                    .replace("{{{depName}}}", group("depName"));
                let source = manager["datasourceTemplate"].as_str().unwrap();
                let (value, digest) = (group("currentValue"), group("currentDigest"));
                found.push(format!("{source} {name} {value} {digest}"));
            }
        }
    }
    found
}

fn preset() -> Value {
    let path = Path::new(ROOT).join("templates/ci/renovate.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_preset_finds_what_the_guide_shows() {
    let blocks = Page::named("docs/guide/coming-from.md").blocks();
    let recipe = blocks.iter().find_map(|block| match block {
        Block::File { path, text } if path == "service/recipe.toml" => Some(text),
        _ => None,
    });
    let digest = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    assert_eq!(
        found(&preset(), "service/recipe.toml", recipe.unwrap()),
        [
            "docker mcr.microsoft.com/dotnet/aspnet 8.0 -".to_owned(),
            format!("github-release-attachments acme/agent v1.4.0 {digest}"),
        ]
    );
    // Nothing else of the guide's recipes has a version.
    for page in ["docs/guide/recipes.md", "docs/guide/windows.md"] {
        for block in Page::named(page).blocks() {
            if let Block::File { path, text } = block {
                assert_eq!(found(&preset(), &path, &text), [""; 0], "{path} of {page}");
            }
        }
    }
}

#[test]
fn the_preset_keeps_apart_registries_and_files() {
    let preset = preset();
    let base = |base: &str| {
        found(
            &preset,
            "recipe.toml",
            &format!("name = \"x\"\nbase = {base}\n"),
        )
    };
    assert_eq!(
        base("'repo.lan:5000/apps/web:1.4'"),
        ["docker repo.lan:5000/apps/web 1.4 -"]
    );
    let digest = format!("sha256:{}", "a".repeat(64));
    assert_eq!(
        base(&format!("\"ghcr.io/acme/web:2@{digest}\"")),
        [format!("docker ghcr.io/acme/web 2 {digest}")]
    );
    // Builds find the revision of these.
    assert_eq!(base("\"nanoserver\""), [""; 0]);
    assert_eq!(found(&preset, "Cargo.toml", "base = \"a/b:1\"\n"), [""; 0]);
}

#[test]
fn the_preset_finds_the_downloads_of_a_lock_file() {
    let site = Site::new();
    let files = wincimg_testkit::file_server::FileServer::with_tools();
    let url = files.url("/tools/tool-1.4-windows-amd64.zip");
    site.write(
        "recipe.toml",
        format!(
            "name = \"x\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\nto = 'C:\\t.zip'\n"
        ),
    );
    let mut build = site.build(".");
    build.args([
        "--host-build", "17763.973", "--update-lock", "--output", "oci:out",
    ]);
    build.args(["--insecure-registry", &files.host()]);
    build.assert().code(0);
    let lock = site.text("wincimg.lock");
    let github = "https://github.com/acme/tool/releases/download/v1.4/tool-1.4.exe";
    let found = found(&preset(), "apps/wincimg.lock", &lock.replace(&url, github));
    assert_eq!(found.len(), 1, "{lock}");
    let (known, digest) = found[0].rsplit_once(' ').unwrap();
    assert_eq!(known, "github-release-attachments acme/tool v1.4");
    assert!(
        lock.contains(&format!("\"{digest}\"")) && digest.len() == 64,
        "{lock}"
    );
}
