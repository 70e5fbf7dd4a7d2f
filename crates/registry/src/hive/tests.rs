use super::*;
use crate::security::SecurityDescriptor;
use crate::{DataType, KeyMode, RegistryData, Root, UnknownBase};

const NOON: FileTime = FileTime(132_000_000_000_000_000);

fn path(text: &str) -> KeyPath {
    format!(r"HKLM\SOFTWARE{text}").parse().unwrap()
}

fn set(key: &str, name: &str, number: u32) -> RegistryEdit {
    with(key, name, RegistryData::dword(number))
}

fn with(key: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: path(key),
        name: name.into(),
        data,
    }
}

fn unset(key: &str, name: &str) -> RegistryEdit {
    RegistryEdit::DeleteValue {
        key: path(key),
        name: name.into(),
    }
}

fn delete(key: &str) -> RegistryEdit {
    RegistryEdit::DeleteKey { key: path(key) }
}

fn create(key: &str, mode: KeyMode) -> RegistryEdit {
    RegistryEdit::CreateKey {
        key: path(key),
        mode,
    }
}

fn written(edits: &[RegistryEdit]) -> Vec<u8> {
    let mut hives = unfitted_hives(edits, NOON).unwrap();
    assert_eq!(hives.len(), 1);
    hives.remove(0).bytes
}

/// Each key as its path, its layer byte in hexadecimal, and its values; the root is left out.
fn outline(edits: &[RegistryEdit]) -> Vec<String> {
    let bytes = written(edits);
    lines(&Hive::read(&bytes).unwrap().root).split_off(1)
}

fn lines(root: &Key<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    describe("", root, &mut lines);
    lines
}

fn describe(path: &str, key: &Key<'_>, lines: &mut Vec<String>) {
    let values = key.values.iter().map(|value| match value.data() {
        Some(data) => format!(" {}={}", value.name, data.bytes()[0]),
        None => format!(" {}=-", value.name),
    });
    let values: String = values.collect();
    lines.push(format!("{path} {:02x}{values}", key.layer.to_byte()));
    for subkey in &key.subkeys {
        describe(&format!("{path}\\{}", subkey.name), subkey, lines);
    }
}

#[test]
fn a_key_with_a_value_and_the_keys_above_it_merge() {
    let bytes = written(&[set(r"\a\b", "v", 7)]);
    let hive = Hive::read(&bytes).unwrap();
    let key = hive.root.at(r"A\B").unwrap();
    assert_eq!(key.value("V"), Some(RegistryData::dword(7)));
    assert_eq!(key.timestamp, NOON);
    assert_eq!(hive.root.layer.to_byte(), 0);
    assert_eq!((hive.root.name.as_str(), hive.root.flags), ("ROOT", 0x2C));
    assert_eq!(outline(&[set(r"\a\b", "v", 7)]), [r"\a 80", r"\a\b 80 v=7"]);
}

#[test]
fn rights_of_a_key_are_those_of_the_edit_and_pass_down() {
    let rights = |key: &str, sddl: &str| RegistryEdit::SetSecurity {
        key: path(key),
        security: sddl.parse().unwrap(),
    };
    let bytes = written(&[
        set(r"\a\b", "v", 1),
        rights(r"\a", "D:P(A;CI;KA;;;SY)(A;CI;KR;;;BU)"),
        rights(r"\c", "O:BAD:(D;;KA;;;BG)"),
        rights(r"\gone", "D:P(A;;KA;;;WD)"),
        delete(r"\gone"),
        create(r"\gone", KeyMode::Merge),
    ]);
    let hive = Hive::read(&bytes).unwrap();
    let sddl = |key: &str| {
        let key = hive.root.at(key).unwrap();
        let security = SecurityDescriptor::from_bytes(key.security).unwrap();
        security.to_string()
    };
    assert_eq!(sddl("a"), "O:SYG:SYD:P(A;CI;KA;;;SY)(A;CI;KR;;;BU)S:AI");
    assert_eq!(
        sddl(r"a\b"),
        "O:SYG:SYD:AI(A;CIID;KA;;;SY)(A;CIID;KR;;;BU)S:AI"
    );
    let inherited = sddl("gone").split_once("D:AI").unwrap().1.to_owned();
    assert_eq!(sddl("c"), format!("O:BAG:SYD:AI(D;;KA;;;BG){inherited}"));
    let root = rights("", "D:P(A;;KA;;;WD)");
    assert!(unfitted_hives(&[root], NOON).is_err());
}

