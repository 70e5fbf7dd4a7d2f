use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::super::log::ENTRY_HEADER;
use super::*;
use crate::hive::log_writer::{entry, new_log, old_log, seal_entry, set_sequences};
use crate::hive::{FileTime, Key, unfitted_hives};
use crate::{DataType, RegistryData, RegistryEdit};

const NONE: &[u8] = &[];

/// The hive with some values: the first fills more pages the larger it is.
fn hive_of(values: &[(u8, u16)], time: u64) -> Vec<u8> {
    let edits: Vec<RegistryEdit> = values
        .iter()
        .map(|&(key, size)| RegistryEdit::SetValue {
            key: format!(r"HKLM\SOFTWARE\Contoso\key {}", key % 16)
                .parse()
                .unwrap(),
            name: format!("value {}", key / 16),
            data: RegistryData::new(DataType::BINARY, vec![size.to_le_bytes()[0]; size.into()]),
        })
        .collect();
    let mut hives = unfitted_hives(&edits, FileTime(time)).unwrap();
    let mut file = hives.remove(0).bytes;
    for at in [base::TIMESTAMP, PAGE + BIN_TIME] {
        file[at..at + 8].copy_from_slice(&time.to_le_bytes());
    }
    seal(&mut file);
    file
}

/// States of a hive, each with one value more than the one before.
fn states_of(values: &[(u8, u16)]) -> Vec<Vec<u8>> {
    (1..=values.len())
        .map(|count| hive_of(&values[..count], 1))
        .collect()
}

/// The states of a hive that grows, used by most tests.
static STATES: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| states_of(&[(1, 9), (2, 3000), (1, 11), (3, 20_000), (4, 5), (17, 4100)]));

/// A hive while it is written: it has a sequence number ahead, and some pages of a later state.
fn being_written(state: &[u8], later: &[u8], pages: &[usize], sequence: u32) -> Vec<u8> {
    let mut file = state.to_vec();
    for &page in pages {
        let at = PAGE * (1 + page % (later.len() / PAGE - 1));
        file.resize(file.len().max(at + PAGE), 0);
        file[at..at + PAGE].copy_from_slice(&later[at..at + PAGE]);
    }
    set_sequences(&mut file, sequence.wrapping_add(1), sequence);
    file
}

fn left_open(state: &[u8], sequence: u32) -> Vec<u8> {
    being_written(state, state, &[], sequence)
}

fn root(file: &[u8]) -> Key<'_> {
    Hive::read(file).unwrap().root
}

#[track_caller]
fn assert_is(recovered: &RecoveredHive<'_>, state: HiveState, content: &[u8]) {
    assert_eq!(recovered.state, state);
    assert!(recovered.read().unwrap().root == root(content));
    assert!(!needs_logs(&recovered.bytes));
}

/// The number of the state that a hive has become, which must be one of them.
#[track_caller]
fn number_of(recovered: &RecoveredHive<'_>, states: &[Vec<u8>]) -> usize {
    let root = recovered.read().unwrap().root;
    let found = states.iter().position(|state| root == self::root(state));
    found.expect("a state that the hive has had")
}

#[test]
fn a_closed_hive_is_as_it_is_whatever_its_logs_say() {
    let logs = new_log(&STATES[..], 7);
    for sequence in [1, 7, 8] {
        let mut file = STATES[0].clone();
        set_sequences(&mut file, sequence, sequence);
        let recovered = recover(&file, [&logs, NONE]).unwrap();
        assert_is(&recovered, HiveState::Clean, &STATES[0]);
        assert!(matches!(recovered.bytes, Cow::Borrowed(_)));
    }
    for other in [&b"regf"[..], b"", &[0; 8192], &STATES[0][..4000]] {
        let unread = recover(other, [NONE, NONE]).unwrap();
        assert_eq!(unread.state, HiveState::Clean);
        assert_eq!(*unread.bytes, *other);
    }
}

