//! What builds download: pinned, kept, resumed, and refused where it is not what it should be.
#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::site::{Site, json_of, stderr};
use crate::support::file_server::{Fault, FileServer};

const HOST: [&str; 2] = ["--host-build", "17763.973"];

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A tool of some size.
fn tool() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// A recipe of one file that is downloaded.
fn recipe(site: &Site, server: &FileServer, pin: &str) {
    let url = server.url("/tools/tool.exe");
    site.write(
        "app/recipe.toml",
        format!(
            "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\n{pin}\nto = 'C:\\app\\'\n"
        ),
    );
}

fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command.args(HOST).args(arguments);
    command
}

/// What is said of a build that ends so.
fn said(command: &mut assert_cmd::Command, code: i32) -> String {
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// What a build puts into its last layer at a path.
fn built(site: &Site, arguments: &[&str], path: &str) -> Vec<u8> {
    let _ = fs::remove_dir_all(site.path("layout"));
    let mut command = build(site, arguments);
    let built = json_of(command.args(["--tag", "1", "--output", "oci:layout"]));
    let layers = built["images"][0]["layers"].as_array().unwrap();
    let digest = layers.last().unwrap()["digest"].as_str().unwrap();
    let blob = site.path(&format!("layout/blobs/{}", digest.replace(':', "/")));
    let tar = flate2::read::GzDecoder::new(fs::File::open(blob).unwrap());
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().to_str() == Some(&format!("Files/{path}")) {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            return bytes;
        }
    }
    panic!("{path} is not in the layer");
}

#[test]
fn a_recipes_file_is_pinned_by_its_digest_and_fetched_once() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    let dry = json_of(build(&site, &["--dry-run"]).arg("-q"));
    let file = &dry["plans"][0]["files"][0]["source"]["download"];
    assert_eq!(
        *file,
        json!({
            "url": server.url("/tools/tool.exe"),
            "digest": format!("sha256:{}", sha256(&tool())),
            "size": null
        })
    );
    let content = &dry["plans"][0]["content"][0];
    assert_eq!(*content, json!({"path": r"C:\app\tool.exe", "size": null}));
    let noted = said(&mut build(&site, &["--dry-run"]), 0);
    assert!(noted.contains("a build downloads http://"), "{noted}");
    assert_eq!(server.requests(), [""; 0]);
    for _ in 0..2 {
        assert_eq!(built(&site, &[], "app/tool.exe"), tool());
        assert_eq!(server.requests(), ["/tools/tool.exe"]);
    }
    let dry = json_of(&mut build(&site, &["--dry-run"]));
    assert_eq!(dry["plans"][0]["content"][0]["size"], json!(800_000));
    // Without the server all is well as long as the cache has it.
    drop(server);
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
}

#[test]
fn a_file_that_nothing_pins_is_noted_and_refused_when_it_has_changed() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, "");
    let insecure = ["--insecure-registry", &server.host()];
    let before = site.requests();
    let refused = said(&mut build(&site, &[]), 2);
    let url = server.url("/tools/tool.exe");
    assert!(
        refused.contains(&format!(
            "./app/recipe.toml: nothing says what {url} has to be"
        )),
        "{refused}"
    );
    let hint = refused.lines().find(|line| line.starts_with("hint: "));
    let hint = hint.unwrap();
    assert!(
        hint.starts_with("hint: wincimg build ./app ") && hint.ends_with(" --update-lock"),
        "{hint}"
    );
    assert_eq!(site.requests(), before);
    let warned = said(&mut build(&site, &["--dry-run"]), 0);
    assert!(warned.contains("build with --update-lock once"), "{warned}");
    assert_eq!(server.requests(), [""; 0]);

    // Nobody vouches for the first bytes over plain HTTP, unless the host is listed.
    let refused = said(&mut build(&site, &["--update-lock"]), 3);
    assert!(refused.contains("plain HTTP"), "{refused}");
    assert!(!site.path("app/wincimg.lock").exists());
    site.write(
        "app/wincimg.lock",
        format!(
            "version = 1\n[[download]]\nurl = \"https://other.lan/x\"\nsha256 = \"{}\"\nsize = 1\n",
            sha256(b"x")
        ),
    );
    let arguments = [&["--update-lock"][..], &insecure].concat();
    let noted = said(build(&site, &arguments).args(["--output", "oci:first"]), 0);
    assert!(
        noted.contains("./app/wincimg.lock: 1 new, 0 changed, 0 as before"),
        "{noted}"
    );
    let lock = site.text("app/wincimg.lock");
    let entry = format!(
        "[[download]]\nurl = \"{url}\"\nsha256 = \"{}\"\nsize = 800000\n",
        sha256(&tool())
    );
    assert!(lock.contains(&entry), "{lock}");
    assert!(lock.contains("https://other.lan/x"), "{lock}");
    server.forget();
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
    assert_eq!(server.requests(), [""; 0]);

    // The server has another file now, and another machine has nothing in its cache.
    server.put("/tools/tool.exe", "other");
    let elsewhere = ["--cache-dir", "elsewhere"];
    let changed = said(build(&site, &elsewhere).args(["--output", "oci:second"]), 3);
    for part in [
        &format!("it has sha256:{}", sha256(b"other")),
        &format!("wincimg.lock says sha256:{}", sha256(&tool())),
        "if that is meant: wincimg build",
    ] {
        assert!(changed.contains(part), "{changed}");
    }
    assert!(!site.path("second").exists());
    let arguments = [&arguments[..], &elsewhere].concat();
    let noted = said(build(&site, &arguments).args(["--output", "oci:third"]), 0);
    assert!(noted.contains("0 new, 1 changed"), "{noted}");
    assert_eq!(built(&site, &elsewhere, "app/tool.exe"), b"other");
}

