//! The executable file, without wine.

use object::LittleEndian;
use object::pe::ImageNtHeaders64;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, ImageThunkData, PeFile64};

const EXECUTABLE: &[u8] = include_bytes!("../../images/shim/shim.exe");

#[test]
fn the_executable_is_under_64_kb() {
    assert!(EXECUTABLE.len() < 64 * 1024, "{}", EXECUTABLE.len());
}

#[test]
fn it_imports_only_what_nano_server_has() {
    let libraries = imported_libraries();
    assert!(!libraries.is_empty());
    for library in libraries {
        let known = ["kernel32.dll", "ntdll.dll"].contains(&library.as_str());
        assert!(known || library.starts_with("api-ms-"), "imports {library}");
    }
}

fn imported_libraries() -> Vec<String> {
    let file = PeFile64::parse(EXECUTABLE).unwrap();
    let table = file.import_table().unwrap().unwrap();
    let mut descriptors = table.descriptors().unwrap();
    let mut names = Vec::new();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let name = table.name(descriptor.name.get(LittleEndian)).unwrap();
        names.push(String::from_utf8_lossy(name).to_lowercase());
    }
    names
}

/// A program with an import that Nano Server lacks does not start there.
#[test]
fn it_starts_where_the_order_of_a_shutdown_cannot_be_set() {
    let names = imported_functions();
    assert!(
        names.contains(&"SetConsoleCtrlHandler".to_owned()),
        "{names:?}"
    );
    let order = "SetProcessShutdownParameters".to_owned();
    assert!(!names.contains(&order), "imports {order}");
}

fn imported_functions() -> Vec<String> {
    let file = PeFile64::parse(EXECUTABLE).unwrap();
    let table = file.import_table().unwrap().unwrap();
    let mut descriptors = table.descriptors().unwrap();
    let mut names = Vec::new();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let first = descriptor.original_first_thunk.get(LittleEndian);
        let mut thunks = table.thunks(first).unwrap();
        while let Some(thunk) = thunks.next::<ImageNtHeaders64>().unwrap() {
            let (_, name) = table.hint_name(thunk.address()).unwrap();
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    names
}

#[test]
fn it_is_a_console_program_that_may_be_moved() {
    const DYNAMIC_BASE: u16 = 0x40;
    const NX_COMPAT: u16 = 0x100;
    const CONSOLE: u16 = 3;
    let file = PeFile64::parse(EXECUTABLE).unwrap();
    let header = file.nt_headers();
    assert_eq!(header.file_header().time_date_stamp.get(LittleEndian), 0);
    let optional = header.optional_header();
    assert_eq!(optional.subsystem(), CONSOLE);
    let flags = DYNAMIC_BASE | NX_COMPAT;
    assert_eq!(optional.dll_characteristics() & flags, flags);
}
