//! Installers that are programs, recognised by their bytes: what they do is code, not tables.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use super::summary::number;

/// Longest part of a program that is searched, from the end of its sections.
const MAX_SEARCHED: u64 = 4 << 20;
/// Largest resources that are searched.
const LARGEST_RESOURCES: u32 = 8 << 20;
/// Most sections of a program.
const MOST_SECTIONS: u16 = 96;

/// Kind of an installer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupProgram {
    /// A bundle of packages of the `WiX` toolset.
    Burn,
    /// Inno Setup.
    Inno,
    /// Nullsoft Scriptable Install System.
    Nsis,
    /// `InstallShield`.
    InstallShield,
    /// An archive of 7-Zip that unpacks itself.
    SevenZip,
}

impl fmt::Display for SetupProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Burn => "a WiX bundle (Burn)",
            Self::Inno => "an Inno Setup installer",
            Self::Nsis => "an NSIS installer",
            Self::InstallShield => "an InstallShield installer",
            Self::SevenZip => "a self-extracting 7z archive",
        })
    }
}

impl SetupProgram {
    /// What to do instead of running it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Burn => {
                "install the MSI of the vendor with msiexec, or unpack the bundle with `dark -x` \
                 and install its MSI"
            }
            Self::InstallShield => {
                "unpack its MSI with `setup.exe /a` or `/b`, and install that with msiexec"
            }
            Self::Inno | Self::Nsis => "unpack the zip or install the MSI of the vendor",
            Self::SevenZip => "unpack it with 7z x FILE -oDIR",
        }
    }

    /// Recognises an installer; none for another file.
    pub fn detect(reader: &mut (impl Read + Seek)) -> io::Result<Option<Self>> {
        let Some(program) = Sections::read(reader)? else {
            return Ok(None);
        };
        if program.burn.is_some() {
            return Ok(Some(Self::Burn));
        }
        let behind = window(reader, program.end, MAX_SEARCHED)?;
        if let Some(kind) = of_overlay(&behind) {
            return Ok(Some(kind));
        }
        let Some((offset, size)) = program.resources else {
            return Ok(None);
        };
        let resources = window(reader, offset.into(), size.min(LARGEST_RESOURCES).into())?;
        Ok(contains(&resources, b"JR.Inno.Setup").then_some(Self::Inno))
    }
}

