//! A layer fitted to what is known of the base that it lies on.
//!
//! Windows' import makes every entry anew, in a folder that has to be there: hcsshim's
//! `legacyLayerWriter` opens a file below a directory that an entry before made, and there is no way
//! to say that a folder stays as it is (`internal/wclayer/legacy.go`, which containerd and Docker
//! use alike). So a folder of the base needs an entry where something lies below it, and gets one
//! that repeats what the base has: name, attributes, descriptor. Where nothing lies below it, it gets
//! none. What is new inherits from its folder, as if an administrator had made it there. A file that
//! takes the place of one keeps that one's descriptor, as when a program writes to it.
//!
//! Where nothing is known the entries have the descriptors that `BuildKit` gives them.

use std::collections::HashMap;

use wincimg_registry::Presence;
use wincimg_registry::security::{ChildKind, SecurityDescriptor, Sid};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::path::ImagePath;

use super::content::{EntryContent, Layer, LayerEntry, LinkTo, Symlink, TarItem, sort_directory};
use super::descriptor::Security;
use super::error::LayerError;
use super::path::{LayerPath, WHITEOUT_PREFIX, fold};

/// Attributes that an entry repeats: read-only, hidden, system, archive, not indexed.
const REPEATED: u32 = 0x1 | 0x2 | 0x4 | 0x20 | 0x2000;
const DIRECTORY: u32 = 0x10;
const ARCHIVE: u32 = 0x20;

impl Layer {
    /// Fits the entries to what is known of the base. An error where one of them cannot be where the
    /// base has something else.
    pub fn fit_to_base(&mut self, inside: &dyn BaseContents) -> Result<(), LayerError> {
        let root = inside.file(&ImagePath::drive())?;
        let is_known = !matches!(root, Presence::Unknown);
        if !is_known && self.secured.is_empty() {
            return Ok(());
        }
        let mut items = Vec::with_capacity(self.files.len());
        sort_directory("Files", &self.files, Some(&self.secured), &mut items)?;
        let mut walk = Walk {
            inside,
            drive: Folder {
                name: String::new(),
                written: String::new(),
                below: if is_known {
                    BaseFolderState::Known
                } else {
                    BaseFolderState::Unknown
                },
                passed_on: InheritedDescriptors::new(root.present().and_then(|root| root.security)),
            },
            open: Vec::new(),
        };
        let mut settled = Vec::with_capacity(items.len());
        // The first is the drive itself, which stays as it is.
        for item in &items[1..] {
            settled.push(walk.take(item)?);
        }
        let entries = needed(settled)
            .map(|settled| {
                Ok(LayerEntry {
                    path: settled.path.parse()?,
                    content: settled.content.clone(),
                    security: settled.security,
                    attributes: settled.attributes,
                })
            })
            .collect::<Result<Vec<_>, LayerError>>()?;
        self.files = entries;
        self.secured.clear();
        Ok(())
    }
}

/// The entries without folders that the base has and nothing lies in.
fn needed(settled: Vec<FittedEntry<'_>>) -> impl Iterator<Item = FittedEntry<'_>> {
    let mut needed = Vec::with_capacity(settled.len());
    // The way up from the last entry that is needed.
    let mut above = String::new();
    for entry in settled.into_iter().rev() {
        let is_above = above
            .strip_prefix(&entry.path)
            .is_some_and(|rest| rest.starts_with('/'));
        if entry.is_change || is_above {
            above.clone_from(&entry.path);
            needed.push(entry);
        }
    }
    needed.into_iter().rev()
}

struct Walk<'a> {
    inside: &'a dyn BaseContents,
    drive: Folder,
    /// The folders on the way to the next entry.
    open: Vec<Folder>,
}

/// A folder that entries lie in.
struct Folder {
    /// Its name in the layer as it is, and as it will be.
    name: String,
    written: String,
    below: BaseFolderState,
    passed_on: InheritedDescriptors,
}

/// What is known of what a folder has in the base.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BaseFolderState {
    Unknown,
    Known,
    /// There is no such folder.
    Nothing,
}

/// What entries in a folder inherit from it, where that is known; worked out once.
struct InheritedDescriptors {
    descriptor: Option<SecurityDescriptor>,
    folder: Option<Security>,
    file: Option<Security>,
}

struct FittedEntry<'a> {
    path: String,
    content: &'a EntryContent,
    security: Option<Security>,
    attributes: Option<u32>,
    /// True if it is more than a folder as the base has it.
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

    fn to(&mut self, child: ChildKind) -> Option<Security> {
        let descriptor = self.descriptor.as_ref()?;
        let known = match child {
            ChildKind::File => &mut self.file,
            ChildKind::Folder | ChildKind::Key => &mut self.folder,
        };
        let inherit = || {
            let (owner, group) = (Sid::administrators(), Sid::local_system());
            Security::from(&descriptor.inherited_by(child, &owner, &group))
        };
        Some(known.get_or_insert_with(inherit).clone())
    }
}

