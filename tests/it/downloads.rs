//! Downloads of builds: pinned, cached, resumed, and refused if the digest is wrong.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use futures_util::stream;
use serde_json::json;
use sha2::{Digest, Sha256};
use wincimg_testkit::file_server::{FileServer, ResponseFault};
use wincimg_testkit::layout::{blob_in, entries_in};
use wincimg_testkit::serve::serve;

use crate::failure::{Fails, line, note, says, warning};
use crate::site::{Site, json_of};

const HOST: [&str; 2] = ["--host-build", "17763.973"];

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A tool of some size.
fn tool() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

/// A recipe with one downloaded file.
fn recipe(site: &Site, server: &FileServer, pin: &str) {
    let url = server.url("/tools/tool.exe");
    site.write(
        "app/recipe.toml",
        format!(
            "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\n{pin}\nto = 'C:\\app\\'\n"
        ),
    );
}

/// The build of the recipe. The server of a pinned file is listed, because it is on this machine.
fn build(site: &Site, arguments: &[&str]) -> assert_cmd::Command {
    let mut command = site.build("./app");
    command.args(HOST).args(arguments);
    let texts = ["app/recipe.toml", "app/Dockerfile"].map(|name| site.path(name));
    for text in texts
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
    {
        let is_pinned = text.to_lowercase().contains("sha");
        if let (Some((_, behind)), true) = (text.split_once("http://"), is_pinned) {
            let host = behind.split('/').next().unwrap();
            command.args(["--insecure-registry", host]);
        }
    }
    command
}

/// A file of the built image.
fn built(site: &Site, arguments: &[&str], path: &str) -> Vec<u8> {
    let _ = fs::remove_dir_all(site.path("layout"));
    let mut command = build(site, arguments);
    let built = json_of(command.args(["--tag", "1", "--output", "oci:layout"]));
    let layers = built["images"][0]["layers"].as_array().unwrap();
    for layer in layers.iter().rev().filter(|it| it["from"] == "recipe") {
        let entries = entries_in(&blob_in(&site.path("layout"), &layer["digest"]));
        let mut entries = entries.into_iter();
        if let Some(found) = entries.find(|it| it.path == format!("Files/{path}")) {
            return found.bytes;
        }
    }
    panic!("{path} is not in a layer");
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
    let noted = build(&site, &["--dry-run"]).tells(0);
    says(&noted, &note(&[&server.url("/tools/tool.exe")]));
    assert_eq!(server.requests(), [""; 0]);
    for _ in 0..2 {
        assert_eq!(built(&site, &[], "app/tool.exe"), tool());
        assert_eq!(server.requests(), ["/tools/tool.exe"]);
    }
    let dry = json_of(&mut build(&site, &["--dry-run"]));
    assert_eq!(dry["plans"][0]["content"][0]["size"], json!(800_000));
    // Without the server, builds succeed from the cache.
    drop(server);
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
}

#[test]
fn a_file_that_nothing_pins_is_noted_and_refused_when_it_has_changed() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, "");
    let insecure = ["--insecure-registry", &server.host()];
    let before = site.requests();
    let url = server.url("/tools/tool.exe");
    let refused = build(&site, &[]).fails(2, "download/not-pinned", &["./app/recipe.toml", &url]);
    let hint = &refused.hint;
    assert!(
        hint.starts_with("wincimg build ./app ") && hint.ends_with(" --update-lock"),
        "{hint}"
    );
    assert_eq!(site.requests(), before);
    let warned = build(&site, &["--dry-run"]).tells(0);
    says(&warned, &warning(&[&url, "--update-lock"]));
    assert_eq!(server.requests(), [""; 0]);

    // The first download over plain HTTP cannot be verified, unless the host is listed.
    build(&site, &["--update-lock"]).fails(3, "network/plain-http", &[&server.host()]);
    assert!(!site.path("app/wincimg.lock").exists());
    site.write(
        "app/wincimg.lock",
        format!(
            "version = 1\n[[download]]\nurl = \"https://other.lan/x\"\nsha256 = \"{}\"\nsize = 1\n",
            sha256(b"x")
        ),
    );
    let arguments = [&["--update-lock"][..], &insecure].concat();
    let noted = build(&site, &arguments)
        .args(["--output", "oci:first"])
        .tells(0);
    says(&noted, &note(&["./app/wincimg.lock", "1", "0"]));
    let lock = site.text("app/wincimg.lock");
    let entry = format!(
        "[[download]]\nurl = \"{url}\"\nsha256 = \"{}\"\nsize = 800000\n",
        sha256(&tool())
    );
    assert_contains!(lock, &entry, "https://other.lan/x");
    server.forget();
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
    assert_eq!(server.requests(), [""; 0]);

    // The server's file has changed, and another machine has an empty cache.
    server.put("/tools/tool.exe", "other");
    let elsewhere = ["--cache-dir", "elsewhere", insecure[0], insecure[1]];
    build(&site, &elsewhere)
        .args(["--output", "oci:second"])
        .fails(3, "download/changed", &["wincimg.lock"])
        .lists(&[
            &format!("sha256:{}", sha256(b"other")),
            &format!("sha256:{}", sha256(&tool())),
        ])
        .advises(&["wincimg build"]);
    assert!(!site.path("second").exists());
    let arguments = [&["--update-lock"][..], &elsewhere].concat();
    let noted = build(&site, &arguments)
        .args(["--output", "oci:third"])
        .tells(0);
    says(&noted, &note(&["wincimg.lock", "0", "1"]));
    assert_eq!(built(&site, &elsewhere, "app/tool.exe"), b"other");
}

