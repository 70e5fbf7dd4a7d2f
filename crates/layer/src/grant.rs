//! Changes of rights on a layer's entries and the base's folders, in security descriptors.
//!
//! Like `icacls`, a grant on a folder is inherited by its content: by the layer's files and
//! folders, and by those folders of the base that inherit rights. The base's files are unchanged,
//! because a layer that changes a file's descriptor has to contain the whole file.
//!
//! The default descriptors of entries whose folder is unknown stand for what Windows lets them
//! inherit, so their entries count as inherited. Granted rights are kept apart from them.

mod edit;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;

use wincimg_common::diagnose::Problem;
use wincimg_registry::Presence;
use wincimg_registry::security::{
    Ace, SecurityDescriptor, UnreadableDescriptor, ace_flags, control,
};
use wincimg_windows::access::{Access, AccessChange};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::path::ImagePath;

use super::content::{EntryContent, Layer, is_below};
use super::descriptor::{self, Security};
use super::error::LayerError;
use super::overlay::BaseOverlay;
use super::path::{LayerPath, fold};

/// Maximum number of folders; more are hardly intended.
const MOST_FOLDERS: usize = 4096;

/// What makes an image that requires Windows.
pub const ON_WINDOWS: &str = "build it on a Docker daemon for Windows containers: `wincimg build \
                              IMAGE --engine docker`";

fn cannot_grant(path: &ImagePath, why: &str, hint: &str) -> LayerError {
    Problem::request(
        "recipe/access",
        format!("cannot grant rights on {path}{why}"),
    )
    .hint(hint)
    .into()
}

/// Error for what the unknown base may have.
fn unknown(path: &ImagePath) -> LayerError {
    let why = ": the base may have it, and the content of the base is unknown";
    cannot_grant(path, why, ON_WINDOWS)
}

/// Error for a descriptor that cannot be read.
fn unreadable(path: impl Display) -> impl FnOnce(UnreadableDescriptor) -> LayerError {
    move |source| {
        let problem = format!("cannot read the security descriptor of {path}");
        Problem::new("base/unreadable", problem)
            .source(source)
            .into()
    }
}

impl Layer {
    /// Adds the files of earlier layers whose descriptors a grant changes, because a layer that
    /// changes a file's descriptor has to contain the whole file. What is in a folder of `gone` is
    /// deleted.
    pub fn copy_up(
        &mut self,
        changes: &[AccessChange],
        below: &BaseOverlay<'_>,
        gone: &[ImagePath],
    ) -> Result<(), LayerError> {
        if changes.is_empty() {
            return Ok(());
        }
        let entries = self.entries();
        let mut own: HashSet<String> = entries.map(|(path, _)| path.key()).collect();
        let mut deleted: Vec<String> = self.deletions().collect();
        for path in gone {
            deleted.push(LayerPath::try_from(path)?.key());
        }
        for change in changes {
            let top = LayerPath::try_from(change.path())?.key();
            for (path, source) in below.files_in(change.path())? {
                let key = path.key();
                let is_granted = key == top || change.applies_to_files();
                if is_granted && !is_in(&deleted, &key) && own.insert(key) {
                    self.file(path, source);
                }
            }
        }
        Ok(())
    }

    /// The deleted paths, folded.
    fn deletions(&self) -> impl Iterator<Item = String> {
        let entries = self.entries();
        let deleted = entries.filter(|(_, content)| **content == EntryContent::Deletion);
        deleted.map(|(path, _)| path.key())
    }

    /// Changes rights, in order, on the layer's current entries and on folders of the base. Fitting
    /// the layer to the base first sets the descriptors that are changed; fitting it afterwards
    /// copies the attributes of the base's folders.
    pub fn change_access(
        &mut self,
        changes: &[AccessChange],
        inside: &dyn BaseContents,
    ) -> Result<(), LayerError> {
        let mut current = None;
        for change in changes {
            let mut own = match current.take() {
                Some(own) => own,
                None => OwnEntries::new(self)?,
            };
            let descriptors = match change {
                AccessChange::Grant(access) => {
                    GrantTargets::new(&own, &access.path, inside)?.granted(access)?
                }
                AccessChange::Edit(edit) => edit::descriptors(&own, edit, inside)?,
            };
            let mut paths = descriptors.iter().map(|(path, _)| path.key());
            let are_own = paths.all(|key| own.entries.contains_key(&key));
            self.set_descriptors(descriptors, &mut own);
            // A folder of the base becomes an entry, and so do those above it.
            current = are_own.then_some(own);
        }
        Ok(())
    }

    fn set_descriptors(
        &mut self,
        changed: Vec<(LayerPath, SecurityDescriptor)>,
        own: &mut OwnEntries,
    ) {
        // Most descriptors are one of a few.
        let mut written: HashMap<SecurityDescriptor, Security> = HashMap::new();
        for (path, descriptor) in changed {
            let security = written
                .entry(descriptor)
                .or_insert_with_key(|descriptor| Security::from(descriptor));
            own.secured.insert(path.key(), security.clone());
            self.set_security(path, security.clone());
        }
    }
}

