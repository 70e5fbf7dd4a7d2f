//! `image cp`, and links between files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use wincimg_testkit::test_bases::LayerTar;

use super::{Images, bottom, files_in, image, rows, run, versions};
use crate::failure::Fails;

#[test]
fn cp_copies_a_folder_or_a_file_as_a_container_sees_it() {
    let images = versions();
    let copied = images.json(&["cp", r"oci:one:C:\app", "out"]);
    let expected = BTreeMap::from([
        ("app/A.TXT".to_owned(), vec![b'A'; 20]),
        ("app/alias.bin".to_owned(), vec![0; 5000]),
        ("app/big.bin".to_owned(), vec![0; 5000]),
        ("app/old/two".to_owned(), b"22".to_vec()),
        ("app/Ünï/кот.txt".to_owned(), b"meow".to_vec()),
    ]);
    let folded = |files: BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        files
            .into_iter()
            .map(|(name, bytes)| (name.to_lowercase(), bytes))
            .collect()
    };
    assert_eq!(folded(files_in(&images.path("out"))), folded(expected));
    assert_eq!(copied["files"], 5);
    assert_eq!(copied["bytes"], 20 + 5000 + 5000 + 2 + 4);
    assert_eq!(copied["skipped"], json!([r"C:\app\out"]));

    images.text(&["cp", r"oci:one:C:\app\big.bin", "file"]);
    let expected = BTreeMap::from([("big.bin".to_owned(), vec![0; 5000])]);
    assert_eq!(files_in(&images.path("file")), expected);

    // Nothing is overwritten, but the same command may continue.
    let mut names = files_in(&images.path("out")).into_keys();
    let big = names.find(|name| name.ends_with("big.bin")).unwrap();
    let big = images.path(&format!("out/{big}"));
    fs::remove_file(&big).unwrap();
    assert_eq!(images.json(&["cp", r"oci:one:C:\app", "out"]), copied);
    fs::write(&big, "the user's").unwrap();
    let mut again = images.command(&["cp", r"oci:one:C:\app", "out"]);
    let output = again.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("already has"),
        "{errors}"
    );
    images
        .command(&["cp", r"oci:one:C:\app\big.bin", "file/big.bin"])
        .fails(3, "output/write", &["file/big.bin", "DIR is a folder"]);
    let missing = images
        .command(&["cp", r"oci:two:C:\Windows\win.ini", "no"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(!images.path("no").exists());
}

/// Layers whose hard links outlive their files.
fn linked() -> Vec<Vec<u8>> {
    let mut first = LayerTar::default();
    first
        .hard_link("Files/app/alias.bin", "Files/app/file.bin")
        .file("Files/app/file.bin", &[b'h'; 1000], None)
        .file("Files/app/gone.bin", &[b'g'; 20], None)
        .hard_link("Files/app/kept.bin", "Files/app/gone.bin");
    let mut second = LayerTar::default();
    second.hard_link("Files/app/later.bin", "Files/app/file.bin");
    let mut third = LayerTar::default();
    third
        .file("Files/app/file.bin", &[b'H'; 10], None)
        .file("Files/app/.wh.gone.bin", b"", None);
    vec![bottom(), first.tar(), second.tar(), third.tar()]
}

#[test]
fn a_hard_link_has_the_file_of_its_own_layer() {
    let images = Images::new();
    images.put("one", &image("17763.1040", linked()));
    let expected = BTreeMap::from([
        ("app/alias.bin".to_owned(), vec![b'h'; 1000]),
        ("app/file.bin".to_owned(), vec![b'H'; 10]),
        ("app/kept.bin".to_owned(), vec![b'g'; 20]),
        ("app/later.bin".to_owned(), vec![b'h'; 1000]),
    ]);
    images.text(&["cp", r"oci:one:C:\app", "out"]);
    assert_eq!(files_in(&images.path("out")), expected);
    for (name, bytes) in &expected {
        let from = format!("oci:one:/{name}");
        let (folder, name) = (format!("own/{name}"), name.replace("app/", ""));
        images.text(&["cp", &from, &folder]);
        assert_eq!(
            files_in(&images.path(&folder)),
            BTreeMap::from([(name, bytes.clone())])
        );
    }
    let exported = run(&mut images.command(&["export", "oci:one", "--path", r"C:\app"]));
    let mut tar = tar::Archive::new(exported.stdout.as_slice());
    let mut found = BTreeMap::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        if !path.ends_with('/') {
            found.insert(path, bytes);
        }
    }
    assert_eq!(found, expected);
    let text = images.text(&["ls", "oci:one", r"C:\app"]);
    let sizes = text.lines().filter(|line| line.contains("1000 B"));
    assert_eq!(sizes.count(), 2, "{text}");
}