/// A plan adds sizes up.
#[test]
fn a_size_that_no_file_has_is_refused_in_a_lock_file() {
    let site = Site::new();
    let (mut recipe, mut lock) = (
        "name = \"app\"\nbase = \"nanoserver\"\n".to_owned(),
        "version = 1\n".to_owned(),
    );
    for name in ["a", "b"] {
        let url = format!("https://tools.lan/{name}.exe");
        let digest = sha256(name.as_bytes());
        write!(recipe, "[[files]]\nurl = \"{url}\"\nto = 'C:\\app\\'\n").unwrap();
        write!(
            lock,
            "[[download]]\nurl = \"{url}\"\nsha256 = \"{digest}\"\nsize = {}\n",
            u64::MAX
        )
        .unwrap();
    }
    site.write("app/recipe.toml", recipe);
    site.write("app/wincimg.lock", lock);
    build(&site, &["--dry-run"])
        .fails(2, "download/lock", &["wincimg.lock"])
        .advises(&["--update-lock"]);
}

#[test]
fn a_lock_file_that_is_not_a_file_or_too_large_can_be_written_again() {
    let (site, server) = (Site::new(), FileServer::start());
    recipe(&site, &server, "");
    let refused = || {
        build(&site, &["--dry-run"])
            .fails(3, "file/io", &["wincimg.lock"])
            .advises(&["--update-lock"]);
    };
    let lock = site.path("app/wincimg.lock");
    fs::create_dir(&lock).unwrap();
    refused();
    fs::remove_dir(&lock).unwrap();
    site.write("app/wincimg.lock", "#".repeat(17 << 20));
    refused();
}

#[test]
fn a_file_larger_than_its_lock_entry_is_not_downloaded_to_the_end() {
    let (site, sent) = (Site::new(), Arc::new(AtomicUsize::new(0)));
    let counted = sent.clone();
    // Without a length.
    let served = serve(Router::new().fallback(move || {
        let counted = counted.clone();
        async move {
            Body::from_stream(stream::iter((0..64).map(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::from(vec![0_u8; 1 << 20]))
            })))
        }
    }));
    let url = served.url("tool.exe");
    site.write(
        "app/recipe.toml",
        format!(
            "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\nto = 'C:\\app\\'\n"
        ),
    );
    site.write(
        "app/wincimg.lock",
        format!(
            "version = 1\n[[download]]\nurl = \"{url}\"\nsha256 = \"{}\"\nsize = 22\n",
            sha256(b"x")
        ),
    );
    build(&site, &["--output", "oci:layout", "--cache-dir", "cache"])
        .args(["--insecure-registry", &served.host()])
        .fails(3, "download/changed", &[&url, "22"])
        .advises(&["--update-lock"]);
    let left = fs::read_dir(site.path("cache/downloads")).unwrap().count();
    assert_eq!(left, 0);
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 32, "{sent} MiB");
}

