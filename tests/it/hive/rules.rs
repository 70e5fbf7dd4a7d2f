//! Hives checked against the rules of Windows' kernel: ours and Windows' own comply, and a
//! violation is reported by rule.

use wincimg_registry::hive::{FileTime, empty_hive};
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::kernel_rules::check;
use wincimg_testkit::test_bases::{create, delete_key, delete_value, seal, set};

use super::hive_of;
use super::sample::sample;
use super::structure::Raw;

/// A hive with every kind of record: long data, a deleted key and value, a new tree, an index.
fn rich() -> Vec<RegistryEdit> {
    let key = |name: &str| format!(r"HKLM\SOFTWARE\{name}");
    let mut edits = vec![
        set(&key("a"), "text", RegistryData::sz("some text")),
        set(&key("a"), "number", RegistryData::dword(7)),
        set(&key("a"), "long", RegistryData::binary(vec![7; 40_000])),
        delete_value(&key("a"), "old"),
        delete_key(&key("gone")),
        create(&key("new")),
        set(&key(r"new\below"), "", RegistryData::sz("x")),
    ];
    for name in ["ß", "µ", "ſ", "ı", "Ÿ", "ÿ2", "ﬁ", "Ж", "ё", "😀", "_", "^"] {
        edits.push(set(
            &key(&format!(r"a\{name}")),
            name,
            RegistryData::dword(1),
        ));
    }
    for number in 0..600 {
        let key = key(&format!(r"many\key {number}"));
        edits.push(set(&key, "n", RegistryData::dword(number)));
    }
    edits
}

#[test]
fn what_we_write_keeps_every_rule() {
    let sound = check(&hive_of(&rich())).unwrap();
    assert!(sound.is_fresh(), "{sound:?}");
    assert_eq!((sound.keys, sound.values), (618, 617));
    let special = (sound.long_values, sound.deleted_keys, sound.deleted_values);
    assert_eq!(special, (1, 1, 1));
    let empty = check(&empty_hive(FileTime(1)).unwrap()).unwrap();
    assert!(empty.is_fresh() && empty.keys == 1, "{empty:?}");
}

#[test]
fn the_delta_hive_that_windows_wrote_keeps_every_rule() {
    let bytes = sample();
    let sound = check(&bytes).unwrap();
    assert_eq!((sound.keys, sound.values), (586, 820));
    assert_eq!((sound.deleted_keys, sound.deleted_values), (2, 3));
}

/// Tells whether a hive with a change, and then the right checksum, violates a rule.
fn refusals(whole: &Raw) -> impl Fn(&str, &dyn Fn(&mut Raw)) {
    move |rule: &str, change: &dyn Fn(&mut Raw)| {
        let mut raw = whole.clone();
        change(&mut raw);
        seal(&mut raw.0);
        let printed = check(&raw.0).expect_err("a rule is broken");
        assert!(printed.starts_with(rule), "{rule}: {printed}");
    }
}

