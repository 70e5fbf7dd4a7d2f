//! The self-relative form: a header of 20 bytes with offsets to two identifiers and two lists.

use super::{Ace, Acl, SecurityDescriptor, control};

/// The order in which a descriptor's parts follow its header. Windows reads any; to be the same
/// byte for byte, a writer must choose the one that the original's writer chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Lists, owner, group: what the kernel writes for the objects that it creates.
    ListsFirst,
    /// Owner, group, lists: what Windows' conversion from SDDL writes.
    OwnerFirst,
}

const HEADER: usize = 20;

impl SecurityDescriptor {
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

impl Acl {
    /// How many bytes the list takes.
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
        }
    }
}

impl Ace {
    fn len(&self) -> usize {
        8 + self.sid.len()
    }
}
