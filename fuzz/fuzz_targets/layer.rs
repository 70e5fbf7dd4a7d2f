//! A layer of a base: files, hives and descriptors, made into facts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_inspect::base::{BaseFacts, Extent, LayerPosition, assemble, collect_layer};
use wincimg_oci::document::sha256;

fuzz_target!(|bytes: &[u8]| {
    let all = Extent::Everything;
    let Ok(layer) = collect_layer(bytes, LayerPosition::Bottom, &all) else {
        return;
    };
    if let Ok(facts) = assemble(&sha256(bytes), None, &all, vec![layer]) {
        BaseFacts::read(facts).unwrap();
    }
});
