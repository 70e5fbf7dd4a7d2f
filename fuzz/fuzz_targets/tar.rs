//! Tar streams of layers, with PAX headers and long names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_layer::{LayerReader, Limits};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        file: 1 << 20,
        stream: 16 << 20,
    };
    let Ok(mut reader) = LayerReader::new(bytes, limits) else {
        return;
    };
    while let Ok(Some(_)) = reader.next_entry() {
        reader.pax().for_each(drop);
        drop(reader.content());
    }
});