/// What a layer has, by folded path.
struct OwnEntries {
    /// Files and folders.
    entries: BTreeMap<String, GrantTarget>,
    deleted: Vec<String>,
    /// Current descriptors.
    secured: HashMap<String, Security>,
}

impl OwnEntries {
    fn new(layer: &Layer) -> Result<Self, LayerError> {
        let mut entries = BTreeMap::new();
        for (path, content) in layer.drive()? {
            let is_folder = match content {
                EntryContent::Directory => true,
                EntryContent::File(_) => false,
                EntryContent::Symlink(_) | EntryContent::Deletion => continue,
            };
            let target = GrantTarget {
                path: path.parse()?,
                is_folder,
                of_base: None,
            };
            entries.insert(fold(&path), target);
        }
        Ok(Self {
            entries,
            deleted: layer.deletions().collect(),
            secured: layer.securities(),
        })
    }
}

/// The entries of a layer and the folders of a base that a change of rights concerns.
struct GrantTargets<'a> {
    inside: &'a dyn BaseContents,
    own: &'a OwnEntries,
    /// Folded path of the change.
    top: String,
    /// What is at and below it, by folded path: a folder precedes its content.
    all: BTreeMap<String, GrantTarget>,
}

#[derive(Clone)]
struct GrantTarget {
    path: LayerPath,
    is_folder: bool,
    /// The folder, if only the base has it.
    of_base: Option<(ImagePath, BaseFile)>,
}

impl<'a> GrantTargets<'a> {
    fn new(
        own: &'a OwnEntries,
        path: &ImagePath,
        inside: &'a dyn BaseContents,
    ) -> Result<Self, LayerError> {
        let entry = LayerPath::try_from(path)?;
        let top = entry.key();
        // What is below a path is sorted next to it.
        let entries = own.entries.range(top.clone()..);
        let mut all: BTreeMap<String, GrantTarget> = entries
            .take_while(|(key, _)| **key == top || is_below(key, &top))
            .map(|(key, target)| (key.clone(), target.clone()))
            .collect();
        let found = inside.file(path)?;
        let is_folder_of_base =
            matches!(&found, Presence::Present(file) if file.kind == FileKind::Folder);
        match all.get(&top) {
            // Windows has its own rights on most of its folders.
            Some(own) if own.is_folder && found == Presence::Unknown && path.is_of_windows() => {
                return Err(unknown(path));
            }
            Some(_) => {}
            None => {
                let file = folder_of_base(path, found)?;
                let target = GrantTarget::of_base(entry, path.clone(), file);
                all.insert(top.clone(), target);
            }
        }
        if is_folder_of_base {
            let below = inside.folders_below(path)?.present();
            for (path, file) in below.unwrap_or_default() {
                let entry = LayerPath::try_from(&path)?;
                let key = entry.key();
                let is_own = all.contains_key(&key) || is_in(&own.deleted, &key);
                if !is_own && file.security.is_some() {
                    all.insert(key, GrantTarget::of_base(entry, path, file));
                }
            }
        }
        Ok(Self {
            inside,
            own,
            top,
            all,
        })
    }

    /// The descriptor of a target before the change.
    fn found(&self, key: &str, target: &GrantTarget) -> Result<SecurityDescriptor, LayerError> {
        let is_folder = target.is_folder;
        match &target.of_base {
            Some((path, file)) => {
                let found = base_descriptor(path, file)?;
                found.map_or_else(|| default_descriptor(is_folder), Ok)
            }
            None => {
                let path = target.path.as_str();
                current_descriptor(&self.own.secured, self.inside, path, key, is_folder)
            }
        }
    }

    /// The descriptors that a grant gives. What inherits nothing passes nothing on.
    fn granted(&self, access: &Access) -> Result<Vec<(LayerPath, SecurityDescriptor)>, LayerError> {
        let mut granted = Vec::new();
        let mut apart: Vec<&str> = Vec::new();
        for (key, target) in &self.all {
            if apart.iter().any(|apart| is_below(key, apart)) {
                continue;
            }
            let is_folder = target.is_folder;
            let found = self.found(key, target)?;
            let after = beyond_stock(&found, is_folder, |own| {
                if *key == self.top {
                    Some(access.grant_to(own, is_folder))
                } else {
                    access.inherited_descriptor(own, is_folder)
                }
            })?;
            match after {
                Some(after) => granted.push((target.path.clone(), after)),
                None if is_folder => apart.push(key),
                None => {}
            }
        }
        let own = self.all.values().filter(|it| it.of_base.is_none()).count();
        if granted.len() > MOST_FOLDERS + own {
            return Err(self.too_many(&access.path));
        }
        Ok(granted)
    }

