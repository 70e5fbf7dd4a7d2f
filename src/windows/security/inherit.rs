//! What a new subkey inherits from its parent, as the kernel computes it.

use super::ace_flags::{CONTAINER_INHERIT, INHERIT_ONLY, INHERITED, NO_PROPAGATE, OBJECT_INHERIT};
use super::{Ace, Acl, SecurityDescriptor, Sid, control};

/// What the four generic rights mean for a registry key.
const KEY_RIGHTS: [(u32, u32); 4] = [
    (0x8000_0000, 0x2_0019),
    (0x4000_0000, 0x2_0006),
    (0x2000_0000, 0x2_0039),
    (0x1000_0000, 0xF_003F),
];

impl SecurityDescriptor {
    /// The descriptor of a registry key whose creator names none, below a key with this one.
    ///
    /// An entry with generic rights, or for the creator, splits: one with its meaning for the key
    /// itself, one that passes on as it is. What the list already grants is not granted twice.
    #[must_use]
    pub fn inherited_by_key(&self, owner: &Sid, group: &Sid) -> Self {
        let mut entries: Vec<Ace> = Vec::new();
        for parent in self.dacl.iter().flat_map(|list| &list.entries) {
            if parent.flags & CONTAINER_INHERIT == 0 {
                continue;
            }
            let passed_on = match parent.flags & NO_PROPAGATE {
                0 => parent.flags & (OBJECT_INHERIT | CONTAINER_INHERIT),
                _ => 0,
            };
            let (mask, sid) = effective(parent, owner, group);
            let granted = entries.iter().any(|entry| {
                entry.flags & INHERIT_ONLY == 0
                    && entry.kind == parent.kind
                    && (entry.mask, &entry.sid, &entry.rest) == (mask, sid, &parent.rest)
            });
            let splits = (parent.mask, &parent.sid) != (mask, sid);
            if !granted {
                let flags = if splits { 0 } else { passed_on };
                entries.push(Ace {
                    kind: parent.kind,
                    flags: INHERITED | flags,
                    mask,
                    sid: sid.clone(),
                    rest: parent.rest.clone(),
                });
            }
            if passed_on != 0 && (splits || granted) {
                entries.push(Ace {
                    flags: INHERITED | INHERIT_ONLY | passed_on,
                    ..parent.clone()
                });
            }
        }
        Self {
            control: control::SELF_RELATIVE
                | control::DACL_PRESENT
                | control::DACL_AUTO_INHERITED
                | control::SACL_PRESENT
                | control::SACL_AUTO_INHERITED,
            owner: Some(owner.clone()),
            group: Some(group.clone()),
            sacl: Some(Acl {
                revision: 2,
                entries: Vec::new(),
            }),
            dacl: Some(Acl {
                revision: 2,
                entries,
            }),
        }
    }
}

/// The rights that an entry means on the key that inherits it, and who has them.
fn effective<'a>(entry: &'a Ace, owner: &'a Sid, group: &'a Sid) -> (u32, &'a Sid) {
    let mask = KEY_RIGHTS
        .iter()
        .filter(|(generic, _)| entry.mask & generic != 0)
        .fold(entry.mask & 0x0FFF_FFFF, |mask, (_, rights)| mask | rights);
    let sid = if entry.sid.is_creator_owner() {
        owner
    } else if entry.sid.is_creator_group() {
        group
    } else {
        &entry.sid
    };
    (mask, sid)
}