impl Walk<'_> {
    fn take<'i>(&mut self, item: &TarItem<'i>) -> Result<FittedEntry<'i>, LayerError> {
        let inside = item.name.strip_prefix("Files/").unwrap_or_default();
        let (folder, mut name) = inside.rsplit_once('/').unwrap_or(("", inside));
        if matches!(item.content, EntryContent::Deletion) {
            name = name.strip_prefix(WHITEOUT_PREFIX).unwrap_or(name);
        }
        while self.open.last().is_some_and(|open| open.name != folder) {
            self.open.pop();
        }
        let parent = self.open.last_mut().unwrap_or(&mut self.drive);
        let path = join(&parent.written, name);
        let found = match parent.below {
            BaseFolderState::Unknown => Presence::Unknown,
            BaseFolderState::Nothing => Presence::Absent,
            BaseFolderState::Known => match format!("/{path}").parse() {
                Ok(path) => self.inside.file(&path)?,
                Err(_) => Presence::Unknown,
            },
        };
        check(&path, item.content, &found)?;
        let child = match item.content {
            EntryContent::Directory
            | EntryContent::Symlink(Symlink {
                to: LinkTo::Directory,
                ..
            }) => ChildKind::Folder,
            _ => ChildKind::File,
        };
        let below = match found {
            Presence::Unknown => BaseFolderState::Unknown,
            Presence::Absent => BaseFolderState::Nothing,
            Presence::Present(_) => BaseFolderState::Known,
        };
        let base = found
            .present()
            .filter(|base| is_same_kind(base, item.content));
        let security = match (&base, item.security) {
            (_, Some(own)) => Some(own.clone()),
            (Some(base), None) => base.security.as_deref().map(Security::from),
            (None, None) => parent.passed_on.to(child),
        };
        let written = match base.as_ref().map(|base| base.name.as_str()) {
            Some(spelled) if !spelled.is_empty() => join(&parent.written, spelled),
            _ => path,
        };
        let settled = FittedEntry {
            path: written.clone(),
            content: item.content,
            attributes: item.attributes.or_else(|| base.as_ref().map(attributes)),
            is_change: base.is_none() || child == ChildKind::File || item.security.is_some(),
            security,
        };
        if matches!(item.content, EntryContent::Directory) {
            let security = settled.security.as_ref().map(Security::bytes);
            self.open.push(Folder {
                name: inside.to_owned(),
                written,
                below,
                passed_on: InheritedDescriptors::new(security),
            });
        }
        Ok(settled)
    }
}

/// Refuses an entry that cannot be where the base has something else.
fn check(path: &str, content: &EntryContent, found: &Presence<BaseFile>) -> Result<(), LayerError> {
    let Presence::Present(BaseFile { kind, .. }) = found else {
        return Ok(());
    };
    let (found, wanted) = match (kind, content) {
        (FileKind::File(_), EntryContent::Directory) => ("a file", "a folder"),
        (FileKind::Link(()), EntryContent::Directory) => ("a link", "a folder"),
        (FileKind::Folder, EntryContent::File(_)) => ("a folder", "a file"),
        (FileKind::Folder, EntryContent::Symlink(_)) => ("a folder", "a link"),
        _ => return Ok(()),
    };
    Err(LayerError::InTheWay {
        path: format!(r"C:\{}", path.replace('/', r"\")),
        found,
        wanted,
    })
}

fn is_same_kind(base: &BaseFile, content: &EntryContent) -> bool {
    matches!(
        (base.kind, content),
        (FileKind::Folder, EntryContent::Directory) | (FileKind::File(_), EntryContent::File(_))
    )
}

impl Layer {
    /// Lets files and folders have the attributes of what was in the image before at another path,
    /// and, where they were moved, its descriptor.
    pub fn copy_metadata(&mut self, entries: &[(LayerPath, BaseFile, bool)]) {
        if entries.is_empty() {
            return;
        }
        let places = self.files.iter().enumerate();
        let places: HashMap<String, usize> = places
            .map(|(place, entry)| (fold(entry.path.as_str()), place))
            .collect();
        for (path, was, is_moved) in entries {
            let Some(place) = places.get(&fold(path.as_str())) else {
                continue;
            };
            let entry = &mut self.files[*place];
            entry.attributes = Some(attributes(was));
            if *is_moved {
                entry.security = was.security.as_deref().map(Security::from);
            }
        }
    }
}

fn attributes(base: &BaseFile) -> u32 {
    let kind = match base.kind {
        FileKind::Folder => DIRECTORY,
        // What was written to is to be archived.
        FileKind::File(_) | FileKind::Link(()) => ARCHIVE,
    };
    base.attributes & REPEATED | kind
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        return name.to_owned();
    }
    format!("{folder}/{name}")
}

#[cfg(test)]
mod tests;
