//! Images whose bottom layer is elsewhere or is skipped.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wincimg_oci::document::ManifestFormat;
use wincimg_testkit::windows_base::StandIn;

use super::{FOREIGN, Images, VENDOR, app, changes, image, patch, rewrite, rows, run, versions};
use crate::site::block_on;

/// An image whose bottom layer is foreign and stored elsewhere.
fn with_foreign_base(images: &Images, name: &str, above: Vec<u8>) {
    let mut stand_in = StandIn::new(ManifestFormat::Docker, "10.0.17763.1040", &[]);
    stand_in.push(FOREIGN, 1000, 5, vec!["https://mcr.invalid/layer".into()]);
    let own = image("17763.1040", vec![app(), above]);
    let diff_ids = own.image.config().rootfs.diff_ids.clone();
    for ((blob, bytes), diff_id) in own.layers.into_iter().zip(diff_ids) {
        let history = wincimg_oci::document::History::default();
        let layered = stand_in.image.append_layer(blob.clone(), diff_id, history);
        stand_in.image = layered.unwrap();
        stand_in.layers.push((blob, bytes));
    }
    block_on(async {
        let sink = images.sink(name).await;
        stand_in
            .put_blobs(&sink, |blob| blob.media_type != FOREIGN)
            .await;
        sink.publish(&stand_in.document(), Some("1")).await.unwrap();
    });
}

#[test]
fn without_the_bytes_of_windows_the_other_layers_are_shown_and_so_is_what_they_delete() {
    let images = Images::new();
    with_foreign_base(&images, "one", patch());
    with_foreign_base(&images, "two", rewrite());
    let mut command = images.command(&["ls", "oci:two", "--recursive"]);
    let output = run(&mut command);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(notes.lines().count(), 1, "{notes}");
    assert_contains!(notes, "skipped foreign layers, whose bytes");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("new.txt") && !text.contains("win.ini"),
        "{text}"
    );

    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let image = &found["images"][0];
    let row = |change: &str, name: &str| (change.to_owned(), name.to_owned());
    let files = changes(&image["files"], "path");
    assert!(
        files.contains(&row("removed", r"C:\Windows\win.ini")),
        "{files:?}"
    );
    assert!(
        files.contains(&row("added", r"C:\app\new.txt")),
        "{files:?}"
    );
    let keys = changes(&image["registry"], "key");
    let expected = BTreeSet::from([
        row("changed", VENDOR),
        row("removed", &format!(r"{VENDOR}\Sub")),
        row("removed", r"HKLM\SOFTWARE\Microsoft\long"),
    ]);
    assert_eq!(keys, expected);
    let skipped = json!([{"layer": 1, "size": image["before"]["skipped"][0]["size"], "reason": "foreign_bytes"}]);
    assert_eq!(image["before"]["skipped"], skipped);
}

#[test]
fn windows_is_skipped_on_request() {
    let images = versions();
    let listed = images.json(&["ls", "oci:two", "--recursive", "--skip-windows"]);
    let paths: Vec<String> = rows(&listed).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(
        paths,
        [r"C:\app", r"C:\app\a.txt", r"C:\app\new.txt", r"C:\Windows"]
    );
    assert_eq!(listed["skipped"][0]["reason"], "windows");
    let whole = images.json(&["diff", "oci:one", "oci:two"]);
    let own = images.json(&["diff", "oci:one", "oci:two", "--skip-windows"]);
    let of = |found: &Value, list: &str, name: &str| changes(&found["images"][0][list], name);
    assert_eq!(of(&own, "files", "path"), of(&whole, "files", "path"));
    assert_eq!(of(&own, "registry", "key"), of(&whole, "registry", "key"));
}
