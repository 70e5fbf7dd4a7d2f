//! Security descriptors: what is read is written and read as the same. The same bytes as SDDL.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = SecurityDescriptor::from_bytes(bytes) {
        let again = SecurityDescriptor::from_bytes(&read.to_bytes(DescriptorLayout::ListsFirst));
        assert_eq!(again.unwrap(), read);
    }
    drop(str::from_utf8(bytes).map(str::parse::<SecurityDescriptor>));
});
