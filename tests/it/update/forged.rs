//! Indexes of bases that nobody signs: whoever may push to their repository can attach one.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;
use wincimg_inspect::base::{Extent, LayerPosition, assemble, collect_layer};
use wincimg_testkit::layout::layers_in;

use super::*;
use crate::failure::{Fails, note, warning};
use crate::inside::attach;
use crate::site::block_on;

/// A layer with another version of a file that servicing changes.
fn serviced() -> Vec<u8> {
    layer(|tar| {
        tar.file("Files/Windows/System32/serviced.dll", b"own", Some(FILE));
    })
}

/// An index of the new base with the contents of the old one.
fn forged() -> Vec<u8> {
    index(NEW, NEW, OLD)
}

/// An index about the base of a version, which states another version, with the contents of a third
/// one.
fn index(about: &str, version: &str, contents: &str) -> Vec<u8> {
    let everything = Extent::Everything;
    let contents = base(contents).layers[0].1.clone();
    let read = collect_layer(contents.as_ref(), LayerPosition::Bottom, &everything).unwrap();
    let index = assemble(
        base(about).image.digest(),
        Some(version),
        &everything,
        vec![read],
    );
    index.unwrap().to_vec()
}

/// Attaches an index to the new base, and returns the base's reference.
fn attached(site: &Site, index: &[u8]) -> String {
    attached_to(site, NEW, index)
}

/// Attaches an index to the base of a version, and returns the base's reference.
fn attached_to(site: &Site, version: &str, index: &[u8]) -> String {
    let reference = format!("{}/{NANO}:{version}", site.host());
    let base = base(version);
    let attaching = attach(&reference, &base, index);
    block_on(attaching);
    reference
}

/// Status, old and new base of an update of an image with a layer, and what it warns of.
fn outcome(site: &Site, layer: Vec<u8>) -> (Value, String) {
    put(site, "app", "1.4", on(&base(OLD), layer, "RUN it"));
    let (_, report, printed) = report_of(&mut update(site, &["--output", "oci:moved"]));
    let text = report["updates"][0]
        .to_string()
        .replace(&site.host(), "HOST");
    (serde_json::from_str(&text).unwrap(), printed)
}

#[test]
fn an_index_that_states_another_base_or_version_changes_no_outcome() {
    let own = layer(|tar| {
        tar.file("Files/own.txt", b"own", Some(FILE));
    });
    for (layer, status) in [(serviced(), "refused"), (own, "moves")] {
        let (expected, _) = outcome(&site(), layer.clone());
        assert_eq!(expected["status"], status, "{expected}");
        for version in ["10.0.17763.9999", OLD] {
            // True contents, and a version that neither chooses a base nor spares an update.
            let site = site();
            attached(&site, &index(NEW, version, NEW));
            attached_to(&site, OLD, &index(OLD, NEW, OLD));
            assert_eq!(outcome(&site, layer.clone()).0, expected, "{version}");
            // The index of another base.
            let site = self::site();
            attached(&site, &index(OLD, version, OLD));
            attached_to(&site, OLD, &index(NEW, version, NEW));
            let (update, printed) = outcome(&site, layer.clone());
            assert_eq!(update, expected, "{version}");
            assert!(printed.contains("attached to"), "{printed}");
        }
    }
}

#[test]
fn an_update_names_the_index_it_relies_on_and_takes_no_bytes_from_it() {
    let site = site();
    let image = on(&base(OLD), serviced(), "RUN it");
    let own = image.layers[1].1.clone();
    put(&site, "app", "1.4", image);
    let reference = attached(&site, &forged());

    let command = format!("wincimg image base index {reference}");
    let named = || note(&[&command]);
    update(&site, &["--output", "oci:moved"])
        .assert()
        .code(0)
        .stderr(named());
    let layers = layers_in(&site.path("moved"));
    assert_eq!(fs::read(layers.last().unwrap()).unwrap(), own.as_ref());
    // It is cached from now on, and no better for that.
    update(&site, &["--check"]).assert().code(1).stderr(named());

    let words: Vec<&str> = command.split(' ').skip(1).collect();
    site.with_no_bases(&words).assert().success();
    update(&site, &["--push"])
        .assert()
        .code(1)
        .stdout(contains("serviced.dll"))
        .stderr(named().not());
}

#[test]
fn a_damaged_index_is_replaced_by_what_the_layers_have() {
    let site = site();
    put(&site, "app", "1.4", on(&base(OLD), serviced(), "RUN it"));
    let mut damaged = forged();
    // Everything but the directory at the end.
    let trailer = damaged.len() - 24;
    let end = u64::from_le_bytes(damaged[trailer..][..8].try_into().unwrap());
    for at in (20..usize::try_from(end).unwrap()).step_by(8) {
        damaged[at] ^= 0x55;
    }
    let reference = attached(&site, &damaged);
    let old = format!("{}/{NANO}:{OLD}", site.host());
    let index = |reference: &str| site.with_no_bases(&["image", "base", "index", reference]);
    index(&old).assert().success();
    let hint = "wincimg image base index";
    update(&site, &["--check"]).fails(3, "base/facts", &[hint]);
    update(&site, &["--push"])
        .assert()
        .code(1)
        .stdout(contains("serviced.dll"))
        .stderr(warning(&["damaged"]));
    // What the layers have is cached from now on.
    update(&site, &["--check"])
        .assert()
        .code(1)
        .stderr(contains(reference).not());
}
