//! Images that are left unchanged: the error names the layer, the path and the instruction.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::json;
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::portable_executable::with_version;
use wincimg_testkit::test_bases::{create, delete_key, delete_value, delta_hive};

use super::*;
use crate::failure::line;
use crate::site::answer_of;

/// Path and kind of the obstacle in a layer.
fn obstacle(layer: Vec<u8>) -> (String, String) {
    let reported = verdict(layer);
    let found = &reported["obstacles"][0];
    assert_eq!(found["layer"], 2, "{reported}");
    assert_eq!(found["instruction"], "RUN it");
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("place"), text("conflict"))
}

fn with_file(path: &str) -> Vec<u8> {
    layer(|tar| {
        tar.file(path, b"own", Some(FILE));
    })
}

fn with_keys(edits: &[RegistryEdit]) -> Vec<u8> {
    let delta = delta_hive(edits);
    layer(|tar| {
        tar.folder("Hives", None)
            .file("Hives/Software_Delta", &delta, None);
    })
}

fn is(place: &str, conflict: &str) -> (String, String) {
    (place.to_owned(), conflict.to_owned())
}

#[test]
fn a_layer_that_replaced_a_serviced_file_is_reported_with_the_way_out() {
    let site = site();
    let serviced = with_file("Files/Windows/System32/serviced.dll");
    let instruction = "RUN dism /online /add-package update.cab";
    put(&site, "app", "1.4", on(&base(OLD), serviced, instruction));
    let before = site.requests();
    update(&site, &["--push"]).assert().code(1).stdout(
        contains("layer 2 sha256:")
            .and(contains(instruction))
            .and(contains(r"C:\Windows\System32\serviced.dll"))
            .and(contains("wincimg build")),
    );
    assert_eq!(site.writes_since(before), [""; 0]);
}

#[test]
fn files_that_servicing_changes_are_not_hidden() {
    for (path, expected) in [
        (
            "Files/windows/system32/SERVICED.dll",
            is(r"C:\windows\system32\SERVICED.dll", "changed"),
        ),
        (
            "Files/Windows/System32/.wh.serviced.dll",
            is(r"C:\Windows\System32\serviced.dll", "changed"),
        ),
        ("Files/.wh.Windows", is(r"C:\Windows", "changed-below")),
        (
            "Files/Windows/WinSxS/x.manifest",
            is(r"C:\Windows\WinSxS\x.manifest", "servicing"),
        ),
        (
            "Files/Windows/System32/config/COMPONENTS",
            is(r"C:\Windows\System32\config\COMPONENTS", "hive-file"),
        ),
        (
            "UtilityVM/Files/x",
            is("UtilityVM/Files/x", "cannot-compare"),
        ),
        (
            "Hives/Unknown_Delta",
            is("Hives/Unknown_Delta", "cannot-compare"),
        ),
    ] {
        assert_eq!(obstacle(with_file(path)), expected, "{path}");
    }
    let link = layer(|tar| {
        tar.hard_link("Files/Windows/a.dll", "Files/Windows/System32/serviced.dll");
    });
    assert_eq!(obstacle(link), is(r"C:\Windows\a.dll", "cannot-compare"));
    // In place of a folder.
    let folder = "Files/Windows/System32";
    let mut links = [LayerTar::default(), LayerTar::default()];
    links[0].link(folder, r"C:\app");
    links[1]
        .file("Files/own", b"own", Some(FILE))
        .hard_link(folder, "Files/own");
    for layer in links
        .map(LayerTar::tar)
        .into_iter()
        .chain([with_file(folder)])
    {
        assert_eq!(obstacle(layer), is(r"C:\Windows\System32", "changed-below"));
    }
}

#[test]
fn keys_whose_value_differs_between_the_bases_are_not_hidden() {
    const ABOVE: &str = r"HKLM\SOFTWARE\Microsoft";
    let servicing = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\x";
    let delete = delete_value(KEY, "Version");
    let number = RegistryData::dword(1);
    for (edits, place, conflict) in [
        (
            vec![set(KEY, "version", RegistryData::sz("mine"))],
            KEY,
            "value",
        ),
        (vec![set(KEY, "own", number.clone()), delete], KEY, "value"),
        (vec![delete_key(ABOVE)], ABOVE, "changed-below"),
        (vec![create(ABOVE)], ABOVE, "changed-below"),
        (vec![set(servicing, "a", number)], servicing, "servicing"),
    ] {
        assert_eq!(
            obstacle(with_keys(&edits)),
            is(place, conflict),
            "{edits:?}"
        );
    }
    let reported = verdict(with_keys(&[set(KEY, "Same", RegistryData::dword(2))]));
    assert_eq!(reported["obstacles"], json!([]), "the same in both");
    let reported = verdict(with_keys(&[set(KEY, "version", RegistryData::sz(NEW))]));
    assert_eq!(reported["obstacles"], json!([]), "the new base's own value");
}

#[test]
fn rights_that_the_new_base_changed_are_not_set_back() {
    const OTHER: &str = "O:BAG:SYD:(A;OICI;FA;;;BA)";
    let site = Site::new();
    let with = |version, sddl| {
        base_with(version, |tar| {
            tar.folder("Files/ProgramData", Some(sddl));
        })
    };
    put(&site, NANO, OLD, with(OLD, FOLDER));
    put(&site, NANO, NEW, with(NEW, OTHER));
    for (sddl, expected) in [(FOLDER, 1), (OTHER, 0)] {
        let parent = layer(|tar| {
            tar.folder("Files/ProgramData", Some(sddl)).file(
                "Files/ProgramData/own",
                b"x",
                Some(FILE),
            );
        });
        put(
            &site,
            "app",
            "1.4",
            on(&with(OLD, FOLDER), parent, "COPY x C:/ProgramData/"),
        );
        let reported = update(&site, &[]).assert().code(expected);
        if expected == 1 {
            reported.stdout(contains(r"C:\ProgramData"));
        }
    }
}

