//! Security descriptors in the self-relative form of files' metadata and hives, and in the text
//! form (SDDL).
//!
//! Only what an image needs: descriptors are read, inherited and written.

mod binary;
mod inherit;
mod sddl;
mod sid;
mod text;

pub use binary::{DescriptorLayout, UnreadableDescriptor};
pub use inherit::ChildKind;
pub use sddl::SddlError;
pub use sid::Sid;

/// Bits of [`SecurityDescriptor::control`].
pub mod control {
    /// A DACL is present; without an offset it is null, which allows all access.
    pub const DACL_PRESENT: u16 = 0x0004;
    /// A SACL is present.
    pub const SACL_PRESENT: u16 = 0x0010;
    /// Inheritance to the DACL was asked for (SDDL `AR`).
    pub const DACL_INHERIT_REQUIRED: u16 = 0x0100;
    /// The DACL has inherited entries and follows its parent (SDDL `AI`).
    pub const DACL_AUTO_INHERITED: u16 = 0x0400;
    /// The SACL follows its parent.
    pub const SACL_AUTO_INHERITED: u16 = 0x0800;
    /// The DACL does not take entries from its parent (SDDL `P`).
    pub const DACL_PROTECTED: u16 = 0x1000;
    /// Offsets in place of pointers: every stored descriptor.
    pub const SELF_RELATIVE: u16 = 0x8000;
}

/// Bits of an entry's flags.
pub mod ace_flags {
    /// Files in a directory inherit the entry (`OI`).
    pub const OBJECT_INHERIT: u8 = 0x01;
    /// Subdirectories and subkeys inherit the entry (`CI`).
    pub const CONTAINER_INHERIT: u8 = 0x02;
    /// Those that inherit the entry do not pass it on (`NP`).
    pub const NO_PROPAGATE: u8 = 0x04;
    /// The entry is for those that inherit it, not for its own object (`IO`).
    pub const INHERIT_ONLY: u8 = 0x08;
    /// The entry was inherited (`ID`).
    pub const INHERITED: u8 = 0x10;
}

/// Owner and access rights of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SecurityDescriptor {
    /// Bits of [`control`].
    pub control: u16,
    /// The owner.
    pub owner: Option<Sid>,
    /// The primary group.
    pub group: Option<Sid>,
    /// Audited accesses.
    pub sacl: Option<Acl>,
    /// Allowed and denied accesses.
    pub dacl: Option<Acl>,
}

impl SecurityDescriptor {
    /// The descriptor with owner, group and list of another, as far as that has them. It keeps what
    /// it inherits, unless the other is protected.
    #[must_use]
    pub fn replaced_by(&self, other: &Self) -> Self {
        let mut after = self.clone();
        after.owner = other.owner.clone().or(after.owner);
        after.group = other.group.clone().or(after.group);
        let Some(list) = &other.dacl else {
            return after;
        };
        let of_list = control::DACL_PROTECTED | control::DACL_AUTO_INHERITED;
        let mut entries = list.entries.clone();
        if other.control & control::DACL_PROTECTED != 0 {
            after.control &= !of_list;
        } else {
            after.control &= !control::DACL_PROTECTED;
            let inherited = self.dacl.iter().flat_map(|list| &list.entries);
            let inherited = inherited.filter(|it| it.flags & ace_flags::INHERITED != 0);
            entries.extend(inherited.cloned());
        }
        after.control |= other.control & of_list | control::DACL_PRESENT;
        after.dacl = Some(Acl {
            revision: list.revision,
            entries,
        });
        after
    }
}

impl serde::Serialize for SecurityDescriptor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A list of entries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acl {
    /// 2 for entries that grant rights to an account.
    pub revision: u8,
    /// The entries in order.
    pub entries: Vec<Ace>,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ace {
    /// 0 allows, 1 denies, 2 audits, 9 allows on a condition, 0x11 is a mandatory label.
    pub kind: u8,
    /// Bits of [`ace_flags`], and of auditing.
    pub flags: u8,
    /// The rights as bits.
    pub mask: u32,
    /// The account or group that has them.
    pub sid: Sid,
    /// Additional data of some kinds, such as a condition.
    pub rest: Vec<u8>,
}

/// The descriptor that a directory of a layer gets, in SDDL.
pub const DIRECTORY_SDDL: &str = "O:BAG:SYD:(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;;FA;;;BA)(A;OICIIO;GA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CI;DC;;;BU)";
/// The descriptor that a file of a layer gets, in SDDL.
pub const FILE_SDDL: &str = "O:BAG:SYD:(A;;FA;;;BA)(A;;FA;;;SY)(A;;0x1200a9;;;BU)";

/// The bytes of [`DIRECTORY_SDDL`] or [`FILE_SDDL`], as `MSWINDOWS.rawsd` holds them before base64. The
/// texts are validated by the tests of this module; an invalid one would yield no bytes.
pub fn layer_descriptor(sddl: &str) -> Vec<u8> {
    sddl.parse::<SecurityDescriptor>()
        .map(|descriptor| descriptor.to_bytes(DescriptorLayout::OwnerFirst))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
