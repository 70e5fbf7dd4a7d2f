//! Rights on files that a recipe grants.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_windows::access::{Access, AccessAccount, AccountError, Grant, Inherit, Rights};
use wincimg_windows::path::ImagePath;

use super::text::{Field, Text};
use super::{FileSource, Plan, PlannedFile, Recipe, RecipeError};

/// Rights on a file or folder, in addition to its existing ones.
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
    pub(super) fn access(&self, entry: &AccessEntry) -> Result<Access, RecipeError> {
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
        Ok(Access {
            path: entry.path.value.clone(),
            grants,
            inherit: entry
                .inherit
                .as_ref()
                .map(|it| it.value)
                .unwrap_or_default(),
            replaces: false,
            each_inside: false,
        })
    }
}

impl Plan {
    /// Returns true if the plan creates the path, whether or not the base has it.
    pub(super) fn provides(&self, path: &ImagePath) -> bool {
        let is_brought = |file: &PlannedFile| {
            let inside = path.strip_prefix(&file.target);
            file.target.strip_prefix(path).is_some()
                || inside.is_some_and(|inside| match (&file.unpack, &file.source) {
                    (Some(unpack), source) => unpack.provides(source, inside),
                    (None, FileSource::Folder(source)) => {
                        source.path.join(inside.join("/")).exists()
                    }
                    _ => false,
                })
        };
        let folder = self.working_dir.as_ref();
        self.files.iter().any(is_brought)
            || folder.is_some_and(|it| it.strip_prefix(path).is_some())
    }
}

#[cfg(test)]
mod tests;
