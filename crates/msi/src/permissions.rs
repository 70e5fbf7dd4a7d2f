//! Rights of files, folders, registry keys and services: the tables `LockPermissions` and
//! `MsiLockPermissionsEx`.
//!
//! Both set the whole list of an object. Microsoft's page on `LockPermissions` gives full control
//! to the local system, and lets what is created in a folder or below a key have access as its
//! container.

use wincimg_registry::security::{
    Ace, Acl, ChildKind, DescriptorLayout, SecurityDescriptor, Sid, ace_flags, control,
};
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit};
use wincimg_windows::access::{AccessAccount, AccessChange, AccessEdit, DescriptorEdit};
use wincimg_windows::path::ImagePath;

use super::builder::Builder;
use super::database::Row;
use super::error::MsiError;
use super::registry::child;
use super::services::service_key;
use super::session::Session;

/// The tables.
pub(crate) const TABLES: [&str; 2] = ["LockPermissions", "MsiLockPermissionsEx"];

/// Kinds of an entry that allows, and of one that denies.
const KINDS: [u8; 2] = [0, 1];

const GENERIC_READ: u32 = 0x8000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;

/// The generic rights to a service: "Service Security and Access Rights".
const SERVICE_RIGHTS: [(u32, u32); 4] = [
    (GENERIC_READ, 0x2_008D),
    (0x4000_0000, 0x2_0002),
    (0x2000_0000, 0x2_0170),
    (GENERIC_ALL, 0xF_01FF),
];

/// An object with its rights.
pub(crate) struct Lock {
    object: LockObject,
    security: SecurityDescriptor,
}

#[derive(PartialEq, Eq)]
enum LockObject {
    File(ImagePath),
    Folder(ImagePath),
    Key(KeyPath),
    /// The key of a service.
    Service(KeyPath),
}

impl std::fmt::Display for LockObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.fmt(f),
            Self::Folder(path) => write!(f, "the folder {path}"),
            Self::Key(key) => key.fmt(f),
            Self::Service(key) => write!(f, "the service {key}"),
        }
    }
}

impl LockObject {
    /// The rights with specific ones in place of generic ones.
    fn specific(&self, mask: u32) -> u32 {
        match self {
            Self::File(_) => ChildKind::File.specific(mask),
            Self::Folder(_) => ChildKind::Folder.specific(mask),
            Self::Key(_) => ChildKind::Key.specific(mask),
            Self::Service(_) => {
                let given = SERVICE_RIGHTS.iter().filter(|(bit, _)| mask & bit != 0);
                given.fold(mask & 0x0FFF_FFFF, |mask, (_, rights)| mask | rights)
            }
        }
    }

    /// An entry for the object and what is created in it.
    fn entry(&self, sid: Sid, mask: u32) -> Ace {
        let flags = match self {
            Self::File(_) | Self::Service(_) => 0,
            Self::Folder(_) => ace_flags::OBJECT_INHERIT | ace_flags::CONTAINER_INHERIT,
            Self::Key(_) => ace_flags::CONTAINER_INHERIT,
        };
        Ace {
            kind: KINDS[0],
            flags,
            mask: self.specific(mask),
            sid,
            rest: Vec::new(),
        }
    }

    /// A descriptor in SDDL, with `<DOMAIN\NAME>` in place of accounts.
    fn security(&self, text: &str) -> Result<SecurityDescriptor, MsiError> {
        let refused = || unsupported(&format!("{self}: {text}"));
        let mut sddl = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('<') {
            let (name, after) = after.split_once('>').ok_or_else(refused)?;
            sddl.push_str(before);
            sddl.push_str(&account(name)?.in_numbers());
            rest = after;
        }
        sddl.push_str(rest);
        let mut security: SecurityDescriptor = sddl.parse().map_err(|_| refused())?;
        let Some(list) = security.dacl.as_mut().filter(|_| security.sacl.is_none()) else {
            return Err(refused());
        };
        for entry in &mut list.entries {
            if !KINDS.contains(&entry.kind) || !entry.rest.is_empty() {
                return Err(refused());
            }
            entry.mask = self.specific(entry.mask);
        }
        Ok(security)
    }
}

impl Lock {
    /// Adds the rights to a plan.
    pub(crate) fn apply(self, plan: &mut Builder) -> Result<(), MsiError> {
        match self.object {
            LockObject::File(path) | LockObject::Folder(path) => {
                plan.rest.access.push(AccessChange::Edit(AccessEdit {
                    path,
                    edit: DescriptorEdit::Replace(self.security),
                    each_inside: false,
                }));
                Ok(())
            }
            LockObject::Key(key) => plan.edit(RegistryEdit::SetSecurity {
                key,
                security: self.security,
            }),
            LockObject::Service(key) => {
                let key = child(&key, "Security")?;
                let system = SecurityDescriptor {
                    control: control::SELF_RELATIVE,
                    owner: Some(Sid::local_system()),
                    group: Some(Sid::local_system()),
                    ..SecurityDescriptor::default()
                };
                let security = system.replaced_by(&self.security);
                let bytes = security.to_bytes(DescriptorLayout::ListsFirst);
                plan.set(&key, "Security", RegistryData::binary(bytes))
            }
        }
    }
}

