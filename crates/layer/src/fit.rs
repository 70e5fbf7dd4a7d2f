//! Fitting of a layer to the known content of its base.
//!
//! Windows' import creates every entry, in a folder that has to exist: hcsshim's
//! `legacyLayerWriter` opens a file below a directory that an earlier entry created, and a folder
//! cannot be marked as unchanged (`internal/wclayer/legacy.go`, used by containerd and Docker). So
//! a folder of the base needs an entry if something is below it, and gets one that repeats the
//! base's name, attributes and descriptor. If nothing is below it, it gets none. New entries
//! inherit from their folder, as if an administrator had created them. A file that replaces one
//! keeps its descriptor, as when a program writes to it.
//!
//! For an unknown base the entries have the descriptors that `BuildKit` sets, except in folders of
//! earlier layers and of every Windows, which are known: see [`BaseOverlay`](super::BaseOverlay) and
//! [`WindowsBase`](wincimg_windows::known_folders::WindowsBase).

use std::collections::{HashMap, HashSet};

use wincimg_registry::Presence;
use wincimg_registry::security::{ChildKind, SecurityDescriptor, Sid};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::path::ImagePath;

use super::content::{EntryContent, Layer, LayerEntry, LinkTo, Symlink, TarItem};
use super::descriptor::{self, Security};
use super::error::LayerError;
use super::folder::join;
use super::path::{LayerPath, WHITEOUT_PREFIX, fold};

/// Attributes that an entry repeats: read-only, hidden, system, archive, not indexed.
const REPEATED: u32 = 0x1 | 0x2 | 0x4 | 0x20 | 0x2000;
const DIRECTORY: u32 = 0x10;
const ARCHIVE: u32 = 0x20;

impl Layer {
    /// Fits the entries to the known content of the base; an error if one of them conflicts with
    /// it.
    pub fn fit_to_base(&mut self, inside: &dyn BaseContents) -> Result<(), LayerError> {
        check_essential(&self.files)?;
        // Once: parents of the entries become entries, and are not the owner's.
        let owner = self.owner.take();
        let root = inside.file(&ImagePath::drive())?;
        if matches!(root, Presence::Unknown)
            && owner.is_none()
            && self.secured.is_empty()
            && !self.is_any_top_known(inside)?
        {
            return Ok(());
        }
        let items = self.drive_items()?;
        let created = owner.iter().flat_map(|_| &self.files);
        let mut walk = Walk {
            inside,
            owner: owner.as_ref(),
            owned: created.map(|entry| entry.path.key()).collect(),
            drive: Folder {
                name: String::new(),
                written: String::new(),
                // Of an unknown base the folders may be known that earlier layers changed.
                of_base: Presence::Present(()),
                passed_on: InheritedDescriptors::new(root.present().and_then(|root| root.security)),
            },
            open: Vec::new(),
        };
        let mut settled = Vec::with_capacity(items.len());
        for item in &items {
            settled.push(walk.take(item)?);
        }
        self.files = without_unneeded_folders(settled).collect();
        self.secured.clear();
        Ok(())
    }

