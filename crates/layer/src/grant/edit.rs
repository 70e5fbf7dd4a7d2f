//! Changes of a descriptor that take something away or concern what is inherited: what is below
//! gets its inherited entries again, folder by folder.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use wincimg_registry::Presence;
use wincimg_registry::security::{Ace, ChildKind, SecurityDescriptor, Sid};
use wincimg_windows::access::{AccessEdit, with_inherited};
use wincimg_windows::base_contents::{BaseContents, FileKind};
use wincimg_windows::path::ImagePath;

use super::{
    GrantError, MOST_FOLDERS, as_inherited, base_descriptor, check_is_known, current_descriptor,
    default_descriptor, folder_of_base, is_in,
};
use crate::content::Layer;
use crate::descriptor::Security;
use crate::error::LayerError;
use crate::path::{LayerPath, fold};

/// Something at or below the path of a change.
struct GrantTarget {
    path: LayerPath,
    is_folder: bool,
    found: SecurityDescriptor,
}

/// A folder's descriptor before and after the change.
struct ChangedFolder {
    before: SecurityDescriptor,
    after: SecurityDescriptor,
}

/// The descriptors that a change gives to the layer's entries and to folders of the base.
pub(super) fn descriptors(
    layer: &Layer,
    edit: &AccessEdit,
    inside: &dyn BaseContents,
) -> Result<Vec<(LayerPath, SecurityDescriptor)>, GrantError> {
    let secured = layer.securities();
    let top = LayerPath::try_from(&edit.path).map_err(LayerError::Path)?;
    let key = fold(top.as_str());
    let places = places(layer, edit, inside, &secured)?;
    let from_above = if edit.edit.takes_from_above() {
        let place = places.get(&key);
        entries_from_above(layer, edit, inside, &secured, place.map(|it| &it.found))?
    } else {
        [Vec::new(), Vec::new()]
    };
    let mut folders: HashMap<&str, ChangedFolder> = HashMap::new();
    let mut changed = Vec::new();
    for (own, place) in &places {
        let is_top = *own == key;
        let parent = own
            .rsplit_once('\0')
            .and_then(|(above, _)| folders.get(above));
        let (mut after, inherited) = match parent {
            Some(parent) if !is_top => place.in_folder(parent),
            _ => {
                let [of_file, of_folder] = &from_above;
                let inherited = if place.is_folder { of_folder } else { of_file };
                (place.found.clone(), inherited.clone())
            }
        };
        if is_top || edit.each_inside {
            let edited = edit.edit.apply(&after, &inherited, place.is_folder);
            after = edited.map_err(|source| GrantError::Unsupported {
                path: place.path.to_string(),
                source,
            })?;
        }
        if after != place.found {
            changed.push((place.path.clone(), after.clone()));
        }
        if place.is_folder {
            let before = place.found.clone();
            folders.insert(own, ChangedFolder { before, after });
        }
    }
    Ok(changed)
}

/// The layer's entries at and below the path, and folders of the base, parents first.
fn places(
    layer: &Layer,
    edit: &AccessEdit,
    inside: &dyn BaseContents,
    secured: &HashMap<String, Security>,
) -> Result<BTreeMap<String, GrantTarget>, GrantError> {
    let top = LayerPath::try_from(&edit.path).map_err(LayerError::Path)?;
    let key = fold(top.as_str());
    let mut places = BTreeMap::new();
    for (path, own, is_folder) in layer.entries_within(&key)? {
        let found = current_descriptor(secured, inside, &path, &own, is_folder)?;
        let place = GrantTarget {
            found: as_inherited(found, is_folder)?,
            path: path.parse().map_err(LayerError::Path)?,
            is_folder,
        };
        places.insert(own, place);
    }
    let of_base = inside.file(&edit.path)?;
    let is_folder_of_base =
        matches!(&of_base, Presence::Present(file) if file.kind == FileKind::Folder);
    let is_own_folder = places.get(&key).is_some_and(|place| place.is_folder);
    check_is_known(&edit.path, is_own_folder, &of_base)?;
    if let Entry::Vacant(top_place) = places.entry(key) {
        top_place.insert(GrantTarget {
            found: as_inherited(folder_of_base(&edit.path, of_base)?, true)?,
            path: top,
            is_folder: true,
        });
    }
    let own = places.len();
    if is_folder_of_base {
        let deleted: Vec<String> = layer.deletions().collect();
        let below = inside.folders_below(&edit.path)?;
        for (path, file) in below.present().unwrap_or_default() {
            let entry = LayerPath::try_from(&path).map_err(LayerError::Path)?;
            let own = fold(entry.as_str());
            if !places.contains_key(&own)
                && !is_in(&deleted, &own)
                && let Some(found) = base_descriptor(&path, &file)?
            {
                let (path, is_folder, found) = (entry, true, as_inherited(found, true)?);
                let place = GrantTarget {
                    path,
                    is_folder,
                    found,
                };
                places.insert(own, place);
            }
        }
    }
    let count = places.len() - own;
    if count > MOST_FOLDERS {
        let path = edit.path.clone();
        return Err(GrantError::TooMany { path, count });
    }
    Ok(places)
}

/// Rights that a file and a folder at the path inherit.
fn entries_from_above(
    layer: &Layer,
    edit: &AccessEdit,
    inside: &dyn BaseContents,
    secured: &HashMap<String, Security>,
    found: Option<&SecurityDescriptor>,
) -> Result<[Vec<Ace>; 2], GrantError> {
    let names = edit.path.components();
    let above: ImagePath = edit.path.up_to(names.len().saturating_sub(1));
    let (path, key) = match LayerPath::try_from(&above) {
        Ok(path) => (path.to_string(), fold(path.as_str())),
        Err(_) => (String::new(), String::new()),
    };
    let is_own = !key.is_empty() && layer.entries_within(&key)?.iter().any(|it| it.1 == key);
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

impl GrantTarget {
    /// The descriptor after the change of the folder above, and what it inherits.
    fn in_folder(&self, parent: &ChangedFolder) -> (SecurityDescriptor, Vec<Ace>) {
        let passed_on = |parent| inherited_entries(parent, self.is_folder, Some(&self.found));
        let (before, after) = (passed_on(&parent.before), passed_on(&parent.after));
        let changed = (before != after)
            .then(|| with_inherited(&self.found, after.clone()))
            .flatten();
        (changed.unwrap_or_else(|| self.found.clone()), after)
    }
}
