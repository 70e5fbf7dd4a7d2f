//! `wincimg image update`: images rebased, or left unchanged with the reason.

mod forged;
mod hives;
mod indexes;
mod missing_base;
mod moved;
mod refused;

use bytes::Bytes;
use serde_json::Value;
use wincimg_demo::add_base_images;
use wincimg_oci::document::{Descriptor, History, Image, ManifestFormat, sha256};
use wincimg_registry::RegistryData;
use wincimg_testkit::test_bases::{
    FILE, FOLDER, LayerTar, bottom_layer, gzip, image_of, made_system, set, upper_layer, whole_hive,
};
use wincimg_testkit::windows_base::StandIn;
use wincimg_windows::version::WindowsVersion;

use crate::site::{Site, add_base, answer_of, each, json_of, report_of};

const OLD: &str = "10.0.17763.973";
const NEW: &str = "10.0.17763.1158";
const NANO: &str = "mcr/windows/nanoserver";
const KEY: &str = r"HKLM\SOFTWARE\Microsoft\Serviced";

/// A base of a version, with a file and a value that servicing changes, and others that it does
/// not.
fn base(version: &str) -> StandIn {
    base_with(version, |_| {})
}

fn base_with(version: &str, more: impl FnOnce(&mut LayerTar)) -> StandIn {
    let software = whole_hive(&[
        set(KEY, "Version", RegistryData::sz(version)),
        set(KEY, "Same", RegistryData::dword(1)),
        set(r"HKLM\SOFTWARE\Policies", "x", RegistryData::dword(1)),
    ]);
    let mut bottom = bottom_layer(&made_system(r"%SystemRoot%\system32"), &software);
    bottom
        .file(
            "Files/Windows/System32/serviced.dll",
            version.as_bytes(),
            Some(FILE),
        )
        .file("Files/Windows/System32/same.dll", b"same", Some(FILE))
        .folder("Files/Windows/WinSxS", Some(FOLDER));
    more(&mut bottom);
    let mut base = image_of(version, vec![bottom.tar()]);
    base.image = base
        .image
        .edit_config(|config| {
            config.created = Some("2020-01-14T00:00:00Z".to_owned());
            config.config.env = vec![format!("WINDOWS={version}")];
            config.config.cmd = Some(vec!["cmd.exe".to_owned()]);
        })
        .unwrap();
    base
}

/// A layer on top of an image.
fn on(base: &StandIn, tar: impl AsRef<[u8]>, instruction: &str) -> StandIn {
    let tar = tar.as_ref();
    let bytes = gzip(tar);
    let media_type = ManifestFormat::Docker.layer_gzip();
    let blob = Descriptor::new(media_type, sha256(&bytes), bytes.len() as u64);
    let history = History {
        created_by: Some(instruction.to_owned()),
        ..History::default()
    };
    let image = base.image.append_layer(blob.clone(), sha256(tar), history);
    let mut layers = base.layers.clone();
    layers.push((blob, Bytes::from(bytes)));
    StandIn {
        image: image.unwrap(),
        layers,
    }
}

/// A site whose Nano Server has two versions with contents.
fn site() -> Site {
    let site = Site::new();
    put(&site, NANO, OLD, base(OLD));
    put(&site, NANO, NEW, base(NEW));
    site
}

fn put(site: &Site, repository: &str, tag: &str, image: StandIn) {
    site.registry
        .with(|stored| add_base(stored, repository, tag, image));
}

fn layer(fill: impl FnOnce(&mut LayerTar)) -> Vec<u8> {
    let mut tar = LayerTar::default();
    fill(&mut tar);
    tar.tar()
}

/// `wincimg image update HOST/app:1.4` for a host of the new base.
fn update(site: &Site, more: &[&str]) -> assert_cmd::Command {
    let image = format!("{}/app:1.4", site.host());
    let mut command = site.with_bases(&["update", &image, "--host-build", "17763.1158"]);
    command.args(more);
    command
}