#[test]
fn what_goes_wrong_on_the_way_is_told_and_nothing_is_written() {
    let (site, server) = (Site::new(), FileServer::start());
    let pin = format!("sha256 = \"{}\"", sha256(&tool()));
    recipe(&site, &server, &pin);
    let failed = |words: &[&str]| {
        let said = said(
            build(&site, &["--output", "oci:layout"]).arg("--timeout=20s"),
            3,
        );
        for word in words {
            assert!(said.contains(word), "{said}");
        }
        assert!(!site.path("layout").exists());
    };
    failed(&["cannot download http://", "404 Not Found"]);
    server.put("/tools/tool.exe", "other");
    failed(&[
        "is not what it should be: it has sha256:",
        ", expected sha256:",
    ]);
    server.put_as("/tools/tool.exe", "text/html; charset=utf-8", "<p>Sign in");
    failed(&["the server sent a web page (text/html) in place of tool.exe: http://"]);
    server.put("/tools/tool.exe", "\n<!DOCTYPE html><html><p>Sign in");
    failed(&["the server sent a web page (text/html) in place of tool.exe: http://"]);
    server.redirect("/tools/tool.exe", "ftp://elsewhere.lan/tool.exe");
    failed(&["cannot download http://", "ftp://elsewhere.lan/tool.exe"]);
    server.redirect("/tools/tool.exe", "/moved/tool");
    server.put("/moved/tool", tool());
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
}

#[test]
fn a_download_goes_on_where_a_connection_broke_or_a_run_was_killed() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    server.fail("/tools/tool.exe", [Fault::Cut(300_000)]);
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].starts_with("/tools/tool.exe bytes="), "{asked:?}");

    server.forget();
    server.fail("/tools/tool.exe", [Fault::Hang(500_000)]);
    let cache = site.path("other");
    let mut command = site.command(&["build", "./app"]);
    command
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .args(HOST)
        .args(["--output", "oci:killed", "--cache-dir", "other"]);
    let mut killed = command.spawn().unwrap();
    let begun = || {
        let entries = fs::read_dir(cache.join("downloads")).into_iter().flatten();
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
        sizes.map(|data| data.len()).max().unwrap_or_default()
    };
    for _ in 0..600 {
        if begun() >= 500_000 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!site.path("killed").exists());
    let found = built(&site, &["--cache-dir", "other"], "app/tool.exe");
    assert_eq!(found, tool());
    assert_eq!(
        server.requests(),
        ["/tools/tool.exe", "/tools/tool.exe bytes=500000-"]
    );
    let names: Vec<_> = fs::read_dir(cache.join("downloads"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, [format!("sha256-{}", sha256(&tool()))]);
}

#[test]
fn two_builds_at_once_fetch_a_file_once() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    let ended: Vec<String> = std::thread::scope(|scope| {
        let builds = ["one", "two", "three"].map(|name| {
            let site = &site;
            scope.spawn(move || {
                said(
                    build(site, &[]).args(["--output", &format!("oci:{name}")]),
                    0,
                )
            })
        });
        builds.map(|build| build.join().unwrap()).into()
    });
    assert_eq!(server.requests(), ["/tools/tool.exe"], "{ended:?}");
}

#[test]
fn the_cache_has_its_size_and_what_is_damaged_in_it_is_fetched_again() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    let none = ["--cache-dir", "small", "--cache-size", "0"];
    assert_eq!(built(&site, &none, "app/tool.exe"), tool());
    let folder = site.path("small/downloads");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let cache = ["--cache-dir", "small"];
    assert_eq!(built(&site, &cache, "app/tool.exe"), tool());
    let kept = folder.join(format!("sha256-{}", sha256(&tool())));
    let mut damaged = tool();
    damaged[7] ^= 1;
    fs::write(&kept, damaged).unwrap();
    server.forget();
    assert_eq!(built(&site, &cache, "app/tool.exe"), tool());
    assert_eq!(server.requests(), ["/tools/tool.exe"]);
    assert_eq!(fs::read(&kept).unwrap(), tool());
}
