//! Archives to unpack: zip, 7z, and tar with any compression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_common::files::SpoolWriter;
use wincimg_layer::archive::{ArchiveLocation, Archives, UnpackSelection, UnpackedContent};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = SpoolWriter::in_folder(&std::env::temp_dir()).unwrap();
    let part = parts.append(|out| out.write_all(bytes)).unwrap();
    let Ok(Some(archive)) = Archives::default().open(ArchiveLocation::Part(part), "a", None) else {
        return;
    };
    let Ok(all) = archive.unpack(&UnpackSelection::default()) else {
        return;
    };
    for entry in &all {
        assert!(!entry.path.is_empty() && entry.path.split('/').all(|name| name != ".."));
        if let UnpackedContent::File(member) = &entry.content {
            drop(member.bytes(1 << 20));
        }
    }
});