#[test]
fn what_is_deleted_leaves_a_mark() {
    assert_eq!(
        outline(&[unset(r"\a", "v"), delete(r"\a\b")]),
        [r"\a 80 v=-", r"\a\b 01"]
    );
}

#[test]
fn a_key_that_is_replaced_hides_what_is_below_with_all_its_subkeys() {
    assert_eq!(
        outline(&[
            set(r"\a", "old", 1),
            set(r"\a\old", "x", 1),
            create(r"\a", KeyMode::Replace),
            set(r"\a\b", "v", 2),
        ]),
        [r"\a 03", r"\a\b 03 v=2"]
    );
}

#[test]
fn replaced_values_hide_values_and_keep_subkeys() {
    assert_eq!(
        outline(&[
            set(r"\a", "old", 1),
            set(r"\a\b", "v", 2),
            create(r"\a", KeyMode::ReplaceValues),
            set(r"\a", "new", 3),
            unset(r"\a", "other"),
        ]),
        [r"\a 02 new=3", r"\a\b 80 v=2"]
    );
}

#[test]
fn a_later_edit_wins_over_an_earlier_one() {
    assert_eq!(
        outline(&[set(r"\a", "v", 1), set(r"\A", "V", 2)]),
        [r"\a 80 V=2"]
    );
    assert_eq!(
        outline(&[set(r"\a", "v", 1), unset(r"\a", "v")]),
        [r"\a 80 v=-"]
    );
    assert_eq!(outline(&[set(r"\a\b", "v", 1), delete(r"\a")]), [r"\a 01"]);
}

#[test]
fn a_key_that_comes_back_after_its_deletion_starts_empty() {
    assert_eq!(
        outline(&[delete(r"\a"), set(r"\a\b", "v", 1)]),
        [r"\a 03", r"\a\b 03 v=1"]
    );
    assert_eq!(
        outline(&[delete(r"\a"), create(r"\a", KeyMode::Merge)]),
        [r"\a 03"]
    );
}

#[test]
fn deleting_below_a_deleted_or_a_new_key_needs_no_mark() {
    assert_eq!(
        outline(&[delete(r"\a"), delete(r"\a\b\c"), unset(r"\a\b", "v")]),
        [r"\a 01"]
    );
    assert_eq!(
        outline(&[
            create(r"\a", KeyMode::Replace),
            set(r"\a\b", "v", 1),
            delete(r"\a\b"),
            unset(r"\a", "w"),
            delete(r"\a\x\y"),
        ]),
        [r"\a 03"]
    );
}

#[test]
fn a_hive_in_which_nothing_changes_is_not_written() {
    let root_only = create("", KeyMode::Merge);
    assert_eq!(unfitted_hives(&[root_only], NOON).unwrap(), []);
    assert_eq!(unfitted_hives(&[], NOON).unwrap(), []);
}

