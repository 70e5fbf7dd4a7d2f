//! Security identifiers: accounts, groups and capabilities.

use std::fmt;
use std::str::FromStr;

use super::SddlError;

/// An account, group or capability: `S-1-5-32-544`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid {
    authority: u64,
    parts: Vec<u32>,
}

/// The most numbers after the authority.
const MAX_PARTS: usize = 15;

/// The two-letter names of SDDL for the accounts that descriptors of an image mention.
const ALIASES: [(&str, u64, &[u32]); 23] = [
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

impl Sid {
    /// An identifier of an authority below 2^48 and at most 15 further numbers.
    pub fn new(authority: u64, parts: &[u32]) -> Option<Self> {
        (authority < 1 << 48 && parts.len() <= MAX_PARTS).then(|| Self {
            authority,
            parts: parts.to_vec(),
        })
    }

    /// The account of the operating system itself, `SY`.
    pub fn local_system() -> Self {
        Self {
            authority: 5,
            parts: vec![18],
        }
    }

    /// Stands for whoever creates the object that inherits it.
    pub(super) fn is_creator_owner(&self) -> bool {
        self.authority == 3 && self.parts == [0]
    }

    /// Stands for the primary group of whoever creates the object that inherits it.
    pub(super) fn is_creator_group(&self) -> bool {
        self.authority == 3 && self.parts == [1]
    }

    /// Reads an identifier at the start of the bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (&[1, count, ref high @ ..], rest) = bytes.split_first_chunk::<8>()? else {
            return None;
        };
        let authority = high
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte));
        let parts: Vec<u32> = rest
            .as_chunks::<4>()
            .0
            .get(..usize::from(count))?
            .iter()
            .map(|&part| u32::from_le_bytes(part))
            .collect();
        Self::new(authority, &parts)
    }

    /// How many bytes the identifier takes.
    pub(super) fn len(&self) -> usize {
        8 + 4 * self.parts.len()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // MAX_PARTS bounds the count, new() the authority.
        out.extend([1, self.parts.len().to_le_bytes()[0]]);
        out.extend(&self.authority.to_be_bytes()[2..]);
        out.extend(self.parts.iter().flat_map(|part| part.to_le_bytes()));
    }
}

/// The two-letter name where SDDL has one, otherwise the numbers.
impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alias = ALIASES
            .iter()
            .find(|(_, authority, parts)| *authority == self.authority && *parts == self.parts);
        if let Some((name, ..)) = alias {
            return f.write_str(name);
        }
        write!(f, "S-1-{}", self.authority)?;
        self.parts.iter().try_for_each(|part| write!(f, "-{part}"))
    }
}

impl FromStr for Sid {
    type Err = SddlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = ALIASES
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(text));
        if let Some(&(_, authority, parts)) = known {
            return Ok(Self {
                authority,
                parts: parts.to_vec(),
            });
        }
        numbers(text).ok_or_else(|| SddlError::Sid {
            text: text.to_owned(),
        })
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
