//! Rights, and what one layer says of a file.

use serde_json::json;
use wincimg_testkit::test_bases::{FILE, LayerTar, USER_FOLDER};

use super::{Images, app, bottom, image, versions};
use crate::failure::Fails;

#[test]
fn files_that_differ_in_their_rights_differ() {
    let images = Images::new();
    let own = |rights: &str| {
        let mut tar = LayerTar::default();
        tar.folder("Files/d", Some(USER_FOLDER))
            .file("Files/d/f.txt", b"x", Some(rights))
            .file("Files/d/same.txt", b"x", Some(FILE));
        image("17763.1040", vec![bottom(), tar.tar()])
    };
    images.put("one", &own(FILE));
    images.put("two", &own("O:BAG:SYD:PAI(A;;FA;;;SY)(A;;0x1301bf;;;BU)"));
    let arguments = ["diff", "oci:one", "oci:two", "--exit-code"];
    let output = images.command(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_contains!(text, "files     1 changed", "~ f.txt  1 B  rights\n");
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let files = found["images"][0]["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0]["path"], r"C:\d\f.txt");
    assert_eq!(files[0]["differs"], json!(["rights"]));
}

#[test]
fn an_image_of_another_system_is_refused() {
    let images = versions();
    let mut other = image("17763.1040", vec![app()]);
    let edited = other.image.edit_config(|config| {
        config.os = "linux".into();
        config.os_version = None;
    });
    other.image = edited.unwrap();
    images.put("other", &other);
    for arguments in [
        &["diff", "oci:other", "oci:one"][..],
        &["diff", "oci:one", "oci:other"],
    ] {
        let errors = images.command(arguments).tells(2);
        assert_contains!(errors, "is for linux/amd64, not for Windows");
    }
}

#[test]
fn the_root_of_the_drive_has_its_name_and_one_file_is_not_files() {
    let images = Images::new();
    let mut root = LayerTar::default();
    root.entry("Files", tar::EntryType::Directory, "18", None, b"", None)
        .file("Files/d/one.txt", b"1", Some(FILE));
    images.put("one", &image("17763.1040", vec![bottom()]));
    images.put("two", &image("17763.1040", vec![bottom(), root.tar()]));
    let text = images.text(&["diff", "oci:one", "oci:two"]);
    let lines = "\n    ~ C:\\  attributes +hidden\n      + d\\\n        + one.txt  1 B\n";
    assert_contains!(text, lines);
    let text = images.text(&["ls", "oci:two", r"C:\d"]);
    assert!(text.ends_with("1 file, 0 folders, 1 B\n"), "{text}");
}

#[test]
fn a_layer_says_of_a_file_what_the_whole_image_says() {
    use tar::EntryType::{Regular, Symlink};
    const JUNCTION: &str = "MSWINDOWS.mountpoint";
    let mut first = LayerTar::default();
    first
        .folder("Files/d", Some(USER_FOLDER))
        .file("Files/d/bytes.txt", b"x", Some(FILE))
        .file("Files/d/rights.txt", b"x", Some(FILE))
        .file("Files/d/hidden.txt", b"x", Some(FILE))
        .file("Files/d/same.txt", b"x", Some(FILE))
        .file("Files/d/gone.txt", b"x", Some(FILE))
        .file("Files/d/kind", b"x", Some(FILE))
        .link("Files/d/link", r"C:\one")
        .link("Files/d/junction", r"C:\one");
    let mut second = LayerTar::default();
    second
        .folder("Files/d", Some(USER_FOLDER))
        .file("Files/D/bytes.txt", b"y", Some(USER_FOLDER))
        .file("Files/d/rights.txt", b"x", Some(USER_FOLDER))
        .entry("Files/d/hidden.txt", Regular, "3", Some(FILE), b"x", None)
        .file("Files/d/same.txt", b"x", Some(FILE))
        .file("Files/d/.wh.gone.txt", b"", None)
        .folder("Files/d/kind", Some(FILE))
        .link("Files/d/link", r"C:\two")
        .raw(
            "Files/d/junction",
            Symlink,
            &[(JUNCTION.to_owned(), b"1".to_vec())],
            b"",
            Some(r"C:\one"),
        );
    let images = Images::new();
    let mut layers = vec![bottom(), first.tar()];
    images.put("one", &image("17763.1040", layers.clone()));
    layers.push(second.tar());
    images.put("two", &image("17763.1040", layers));
    let lines = r"
        d\
        ~ bytes.txt  1 B  content, rights
        - gone.txt  1 B
        ~ hidden.txt  1 B  attributes +readonly +hidden -archive
        ~ junction  link → junction
        ~ kind\  1 B  file → folder
        ~ link  C:\one → C:\two
        ~ rights.txt  1 B  rights
";
    let text = images.text(&["diff", "oci:one", "oci:two", "--layers"]);
    let (whole, layer) = text.split_once("  layers ").unwrap();
    assert!(whole.contains(lines), "{text}");
    let again = format!("{lines}        = same.txt  1 B\n");
    let again = again.replace('\n', "\n  ");
    assert!(layer.contains(again.trim_end()), "{text}");

    let found = images.json(&["diff", "oci:one", "oci:two", "--layers"]);
    let image = &found["images"][0];
    let layers = image["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let mut files = layers[0]["files"].as_array().unwrap().clone();
    let again = files.pop().unwrap();
    assert_eq!(again["path"], r"C:\d\same.txt");
    assert_eq!(again["change"], "rewritten");
    assert_eq!(again["differs"], json!([]));
    assert_eq!(json!(files), image["files"]);
    let differs = files.iter().map(|file| file["differs"].clone());
    let expected = json!([
        ["content", "rights"],
        [],
        ["attributes"],
        ["kind"],
        ["kind"],
        ["target"],
        ["rights"]
    ]);
    assert_eq!(json!(differs.collect::<Vec<_>>()), expected);
    // `--acl` shows the descriptors of files whose rights differ.
    let text = images.text(&["diff", "oci:one", "oci:two", "--acl"]);
    let shown = text.lines().filter(|line| line.contains("O:")).count();
    assert_eq!(shown, 2 + 1 + 2, "{text}");
}

#[test]
fn rights_that_only_one_image_has_differ_with_acl() {
    let images = Images::new();
    for (name, rights) in [("one", Some(FILE)), ("two", None)] {
        let mut tar = LayerTar::default();
        tar.file("Files/d/one.txt", b"1", rights);
        images.put(name, &image("17763.1040", vec![bottom(), tar.tar()]));
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], true, "{found}");
    let found = images.json(&["diff", "oci:one", "oci:two", "--acl"]);
    let file = &found["images"][0]["files"][0];
    assert_eq!(file["differs"], json!(["rights"]), "{found}");
}
