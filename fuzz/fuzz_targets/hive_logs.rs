//! A hive that was not closed, and its two logs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_registry::hive::recover;

fuzz_target!(|parts: (&[u8], &[u8], &[u8])| {
    let (primary, one, other) = parts;
    if let Ok(recovered) = recover(primary, [one, other]) {
        assert!(recovered.bytes.len() <= primary.len() + one.len() + other.len());
        drop(recovered.read());
    }
});
