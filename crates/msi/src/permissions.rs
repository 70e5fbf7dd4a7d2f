//! Rights of files and folders: the tables `LockPermissions` and `MsiLockPermissionsEx`.
//!
//! Both set the whole list of a file or folder, not only add to it.

use wincimg_registry::Presence;
use wincimg_registry::security::{SecurityDescriptor, control};
use wincimg_windows::access::{
    AccessAccount, AccessChange, AccessEdit, AccountRights, DescriptorEdit, InheritanceMode,
};
use wincimg_windows::path::ImagePath;

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::session::Session;

/// The tables.
pub(crate) const TABLES: [&str; 2] = ["LockPermissions", "MsiLockPermissionsEx"];

/// Kind of an entry that allows.
const ALLOWS: u8 = 0;

impl Session<'_> {
    /// The rights of a table.
    pub(crate) fn permissions(
        &mut self,
        table: &str,
        plan: &Builder,
    ) -> Result<Vec<AccessChange>, MsiError> {
        let mut changes: Vec<AccessChange> = Vec::new();
        let database = self.database;
        for row in database.rows(table) {
            let Some((path, is_folder)) = self.locked(&row, plan)? else {
                continue;
            };
            let own = if table == TABLES[0] {
                let is_first = changes.iter().all(|change| *change.path() != path);
                self.of_user(&row, &path, is_folder, is_first)?
            } else if self.is_true(row.text("Condition"), table)? {
                let text = self.format(row.text("SDDLText"))?;
                of_descriptor(&text, &path)?
            } else {
                Vec::new()
            };
            changes.extend(own);
        }
        Ok(changes)
    }

    /// The path that a row locks, and whether it is a folder; none if it is not installed.
    fn locked(
        &mut self,
        row: &Row<'_>,
        plan: &Builder,
    ) -> Result<Option<(ImagePath, bool)>, MsiError> {
        let (key, table) = (row.text("LockObject"), row.text("Table"));
        let is_installed = |row: &Row<'_>| self.installed(row.text("Component_")).is_some();
        let (path, is_folder) = match table {
            "File" => {
                let file = self.database.find("File", "File", key).filter(is_installed);
                match (file, self.file(key)?) {
                    (Some(_), Some(path)) => (path, false),
                    _ => return Ok(None),
                }
            }
            "CreateFolder" => {
                let folders = self.database.rows("CreateFolder");
                let mut folders = folders.filter(|it| it.text("Directory_") == key);
                if !folders.any(|it| is_installed(&it)) {
                    return Ok(None);
                }
                (self.folder(key)?, true)
            }
            _ => return Err(unsupported(&format!("{key} of the table {table}"))),
        };
        let is_planned = is_folder || plan.planned(&path).is_some();
        match self.system.entry(&path) {
            Presence::Absent if is_planned => {}
            Presence::Unknown => self.unknown.push(format!("whether {path} exists")),
            _ => return Err(unsupported(&format!("{path}, which the image has"))),
        }
        Ok(Some((path, is_folder)))
    }

    /// A row of `LockPermissions`, one for each user.
    fn of_user(
        &self,
        row: &Row<'_>,
        path: &ImagePath,
        is_folder: bool,
        is_first: bool,
    ) -> Result<Vec<AccessChange>, MsiError> {
        if is_folder {
            // Which of its content inherits them is not documented.
            return Err(unsupported(&format!("the folder {path}")));
        }
        let (domain, user) = (
            self.format(row.text("Domain"))?,
            self.format(row.text("User"))?,
        );
        let name = if domain.is_empty() {
            user
        } else {
            format!(r"{domain}\{user}")
        };
        let account = account(&name)?;
        let mask = row.flags("Permission");
        let rights = AccountRights::of_entry(account, mask, 0);
        let rights = rights.ok_or_else(|| unsupported(&format!("{path}: {name}, {mask:#x}")))?;
        let mut edits = Vec::new();
        if is_first {
            edits.push(DescriptorEdit::Inheritance(InheritanceMode::Remove));
        }
        edits.push(DescriptorEdit::Grant {
            rights,
            replaces: false,
        });
        Ok(changes_of(path, edits))
    }
}

/// The rights of a descriptor in SDDL.
fn of_descriptor(text: &str, path: &ImagePath) -> Result<Vec<AccessChange>, MsiError> {
    let refused = || unsupported(&format!("{path}: {text}"));
    let descriptor: SecurityDescriptor = text.parse().map_err(|_| refused())?;
    let has_more = descriptor.group.is_some() || descriptor.sacl.is_some();
    let Some(list) = descriptor.dacl.filter(|_| !has_more) else {
        return Err(refused());
    };
    let mut edits = Vec::new();
    if descriptor.control & control::DACL_PROTECTED != 0 {
        edits.push(DescriptorEdit::Inheritance(InheritanceMode::Remove));
    }
    for entry in list.entries {
        if entry.kind != ALLOWS || !entry.rest.is_empty() {
            return Err(refused());
        }
        let account = account(&entry.sid.in_numbers())?;
        let rights = AccountRights::of_entry(account, entry.mask, entry.flags);
        edits.push(DescriptorEdit::Grant {
            rights: rights.ok_or_else(refused)?,
            replaces: false,
        });
    }
    if let Some(owner) = descriptor.owner {
        edits.push(DescriptorEdit::Owner(account(&owner.in_numbers())?));
    }
    Ok(changes_of(path, edits))
}

fn changes_of(path: &ImagePath, edits: Vec<DescriptorEdit>) -> Vec<AccessChange> {
    let edits = edits.into_iter().map(|edit| {
        AccessChange::Edit(AccessEdit {
            path: path.clone(),
            edit,
            each_inside: false,
        })
    });
    edits.collect()
}

/// An account by its name or SID. Those of the creator stand for another account below.
fn account(name: &str) -> Result<AccessAccount, MsiError> {
    let account = name.parse().ok().filter(|_| !name.starts_with("S-1-3-"));
    account.ok_or_else(|| unsupported(&format!("the account {name:?}")))
}

fn unsupported(what: &str) -> MsiError {
    MsiError::unsupported(format!("rights of {what}"))
}
