//! Independent reader of security descriptors in the self-relative form.

use crate::security::{Ace, Acl, SecurityDescriptor, Sid, control};

/// Reads a descriptor whose entries grant rights to accounts; panics at any other.
pub fn read(bytes: &[u8]) -> SecurityDescriptor {
    let control = u16::from_le_bytes([bytes[2], bytes[3]]);
    assert_eq!(bytes[0], 1, "revision");
    assert_ne!(control & control::SELF_RELATIVE, 0, "{control:#x}");
    let part = |field: usize| {
        let offset = dword(&bytes[field..]) as usize;
        (offset != 0).then(|| &bytes[offset..])
    };
    SecurityDescriptor {
        control,
        owner: part(4).map(sid),
        group: part(8).map(sid),
        sacl: part(12).map(list),
        dacl: part(16).map(list),
    }
}

fn sid(bytes: &[u8]) -> Sid {
    assert_eq!(bytes[0], 1, "revision");
    let high = bytes[2..8].iter();
    let authority = high.fold(0, |number, byte| number << 8 | u64::from(*byte));
    let parts: Vec<u32> = (0..usize::from(bytes[1]))
        .map(|index| dword(&bytes[8 + 4 * index..]))
        .collect();
    Sid::new(authority, &parts).unwrap()
}

fn list(bytes: &[u8]) -> Acl {
    let mut rest = &bytes[8..];
    let entries = (0..u16::from_le_bytes([bytes[4], bytes[5]])).map(|_| {
        let length = usize::from(u16::from_le_bytes([rest[2], rest[3]]));
        let entry = Ace {
            kind: rest[0],
            flags: rest[1],
            mask: dword(&rest[4..]),
            sid: sid(&rest[8..]),
            rest: Vec::new(),
        };
        assert!(entry.kind <= 3 || entry.kind == 0x11, "{}", entry.kind);
        rest = &rest[length..];
        entry
    });
    Acl {
        revision: bytes[0],
        entries: entries.collect(),
    }
}

fn dword(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().unwrap())
}
