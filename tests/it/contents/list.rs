//! `image ls` of files.

use std::collections::BTreeSet;

use predicates::Predicate as _;
use serde_json::{Value, json};
use wincimg_registry::hive::log_writer::set_sequences;
use wincimg_testkit::test_bases::{LayerTar, bottom_layer, made_software, made_system};
use wincimg_testkit::windows_base::StandIn;

use super::{Images, app, bottom, changes, image, rows, run, versions};
use crate::failure::{Fails, note};

#[test]
fn ls_lists_the_files_that_tarfile_merges() {
    let images = versions();
    for name in ["one", "two"] {
        let listed = images.json(&["ls", &format!("oci:{name}"), "--recursive"]);
        let mut found = rows(&listed);
        found.sort_by_key(|(path, ..)| path.to_lowercase().replace('\\', "\0"));
        let mut expected = images.by_python(name);
        expected.sort_by_key(|(path, ..)| path.to_lowercase().replace('\\', "\0"));
        assert_eq!(found, expected, "{name}");
        assert_eq!(listed["skipped"], json!([]));
    }
}

#[test]
fn streams_of_a_file_go_with_it_and_are_no_files() {
    let images = Images::new();
    let mut file = LayerTar::default();
    file.file("Files/app/ads.txt", b"main", None)
        .file("Files/app/ads.txt:Zone.Identifier", b"[Zone]", None)
        .file("Files/app/b.txt", b"b", None);
    let file = file.tar();
    let with = |change: &dyn Fn(&mut LayerTar)| {
        let mut tar = LayerTar::default();
        change(&mut tar);
        image("17763.1040", vec![bottom(), file.clone(), tar.tar()])
    };
    images.put("kept", &with(&|_| {}));
    images.put(
        "deleted",
        &with(&|tar| {
            tar.file("Files/app/.wh.ADS.txt", b"", None);
        }),
    );
    images.put(
        "rewritten",
        &with(&|tar| {
            tar.file("Files/app/Ads.txt", b"again", None).file(
                "Files/app/Ads.txt:other",
                b"o",
                None,
            );
        }),
    );
    for (name, files, expected) in [
        (
            "kept",
            2,
            &["ads.txt", "ads.txt:Zone.Identifier", "b.txt"][..],
        ),
        ("deleted", 1, &["b.txt"][..]),
        ("rewritten", 2, &["Ads.txt", "Ads.txt:other", "b.txt"][..]),
    ] {
        let listed = images.json(&["ls", &format!("oci:{name}"), r"C:\app"]);
        let names = rows(&listed).into_iter().map(|(path, ..)| path);
        let expected = expected.iter().map(|name| format!(r"C:\app\{name}"));
        assert!(names.eq(expected), "{listed}");
        assert_eq!(listed["files"], files, "{name}");
        let copied = images.path("copied").join(name).display().to_string();
        let from = format!(r"oci:{name}:C:\app");
        let warned = images.command(&["cp", &from, &copied]).tells(0);
        let has_stream = name != "deleted";
        assert_eq!(
            warned.contains("skipped 1 alternate data stream, such as"),
            has_stream,
            "{warned}"
        );
    }
    let found = images.json(&["diff", "oci:kept", "oci:deleted"]);
    let gone = |name: &str| ("removed".to_owned(), format!(r"C:\app\{name}"));
    assert_eq!(
        changes(&found["images"][0]["files"], "path"),
        BTreeSet::from([gone("ads.txt"), gone("ads.txt:Zone.Identifier")])
    );
}

