//! The records of our hives compared with those of a hive written by Windows, by cell type. Reads
//! raw bytes, independent of the reader.

use std::collections::BTreeSet;

use wincimg_registry::{DataType, RegistryData};
use wincimg_testkit::test_bases::{create, delete_key, delete_value, set};

use super::hive_of;
use super::sample::sample;

const NULL_OFFSET: u32 = u32::MAX;

/// Bytes of a hive; offsets count from the end of the base block.
#[derive(Clone)]
pub(super) struct Raw(pub(super) Vec<u8>);

impl Raw {
    pub(super) fn header(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    pub(super) fn u32(&self, cell: u32, at: usize) -> u32 {
        self.header(4096 + cell as usize + 4 + at)
    }

    pub(super) fn u16(&self, cell: u32, at: usize) -> usize {
        usize::from(self.bytes(cell, at, 2)[0]) | usize::from(self.bytes(cell, at, 2)[1]) << 8
    }

    fn bytes(&self, cell: u32, at: usize, length: usize) -> &[u8] {
        let start = 4096 + cell as usize + 4 + at;
        &self.0[start..start + length]
    }

    /// Header of each bin after its two sizes, and offset and signed size of each cell.
    pub(super) fn cells(&self) -> (BTreeSet<&[u8]>, Vec<(u32, i32)>) {
        let (mut headers, mut cells) = (BTreeSet::new(), Vec::new());
        let end = 4096 + self.header(0x28) as usize;
        let mut bin = 4096;
        while bin < end {
            assert_eq!(&self.0[bin..bin + 4], b"hbin");
            assert_eq!(self.header(bin + 4) as usize, bin - 4096);
            headers.insert(&self.0[bin + 12..bin + 32]);
            let next = bin + self.header(bin + 8) as usize;
            assert_eq!(next % 4096, 0);
            let mut cell = bin + 32;
            while cell < next {
                let size = self.header(cell).cast_signed();
                assert_eq!(size % 8, 0);
                cells.push((u32::try_from(cell - 4096).unwrap(), size));
                cell += size.unsigned_abs() as usize;
            }
            assert_eq!(cell, next, "cells fill their bin");
            bin = next;
        }
        (headers, cells)
    }

    fn name(&self, cell: u32, at: usize, length: usize, narrow: bool) -> String {
        let bytes = self.bytes(cell, at, length);
        if narrow {
            return bytes.iter().map(|&byte| char::from(byte)).collect();
        }
        let units = bytes
            .chunks(2)
            .map(|two| u16::from_le_bytes([two[0], two[1]]));
        char::decode_utf16(units).map(Result::unwrap).collect()
    }

    pub(super) fn key_name(&self, key: u32) -> String {
        self.name(key, 76, self.u16(key, 72), self.u16(key, 2) & 0x20 != 0)
    }

    pub(super) fn value_name(&self, value: u32) -> String {
        self.name(value, 20, self.u16(value, 2), self.u16(value, 16) & 1 != 0)
    }

    /// All keys from the root down.
    pub(super) fn keys(&self) -> Vec<u32> {
        let mut keys = vec![self.header(0x24)];
        let mut next = 0;
        while next < keys.len() {
            keys.extend(self.subkeys(keys[next]).into_iter().map(|(key, _)| key));
            next += 1;
        }
        keys
    }

    /// The subkeys of a key, each with its hash.
    pub(super) fn subkeys(&self, key: u32) -> Vec<(u32, u32)> {
        if self.u32(key, 20) == 0 {
            return Vec::new();
        }
        let list = self.u32(key, 28);
        if self.bytes(list, 0, 2) != b"ri" {
            return self.leaf(list);
        }
        (0..self.u16(list, 2))
            .flat_map(|index| self.leaf(self.u32(list, 4 + 4 * index)))
            .collect()
    }

    fn leaf(&self, list: u32) -> Vec<(u32, u32)> {
        assert_eq!(self.bytes(list, 0, 2), b"lh");
        (0..self.u16(list, 2))
            .map(|index| (self.u32(list, 4 + 8 * index), self.u32(list, 8 + 8 * index)))
            .collect()
    }

    pub(super) fn values(&self, key: u32) -> Vec<u32> {
        (0..self.u32(key, 36) as usize)
            .map(|index| self.u32(self.u32(key, 40), 4 * index))
            .collect()
    }
}

fn theirs() -> Raw {
    Raw(sample())
}

/// A hive with every kind of change in the sample.
fn ours() -> Raw {
    let services = r"HKLM\SYSTEM\CurrentControlSet\Services";
    let key = |name: &str| format!(r"{services}\{name}");
    Raw(hive_of(&[
        set(&key("cexecsvc"), "Seconds", RegistryData::dword(30)),
        set(&key("x"), "text", RegistryData::sz("a longer text")),
        set(&key("x"), "", RegistryData::new(DataType::SZ, [0, 0])),
        set(&key("x"), "none", RegistryData::binary([])),
        delete_value(&key("x"), "gone"),
        delete_key(&key("XBOXGIP")),
        create(&key("new")),
        set(&key(r"new\below"), "a", RegistryData::qword(1)),
    ]))
}

#[test]
fn the_base_block_has_the_fields_of_the_sample() {
    let theirs = theirs();
    let ours = ours();
    // Signature; version, type and format; root cell; clustering factor; flags.
    for at in [0, 20, 24, 28, 32, 36, 44, 144] {
        assert_eq!(ours.header(at), theirs.header(at), "at {at}");
    }
    // The time of the last write, which Windows no longer sets, and the identifiers of transactions.
    assert_eq!(ours.0[12..20], theirs.0[12..20]);
    assert_eq!(ours.0[112..144], theirs.0[112..144]);
    for raw in [&ours, &theirs] {
        assert_eq!(raw.header(4), raw.header(8), "both sequence numbers");
        let sum = (0..127).fold(0, |sum, word| sum ^ raw.header(4 * word));
        assert_eq!(raw.header(508), sum);
    }
    assert_eq!(ours.0.len(), 4096 + ours.header(0x28) as usize);
}

#[test]
fn bins_and_cells_are_laid_out_as_in_the_sample() {
    let theirs = theirs();
    let ours = ours();
    let (our_headers, our_cells) = ours.cells();
    assert!(our_headers.is_subset(&theirs.cells().0));
    for (cell, size) in our_cells {
        let remainder = cell as usize + size.unsigned_abs() as usize;
        assert!(
            size < 0 || remainder.is_multiple_of(4096),
            "free space ends a bin"
        );
    }
}

#[test]
fn key_nodes_have_the_marks_of_the_sample() {
    let theirs = theirs();
    let ours = ours();
    // Flags; access bits, layer byte and spare.
    let marks = |raw: &Raw| -> BTreeSet<(usize, Vec<u8>)> {
        let keys = raw.keys();
        keys.iter()
            .map(|&key| (raw.u16(key, 2), raw.bytes(key, 12, 4).to_vec()))
            .collect()
    };
    assert!(marks(&ours).is_subset(&marks(&theirs)));
    for raw in [&ours, &theirs] {
        for key in raw.keys() {
            let empty_lists = [(36, 40), (20, 28)]
                .into_iter()
                .filter(|&(count, _)| raw.u32(key, count) == 0);
            for (_, list) in empty_lists {
                assert_eq!(raw.u32(key, list), NULL_OFFSET);
            }
            // Class name, longest class name below, cached index, length of the class name.
            let class = (
                raw.u32(key, 48),
                raw.u32(key, 56),
                raw.u32(key, 68),
                raw.u16(key, 74),
            );
            assert_eq!(class, (NULL_OFFSET, 0, 0, 0));
            for (below, _) in raw.subkeys(key) {
                assert_eq!(raw.u32(below, 16), key, "a key knows its parent");
            }
        }
    }
}

#[test]
fn key_nodes_say_how_long_the_longest_things_in_them_are() {
    let theirs = theirs();
    let ours = ours();
    let wide = |name: String| u32::try_from(2 * name.encode_utf16().count()).unwrap();
    let longest = |raw: &Raw, key: u32| {
        let subkeys = raw
            .subkeys(key)
            .into_iter()
            .map(|(below, _)| wide(raw.key_name(below)))
            .max();
        let values = raw.values(key);
        let names = values
            .iter()
            .map(|&value| wide(raw.value_name(value)))
            .max();
        let sizes = values
            .iter()
            .map(|&value| raw.u32(value, 4) & 0x7FFF_FFFF)
            .max();
        [subkeys, names, sizes].map(Option::unwrap_or_default)
    };
    let printed = |raw: &Raw, key: u32| [52, 60, 64].map(|at| raw.u32(key, at));
    for key in ours.keys() {
        assert_eq!(printed(&ours, key), longest(&ours, key));
    }
    // Earlier content may have been longer.
    for key in theirs.keys() {
        for (printed, is) in printed(&theirs, key).into_iter().zip(longest(&theirs, key)) {
            assert!(printed >= is);
        }
    }
}

#[test]
fn values_are_stored_as_in_the_sample() {
    let theirs = theirs();
    let ours = ours();
    let all = |raw: &Raw| -> Vec<u32> {
        raw.keys()
            .into_iter()
            .flat_map(|key| raw.values(key))
            .collect()
    };
    // Zero name length, size, offset, type, flags: of deleted, unnamed and empty values.
    let special = |raw: &Raw| -> BTreeSet<(bool, u32, u32, u32, usize)> {
        let of = |&value: &u32| {
            let [size, place, kind] = [4, 8, 12].map(|at| raw.u32(value, at));
            let plain = size & 0x7FFF_FFFF != 0 && raw.u16(value, 2) > 0;
            (!plain).then(|| {
                (
                    raw.u16(value, 2) == 0,
                    size,
                    place,
                    kind,
                    raw.u16(value, 16),
                )
            })
        };
        all(raw).iter().filter_map(of).collect()
    };
    let deleted = (false, 0, NULL_OFFSET, 0, 3);
    let (our_special, their_special) = (special(&ours), special(&theirs));
    assert!(our_special.contains(&deleted) && our_special.len() == 3);
    assert!(our_special.is_subset(&their_special), "{our_special:x?}");
    for raw in [&ours, &theirs] {
        for value in all(raw) {
            let size = raw.u32(value, 4);
            let in_place = size & 0x8000_0000 != 0;
            assert_eq!(
                in_place,
                size & 0x7FFF_FFFF <= 4 && raw.u16(value, 16) & 2 == 0
            );
        }
    }
}
