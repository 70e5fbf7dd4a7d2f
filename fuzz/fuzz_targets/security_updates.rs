//! Microsoft's documents of security updates, in JSON and XML.

#![no_main]

use libfuzzer_sys::fuzz_target;
fuzz_target!(|bytes: &[u8]| wincimg_catalog::fuzz::security_updates(bytes));
