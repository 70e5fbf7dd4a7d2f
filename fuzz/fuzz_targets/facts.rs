//! Facts about a base, from a repository where anybody may push.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_inspect::base::BaseFacts;
use wincimg_windows::path::ImagePath;

fuzz_target!(|bytes: &[u8]| {
    let Ok(facts) = BaseFacts::read(bytes.to_vec()) else {
        return;
    };
    drop(facts.folder(&ImagePath::drive()));
});
