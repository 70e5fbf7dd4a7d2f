#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::windows::registry::{KeyMode, RegistryData, RegistryEdit};

const NOON: FileTime = FileTime(132_000_000_000_000_000);

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

fn one_hive(edits: &[RegistryEdit]) -> Vec<u8> {
    let mut hives = write_deltas(edits, NOON).unwrap();
    assert_eq!(hives.len(), 1);
    hives.remove(0).bytes
}

#[test]
fn a_value_that_was_set_is_read_back() {
    let bytes = one_hive(&[set(
        r"HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc",
        "ProcessShutdownTimeoutSeconds",
        RegistryData::dword(20),
    )]);
    let hive = Hive::read(&bytes).unwrap();
    let key = hive.root.at(r"controlset001\services\CEXECSVC").unwrap();
    assert_eq!(
        key.value("processshutdowntimeoutseconds"),
        Some(RegistryData::dword(20))
    );
    assert_eq!(key.timestamp, NOON);
    assert_eq!(key.layer.to_byte(), 0x80);
    assert_eq!(hive.root.layer.to_byte(), 0);
}

#[test]
fn the_deepest_key_is_written_and_read_on_a_small_stack() {
    let deep = format!(r"HKLM\SOFTWARE{}", r"\x".repeat(509));
    let edits = [
        set(&deep, "", RegistryData::dword(1)),
        RegistryEdit::CreateKey {
            key: path(&deep),
            mode: KeyMode::Replace,
        },
    ];
    let bytes = one_hive(&edits);
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!(hive.root.walk().count(), 510);
    let again = changes::edits(Root::Software, &hive.root).unwrap();
    assert_eq!(again, edits[1..]);
    let seen = merged(Some(hive.root.clone()), [hive.root.clone()]).unwrap();
    assert_eq!(seen.walk().count(), 510);
}
