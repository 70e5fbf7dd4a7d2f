//! The two shutdown timeouts, and common mistakes.

use serde_json::json;
use wincimg_testkit::windows_base::StandIn;
use wincimg_windows::shutdown::{ShutdownValue, edits};

use super::*;

/// The shutdown timeouts in JSON for an image with these changes, one layer for each list.
fn shutdown_of(layers: &[&[RegistryEdit]]) -> Value {
    let image = layers
        .iter()
        .fold(windows(), |image, edits| image.files(&deltas(edits)));
    shutdown_in(&image)
}

fn shutdown_in(image: &StandIn) -> Value {
    let layout = LayoutImage::new(image);
    let (code, found, printed) = report_of(&mut inspect(&layout.place, &[]));
    assert_eq!(code, 0, "{printed}");
    found["images"][0]["shutdown"].clone()
}

fn with(setting: ShutdownValue, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: setting.key(),
        name: setting.name().to_owned(),
        data,
    }
}

#[test]
fn without_any_setting_it_is_windows_own_time() {
    let found = shutdown_of(&[&[]]);
    assert_eq!(found["seconds"], 5);
    assert_eq!(found["process"], json!(null));
    assert_eq!(found["warnings"], json!([]));
    assert_eq!(found["complete"], true);
}

#[test]
fn the_topmost_layer_that_sets_a_time_counts() {
    let found = shutdown_of(&[&edits(30), &edits(60), &[]]);
    assert_eq!(found["seconds"], 60);
    assert_eq!(found["process"]["layer"], 3);
    assert_eq!(found["service"]["value"], "60000");
    assert_eq!(found["warnings"], json!([]));
}

#[test]
fn a_layer_above_can_take_a_time_away() {
    let [process, service] = ShutdownValue::BOTH;
    let forget = |setting: ShutdownValue| RegistryEdit::DeleteValue {
        key: setting.key(),
        name: setting.name().to_lowercase(),
    };
    let found = shutdown_of(&[&edits(30), &[forget(process), forget(service)]]);
    assert_eq!(found["process"], json!(null));
    assert_eq!(found["seconds"], 5);
    let delete_key = RegistryEdit::DeleteKey { key: process.key() };
    let found = shutdown_of(&[&edits(30), &[delete_key]]);
    assert_eq!(found["process"], json!(null));
    assert_eq!(found["service"]["layer"], 2);
    let replaced = create(r"HKLM\SYSTEM\CurrentControlSet\Services");
    let found = shutdown_of(&[&edits(30), &[replaced]]);
    assert_eq!(found["process"], json!(null));
}

#[test]
fn every_misuse_has_a_warning_of_its_own() {
    let [process, service] = ShutdownValue::BOTH;
    let warning = |edits: &[RegistryEdit]| {
        let found = shutdown_of(&[edits]);
        let warnings = found["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        warnings[0].as_str().unwrap().to_owned()
    };
    let both = |seconds, text| {
        [
            with(process, RegistryData::dword(seconds)),
            with(service, RegistryData::sz(text)),
        ]
    };
    let found = [
        warning(&[with(process, RegistryData::dword(30))]),
        warning(&[with(service, RegistryData::sz("30000"))]),
        warning(&both(30, "20000")),
        warning(&[
            with(process, RegistryData::dword(30)),
            with(service, RegistryData::dword(30_000)),
        ]),
        warning(&[
            with(process, RegistryData::sz("30")),
            with(service, RegistryData::sz("30000")),
        ]),
        warning(&both(30_000, "30000")),
        warning(&both(30, "30")),
        warning(&both(30, "30 s")),
    ];
    insta::assert_snapshot!("warnings", found.join("\n"));
}

#[test]
fn warnings_are_part_of_the_text_too() {
    let image = windows().files(&deltas(&[with(
        ShutdownValue::Process,
        RegistryData::dword(30),
    )]));
    let layout = LayoutImage::new(&image);
    let text = text_of(&mut inspect(&layout.place, &[]));
    insta::assert_snapshot!(
        "a_warning",
        redacted(&text, &[(&layout.place, "oci:DIR:app")])
    );
}

#[test]
fn an_image_can_be_asked_for_its_times_alone() {
    let image = windows().files(&deltas(&edits(45)));
    let layout = LayoutImage::new(&image);
    let times = block_on(async {
        let place = layout.place.parse().unwrap();
        let source = wincimg_oci::store::Source::open(&place, &no_registry())
            .await
            .unwrap();
        let progress: Arc<dyn wincimg_common::progress::Progress> = Arc::new(Silent);
        wincimg_inspect::shutdown_times(&source, &image.image, &progress).await
    });
    let times = times.unwrap();
    assert_eq!((times.seconds, times.complete), (45, true));
}
