//! Inheritance of a new file, folder or key from its parent (MS-DTYP 2.5.3.4, "Algorithm for
//! Creating a Security Descriptor").

use super::ace_flags::{CONTAINER_INHERIT, INHERIT_ONLY, INHERITED, NO_PROPAGATE, OBJECT_INHERIT};
use super::{Ace, Acl, SecurityDescriptor, Sid, control};

/// Kind of a new child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildKind {
    /// A registry key.
    Key,
    /// A folder.
    Folder,
    /// A file.
    File,
}

/// The four generic rights: to read, to write, to execute, all.
const GENERIC: [u32; 4] = [0x8000_0000, 0x4000_0000, 0x2000_0000, 0x1000_0000];

/// Flags of audited accesses.
const AUDIT_FLAGS: u8 = 0xC0;

impl ChildKind {
    /// Specific rights of the generic ones.
    const fn rights(self) -> [u32; 4] {
        match self {
            Self::Key => [0x2_0019, 0x2_0006, 0x2_0039, 0xF_003F],
            Self::Folder | Self::File => [0x12_0089, 0x12_0116, 0x12_00A0, 0x1F_01FF],
        }
    }

    /// Rights with the specific ones in place of the generic ones.
    #[must_use]
    pub fn specific(self, mask: u32) -> u32 {
        let rights = GENERIC.iter().zip(self.rights());
        rights
            .filter(|(generic, _)| mask & **generic != 0)
            .fold(mask & 0x0FFF_FFFF, |mask, (_, rights)| mask | rights)
    }
}

impl SecurityDescriptor {
    /// Descriptor of a new child that is created without one.
    ///
    /// An entry with generic rights, or for the creator, is split: one with the specific rights for
    /// the child itself, one that is passed on unchanged. Rights that the list grants already are
    /// not repeated. If nothing is inherited, the default list of a system process is used.
    #[must_use]
    pub fn inherited_by(&self, child: ChildKind, owner: &Sid, group: &Sid) -> Self {
        let audited = inherited(self.sacl.as_ref(), child, owner, group);
        let mut granted = self.inherited_entries(child, owner, group);
        let mut control = control::SELF_RELATIVE | control::DACL_PRESENT;
        if granted.is_empty() {
            granted = by_default(child);
        } else {
            control |= control::DACL_AUTO_INHERITED;
        }
        // The kernel gives every key a list, even if it is empty.
        let has_audited = child == ChildKind::Key || !audited.is_empty();
        if has_audited {
            control |= control::SACL_PRESENT | control::SACL_AUTO_INHERITED;
        }
        let list = |entries| Acl {
            revision: 2,
            entries,
        };
        Self {
            control,
            owner: Some(owner.clone()),
            group: Some(group.clone()),
            sacl: has_audited.then(|| list(audited)),
            dacl: Some(list(granted)),
        }
    }

    /// Entries of the DACL that a child with this owner and group inherits.
    #[must_use]
    pub fn inherited_entries(&self, child: ChildKind, owner: &Sid, group: &Sid) -> Vec<Ace> {
        inherited(self.dacl.as_ref(), child, owner, group)
    }
}

fn inherited(list: Option<&Acl>, child: ChildKind, owner: &Sid, group: &Sid) -> Vec<Ace> {
    let mut inheriting = InheritedAcl {
        child,
        owner,
        group,
        entries: Vec::new(),
    };
    for parent in list.iter().flat_map(|list| &list.entries) {
        inheriting.take(parent);
    }
    inheriting.entries
}

/// The entries that a child has inherited so far.
struct InheritedAcl<'a> {
    child: ChildKind,
    owner: &'a Sid,
    group: &'a Sid,
    entries: Vec<Ace>,
}

impl InheritedAcl<'_> {
    fn take(&mut self, parent: &Ace) {
        let is_last = self.child == ChildKind::File || parent.flags & NO_PROPAGATE != 0;
        let passed_on = if is_last {
            0
        } else {
            parent.flags & (OBJECT_INHERIT | CONTAINER_INHERIT)
        };
        let is_for_child = match self.child {
            ChildKind::File => parent.flags & OBJECT_INHERIT != 0,
            ChildKind::Folder | ChildKind::Key => parent.flags & CONTAINER_INHERIT != 0,
        };
        if !is_for_child {
            if passed_on != 0 {
                self.pass_on(parent, passed_on);
            }
            return;
        }
        let (mask, sid) = self.effective(parent);
        let is_granted = self.entries.iter().any(|entry| {
            entry.flags & INHERIT_ONLY == 0
                && entry.kind == parent.kind
                && (entry.mask, &entry.sid, &entry.rest) == (mask, &sid, &parent.rest)
        });
        let splits = (parent.mask, &parent.sid) != (mask, &sid);
        if !is_granted {
            let flags = if splits { 0 } else { passed_on };
            self.entries.push(Ace {
                flags: INHERITED | flags | parent.flags & AUDIT_FLAGS,
                mask,
                sid,
                ..parent.clone()
            });
        }
        if passed_on != 0 && (splits || is_granted) {
            self.pass_on(parent, passed_on);
        }
    }

    /// Adds an entry for the child's own children.
    fn pass_on(&mut self, parent: &Ace, flags: u8) {
        self.entries.push(Ace {
            flags: INHERITED | INHERIT_ONLY | flags | parent.flags & AUDIT_FLAGS,
            ..parent.clone()
        });
    }

    /// The rights of an entry on the child, and the account that has them.
    fn effective(&self, entry: &Ace) -> (u32, Sid) {
        let mask = self.child.specific(entry.mask);
        let sid = if entry.sid.is_creator_owner() {
            self.owner
        } else if entry.sid.is_creator_group() {
            self.group
        } else {
            &entry.sid
        };
        (mask, sid.clone())
    }
}

/// The default list of the system's processes: all for the system, administrators read.
fn by_default(child: ChildKind) -> Vec<Ace> {
    let [read, _, execute, all] = child.rights();
    let grants = [
        (Sid::local_system(), all),
        (Sid::administrators(), read | execute),
    ];
    let entry = |(sid, mask)| Ace {
        kind: 0,
        flags: 0,
        mask,
        sid,
        rest: Vec::new(),
    };
    grants.map(entry).into()
}
