//! The self-relative form: a header of 20 bytes with offsets to two identifiers and two lists.

use super::{Ace, AceBody, Acl, SecurityDescriptor, Sid, control};

/// The order in which a descriptor's parts follow its header. Windows reads any; to be the same
/// byte for byte, a writer must choose the one that the original's writer chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Lists, owner, group: what the kernel writes for the objects that it creates.
    ListsFirst,
    /// Owner, group, lists: what Windows' conversion from SDDL writes.
    OwnerFirst,
}

/// Bytes that are no self-relative security descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// The header is not there or says that this is another form.
    #[error("no self-relative security descriptor: expected a header of 20 bytes, revision 1")]
    Header,
    /// An offset leads to something that is no identifier.
    #[error("no account identifier at offset {offset:#x} of the security descriptor")]
    Sid {
        /// Where it should be.
        offset: u32,
    },
    /// An offset leads to something that is no list of entries.
    #[error("no complete access list at offset {offset:#x} of the security descriptor")]
    Acl {
        /// Where it should be.
        offset: u32,
    },
}

const HEADER: usize = 20;

/// Kinds of entries that are a mask and an identifier and nothing else: allow, deny, audit, alarm,
/// mandatory label, scoped policy, process trust label.
const PLAIN_KINDS: [u8; 7] = [0x00, 0x01, 0x02, 0x03, 0x11, 0x13, 0x14];

impl SecurityDescriptor {
    /// Reads a self-relative descriptor; bytes after its parts do not matter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DescriptorError> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let header = || {
            let [1, _, low, high] = *bytes.first_chunk()? else {
                return None;
            };
            let bits = u16::from_le_bytes([low, high]);
            Some((bits, word(4)?, word(8)?, word(12)?, word(16)?))
        };
        let (bits, owner, group, sacl, dacl) = header()
            .filter(|(bits, ..)| bits & control::SELF_RELATIVE != 0)
            .ok_or(DescriptorError::Header)?;
        Ok(Self {
            control: bits,
            owner: read_sid(bytes, owner)?,
            group: read_sid(bytes, group)?,
            sacl: read_list(bytes, sacl, bits & control::SACL_PRESENT != 0)?,
            dacl: read_list(bytes, dacl, bits & control::DACL_PRESENT != 0)?,
        })
    }

    /// The self-relative form.
    pub fn to_bytes(&self, layout: Layout) -> Vec<u8> {
        let mut out = vec![0; HEADER];
        out[0] = 1;
        out[2..4].copy_from_slice(&(self.control | control::SELF_RELATIVE).to_le_bytes());
        if layout == Layout::ListsFirst {
            self.write_lists(&mut out);
        }
        if let Some(owner) = &self.owner {
            point(&mut out, 4);
            owner.write(&mut out);
        }
        if let Some(group) = &self.group {
            point(&mut out, 8);
            group.write(&mut out);
        }
        if layout == Layout::OwnerFirst {
            self.write_lists(&mut out);
        }
        out
    }

    fn write_lists(&self, out: &mut Vec<u8>) {
        for (field, list) in [(12, &self.sacl), (16, &self.dacl)] {
            if let Some(list) = list {
                point(out, field);
                list.write(out);
            }
        }
    }
}

/// Sets an offset of the header to where the next part will be.
fn point(out: &mut [u8], field: usize) {
    let [a, b, c, d, ..] = out.len().to_le_bytes();
    out[field..field + 4].copy_from_slice(&[a, b, c, d]);
}

fn at(bytes: &[u8], offset: u32) -> Option<&[u8]> {
    bytes.get(usize::try_from(offset).ok()?..)
}

fn read_sid(bytes: &[u8], offset: u32) -> Result<Option<Sid>, DescriptorError> {
    if offset == 0 {
        return Ok(None);
    }
    let sid = at(bytes, offset).and_then(Sid::read);
    sid.map(Some).ok_or(DescriptorError::Sid { offset })
}

fn read_list(bytes: &[u8], offset: u32, present: bool) -> Result<Option<Acl>, DescriptorError> {
    if offset == 0 || !present {
        return Ok(None);
    }
    let list = at(bytes, offset).and_then(Acl::read);
    list.map(Some).ok_or(DescriptorError::Acl { offset })
}

impl Acl {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[
            revision,
            _,
            size_low,
            size_high,
            count_low,
            count_high,
            _,
            _,
        ] = bytes.first_chunk()?;
        let size = usize::from(u16::from_le_bytes([size_low, size_high]));
        let mut rest = bytes.get(8..size)?;
        let mut entries = Vec::new();
        for _ in 0..u16::from_le_bytes([count_low, count_high]) {
            let &[kind, flags, low, high] = rest.first_chunk()?;
            let length = usize::from(u16::from_le_bytes([low, high]));
            let body = rest.get(4..length)?;
            entries.push(Ace {
                kind,
                flags,
                body: AceBody::read(kind, body)?,
            });
            rest = &rest[length..];
        }
        Some(Self { revision, entries })
    }

    /// How many bytes the list takes.
    pub(super) fn len(&self) -> usize {
        let entries = self.entries.iter().map(|entry| 4 + entry.body.len());
        8 + entries.sum::<usize>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let [count_low, count_high, ..] = self.entries.len().to_le_bytes();
        let [low, high, ..] = self.len().to_le_bytes();
        out.extend([self.revision, 0, low, high, count_low, count_high, 0, 0]);
        for entry in &self.entries {
            let [low, high, ..] = (4 + entry.body.len()).to_le_bytes();
            out.extend([entry.kind, entry.flags, low, high]);
            entry.body.write(out);
        }
    }
}

impl AceBody {
    fn read(kind: u8, body: &[u8]) -> Option<Self> {
        if !PLAIN_KINDS.contains(&kind) {
            return Some(Self::Opaque(body.to_vec()));
        }
        let (&mask, rest) = body.split_first_chunk()?;
        Some(Self::Rights {
            mask: u32::from_le_bytes(mask),
            sid: Sid::read(rest)?,
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Rights { sid, .. } => 4 + sid.len(),
            Self::Opaque(bytes) => bytes.len(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Rights { mask, sid } => {
                out.extend(mask.to_le_bytes());
                sid.write(out);
            }
            Self::Opaque(bytes) => out.extend(bytes),
        }
    }
}
