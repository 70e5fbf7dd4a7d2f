//! Entrances for `fuzz/`, compiled for it alone.

use std::io::Write as _;

use wincimg_windows::update::Updates;

use super::dialog::read_dialog;
use super::download::ExpectedUpdate;
use super::msrc::SecurityUpdates;
use super::msu::check_package;
use super::page::read_page;
use super::product::Arch;
use super::releaseinfo::read_release_info;

/// Reads a text as each kind of page.
pub fn pages(text: &str) {
    drop(read_page(text));
    drop(read_dialog(text, "00000000-0000-0000-0000-000000000000"));
    drop(read_release_info(text, Updates::embedded()));
}

/// Reads bytes as a document of security updates. What is read can be kept.
pub fn security_updates(bytes: &[u8]) {
    let mut table = SecurityUpdates::default();
    if table.add(bytes).is_ok() {
        let kept = SecurityUpdates::parse(&table.to_string());
        assert_eq!(kept.ok(), Some(table));
    }
}

/// Checks bytes as each kind of package.
pub fn package(bytes: &[u8]) {
    let wanted = ExpectedUpdate {
        kb: "KB5034439".parse().expect("an article"),
        arch: Arch::X64,
        version: None,
        without_digest: true,
    };
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("space for it");
    for name in ["windows10.0-kb5034439-x64.msu", "a.cab", "a.exe"] {
        drop(check_package(file.path(), name, &wanted));
    }
}
