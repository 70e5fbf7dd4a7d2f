//! The security descriptors of the entries, in the base64 that `MSWINDOWS.rawsd` carries.

/// `O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)`
pub(super) const DIRECTORY: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgCoAAcAAAAAAxgA/wEfAAECAAAAAAAFIAAAACACAAAAAxQA/wEfAAEBAAAAAAAFEgAAAAAAGAD/AR8AAQIAAAAAAAUgAAAAIAIAAAALFAAAAAAQAQEAAAAAAAMAAAAAAAMYAKkAEgABAgAAAAAABSAAAAAhAgAAAAIYAAQAAAABAgAAAAAABSAAAAAhAgAAAAIYAAIAAAABAgAAAAAABSAAAAAhAgAA";

/// `O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)`
pub(super) const FILE: &str = "AQAEgBQAAAAkAAAAAAAAADAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAAAgBMAAMAAAAAABgA/wEfAAECAAAAAAAFIAAAACACAAAAABQA/wEfAAEBAAAAAAAFEgAAAAAAGACpABIAAQIAAAAAAAUgAAAAIQIAAA==";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;

    const OBJECT_INHERIT: u8 = 1;
    const CONTAINER_INHERIT: u8 = 2;
    const INHERIT_ONLY: u8 = 8;
    const INHERIT: u8 = OBJECT_INHERIT | CONTAINER_INHERIT;
    const FILE_ALL: u32 = 0x1F_01FF;
    const GENERIC_ALL: u32 = 0x1000_0000;
    const READ_AND_EXECUTE: u32 = 0x12_00A9;
    const ADD_FOLDER: u32 = 0x4;
    const ADD_FILE: u32 = 0x2;

    /// The SDDL name of a SID, as far as these descriptors use any.
    fn sid(bytes: &[u8]) -> (&'static str, usize) {
        let count = usize::from(bytes[1]);
        assert_eq!((bytes[0], &bytes[2..7]), (1, [0; 5].as_slice()));
        let subs: Vec<u32> = bytes[8..8 + 4 * count]
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        let name = match (bytes[7], subs.as_slice()) {
            (5, [32, 544]) => "BA",
            (5, [32, 545]) => "BU",
            (5, [18]) => "SY",
            (3, [0]) => "CO",
            other => panic!("unexpected SID {other:?}"),
        };
        (name, 8 + 4 * count)
    }

    fn word(bytes: &[u8], at: usize) -> usize {
        usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    }

    fn long(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// Checks owner, group and control and answers with the ACEs: inheritance, rights, whose.
    fn access_list(encoded: &str) -> Vec<(u8, u32, &'static str)> {
        let bytes = BASE64_STANDARD.decode(encoded).unwrap();
        assert_eq!(bytes[0], 1);
        assert_eq!(word(&bytes, 2), 0x8004, "self-relative, DACL present");
        assert_eq!(sid(&bytes[word(&bytes, 4)..]).0, "BA");
        assert_eq!(sid(&bytes[word(&bytes, 8)..]).0, "SY");
        assert_eq!(long(&bytes, 12), 0, "no SACL");
        let acl = &bytes[word(&bytes, 16)..];
        assert_eq!((acl[0], word(acl, 2)), (2, acl.len()));
        let mut rest = &acl[8..];
        let mut entries = Vec::new();
        for _ in 0..word(acl, 4) {
            assert_eq!(rest[0], 0, "an entry that allows");
            let (who, length) = sid(&rest[8..]);
            assert_eq!(word(rest, 2), 8 + length);
            entries.push((rest[1], long(rest, 4), who));
            rest = &rest[8 + length..];
        }
        assert!(rest.is_empty());
        entries
    }

    #[test]
    fn a_directory_hands_its_rights_down() {
        assert_eq!(
            access_list(super::DIRECTORY),
            [
                (INHERIT, FILE_ALL, "BA"),
                (INHERIT, FILE_ALL, "SY"),
                (0, FILE_ALL, "BA"),
                (INHERIT | INHERIT_ONLY, GENERIC_ALL, "CO"),
                (INHERIT, READ_AND_EXECUTE, "BU"),
                (CONTAINER_INHERIT, ADD_FOLDER, "BU"),
                (CONTAINER_INHERIT, ADD_FILE, "BU"),
            ]
        );
    }

    #[test]
    fn a_file_is_written_by_the_system_and_read_by_users() {
        assert_eq!(
            access_list(super::FILE),
            [
                (0, FILE_ALL, "BA"),
                (0, FILE_ALL, "SY"),
                (0, READ_AND_EXECUTE, "BU"),
            ]
        );
    }
}
