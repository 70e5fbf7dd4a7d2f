//! Access to files of an image: accounts, rights, and grants in a security descriptor as `icacls`
//! makes them.

mod account;
mod edit;
mod icacls;

use std::fmt;
use std::str::FromStr;

pub use account::{AccessAccount, AccountError};
pub use edit::{
    AccessChange, AccessEdit, DescriptorEdit, InheritanceMode, RemovedEntries, UnsupportedEdit,
    with_inherited,
};
pub use icacls::AccountRights;
use serde::Serialize;
use wincimg_common::Named;
use wincimg_registry::security::{Ace, Acl, SecurityDescriptor, Sid, ace_flags, control};

use super::invalid::InvalidText;
use super::path::ImagePath;

/// Path of `icacls` in Windows.
pub const ICACLS: &str = r"C:\Windows\System32\icacls.exe";

/// The kind of an entry that allows, and of one that denies.
const ALLOWS: u8 = 0;
const DENIES: u8 = 1;

/// Rights on a file or folder, and on its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// The file or folder.
    pub path: ImagePath,
    /// Accounts and their rights.
    pub grants: Vec<Grant>,
    /// Scope within a folder.
    pub inherit: Inherit,
}

/// The rights that an account gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The account or group.
    pub account: AccessAccount,
    /// The rights.
    pub rights: Rights,
}

/// Rights of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    /// Full control, including permissions.
    Full,
    /// To read, write, execute and delete.
    Modify,
    /// To read and execute.
    ReadExecute,
    /// To read.
    Read,
    /// To write.
    Write,
}

/// Scope of rights within a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "snake_case")]
pub enum Inherit {
    /// The folder and all its contents.
    #[default]
    All,
    /// The folder and the folders in it.
    Folders,
    /// The folder and the files in it, at any depth.
    Files,
    /// The folder alone.
    None,
}

impl Rights {
    /// The bits that `icacls` sets for its letters.
    const fn mask(self) -> u32 {
        match self {
            Self::Full => 0x1F_01FF,
            Self::Modify => 0x13_01BF,
            Self::ReadExecute => 0x12_00A9,
            Self::Read => 0x12_0089,
            Self::Write => 0x10_0116,
        }
    }

    const fn letters(self) -> &'static str {
        match self {
            Self::Full => "F",
            Self::Modify => "M",
            Self::ReadExecute => "RX",
            Self::Read => "R",
            Self::Write => "W",
        }
    }
}

impl FromStr for Rights {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or_else(|| InvalidText::new("rights", text, Self::NAMES))
    }
}

impl Inherit {
    const fn flags(self) -> u8 {
        match self {
            Self::All => ace_flags::OBJECT_INHERIT | ace_flags::CONTAINER_INHERIT,
            Self::Folders => ace_flags::CONTAINER_INHERIT,
            Self::Files => ace_flags::OBJECT_INHERIT,
            Self::None => 0,
        }
    }

    const fn letters(self) -> &'static str {
        match self {
            Self::All => "(OI)(CI)",
            Self::Folders => "(CI)",
            Self::Files => "(OI)",
            Self::None => "",
        }
    }
}

impl FromStr for Inherit {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or_else(|| InvalidText::new("inherit", text, Self::NAMES))
    }
}

impl Access {
    /// Arguments of `icacls`. Accounts are SIDs, which are the same in every language and the only
    /// form that Windows is known to resolve correctly for the accounts of containers.
    pub fn icacls(&self) -> Vec<String> {
        let mut words = vec![self.path.to_string(), "/grant".to_owned()];
        let inherit = self.inherit.letters();
        words.extend(self.grants.iter().map(|grant| {
            let (sid, rights) = (grant.account.sid().in_numbers(), grant.rights.letters());
            format!("*{sid}:{inherit}{rights}")
        }));
        words
    }

    /// Adds the grants to the descriptor of the file or folder.
    #[must_use]
    pub fn grant_to(&self, descriptor: &SecurityDescriptor, is_folder: bool) -> SecurityDescriptor {
        let flags = if is_folder { self.inherit.flags() } else { 0 };
        self.entries(descriptor, flags)
    }

    /// Returns true if it is for files in the folder, too.
    pub fn applies_to_files(&self) -> bool {
        self.inherit.flags() & ace_flags::OBJECT_INHERIT != 0
    }

    /// Adds the inherited grants to the descriptor of a file or folder below; none if it inherits
    /// none.
    pub fn inherited_descriptor(
        &self,
        descriptor: &SecurityDescriptor,
        is_folder: bool,
    ) -> Option<SecurityDescriptor> {
        use ace_flags::{CONTAINER_INHERIT, INHERIT_ONLY, INHERITED, OBJECT_INHERIT};

        let flags = self.inherit.flags();
        if descriptor.control & control::DACL_PROTECTED != 0 {
            return None;
        }
        let own = match (is_folder, flags & OBJECT_INHERIT != 0) {
            (true, _) if flags & CONTAINER_INHERIT != 0 => flags,
            (true, true) => flags | INHERIT_ONLY,
            (false, true) => 0,
            _ => return None,
        };
        Some(self.entries(descriptor, own | INHERITED))
    }

    /// Adds ACEs in canonical order: explicit before inherited ones, denying before allowing ones,
    /// those of the nearest parent before the others.
    fn entries(&self, descriptor: &SecurityDescriptor, flags: u8) -> SecurityDescriptor {
        let mut descriptor = descriptor.clone();
        // A null DACL gives everyone full control.
        if descriptor.dacl.is_none() && descriptor.control & control::DACL_PRESENT != 0 {
            return descriptor;
        }
        descriptor.control |= control::DACL_PRESENT;
        let list = descriptor.dacl.get_or_insert_with(|| Acl {
            revision: 2,
            entries: Vec::new(),
        });
        for grant in &self.grants {
            let (mask, sid) = (grant.rights.mask(), grant.account.sid());
            add(&mut list.entries, ALLOWS, flags, mask, sid);
        }
        descriptor
    }
}

/// Adds an entry in its place, or its rights to those of an entry that differs in nothing else.
fn add(entries: &mut Vec<Ace>, kind: u8, flags: u8, mask: u32, sid: Sid) {
    let is_same = |entry: &&mut Ace| {
        entry.kind == kind && entry.flags == flags && entry.sid == sid && entry.rest.is_empty()
    };
    if let Some(entry) = entries.iter_mut().find(is_same) {
        entry.mask |= mask;
        return;
    }
    let of_group = |is_inherited: bool| {
        move |entry: &&Ace| (entry.flags & ace_flags::INHERITED != 0) == is_inherited
    };
    let is_inherited = flags & ace_flags::INHERITED != 0;
    let before = entries.iter().take_while(of_group(false)).count();
    let first = if is_inherited { before } else { 0 };
    let own = entries[first..].iter().take_while(of_group(is_inherited));
    let place = match (kind, is_inherited) {
        (ALLOWS, false) => first + own.count(),
        // After what the nearest parent denies.
        _ => first + own.take_while(|entry| entry.kind != ALLOWS).count(),
    };
    entries.insert(
        place,
        Ace {
            kind,
            flags,
            mask,
            sid,
            rest: Vec::new(),
        },
    );
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path)?;
        for (place, grant) in self.grants.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma} {} {}", grant.account, grant.rights.name())?;
        }
        f.write_str(match self.inherit {
            Inherit::All => "",
            Inherit::Folders => ", with the folders in it",
            Inherit::Files => ", with the files in it",
            Inherit::None => ", without its contents",
        })
    }
}

#[cfg(test)]
mod tests;
