//! Damaged hives and registration files: no panic, and no endless work.

use std::time::{Duration, Instant};

use wincimg_registry::hive::{Hive, edits, merge};
use wincimg_registry::{KeyMode, RegistryData, RegistryEdit, Root, regfile};
use wincimg_testkit::programs::place_of_sample;
use wincimg_testkit::test_bases::{create, delete_key, delete_value, set};

use super::hive_of;
use super::sample::DELTA;

/// Deterministic pseudorandom numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn word(&mut self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.next().to_le_bytes();
        [a, b, c, d]
    }
}

/// Changes some bytes, mostly in numbers and at the start of records.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0) + 1;
    for _ in 0..=random.below(6) {
        let at = match random.below(8) {
            0 => random.below(bytes.len() - 4),
            _ => 4096 + random.below(used - 4096),
        };
        let word = (at & !3).min(bytes.len() - 4);
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.word()[0],
            2 => bytes[word..word + 4].copy_from_slice(&random.word()),
            3 => {
                let special = [
                    0_u32, 1, 0x20, 0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFFF, 4096, 0xFFFF,
                ];
                let number = special[random.below(special.len())];
                bytes[word..word + 4].copy_from_slice(&number.to_le_bytes());
            }
            4 => {
                let cell = random.below(bytes.len()) & !7;
                let cell = u32::try_from(cell).unwrap();
                bytes[word..word + 4].copy_from_slice(&cell.to_le_bytes());
            }
            5 => {
                let from = random.below(bytes.len() - 4) & !3;
                bytes.copy_within(from..from + 4, word);
            }
            6 => {
                let number = u32::from_le_bytes(bytes[word..word + 4].try_into().unwrap());
                let near = number
                    .wrapping_add(u32::try_from(random.below(33)).unwrap())
                    .wrapping_sub(16);
                bytes[word..word + 4].copy_from_slice(&near.to_le_bytes());
            }
            _ => {
                let signature =
                    [b"nk", b"vk", b"sk", b"lh", b"lf", b"li", b"ri", b"db"][random.below(8)];
                bytes[word..word + 2].copy_from_slice(signature);
            }
        }
    }
    if random.below(64) == 0 {
        bytes.truncate(random.below(bytes.len()).max(8));
    }
    // Usually with a correct checksum; otherwise the reader stops there.
    if random.below(64) > 0 && bytes.len() >= 512 {
        let sum = bytes[..508].chunks(4).fold(0, |sum, word| {
            sum ^ u32::from_le_bytes(word.try_into().unwrap())
        });
        let sum = match sum {
            0 => 1,
            u32::MAX => 0xFFFF_FFFE,
            sum => sum,
        };
        bytes[508..512].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Runs all operations on a hive; returns true if it was readable.
fn use_all(bytes: &[u8]) -> bool {
    let Ok(hive) = Hive::read(bytes) else {
        return false;
    };
    let _ = edits(Root::System, &hive.root);
    let text = regfile::export(Root::System.long_name(), &hive.root);
    let _ = regfile::import(text.as_bytes());
    let view = merge(Some(hive.root.clone()), [hive.root]);
    view.is_none_or(|view| view.subkeys.len() <= bytes.len())
}

/// Small hives with every kind of record.
fn hives() -> Vec<Vec<u8>> {
    let key = |name: &str| format!(r"HKLM\SOFTWARE\{name}");
    let small = vec![
        set(&key("a"), "text", RegistryData::sz("some text")),
        set(&key(r"a\ключ"), "число", RegistryData::dword(7)),
        delete_value(&key("a"), "gone"),
        delete_key(&key("b")),
        create(&key("c")),
    ];
    let big = vec![set(
        &key("big"),
        "value",
        RegistryData::binary(vec![7; 40_000]),
    )];
    let many = (0..520)
        .map(|number| RegistryEdit::CreateKey {
            key: key(&number.to_string()).parse().unwrap(),
            mode: KeyMode::Merge,
        })
        .collect();
    [small, big, many]
        .iter()
        .map(|edits: &Vec<_>| hive_of(edits))
        .collect()
}

/// Reads damaged hives; returns the number of readable ones, and the longest time.
fn read_damaged(cases: u64, seed: u64) -> (u64, Duration) {
    let mut random = Random(seed);
    let mut originals = hives();
    originals.extend(std::fs::read(place_of_sample(DELTA)));
    let mut bytes = Vec::new();
    let (mut readable, mut longest) = (0, Duration::ZERO);
    for case in 0..cases {
        // The small one covers most in the least time.
        let which = if case % 64 == 0 {
            random.below(originals.len())
        } else {
            0
        };
        bytes.clone_from(&originals[which]);
        damage(&mut bytes, &mut random);
        let (whole, mut time) = timed(&bytes);
        // The machine may have been busy.
        for _ in 0..3 {
            if time > Duration::from_millis(20) {
                time = time.min(timed(&bytes).1);
            }
        }
        readable += u64::from(whole);
        longest = longest.max(time);
    }
    (readable, longest)
}

fn timed(bytes: &[u8]) -> (bool, Duration) {
    let start = Instant::now();
    (use_all(bytes), start.elapsed())
}

#[test]
fn damaged_hives_never_cause_a_panic() {
    let (readable, _) = read_damaged(1_500, 1);
    // Some changes are harmless, most are not; otherwise this would test nothing.
    assert!((75..1_125).contains(&readable), "{readable}");
}

// Takes minutes; run it in release mode after a change to the reader.
#[test(ignore)]
fn ten_million_damaged_hives_never_cause_a_panic() {
    let start = Instant::now();
    let (readable, longest) = read_damaged(10_000_000, 2);
    eprintln!(
        "{readable} readable, longest {longest:?}, in all {:?}",
        start.elapsed()
    );
    assert!(longest < Duration::from_millis(200), "{longest:?}");
}

#[test]
fn damaged_registration_files_never_cause_a_panic() {
    let mut random = Random(3);
    let texts: Vec<String> = hives()
        .iter()
        .map(|bytes| regfile::export(Root::Software.long_name(), &Hive::read(bytes).unwrap().root))
        .collect();
    let pieces = [
        "\"", "\\", "[", "]", "-", "hex(", "hex:", "dword:", "=", "@", ";", "\r", "\n", "ж", "\0",
        ",",
    ];
    let mut readable = 0;
    for case in 0..5_000 {
        let mut bytes = if case % 2 == 0 {
            texts[0].clone().into_bytes()
        } else {
            regfile::to_utf16(&texts[0])
        };
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.word()[0],
                1 => bytes.truncate(at.max(1)),
                _ => {
                    let piece = pieces[random.below(pieces.len())].as_bytes();
                    bytes.splice(at..at, piece.iter().copied());
                }
            }
        }
        readable += u32::from(regfile::import(&bytes).is_ok());
    }
    assert!((50..4_750).contains(&readable), "{readable}");
}
