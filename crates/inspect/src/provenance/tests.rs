//! Scanned layers and inventories of several of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;
use wincimg_layer::{Layer, WriteOptions};
use wincimg_oci::document::{Descriptor, History, Image, ManifestFormat, Platform, sha256};
use wincimg_testkit::test_bases::LayerTar;

use super::*;

fn contents(layer: &Layer) -> Arc<LayerContents> {
    let mut blob = Vec::new();
    layer.write(&mut blob, &WriteOptions::default()).unwrap();
    Arc::new(scan_layer(blob.as_slice(), &AtomicBool::new(false)).unwrap())
}

fn scanned(tar: LayerTar) -> Arc<LayerContents> {
    let found = scan_layer(tar.tar().as_slice(), &AtomicBool::new(false));
    Arc::new(found.unwrap())
}

fn layer(files: &[(&str, &str)]) -> Layer {
    let mut layer = Layer::new(0);
    for (path, text) in files {
        layer.file(path.parse().unwrap(), text.as_bytes().to_vec());
    }
    layer
}

fn package(name: &str, version: &str) -> String {
    json!({"name": name, "version": version}).to_string()
}

/// An image with only these layers.
fn inventory(layers: Vec<Arc<LayerContents>>) -> Inventory {
    let mut image = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
    for number in 0..layers.len() {
        let digest = sha256(number.to_string().as_bytes());
        let blob = Descriptor::new("application/x", digest.clone(), 1);
        let appended = image.append_layer(blob, digest, History::default());
        image = appended.unwrap();
    }
    Inventory::new("repo.lan/app".to_owned(), &image, None, layers)
}

fn purls(inventory: &Inventory) -> Vec<&str> {
    let packages = inventory.packages.iter();
    packages.map(|package| package.purl.as_str()).collect()
}

#[test]
fn a_file_has_both_digests_whether_it_is_small_or_large() {
    let large = "x".repeat(3 << 20);
    let found = contents(&layer(&[("a.txt", "abc"), ("b.bin", &large)]));
    let small = &found.files[0];
    assert_eq!((small.path.as_str(), small.size), ("Files/a.txt", 3));
    // printf abc | sha1sum; printf abc | sha256sum
    let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d";
    assert_eq!(hex::encode(small.digests.sha1), sha1);
    let expected = sha256(b"abc");
    assert_eq!(hex::encode(small.digests.sha256), expected.digest());
    let expected = sha256(large.as_bytes());
    let large = &found.files[1];
    assert_eq!(hex::encode(large.digests.sha256), expected.digest());
}

#[test]
fn a_hard_link_is_the_file_that_it_leads_to() {
    let mut tar = LayerTar::default();
    tar.hard_link("Files/b.txt", "Files/A.txt")
        .file("Files/a.txt", b"abc", None)
        .hard_link("Files/c.txt", "Files/nowhere")
        .hard_link("Files/d.txt", "Files/b.txt");
    let found = inventory(vec![scanned(tar)]);
    let files = &found.layers[0].contents.files;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["Files/a.txt", "Files/b.txt", "Files/d.txt"]);
    assert!(files.iter().all(|file| file.digests == files[0].digests));
}

#[test]
fn the_last_of_several_files_at_a_path_counts() {
    let mut tar = LayerTar::default();
    let path = "Files/app/node_modules/a/package.json";
    for version in ["1", "2", "3"] {
        tar.file(path, package("a", version).as_bytes(), None);
    }
    let found = inventory(vec![scanned(tar)]);
    assert_eq!(purls(&found), ["pkg:npm/a@3"]);
}

#[test]
fn a_package_is_found_by_each_name_of_its_file() {
    let store = |name: &str| format!("Files/store/00/{name}");
    let path = |name: &str| format!("Files/app/node_modules/{name}/package.json");
    let mut first = LayerTar::default();
    for name in ["a", "b", "c"] {
        first.file(&store(name), package(name, "1").as_bytes(), None);
    }
    first
        .file("Files/d/package.json", package("d", "1").as_bytes(), None)
        .file(
            "Files/METADATA",
            b"Metadata-Version: 2.1\nName: p\nVersion: 1\n",
            None,
        )
        .hard_link(&path("a"), &store("a"))
        .hard_link(&path("gone"), &store("b"));
    let mut second = LayerTar::default();
    second
        .hard_link(&path("@x/again"), &path("A"))
        .hard_link(&path("d"), "Files/d/package.json")
        .hard_link(&path("gone"), "Files/of-the-base")
        .hard_link("Files/p-1.dist-info/METADATA", "Files/METADATA")
        .hard_link("Files/note.txt", &store("c"))
        .hard_link(&path("x"), &path("y"))
        .hard_link(&path("y"), &path("x"));
    let found = inventory(vec![scanned(first), scanned(second)]);
    assert_eq!(
        purls(&found),
        ["pkg:npm/a@1", "pkg:npm/d@1", "pkg:pypi/p@1"]
    );
    let of_a = found.packages[0]
        .files
        .iter()
        .map(|place| found.path(*place));
    assert!(of_a.eq([path("@x/again"), path("a")]));
}

