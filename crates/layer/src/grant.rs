//! Grants of rights on a layer's entries and the base's folders, in security descriptors.
//!
//! Like `icacls`, a grant on a folder is inherited by its content: by the layer's files and
//! folders, and by those folders of the base that inherit rights. The base's files are unchanged,
//! because a layer that changes a file's descriptor has to contain the whole file.

use std::collections::{HashMap, HashSet};

use wincimg_common::diagnose::Diagnose;
use wincimg_registry::security::{SecurityDescriptor, UnreadableDescriptor};
use wincimg_registry::{BaseReadError, Presence};
use wincimg_windows::access::Access;
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::path::ImagePath;

use super::content::{EntryContent, Layer, is_below};
use super::descriptor::{self, Security};
use super::error::LayerError;
use super::overlay::BaseOverlay;
use super::path::{LayerPath, fold};

/// Maximum number of folders; more are hardly intended.
const MOST_FOLDERS: usize = 4096;

/// Error of granting rights.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "recipe/access", blame = Request)]
pub enum GrantError {
    /// The base may have it, and is unknown.
    #[error(
        "cannot grant rights on {path}: the base may have it, and the content of the base is unknown"
    )]
    #[diagnose(hint = "build with --engine docker, on a Docker daemon for Windows containers")]
    Unknown {
        /// The file or folder.
        path: ImagePath,
    },
    /// Neither the base nor the recipe has it.
    #[error("cannot grant rights on {path}: neither the base nor the recipe has it")]
    #[diagnose(hint = "add it with [[files]], or set it as the working_dir")]
    Nowhere {
        /// The file or folder.
        path: ImagePath,
    },
    /// It is a file of the base, or a link.
    #[error(
        "cannot grant rights on {path}, a file or link of the base: a layer would have to contain all of it"
    )]
    #[diagnose(hint = "build with --engine docker, on a Docker daemon for Windows containers")]
    OfBase {
        /// The file.
        path: ImagePath,
    },
    /// It contains too many folders.
    #[error(
        "cannot grant rights on {path} and the {count} folders of the base in it: the maximum is {MOST_FOLDERS}"
    )]
    #[diagnose(hint = "add inherit = \"none\", or name a folder further down")]
    TooMany {
        /// The folder.
        path: ImagePath,
        /// Number of folders.
        count: usize,
    },
    /// Its content inherits the rights to replace.
    #[error(
        "cannot replace the rights on {path}: files and folders in it inherit them, and would lose them"
    )]
    #[diagnose(hint = "build with --engine docker, on a Docker daemon for Windows containers")]
    PassedOn {
        /// The folder.
        path: ImagePath,
    },
    /// Its descriptor cannot be read.
    #[error("cannot read the security descriptor of {path}")]
    #[diagnose(code = "base/unreadable", blame = Circumstances)]
    Unreadable {
        /// The file or folder.
        path: String,
        /// The cause.
        source: UnreadableDescriptor,
    },
    /// The base's facts cannot be read.
    #[error(transparent)]
    #[diagnose(code = "base/unreadable", blame = Circumstances)]
    Inside(#[from] BaseReadError),
    /// The layer's entries conflict.
    #[error(transparent)]
    #[diagnose(forward)]
    Layer(#[from] LayerError),
}

impl Layer {
    /// Adds the files of earlier layers whose descriptors a grant changes, because a layer that
    /// changes a file's descriptor has to contain the whole file. What is in a folder of `gone` is
    /// deleted.
    pub fn copy_up(
        &mut self,
        access: &[Access],
        below: &BaseOverlay<'_>,
        gone: &[ImagePath],
    ) -> Result<(), LayerError> {
        if access.is_empty() {
            return Ok(());
        }
        let entries = self.entries();
        let mut own: HashSet<String> = entries.map(|(path, _)| fold(path.as_str())).collect();
        let mut deleted: Vec<String> = self.deletions().collect();
        for path in gone {
            deleted.push(fold(LayerPath::try_from(path)?.as_str()));
        }
        for access in access {
            let top = fold(LayerPath::try_from(&access.path)?.as_str());
            for (path, source) in below.files_in(&access.path)? {
                let key = fold(path.as_str());
                let is_granted = key == top || access.applies_to_files();
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
        deleted.map(|(path, _)| fold(path.as_str()))
    }

    /// Grants rights, in order, on the layer's current entries and on folders of the base. Fitting
    /// the layer to the base first sets the descriptors to which the rights are added; fitting it
    /// afterwards copies the attributes of the base's folders.
    pub fn grant(
        &mut self,
        access: &[Access],
        inside: &dyn BaseContents,
    ) -> Result<(), GrantError> {
        for access in access {
            let granted = GrantContext::descriptors(self, access, inside)?;
            // Most descriptors are one of a few.
            let mut written: HashMap<SecurityDescriptor, Security> = HashMap::new();
            for (path, descriptor) in granted {
                let security = written
                    .entry(descriptor)
                    .or_insert_with_key(|descriptor| Security::from(descriptor));
                self.set_security(path, security.clone());
            }
        }
        Ok(())
    }
}

/// A grant in progress.
struct GrantContext<'a> {
    access: &'a Access,
    inside: &'a dyn BaseContents,
    /// Current descriptors of the layer.
    secured: HashMap<String, Security>,
    granted: Vec<(LayerPath, SecurityDescriptor)>,
    /// True if the replaced rights were inherited by content.
    withdraws: bool,
}

impl<'a> GrantContext<'a> {
    fn descriptors(
        layer: &Layer,
        access: &'a Access,
        inside: &'a dyn BaseContents,
    ) -> Result<Vec<(LayerPath, SecurityDescriptor)>, GrantError> {
        let mut granting = Self {
            access,
            inside,
            secured: layer.securities(),
            granted: Vec::new(),
            withdraws: false,
        };
        let top = LayerPath::try_from(&access.path).map_err(LayerError::Path)?;
        let key = fold(top.as_str());
        let entries = layer.drive()?;
        let own = entries.iter().filter_map(|(path, content)| {
            let is_folder = match content {
                EntryContent::Directory => true,
                EntryContent::File(_) => false,
                EntryContent::Symlink(_) | EntryContent::Deletion => return None,
            };
            let own = fold(path);
            (own == key || is_below(&own, &key)).then_some((path, own, is_folder))
        });
        let own: Vec<_> = own.collect();
        let of_base = inside.file(&access.path)?;
        let is_folder_of_base =
            matches!(&of_base, Presence::Present(file) if file.kind == FileKind::Folder);
        let top_entry = own.first().filter(|(_, own, _)| *own == key);
        // Windows has its own rights on most of its folders.
        let is_folder = top_entry.is_some_and(|(_, _, is_folder)| *is_folder);
        if of_base == Presence::Unknown && is_folder && access.path.is_of_windows() {
            return Err(GrantError::Unknown {
                path: access.path.clone(),
            });
        }
        // The folder itself precedes its content.
        if top_entry.is_none() {
            let path = access.path.clone();
            match of_base {
                Presence::Present(file) if is_folder_of_base => {
                    let found = base_descriptor(&path, &file)?;
                    let found = found.map_or_else(|| default_descriptor(true), Ok)?;
                    granting.top(top, &found, true);
                }
                Presence::Present(_) => return Err(GrantError::OfBase { path }),
                Presence::Absent => return Err(GrantError::Nowhere { path }),
                Presence::Unknown => return Err(GrantError::Unknown { path }),
            }
        }
        let mut known = HashSet::new();
        for (path, own, is_folder) in own {
            granting.entry(path, &own, is_folder, own == key)?;
            known.insert(own);
        }
        if is_folder_of_base {
            granting.folders_of_base(&known, &layer.deletions().collect::<Vec<_>>())?;
        }
        Ok(granting.granted)
    }

    /// An entry of the layer.
    fn entry(
        &mut self,
        path: &str,
        key: &str,
        is_folder: bool,
        is_top: bool,
    ) -> Result<(), GrantError> {
        let unreadable = |source| GrantError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let found = match self.secured.get(key) {
            Some(security) => Some(security.descriptor().map_err(unreadable)?),
            None if is_folder => self.folder_of_base(path)?,
            None => None,
        };
        let found = found.map_or_else(|| default_descriptor(is_folder), Ok)?;
        let entry = path.parse().map_err(LayerError::Path)?;
        if is_top {
            self.top(entry, &found, is_folder);
        } else if let Some(after) = self.inside_of_it(&found, is_folder)? {
            self.granted.push((entry, after));
        }
        Ok(())
    }

    /// The file or folder itself.
    fn top(&mut self, path: LayerPath, found: &SecurityDescriptor, is_folder: bool) {
        self.withdraws = self.access.revokes_inherited(found);
        self.granted
            .push((path, self.access.grant_to(found, is_folder)));
    }

    /// Descriptor of an entry in the folder, if it changes. It loses the replaced rights that it
    /// inherits from the folder.
    fn inside_of_it(
        &self,
        found: &SecurityDescriptor,
        is_folder: bool,
    ) -> Result<Option<SecurityDescriptor>, GrantError> {
        if self.withdraws && self.access.is_inherited_by(found) {
            let path = self.access.path.clone();
            return Err(GrantError::PassedOn { path });
        }
        let passed_on = self.access.inherited_descriptor(found, is_folder);
        if !self.access.each_inside {
            return Ok(passed_on);
        }
        let found = passed_on.as_ref().unwrap_or(found);
        Ok(Some(self.access.grant_to(found, is_folder)))
    }

    /// Descriptor of a folder that the base has too.
    fn folder_of_base(&self, path: &str) -> Result<Option<SecurityDescriptor>, GrantError> {
        let Ok(path) = format!("/{path}").parse::<ImagePath>() else {
            return Ok(None);
        };
        match self.inside.file(&path)?.present() {
            Some(file) if file.kind == FileKind::Folder => base_descriptor(&path, &file),
            _ => Ok(None),
        }
    }

    /// Grants on the folders of the base below, except those that the layer has too or deletes, and
    /// those that inherit no rights, with their content.
    fn folders_of_base(
        &mut self,
        known: &HashSet<String>,
        deleted: &[String],
    ) -> Result<(), GrantError> {
        let Some(folders) = self.inside.folders_below(&self.access.path)?.present() else {
            return Ok(());
        };
        let mut apart: Option<ImagePath> = None;
        for (path, file) in &folders {
            if apart
                .as_ref()
                .is_some_and(|top| path.strip_prefix(top).is_some())
            {
                continue;
            }
            let entry = LayerPath::try_from(path).map_err(LayerError::Path)?;
            let key = fold(entry.as_str());
            let Some(found) = base_descriptor(path, file)? else {
                continue;
            };
            if is_in(deleted, &key) {
                continue;
            }
            match self.inside_of_it(&found, true)? {
                None => apart = Some(path.clone()),
                Some(_) if known.contains(&key) => {}
                Some(after) => self.granted.push((entry, after)),
            }
        }
        let count = folders.len();
        if self.granted.len() > MOST_FOLDERS + known.len() {
            let path = self.access.path.clone();
            return Err(GrantError::TooMany { path, count });
        }
        Ok(())
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
) -> Result<Option<SecurityDescriptor>, GrantError> {
    let bytes = file.security.as_deref();
    let descriptor = bytes.map(SecurityDescriptor::from_bytes).transpose();
    descriptor.map_err(|source| GrantError::Unreadable {
        path: path.to_string(),
        source,
    })
}

/// Default descriptor of an entry.
fn default_descriptor(is_folder: bool) -> Result<SecurityDescriptor, GrantError> {
    let usual = if is_folder {
        &descriptor::DIRECTORY
    } else {
        &descriptor::FILE
    };
    usual.descriptor().map_err(|source| GrantError::Unreadable {
        path: "a new entry".to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
