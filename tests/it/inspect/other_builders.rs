//! Layers of other tools, layers of every size, and the base's own registry.

use predicates::str::contains;
use serde_json::json;
use wincimg_inspect::{BEGINNING, SMALL_LAYER};
use wincimg_registry::Root;
use wincimg_testkit::programs::sample;
use wincimg_windows::shutdown::edits;

use super::*;

use crate::failure::{line, note, says};

fn zeros() -> (String, Vec<u8>) {
    file(
        "Files/zeros.bin",
        vec![0; usize::try_from(SMALL_LAYER).unwrap()],
    )
}

/// Stored without compression, so that the layer is as large as its content.
fn large(files: &Files) -> StandIn {
    let tar = tar_of(files);
    windows().stored(ManifestFormat::Oci.layer(), &tar.clone(), tar)
}

#[test]
fn of_a_large_layer_the_beginning_is_enough_where_hives_come_first() {
    let mut files = deltas(&edits(20));
    files.push(zeros());
    let layout = LayoutImage::new(&large(&files));
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!((code, printed.as_str()), (0, ""));
    let image = &found["images"][0];
    assert_eq!(image["layers"][1]["read"], "part");
    assert_eq!(image["shutdown"]["seconds"], 20);
    assert_eq!(image["shutdown"]["complete"], true);
    inspect(&layout.place, &[])
        .assert()
        .stdout(contains("part"));
    let (_, found, _) = report_of(&mut inspect(&layout.place, &["--layers", "all"]));
    assert_eq!(found["images"][0]["layers"][1]["read"], "whole");
}

#[test]
fn a_large_layer_with_files_first_is_read_only_when_all_are_wanted() {
    let mut files = vec![zeros()];
    files.extend(deltas(&edits(20)));
    let layout = LayoutImage::new(&large(&files));
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!(code, 0);
    says(&printed, &note(&["64 MiB"]));
    let image = &found["images"][0];
    assert_eq!(image["layers"][1]["reason"], "large");
    assert_eq!(image["shutdown"]["seconds"], 5);
    assert_eq!(image["shutdown"]["complete"], false);
    let (_, found, printed) = report_of(&mut inspect(&layout.place, &["--layers", "all"]));
    assert_eq!(printed, "");
    assert_eq!(found["images"][0]["shutdown"]["seconds"], 20);
}

#[test]
fn hives_that_begin_within_the_beginning_and_end_after_it_are_not_half_read() {
    let filler = vec![1; usize::try_from(BEGINNING).unwrap()];
    let mut files = vec![file("Hives/Sam_Delta", filler)];
    files.extend(deltas(&edits(20)));
    files.push(zeros());
    let layout = LayoutImage::new(&large(&files));
    let (_, found, _) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!(found["images"][0]["layers"][1]["reason"], "large");
    assert_eq!(found["images"][0]["shutdown"]["complete"], false);
}

#[test]
fn layers_can_be_left_alone() {
    let image = windows().files(&deltas(&edits(20)));
    let layout = LayoutImage::new(&image);
    std::fs::remove_file(layout.blob(&image, 2)).unwrap();
    let (code, found, _) = report_of(&mut inspect(&layout.place, &["--layers", "none"]));
    assert_eq!(code, 0);
    assert_eq!(found["images"][0]["shutdown"], json!(null));
    assert_eq!(found["images"][0]["layers"][1]["reason"], "not_asked");
    inspect(&layout.place, &["--layers", "none", "--registry"])
        .assert()
        .code(2);
}

