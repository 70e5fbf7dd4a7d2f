//! A hive that was not closed, and its two logs: the first four bytes have the sizes of the hive and
//! of the first log, in sectors.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_registry::hive::recover;

const SECTOR: usize = 512;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[hive_low, hive_high, log_low, log_high], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let part = |sectors, rest: &'_ [u8]| (usize::from(sectors) * SECTOR).min(rest.len());
    let (primary, rest) = rest.split_at(part(u16::from_le_bytes([hive_low, hive_high]), rest));
    let (one, other) = rest.split_at(part(u16::from_le_bytes([log_low, log_high]), rest));
    if let Ok(recovered) = recover(primary, [one, other]) {
        assert!(recovered.bytes.len() <= bytes.len());
        drop(recovered.read());
    }
});
