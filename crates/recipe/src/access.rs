//! Rights on files that a recipe grants.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_windows::access::{Access, AccessAccount, AccountError, Grant, Inherit, Rights};
use wincimg_windows::known_folders::is_known_folder;
use wincimg_windows::path::ImagePath;

use super::text::{Field, Text};
use super::{FileSource, Plan, PlannedContent, PlannedEntry, PlannedLayer, Recipe, Result};

/// Rights on a file or folder, in addition to its existing ones.
// Apart from `Access`: layers are the recipe's, and two variables may be the same account.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { path = 'C:\\app\\data', grant = { ContainerUser = \"modify\" } }"
)]
pub(super) struct AccessEntry {
    /// The file or folder.
    path: Field<ImagePath>,
    /// The right of each account: full, modify, `read_execute`, read or write. Accounts:
    /// `ContainerUser`, `ContainerAdministrator`, Users, Everyone, Authenticated Users,
    /// `LocalService`, `NetworkService`, `IIS_IUSRS`, IIS AppPool\NAME, NT SERVICE\NAME or S-1-….
    grant: BTreeMap<String, Field<Rights>>,
    /// Entries of a folder that inherit the rights: all (the default), folders, files or none.
    inherit: Option<Field<Inherit>>,
    /// Name of its layer; default: the recipe's last.
    pub(super) layer: Option<Text>,
}

impl Recipe {
    pub(super) fn access(&self, entry: &AccessEntry) -> Result<Access> {
        if entry.path.value.components().is_empty() {
            let problem = "a layer cannot change the rights on the drive itself";
            return Err(self.error(&entry.path, problem));
        }
        let mut grants: Vec<Grant> = Vec::with_capacity(entry.grant.len());
        for (account, rights) in &entry.grant {
            let account: AccessAccount = account
                .parse()
                .map_err(|problem: AccountError| self.error(rights, problem.to_string()))?;
            let same = |known: &&Grant| known.account.sid() == account.sid();
            if let Some(known) = grants.iter().find(same) {
                let problem = format!("{} and {account} are the same account", known.account);
                return Err(self.error(rights, problem));
            }
            let rights = rights.value;
            grants.push(Grant { account, rights });
        }
        if grants.is_empty() {
            return Err(self.error(&entry.path, "an access entry requires grant"));
        }
        let inherit = entry.inherit.as_ref().map(|it| it.value);
        Ok(Access {
            path: entry.path.value.clone(),
            grants,
            inherit: inherit.unwrap_or_default(),
        })
    }
}

impl Plan {
    /// Returns true if rights are granted on something that the base may have: they are added to
    /// those that it has there.
    pub(super) fn grants_on_base(&self) -> bool {
        let mut own = self.own_layer_on_any_base();
        let folder = self.working_dir.iter().cloned();
        own.entries.extend(folder.map(PlannedEntry::folder));
        let layers: Vec<&PlannedLayer> = self.instruction_layers().chain([&own]).collect();
        layers.iter().enumerate().any(|(number, layer)| {
            let mut access = layer.access.iter();
            access.any(|access| self.may_be_of_base(access.path(), &layers[..=number]))
        })
    }

    /// Returns true if the base may have something at a path, whatever the layers so far create
    /// there.
    fn may_be_of_base(&self, path: &ImagePath, layers: &[&PlannedLayer]) -> bool {
        let entries = || layers.iter().flat_map(|layer| &layer.entries);
        let mut created = entries().filter(|entry| entry.content != PlannedContent::Deleted);
        let is_provided = created.any(|entry| {
            let inside = path.strip_prefix(&entry.path);
            entry.path.strip_prefix(path).is_some()
                || inside.is_some_and(|inside| match entry.source() {
                    Some(FileSource::Folder(source)) => {
                        source.join(&inside.join("/")).metadata().is_ok()
                    }
                    Some(FileSource::Unpacked(file)) => file.unpack.provides(&file.source, inside),
                    _ => false,
                })
        });
        if !is_provided {
            return true;
        }
        let mut sources = entries().filter_map(|entry| Some((entry.source()?, &entry.path)));
        let is_file =
            sources.any(|(source, target)| is_same(target, path) && !source.may_be_folder());
        if is_file {
            return false;
        }
        path.is_of_windows() || !self.base.is_windows_alone()
    }

    /// Returns true if a layer makes a folder in `Windows`, where the base may have it, with rights
    /// that no other folder has.
    pub(super) fn makes_folder_of_windows(&self) -> bool {
        let entries = self.entries_by_layer().flatten();
        let folders = entries.filter(|entry| entry.content == PlannedContent::Folder);
        let mut folders = folders.map(|entry| &entry.path).chain(&self.working_dir);
        folders.any(|path| {
            let top = path.components().first();
            top.is_some_and(|top| top.eq_ignore_ascii_case("Windows")) && !is_known_folder(path)
        })
    }
}

/// Returns true if two paths are the same by the rules of Windows.
fn is_same(one: &ImagePath, other: &ImagePath) -> bool {
    one.strip_prefix(other) == Some(&[])
}

#[cfg(test)]
mod tests;
