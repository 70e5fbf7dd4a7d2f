//! Minimal programs for Windows, with the parts that tests read.

const SECTION_AT: usize = 0x400;
/// Index of the directory of resources.
const RESOURCES: usize = 2;
pub const ADDRESS: u32 = 0x1000;

/// A program with one section and these directories.
pub fn program(flags: u32, section: &[u8], directories: &[(usize, u32, u32)]) -> Vec<u8> {
    let mut file = vec![0; SECTION_AT];
    file[..2].copy_from_slice(b"MZ");
    file[0x3c] = 0x80;
    file[0x80..0x84].copy_from_slice(b"PE\0\0");
    file[0x86] = 1;
    let optional = 0x98;
    let size_of_optional: u16 = 240;
    file[0x94..0x96].copy_from_slice(&size_of_optional.to_le_bytes());
    file[optional..optional + 2].copy_from_slice(&0x20b_u16.to_le_bytes());
    file[optional + 24..optional + 32].copy_from_slice(&0x1_4000_0000_u64.to_le_bytes());
    file[optional + 108] = 16;
    for (which, address, size) in directories {
        let at = optional + 112 + which * 8;
        file[at..at + 4].copy_from_slice(&address.to_le_bytes());
        file[at + 4..at + 8].copy_from_slice(&size.to_le_bytes());
    }
    let header = optional + usize::from(size_of_optional);
    let size = u32::try_from(section.len()).unwrap();
    for (at, value) in [
        (8, size),
        (12, ADDRESS),
        (16, size),
        (20, u32::try_from(SECTION_AT).unwrap()),
        (36, flags),
    ] {
        file[header + at..header + at + 4].copy_from_slice(&value.to_le_bytes());
    }
    file.extend_from_slice(section);
    file
}

fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// Fills up to a multiple of four bytes.
pub fn fill(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().div_ceil(4) * 4, 0);
}

/// A block of a version resource.
fn block(key: &str, is_text: bool, value: &[u8], children: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 6];
    bytes.extend(utf16(key));
    fill(&mut bytes);
    bytes.extend_from_slice(value);
    for child in children {
        fill(&mut bytes);
        bytes.extend_from_slice(child);
    }
    let length = u16::try_from(bytes.len()).unwrap();
    let value_length = value.len() / if is_text { 2 } else { 1 };
    bytes[..2].copy_from_slice(&length.to_le_bytes());
    bytes[2..4].copy_from_slice(&u16::try_from(value_length).unwrap().to_le_bytes());
    bytes[4] = u8::from(is_text);
    bytes
}

fn version_resource(strings: &[(&str, &str)]) -> Vec<u8> {
    let strings: Vec<Vec<u8>> = strings
        .iter()
        .map(|(key, value)| block(key, true, &utf16(value), &[]))
        .collect();
    let table = block("040904b0", true, &[], &strings);
    let info = block("StringFileInfo", true, &[], &[table]);
    let mut fixed = vec![0; 52];
    fixed[..4].copy_from_slice(&0xfeef_04bd_u32.to_le_bytes());
    fixed[8..12].copy_from_slice(&0x0001_0002_u32.to_le_bytes());
    fixed[12..16].copy_from_slice(&0x0003_0004_u32.to_le_bytes());
    block("VS_VERSION_INFO", false, &fixed, &[info])
}

/// A program with these strings in its version resource.
pub fn with_version(strings: &[(&str, &str)]) -> Vec<u8> {
    with_versions(&[strings])
}

/// A program with a version resource of these strings in each language.
pub fn with_versions(languages: &[&[(&str, &str)]]) -> Vec<u8> {
    let count = languages.len();
    let small = |number: usize| u32::try_from(number).unwrap();
    let mut section = Vec::new();
    // The directories of types, names and languages, and the leaves.
    for (id, leads_to) in [(16, 0x8000_0018_u32), (1, 0x8000_0030)] {
        section.extend([0; 14]);
        section.extend(1_u16.to_le_bytes());
        section.extend(u32::to_le_bytes(id));
        section.extend(leads_to.to_le_bytes());
    }
    section.extend([0; 14]);
    section.extend(u16::try_from(count).unwrap().to_le_bytes());
    let leaves = section.len() + 8 * count;
    for number in 0..count {
        section.extend(small(1033 + number).to_le_bytes());
        section.extend(small(leaves + 16 * number).to_le_bytes());
    }
    let mut resources = Vec::new();
    for strings in languages {
        let resource = version_resource(strings);
        let at = small(leaves + 16 * count + resources.len());
        section.extend((ADDRESS + at).to_le_bytes());
        section.extend(small(resource.len()).to_le_bytes());
        section.extend([0; 8]);
        resources.extend(resource);
    }
    section.extend(resources);
    let length = small(section.len());
    program(0x4000_0040, &section, &[(RESOURCES, ADDRESS, length)])
}
