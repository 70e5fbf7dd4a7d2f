//! The Dockerfiles of `docs/examples`, built without Windows, and their recipes.

use std::path::Path;

use serde_json::Value;

use crate::site::{Site, copy_folder, json_of, stderr};

/// A copy of an example.
pub(crate) fn site(example: &str) -> Site {
    let site = Site::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs/examples")
        .join(example);
    copy_folder(&from, &site.path("app"));
    site
}

/// Builds an example and its recipe with the history, which must give the same image; returns the
/// plan.
fn built(site: &Site, arguments: &[&str]) -> Value {
    let digest = |what: &str, output: &str, arguments: &[&str]| {
        let mut command = site.build(what);
        command
            .args(["--host-build", "20348.2402", "--tag", "1"])
            .args(["--output", &format!("oci:{output}")])
            .args(arguments)
            .env("SOURCE_DATE_EPOCH", "1700000000");
        json_of(&mut command)["images"][0]["digest"].clone()
    };
    let own = digest("./app", "one", arguments);
    let output = site
        .with_bases(&["convert", "./app", "--host-build", "20348.2402"])
        .args(["--output", "recipe.toml", "--keep-history"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let recipe = site.text("recipe.toml");
    assert_eq!(digest("./recipe.toml", "two", &[]), own, "{recipe}");
    let mut plan = site.build("./app");
    plan.args(["--host-build", "20348.2402", "--dry-run"])
        .args(arguments);
    json_of(&mut plan)["plans"][0].take()
}

fn files(plan: &Value) -> Vec<&str> {
    let content = plan["content"].as_array().unwrap().iter();
    content.map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn a_go_server_is_compiled_elsewhere() {
    let site = site("go");
    site.write("out/src/server.exe", "MZ");
    let plan = built(
        &site,
        &["--stage", "build=out", "--build-arg", "VERSION=1.4"],
    );
    assert_eq!(
        files(&plan),
        [
            r"C:\server\server.exe",
            r"C:\server\static\index.html",
            r"C:\server\static\version.txt"
        ]
    );
    let container = &plan["instructions"]["container"];
    assert_eq!(container["Entrypoint"][0], r"C:\server\server.exe");
    assert_eq!(
        container["Labels"]["org.opencontainers.image.version"],
        "1.4"
    );
}

#[test]
fn a_dotnet_service_is_published_elsewhere() {
    let site = site("dotnet");
    for file in ["store.exe", "store.dll", "wwwroot/site.css"] {
        site.write(&format!("out/published/{file}"), file);
    }
    let plan = built(&site, &["--stage", "build=out"]);
    assert_eq!(
        files(&plan),
        [
            r"C:\store\store.dll",
            r"C:\store\store.exe",
            r"C:\store\wwwroot\site.css"
        ]
    );
    assert!(plan["instructions"].to_string().contains("STORE_DATA"));
}

#[test]
fn what_a_stage_needs_is_said() {
    let site = site("dotnet");
    let output = site
        .build("./app")
        .args(["--host-build", "20348.2402"])
        .output()
        .unwrap();
    assert_contains!(stderr(&output), "--stage build=DIR");
}
