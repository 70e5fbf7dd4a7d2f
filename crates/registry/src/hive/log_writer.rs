//! Hives that were not closed, and their logs, written as Windows writes them, for tests.

use super::format::{PAGE, base, put, seal};
use super::log::file_type::{NEW_LOG, OLD_LOGS};
use super::log::{ENTRY_HEADER, HASHED_HEADER, SECTOR};
use super::marvin::hash;

/// Sets the sequence numbers of a base block and corrects its checksum.
pub fn set_sequences(file: &mut [u8], primary: u32, secondary: u32) {
    put(file, base::PRIMARY_SEQUENCE, primary);
    put(file, base::SECONDARY_SEQUENCE, secondary);
    seal(file);
}

/// The start of a log: the hive's base block with a sequence number.
fn log_of(hive: &[u8], file_type: u32, sequence: u32) -> Vec<u8> {
    let mut log = hive[..SECTOR].to_vec();
    put(&mut log, base::FILE_TYPE, file_type);
    set_sequences(&mut log, sequence, sequence);
    log
}

/// The pages in which two states of a hive differ, as places in the bins.
fn changed_pages(before: &[u8], after: &[u8]) -> Vec<usize> {
    let pages = (PAGE..after.len()).step_by(PAGE);
    let changed = pages.filter(|&at| before.get(at..at + PAGE) != Some(&after[at..at + PAGE]));
    changed.map(|at| at - PAGE).collect()
}

/// A log in the format up to Windows 8, with what changes one state of a hive into another.
pub fn old_log(before: &[u8], after: &[u8], sequence: u32) -> Vec<u8> {
    let mut log = log_of(after, OLD_LOGS[0], sequence);
    let mut bitmap = vec![0; (after.len() - PAGE) / SECTOR / 8];
    let mut stored = Vec::new();
    for place in changed_pages(before, after) {
        bitmap[place / PAGE] = 0xFF;
        stored.extend_from_slice(&after[PAGE + place..][..PAGE]);
    }
    log.extend_from_slice(b"DIRT");
    log.extend(bitmap);
    log.resize(log.len().next_multiple_of(SECTOR), 0);
    log.extend(stored);
    log
}

/// A log in the format since Windows 8.1, with an entry for each step from one state of a hive to the
/// next. What remains of an earlier use comes after them.
pub fn new_log(states: &[impl AsRef<[u8]>], sequence: u32) -> Vec<u8> {
    let mut log = log_of(states[0].as_ref(), NEW_LOG, sequence);
    let mut number = sequence;
    for pair in states.windows(2) {
        log.extend(entry(pair[0].as_ref(), pair[1].as_ref(), number));
        number = number.wrapping_add(1);
    }
    let [first, last] = [&states[0], &states[states.len() - 1]].map(AsRef::as_ref);
    log.extend(entry(last, first, sequence.wrapping_sub(1)));
    log
}

/// An entry of a log with what changes one state of a hive into another.
pub fn entry(before: &[u8], after: &[u8], sequence: u32) -> Vec<u8> {
    let mut places = changed_pages(before, after);
    if places.is_empty() {
        // An entry has a page at least.
        places.push(0);
    }
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    let mut entry = b"HvLE".to_vec();
    entry.resize(ENTRY_HEADER, 0);
    for &place in &places {
        entry.extend(number(place));
        entry.extend(number(PAGE));
    }
    for &place in &places {
        entry.extend_from_slice(&after[PAGE + place..][..PAGE]);
    }
    entry.resize(entry.len().next_multiple_of(SECTOR), 0);
    for (at, value) in [
        (4, number(entry.len())),
        (12, sequence.to_le_bytes()),
        (16, number(after.len() - PAGE)),
        (20, number(places.len())),
    ] {
        entry[at..at + 4].copy_from_slice(&value);
    }
    seal_entry(&mut entry);
    entry
}

/// Corrects the hashes of an entry.
pub fn seal_entry(entry: &mut [u8]) {
    let content = hash(&entry[ENTRY_HEADER..]);
    entry[24..32].copy_from_slice(&content.to_le_bytes());
    let header = hash(&entry[..HASHED_HEADER]);
    entry[32..40].copy_from_slice(&header.to_le_bytes());
}