#[test]
fn packages_that_a_later_layer_replaced_or_took_away_are_gone() {
    let a = "app/node_modules/a/package.json";
    let b = "app/node_modules/b/package.json";
    let c = "other/node_modules/c/package.json";
    let first = layer(&[
        (a, &package("a", "1")),
        (b, &package("b", "1")),
        (c, &package("c", "1")),
    ]);
    let mut second = layer(&[("APP/node_modules/a/package.json", &package("a", "2"))]);
    second.delete("other".parse().unwrap());
    let found = inventory(vec![contents(&first), contents(&second)]);
    assert_eq!(purls(&found), ["pkg:npm/a@2", "pkg:npm/b@1"]);
    // All files of all layers stay listed.
    let counts = found.layers.iter().map(|it| it.contents.files.len());
    assert_eq!(counts.collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn packages_that_a_later_layer_replaced_by_a_link_are_gone() {
    let a = "app/node_modules/a/package.json";
    let b = "app/node_modules/b/package.json";
    let first = layer(&[(a, &package("a", "1")), (b, &package("b", "1"))]);
    let mut second = LayerTar::default();
    second.link("Files/app/node_modules/A", "C:\\other");
    let found = inventory(vec![contents(&first), scanned(second)]);
    assert_eq!(purls(&found), ["pkg:npm/b@1"]);
}

#[test]
fn a_mark_that_windows_ignores_takes_nothing_away() {
    let first = layer(&[("app/node_modules/a/package.json", &package("a", "1"))]);
    let mut tar = LayerTar::default();
    tar.file("Files/app/.wh..wh..opq", b"", None);
    let second = scan_layer(tar.tar().as_slice(), &AtomicBool::new(false)).unwrap();
    assert_eq!(second, LayerContents::default());
    let found = inventory(vec![contents(&first), Arc::new(second)]);
    assert_eq!(purls(&found), ["pkg:npm/a@1"]);
}

#[test]
fn the_same_package_in_two_folders_is_one_with_two_places() {
    let first = layer(&[
        ("x/node_modules/a/package.json", &package("a", "1")),
        ("y/node_modules/a/package.json", &package("a", "1")),
    ]);
    let found = inventory(vec![contents(&first)]);
    assert_eq!(found.packages.len(), 1);
    assert_eq!(found.packages[0].files.len(), 2);
}

#[test]
fn files_that_are_too_large_for_their_packages_are_named() {
    let large = " ".repeat((4 << 20) + 1);
    let path = |name| format!("app/node_modules/{name}/package.json");
    let (a, b) = (path("a"), path("b"));
    let found = |files: &[(&str, &str)]| inventory(vec![contents(&layer(files))]);
    assert_eq!(found(&[(&a, &package("a", "1"))]).partial_note(), None);
    let note = found(&[(&a, &large)]).partial_note().unwrap();
    let named = r"C:\app\node_modules\a\package.json are listed: too large or too deeply nested";
    assert!(note.ends_with(named), "{note}");
    let note = found(&[(&a, &large), (&b, &large)]).partial_note().unwrap();
    assert!(note.contains("and 1 more are listed"), "{note}");
}

#[test]
fn a_name_of_a_file_that_moves_a_terminal_is_escaped_in_both_formats() {
    let mut tar = LayerTar::default();
    tar.file("Files/a\u{202e}b\u{9b}.txt", b"abc", None);
    let layer = scan_layer(tar.tar().as_slice(), &AtomicBool::new(false)).unwrap();
    let found = inventory(vec![Arc::new(layer)]);
    for form in [SbomFormat::Spdx, SbomFormat::CycloneDx] {
        let mut bytes = Vec::new();
        write_sbom(form, &found, Tool::default(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r"a\u202eb\u009b.txt"), "{text}");
    }
}

#[test]
fn a_layer_that_is_cut_off_is_an_error_and_work_can_be_given_up() {
    let mut blob = Vec::new();
    let whole = layer(&[("a.txt", &"abc".repeat(5000))]);
    whole.write(&mut blob, &WriteOptions::default()).unwrap();
    let half = &blob[..blob.len() / 2];
    assert!(scan_layer(half, &AtomicBool::new(false)).is_err());
    let cancelled = scan_layer(blob.as_slice(), &AtomicBool::new(true));
    assert_eq!(cancelled.unwrap_err().to_string(), "cancelled");
}
