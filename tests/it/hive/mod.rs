//! Delta hives compared with a hive written by Windows, with three independent readers, and under
//! damage.

#![allow(
    clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs
)]

mod damage;
mod properties;
mod readers;
mod rules;
mod sample;
mod structure;

use wincimg_registry::hive::{FileTime, unfitted_hives};
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit};
use wincimg_testkit::kernel_rules::check;

fn path(text: &str) -> KeyPath {
    text.parse().unwrap()
}

fn set(key: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: path(key),
        name: name.into(),
        data,
    }
}

fn hive_of(edits: &[RegistryEdit]) -> Vec<u8> {
    let mut hives = unfitted_hives(edits, FileTime::from_unix_seconds(1_600_000_000)).unwrap();
    assert_eq!(hives.len(), 1, "one root touched, one hive");
    sound(hives.remove(0).bytes)
}

/// A new hive, checked against the rules of Windows' kernel.
fn sound(bytes: Vec<u8>) -> Vec<u8> {
    let found = check(&bytes).unwrap();
    assert!(found.is_fresh(), "{found:?}");
    bytes
}
