//! The one thing the shim wants to know of another program's file: whether it has a console.

const SUBSYSTEM_WINDOWS_GUI: u16 = 2;

/// How much of a file's beginning is enough for `is_gui`, save for programs nobody's linker makes.
pub const HEAD: usize = 4096;

/// Whether a file that begins so is a windowed program, which no console event ever reaches.
pub fn is_gui(head: &[u8]) -> bool {
    subsystem(head) == Some(SUBSYSTEM_WINDOWS_GUI)
}

fn subsystem(head: &[u8]) -> Option<u16> {
    let header = usize::try_from(u32::from_le_bytes(bytes(head, 0x3c)?)).ok()?;
    if bytes(head, 0)? != *b"MZ" || bytes(head, header)? != *b"PE\0\0" {
        return None;
    }
    // After the signature (4) and the file header (20), at the same place in 32 and 64 bit files.
    let at = header.checked_add(4 + 20 + 68)?;
    bytes(head, at).map(u16::from_le_bytes)
}

fn bytes<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn program(header: u32, subsystem: u16) -> Vec<u8> {
        let start = usize::try_from(header).unwrap_or(0);
        let mut file = vec![0; start + 128];
        file[..2].copy_from_slice(b"MZ");
        file[0x3c..0x40].copy_from_slice(&header.to_le_bytes());
        file[start..start + 4].copy_from_slice(b"PE\0\0");
        file[start + 92..start + 94].copy_from_slice(&subsystem.to_le_bytes());
        file
    }

    #[test]
    fn a_windowed_program_is_told_from_a_console_program() {
        assert!(is_gui(&program(0x80, 2)));
        assert!(is_gui(&program(0x100, 2)));
        assert!(!is_gui(&program(0x80, 3)));
    }

    #[test]
    fn what_is_no_program_is_not_windowed() {
        assert!(!is_gui(b""));
        assert!(!is_gui(b"MZ"));
        assert!(!is_gui(&[0xff; 4096]));
        assert!(!is_gui(&program(0x80, 2)[..0x90]));
        let mut far = program(0x80, 2);
        far[0x3c..0x40].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(!is_gui(&far));
    }
}