#[test]
fn what_goes_wrong_on_the_way_is_reported_and_nothing_is_written() {
    let (site, server) = (Site::new(), FileServer::start());
    let pin = format!("sha256 = \"{}\"", sha256(&tool()));
    recipe(&site, &server, &pin);
    let failed = |code: &str, values: &[&str]| {
        build(&site, &["--output", "oci:layout"])
            .arg("--timeout=20s")
            .fails(3, code, values);
        assert!(!site.path("layout").exists());
    };
    let url = server.url("/tools/tool.exe");
    failed("network/answer", &[&url, "404 Not Found"]);
    server.put("/tools/tool.exe", "other");
    let digests = [b"other".to_vec(), tool()].map(|bytes| format!("sha256:{}", sha256(&bytes)));
    failed("download/changed", &digests.each_ref().map(String::as_str));
    server.put_as("/tools/tool.exe", "text/html; charset=utf-8", "<p>Sign in");
    failed("download/page", &["text/html", "tool.exe", &url]);
    server.put("/tools/tool.exe", "\n<!DOCTYPE html><html><p>Sign in");
    failed("download/page", &["text/html", "tool.exe", &url]);
    server.redirect("/tools/tool.exe", "ftp://elsewhere.lan/tool.exe");
    failed("network/answer", &[&url, "Location"]);
    server.redirect("/tools/tool.exe", "/moved/tool");
    server.put("/moved/tool", tool());
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
}

#[test]
fn a_recipe_does_not_reach_this_machine_or_the_metadata_of_its_cloud() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    let pin = format!("sha256 = \"{}\"", sha256(&tool()));
    let port = server.host().split_once(':').unwrap().1.to_owned();
    for (host, hint) in [
        (server.host(), "--insecure-registry"),
        (format!("localhost:{port}"), "--insecure-registry"),
        (format!("[::ffff:127.0.0.1]:{port}"), "--insecure-registry"),
        ("169.254.169.254".to_owned(), ""),
    ] {
        let url = format!("http://{host}/tools/tool.exe");
        let text = format!(
            "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\n{pin}\nto = 'C:\\app\\'\n"
        );
        site.write("app/recipe.toml", text);
        let mut command = site.build("./app");
        command.args(HOST).args(["--output", "oci:layout"]);
        let refused = command.fails(3, "network/address", &[]);
        assert!(refused.hint.contains(hint), "{refused:#?}");
        assert_eq!(refused.hint.is_empty(), hint.is_empty(), "{refused:#?}");
    }
    assert_eq!(server.requests(), [""; 0]);
    recipe(&site, &server, &pin);
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
}

#[test]
fn a_download_goes_on_where_a_connection_broke_or_a_run_was_killed() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    server.fail("/tools/tool.exe", [ResponseFault::Cut(300_000)]);
    assert_eq!(built(&site, &[], "app/tool.exe"), tool());
    let asked = server.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].starts_with("/tools/tool.exe bytes="), "{asked:?}");

    server.forget();
    server.fail("/tools/tool.exe", [ResponseFault::Hang(500_000)]);
    let cache = site.path("other");
    let mut command = site.command(&["build", "./app"]);
    command
        .args(["--base-registry", &format!("{}/mcr", site.host())])
        .args(HOST)
        .args(["--output", "oci:killed", "--cache-dir", "other"])
        .args(["--insecure-registry", &server.host()]);
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
            let output = format!("oci:{name}");
            scope.spawn(move || build(site, &[]).args(["--output", &output]).tells(0))
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

#[test]
fn without_a_cache_of_its_own_a_build_downloads_all_the_same() {
    use std::os::unix::fs::PermissionsExt;
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    let (open, temporary) = (site.path("open/wincimg"), site.path("temporary"));
    for folder in [&open, &temporary] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = build(&site, &["--tag", "1", "--output", "oci:layout"]);
    command
        .env("XDG_CACHE_HOME", site.path("open"))
        .env("TMPDIR", &temporary);
    let said = command.tells(0);
    says(&said, &warning(&["open/wincimg", "--cache-dir"]));
    assert_eq!(server.requests(), ["/tools/tool.exe"]);
    for folder in [&open, &temporary] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{said}");
    }
}

