//! Permissions that a line changes. A layer that changes a file's permissions contains the file
//! again, so files of earlier layers are copied.

use wincimg_common::diagnose::error_chain;
use wincimg_layer::Layer;
use wincimg_registry::Presence;
use wincimg_scripts::ScriptError;
use wincimg_windows::access::AccessChange;
use wincimg_windows::path::ImagePath;

use super::super::drive::PathKind;
use super::{ENTRY_SIZE, RunState};

/// Maximum number of the base's files; more is probably a mistake.
const MOST_OF_BASE: usize = 4096;

impl RunState<'_> {
    pub(super) fn change_access(&mut self, change: AccessChange) -> Result<(), ScriptError> {
        if change.path().components().is_empty() {
            let why = "a layer cannot change the permissions of the drive itself";
            return Err(ScriptError::unclear(why));
        }
        self.set_access(change)
    }

    /// Adds a change of permissions, with the files that it changes.
    pub(super) fn set_access(&mut self, change: AccessChange) -> Result<(), ScriptError> {
        self.check_on_base(&change)?;
        self.copy_up(&change)?;
        self.changes.access.push(change);
        Ok(())
    }

    /// Tries a change on what the base has at and below a folder, as far as it is known, after earlier
    /// changes of the same folder.
    fn check_on_base(&self, change: &AccessChange) -> Result<(), ScriptError> {
        let (path, base) = (change.path(), self.tree.base());
        let is_folder_of_base = matches!(
            base.file(path)?,
            Presence::Present(found) if found.kind.kind() == PathKind::Folder
        );
        if !is_folder_of_base || self.tree.is_own(path)? {
            return Ok(());
        }
        let layers = self
            .state
            .steps
            .iter()
            .filter_map(|step| step.layer.as_ref());
        let earlier = layers.flat_map(|layer| &layer.access);
        let changes: Vec<AccessChange> = earlier
            .chain(&self.changes.access)
            .chain([change])
            .filter(|it| is_within(it.path(), path) || is_within(path, it.path()))
            .cloned()
            .collect();
        // What one of a folder above or within leaves is not followed here.
        if changes.iter().any(|it| it.path().key() != path.key()) {
            return Ok(());
        }
        let tried = Layer::new(0).change_access(&changes, base);
        tried.map_err(|error| ScriptError::unclear(error_chain(&error)))
    }

    /// Copies all files whose permissions change to this layer.
    fn copy_up(&mut self, change: &AccessChange) -> Result<(), ScriptError> {
        let mut pending = vec![change.path().clone()];
        while let Some(path) = pending.pop() {
            if self.tree.is_later(&path) {
                continue;
            }
            match self.kind(&path)? {
                Presence::Present(PathKind::Folder) => {}
                Presence::Present(PathKind::File(())) => {
                    self.copy_again(&path)?;
                    continue;
                }
                // The target of a link keeps its permissions.
                Presence::Present(PathKind::Link(())) | Presence::Absent => continue,
                Presence::Unknown => return Err(unknown(&path)),
            }
            if self.tree.created_entry(&path).is_some() {
                self.copy_again(&path)?;
            }
            let Presence::Present(inside) = self.tree.inside(&path)? else {
                return Err(unknown(&path));
            };
            for (name, kind) in inside {
                if kind == PathKind::Folder
                    || kind == PathKind::File(()) && change.applies_to_files()
                {
                    pending.push(path.join(&name)?);
                }
            }
        }
        Ok(())
    }

    fn copy_again(&mut self, path: &ImagePath) -> Result<(), ScriptError> {
        if self.changes.entries.contains_key(&path.key()) {
            return Ok(());
        }
        if let Some(made) = self.tree.created_entry(path) {
            let made = made.clone();
            self.count_written(path, ENTRY_SIZE)?;
            self.changes.insert(made);
            return Ok(());
        }
        self.changes.of_base += 1;
        if self.changes.of_base > MOST_OF_BASE {
            let why = "a layer would have to copy thousands of the base's files";
            return Err(ScriptError::unclear(why)
                .help("grant the permissions on a folder further down, or without (OI)"));
        }
        let content = self.base.extracted_file(path)?;
        self.put(path.clone(), content)
    }
}

fn is_within(path: &ImagePath, folder: &ImagePath) -> bool {
    path.strip_prefix(folder).is_some()
}

fn unknown(path: &ImagePath) -> ScriptError {
    let why = format!("the base's contents and permissions at {path} are unknown");
    ScriptError::unknown(why)
}
