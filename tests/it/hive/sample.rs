//! The hive written by a Windows sandbox, read completely and compared with ours.

use std::collections::{BTreeMap, HashSet};

use wincimg_registry::hive::{Hive, Key, Semantics, ValueContent};
use wincimg_registry::security::{Ace, ace_flags};
use wincimg_registry::testing::read_descriptor;
use wincimg_registry::{DataType, KeyMode, KeyPath, RegistryData, RegistryEdit, Root};
use wincimg_testkit::programs;
use wincimg_testkit::test_bases::{create, delete_key, delete_value, set};

use super::hive_of;

/// The delta hive of a Windows sandbox.
pub(super) const DELTA: &str = "hives/System_Delta";

/// That hive.
pub(super) fn sample() -> Vec<u8> {
    std::fs::read(programs::sample(DELTA)).unwrap()
}

/// The content of the sample's service keys, written by us.
fn ours() -> Vec<u8> {
    hive_of(&[
        set(
            r"HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc",
            "ProcessShutdownTimeoutSeconds",
            RegistryData::dword(30),
        ),
        set(
            r"HKLM\SYSTEM\CurrentControlSet\Control",
            "WaitToKillServiceTimeout",
            RegistryData::sz("30000"),
        ),
        set(
            r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack",
            "Start",
            RegistryData::dword(4),
        ),
        delete_value(
            r"HKLM\SYSTEM\CurrentControlSet\Services\XboxNetApiSvc",
            "displayname",
        ),
        delete_key(r"HKLM\SYSTEM\CurrentControlSet\Services\XBOXGIP"),
        create(r"HKLM\SYSTEM\CurrentControlSet\Services\xboxgipsvc"),
        set(
            r"HKLM\SYSTEM\CurrentControlSet\Services\xboxgipsvc",
            "",
            RegistryData::new(DataType::SZ, [0, 0]),
        ),
    ])
}

#[test]
fn the_sample_is_read_whole() {
    let bytes = sample();
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!((hive.minor_version, hive.layered), (6, true));
    assert_eq!(hive.file_name, r"SandboxState\Hives\system_Delta");

    let mut layers = BTreeMap::new();
    for key in hive.root.walk() {
        *layers.entry(key.layer.to_byte()).or_insert(0) += 1;
    }
    assert_eq!(hive.root.walk().count(), 586);
    let expected = [(0, 8), (1, 2), (3, 61), (0x80, 514), (0x83, 1)];
    assert_eq!(layers, BTreeMap::from(expected));

    let values: Vec<_> = hive.root.walk().flat_map(|key| &key.values).collect();
    let deleted: Vec<&str> = values
        .iter()
        .filter(|value| value.content == ValueContent::Tombstone)
        .map(|value| value.name.as_str())
        .collect();
    assert_eq!(values.len(), 820);
    assert_eq!(deleted, ["ExistingPageFiles", "6005BT", "displayname"]);
    let tombstones: Vec<&str> = hive
        .root
        .walk()
        .filter(|key| key.layer.semantics == Semantics::Tombstone)
        .map(|key| key.name.as_str())
        .collect();
    assert_eq!(
        tombstones,
        ["{BA84F32B-8AF2-5006-F147-5030CDD7F22D}", "XBOXGIP"]
    );
}

#[test]
fn the_descriptors_that_we_write_are_those_of_the_sample() {
    let bytes = sample();
    let theirs = Hive::read(&bytes).unwrap().root;
    let ours = ours();
    let ours = Hive::read(&ours).unwrap().root;
    for key in [
        "",
        "ControlSet001",
        r"ControlSet001\Control",
        r"ControlSet001\Services",
        r"ControlSet001\Services\XboxNetApiSvc",
    ] {
        let (ours, theirs) = (ours.at(key).unwrap(), theirs.at(key).unwrap());
        assert_eq!(ours.security, theirs.security, "{key}");
    }
}

/// Permissions of a key, explicit or inherited, without duplicates.
fn grants(key: &Key<'_>) -> HashSet<Ace> {
    let descriptor = read_descriptor(key.security);
    let list = descriptor.dacl.expect("a key has an access list");
    list.entries
        .into_iter()
        .map(|mut entry| {
            entry.flags &= !ace_flags::INHERITED;
            entry
        })
        .collect()
}

#[test]
fn a_key_that_we_pass_through_grants_what_it_grants_in_windows() {
    let bytes = sample();
    let theirs = Hive::read(&bytes).unwrap().root;
    let mut edits = Vec::new();
    collect_paths(&KeyPath::root_of(Root::System), &theirs, &mut edits);
    let ours = hive_of(&edits);
    let ours = Hive::read(&ours).unwrap().root;
    for (ours, theirs) in ours.walk().zip(theirs.walk()) {
        assert_eq!(ours.name, theirs.name);
        // Two were created in the sandbox by its user, who got permissions as creator, and one is
        // an event provider with the permissions of another key.
        let special = [
            "xboxgipsvc",
            "a_subkey",
            "{152fbe4b-c7ad-4f68-bada-a4fcc1464f6c}",
        ];
        if !special.contains(&theirs.name.as_str()) {
            assert_eq!(grants(ours), grants(theirs), "{}", theirs.name);
        }
    }
}

fn collect_paths(path: &KeyPath, key: &Key<'_>, edits: &mut Vec<RegistryEdit>) {
    edits.push(RegistryEdit::CreateKey {
        key: path.clone(),
        mode: KeyMode::Merge,
    });
    for subkey in &key.subkeys {
        collect_paths(&path.child(&subkey.name).unwrap(), subkey, edits);
    }
}