#[test]
fn each_root_gets_its_own_hive_in_a_fixed_order() {
    let edit = |text: &str| RegistryEdit::CreateKey {
        key: text.parse().unwrap(),
        mode: KeyMode::Merge,
    };
    let edits = [
        edit(r"HKU\.DEFAULT\x"),
        edit(r"HKLM\SOFTWARE\x"),
        edit(r"HKLM\SYSTEM\x"),
    ];
    let hives = unfitted_hives(&edits, NOON).unwrap();
    let names: Vec<_> = hives.iter().map(|hive| hive.name).collect();
    assert_eq!(
        names,
        ["System_Delta", "Software_Delta", "DefaultUser_Delta"]
    );
    for hive in &hives {
        let read = Hive::read(&hive.bytes).unwrap();
        assert_eq!(read.file_name, format!(r"Hives\{}", hive.name));
        let root = Root::from_delta_name(hive.name).unwrap();
        assert_eq!(root.delta_name(), hive.name);
    }
}

#[test]
fn a_layer_with_one_change_has_all_five_hives() {
    let hives = layer_hives(&[set(r"\a", "v", 1)], &UnknownBase, NOON).unwrap();
    let names: Vec<_> = hives.iter().map(|hive| hive.name).collect();
    let five = [
        "System_Delta", "Software_Delta", "Sam_Delta", "Security_Delta", "DefaultUser_Delta",
    ];
    assert_eq!(names, five);
    for hive in &hives {
        let read = Hive::read(&hive.bytes).unwrap();
        assert!(read.layered, "{}", hive.name);
        assert_eq!(read.file_name, format!(r"Hives\{}", hive.name));
        assert_eq!((read.root.name.as_str(), read.root.flags), ("ROOT", 0x2C));
        let keys = if hive.name == "Software_Delta" { 2 } else { 1 };
        assert_eq!(read.root.walk().count(), keys, "{}", hive.name);
    }
    assert_eq!(hives[1].bytes, written(&[set(r"\a", "v", 1)]));
    assert_eq!(layer_hives(&[], &UnknownBase, NOON).unwrap(), []);
}

#[test]
fn an_empty_hive_is_a_whole_one_with_a_root() {
    let bytes = empty_hive(NOON).unwrap();
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!((hive.minor_version, hive.layered), (5, false));
    assert_eq!(hive.root.walk().count(), 1);
    assert_eq!(hive.root.layer.to_byte(), 0);
}

#[test]
fn the_order_of_independent_edits_does_not_change_a_byte() {
    let mut edits = vec![
        set(r"\b", "y", 1),
        set(r"\a", "x", 2),
        delete(r"\c"),
        set(r"\a", "w", 3),
    ];
    let first = written(&edits);
    edits.reverse();
    assert_eq!(written(&edits), first);
}

#[test]
fn whole_hives_and_endless_names_are_refused() {
    for edit in [
        delete(""),
        create("", KeyMode::Replace),
        create("", KeyMode::ReplaceValues),
    ] {
        let error = unfitted_hives(&[edit], NOON).unwrap_err();
        assert_eq!(
            error.to_string(),
            r"HKLM\SOFTWARE is the root of a hive and cannot be deleted or replaced"
        );
    }
    let long = "x".repeat(16_384);
    let error = unfitted_hives(&[set(r"\a", &long, 1)], NOON).unwrap_err();
    assert!(error.to_string().contains("16384 UTF-16 units"), "{error}");
    assert!(unfitted_hives(&[set(r"\a", &long[1..], 1)], NOON).is_ok());
}

#[test]
fn values_of_every_size_and_type_come_back() {
    let sizes = [0, 1, 4, 5, 16_344, 16_345, 32_688, 32_689, 1_000_000];
    let types = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xFFFF_0011];
    let mut edits = Vec::new();
    for size in sizes {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        let data = RegistryData::binary(bytes);
        edits.push(with(r"\a", &format!("size {size:07}"), data));
    }
    for kind in types {
        let data = RegistryData::new(DataType(kind), [1, 2, 3]);
        edits.push(with(r"\a", &format!("type {kind:010}"), data));
    }
    let bytes = written(&edits);
    let hive = Hive::read(&bytes).unwrap();
    let read = super::edits(Root::Software, &hive.root).unwrap();
    assert!(read == edits, "all values are as they were");
}

