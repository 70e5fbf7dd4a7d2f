//! Registry hives: reading, walking and exporting.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_registry::hive::Hive;
use wincimg_registry::regfile::export;
use wincimg_registry::security::SecurityDescriptor;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(hive) = Hive::read(bytes) {
        let text = export(r"HKEY_LOCAL_MACHINE\X", &hive.root);
        assert!(text.len() < 64 * bytes.len() + 4096);
        for key in hive.root.walk() {
            drop(SecurityDescriptor::from_bytes(&key.security));
        }
    }
});