#[test]
fn a_check_reads_no_base_and_says_what_is_not_known() {
    let site = site();
    let image = on(
        &base(OLD),
        with_file("Files/Windows/own.dll"),
        "COPY own.dll C:/Windows/",
    );
    let windows = image.layers[0].0.digest.to_string();
    put(&site, "app", "1.4", image);
    let before = site.requests();
    update(&site, &["--check"])
        .assert()
        .code(1)
        .stdout(line(&[r"C:\Windows\own.dll", OLD, NEW]))
        .stdout(line(&["wincimg image base index ", OLD]))
        .stdout(line(&["wincimg image base index ", NEW]));
    let (_, report) = answer_of(&mut update(&site, &["--check"]));
    assert_eq!(report["updates"][0]["status"], "unknown", "{report}");
    let read = |it: &&String| it.starts_with("GET") && it.contains(&windows);
    assert_eq!(site.requests_since(before).iter().find(read), None);
    update(&site, &["--format", "json"])
        .assert()
        .code(0)
        .stdout(contains("\"status\": \"moves\""))
        .stderr(contains("wincimg image base index"));
    // It is cached from now on.
    let (code, report) = answer_of(&mut update(&site, &["--check"]));
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["updates"][0]["status"], "moves", "{report}");
}

#[test]
fn copies_of_files_that_servicing_changes_are_not_left_as_they_are() {
    const GDI: &str = "Files/app/gdi32.dll";
    let program_of = |product: &str, version: &str| {
        with_version(&[("ProductName", product), ("FileVersion", version)])
    };
    let of_windows = |version: &str| program_of("Microsoft® Windows® Operating System", version);
    let copied = |path: &str, bytes: &[u8]| {
        layer(|tar| {
            tar.folder("Files/app", Some(FOLDER))
                .file(path, bytes, Some(FILE));
        })
    };
    for (path, bytes, expected) in [
        // `copy C:\Windows\System32\serviced.dll`, also under another name.
        (
            "Files/Windows/System32/again.txt",
            OLD.as_bytes().to_vec(),
            Some("copied"),
        ),
        ("Files/Windows/System32/again.txt", b"same".to_vec(), None),
        // `COPY --from=servercore`.
        (
            "Files/Windows/System32/netapi32.dll",
            of_windows("10.0.17763.1"),
            Some("of-windows"),
        ),
        (GDI, of_windows("10.0.17763.973"), Some("of-windows")),
        // What a development kit or another Windows has is the program's own.
        (GDI, of_windows("10.0.17763.1"), None),
        (GDI, of_windows("10.0.19041.685"), None),
        (GDI, program_of("Shop", "10.0.17763.973"), None),
    ] {
        let reported = verdict(copied(path, &bytes));
        let found = reported["obstacles"][0]["conflict"].as_str();
        assert_eq!(found, expected, "{path}: {reported}");
        if expected.is_some() {
            assert_eq!(reported["obstacles"][0]["instruction"], "RUN it");
        }
    }
}

#[test]
fn folders_at_the_top_are_compared_where_both_bases_are_known() {
    const OTHER: &str = "O:BAG:SYD:(A;OICI;FA;;;BA)";
    let new = |fill: fn(&mut LayerTar)| base_with(NEW, fill);
    let app = || {
        layer(|tar| {
            tar.folder("Files/app", Some(FOLDER))
                .file("Files/app/a.dll", b"own", Some(FILE));
        })
    };
    let copy = || {
        layer(|tar| {
            tar.folder("Files/app", Some(FOLDER)).file(
                "Files/app/b.txt",
                OLD.as_bytes(),
                Some(FILE),
            );
        })
    };
    for (own, new, conflict) in [
        (
            app(),
            new(|tar| {
                tar.folder("Files/app", Some(OTHER));
            }),
            "rights",
        ),
        (
            app(),
            new(|tar| {
                tar.folder("Files/app", Some(FOLDER));
                tar.file("Files/app/a.dll", b"its", Some(FILE));
            }),
            "new-in-base",
        ),
        (
            app(),
            new(|tar| {
                tar.file("Files/app", b"its", Some(FILE));
            }),
            "changed",
        ),
        (copy(), base(NEW), "copied"),
    ] {
        let site = Site::new();
        put(&site, NANO, OLD, base(OLD));
        put(&site, NANO, NEW, new);
        put(&site, "app", "1.4", on(&base(OLD), own, "COPY app C:/app"));
        // Nothing is read for them.
        let report = json_of(&mut update(&site, &[]));
        assert_eq!(report["updates"][0]["layers"][0]["compared"], "folders");
        for version in [OLD, NEW] {
            let reference = format!("{}/{NANO}:{version}", site.host());
            site.with_no_bases(&["base", "index", &reference])
                .assert()
                .success();
        }
        let (code, report) = answer_of(&mut update(&site, &[]));
        assert_eq!(code, 1, "{report}");
        let update = &report["updates"][0];
        assert_eq!(update["obstacles"][0]["conflict"], conflict, "{update}");
        assert_eq!(update["obstacles"][0]["instruction"], "COPY app C:/app");
        assert_eq!(update["layers"][0]["compared"], "bases");
    }
}
