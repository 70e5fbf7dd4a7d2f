//! The plan while it grows.

use std::collections::{BTreeMap, BTreeSet};

use wincimg_registry::{KeyPath, RegistryData, RegistryEdit};
use wincimg_windows::path::{ImagePath, fold};

use super::error::MsiError;
use super::plan::{InstallPlan, InstalledContent, InstalledFile};

/// Maximum number of files, folders or edits of a plan.
const LIMIT: usize = 500_000;

/// The plan while the sequence is followed.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    files: BTreeMap<String, InstalledFile>,
    folders: BTreeMap<String, ImagePath>,
    /// Files of the image that are removed, and folders without other contents.
    removed: BTreeMap<String, ImagePath>,
    /// Keys of the folders among them.
    emptied: BTreeSet<String>,
    /// Places of the last edits of values, by key and name.
    values: BTreeMap<String, BTreeMap<String, usize>>,
    /// Places of the last deletions of keys.
    deleted: BTreeMap<String, usize>,
    /// All but its files, folders and removals.
    pub(crate) rest: InstallPlan,
}

impl Builder {
    /// Adds a folder and those above it.
    pub(crate) fn folder(&mut self, path: &ImagePath) -> Result<(), MsiError> {
        for depth in 1..=path.components().len() {
            let above = path.up_to(depth);
            self.folders.entry(above.key()).or_insert(above);
        }
        check(self.folders.len())
    }

    /// Adds a file and the folders above it; a later one replaces it.
    pub(crate) fn file(&mut self, file: InstalledFile) -> Result<(), MsiError> {
        if let Some(folder) = file.path.parent() {
            self.folder(&folder)?;
        }
        self.files.insert(file.path.key(), file);
        check(self.files.len())
    }

    /// Adds a file with these bytes.
    pub(crate) fn bytes(&mut self, path: ImagePath, bytes: Vec<u8>) -> Result<(), MsiError> {
        self.file(InstalledFile {
            path,
            size: bytes.len() as u64,
            version: None,
            source: InstalledContent::Bytes(bytes),
            is_replacement: false,
        })
    }

    /// The planned file at a path.
    pub(crate) fn planned(&self, path: &ImagePath) -> Option<&InstalledFile> {
        self.files.get(&path.key())
    }

    /// Files that are planned so far.
    pub(crate) fn files(&self) -> impl Iterator<Item = &InstalledFile> {
        self.files.values()
    }

