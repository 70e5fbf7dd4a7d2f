//! Scripts of PowerShell that are read and not run.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|text: &str| drop(wincimg_scripts::script::read(text)));