#[test]
fn a_cache_that_cannot_be_created_is_an_error_only_if_it_is_named() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    recipe(&site, &server, &format!("sha256 = \"{}\"", sha256(&tool())));
    // Root can write to a read-only folder, but not below a file.
    site.write("home", "");
    let mut command = build(&site, &["--tag", "1", "--output", "oci:layout"]);
    command.env("XDG_CACHE_HOME", site.path("home"));
    command.tells(0);
    assert_eq!(server.requests(), ["/tools/tool.exe"]);
    build(
        &site,
        &["--output", "oci:named", "--cache-dir", "home/cache"],
    )
    .fails(3, "file/io", &["cannot store the download"])
    .advises(&["--cache-dir DIR"]);
}

#[test]
fn a_cache_that_cannot_be_written_is_an_error_only_if_it_is_named() {
    let (site, server) = (Site::new(), FileServer::with("/tools/tool.exe", tool()));
    // Several at once: none may take away what another has just stored.
    let others = (0..12).map(|number| {
        let (name, content) = (format!("/tools/{number}.exe"), number.to_string());
        server.put(&name, content.clone());
        let (url, digest) = (server.url(&name), sha256(content.as_bytes()));
        format!("\nto = 'C:\\other\\'\n[[files]]\nurl = \"{url}\"\nsha256 = \"{digest}\"")
    });
    let others: String = others.collect();
    let files = format!("sha256 = \"{}\"{others}", sha256(&tool()));
    recipe(&site, &server, &files);
    // As on a full disk.
    site.write("home/wincimg/downloads", "");
    let mut command = build(&site, &["--tag", "1", "--output", "oci:layout"]);
    command.env("XDG_CACHE_HOME", site.path("home"));
    let said = command.tells(0);
    says(
        &said,
        &warning(&["the cache is not used", "wincimg/downloads", "--cache-dir"]),
    );
    build(
        &site,
        &["--output", "oci:named", "--cache-dir", "home/wincimg"],
    )
    .fails(3, "file/io", &["cannot store the download"])
    .advises(&["--cache-dir DIR"]);
}

/// Writes a Dockerfile.
fn dockerfile(site: &Site, instructions: &str) {
    let text = format!("FROM mcr.microsoft.com/windows/servercore:1809\n{instructions}\n");
    site.write("app/Dockerfile", text);
}

/// Writes a Dockerfile with a PowerShell line.
fn script(site: &Site, line: &str) {
    let shell = "SHELL [\"powershell\", \"-Command\", \"$ErrorActionPreference = 'Stop';\"]";
    dockerfile(site, &format!("# escape=`\n{shell}\nRUN {line}"));
}

fn site_with_servercore() -> Site {
    let site = Site::new();
    site.registry
        .with(|stored| {
            wincimg_demo::add_base_images(stored, "mcr/windows/servercore", &crate::site::HOSTS)
        })
        .unwrap();
    site
}

