//! Changes of a descriptor other than a plain grant, as `icacls` makes them.
//!
//! An option changes the entries of the object's own; those that it inherits stay as long as they
//! are inherited. What is in a folder gets its inherited entries again when what the folder passes
//! on changes. `icacls` denies what its letters grant, `SYNCHRONIZE` included (Raymond Chen, "I set
//! the same ACL with the GUI and with icacls, yet the results are different", 2019-11-18).

use std::fmt;

use serde::Serialize;
use wincimg_registry::security::{Ace, Acl, SecurityDescriptor, ace_flags, control};

use super::icacls::AccountRights;
use super::{ALLOWS, Access, AccessAccount, DENIES, Grant, add};
use crate::path::ImagePath;

/// Kinds of entries that depend on a condition: one that allows, one that denies.
const ALLOWS_IF: u8 = 9;
const DENIES_IF: u8 = 10;

/// A change of rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AccessChange {
    /// A plain grant, as recipes have them.
    Grant(Access),
    /// Any other change.
    Edit(AccessEdit),
}

/// A change of the descriptor of a file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessEdit {
    /// The file or folder.
    pub path: ImagePath,
    /// The change.
    pub edit: DescriptorEdit,
    /// True if everything in the folder is changed in the same way.
    pub each_inside: bool,
}

/// One option of `icacls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorEdit {
    /// Grants rights.
    Grant {
        /// The rights.
        rights: AccountRights,
        /// True if the account loses what it was granted before.
        replaces: bool,
    },
    /// Denies rights.
    Deny(AccountRights),
    /// Removes the entries of an account.
    Remove {
        /// The account.
        account: AccessAccount,
        /// Which entries.
        entries: RemovedEntries,
    },
    /// Changes what is inherited.
    Inheritance(InheritanceMode),
    /// Leaves only what is inherited.
    Reset,
    /// Sets the owner.
    Owner(AccessAccount),
    /// Sets the list, and the owner and group that the descriptor has.
    Replace(SecurityDescriptor),
}

/// Entries that are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovedEntries {
    /// All.
    All,
    /// Those that allow.
    Granted,
    /// Those that deny.
    Denied,
}

/// Inheritance of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InheritanceMode {
    /// It takes entries from above (`e`).
    Enable,
    /// It takes none, and keeps those that it has as its own (`d`).
    Copy,
    /// It takes none, and loses those that it has (`r`).
    Remove,
}

/// A change whose result depends on what only Windows decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedEdit(&'static str);

impl fmt::Display for AccessChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grant(access) => access.fmt(f),
            Self::Edit(edit) => match &edit.edit {
                DescriptorEdit::Replace(descriptor) => write!(f, "{}: {descriptor}", edit.path),
                _ => edit.path.fmt(f),
            },
        }
    }
}

impl AccessChange {
    /// The change of a file or folder by one option: a plain grant where it is one.
    pub fn new(path: ImagePath, edit: DescriptorEdit, each_inside: bool) -> Self {
        match edit {
            DescriptorEdit::Grant {
                rights,
                replaces: false,
            } if !(each_inside
                || rights.inherit_only
                || rights.no_propagate
                || rights.account.is_creator_owner()) =>
            {
                let grant = |own: &_| Grant {
                    account: rights.account.clone(),
                    rights: *own,
                };
                Self::Grant(Access {
                    path,
                    grants: rights.rights.iter().map(grant).collect(),
                    inherit: rights.inherit,
                })
            }
            edit => Self::Edit(AccessEdit {
                path,
                edit,
                each_inside,
            }),
        }
    }

    /// The file or folder.
    pub fn path(&self) -> &ImagePath {
        match self {
            Self::Grant(access) => &access.path,
            Self::Edit(edit) => &edit.path,
        }
    }

    /// Returns true if it may change files in the folder.
    pub fn applies_to_files(&self) -> bool {
        match self {
            Self::Grant(access) => access.applies_to_files(),
            Self::Edit(edit) => edit.each_inside || edit.edit.is_inherited_by_files(),
        }
    }
}

impl DescriptorEdit {
    /// Returns true if files inherit what it changes.
    fn is_inherited_by_files(&self) -> bool {
        let is_for_files =
            |rights: &AccountRights| rights.flags(true) & ace_flags::OBJECT_INHERIT != 0;
        match self {
            Self::Grant { rights, replaces } => *replaces || is_for_files(rights),
            // It takes away what was granted, for files or not.
            Self::Deny(_) | Self::Remove { .. } | Self::Reset | Self::Replace(_) => true,
            Self::Inheritance(mode) => *mode != InheritanceMode::Copy,
            Self::Owner(_) => false,
        }
    }

    /// Returns true if its result depends on the folder above.
    pub fn takes_from_above(&self) -> bool {
        matches!(
            self,
            Self::Reset | Self::Inheritance(InheritanceMode::Enable)
        )
    }

