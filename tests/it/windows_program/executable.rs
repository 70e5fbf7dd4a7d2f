//! The executable file as built for the tests; `packaging/windows` builds the shipped one from the
//! same source with the same linker.

use std::fs;

use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64, ResourceDirectoryEntryData};
use object::{LittleEndian, pe};

use super::exe::built;

/// DLLs of every Windows since 10 and Server 2016.
const SYSTEM: &[&str] = &[
    "advapi32.dll", "bcrypt.dll", "bcryptprimitives.dll", "crypt32.dll", "kernel32.dll",
    "msvcrt.dll", "ncrypt.dll", "ntdll.dll", "ole32.dll", "oleaut32.dll", "secur32.dll",
    "shell32.dll", "user32.dll", "userenv.dll", "ws2_32.dll",
];

#[test]
fn it_is_a_console_program_of_system_libraries_alone() {
    let bytes = fs::read(built()).unwrap();
    let file = PeFile64::parse(&*bytes).unwrap();

    let table = file.import_table().unwrap().unwrap();
    let mut descriptors = table.descriptors().unwrap();
    let mut imported = Vec::new();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let name = table.name(descriptor.name.get(LittleEndian)).unwrap();
        imported.push(String::from_utf8_lossy(name).to_lowercase());
    }
    assert!(imported.contains(&"kernel32.dll".to_owned()));
    for library in imported {
        let known = SYSTEM.contains(&library.as_str()) || library.starts_with("api-ms-win-");
        assert!(known, "imports {library}");
    }

    let header = file.nt_headers();
    assert_eq!(header.file_header().time_date_stamp.get(LittleEndian), 0);
    let optional = header.optional_header();
    assert_eq!(optional.subsystem(), pe::IMAGE_SUBSYSTEM_WINDOWS_CUI);
    for flag in [
        pe::IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE,
        pe::IMAGE_DLLCHARACTERISTICS_HIGH_ENTROPY_VA,
        pe::IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
    ] {
        assert_ne!(optional.dll_characteristics() & flag, 0, "{flag:#x}");
    }
}

#[test]
fn windows_reads_its_version_and_its_manifest() {
    let bytes = fs::read(built()).unwrap();
    let manifest = String::from_utf8(resource(&bytes, pe::RT_MANIFEST)).unwrap();
    assert_contains!(
        manifest,
        ">true</longPathAware>",
        ">UTF-8</activeCodePage>",
        "level=\"asInvoker\"",
    );
    let version = resource(&bytes, pe::RT_VERSION);
    let units: Vec<u16> = version
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let text = String::from_utf16_lossy(&units);
    assert!(text.contains(env!("CARGO_PKG_VERSION")), "{text:?}");
}

/// The only resource of a kind.
fn resource(bytes: &[u8], kind: u16) -> Vec<u8> {
    let file = PeFile64::parse(bytes).unwrap();
    let sections = file.section_table();
    let directories = file.data_directories();
    let directory = directories.resource_directory(bytes, &sections).unwrap();
    let directory = directory.unwrap();
    let mut entries = directory.root().unwrap().entries.iter();
    let mut entry = entries
        .find(|entry| entry.name_or_id().id() == Some(kind))
        .unwrap();
    loop {
        match entry.data(directory).unwrap() {
            ResourceDirectoryEntryData::Table(table) => entry = &table.entries[0],
            ResourceDirectoryEntryData::Data(data) => {
                let place = data.offset_to_data.get(LittleEndian);
                let size = data.size.get(LittleEndian) as usize;
                let found = sections.pe_data_at(bytes, place).unwrap();
                return found[..size].to_vec();
            }
        }
    }
}
