//! Layers that lead out of the folder, and `inspect --waste`.

use std::path::Path;

use serde_json::{Value, json};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::test_bases::LayerTar;

use super::{Images, bottom, files_in, image, rows, versions};
use crate::failure::Fails;
use crate::site::each;

/// A tar with names that no honest tool writes.
fn hostile() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, target: &str| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(if kind == tar::EntryType::Regular {
            4
        } else {
            0
        });
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        if !target.is_empty() {
            header.set_link_name(target).unwrap();
        }
        header.set_cksum();
        let content: &[u8] = if kind == tar::EntryType::Regular {
            b"evil"
        } else {
            b""
        };
        tar.append(&header, content).unwrap();
    };
    add("Files/app/ok.txt", tar::EntryType::Regular, "");
    add("Files/app/../../../escaped", tar::EntryType::Regular, "");
    add("Files/app/..\\..\\escaped", tar::EntryType::Regular, "");
    add("Files/app/a:stream", tar::EntryType::Regular, "");
    add("Files/app/CON", tar::EntryType::Regular, "");
    add("Files/app/way", tar::EntryType::Symlink, "/tmp");
    add("Files/app/way/escaped", tar::EntryType::Regular, "");
    add("Files/app/etc", tar::EntryType::Link, "/etc/passwd");
    tar.into_inner().unwrap()
}

#[test]
fn cp_writes_nothing_outside_its_folder() {
    let images = Images::new();
    images.put("bad", &image("17763.1040", vec![bottom(), hostile()]));
    let errors = images
        .command(&["cp", r"oci:bad:C:\app", "in/out"])
        .tells(0);
    let files = files_in(&images.path("in"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    // The link itself is left out, and what its layer has below it is in a folder.
    assert_eq!(names, ["out/app/ok.txt", "out/app/way/escaped"]);
    assert!(files.values().all(|bytes| bytes == b"evil"));
    assert!(!Path::new("/tmp/escaped").exists());
    assert_contains!(errors, "warning: skipped");
    let listed = images.json(&["ls", "oci:bad", r"C:\app", "--recursive"]);
    assert!(
        rows(&listed)
            .iter()
            .all(|(path, ..)| path.starts_with(r"C:\app\")),
        "{listed}"
    );
}

#[test]
fn one_link_that_is_not_copied_is_one_entry() {
    let images = Images::new();
    let mut tar = LayerTar::default();
    tar.file("Files/d/one.txt", b"1", None)
        .link("Files/d/link", r"C:\d\one.txt");
    images.put("one", &image("17763.1040", vec![bottom(), tar.tar()]));
    let errors = images.command(&["cp", r"oci:one:C:\d", "out"]).tells(0);
    assert_contains!(errors, "skipped 1 entry, such as");
}

#[test]
fn waste_is_what_later_layers_delete_or_write_again() {
    let images = versions();
    let inspect = |name: &str, more: &[&str]| {
        let mut command = images.command(&["inspect", &format!("oci:{name}")]);
        command
            .args(more)
            .args(["--format", "json"])
            .output()
            .unwrap()
    };
    let waste = |name: &str| -> Value {
        let output = inspect(name, &["--waste"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["images"][0]["waste"].clone()
    };
    // Replaced a.txt, deleted b.txt and old\one.
    let one = waste("one");
    assert_eq!(one["bytes"], json!(12 + 5 + 1));
    assert_eq!(one["of"], json!(12 + 5 + 5000 + 1 + 4 + 20 + 2));
    assert_eq!(one["layers"], json!([2, 3]));
    let first = json!({"path": r"C:\app\a.txt", "size": 12, "layer": 2, "by": 3, "deleted": false});
    assert_eq!(one["files"][0], first);
    let two = waste("two");
    assert_eq!(two["bytes"], 12 + 5 + 5000 + 1 + 4);
    let deleted = each(&two["files"], "deleted");
    assert!(deleted.iter().all(|&it| it == true));

    for (limit, code) in [("18B", 0), ("17", 1), ("1%", 0), ("0.1%", 1)] {
        let output = inspect("one", &["--max-waste", limit]);
        assert_eq!(output.status.code(), Some(code), "{limit}");
    }
    let text = images.text(&["inspect", "oci:two", "--waste"]);
    assert_contains!(text, r"C:\app\big.bin, deleted by layer 3");
}

#[test]
fn of_two_images_of_one_version_the_digest_is_advised() {
    let server = FakeRegistry::start();
    let version = "10.0.20348.2402";
    let features = |features: Value| {
        let config = json!({"os": "windows", "architecture": "amd64", "os.version": version,
            "os.features": features});
        server.image_with(&config)
    };
    let images = [features(json!(["win32k"])), features(json!([]))];
    let index = server.index(&[(&images[0], Some(version)), (&images[1], Some(version))]);
    server.tag("app", "1.0", &index);
    let name = format!("{}/app:1.0", server.host());
    let listed = Images::new()
        .command(&["ls", &name, "--insecure-registry", &server.host()])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&listed.stderr);
    let named = images.map(|digest| format!("{}/app@{digest}", server.host()));
    assert!(named.iter().any(|name| printed.contains(name)), "{printed}");
}
