//! Changes of a descriptor that take something away or concern what is inherited: what is below
//! gets its inherited entries again, folder by folder.

use std::collections::HashMap;

use wincimg_common::diagnose::Problem;
use wincimg_registry::Presence;
use wincimg_registry::security::{Ace, ChildKind, SecurityDescriptor, Sid};
use wincimg_windows::access::{AccessEdit, with_inherited};
use wincimg_windows::base_contents::BaseContents;

use super::{
    GrantTarget, GrantTargets, MOST_FOLDERS, ON_WINDOWS, OwnEntries, as_inherited, base_descriptor,
    current_descriptor, default_descriptor,
};
use crate::error::LayerError;
use crate::path::LayerPath;

/// A folder's descriptor before and after the change.
struct ChangedFolder {
    before: SecurityDescriptor,
    after: SecurityDescriptor,
}

/// The descriptors that a change gives to the layer's entries and to folders of the base.
pub(super) fn descriptors(
    own: &OwnEntries,
    edit: &AccessEdit,
    inside: &dyn BaseContents,
) -> Result<Vec<(LayerPath, SecurityDescriptor)>, LayerError> {
    let targets = GrantTargets::new(own, &edit.path, inside)?;
    if targets.folders_of_base() > MOST_FOLDERS {
        return Err(targets.too_many(&edit.path));
    }
    let find = |key: &str, target: &GrantTarget| {
        let found = targets.found(key, target)?;
        as_inherited(found, target.is_folder)
    };
    let from_above = if edit.edit.takes_from_above() {
        let top = targets.all.get(&targets.top);
        let found = top.map(|target| find(&targets.top, target)).transpose()?;
        entries_from_above(edit, &targets, found.as_ref())?
    } else {
        [Vec::new(), Vec::new()]
    };
    let mut folders: HashMap<&str, ChangedFolder> = HashMap::new();
    let mut changed = Vec::new();
    for (own, target) in &targets.all {
        let found = find(own, target)?;
        let is_top = *own == targets.top;
        let parent = own
            .rsplit_once('\0')
            .and_then(|(above, _)| folders.get(above));
        let (mut after, inherited) = match parent {
            Some(parent) if !is_top => parent.pass_on(&found, target.is_folder),
            _ => {
                let [of_file, of_folder] = &from_above;
                let inherited = if target.is_folder { of_folder } else { of_file };
                (found.clone(), inherited.clone())
            }
        };
        if is_top || edit.each_inside {
            let edited = edit.edit.apply(&after, &inherited, target.is_folder);
            after = edited.map_err(|error| {
                let path = target.path.as_str().replace('/', r"\");
                let problem = format!(r"cannot change the rights on C:\{path}: {error}");
                Problem::request("recipe/access", problem).hint(ON_WINDOWS)
            })?;
        }
        if after != found {
            changed.push((target.path.clone(), after.clone()));
        }
        if target.is_folder {
            let before = found;
            folders.insert(own, ChangedFolder { before, after });
        }
    }
    Ok(changed)
}

/// Rights that a file and a folder at the path inherit.
fn entries_from_above(
    edit: &AccessEdit,
    targets: &GrantTargets<'_>,
    found: Option<&SecurityDescriptor>,
) -> Result<[Vec<Ace>; 2], LayerError> {
    let (inside, own) = (targets.inside, targets.own);
    let secured = &own.secured;
    let above = edit.path.parent().unwrap_or_else(|| edit.path.clone());
    let (path, key) = match LayerPath::try_from(&above) {
        Ok(path) => (path.to_string(), path.key()),
        Err(_) => (String::new(), String::new()),
    };
    let is_own = own.entries.contains_key(&key);
    let parent = match inside.file(&above)? {
        Presence::Present(file) if !secured.contains_key(&key) => base_descriptor(&above, &file)?,
        _ if is_own => Some(current_descriptor(secured, inside, &path, &key, true)?),
        _ => None,
    };
    let usual = as_inherited(default_descriptor(true)?, true)?;
    let parent = parent.map(|it| as_inherited(it, true)).transpose()?;
    let mut entries = [Vec::new(), Vec::new()];
    for (is_folder, entries) in [false, true].into_iter().zip(&mut entries) {
        *entries = match &parent {
            Some(parent) if *parent != usual => inherited_entries(parent, is_folder, found),
            // What Windows lets it inherit where the folder above is as new.
            _ => as_inherited(default_descriptor(is_folder)?, is_folder)?
                .dacl
                .map(|list| list.entries)
                .unwrap_or_default(),
        };
    }
    Ok(entries)
}

fn inherited_entries(
    parent: &SecurityDescriptor,
    is_folder: bool,
    child: Option<&SecurityDescriptor>,
) -> Vec<Ace> {
    let kind = if is_folder {
        ChildKind::Folder
    } else {
        ChildKind::File
    };
    let owner = child.and_then(|child| child.owner.clone());
    let group = child.and_then(|child| child.group.clone());
    parent.inherited_entries(
        kind,
        &owner.unwrap_or_else(Sid::administrators),
        &group.unwrap_or_else(Sid::local_system),
    )
}

impl ChangedFolder {
    /// The descriptor of what is in it after its change, and what that inherits.
    fn pass_on(
        &self,
        found: &SecurityDescriptor,
        is_folder: bool,
    ) -> (SecurityDescriptor, Vec<Ace>) {
        let passed_on = |parent| inherited_entries(parent, is_folder, Some(found));
        let (before, after) = (passed_on(&self.before), passed_on(&self.after));
        let changed = (before != after)
            .then(|| with_inherited(found, after.clone()))
            .flatten();
        (changed.unwrap_or_else(|| found.clone()), after)
    }
}