#[test]
fn names_outside_ascii_keep_their_case_and_their_order() {
    let names = ["_", "Zeta", "é", "Ÿ", "Ж", "я", "ﬁ", "😀", "ａ"];
    let edits: Vec<_> = names
        .iter()
        .map(|name| set(&format!(r"\{name}"), name, 1))
        .collect();
    let bytes = written(&edits);
    let hive = Hive::read(&bytes).unwrap();
    let order: Vec<_> = hive.root.subkeys.iter().map(|key| &key.name).collect();
    assert_eq!(order, ["Zeta", "_", "é", "Ÿ", "Ж", "я", "😀", "ﬁ", "ａ"]);
    assert!(hive.root.at("ÿ").unwrap().value("ÿ").is_some());
}

#[test]
fn many_subkeys_go_into_several_lists() {
    for count in [507, 508, 2_000] {
        let edits: Vec<_> = (0..count)
            .map(|number| set(&format!(r"\k{number:05}"), "v", number))
            .collect();
        let bytes = written(&edits);
        let hive = Hive::read(&bytes).unwrap();
        assert_eq!(super::edits(Root::Software, &hive.root).unwrap(), edits);
        let index = bytes[4096..].windows(4).any(|cell| cell[..2] == *b"ri");
        assert_eq!(index, count > 507, "{count}");
    }
}

#[test]
fn the_deepest_key_is_written_and_read_on_a_small_stack() {
    let deep = r"\x".repeat(509);
    let edits = [set(&deep, "", 1), create(&deep, KeyMode::Replace)];
    let bytes = written(&edits);
    let hive = Hive::read(&bytes).unwrap();
    assert_eq!(hive.root.walk().count(), 510);
    let again = super::edits(Root::Software, &hive.root).unwrap();
    assert_eq!(again, edits[1..]);
    let seen = merge(Some(hive.root.clone()), [hive.root.clone()]).unwrap();
    assert_eq!(seen.walk().count(), 510);
}

#[test]
fn times_go_both_ways() {
    assert_eq!(FileTime::from_unix_seconds(0).0, 116_444_736_000_000_000);
    assert_eq!(FileTime::from_unix_seconds(i64::MIN), FileTime(0));
    let time = FileTime::from_unix_seconds(1_600_000_000);
    assert_eq!(time.0, 132_444_736_000_000_000);
}

#[test]
fn what_is_no_hive_is_refused_with_the_reason() {
    let whole = written(&[set(r"\a", "v", 1)]);
    let reason = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        Hive::read(&bytes).unwrap_err().to_string()
    };
    let sealed = |at: usize, number: u32| {
        reason(&|bytes: &mut Vec<u8>| {
            format::put(bytes, at, number);
            format::seal(bytes);
        })
    };
    assert!(reason(&|bytes| bytes.truncate(4095)).starts_with("not a registry hive"));
    assert!(reason(&|bytes| bytes[0] = b'x').starts_with("not a registry hive"));
    assert!(reason(&|bytes| bytes[100] ^= 1).contains("torn base block"));
    assert!(reason(&|bytes| bytes.truncate(5000)).contains("it has 904 of 4096 bytes"));
    assert!(sealed(4, 7).contains("unsaved changes in its log files"));
    assert!(sealed(24, 2).contains("version 1.2"));
    assert!(sealed(28, 6).contains("another type"));
    assert!(sealed(36, 0x24).contains("no allocated cell"));
    assert!(reason(&|bytes| bytes[4096] = 0).contains("missing bin header"));
    assert!(reason(&|bytes| bytes[4096 + 32] = 7).contains("impossible size"));
}

#[test]
fn a_key_that_is_its_own_subkey_is_refused() {
    let mut bytes = written(&[set(r"\a", "v", 1)]);
    let at = bytes.windows(2).position(|two| two == b"lh").unwrap();
    bytes[at + 4..at + 8].copy_from_slice(&0x20_u32.to_le_bytes());
    let error = Hive::read(&bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "damaged registry hive: no allocated cell that is unused, at offset 0x20 of its data"
    );
}