    /// Returns true if it is known whether the base has one of the entries' topmost folders: of a
    /// folder that is unknown, so is the content.
    fn is_any_top_known(&self, inside: &dyn BaseContents) -> Result<bool, LayerError> {
        let mut last = None;
        for entry in &self.files {
            let top = entry.path.as_str().split('/').next();
            if top == last {
                continue;
            }
            last = top;
            if let Some(Ok(path)) = top.map(|top| format!("/{top}").parse::<ImagePath>())
                && !matches!(inside.file(&path)?, Presence::Unknown)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Drops folders of the base that contain no other entry.
fn without_unneeded_folders(settled: Vec<FittedEntry>) -> impl Iterator<Item = LayerEntry> {
    let mut needed = Vec::with_capacity(settled.len());
    // Path of the last entry that is kept.
    let mut above = String::new();
    for FittedEntry { entry, is_change } in settled.into_iter().rev() {
        let path = entry.path.as_str();
        let is_above = above
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('/'));
        if is_change || is_above {
            path.clone_into(&mut above);
            needed.push(entry);
        }
    }
    needed.into_iter().rev()
}

struct Walk<'a> {
    inside: &'a dyn BaseContents,
    /// Owner of new entries, if not administrators.
    owner: Option<&'a Sid>,
    /// Entries that the owner creates.
    owned: HashSet<String>,
    drive: Folder,
    /// Parent folders of the next entry.
    open: Vec<Folder>,
}

/// A folder with entries.
struct Folder {
    /// Name in the layer before and after fitting.
    name: String,
    written: String,
    /// The folder in the base.
    of_base: Presence<()>,
    passed_on: InheritedDescriptors,
}

/// Descriptors that entries inherit from a folder, if known; computed once.
struct InheritedDescriptors {
    descriptor: Option<SecurityDescriptor>,
    folder: Option<Security>,
    file: Option<Security>,
}

/// What entries inherit from a folder with the default descriptor.
fn default_folder() -> InheritedDescriptors {
    InheritedDescriptors::new(Some(descriptor::DIRECTORY.bytes()))
}

struct FittedEntry {
    entry: LayerEntry,
    /// True if it differs from the base's folder.
    is_change: bool,
}

impl InheritedDescriptors {
    fn new(security: Option<Vec<u8>>) -> Self {
        let descriptor = security.and_then(|bytes| SecurityDescriptor::from_bytes(&bytes).ok());
        Self {
            descriptor,
            folder: None,
            file: None,
        }
    }

    fn to(&mut self, child: ChildKind, owner: Option<&Sid>) -> Option<Security> {
        let descriptor = self.descriptor.as_ref()?;
        let known = match child {
            ChildKind::File => &mut self.file,
            ChildKind::Folder | ChildKind::Key => &mut self.folder,
        };
        let inherit = || {
            let owner = owner.cloned().unwrap_or_else(Sid::administrators);
            let group = Sid::local_system();
            Security::from(&descriptor.inherited_by(child, &owner, &group))
        };
        Some(known.get_or_insert_with(inherit).clone())
    }
}

impl Walk<'_> {
    fn take(&mut self, item: &TarItem<'_>) -> Result<FittedEntry, LayerError> {
        let inside = item.name.as_str();
        let (folder, mut name) = inside.rsplit_once('/').unwrap_or(("", inside));
        let is_deletion = matches!(item.content, EntryContent::Deletion);
        if is_deletion {
            name = name.strip_prefix(WHITEOUT_PREFIX).unwrap_or(name);
        }
        while self.open.last().is_some_and(|open| open.name != folder) {
            self.open.pop();
        }
        let parent = self.open.last_mut().unwrap_or(&mut self.drive);
        let path = join(&parent.written, name);
        let found = match parent.of_base {
            Presence::Present(()) => match format!("/{path}").parse() {
                Ok(path) => self.inside.file(&path)?,
                Err(_) => Presence::Unknown,
            },
            Presence::Absent => Presence::Absent,
            _ => Presence::Unknown,
        };
        check(&path, item.content, &found)?;
        let child = child_kind(item.content);
        let of_base = match found {
            Presence::Unknown => Presence::Unknown,
            Presence::Absent => Presence::Absent,
            Presence::Present(_) => Presence::Present(()),
        };
        let found = found.present();
        let written = match &found {
            Some(found) if !found.name.is_empty() => join(&parent.written, &found.name),
            _ => path,
        };
        let base = found.filter(|base| is_same_kind(base, item.content));
        let is_owned = || !is_deletion && self.owned.contains(&fold(inside));
        let security = match (&base, item.security) {
            (_, Some(own)) => Some(own.clone()),
            (Some(base), None) => base.security.as_deref().map(Security::from),
            (None, None) => match parent.passed_on.to(child, self.owner) {
                None if is_owned() => default_folder().to(child, self.owner),
                passed_on => passed_on,
            },
        };
        let entry = LayerEntry {
            path: written.parse()?,
            content: item.content.clone(),
            attributes: item.attributes.or_else(|| base.as_ref().map(attributes)),
            security,
        };
        if matches!(item.content, EntryContent::Directory) {
            let security = entry.security.as_ref().map(Security::bytes);
            self.open.push(Folder {
                name: inside.to_owned(),
                written,
                of_base,
                passed_on: InheritedDescriptors::new(security),
            });
        }
        let is_change = base.is_none() || child == ChildKind::File || item.security.is_some();
        Ok(FittedEntry { entry, is_change })
    }
}