/// The kind by what follows the sections.
fn of_overlay(behind: &[u8]) -> Option<SetupProgram> {
    const NSIS: &[u8] = b"\xEF\xBE\xAD\xDENullsoftInst";
    const SEVEN_ZIP: &[u8] = b"7z\xBC\xAF\x27\x1C";
    let starts = |words: &[&[u8]]| words.iter().any(|word| behind.starts_with(word));
    if starts(&[b"ISSetupStream", b"InstallShield"]) {
        Some(SetupProgram::InstallShield)
    } else if starts(&[SEVEN_ZIP, b";!@Install@!UTF-8!"]) {
        Some(SetupProgram::SevenZip)
    } else if contains(behind, NSIS) {
        Some(SetupProgram::Nsis)
    } else if contains(behind, b"Inno Setup Setup Data (") {
        Some(SetupProgram::Inno)
    } else {
        None
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The bytes from an offset on, as far as there are any.
pub(crate) fn window(
    reader: &mut (impl Read + Seek),
    offset: u64,
    size: u64,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.seek(SeekFrom::Start(offset))?;
    reader.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The sections of a program.
#[derive(Default)]
pub(crate) struct Sections {
    /// End of the last one in the file.
    end: u64,
    /// Offset of the section of a bundle.
    pub(crate) burn: Option<u32>,
    /// Offset and size in the file.
    resources: Option<(u32, u32)>,
}

impl Sections {
    /// Reads the headers; none for a file that is not a program of Windows.
    pub(crate) fn read(reader: &mut (impl Read + Seek)) -> io::Result<Option<Self>> {
        const HEADER: usize = 24;
        const SECTION: usize = 40;
        let dos = window(reader, 0, 64)?;
        let (true, Some(offset)) = (dos.starts_with(b"MZ"), number(&dos, 60)) else {
            return Ok(None);
        };
        let header = window(reader, offset.into(), HEADER as u64)?;
        let (true, Some(count), Some(optional)) = (
            header.starts_with(b"PE\0\0"),
            short(&header, 6),
            short(&header, 20),
        ) else {
            return Ok(None);
        };
        let count = count.min(MOST_SECTIONS);
        let at = u64::from(offset) + HEADER as u64 + u64::from(optional);
        let table = window(reader, at, u64::from(count) * SECTION as u64)?;
        let mut sections = Self::default();
        for section in table.chunks_exact(SECTION) {
            let (Some(size), Some(start)) = (number(section, 16), number(section, 20)) else {
                continue;
            };
            sections.end = sections.end.max(u64::from(start) + u64::from(size));
            if section.starts_with(b".wixburn") {
                sections.burn = Some(start);
            }
            if section.starts_with(b".rsrc\0") {
                sections.resources = Some((start, size));
            }
        }
        Ok(Some(sections))
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A program with one section of these bytes, and what follows it.
    fn program(name: &[u8], section: &[u8], behind: &[u8]) -> Vec<u8> {
        const START: u32 = 0x200;
        let mut bytes = vec![0; START as usize];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[60..64].copy_from_slice(&0x80_u32.to_le_bytes());
        bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
        bytes[0x86..0x88].copy_from_slice(&1_u16.to_le_bytes());
        bytes[0x94..0x96].copy_from_slice(&0xE0_u16.to_le_bytes());
        let at = 0x80 + 24 + 0xE0;
        bytes[at..at + name.len()].copy_from_slice(name);
        let size = u32::try_from(section.len()).unwrap();
        bytes[at + 16..at + 20].copy_from_slice(&size.to_le_bytes());
        bytes[at + 20..at + 24].copy_from_slice(&START.to_le_bytes());
        bytes.extend(section);
        bytes.extend(behind);
        bytes
    }

    fn kind(bytes: Vec<u8>) -> Option<SetupProgram> {
        SetupProgram::detect(&mut Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn installers_are_recognised_by_their_bytes() {
        use SetupProgram::{Burn, Inno, InstallShield, Nsis, SevenZip};
        for (name, section, behind, expected) in [
            (&b".wixburn"[..], &b"x"[..], &b""[..], Some(Burn)),
            (b".rsrc", b"name=\"JR.Inno.Setup\"", b"", Some(Inno)),
            (
                b".text",
                b"x",
                b"..Inno Setup Setup Data (6.2.0)",
                Some(Inno),
            ),
            (
                b".text",
                b"x",
                b"\0\0\0\0\xEF\xBE\xAD\xDENullsoftInst\0",
                Some(Nsis),
            ),
            (b".text", b"x", b"ISSetupStream\0", Some(InstallShield)),
            (b".text", b"x", b"7z\xBC\xAF\x27\x1C\0\x04", Some(SevenZip)),
            (b".text", b"x", b";!@Install@!UTF-8!\n", Some(SevenZip)),
            // The words elsewhere say nothing.
            (
                b".text",
                b"JR.Inno.Setup ISSetupStream",
                b"x ISSetupStream",
                None,
            ),
        ] {
            assert_eq!(kind(program(name, section, behind)), expected);
        }
        for other in [&b""[..], b"MZ", b"PK\x03\x04 .wixburn"] {
            assert_eq!(kind(other.to_vec()), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_a_panic(
            mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..700),
            real in proptest::prelude::any::<bool>(),
        ) {
            if real {
                let whole = program(b".rsrc", b"x", b"");
                bytes.splice(..bytes.len().min(0x84), whole[..0x84].iter().copied());
            }
            SetupProgram::detect(&mut Cursor::new(bytes)).unwrap();
        }
    }
}