#[test]
fn entries_of_both_logs_are_applied_in_the_order_of_their_numbers() {
    // The number after the largest is 0.
    for sequence in [5, u32::MAX - 2] {
        let open = left_open(&STATES[0], sequence);
        let first = new_log(&STATES[..3], sequence);
        let second = new_log(&STATES[2..], sequence.wrapping_add(2));
        for logs in [[&*first, &second], [&*second, &first]] {
            let recovered = recover(&open, logs).unwrap();
            assert_is(&recovered, HiveState::Replayed, &STATES[5]);
        }
        // A log that was applied before is not a loss.
        let open = left_open(&STATES[2], sequence.wrapping_add(2));
        let recovered = recover(&open, [&first, &second]).unwrap();
        assert_is(&recovered, HiveState::Replayed, &STATES[5]);
        // Nor is a file that was never used.
        let recovered = recover(&open, [&[0; 8192], &second]).unwrap();
        assert_is(&recovered, HiveState::Replayed, &STATES[5]);
    }
}

#[test]
fn entries_that_are_missing_between_two_logs_are_seen() {
    let open = left_open(&STATES[0], 5);
    let logs = [&*new_log(&STATES[..2], 5), &new_log(&STATES[2..], 7)];
    let recovered = recover(&open, logs).unwrap();
    assert_is(&recovered, HiveState::ReplayedInPart, &STATES[1]);
}

#[test]
fn a_second_log_goes_on_where_the_first_was_torn() {
    let open = left_open(&STATES[0], 5);
    let mut first = new_log(&STATES[..3], 5);
    // The entry with number 7 was not written to its end, and once more to the other file.
    let remnant = first.len() - entry(&STATES[2], &STATES[0], 4).len();
    first.truncate(remnant);
    first.extend_from_slice(&entry(&STATES[2], &STATES[3], 7)[..1024]);
    let recovered = recover(&open, [&first, NONE]).unwrap();
    assert_is(&recovered, HiveState::ReplayedInPart, &STATES[2]);
    let second = new_log(&STATES[2..], 7);
    let recovered = recover(&open, [&first, &second]).unwrap();
    assert_is(&recovered, HiveState::Replayed, &STATES[5]);
}

#[test]
fn a_torn_base_block_comes_from_the_newest_log() {
    let first = new_log(&STATES[..3], 5);
    let second = new_log(&STATES[2..], 7);
    let mut torn = left_open(&STATES[2], 5);
    torn[base::BINS_SIZE] ^= 0x55;
    for logs in [[&*first, &second], [&*second, &first]] {
        let recovered = recover(&torn, logs).unwrap();
        assert_is(&recovered, HiveState::Replayed, &STATES[5]);
    }
    let old = old_log(&STATES[2], &STATES[3], 6);
    let recovered = recover(&torn, [&old, NONE]).unwrap();
    assert_is(&recovered, HiveState::Replayed, &STATES[3]);
    let refused = recover(&torn, [NONE, NONE]).unwrap_err();
    assert!(refused.to_string().contains("torn base block"), "{refused}");
}

#[test]
fn a_hive_without_usable_logs_is_reported() {
    let open = left_open(&STATES[1], 9);
    let mut damaged = new_log(&STATES[1..], 9);
    damaged[100] ^= 1;
    let stale = new_log(&STATES[..2], 8);
    let mut other = STATES[2].clone();
    set_sequences(&mut other, 9, 9);
    for logs in [
        [NONE, NONE],
        [&damaged, NONE],
        [&stale, NONE],
        [b"regf", b"DIRT"],
        [&other, &[]],
    ] {
        let recovered = recover(&open, logs).unwrap();
        assert_is(&recovered, HiveState::Unreplayed, &STATES[1]);
    }
    // With a sound log beside a damaged one, something may be missing.
    let sound = new_log(&STATES[1..4], 9);
    let recovered = recover(&open, [&damaged, &sound]).unwrap();
    assert_is(&recovered, HiveState::ReplayedInPart, &STATES[3]);
}

#[test]
fn an_old_log_must_be_of_the_write_that_was_under_way() {
    let states =
        [1, 2, 3_u8].map(|time| hive_of(&[(1, 9), (2, 100 * u16::from(time))], time.into()));
    let written = being_written(&states[1], &states[1], &[], 4);
    let log = |number: usize, sequence| old_log(&states[number - 1], &states[number], sequence);
    // The one of the same time, and not a later one, which may not be whole.
    for logs in [[&*log(1, 5), &log(2, 6)], [&*log(2, 6), &log(1, 5)]] {
        let recovered = recover(&written, logs).unwrap();
        assert_is(&recovered, HiveState::Replayed, &states[1]);
    }
    // A later one if there is no other.
    let recovered = recover(&written, [&log(2, 6), NONE]).unwrap();
    assert_is(&recovered, HiveState::Replayed, &states[2]);
    // None that is older: by its time, or where Windows no longer keeps that, by its number.
    let later = being_written(&states[2], &states[2], &[], 4);
    let recovered = recover(&later, [&log(1, 5), NONE]).unwrap();
    assert_is(&recovered, HiveState::Unreplayed, &states[2]);
    let recovered = recover(&written, [&log(1, 3), NONE]).unwrap();
    assert_is(&recovered, HiveState::Unreplayed, &states[1]);
}