fn child_kind(content: &EntryContent) -> ChildKind {
    match content {
        EntryContent::Directory
        | EntryContent::Symlink(Symlink {
            to: LinkTo::Directory,
            ..
        }) => ChildKind::Folder,
        _ => ChildKind::File,
    }
}

/// Refuses entries that replace or delete a folder or file that every Windows has and needs.
fn check_essential(files: &[LayerEntry]) -> Result<(), LayerError> {
    for entry in files {
        let wanted = match entry.content {
            EntryContent::Directory => continue,
            EntryContent::File(_) => "a file",
            EntryContent::Symlink(_) => "a link",
            EntryContent::Deletion => "deleted",
        };
        if let Ok(path) = format!("/{}", entry.path.as_str()).parse::<ImagePath>()
            && path.is_essential()
        {
            let why = if path.is_hive() {
                "a file of the registry: change its keys with [[registry]] or reg"
            } else {
                "a folder that Windows needs"
            };
            return Err(LayerError::Refused(format!(
                "{path} would be {wanted} in the image: it is {why}"
            )));
        }
    }
    Ok(())
}

/// Refuses an entry that conflicts with the base.
fn check(path: &str, content: &EntryContent, found: &Presence<BaseFile>) -> Result<(), LayerError> {
    let Presence::Present(BaseFile { kind, .. }) = found else {
        return Ok(());
    };
    let (found, wanted) = match (kind, content) {
        (FileKind::File(_), EntryContent::Directory) => ("a file", "a folder"),
        (FileKind::Link(()), EntryContent::Directory) => ("a link (use its target)", "a folder"),
        (FileKind::Folder, EntryContent::File(_)) => ("a folder", "a file"),
        (FileKind::Folder, EntryContent::Symlink(_)) => ("a folder", "a link"),
        _ => return Ok(()),
    };
    let path = path.replace('/', r"\");
    Err(LayerError::Refused(format!(
        r"C:\{path} is {found} in the layers below, but {wanted} in the image"
    )))
}

fn is_same_kind(base: &BaseFile, content: &EntryContent) -> bool {
    matches!(
        (base.kind, content),
        (FileKind::Folder, EntryContent::Directory) | (FileKind::File(_), EntryContent::File(_))
    )
}

impl Layer {
    /// Copies the attributes of files and folders from other paths of the image and, for moved
    /// ones, the descriptor.
    pub fn copy_metadata(&mut self, entries: &[(LayerPath, BaseFile, bool)]) {
        if entries.is_empty() {
            return;
        }
        let places = self.files.iter().enumerate();
        let places: HashMap<String, usize> = places
            .map(|(place, entry)| (entry.path.key(), place))
            .collect();
        for (path, was, is_moved) in entries {
            let Some(place) = places.get(&path.key()) else {
                continue;
            };
            let entry = &mut self.files[*place];
            entry.attributes = Some(attributes(was));
            if *is_moved {
                let usual = || Security::clone(usual_descriptor(was));
                let security = was.security.as_deref().map(Security::from);
                entry.security = Some(security.unwrap_or_else(usual));
            }
        }
    }
}

/// The descriptor of an entry that has none of its own.
fn usual_descriptor(file: &BaseFile) -> &'static Security {
    match file.kind {
        FileKind::Folder => &descriptor::DIRECTORY,
        FileKind::Link(()) if file.attributes & DIRECTORY != 0 => &descriptor::DIRECTORY,
        FileKind::File(_) | FileKind::Link(()) => &descriptor::FILE,
    }
}

fn attributes(base: &BaseFile) -> u32 {
    let kind = match base.kind {
        FileKind::Folder => DIRECTORY,
        // Written files get the archive attribute.
        FileKind::File(_) => ARCHIVE,
        // They say what the link is to.
        FileKind::Link(()) => return base.attributes,
    };
    base.attributes & REPEATED | kind
}

#[cfg(test)]
mod tests;
