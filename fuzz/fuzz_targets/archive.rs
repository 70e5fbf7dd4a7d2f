//! Archives to unpack: zip, 7z, and tar with any compression; installers and cabinets as such.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wincimg_common::files::SpoolWriter;
use wincimg_layer::archive::{
    ArchiveFormat, ArchiveLocation, Archives, UnpackSelection, UnpackedContent,
};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = SpoolWriter::in_folder(&std::env::temp_dir()).unwrap();
    let part = parts.append(|out| out.write_all(bytes)).unwrap();
    for format in [
        None,
        Some(ArchiveFormat::Installer),
        Some(ArchiveFormat::Cabinet),
        Some(ArchiveFormat::Bundle),
    ] {
        let place = ArchiveLocation::Part(part.clone());
        let Ok(Some(archive)) = Archives::default().open(place, "a", format) else {
            continue;
        };
        let Ok(all) = archive.unpack(&UnpackSelection::default()) else {
            continue;
        };
        for entry in &all {
            assert!(!entry.path.is_empty() && entry.path.split('/').all(|name| name != ".."));
            if let UnpackedContent::File(member) = &entry.content {
                drop(member.bytes(1 << 20));
            }
        }
    }
});
