//! Cabinets of Windows Installer packages, with every compression.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|bytes: &[u8]| wincimg_msi::fuzz::cabinet(bytes));