    /// Folders that are planned so far.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &ImagePath> {
        self.folders.values()
    }

    /// Removes a file of the image, unless the package installs one there.
    pub(crate) fn remove(&mut self, path: ImagePath) -> Result<(), MsiError> {
        self.removed.insert(path.key(), path);
        check(self.removed.len())
    }

    /// Removes a folder that has nothing but what is removed, unless the package creates it again.
    pub(crate) fn remove_folder(&mut self, path: ImagePath) -> Result<(), MsiError> {
        self.emptied.insert(path.key());
        self.remove(path)
    }

    /// True if a path of the image is removed.
    pub(crate) fn removes(&self, path: &ImagePath) -> bool {
        self.removed.contains_key(&path.key())
    }

    /// What is removed in the end: not what the package brings again, nor what is in a removed
    /// folder.
    fn final_removals(&self) -> Vec<ImagePath> {
        let is_planned = |key: &str| self.files.contains_key(key) || self.folders.contains_key(key);
        let is_in_removed = |path: &ImagePath| {
            let mut above = (1..path.components().len()).map(|depth| path.up_to(depth).key());
            above.any(|key| self.emptied.contains(&key) && !is_planned(&key))
        };
        let removed = self.removed.iter();
        let removed = removed.filter(|(key, path)| !is_planned(key) && !is_in_removed(path));
        removed.map(|(_, path)| path.clone()).collect()
    }

    /// Adds an edit of the registry.
    pub(crate) fn edit(&mut self, edit: RegistryEdit) -> Result<(), MsiError> {
        let place = self.rest.registry.len();
        match &edit {
            RegistryEdit::SetValue { key, name, .. } | RegistryEdit::DeleteValue { key, name } => {
                let values = self.values.entry(fold(&key.to_string())).or_default();
                values.insert(fold(name), place);
            }
            RegistryEdit::DeleteKey { key } => {
                self.deleted.insert(fold(&key.to_string()), place);
            }
            RegistryEdit::CreateKey { .. } | RegistryEdit::SetSecurity { .. } => {}
        }
        self.rest.registry.push(edit);
        check(self.rest.registry.len())
    }

    /// The last edit that decides what a value is: one of its own, or a deletion of its key or one
    /// above.
    pub(crate) fn last_edit(&self, key: &KeyPath, name: &str) -> Option<&RegistryEdit> {
        let key = fold(&key.to_string());
        let own = self.values.get(&key);
        let own = own.and_then(|values| values.get(&fold(name)));
        let ends = key.match_indices('\\').map(|(end, _)| end);
        let keys = ends.chain([key.len()]).map(|end| &key[..end]);
        let deleted = keys.filter_map(|key| self.deleted.get(key));
        let last = own.into_iter().chain(deleted).max()?;
        self.rest.registry.get(*last)
    }

    /// Sets a registry value.
    pub(crate) fn set(
        &mut self,
        key: &KeyPath,
        name: &str,
        data: RegistryData,
    ) -> Result<(), MsiError> {
        self.edit(RegistryEdit::SetValue {
            key: key.clone(),
            name: name.to_owned(),
            data,
        })
    }

    /// Sets a registry value to a text.
    pub(crate) fn text(&mut self, key: &KeyPath, name: &str, text: &str) -> Result<(), MsiError> {
        self.set(key, name, RegistryData::sz(text))
    }

    /// Finishes the plan; the caller adds the rest.
    pub(crate) fn finish(self) -> Result<InstallPlan, MsiError> {
        let files: BTreeSet<&String> = self.files.keys().collect();
        if let Some(path) = self.folders.iter().find(|(key, _)| files.contains(key)) {
            let why = format!("{} is a file and a folder", path.1);
            return Err(MsiError::damaged(why));
        }
        Ok(InstallPlan {
            removed: self.final_removals(),
            folders: self.folders.into_values().collect(),
            files: self.files.into_values().collect(),
            ..self.rest
        })
    }
}

fn check(count: usize) -> Result<(), MsiError> {
    if count > LIMIT {
        let why = format!("more than {LIMIT} files, folders or registry edits");
        return Err(MsiError::TooLarge(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn key(path: &str) -> KeyPath {
        path.parse().unwrap()
    }

    #[test]
    fn the_last_edit_of_a_value_is_its_own_or_of_a_key_above() {
        let mut plan = Builder::default();
        let own = key(r"HKLM\SOFTWARE\Acme\App");
        let spelled = key(r"HKLM\Software\ACME\app");
        plan.text(&own, "Mode", "x").unwrap();
        let is_set = |plan: &Builder, name: &str| {
            let edit = plan.last_edit(&spelled, name);
            edit.map(|edit| matches!(edit, RegistryEdit::SetValue { .. }))
        };
        assert_eq!(is_set(&plan, "MODE"), Some(true));
        assert_eq!(is_set(&plan, "Other"), None);
        for (deleted, expected) in [
            (r"HKLM\SOFTWARE\Acme\App\Below", Some(true)),
            (r"HKLM\SOFTWARE\Acm", Some(true)),
            (r"HKLM\SOFTWARE\acme", Some(false)),
        ] {
            let key = key(deleted);
            plan.edit(RegistryEdit::DeleteKey { key }).unwrap();
            assert_eq!(is_set(&plan, "Mode"), expected, "{deleted}");
        }
        plan.text(&own, "Mode", "y").unwrap();
        assert_eq!(is_set(&plan, "Mode"), Some(true));
        let (key, name) = (own, "mode".to_owned());
        plan.edit(RegistryEdit::DeleteValue { key, name }).unwrap();
        assert_eq!(is_set(&plan, "Mode"), Some(false));
    }

    #[test]
    fn many_values_are_found_at_once() {
        let mut plan = Builder::default();
        let own = key(r"HKLM\SOFTWARE\Acme");
        let started = Instant::now();
        for number in 0..36_000 {
            let name = format!("n{number}");
            assert!(plan.last_edit(&own, &name).is_none());
            plan.text(&own, &name, "x").unwrap();
        }
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
