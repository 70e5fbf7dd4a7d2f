//! The text form of security descriptors: `O:BAG:SYD:(A;CI;KR;;;BU)`.
//!
//! Every descriptor prints; what the text form has no words for (entries about objects and
//! conditions) prints as its kind and bytes, and such a text is not read back.

use std::fmt::{self, Display, Write as _};
use std::str::FromStr;

use super::{Ace, AceBody, Acl, SecurityDescriptor, Sid, control};

/// A text that is no security descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SddlError {
    /// A part that starts with none of `O:`, `G:`, `D:` and `S:`.
    #[error("{text:?} is no part of a security descriptor: expected O:, G:, D: or S:")]
    Part {
        /// The text.
        text: String,
    },
    /// A name or number of an account that is not understood.
    #[error("{text:?} is no account: expected two letters such as BA, or S-1-…")]
    Sid {
        /// The text.
        text: String,
    },
    /// Flags of a list that are not understood.
    #[error("{text:?} are no flags of an access list: expected P, AI and AR")]
    ListFlags {
        /// The text.
        text: String,
    },
    /// More entries than the binary form can hold.
    #[error("an access list of more than 65535 bytes")]
    ListTooLong,
    /// An entry that is not understood.
    #[error("({text}) is no access entry: expected (A;flags;rights;;;account)")]
    Entry {
        /// The text between the brackets.
        text: String,
    },
}

const KINDS: [(&str, u8); 4] = [("A", 0), ("D", 1), ("AU", 2), ("ML", 0x11)];

const FLAGS: [(&str, u8); 7] = [
    ("OI", 0x01),
    ("CI", 0x02),
    ("NP", 0x04),
    ("IO", 0x08),
    ("ID", 0x10),
    ("SA", 0x40),
    ("FA", 0x80),
];

/// Names that stand for a whole mask come first: a mask prints as the first name that is all of it.
const RIGHTS: [(&str, u32); 24] = [
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
            owner: None,
            group: None,
            sacl: None,
            dacl: None,
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
    let bad = || SddlError::Part {
        text: text.to_owned(),
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
            return Err(SddlError::ListTooLong);
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
    let mut bits = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (flag, after) = ["P", "AI", "AR"]
            .into_iter()
            .find_map(|flag| Some((flag, rest.strip_prefix(flag)?)))
            .ok_or_else(|| SddlError::ListFlags {
                text: text.to_owned(),
            })?;
        let bit = match flag {
            "P" => control::DACL_PROTECTED,
            "AI" => control::DACL_AUTO_INHERITED,
            _ => control::DACL_INHERIT_REQUIRED,
        };
        // The bits for the system list are the next ones up.
        bits |= bit << u16::from(system);
        rest = after;
    }
    Ok(bits)
}

fn read_entries(mut text: &str) -> Result<Vec<Ace>, SddlError> {
    let mut entries = Vec::new();
    while !text.is_empty() {
        let bad = || SddlError::Entry {
            text: text.trim_start_matches('(').to_owned(),
        };
        let inner = text.strip_prefix('(').ok_or_else(bad)?;
        let (entry, rest) = inner.split_once(')').ok_or_else(bad)?;
        entries.push(read_entry(entry)?);
        text = rest;
    }
    Ok(entries)
}

fn read_entry(text: &str) -> Result<Ace, SddlError> {
    let bad = || SddlError::Entry {
        text: text.to_owned(),
    };
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
        body: AceBody::Rights {
            mask: read_rights(rights).ok_or_else(bad)?,
            sid: account.parse::<Sid>()?,
        },
    })
}

fn read_rights(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => pairs(text, &RIGHTS),
    }
}

/// The bits of names that stand next to each other, `OICI`.
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

impl Display for SecurityDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(owner) = &self.owner {
            write!(f, "O:{owner}")?;
        }
        if let Some(group) = &self.group {
            write!(f, "G:{group}")?;
        }
        self.write_list(f, false)?;
        self.write_list(f, true)
    }
}

impl SecurityDescriptor {
    fn write_list(&self, f: &mut fmt::Formatter<'_>, system: bool) -> fmt::Result {
        let (tag, present, list) = if system {
            ("S:", control::SACL_PRESENT, &self.sacl)
        } else {
            ("D:", control::DACL_PRESENT, &self.dacl)
        };
        if self.control & present == 0 {
            return Ok(());
        }
        f.write_str(tag)?;
        let Some(list) = list else {
            return f.write_str("NO_ACCESS_CONTROL");
        };
        for (flag, bit) in [
            ("P", control::DACL_PROTECTED),
            ("AR", control::DACL_INHERIT_REQUIRED),
            ("AI", control::DACL_AUTO_INHERITED),
        ] {
            if self.control & (bit << u16::from(system)) != 0 {
                f.write_str(flag)?;
            }
        }
        list.entries.iter().try_for_each(|entry| entry.fmt(f))
    }
}

impl Display for Ace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('(')?;
        match KINDS.iter().find(|(_, kind)| *kind == self.kind) {
            Some((name, _)) => f.write_str(name)?,
            None => write!(f, "{:#04x}", self.kind)?,
        }
        f.write_char(';')?;
        for (name, bit) in FLAGS {
            if self.flags & bit != 0 {
                f.write_str(name)?;
            }
        }
        match &self.body {
            AceBody::Rights { mask, sid } => {
                match RIGHTS.iter().find(|(_, rights)| rights == mask) {
                    Some((name, _)) => write!(f, ";{name}")?,
                    None => write!(f, ";{mask:#x}")?,
                }
                write!(f, ";;;{sid})")
            }
            AceBody::Opaque(bytes) => write!(f, ";{})", hex::encode(bytes)),
        }
    }
}