#[test]
fn pages_that_make_no_hive_are_not_believed() {
    // As if the old log had been written in part: its second page is of another time.
    let (before, after) = (&STATES[2], &STATES[3]);
    let mut log = old_log(before, after, 6);
    let end = log.len();
    log[end - PAGE..].fill(0xA5);
    let open = left_open(before, 5);
    let recovered = recover(&open, [&log, NONE]).unwrap();
    assert_is(&recovered, HiveState::Unreplayed, before);
    // The other log is taken instead.
    let recovered = recover(&open, [&log, &old_log(before, after, 6)]).unwrap();
    assert_is(&recovered, HiveState::ReplayedInPart, after);
}

#[test]
fn an_entry_cannot_make_a_hive_larger_than_its_files() {
    let open = left_open(&STATES[0], 5);
    let mut log = new_log(&STATES[..2], 5);
    let first = entry(&STATES[0], &STATES[1], 5).len();
    log.truncate(SECTOR + first);
    let mut large = entry(&STATES[1], &STATES[2], 6);
    large[16..20].copy_from_slice(&0x7FFF_F000_u32.to_le_bytes());
    seal_entry(&mut large);
    log.extend(large);
    let recovered = recover(&open, [&log, NONE]).unwrap();
    assert_is(&recovered, HiveState::ReplayedInPart, &STATES[1]);
    assert!(recovered.bytes.len() < 1 << 20);
    // Nor can pages lie outside of the bins.
    let mut outside = entry(&STATES[1], &STATES[2], 6);
    outside[ENTRY_HEADER..][..4].copy_from_slice(&0xFFFF_F000_u32.to_le_bytes());
    seal_entry(&mut outside);
    log.truncate(SECTOR + first);
    log.extend(outside);
    let recovered = recover(&open, [&log, NONE]).unwrap();
    assert_is(&recovered, HiveState::ReplayedInPart, &STATES[1]);
}

#[test]
fn a_new_log_that_ends_anywhere_gives_a_state_that_was_there() {
    let open = left_open(&STATES[0], 5);
    let log = new_log(&STATES[..], 5);
    let mut ends = vec![SECTOR];
    for (pair, sequence) in STATES.windows(2).zip(5..) {
        ends.push(ends[ends.len() - 1] + entry(&pair[0], &pair[1], sequence).len());
    }
    for end in (0..log.len()).step_by(61).chain(ends.iter().copied()) {
        let recovered = recover(&open, [&log[..end], NONE]).unwrap();
        let expected = ends.iter().filter(|&&whole| whole <= end).count();
        let number = number_of(&recovered, &STATES);
        assert_eq!(number, expected.saturating_sub(1), "at {end}");
        match recovered.state {
            HiveState::Replayed => assert!(number == 5 || ends.contains(&end), "at {end}"),
            HiveState::ReplayedInPart => assert!(number > 0 && !ends.contains(&end), "at {end}"),
            HiveState::Unreplayed => assert_eq!(number, 0, "at {end}"),
            HiveState::Clean => panic!("it was not closed"),
        }
    }
}

#[test]
fn an_old_log_that_ends_anywhere_is_whole_or_nothing() {
    let open = left_open(&STATES[2], 5);
    let log = old_log(&STATES[2], &STATES[3], 6);
    for end in (0..log.len()).step_by(61) {
        let recovered = recover(&open, [&log[..end], NONE]).unwrap();
        assert_is(&recovered, HiveState::Unreplayed, &STATES[2]);
    }
    let recovered = recover(&open, [&log, NONE]).unwrap();
    assert_is(&recovered, HiveState::Replayed, &STATES[3]);
}

