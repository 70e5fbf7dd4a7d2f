//! The text form of security descriptors: `O:BAG:SYD:(A;CI;KR;;;BU)`.

use std::str::FromStr;

use super::{Ace, Acl, SecurityDescriptor, Sid, control};

/// Error of parsing a security descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SddlError(String);

/// The two-letter names of SDDL for accounts in descriptors of images.
pub(super) const ALIASES: [(&str, u64, &[u32]); 23] = [
    ("AC", 15, &[2, 1]),
    ("AN", 5, &[7]),
    ("AU", 5, &[11]),
    ("BA", 5, &[32, 544]),
    ("BG", 5, &[32, 546]),
    ("BO", 5, &[32, 551]),
    ("BU", 5, &[32, 545]),
    ("CG", 3, &[1]),
    ("CO", 3, &[0]),
    ("IU", 5, &[4]),
    ("LS", 5, &[19]),
    ("LU", 5, &[32, 559]),
    ("MU", 5, &[32, 558]),
    ("NO", 5, &[32, 556]),
    ("NS", 5, &[20]),
    ("NU", 5, &[2]),
    ("OW", 3, &[4]),
    ("PU", 5, &[32, 547]),
    ("RC", 5, &[12]),
    ("SO", 5, &[32, 549]),
    ("SU", 5, &[6]),
    ("SY", 5, &[18]),
    ("WD", 1, &[0]),
];

/// Flags of the DACL; the bits for the SACL are the next ones up.
pub(super) const LIST_FLAGS: [(&str, u16); 3] = [
    ("P", control::DACL_PROTECTED),
    ("AR", control::DACL_INHERIT_REQUIRED),
    ("AI", control::DACL_AUTO_INHERITED),
];

pub(super) const KINDS: [(&str, u8); 4] = [("A", 0), ("D", 1), ("AU", 2), ("ML", 0x11)];

pub(super) const FLAGS: [(&str, u8); 7] = [
    ("OI", 0x01),
    ("CI", 0x02),
    ("NP", 0x04),
    ("IO", 0x08),
    ("ID", 0x10),
    ("SA", 0x40),
    ("FA", 0x80),
];

pub(super) const RIGHTS: [(&str, u32); 24] = [
    ("GA", 0x1000_0000),
    ("GX", 0x2000_0000),
    ("GW", 0x4000_0000),
    ("GR", 0x8000_0000),
    ("FA", 0x1F_01FF),
    ("FR", 0x12_0089),
    ("FW", 0x12_0116),
    ("FX", 0x12_00A0),
    ("KA", 0xF_003F),
    ("KR", 0x2_0019),
    ("KW", 0x2_0006),
    ("SD", 0x1_0000),
    ("RC", 0x2_0000),
    ("WD", 0x4_0000),
    ("WO", 0x8_0000),
    ("CC", 0x01),
    ("DC", 0x02),
    ("LC", 0x04),
    ("SW", 0x08),
    ("RP", 0x10),
    ("WP", 0x20),
    ("DT", 0x40),
    ("LO", 0x80),
    ("CR", 0x100),
];

impl FromStr for SecurityDescriptor {
    type Err = SddlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut descriptor = Self {
            control: control::SELF_RELATIVE,
            ..Self::default()
        };
        for part in parts(text)? {
            let (tag, body) = part.split_at(2);
            match tag {
                "O:" => descriptor.owner = Some(body.parse()?),
                "G:" => descriptor.group = Some(body.parse()?),
                _ => descriptor.read_list(tag == "S:", body)?,
            }
        }
        Ok(descriptor)
    }
}

/// Cuts before each `X:`; no other text of a descriptor has a colon.
fn parts(text: &str) -> Result<Vec<&str>, SddlError> {
    let mut cuts: Vec<usize> = text
        .match_indices(':')
        .map(|(colon, _)| colon.saturating_sub(1))
        .collect();
    let bad = || {
        SddlError(format!(
            "invalid part {text:?} of a security descriptor: expected O:, G:, D: or S:"
        ))
    };
    if cuts.first() != Some(&0) {
        return Err(bad());
    }
    cuts.push(text.len());
    cuts.windows(2)
        .map(|cut| {
            text.get(cut[0]..cut[1])
                .filter(|part| {
                    ["O:", "G:", "D:", "S:"]
                        .iter()
                        .any(|tag| part.starts_with(tag))
                })
                .ok_or_else(bad)
        })
        .collect()
}