/// Merges deltas over a base, each given as edits.
fn seen(base: &[RegistryEdit], deltas: &[&[RegistryEdit]]) -> Vec<String> {
    let base = written(base);
    let deltas: Vec<_> = deltas.iter().map(|edits| written(edits)).collect();
    let root = |bytes| Hive::read(bytes).unwrap().root;
    let view = merge(Some(root(&base)), deltas.iter().map(|delta| root(delta))).unwrap();
    lines(&view).split_off(1)
}

#[test]
fn a_delta_adds_to_the_base_and_changes_it() {
    assert_eq!(
        seen(
            &[set(r"\a", "v", 1), set(r"\a", "w", 1), set(r"\b", "x", 1)],
            &[&[set(r"\A", "V", 2), set(r"\A\c", "y", 2), unset(r"\a", "W")]]
        ),
        [r"\a 00 v=2", r"\a\c 00 y=2", r"\b 00 x=1"]
    );
}

#[test]
fn a_tombstone_hides_the_key_below() {
    assert_eq!(
        seen(
            &[set(r"\a\b", "v", 1), set(r"\c", "x", 1)],
            &[&[delete(r"\a")]]
        ),
        [r"\c 00 x=1"]
    );
}

#[test]
fn what_one_layer_deletes_another_can_add_back_empty() {
    assert_eq!(
        seen(
            &[set(r"\a", "v", 1), set(r"\a\b", "w", 1)],
            &[&[delete(r"\a")], &[set(r"\a", "new", 2)]]
        ),
        [r"\a 00 new=2"]
    );
}

#[test]
fn a_replaced_key_shows_nothing_of_those_below() {
    assert_eq!(
        seen(
            &[set(r"\a", "v", 1), set(r"\a\b", "w", 1)],
            &[&[create(r"\a", KeyMode::Replace), set(r"\a\c", "n", 2)]]
        ),
        [r"\a 00", r"\a\c 00 n=2"]
    );
    assert_eq!(
        seen(
            &[set(r"\a", "v", 1), set(r"\a\b", "w", 1)],
            &[&[create(r"\a", KeyMode::ReplaceValues), set(r"\a", "n", 2)]]
        ),
        [r"\a 00 n=2", r"\a\b 00 w=1"]
    );
}

#[test]
fn layers_without_a_base_show_what_they_add() {
    let delta = written(&[delete(r"\a"), unset(r"\b", "v"), set(r"\b", "w", 1)]);
    let root = Hive::read(&delta).unwrap().root;
    let view = merge(None, [root]).unwrap();
    assert_eq!(lines(&view), [" 00", r"\b 00 w=1"]);
    assert_eq!(merge(None, []), None);
}

#[test]
fn a_passed_through_key_takes_its_class_from_below() {
    let bytes = written(&[set(r"\a", "v", 1)]);
    let delta = Hive::read(&bytes).unwrap().root;
    let mut base = delta.clone();
    base.subkeys[0].class = Some("from below".into());
    base.subkeys[0].timestamp = FileTime(1);
    let view = merge(Some(base), [delta]).unwrap();
    let key = view.at("a").unwrap();
    assert_eq!(key.class.as_deref(), Some("from below"));
    assert_eq!(key.timestamp, NOON);
}

mod known;

