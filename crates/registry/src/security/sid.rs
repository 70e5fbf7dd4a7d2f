//! Security identifiers: accounts, groups and capabilities.

/// An account, group or capability: `S-1-5-32-544`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid {
    authority: u64,
    parts: Vec<u32>,
}

/// Maximum number of parts after the authority.
const MAX_PARTS: usize = 15;

impl Sid {
    /// Creates an identifier from an authority below 2^48 and at most 15 numbers.
    pub fn new(authority: u64, parts: &[u32]) -> Option<Self> {
        (authority < 1 << 48 && parts.len() <= MAX_PARTS).then(|| Self {
            authority,
            parts: parts.to_vec(),
        })
    }

    /// The numeric form, `S-1-5-32-544`, which every program accepts.
    pub fn in_numbers(&self) -> String {
        let mut text = format!("S-1-{}", self.authority);
        for part in &self.parts {
            text.push('-');
            text.push_str(&part.to_string());
        }
        text
    }

    /// The account of the operating system itself, `SY`.
    pub fn local_system() -> Self {
        Self {
            authority: 5,
            parts: vec![18],
        }
    }

    /// The group of administrators, `BA`.
    pub fn administrators() -> Self {
        Self {
            authority: 5,
            parts: vec![32, 544],
        }
    }

    /// Returns true for the placeholder of the creator of an inheriting object.
    pub(super) fn is_creator_owner(&self) -> bool {
        self.authority == 3 && self.parts == [0]
    }

    /// Returns true for the placeholder of the creator's primary group.
    pub(super) fn is_creator_group(&self) -> bool {
        self.authority == 3 && self.parts == [1]
    }

    /// The authority and the numbers after it.
    pub(super) fn numbers(&self) -> (u64, &[u32]) {
        (self.authority, &self.parts)
    }

    /// Length of the identifier in bytes.
    pub(super) fn len(&self) -> usize {
        8 + 4 * self.parts.len()
    }

    /// Reads the identifier at the start of some bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (&[1, count], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (high, rest) = rest.split_first_chunk::<6>()?;
        let authority = high
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (words, _) = rest.as_chunks::<4>();
        let parts = words.get(..usize::from(count))?;
        let parts: Vec<u32> = parts.iter().map(|part| u32::from_le_bytes(*part)).collect();
        Self::new(authority, &parts)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // MAX_PARTS bounds the count, new() the authority.
        out.extend([1, self.parts.len().to_le_bytes()[0]]);
        out.extend(&self.authority.to_be_bytes()[2..]);
        out.extend(self.parts.iter().flat_map(|part| part.to_le_bytes()));
    }
}