impl Raw {
    /// Writes into a cell's content.
    fn put(&mut self, cell: u32, at: usize, bytes: &[u8]) {
        let start = 4096 + cell as usize + 4 + at;
        self.0[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn word(&mut self, cell: u32, at: usize, number: u32) {
        self.put(cell, at, &number.to_le_bytes());
    }

    fn named(&self, name: &str) -> u32 {
        let keys = self.keys();
        *keys
            .iter()
            .find(|&&key| self.key_name(key) == name)
            .unwrap()
    }
}

#[test]
fn a_base_block_or_a_bin_that_is_not_whole_is_refused() {
    let whole = Raw(hive_of(&rich()));
    let refused = refusals(&whole);
    refused("the sequence numbers differ", &|raw| raw.0[4] ^= 2);
    refused("version", &|raw| raw.0[24] = 7);
    refused("the size of the bins", &|raw| raw.0[41] ^= 1);
    refused("missing bin", &|raw| raw.0[4096] = 0);
    refused("a bin has a wrong offset", &|raw| raw.0[4100] = 1);
    refused("a cell's size is wrong", &|raw| raw.0[4096 + 32] ^= 4);
    refused("no cell in use", &|raw| {
        // Mark the root's cell as free.
        let at = 4096 + raw.header(36) as usize;
        let size = raw.header(at).wrapping_neg();
        raw.0[at..at + 4].copy_from_slice(&size.to_le_bytes());
    });
    let mut torn = whole.clone();
    torn.0[100] ^= 1;
    assert!(check(&torn.0).unwrap_err().starts_with("the checksum"));
    assert!(
        check(&whole.0[..4096])
            .unwrap_err()
            .starts_with("the size of the bins")
    );
}

#[test]
fn a_key_that_contradicts_those_around_it_is_refused() {
    let whole = Raw(hive_of(&rich()));
    let [a, new, below, gone] = ["a", "new", "below", "gone"].map(|name| whole.named(name));
    let root = whole.header(36);
    let list = whole.u32(a, 28);
    let refused = refusals(&whole);
    refused("no nk record", &|raw| raw.put(a, 0, b"nx"));
    refused("a cell has two owners", &|raw| {
        // Make a key its own subkey.
        let (above, own) = (raw.u32(root, 28), raw.u32(new, 28));
        raw.word(own, 4, new);
        let entries = (0..raw.u16(above, 2)).map(|index| 4 + 8 * index);
        let at = entries
            .into_iter()
            .find(|&at| raw.u32(above, at) == new)
            .unwrap();
        raw.word(own, 8, raw.u32(above, at + 4));
    });
    refused("a key has a wrong parent", &|raw| raw.word(below, 16, a));
    refused("a key other than the root", &|raw| {
        raw.put(a, 2, &[0x24, 0]);
    });
    refused("a key's name is not in its cell", &|raw| {
        raw.word(below, 72, 0xFFF0);
    });
    refused("a key's name is empty", &|raw| raw.word(root, 72, 0));
    refused(
        "a key's name is empty, too long or has a backslash",
        &|raw| {
            raw.put(root, 76, b"\\");
        },
    );
    refused("a key has a wrong number of subkeys", &|raw| {
        raw.word(a, 20, 3);
    });
    refused("a subkey has a wrong hash", &|raw| {
        raw.put(below, 76, b"belox");
    });
    refused("subkeys are not sorted", &|raw| {
        let [first, second] = [4, 12].map(|at| [raw.u32(list, at), raw.u32(list, at + 4)]);
        raw.word(list, 4, second[0]);
        raw.word(list, 8, second[1]);
        raw.word(list, 12, first[0]);
        raw.word(list, 16, first[1]);
    });
    refused("a subkey's name is longer", &|raw| raw.word(new, 52, 2));
    refused("a leaf is empty", &|raw| raw.put(list, 2, &[0, 0]));
    refused("an index is empty", &|raw| {
        let many = raw.named("many");
        let index = raw.u32(many, 28);
        raw.put(index, 2, &[0, 0]);
    });
    refused("an unknown kind of list", &|raw| raw.put(list, 0, b"lx"));
    // Layer flags.
    refused("an unknown layer flag", &|raw| raw.put(a, 13, &[0x84]));
    refused("the root does not merge", &|raw| raw.put(root, 13, &[0x80]));
    refused("a key merges below one that hides", &|raw| {
        raw.put(below, 13, &[0x80]);
    });
    refused("a deleted key has values", &|raw| raw.put(a, 13, &[1]));
    refused("a layer flag in a hive without layers", &|raw| {
        raw.0[144] = 0;
    });
    let sound = check(&whole.0).unwrap();
    assert_eq!((sound.deleted_keys, whole.u32(gone, 36)), (1, 0));
}

#[test]
fn a_value_that_contradicts_its_data_is_refused() {
    let whole = Raw(hive_of(&rich()));
    let a = whole.named("a");
    let value = |name: &str| {
        let values = whole.values(a);
        *values
            .iter()
            .find(|&&value| whole.value_name(value) == name)
            .unwrap()
    };
    let [long, number, old, text] = ["long", "number", "old", "text"].map(value);
    let big = whole.u32(long, 8);
    let refused = refusals(&whole);
    refused("no vk record", &|raw| raw.put(text, 0, b"vx"));
    refused("a value list is not in its cell", &|raw| {
        raw.word(a, 36, 999);
    });
    refused("two values have one name", &|raw| {
        raw.put(long, 20, b"TEXT");
    });
    refused("a value's name is longer", &|raw| raw.word(a, 60, 2));
    refused("a value is longer than the maximum of its key", &|raw| {
        raw.word(a, 64, 2);
    });
    refused("more than four inline bytes", &|raw| {
        raw.word(number, 4, 0x8000_0005);
    });
    refused("data without a length", &|raw| raw.word(text, 4, 0));
    refused("data is not in its cell", &|raw| raw.word(text, 4, 16_000));
    refused("a deleted value has data", &|raw| raw.word(old, 4, 4));
    refused("no db record", &|raw| raw.put(big, 0, b"dx"));
    refused("long data has the wrong number", &|raw| {
        raw.put(big, 2, &[2, 0]);
    });
    refused("no cell in use", &|raw| {
        let list = raw.u32(big, 4);
        raw.word(list, 4, 0x24);
    });
    refused("a cell has two owners", &|raw| {
        let list = raw.u32(big, 4);
        let first = raw.u32(list, 0);
        raw.word(list, 4, first);
    });
}

#[test]
fn descriptors_that_are_no_ring_or_no_descriptors_are_refused() {
    let whole = Raw(hive_of(&rich()));
    let root = whole.header(36);
    let first = whole.u32(root, 44);
    let second = whole.u32(first, 4);
    assert_ne!(first, second, "two descriptors at least");
    let refused = refusals(&whole);
    refused("no sk record", &|raw| raw.put(second, 0, b"sx"));
    refused("a descriptor does not point back", &|raw| {
        raw.word(second, 8, second);
    });
    refused("a descriptor counts fewer keys", &|raw| {
        raw.word(second, 12, 1);
    });
    refused("a descriptor is not in its cell", &|raw| {
        raw.word(second, 16, 0x4000);
    });
    refused("invalid descriptor", &|raw| raw.put(second, 20, &[2]));
    refused("invalid descriptor", &|raw| raw.word(second, 24, 0x4000));
    refused("a key's descriptor is not in the ring", &|raw| {
        raw.word(first, 4, first);
        raw.word(first, 8, first);
    });
}

#[test]
fn what_is_left_behind_is_counted() {
    let whole = Raw(hive_of(&rich()));
    let a = whole.named("a");
    let mut raw = whole.clone();
    // One value fewer in the list than counted.
    raw.word(a, 36, whole.u32(a, 36) - 1);
    let first = raw.u32(raw.header(36), 44);
    let keys = raw.u32(first, 12);
    raw.word(first, 12, keys + 2);
    raw.word(a, 24, 1);
    raw.0.extend([0; 512]);
    let sound = check(&raw.0).unwrap();
    assert!(sound.lost_cells > 0 && !sound.is_fresh());
    assert_eq!(
        (
            sound.volatile_references,
            sound.volatile_subkeys,
            sound.rest
        ),
        (2, 1, 512)
    );
}
