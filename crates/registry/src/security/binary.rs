//! The self-relative form: a header of 20 bytes with offsets to two identifiers and two lists.

use super::{Ace, Acl, SecurityDescriptor, Sid, control};

/// Order of a descriptor's parts after its header. Windows reads any; a writer uses that of the
/// original to be the same byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorLayout {
    /// Lists, owner, group: the order of the kernel for new objects.
    ListsFirst,
    /// Owner, group, lists: the order of Windows' conversion from SDDL.
    OwnerFirst,
}

const HEADER: usize = 20;

/// The kinds of entries with the layout of [`Ace`]; those for objects of a directory service, which
/// neither files nor keys have, differ.
const KINDS: [u8; 12] = [0, 1, 2, 3, 9, 0x0A, 0x0D, 0x0E, 0x11, 0x12, 0x13, 0x14];

/// Error of parsing a security descriptor in its self-relative form, or one with entries of a
/// directory service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid security descriptor")]
pub struct UnreadableDescriptor;

impl SecurityDescriptor {
    /// Reads the self-relative form, in any layout.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableDescriptor> {
        Self::read(bytes).ok_or(UnreadableDescriptor)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let control = u16::from_le_bytes([header[2], header[3]]);
        if header[0] != 1 || control & control::SELF_RELATIVE == 0 {
            return None;
        }
        let part = |field: usize| {
            let offset = header[field..]
                .first_chunk()
                .map(|word| u32::from_le_bytes(*word))?;
            let offset = usize::try_from(offset).ok()?;
            Some(if offset == 0 {
                None
            } else {
                Some(bytes.get(offset..)?)
            })
        };
        let sid = |field| part(field)?.map_or(Some(None), |bytes| Sid::read(bytes).map(Some));
        let list = |field, bit| match part(field)? {
            Some(bytes) if control & bit != 0 => Acl::read(bytes).map(Some),
            _ => Some(None),
        };
        Some(Self {
            control,
            owner: sid(4)?,
            group: sid(8)?,
            sacl: list(12, control::SACL_PRESENT)?,
            dacl: list(16, control::DACL_PRESENT)?,
        })
    }

    /// The self-relative form.
    pub fn to_bytes(&self, layout: DescriptorLayout) -> Vec<u8> {
        let mut out = vec![0; HEADER];
        out[0] = 1;
        out[2..4].copy_from_slice(&(self.control | control::SELF_RELATIVE).to_le_bytes());
        if layout == DescriptorLayout::ListsFirst {
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
        if layout == DescriptorLayout::OwnerFirst {
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

/// Sets an offset of the header to the position of the next part.
fn point(out: &mut [u8], field: usize) {
    let [a, b, c, d, ..] = out.len().to_le_bytes();
    out[field..field + 4].copy_from_slice(&[a, b, c, d]);
}

impl Acl {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[
            revision @ (2 | 4),
            _,
            low,
            high,
            count_low,
            count_high,
            _,
            _,
        ] = bytes.first_chunk()?
        else {
            return None;
        };
        let size = usize::from(u16::from_le_bytes([low, high]));
        let mut rest = bytes.get(8..size)?;
        let entries = (0..u16::from_le_bytes([count_low, count_high])).map(|_| {
            let (entry, after) = Ace::read(rest)?;
            rest = after;
            Some(entry)
        });
        Some(Self {
            revision,
            entries: entries.collect::<Option<_>>()?,
        })
    }

    /// Length of the list in bytes.
    pub(super) fn len(&self) -> usize {
        let entries = self.entries.iter().map(Ace::len);
        8 + entries.sum::<usize>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let [count_low, count_high, ..] = self.entries.len().to_le_bytes();
        let [low, high, ..] = self.len().to_le_bytes();
        out.extend([self.revision, 0, low, high, count_low, count_high, 0, 0]);
        for entry in &self.entries {
            let [low, high, ..] = entry.len().to_le_bytes();
            out.extend([entry.kind, entry.flags, low, high]);
            out.extend(entry.mask.to_le_bytes());
            entry.sid.write(out);
            out.extend(&entry.rest);
        }
    }
}

impl Ace {
    /// The entry at the start of some bytes, and the bytes after it.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let &[kind, flags, low, high, a, b, c, d] = bytes.first_chunk()?;
        let size = usize::from(u16::from_le_bytes([low, high]));
        let (entry, after) = bytes.split_at_checked(size)?;
        let body = entry.get(8..)?;
        let sid = Sid::read(body).filter(|_| KINDS.contains(&kind))?;
        let rest = body[sid.len()..].to_vec();
        let mask = u32::from_le_bytes([a, b, c, d]);
        Some((
            Self {
                kind,
                flags,
                mask,
                sid,
                rest,
            },
            after,
        ))
    }

    fn len(&self) -> usize {
        8 + self.sid.len() + self.rest.len()
    }
}