    /// Number of the folders below that only the base has.
    fn folders_of_base(&self) -> usize {
        let below = self.all.iter().filter(|(key, _)| **key != self.top);
        below.filter(|(_, it)| it.of_base.is_some()).count()
    }

    fn too_many(&self, path: &ImagePath) -> LayerError {
        let count = self.folders_of_base();
        let why =
            format!(" and the {count} folders of the base in it: the maximum is {MOST_FOLDERS}");
        let hint = "add inherit = \"none\", or name a folder further down";
        cannot_grant(path, &why, hint)
    }
}

impl GrantTarget {
    fn of_base(path: LayerPath, place: ImagePath, file: BaseFile) -> Self {
        Self {
            path,
            is_folder: true,
            of_base: Some((place, file)),
        }
    }
}

/// Returns true if a folded path is one of these or below one.
fn is_in(places: &[String], key: &str) -> bool {
    let mut places = places.iter();
    places.any(|place| key == place || is_below(key, place))
}

fn base_descriptor(
    path: &ImagePath,
    file: &BaseFile,
) -> Result<Option<SecurityDescriptor>, LayerError> {
    let bytes = file.security.as_deref();
    let descriptor = bytes.map(SecurityDescriptor::from_bytes).transpose();
    descriptor.map_err(unreadable(path))
}

/// A folder that only the base has.
fn folder_of_base(path: &ImagePath, found: Presence<BaseFile>) -> Result<BaseFile, LayerError> {
    match found {
        Presence::Present(file) if file.kind == FileKind::Folder => Ok(file),
        Presence::Present(_) => {
            let why = ", a file or link of the base: a layer would have to contain all of it";
            Err(cannot_grant(path, why, ON_WINDOWS))
        }
        Presence::Absent => {
            let hint = "add it with [[files]], or set it as the working_dir";
            Err(cannot_grant(
                path,
                ": neither the base nor the layer has it",
                hint,
            ))
        }
        Presence::Unknown => Err(unknown(path)),
    }
}

/// The descriptor of one of the layer's entries: its own, that of the base's folder, or the default
/// one.
fn current_descriptor(
    secured: &HashMap<String, Security>,
    inside: &dyn BaseContents,
    path: &str,
    key: &str,
    is_folder: bool,
) -> Result<SecurityDescriptor, LayerError> {
    if let Some(security) = secured.get(key) {
        return security.descriptor().map_err(unreadable(path));
    }
    if is_folder
        && let Ok(path) = format!("/{path}").parse::<ImagePath>()
        && let Some(file) = inside.file(&path)?.present()
        && file.kind == FileKind::Folder
        && let Some(found) = base_descriptor(&path, &file)?
    {
        return Ok(found);
    }
    default_descriptor(is_folder)
}

/// Changes a descriptor. Of one that begins with the default entries, only the others are changed.
fn beyond_stock(
    found: &SecurityDescriptor,
    is_folder: bool,
    change: impl FnOnce(&SecurityDescriptor) -> Option<SecurityDescriptor>,
) -> Result<Option<SecurityDescriptor>, LayerError> {
    let Some((stock, own)) = split_stock(found, is_folder)? else {
        return Ok(change(found));
    };
    Ok(change(&own).map(|after| {
        let mut after = after;
        if let Some(list) = &mut after.dacl {
            list.entries.splice(0..0, stock);
        }
        after
    }))
}

/// The descriptor with the default entries as inherited ones, after all others.
fn as_inherited(
    found: SecurityDescriptor,
    is_folder: bool,
) -> Result<SecurityDescriptor, LayerError> {
    let Some((stock, mut own)) = split_stock(&found, is_folder)? else {
        return Ok(found);
    };
    own.control |= control::DACL_AUTO_INHERITED;
    if let Some(list) = &mut own.dacl {
        list.entries.extend(stock.into_iter().map(|entry| Ace {
            flags: entry.flags | ace_flags::INHERITED,
            ..entry
        }));
    }
    Ok(own)
}

/// The default entries with which a descriptor begins, and the descriptor without them.
fn split_stock(
    found: &SecurityDescriptor,
    is_folder: bool,
) -> Result<Option<(Vec<Ace>, SecurityDescriptor)>, LayerError> {
    let stock = default_descriptor(is_folder)?;
    let Some(entries) = stock.dacl.map(|list| list.entries) else {
        return Ok(None);
    };
    let mut own = found.clone();
    match &mut own.dacl {
        Some(list) if found.control == stock.control && list.entries.starts_with(&entries) => {
            list.entries.drain(..entries.len());
        }
        _ => return Ok(None),
    }
    Ok(Some((entries, own)))
}

/// The default descriptor of an entry.
fn default_descriptor(is_folder: bool) -> Result<SecurityDescriptor, LayerError> {
    let usual = if is_folder {
        &descriptor::DIRECTORY
    } else {
        &descriptor::FILE
    };
    usual.descriptor().map_err(unreadable("a new entry"))
}

#[cfg(test)]
mod tests;