impl Session<'_> {
    /// Refuses both tables in one package, as Windows Installer does.
    pub(crate) fn check_permissions(&self) -> Result<(), MsiError> {
        let mut tables = TABLES.iter();
        if tables.all(|table| self.database.has_rows(table)) {
            let why = "the package has both LockPermissions and MsiLockPermissionsEx (error 1941)";
            return Err(MsiError::Fails(why.to_owned()));
        }
        Ok(())
    }

    /// The rights of a table.
    pub(crate) fn permissions(
        &mut self,
        table: &str,
        plan: &Builder,
    ) -> Result<Vec<Lock>, MsiError> {
        let mut locks: Vec<Lock> = Vec::new();
        for row in self.database.rows(table) {
            let Some(object) = self.locked(&row, plan)? else {
                continue;
            };
            let known = locks.iter_mut().find(|lock| lock.object == object);
            if table == TABLES[0] {
                let entry = self.of_user(&row, &object)?;
                if let Some(lock) = known {
                    if let Some(list) = &mut lock.security.dacl {
                        add(&mut list.entries, entry);
                    }
                } else {
                    let mut entries = vec![object.entry(Sid::local_system(), GENERIC_ALL)];
                    add(&mut entries, entry);
                    let security = protected(entries);
                    locks.push(Lock { object, security });
                }
            } else if self.is_true(row.text("Condition"), table)? {
                if known.is_some() {
                    let why = format!("{object} has several rights (error 1942)");
                    return Err(MsiError::Fails(why));
                }
                let security = object.security(&self.format(row.text("SDDLText"))?)?;
                locks.push(Lock { object, security });
            }
        }
        Ok(locks)
    }

    /// The object that a row locks; none if it is not installed.
    fn locked(&mut self, row: &Row<'_>, plan: &Builder) -> Result<Option<LockObject>, MsiError> {
        let (key, table) = (row.text("LockObject"), row.text("Table"));
        let column = match table {
            "CreateFolder" => "Directory_",
            "File" | "Registry" | "ServiceInstall" => table,
            _ => return Err(unsupported(&format!("{key} of the table {table}"))),
        };
        let mut rows = self
            .database
            .rows(table)
            .filter(|it| it.text(column) == key);
        let Some(own) = rows.find(|it| self.installed(it.text("Component_")).is_some()) else {
            return Ok(None);
        };
        let (object, found) = match table {
            "File" => {
                let path = self.file(key)?;
                let path = path.filter(|path| plan.planned(path).is_some());
                return Ok(path.map(LockObject::File));
            }
            "CreateFolder" => {
                let path = self.folder(key)?;
                let found = self.system.entry(&path).map(drop);
                (LockObject::Folder(path), found)
            }
            "Registry" => {
                let key = self.key_and_name(&own)?.map(|(key, _)| key);
                let is_planned =
                    |key: &KeyPath| plan.rest.registry.iter().any(|it| it.key() == key);
                let Some(key) = key.filter(is_planned) else {
                    return Ok(None);
                };
                let found = self.system.key(&key);
                (LockObject::Key(key), found)
            }
            _ => {
                let name = self.format(own.text("Name"))?;
                let is_planned = plan.rest.services.contains(&name);
                let key = is_planned.then(|| service_key(&name)).transpose()?;
                return Ok(key.map(LockObject::Service));
            }
        };
        match self.known(found, || format!("whether {object} exists")) {
            None => Ok(Some(object)),
            // What is in it, or below it, may inherit them or not.
            Some(()) => Err(unsupported(&format!("{object}, which the image has"))),
        }
    }

    /// An entry of `LockPermissions`.
    fn of_user(&self, row: &Row<'_>, object: &LockObject) -> Result<Ace, MsiError> {
        let domain = self.format(row.text("Domain"))?;
        let user = self.format(row.text("User"))?;
        if user.is_empty() {
            let account = row.text("User");
            let why =
                format!("{object}: the account {account} is empty: set its property on the line");
            return Err(unsupported(&why));
        }
        let name = if domain.is_empty() {
            user
        } else {
            format!(r"{domain}\{user}")
        };
        let mask = row.number("Permission").map(i32::cast_unsigned);
        match mask.filter(|mask| mask & GENERIC_READ == 0) {
            Some(mask) => Ok(object.entry(account(&name)?, mask)),
            // Microsoft: the one is reserved, the other fails.
            None => Err(unsupported(&format!(
                "{object}: {name} with {}",
                mask.map_or("no value", |_| "GENERIC_READ")
            ))),
        }
    }
}

/// A protected list.
fn protected(entries: Vec<Ace>) -> SecurityDescriptor {
    SecurityDescriptor {
        control: control::SELF_RELATIVE | control::DACL_PRESENT | control::DACL_PROTECTED,
        dacl: Some(Acl {
            revision: 2,
            entries,
        }),
        ..SecurityDescriptor::default()
    }
}

/// Adds an entry, or its rights to those of the account.
fn add(entries: &mut Vec<Ace>, entry: Ace) {
    match entries.iter_mut().find(|own| own.sid == entry.sid) {
        Some(own) => own.mask |= entry.mask,
        None => entries.push(entry),
    }
}

/// An account by its name or SID.
fn account(name: &str) -> Result<Sid, MsiError> {
    let account = name.parse::<AccessAccount>();
    let account = account.map_err(|_| unsupported(&format!("the account {name:?}")))?;
    Ok(account.sid())
}

fn unsupported(what: &str) -> MsiError {
    MsiError::unsupported(format!("rights of {what}"))
}
