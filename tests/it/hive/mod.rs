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

use wincimg_registry::RegistryEdit;
use wincimg_testkit::kernel_rules::check;
use wincimg_testkit::test_bases::delta_hive;

fn hive_of(edits: &[RegistryEdit]) -> Vec<u8> {
    sound(delta_hive(edits))
}

/// A new hive, checked against the rules of Windows' kernel.
fn sound(bytes: Vec<u8>) -> Vec<u8> {
    let found = check(&bytes).unwrap();
    assert!(found.is_fresh(), "{found:?}");
    bytes
}