#[test]
fn a_folder_has_the_spelling_of_the_lowest_layer() {
    let mut first = LayerTar::default();
    first
        .folder("Files/Alpha", None)
        .folder("Files/Alpha/In", None)
        .file("Files/Alpha/In/one.txt", b"1", None);
    let mut second = LayerTar::default();
    second
        .folder("Files/ALPHA", None)
        .folder("Files/ALPHA/IN", None)
        .file("Files/ALPHA/IN/Two.txt", b"2", None);
    let images = Images::new();
    let layers = vec![bottom(), first.tar(), second.tar()];
    images.put("one", &image("17763.1040", layers));
    let expected = ["Alpha", "Alpha/In", "Alpha/In/one.txt", "Alpha/In/Two.txt"];
    let listed = images.json(&["ls", "oci:one", "/alpha", "--recursive"]);
    let listed: BTreeSet<String> = rows(&listed).into_iter().map(|(path, ..)| path).collect();
    let windows = expected[1..].iter().map(|path| path.replace('/', r"\"));
    let windows = windows.map(|path| format!(r"C:\{path}"));
    assert_eq!(listed, windows.collect::<BTreeSet<_>>());
    let exported = run(&mut images.command(&["export", "oci:one", "--path", r"C:\alpha"]));
    let mut tar = tar::Archive::new(exported.stdout.as_slice());
    let entries = tar.entries().unwrap().map(Result::unwrap);
    let paths = entries.map(|entry| entry.path().unwrap().to_str().unwrap().to_owned());
    let paths: BTreeSet<String> = paths
        .map(|path| path.trim_matches('/').to_owned())
        .collect();
    assert_eq!(paths, BTreeSet::from(expected.map(str::to_owned)));
}

#[test]
fn the_last_of_several_entries_at_a_path_is_copied() {
    let mut tar = LayerTar::default();
    tar.file("Files/app/a", b"1", None)
        .file("Files/app/A", b"22", None)
        .file("Files/app/a", b"333", None);
    let images = Images::new();
    images.put("one", &image("17763.1040", vec![bottom(), tar.tar()]));
    let listed = rows(&images.json(&["ls", "oci:one", "/app"]));
    assert_eq!(listed, [(r"C:\app\a".to_owned(), "file".to_owned(), 3)]);
    images.text(&["cp", r"oci:one:C:\app", "all"]);
    let expected = BTreeMap::from([("app/a".to_owned(), b"333".to_vec())]);
    assert_eq!(files_in(&images.path("all")), expected);
}

#[test]
fn a_hard_link_to_a_hard_link_is_copied_from_any_layer() {
    let mut first = LayerTar::default();
    first
        .file("Files/app/a", &[b'a'; 1000], None)
        .hard_link("Files/app/b", "Files/app/a")
        .hard_link("Files/app/c", "Files/App/B");
    let mut second = LayerTar::default();
    second
        .hard_link("Files/app/d", "Files/app/c")
        .hard_link("Files/app/e", "Files/app/d")
        .hard_link("Files/app/x", "Files/app/y")
        .hard_link("Files/app/y", "Files/app/x");
    let mut third = LayerTar::default();
    third
        .hard_link("Files/app/f", "Files/app/e")
        .file("Files/app/a", b"new", None);
    let images = Images::new();
    let layers = vec![bottom(), first.tar(), second.tar(), third.tar()];
    images.put("one", &image("17763.1040", layers));
    let linked = |name: &str| (name.to_owned(), vec![b'a'; 1000]);
    images.text(&["cp", "oci:one:/app/f", "alone"]);
    let alone = BTreeMap::from([linked("f")]);
    assert_eq!(files_in(&images.path("alone")), alone);
    images.text(&["cp", r"oci:one:C:\app", "all"]);
    let all = ["app/b", "app/c", "app/d", "app/e", "app/f"];
    let mut expected = BTreeMap::from(all.map(linked));
    expected.insert("app/a".to_owned(), b"new".to_vec());
    assert_eq!(files_in(&images.path("all")), expected);
}

#[test]
fn a_file_is_wasted_when_its_last_name_is_gone() {
    let images = Images::new();
    let waste = |name: &str| -> Value {
        let found = images.json(&["inspect", &format!("oci:{name}"), "--waste"]);
        found["images"][0]["waste"].clone()
    };
    images.put("one", &image("17763.1040", linked()));
    assert_eq!(waste("one")["files"], json!([]));
    let mut last = LayerTar::default();
    last.file("Files/app/.wh.alias.bin", b"", None)
        .file("Files/app/.wh.kept.bin", b"", None);
    let mut layers = linked();
    layers.push(last.tar());
    images.put("two", &image("17763.1040", layers));
    // The larger one has a name of the third layer, too.
    let gone =
        json!([{"path": r"C:\app\gone.bin", "size": 20, "layer": 2, "by": 5, "deleted": true}]);
    assert_eq!(waste("two")["files"], gone);
}

#[test]
fn a_link_is_not_copied_without_a_word() {
    let images = versions();
    for arguments in [
        &["cp", r"oci:one:C:\app\out", "to"][..],
        &["export", "oci:one", "--path", r"C:\APP\OUT", "-o", "to"],
    ] {
        let errors = images.command(arguments).tells(1);
        assert_contains!(errors, "wincimg image ls oci:one");
        assert!(!images.path("to").exists());
    }
}