mod combined {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn key() -> impl Strategy<Value = String> {
        let names = vec(select(vec!["a", "A", "b", "ß"]), 1..=3);
        names.prop_map(|names| format!(r"\{}", names.join(r"\")))
    }

    fn edit() -> impl Strategy<Value = RegistryEdit> {
        let name = || select(vec!["", "v", "V", "w"]);
        let modes = vec![KeyMode::Merge, KeyMode::Replace, KeyMode::ReplaceValues];
        prop_oneof![
            4 => (key(), name(), any::<u32>()).prop_map(|(key, name, data)| set(&key, name, data)),
            2 => (key(), name()).prop_map(|(key, name)| unset(&key, name)),
            2 => key().prop_map(|key| delete(&key)),
            1 => (key(), select(modes)).prop_map(|(key, mode)| create(&key, mode)),
        ]
    }

    /// Keys and values in the order of their names. A name that is deleted and set again in other case
    /// has the case of the layers below: to Windows, both are one name.
    fn contents(root: Option<&Key<'_>>) -> Vec<String> {
        let lines = root.map(lines).unwrap_or_default();
        let sorted = lines.iter().map(|line| {
            let mut words: Vec<&str> = line.split(' ').collect();
            words[1..].sort_unstable_by_key(|word| word.to_lowercase());
            words.join(" ").to_lowercase()
        });
        sorted.collect()
    }

    proptest! {
        #[test]
        fn layers_have_the_effect_of_each_in_turn(
            base in vec(edit(), 1..10),
            layers in vec(vec(edit(), 1..10), 1..4),
        ) {
            let base = written(&base);
            let layers: Vec<_> = layers.iter().map(|edits| written(edits)).collect();
            let root = |bytes| Hive::read(bytes).unwrap().root;
            let roots = || layers.iter().map(|bytes| root(bytes));
            for below in [Some(root(&base)), None] {
                let each = merge(below.clone(), roots());
                let combined = merge(below, combine(roots()));
                prop_assert_eq!(contents(combined.as_ref()), contents(each.as_ref()));
            }
        }
    }
}

#[test]
fn a_value_is_set_in_a_whole_hive() {
    let edits = [
        with(
            r"\Environment",
            "TEMP",
            RegistryData::expand_sz(r"%USERPROFILE%\Temp"),
        ),
        set(r"\Environment", "Number", 1),
        set(r"\Other\Deep", "kept", 7),
    ];
    let mut before = written(&edits);
    // Layered keys are for deltas.
    format::put(&mut before, format::base::FLAGS, 0);
    format::seal(&mut before);
    let long = "x".repeat(4000);
    let mut after = before.clone();
    for (name, data) in [
        ("temp", RegistryData::sz("short")),
        ("Number", RegistryData::sz(&long)),
        ("Ünï", RegistryData::dword(5)),
        ("New", RegistryData::sz("")),
        ("New", RegistryData::expand_sz("%A%;b")),
    ] {
        after = set_value(&after, r"environment", name, &data, NOON).unwrap();
        let hive = Hive::read(&after).unwrap();
        let key = hive.root.at("Environment").unwrap();
        assert_eq!(key.value(name), Some(data), "{name}");
        assert_eq!(key.timestamp, NOON);
    }
    let (old, new) = (Hive::read(&before).unwrap(), Hive::read(&after).unwrap());
    let names = |hive: &Hive<'_>| -> Vec<String> {
        let key = hive.root.at("Environment").unwrap();
        key.values.iter().map(|value| value.name.clone()).collect()
    };
    assert_eq!(names(&old), ["Number", "TEMP"]);
    assert_eq!(names(&new), ["Number", "TEMP", "Ünï", "New"]);
    assert_eq!(new.root.subkey("Other"), old.root.subkey("Other"));
    assert_eq!(
        new.root.at("Environment").unwrap().security,
        old.root.at("Environment").unwrap().security
    );
    assert_eq!(new.minor_version, old.minor_version);
    let refused = |file: &[u8], key: &str, why: &str| {
        let error = set_value(file, key, "x", &RegistryData::dword(1), NOON).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(&before, "None", "not found");
    refused(&written(&edits), "Other", "delta hive");
    let mut dirty = before;
    dirty[4] ^= 1;
    format::seal(&mut dirty);
    refused(&dirty, "Other", "unsaved changes");
}
