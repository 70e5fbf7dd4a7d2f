//! .reg files: what is read is written and read as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_registry::regfile::{from_edits, import, to_utf16};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = import(bytes)
        && let Some(text) = from_edits(&read.edits)
    {
        assert!(import(&to_utf16(&text)).is_ok_and(|again| again.edits == read.edits));
    }
});