/// The result of an update of an image with one layer, without a push.
fn verdict(layer: Vec<u8>) -> Value {
    let site = site();
    put(&site, "app", "1.4", on(&base(OLD), layer, "RUN it"));
    let (code, report) = answer_of(&mut update(&site, &[]));
    let update = report["updates"][0].clone();
    let is_refused = update["status"] == "refused";
    assert_eq!(code, i32::from(is_refused), "{update}");
    update
}

/// The configuration of the pushed image in a report.
fn config(site: &Site, reference: &str) -> Value {
    let inspected = json_of(&mut site.with_no_bases(&["inspect", reference]));
    inspected["images"][0].clone()
}

fn image_of_report(report: &Value) -> &Value {
    &report["images"][0]
}

fn digest(image: &Image) -> String {
    image.digest().to_string()
}

#[test]
fn a_host_without_a_base_stops_no_other() {
    let site = site();
    let own = layer(|tar| {
        tar.folder("Files/app", Some(FOLDER));
    });
    put(&site, "app", "1.4", on(&base(OLD), own, "RUN it"));
    let odd = ["--host-build", "18363.592"];
    let whole = [&odd[..], &["--push", "--all-or-nothing"]].concat();
    let output = update(&site, &whole).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (code, checked) = answer_of(&mut update(&site, &[&odd[..], &["--check"]].concat()));
    assert_eq!(code, 1);
    assert_eq!(checked["updates"][0]["status"], "moves");
    assert_eq!(checked["failed"][0]["host_build"], "18363.592");

    let (code, pushed) = answer_of(&mut update(&site, &[&odd[..], &["--push"]].concat()));
    assert_eq!(code, 1);
    assert_eq!(pushed["images"][0]["host_build"], "17763.1158");
    assert_eq!(pushed["failed"][0]["host_build"], "18363.592");
    // The host that is served is up to date; the other is still missing.
    update(&site, &odd)
        .args(["--push"])
        .assert()
        .code(1)
        .stderr(predicates::str::contains("no image for host 18363.592: "));
}

#[test]
fn a_host_that_the_index_cannot_serve_stops_no_other() {
    let site = site();
    let own = layer(|tar| {
        tar.folder("Files/app", Some(FOLDER));
    });
    put(&site, "app", "1.4", on(&base(OLD), own, "RUN it"));
    let image = format!("{}/app:1.4", site.host());
    let hosts = |more: &[&str]| {
        let hosts = ["--host-build", "17763.973", "--host-build", "17763.1158"];
        site.with_bases(&[&["update", &image][..], &hosts, more].concat())
    };
    let (code, refused) = answer_of(&mut hosts(&["--push", "--all-or-nothing"]));
    assert_eq!(code, 1);
    assert_eq!(refused["error"]["code"], "tag/several", "{refused:#}");

    let (code, pushed) = answer_of(&mut hosts(&["--push", "--tag", "1.5"]));
    assert_eq!(code, 1, "{pushed:#}");
    let odd = &pushed["failed"][0];
    let served = each(&pushed["images"], "host_build");
    assert_eq!(served.len(), 1, "{pushed:#}");
    assert_ne!(served[0], &odd["host_build"]);
    assert_contains!(odd["hint"], "--no-index");
}

#[test]
fn a_host_that_two_entries_could_serve_is_up_to_date_with_the_one_that_is_not_reported_to_fail() {
    let site = site();
    let app = layer(|tar| {
        tar.folder("Files/app", None)
            .file("Files/app/a", b"a", None);
    });
    put(&site, "app", "1.4", on(&base(OLD), app, "COPY a C:/app/"));
    let image = format!("{}/app:1.4", site.host());
    let newest = |more: &[&str]| {
        let hosts = ["--host-build", "20348.2402", "--host-build", "26200.7171"];
        site.with_bases(&[&["update", &image][..], &hosts, more].concat())
    };
    newest(&["--push", "--replace"]).assert().code(0);
    let new: Vec<WindowsVersion> = vec!["26100.1742".parse().unwrap()];
    site.registry
        .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", &new))
        .unwrap();
    let words = [
        "update", &image, "--host-build", "26100.1742", "--push", "--join",
    ];
    site.with_bases(&words).assert().code(0);
    newest(&["--check"]).assert().code(0);
}