    /// The changed descriptor of a file or folder, which inherits `inherited` where it takes
    /// entries from above.
    pub fn apply(
        &self,
        descriptor: &SecurityDescriptor,
        inherited: &[Ace],
        is_folder: bool,
    ) -> Result<SecurityDescriptor, UnsupportedEdit> {
        let mut after = descriptor.clone();
        if let Self::Owner(account) = self {
            after.owner = Some(account.sid());
            return Ok(after);
        }
        if let Self::Replace(other) = self {
            return Ok(if is_folder {
                descriptor.replaced_by(other)
            } else {
                descriptor.replaced_by(&of_file(other))
            });
        }
        let no_list = after.dacl.is_none();
        match self {
            Self::Grant { .. } if no_list => return Ok(after),
            Self::Reset => {}
            _ if no_list => {
                let problem = "it has no list of permissions: everyone has full control";
                return Err(UnsupportedEdit(problem));
            }
            _ => {}
        }
        after.control |= control::DACL_PRESENT;
        let list = after.dacl.get_or_insert_with(|| Acl {
            revision: 2,
            entries: Vec::new(),
        });
        let entries = &mut list.entries;
        match self {
            Self::Grant { rights, replaces } => grant(entries, rights, *replaces, is_folder)?,
            Self::Deny(rights) => deny(entries, rights, is_folder)?,
            Self::Remove {
                account,
                entries: which,
            } => {
                let sid = account.sid();
                entries.retain(|it| is_inherited(it) || it.sid != sid || !which.has(it.kind));
            }
            Self::Inheritance(mode) => inherit(entries, &mut after.control, *mode, inherited)?,
            Self::Reset => {
                *entries = inherited.to_vec();
                after.control &= !control::DACL_PROTECTED;
                after.control |= control::DACL_AUTO_INHERITED;
            }
            Self::Owner(_) | Self::Replace(_) => {}
        }
        Ok(after)
    }
}

impl RemovedEntries {
    const fn has(self, kind: u8) -> bool {
        match self {
            Self::All => matches!(kind, ALLOWS | ALLOWS_IF | DENIES | DENIES_IF),
            Self::Granted => matches!(kind, ALLOWS | ALLOWS_IF),
            Self::Denied => matches!(kind, DENIES | DENIES_IF),
        }
    }
}

/// The descriptor of a file in place of that of a folder: a file passes nothing on.
fn of_file(folder: &SecurityDescriptor) -> SecurityDescriptor {
    let mut file = folder.clone();
    if let Some(list) = &mut file.dacl {
        list.entries
            .retain(|it| it.flags & ace_flags::INHERIT_ONLY == 0);
        list.entries.iter_mut().for_each(|it| it.flags = 0);
    }
    file
}

const fn is_inherited(entry: &Ace) -> bool {
    entry.flags & ace_flags::INHERITED != 0
}

/// Grants rights, in place of those that the account was granted before or in addition. Microsoft's
/// page says that `/grant:r` replaces all of them; users report that those with other flags stay.
fn grant(
    entries: &mut Vec<Ace>,
    rights: &AccountRights,
    replaces: bool,
    is_folder: bool,
) -> Result<(), UnsupportedEdit> {
    let (flags, sid) = (rights.flags(is_folder), rights.account.sid());
    if replaces {
        let is_granted = |it: &Ace| !is_inherited(it) && it.kind == ALLOWS && it.sid == sid;
        if entries.iter().any(|it| is_granted(it) && it.flags != flags) {
            return Err(UnsupportedEdit(
                "the account has rights with other inheritance flags, and whether /grant:r replaces \
                 them is unclear",
            ));
        }
        entries.retain(|it| !is_granted(it));
    }
    add(entries, ALLOWS, flags, rights.mask(), sid);
    Ok(())
}

/// Denies rights: the account's own grants lose them.
fn deny(
    entries: &mut Vec<Ace>,
    rights: &AccountRights,
    is_folder: bool,
) -> Result<(), UnsupportedEdit> {
    let (flags, mask, sid) = (rights.flags(is_folder), rights.mask(), rights.account.sid());
    let is_granted =
        |it: &Ace| !is_inherited(it) && it.kind == ALLOWS && it.sid == sid && it.mask & mask != 0;
    if entries.iter().any(|it| is_granted(it) && it.flags != flags) {
        return Err(UnsupportedEdit(
            "the denied rights are granted to the account with other inheritance flags",
        ));
    }
    for entry in entries.iter_mut().filter(|it| is_granted(it)) {
        entry.mask &= !mask;
    }
    entries.retain(|it| is_inherited(it) || it.kind != ALLOWS || it.sid != sid || it.mask != 0);
    add(entries, DENIES, flags, mask, sid);
    Ok(())
}

fn inherit(
    entries: &mut Vec<Ace>,
    control: &mut u16,
    mode: InheritanceMode,
    inherited: &[Ace],
) -> Result<(), UnsupportedEdit> {
    *control |= control::DACL_AUTO_INHERITED;
    match mode {
        InheritanceMode::Enable => {
            *control &= !control::DACL_PROTECTED;
            entries.retain(|it| !is_inherited(it));
            entries.extend_from_slice(inherited);
        }
        InheritanceMode::Copy => {
            let allows = entries
                .iter()
                .any(|it| !is_inherited(it) && it.kind == ALLOWS);
            let denies = entries
                .iter()
                .any(|it| is_inherited(it) && it.kind == DENIES);
            if allows && denies {
                // Copied entries that deny would come after its own that allow.
                return Err(UnsupportedEdit(
                    "it allows by itself, and inherits entries that deny: their order is unclear",
                ));
            }
            *control |= control::DACL_PROTECTED;
            for entry in entries {
                entry.flags &= !ace_flags::INHERITED;
            }
        }
        InheritanceMode::Remove => {
            *control |= control::DACL_PROTECTED;
            entries.retain(|it| !is_inherited(it));
        }
    }
    Ok(())
}

/// A descriptor with other inherited entries; none if it takes none from above.
pub fn with_inherited(
    descriptor: &SecurityDescriptor,
    inherited: Vec<Ace>,
) -> Option<SecurityDescriptor> {
    if descriptor.control & control::DACL_PROTECTED != 0 {
        return None;
    }
    let mut after = descriptor.clone();
    let entries = &mut after.dacl.as_mut()?.entries;
    entries.retain(|it| !is_inherited(it));
    entries.extend(inherited);
    after.control |= control::DACL_AUTO_INHERITED;
    Some(after)
}
