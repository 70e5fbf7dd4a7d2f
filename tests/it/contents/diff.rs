//! `image diff` of two images.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use wincimg_oci::reference::parse_reference;
use wincimg_oci::store::Sink;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::registry;

use super::{Images, VENDOR, app, bottom, changes, image, patch, rewrite, versions};
use crate::site::block_on;

#[test]
fn diff_has_the_differences_of_the_trees_that_tarfile_merges() {
    let images = versions();
    let tree = |name: &str| -> BTreeMap<String, (String, u64)> {
        let rows = images.by_python(name).into_iter();
        let rows = rows.filter(|(path, kind, _)| kind != "folder" || path.ends_with("Ünï"));
        rows.map(|(path, kind, size)| (path.to_lowercase(), (kind, size)))
            .collect()
    };
    let (one, two) = (tree("one"), tree("two"));
    let mut expected = BTreeSet::new();
    for path in one.keys().chain(two.keys()) {
        let change = match (one.get(path), two.get(path)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
            _ => "added",
        };
        expected.insert((change.to_owned(), path.clone()));
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let image = &found["images"][0];
    let mut seen = BTreeSet::new();
    for (change, path) in changes(&image["files"], "path") {
        // Folders differ too; tarfile knows no attributes of Windows.
        let folder = [r"C:\app\old", r"C:\app"].contains(&path.as_str());
        if !folder {
            seen.insert((change, path.to_lowercase()));
        }
    }
    assert_eq!(seen, expected);
    assert!(expected.contains(&("removed".to_owned(), r"c:\windows\win.ini".to_owned())));

    let keys = changes(&image["registry"], "key");
    let key = |change: &str, key: &str| (change.to_owned(), key.to_owned());
    let expected = BTreeSet::from([
        key("changed", VENDOR),
        key("removed", &format!(r"{VENDOR}\Sub")),
        key("removed", r"HKLM\SOFTWARE\Microsoft\long"),
    ]);
    assert_eq!(keys, expected);
    let vendor = &image["registry"].as_array().unwrap()[1];
    assert_eq!(vendor["key"], VENDOR);
    let values = changes(&vendor["values"], "name");
    assert_eq!(
        values,
        BTreeSet::from([key("changed", "Name"), key("removed", "More")])
    );
    let sizes = ["before", "after"].map(|side| image[side]["content"].as_u64().unwrap());
    let expected = ["one", "two"].map(|name| {
        let listed = images.json(&["ls", &format!("oci:{name}")]);
        listed["size"].as_u64().unwrap()
    });
    assert_eq!(sizes, expected);
}

#[test]
fn diff_reads_a_layer_of_both_images_once() {
    let server = FakeRegistry::start();
    let names = ["one", "two"].map(|name| format!("{}/{name}:1", server.host()));
    let images = [patch(), rewrite()];
    let images = images.map(|top| image("17763.1040", vec![bottom(), app(), top]));
    for (name, image) in names.iter().zip(&images) {
        let repository = registry(&server.host()).repository(&parse_reference(name).unwrap());
        let sink = Sink::Registry(repository.for_push());
        block_on(image.put(&sink, Some("1")));
    }
    let empty = Images::new();
    empty.json(&["diff", &names[0], &names[1]]);
    let shared = images[0].layers[1].0.digest.to_string();
    assert_eq!(shared, images[1].layers[1].0.digest.to_string());
    let mut reads = server.requests();
    reads.retain(|it| it.starts_with("GET ") && it.ends_with(&shared));
    assert_eq!(reads.len(), 1, "{reads:?}");
}

#[test]
fn diff_in_text_is_a_tree_with_sums() {
    let images = versions();
    let text = images.text(&["diff", "oci:one", "oci:two", "--layers"]);
    insta::assert_snapshot!(redacted(&text));
    let same = images.text(&["diff", "oci:one", "oci:one"]);
    assert_contains!(same, "identical");
    let code = |other: &str| {
        let arguments = ["diff", "oci:one", other, "--exit-code"];
        images.command(&arguments).output().unwrap().status.code()
    };
    assert_eq!((code("oci:one"), code("oci:two")), (Some(0), Some(1)));
}

/// Replaces digests and sizes of compressed layers, which depend on the compressor.
fn redacted(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let words = line
            .split(' ')
            .map(|word| match word.strip_prefix("sha256:") {
                Some(_) => "sha256:…",
                None => word,
            });
        let line = words.collect::<Vec<_>>().join(" ");
        let line = match line.split_once("  size ") {
            Some(("", rest)) => {
                format!("  size … {}", rest.rsplit(", ").next().unwrap())
            }
            _ => match line.split_once("sha256:…  ") {
                Some((start, _)) => format!("{start}sha256:…"),
                None => line,
            },
        };
        lines += line.trim_end();
        lines.push('\n');
    }
    lines
}

#[test]
fn configuration_is_compared_by_variable_and_label() {
    let images = Images::new();
    let one = image("17763.1040", vec![bottom(), app()]);
    let mut two = one.clone();
    let edited = one.image.edit_config(|config| {
        config.config.env = vec!["A=2".into(), "B=1".into()];
        config.config.labels.insert("owner".into(), "web".into());
        config.config.entrypoint = Some(vec!["cmd".into(), "/c".into()]);
    });
    two.image = edited.unwrap();
    let mut before = one.clone();
    let edited = one
        .image
        .edit_config(|config| config.config.env = vec!["A=1".into()]);
    before.image = edited.unwrap();
    images.put("one", &before);
    images.put("two", &two);
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let image = &found["images"][0];
    let settings = changes(&image["config"], "setting");
    let row = |change: &str, name: &str| (change.to_owned(), name.to_owned());
    let expected = BTreeSet::from([
        row("changed", "Env A"),
        row("added", "Env B"),
        row("added", "Labels owner"),
        row("added", "Entrypoint"),
    ]);
    assert_eq!(settings, expected);
    assert_eq!(image["files"], json!([]));
    assert_eq!(image["registry"], json!([]));
}

#[test]
fn fields_beside_the_start_configuration_and_annotations_are_compared_too() {
    let images = Images::new();
    let one = image("17763.1040", vec![bottom()]);
    let mut two = one.clone();
    let edited = one.image.edit_config(|config| {
        config.os_features = vec!["win32k".into()];
        config.variant = Some("v2".into());
        config.other.insert("author".into(), "web".into());
        // How the image was made is not a setting.
        config.created = Some("2024-05-14T00:00:00Z".into());
        config.other.insert("container".into(), "4c01".into());
    });
    let annotations = BTreeMap::from([("owner".to_owned(), "web".to_owned())]);
    two.image = edited.unwrap().with_annotations(&annotations).unwrap();
    images.put("one", &one);
    images.put("two", &two);
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], false);
    let row = |name: &str| ("added".to_owned(), name.to_owned());
    let expected = ["os.features", "variant", "author", "annotations owner"].map(row);
    let settings = changes(&found["images"][0]["config"], "setting");
    assert_eq!(settings, BTreeSet::from(expected));
}
