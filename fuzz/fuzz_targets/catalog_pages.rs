//! Pages of the catalog, its dialog, and the list of releases.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|text: &str| wincimg_catalog::fuzz::pages(text));