#[test]
fn a_layer_that_no_runtime_unpacks_is_listed_with_a_warning() {
    let images = Images::new();
    let right = image("17763.1040", vec![bottom(), app()]);
    let wrong = right.image.edit_config(|config| {
        config.rootfs.diff_ids.swap(0, 1);
    });
    images.put("right", &right);
    images.put(
        "wrong",
        &StandIn {
            image: wrong.unwrap(),
            ..right
        },
    );
    let printed = |name: &str| {
        let output = run(&mut images.command(&["ls", &format!("oci:{name}"), r"C:\app"]));
        assert_contains!(String::from_utf8(output.stdout).unwrap(), "big.bin");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(printed("right"), "");
    let warnings = printed("wrong");
    assert_contains!(
        warnings,
        "no runtime unpacks layer 2: its uncompressed content"
    );
    assert_eq!(warnings.lines().count(), 2, "{warnings}");
}

#[test]
fn files_outside_the_drive_are_named_once_a_layer() {
    let images = Images::new();
    let mut outside = LayerTar::default();
    outside
        .file("ko-app/app.exe", b"MZ", None)
        .file("ko-app/.wh.old", b"", None)
        .file("etc/passwd", b"x", None);
    images.put("linux", &image("17763.1040", vec![bottom(), outside.tar()]));
    let warnings = images.command(&["ls", "oci:linux"]).tells(0);
    let expected = "warning: layer 2: ko-app/app.exe: it and 1 more lie outside Files/: \
                    containers do not see them\n";
    assert_eq!(warnings, expected);
}

#[test]
fn a_hive_that_was_not_closed_is_noted_where_its_keys_are_shown() {
    let images = Images::new();
    let mut system = made_system(r"C:\Windows");
    images.put(
        "closed",
        &image(
            "17763.1040",
            vec![bottom_layer(&system, &made_software()).tar()],
        ),
    );
    set_sequences(&mut system, 8, 7);
    let open = bottom_layer(&system, &made_software()).tar();
    images.put("open", &image("17763.1040", vec![open.clone()]));
    images.put("app", &image("17763.1040", vec![open, app()]));
    let printed = |arguments: &[&str]| images.command(arguments).tells(0);
    let is_noted = note(&["Files/Windows/System32/config/SYSTEM", "layer 1"]);
    for shown in [
        &["ls", "oci:open", r"HKLM\SYSTEM"][..],
        &["diff", "oci:closed", "oci:open"],
    ] {
        let printed = printed(shown);
        assert!(is_noted.eval(&printed), "{shown:?}: {printed}");
    }
    for (place, noted) in [("oci:open", 1), ("oci:closed", 0)] {
        let key = r"HKLM\SYSTEM\ControlSet001";
        let mut show = images.command(&["base", "show", place, "--registry", key]);
        let shown = show.env("XDG_CACHE_HOME", images.folder.path()).prints();
        assert_eq!(shown.matches("not closed").count(), noted, "{shown}");
    }
    for other in [
        &["ls", "oci:open"][..],
        &["ls", "oci:open", r"HKLM\SOFTWARE"],
        &["ls", "oci:closed", r"HKLM\SYSTEM"],
        &["diff", "oci:open", "oci:app"],
    ] {
        assert_eq!(printed(other), "", "{other:?}");
    }
}

#[test]
fn sizes_of_folders_add_up_and_another_name_takes_no_space() {
    let images = versions();
    let listed = images.json(&["ls", "oci:one", r"C:\app", "--recursive"]);
    let entries = listed["entries"].as_array().unwrap();
    let own = entries.iter().filter(|it| it["other_name"] != true);
    let sum: u64 = own.filter_map(|it| it["size"].as_u64()).sum();
    assert_eq!(
        (sum, listed["size"].as_u64()),
        (20 + 5000 + 2 + 4, Some(sum))
    );
    assert_eq!(listed["files"], 5);
    assert_eq!(
        entries.iter().filter(|it| it["other_name"] == true).count(),
        1
    );
    let text = images.text(&["ls", "oci:one", r"C:\app"]);
    assert!(
        text.contains("2         2 B  old\\") || text.contains("old\\"),
        "{text}"
    );
    assert_contains!(text, "C:\\Windows", "5 files, 2 folders");
}

#[test]
fn ls_selects_levels_and_shows_layers_and_rights_on_request() {
    let images = versions();
    let names = |arguments: &[&str]| -> Vec<String> {
        let listed = images.json(arguments);
        rows(&listed).into_iter().map(|(path, ..)| path).collect()
    };
    let top = names(&["ls", "oci:two"]);
    assert_eq!(
        top,
        [r"C:\app", r"C:\Program Files", r"C:\Users", r"C:\Windows"]
    );
    assert_eq!(names(&["ls", "oci:one", "/APP/old"]), [r"C:\app\old\two"]);
    assert_eq!(
        names(&["ls", "oci:one", r"C:\app\a.txt"]),
        [r"C:\app\A.TXT"]
    );
    let vm = ["ls", "oci:one", "UtilityVM", "--utility-vm", "--recursive"];
    assert!(names(&vm).contains(&r"UtilityVM\Files\vm.bin".to_owned()));
    let all = names(&["ls", "oci:one", "--recursive"]);
    assert!(all.iter().all(|path| path.starts_with(r"C:\")));

    let plain = images.json(&["ls", "oci:two", r"C:\app"]);
    let file = &plain["entries"][0];
    assert_eq!(file["path"], r"C:\app\a.txt");
    assert_eq!(file["layer"], 3);
    assert_eq!(file["security"], Value::Null);
    let with_rights = images.json(&["ls", "oci:two", r"C:\app", "--acl"]);
    let security = with_rights["entries"][0]["security"].as_str().unwrap();
    assert!(security.starts_with("O:BAG:SYD:"), "{security}");
}

#[test]
fn a_layer_with_a_path_longer_than_any_of_windows_is_refused() {
    let images = Images::new();
    let mut deep = LayerTar::default();
    deep.file(&format!("Files/{}f", "a/".repeat(4000)), b"", None);
    images.put("deep", &image("17763.1040", vec![bottom(), deep.tar()]));
    images.put("flat", &image("17763.1040", vec![bottom()]));
    for words in [
        &["ls", "oci:deep", "--recursive"][..],
        &["diff", "oci:flat", "oci:deep"][..],
    ] {
        let errors = images.command(words).tells(3);
        assert_contains!(errors, "is too long: it has more than 4096 bytes");
    }
}

#[test]
fn ls_names_what_is_like_a_missing_path() {
    let images = versions();
    let errors = images.command(&["ls", "oci:one", r"C:\app\a.tx"]).tells(1);
    assert_contains!(errors, r"did you mean C:\app\A.TXT?");
    let missing = r"HKLM\SOFTWARE\No";
    images
        .command(&["ls", "oci:one", missing])
        .fails(1, "image/no-file", &[missing]);
    let errors = images.command(&["ls", "oci:one", "HKLM"]).tells(2);
    assert_contains!(errors, r"expected HKLM\SYSTEM\…");
}
