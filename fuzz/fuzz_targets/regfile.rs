//! .reg files: what is read is written and read as the same, except that a key is named again before
//! each of its values.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_registry::regfile::{from_edits, import, to_utf16};
use wincimg_registry::{KeyMode, RegistryEdit};

fn values(edits: &[RegistryEdit]) -> Vec<&RegistryEdit> {
    let is_named = |edit: &&RegistryEdit| {
        let RegistryEdit::CreateKey { mode, .. } = edit else {
            return true;
        };
        *mode != KeyMode::Merge
    };
    edits.iter().filter(is_named).collect()
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = import(bytes)
        && let Some(text) = from_edits(&read.edits)
    {
        let again = import(&to_utf16(&text)).unwrap();
        assert_eq!(values(&again.edits), values(&read.edits));
    }
});