#[test]
fn files_that_containers_do_not_see_and_a_wrong_label_are_named() {
    let linux = vec![file("ko-app/app.exe", "MZ"), file("etc/passwd", "x")];
    let tar = tar_of(&linux);
    let image = windows().stored(ManifestFormat::Oci.layer_gzip(), &tar.clone(), tar);
    let layout = LayoutImage::new(&image);
    inspect(&layout.place, &[])
        .assert()
        .code(0)
        .stdout(contains("plain, labelled gzip"))
        .stderr(contains(
            "layer 2: ko-app/app.exe: it and 1 more lie outside Files/",
        ));
    let (_, found, _) = report_of(&mut inspect(&layout.place, &[]));
    let layer = &found["images"][0]["layers"][1];
    assert_eq!(layer["stored_as"], "plain");
    assert_eq!(layer["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn a_foreign_layer_without_bytes_is_skipped_with_a_note() {
    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    let image = windows()
        .stored(foreign, b"update", b"elsewhere".to_vec())
        .files(&deltas(&edits(20)));
    let layout = LayoutImage::new(&image);
    std::fs::remove_file(layout.blob(&image, 2)).unwrap();
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!(code, 0);
    says(&printed, &note(&["foreign", "oci:"]));
    let image = &found["images"][0];
    assert_eq!(image["layers"][1]["foreign"], true);
    assert_eq!(image["layers"][1]["reason"], "foreign_bytes");
    assert_eq!(image["shutdown"]["seconds"], 20);
    assert_eq!(image["shutdown"]["complete"], false);
}

#[test]
fn the_registry_of_a_base_whose_bytes_are_elsewhere_cannot_be_shown() {
    let foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
    let image = empty()
        .stored(foreign, b"windows", b"elsewhere".to_vec())
        .files(&deltas(&edits(20)));
    let layout = LayoutImage::new(&image);
    std::fs::remove_file(layout.blob(&image, 1)).unwrap();
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--merged"]));
    assert_eq!(code, 3);
    says(&printed, &line(&["error: ", "layer 1"]));
    assert_eq!(found["images"][0]["registry"]["over_base"], false);
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--registry"]));
    assert_eq!((code, printed.as_str()), (0, ""));
    assert_eq!(found["images"][0]["shutdown"]["complete"], true);
}

/// The hives of Windows, as in its bottom layer.
fn windows_hives(edits: &[RegistryEdit]) -> Files {
    let named = |(path, hive): (String, Vec<u8>)| {
        let root = Root::from_delta_name(path.trim_start_matches("Hives/")).unwrap();
        let name = match root {
            Root::System => "SYSTEM",
            Root::Software => "SOFTWARE",
            Root::DefaultUser => "DEFAULT",
        };
        (format!("Files/Windows/System32/config/{name}"), hive)
    };
    deltas(edits).into_iter().map(named).collect()
}

fn base_edits() -> Vec<RegistryEdit> {
    let services = r"HKLM\SYSTEM\CurrentControlSet\Services";
    vec![
        set(
            r"HKLM\SYSTEM\CurrentControlSet\Control",
            "WaitToKillServiceTimeout",
            RegistryData::sz("5000"),
        ),
        set(
            &format!(r"{services}\DiagTrack"),
            "Start",
            RegistryData::dword(2),
        ),
        set(r"HKLM\SOFTWARE\Contoso\Old", "Kept", RegistryData::dword(1)),
        set(r"HKU\.DEFAULT\Console", "FontSize", RegistryData::dword(12)),
    ]
}

/// Three layers: a bottom one with hives at Windows' paths, one in the format of Windows' own
/// tools, and one of ours.
fn with_base() -> StandIn {
    let mut bottom = vec![file("Files/Windows/explorer.exe", "MZ")];
    bottom.extend(windows_hives(&base_edits()));
    let app = r"HKLM\SYSTEM\CurrentControlSet\Services\App";
    let mut docker = vec![file("Files/app.exe", "MZ"), file("Hives/Sam_Delta", "regf")];
    docker.extend(deltas(&[
        set(r"HKLM\SOFTWARE\Contoso\Old", "New", RegistryData::sz("ä")),
        set(app, "Start", RegistryData::dword(2)),
    ]));
    let mut ours = edits(20).to_vec();
    ours.push(delete_key(
        r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack",
    ));
    ours.push(create(app));
    empty().files(&bottom).files(&docker).files(&deltas(&ours))
}

#[test]
fn changes_are_shown_by_layer_and_together() {
    let layout = LayoutImage::new(&with_base());
    let text = text_of(&mut inspect(&layout.place, &["--registry"]));
    let names = [(&*layout.place, "oci:DIR:app")];
    insta::assert_snapshot!("two_layers", redacted(&text, &names));
    let file = text_of(&mut inspect(
        &layout.place,
        &["--merged", "--platform", "windows/amd64"],
    ));
    insta::assert_snapshot!("over_the_base", redacted(&file, &names));
}

#[test]
fn a_registry_file_does_what_the_layers_do() {
    let layout = LayoutImage::new(&with_base());
    let output = inspect(&layout.place, &["--format", "reg"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let edits = wincimg_registry::regfile::import(&output.stdout)
        .unwrap()
        .edits;
    let printed: Vec<String> = edits.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("registry_file", printed.join("\n"));
    let mut merged = inspect(&layout.place, &["--format", "reg", "--merged"]);
    let output = merged.output().unwrap();
    let edits = wincimg_registry::regfile::import(&output.stdout)
        .unwrap()
        .edits;
    let printed: Vec<String> = edits.iter().map(ToString::to_string).collect();
    assert!(
        printed.iter().any(|edit| edit.contains("Kept")),
        "{printed:?}"
    );
    assert!(
        !printed.iter().any(|edit| edit.contains("DiagTrack")),
        "{printed:?}"
    );
}

#[test]
fn a_bottom_layer_without_a_registry_is_named_when_it_is_wanted() {
    let layout = LayoutImage::new(&windows().files(&deltas(&edits(20))));
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--merged"]));
    assert_eq!(code, 3);
    let expected = "caused by: the bottom layer of an image for Windows should have \
                    Files/Windows/System32/config/SYSTEM";
    assert_contains!(printed, expected);
    assert_eq!(found["images"][0]["shutdown"]["seconds"], 20);
}

#[test]
fn a_large_bottom_layer_is_read_as_far_as_its_hives() {
    let mut bottom = windows_hives(&base_edits());
    bottom.push(zeros());
    let tar = tar_of(&bottom);
    let image = empty()
        .stored(ManifestFormat::Oci.layer(), &tar.clone(), tar.clone())
        .files(&deltas(&edits(20)));
    let layout = LayoutImage::new(&image);
    let mut damaged = tar;
    *damaged.last_mut().unwrap() = 1;
    std::fs::write(layout.blob(&image, 1), damaged).unwrap();
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--merged"]));
    assert_eq!(code, 0, "the damage is beyond what is read: {printed}");
    let image = &found["images"][0];
    assert_eq!(image["layers"][0]["read"], "part");
    assert_eq!(image["layers"][1]["read"], "whole");
    assert_eq!(image["registry"]["over_base"], true);
    assert_eq!(image["registry"]["result"].as_array().unwrap().len(), 5);
}

#[test]
fn a_hive_that_windows_wrote_is_shown_whole() {
    let hive = std::fs::read(sample("hives/System_Delta")).unwrap();
    let image = windows().files(&vec![file("Hives/System_Delta", hive)]);
    let layout = LayoutImage::new(&image);
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &["--registry"]));
    assert_eq!(code, 0, "{printed}");
    let changes = found["images"][0]["registry"]["layers"][0]["changes"].clone();
    let deleted = changes.as_array().unwrap().iter();
    let deleted = deleted.filter(|change| change["action"] == "delete_key");
    assert_eq!(deleted.count(), 2);
    let mut file = inspect(&layout.place, &["--format", "reg"]);
    let output = file.output().unwrap();
    assert!(output.status.success());
    let again = wincimg_registry::regfile::import(&output.stdout)
        .unwrap()
        .edits;
    assert!(again.len() >= changes.as_array().unwrap().len());
}