impl SecurityDescriptor {
    fn read_list(&mut self, system: bool, body: &str) -> Result<(), SddlError> {
        let (flags, entries) = body.split_at(body.find('(').unwrap_or(body.len()));
        self.control |= if system {
            control::SACL_PRESENT
        } else {
            control::DACL_PRESENT
        };
        if flags == "NO_ACCESS_CONTROL" {
            return Ok(());
        }
        self.control |= list_flags(flags, system)?;
        let list = Acl {
            revision: 2,
            entries: read_entries(entries)?,
        };
        if list.len() > usize::from(u16::MAX) {
            let problem = "an access list of more than 65535 bytes";
            return Err(SddlError(problem.to_owned()));
        }
        let list = Some(list);
        if system {
            self.sacl = list;
        } else {
            self.dacl = list;
        }
        Ok(())
    }
}

fn list_flags(text: &str, system: bool) -> Result<u16, SddlError> {
    let bits = pairs(text, &LIST_FLAGS).ok_or_else(|| {
        SddlError(format!(
            "invalid flags {text:?} of an access list: expected P, AI and AR"
        ))
    })?;
    Ok(bits << u16::from(system))
}

fn read_entries(mut text: &str) -> Result<Vec<Ace>, SddlError> {
    let mut entries = Vec::new();
    while !text.is_empty() {
        let bad = || bad_entry(text.trim_start_matches('('));
        let inner = text.strip_prefix('(').ok_or_else(bad)?;
        let (entry, rest) = inner.split_once(')').ok_or_else(bad)?;
        entries.push(read_entry(entry)?);
        text = rest;
    }
    Ok(entries)
}

fn bad_entry(text: &str) -> SddlError {
    SddlError(format!(
        "invalid access entry ({text}): expected (A;flags;rights;;;account)"
    ))
}

fn read_entry(text: &str) -> Result<Ace, SddlError> {
    let bad = || bad_entry(text);
    let fields: Vec<&str> = text.split(';').collect();
    let [kind, flags, rights, "", "", account] = fields[..] else {
        return Err(bad());
    };
    let kind = KINDS
        .iter()
        .find(|(name, _)| *name == kind)
        .ok_or_else(bad)?;
    Ok(Ace {
        kind: kind.1,
        flags: pairs(flags, &FLAGS).ok_or_else(bad)?,
        mask: read_rights(rights).ok_or_else(bad)?,
        sid: account.parse()?,
        rest: Vec::new(),
    })
}

fn read_rights(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => pairs(text, &RIGHTS),
    }
}

/// The bits of adjacent names, `OICI`.
fn pairs<T: Copy + Default + std::ops::BitOr<Output = T>>(
    text: &str,
    names: &[(&str, T)],
) -> Option<T> {
    let mut bits = T::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (after, bit) = names
            .iter()
            .find_map(|(name, bit)| Some((rest.strip_prefix(name)?, *bit)))?;
        bits = bits | bit;
        rest = after;
    }
    Some(bits)
}

impl FromStr for Sid {
    type Err = SddlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || {
            SddlError(format!(
                "invalid account {text:?}: expected two letters such as BA, or S-1-…"
            ))
        };
        let known = ALIASES
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(text));
        if let Some(&(_, authority, parts)) = known {
            return Sid::new(authority, parts).ok_or_else(bad);
        }
        numbers(text).ok_or_else(bad)
    }
}

fn numbers(text: &str) -> Option<Sid> {
    let mut fields = text.strip_prefix("S-1-")?.split('-');
    let authority = fields.next()?.parse().ok()?;
    let parts = fields
        .map(str::parse)
        .collect::<Result<Vec<u32>, _>>()
        .ok()?;
    Sid::new(authority, &parts)
}