#[test]
fn add_takes_what_a_url_has_as_it_is() {
    let (site, server) = (site_with_servercore(), FileServer::start());
    server.put("/a%20b/tool%201.zip", "not unpacked");
    server.put("/other.tar.gz", "nor this");
    let (one, two) = (
        server.url("/a%20b/tool%201.zip"),
        server.url("/other.tar.gz"),
    );
    let sha512 = hex::encode(sha2::Sha512::digest(b"nor this"));
    dockerfile(
        &site,
        &format!(
            "WORKDIR /w\nADD --checksum=sha256:{} {one} ./\nADD --checksum=sha512:{sha512} {two} /x/y\n\
             FROM mcr.microsoft.com/windows/servercore:1809\nCOPY --from=0 /w /from-here/\n\
             ADD --checksum=sha512:{sha512} {two} /x/y",
            sha256(b"not unpacked")
        ),
    );
    assert_eq!(built(&site, &[], "from-here/tool 1.zip"), b"not unpacked");
    assert_eq!(built(&site, &[], "x/y"), b"nor this");
    let mut asked = server.requests();
    asked.sort();
    assert_eq!(asked, ["/a%20b/tool%201.zip", "/other.tar.gz"]);
    // All hosts use the same file.
    let mut both = build(&site, &["--host-build", "20348.2402"]);
    assert!(
        both.args(["--output", "oci:both"])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(server.requests().len(), 2);

    let sha = sha256(b"other");
    for (instruction, values) in [
        (
            format!("ADD --checksum=md5:00 {one} /x/"),
            &["sha256:, sha384:", "sha512:"][..],
        ),
        (
            format!("ADD --checksum=sha256:{sha} {one} {two} /x/"),
            &["--checksum"],
        ),
        (
            format!("ADD --checksum=sha256:{sha} Dockerfile /x/"),
            &["--checksum"],
        ),
        (format!("COPY {one} /x/"), &["ADD", "http://"]),
        (
            "ADD https://example.com/a.git /x/".to_owned(),
            &["https://example.com/a.git", "Git"],
        ),
        (
            "ADD https://me:secret@example.com/a.zip /x/".to_owned(),
            &["https://example.com/a.zip"],
        ),
        (
            "ADD https://example.com/ /x/".to_owned(),
            &["https://example.com/"],
        ),
        (
            "ADD ftp://example.com/a /x/".to_owned(),
            &["https://", "http://"],
        ),
    ] {
        dockerfile(&site, &instruction);
        build(&site, &["--dry-run"])
            .fails(2, "dockerfile/invalid", values)
            .hides("secret");
    }
    dockerfile(&site, "RUN curl -o C:\\a https://a:b@example.com/a");
    build(&site, &["--dry-run"])
        .fails(4, "dockerfile/not-understood", &["https://example.com/a"])
        .hides("a:b@");
    let url = "https://me:secret@example.com/a.zip";
    site.write(
        "other/recipe.toml",
        format!("name = \"a\"\nbase = \"nanoserver\"\n[[files]]\nurl = \"{url}\"\nto = '/a'\n"),
    );
    site.build("./other")
        .args(HOST)
        .fails(
            2,
            "recipe/invalid",
            &["recipe.toml:4:7: https://example.com/a.zip"],
        )
        .hides("secret");
    dockerfile(&site, &format!("ADD --checksum=sha256:{sha} {one} /x/"));
    build(&site, &[]).args(["--output", "oci:wrong"]).fails(
        3,
        "download/changed",
        &[&format!("sha256:{sha}")],
    );
    assert!(!site.path("wrong").exists());
}

#[test]
fn a_digest_that_a_line_checks_pins_what_it_downloads() {
    let (site, server) = (
        site_with_servercore(),
        FileServer::with("/tool.exe", tool()),
    );
    let url = server.url("/tool.exe");
    script(
        &site,
        &format!(
            "Invoke-WebRequest -Uri {url} -OutFile C:\\get.exe; \
             if ((Get-FileHash C:\\get.exe -Algorithm sha256).Hash -ne '{}') {{ Write-Host 'FAILED!'; exit 1; }}; \
             New-Item -Type Directory C:\\tools; Move-Item C:\\get.exe C:\\tools\\tool.exe",
            sha256(&tool())
        ),
    );
    let noted = build(&site, &["--dry-run"]).tells(0);
    says(&noted, &note(&["Dockerfile:4", &url]));
    assert_eq!(server.requests(), [""; 0]);
    for _ in 0..2 {
        assert_eq!(built(&site, &[], "tools/tool.exe"), tool());
    }
    assert_eq!(server.requests(), ["/tool.exe"]);
    let text = build(&site, &["--dry-run"]).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    let digest = format!("sha256:{}", sha256(&tool()));
    says(
        &text,
        &line(&["file ", r"C:\tools\tool.exe", &url, &digest]),
    );
    let dry = json_of(build(&site, &["--dry-run"]).arg("-q"));
    let entries = &dry["plans"][0]["instructions"]["steps"][1]["layer"]["entries"];
    let file = &entries[1]["content"]["file"]["download"];
    assert_eq!(file["url"], json!(url));
    assert_eq!(file["digest"], json!(format!("sha256:{}", sha256(&tool()))));

    // MD5 and SHA-1 are verified but do not pin.
    let line = |hash: &str| {
        format!(
            "(New-Object System.Net.WebClient).DownloadFile('{url}', 'C:\\a.exe'); \
             if ((Get-FileHash C:\\a.exe -Algorithm MD5).Hash -ne '{hash}') {{ throw 'wrong' }}"
        )
    };
    script(&site, &line(&"0".repeat(32)));
    build(&site, &[]).fails(2, "download/not-pinned", &[&url]);
    let noting = ["--update-lock", "--insecure-registry", &server.host()];
    build(&site, &noting)
        .args(["--output", "oci:no"])
        .fails(2, "dockerfile/fails", &["md5:"]);
    assert!(!site.path("app/wincimg.lock").exists());
    assert!(!site.path("no").exists());
}

#[test]
fn what_depends_on_a_download_is_done_once_it_is_here() {
    let (site, server) = (site_with_servercore(), FileServer::start());
    server.put("/version.txt", "1.4");
    server.put("/tool-1.4.exe", tool());
    let url = server.url("/tool-");
    script(
        &site,
        &format!(
            "Invoke-WebRequest {} -OutFile C:\\version.txt; $v = Get-Content -Raw C:\\version.txt; \
             Invoke-WebRequest \"{url}$v.exe\" -OutFile C:\\tool.exe; Remove-Item C:\\version.txt\n\
             RUN if (Test-Path C:\\tool.exe) {{ Set-Content C:\\found.txt yes }}",
            server.url("/version.txt")
        )
        .replace('\"', "\\\""),
    );
    let noted = build(&site, &["--dry-run"]).tells(0);
    assert_contains!(noted, "Dockerfile:4: ");
    let noting = ["--update-lock", "--insecure-registry", &server.host()];
    assert_eq!(built(&site, &noting, "tool.exe"), tool());
    assert_eq!(built(&site, &[], "found.txt"), b"yes\r\n");
    assert_eq!(server.requests(), ["/version.txt", "/tool-1.4.exe"]);
    let lock = site.text("app/wincimg.lock");
    assert_eq!(lock.matches("[[download]]").count(), 2, "{lock}");
}

#[test]
fn a_query_is_not_printed_and_a_lock_file_with_one_is_warned_about() {
    let server = FileServer::with("/a.bin", "content");
    let site = site_with_servercore();
    let url = server.url("/a.bin");
    dockerfile(&site, &format!("ADD {url}?sig=SECRET /x/"));
    build(&site, &[])
        .fails(2, "download/not-pinned", &[&url])
        .hides("SECRET");
    let warned = build(&site, &["--dry-run"]).tells(0);
    says(&warned, &warning(&[&url, "--update-lock"]));
    assert!(!warned.contains("SECRET"), "{warned}");
    let noting = ["--update-lock", "--insecure-registry", &server.host()];
    let noted = build(&site, &noting)
        .args(["--output", "oci:first"])
        .tells(0);
    says(&noted, &warning(&["wincimg.lock", "the query of", &url]));
    assert!(!noted.contains("SECRET"), "{noted}");
    let again = build(&site, &noting)
        .args(["--output", "oci:second"])
        .tells(0);
    assert!(!again.contains("the query of"), "{again}");
}

#[test]
fn a_plan_shows_no_query() {
    let site = Site::new();
    let recipe = "name = \"app\"\nbase = \"nanoserver\"\n[variables.token]\ndefault = \"\"\n[[files]]\n\
         url = \"https://repo.lan/a.bin?sig=${token}\"\nto = 'C:\\a.bin'\n";
    site.write("app/recipe.toml", recipe);
    let shown = build(&site, &["--dry-run", "--set", "token=SECRET"]).prints();
    assert_contains!(shown, "https://repo.lan/a.bin");
    assert!(!shown.contains("SECRET"), "{shown}");
    let json = json_of(build(&site, &["--dry-run", "--set", "token=SECRET"]).arg("-q"));
    let file = &json["plans"][0]["files"][0]["source"]["download"];
    assert_eq!(file["url"], "https://repo.lan/a.bin");
}

#[test]
fn curl_follows_redirects_with_location() {
    let (site, server) = (site_with_servercore(), FileServer::with("/new", tool()));
    server.redirect("/old", "/new");
    let noting = ["--update-lock", "--insecure-registry", &server.host()];
    let url = server.url("/old");
    dockerfile(&site, &format!("RUN curl -so C:\\tool.exe {url}"));
    build(&site, &noting)
        .args(["--output", "oci:no"])
        .fails(3, "network/answer", &["-L"]);
    dockerfile(&site, &format!("RUN curl -sLo C:\\tool.exe {url}"));
    assert_eq!(built(&site, &noting, "tool.exe"), tool());
}