fn values() -> impl Strategy<Value = Vec<(u8, u16)>> {
    let size = prop_oneof![4 => 0..200_u16, 2 => 2000..9000_u16, 1 => 16_300..40_000_u16];
    vec((any::<u8>(), size), 2..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_changed_exists_after_a_crash(
        values in values(),
        sequence in prop_oneof![any::<u32>(), u32::MAX - 4..=u32::MAX],
        split in any::<Index>(),
        pages in vec(any::<usize>(), 0..12),
        is_swapped in any::<bool>(),
    ) {
        let states = states_of(&values);
        let last = states.len() - 1;
        let open = being_written(&states[0], &states[last], &pages, sequence);
        let split = split.index(last);
        let second = sequence.wrapping_add(u32::try_from(split).unwrap());
        let mut logs = [new_log(&states[..=split], sequence), new_log(&states[split..], second)];
        if split == 0 {
            logs[0].clear();
        }
        if is_swapped {
            logs.reverse();
        }
        let recovered = recover(&open, [&logs[0], &logs[1]]).unwrap();
        assert_is(&recovered, HiveState::Replayed, &states[last]);
    }

    #[test]
    fn what_was_being_written_exists_after_a_crash(
        values in values(),
        pages in vec(any::<usize>(), 0..12),
    ) {
        let states = states_of(&values);
        let (before, after) = (&states[0], &states[states.len() - 1]);
        let open = being_written(before, after, &pages, 3);
        let recovered = recover(&open, [NONE, &old_log(before, after, 4)]).unwrap();
        assert_is(&recovered, HiveState::Replayed, after);
    }

    #[test]
    fn a_damaged_log_is_a_state_that_was_there_or_an_error(
        at in any::<Index>(),
        mask in 1..=255_u8,
        end in any::<Index>(),
        cut in any::<bool>(),
    ) {
        let open = left_open(&STATES[0], 5);
        let mut log = new_log(&STATES[..], 5);
        let at = at.index(log.len());
        log[at] ^= mask;
        if cut {
            log.truncate(end.index(log.len()));
        }
        let recovered = recover(&open, [&log, NONE]).unwrap();
        let number = number_of(&recovered, &STATES);
        let is_known = number == 0 && recovered.state == HiveState::Unreplayed
            || recovered.state == HiveState::ReplayedInPart
            || recovered.state == HiveState::Replayed;
        prop_assert!(is_known, "{number} {:?}", recovered.state);
    }

    #[test]
    fn no_bytes_panic(
        primary in damaged(left_open(&STATES[0], 5)),
        first in damaged(new_log(&STATES[..4], 5)),
        second in prop_oneof![
            damaged(new_log(&STATES[3..], 8)),
            damaged(old_log(&STATES[0], &STATES[3], 6)),
        ],
    ) {
        let most = primary.len() + first.len() + second.len();
        if let Ok(recovered) = recover(&primary, [&first, &second]) {
            prop_assert!(recovered.bytes.len() <= most);
            let _ = recovered.read();
        }
    }
}

/// A file with some numbers changed, some of them then sealed again, and perhaps cut.
fn damaged(file: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        any::<u32>(),
        Just(0),
        Just(4096),
        Just(u32::MAX),
        Just(0x7FFF_F000)
    ];
    // Most of them where base blocks and headers are.
    let place = prop_oneof![
        any::<Index>().prop_map(|it| it.index(1 << 20)),
        0..600_usize,
        4096..5000_usize
    ];
    let changes = vec((place, number), 0..4);
    let cut = prop_oneof![3 => Just(None), 1 => any::<Index>().prop_map(Some)];
    (changes, any::<bool>(), cut).prop_map(move |(changes, is_sealed, cut)| {
        let mut file = file.clone();
        for (at, number) in changes {
            let at = (at % (file.len() - 4)) & !3;
            put(&mut file, at, number);
        }
        if is_sealed {
            seal(&mut file);
            if file[SECTOR..].starts_with(b"HvLE") {
                let size = file[SECTOR + 4..].first_chunk().copied();
                let size = size.map_or(0, u32::from_le_bytes) as usize;
                if size >= SECTOR
                    && let Some(entry) = file[SECTOR..].get_mut(..size)
                {
                    seal_entry(entry);
                }
            }
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        file
    })
}
