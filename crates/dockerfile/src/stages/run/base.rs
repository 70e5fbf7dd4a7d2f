//! Files of the base in `RUN` lines: they are listed by the index, and their contents are extracted
//! from its layers after the line was read. A layer that changes a file's permissions contains the
//! file again, so files of earlier layers are copied.

use std::cell::RefCell;
use std::collections::BTreeSet;

use wincimg_common::diagnose::error_chain;
use wincimg_inspect::ExtractedEntry;
use wincimg_layer::Layer;
use wincimg_recipe::{CopiedEntry, FetchedFile, FileSource, PlannedContent, PlannedEntry};
use wincimg_registry::Presence;
use wincimg_scripts::{ImageState as _, Lookup, PendingDownload, ScriptError, ScriptErrorKind};
use wincimg_windows::access::AccessChange;
use wincimg_windows::base_contents::{FileDigest, FileKind};
use wincimg_windows::path::ImagePath;

use super::super::drive::PathKind;
use super::super::state::StageState;
use super::super::{ExtractedFiles, Inputs};
use super::{ENTRY_SIZE, LONGEST, Result, RunState, bytes};

/// Attributes that a copy keeps: read-only, hidden, system, not indexed.
const COPIED: u32 = 0x1 | 0x2 | 0x4 | 0x2000;

/// Files of the image at the root of a stage.
pub(in crate::stages) struct BaseFiles<'a> {
    /// Image, by its name in the file.
    pub(in crate::stages) image: &'a str,
    /// True if it may have set variables of users.
    pub(super) has_user_variables: bool,
    /// Files extracted from it.
    files: Option<&'a ExtractedFiles>,
    /// Files that must be extracted first.
    pub(in crate::stages) lacking: RefCell<BTreeSet<String>>,
}

impl<'a> BaseFiles<'a> {
    pub(in crate::stages) fn of(state: &'a StageState, inputs: &'a Inputs) -> Self {
        let base = inputs.bases.get(&state.base_name);
        Self {
            image: &state.base_name,
            has_user_variables: base.is_some_and(|base| base.has_user_variables),
            files: inputs.files.get(&state.base_name),
            lacking: RefCell::default(),
        }
    }

    /// The extracted files; `None` if a path must be extracted first.
    pub(in crate::stages) fn extracted(&self, path: &str) -> Option<&'a ExtractedFiles> {
        let files = self.files.filter(|files| files.contains(path));
        if files.is_none() {
            self.lacking.borrow_mut().insert(path.to_owned());
        }
        files
    }

    /// A file of the base; empty until it is extracted.
    pub(super) fn extracted_file(&self, path: &ImagePath) -> Result<PlannedContent> {
        let source = self.source(path);
        let source = source.unwrap_or_else(|| Ok(FileSource::Text("".into())));
        source.map(PlannedContent::File)
    }

    /// The extracted file; `None` if it must be extracted first.
    pub(super) fn source(&self, path: &ImagePath) -> Option<Result<FileSource>> {
        let place = path.components().join("/");
        Some(match self.extracted(&place)?.get(&place) {
            Some((_, ExtractedEntry::File(part))) => Ok(FileSource::Brought(FetchedFile {
                part: part.clone(),
                from: format!("{path} in {}", self.image),
                image: None,
            })),
            Some((_, ExtractedEntry::Link(()))) => Err(ScriptError::unclear(format!(
                "the base's {path} is a link, which cannot be copied"
            ))),
            Some((_, ExtractedEntry::Folder)) | None => Err(ScriptError::unclear(format!(
                "no layer of the base has the file {path}"
            ))),
        })
    }
}

impl RunState<'_> {
    /// Content of a small file of the base.
    pub(super) fn content_of_base(&self, file: &ImagePath) -> Lookup<Vec<u8>> {
        match self.kind(file) {
            Ok(Presence::Present(PathKind::File(()))) => {}
            Ok(Presence::Present(PathKind::Folder) | Presence::Absent) => return Lookup::Absent,
            Ok(Presence::Present(PathKind::Link(())) | Presence::Unknown) | Err(_) => {
                return Lookup::Unknown;
            }
        }
        if let Ok(Presence::Present(content)) = self.tree.base().content(file) {
            return Lookup::Present(content);
        }
        let is_small = matches!(
            self.tree.base().file(file),
            Ok(Presence::Present(found)) if matches!(found.kind, FileKind::File(FileDigest { size, .. }) if size <= LONGEST)
        );
        if !is_small {
            return Lookup::Unknown;
        }
        match self.base.source(file) {
            Some(Ok(source)) => bytes(&source).map_or(Lookup::Unknown, Lookup::Present),
            Some(Err(_)) => Lookup::Unknown,
            None => Lookup::Deferred(PendingDownload),
        }
    }

    pub(super) fn copy_entry(
        &mut self,
        from: &ImagePath,
        to: &ImagePath,
        is_moved: bool,
    ) -> Result<()> {
        if self.is_log(from) {
            let why = format!("only Windows writes the log {from}");
            return Err(ScriptError::new(ScriptErrorKind::NeedsWindows, why));
        }
        let mut pending = vec![(from.clone(), to.clone())];
        while let Some((from, to)) = pending.pop() {
            match self.kind(&from)? {
                Presence::Present(PathKind::Folder) => {
                    let inside = self.tree.inside(&from)?;
                    let Presence::Present(inside) = inside else {
                        return Err(not_known(&from));
                    };
                    for (name, _) in inside {
                        pending.push((from.join(&name)?, to.join(&name)?));
                    }
                    let is_new = self.kind(&to)? == Presence::Absent;
                    self.make_folder(to.clone())?;
                    if is_new && is_moved {
                        self.record_kept(&from, to, true);
                    }
                }
                // Windows copies the file that it links to.
                Presence::Present(PathKind::Link(())) if !is_moved => {
                    return Err(ScriptError::unknown(format!(
                        "{from} is a link, and links are not followed"
                    )));
                }
                Presence::Present(kind) => {
                    let made = self
                        .tree
                        .created_entry(&from)
                        .map(|entry| entry.content.clone());
                    let content = match made {
                        Some(content) => content,
                        None if kind == PathKind::Link(()) => {
                            let why =
                                format!("the base's {from} is a link, which cannot be copied");
                            return Err(ScriptError::unclear(why));
                        }
                        None => self.base.extracted_file(&from)?,
                    };
                    self.check_writable(&to, false)?;
                    self.put(to.clone(), content)?;
                    self.record_kept(&from, to, is_moved);
                }
                Presence::Absent | Presence::Unknown => return Err(not_known(&from)),
            }
        }
        Ok(())
    }

    /// Records attributes and permissions that an entry keeps from before this line, if it was not
    /// created by the stage and they are known.
    fn record_kept(&mut self, from: &ImagePath, to: ImagePath, is_moved: bool) {
        let origin = match self.changes.kept.get(&from.key()).cloned() {
            Some(kept) if kept.is_moved || !is_moved => kept.from,
            Some(_) => return,
            None if self.changes.has(from) => return,
            None => from.clone(),
        };
        let of_base = self.state.tree.base();
        let is_worth_it = if is_moved {
            !matches!(
                of_base.file(&ImagePath::drive()),
                Ok(Presence::Unknown) | Err(_)
            )
        } else {
            matches!(of_base.file(&origin), Ok(Presence::Present(found)) if found.attributes & COPIED != 0)
        };
        if is_worth_it {
            let kept = CopiedEntry {
                path: to,
                from: origin,
                is_moved,
            };
            self.tree.keep(&kept);
            self.changes.kept.insert(kept.path.key(), kept);
        }
    }

    /// Checks that an entry can replace one that this line deleted. A layer either deletes a path
    /// or has an entry there: a folder that is created again exists, with its old contents deleted.
    pub(super) fn check_writable(&mut self, path: &ImagePath, is_folder: bool) -> Result<()> {
        let mut place = ImagePath::drive();
        for (depth, name) in (1..).zip(path.components()) {
            place = place.join(name)?;
            if !self.changes.deletes(&place) {
                continue;
            }
            let stays_file = depth == path.components().len() && !is_folder;
            match (self.kind_before(&place)?, stays_file) {
                (Presence::Present(PathKind::File(())), true) => continue,
                (Presence::Present(PathKind::Folder), false) => {}
                _ => {
                    let why =
                        format!("{place} is deleted and replaced by something else in one line");
                    return Err(ScriptError::unclear(why).help("delete it in a RUN of its own"));
                }
            }
            let Presence::Present(inside) = self.state.tree.inside(&place)? else {
                return Err(not_known(&place));
            };
            for (name, _) in inside {
                let path = place.join(&name)?;
                let content = PlannedContent::Deleted;
                self.changes.insert(PlannedEntry { path, content });
            }
            self.put(place.clone(), PlannedContent::Folder)?;
            self.changes.recreated.insert(place.key(), place.clone());
        }
        Ok(())
    }
}

fn not_known(path: &ImagePath) -> ScriptError {
    ScriptError::unknown(format!("the base's contents at {path} are unknown"))
}

/// Maximum number of the base's files; more is probably a mistake.
const MOST_OF_BASE: usize = 4096;

impl RunState<'_> {
    pub(super) fn change_access(&mut self, change: AccessChange) -> Result<()> {
        if change.path().components().is_empty() {
            let why = "a layer cannot change the permissions of the drive itself";
            return Err(ScriptError::unclear(why));
        }
        self.set_access(change)
    }

    /// Adds a change of permissions, with the files that it changes.
    pub(super) fn set_access(&mut self, change: AccessChange) -> Result<()> {
        self.check_on_base(&change)?;
        self.copy_up(&change)?;
        self.changes.access.push(change);
        Ok(())
    }

    /// Tries a change on what the base has at and below a folder, as far as it is known, after earlier
    /// changes of the same folder.
    fn check_on_base(&self, change: &AccessChange) -> Result<()> {
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
    fn copy_up(&mut self, change: &AccessChange) -> Result<()> {
        let mut pending = vec![change.path().clone()];
        while let Some(path) = pending.pop() {
            if self.tree.is_later(&path) {
                continue;
            }
            let unknown = || {
                let why = format!("the base's contents and permissions at {path} are unknown");
                ScriptError::unknown(why)
            };
            match self.kind(&path)? {
                Presence::Present(PathKind::Folder) => {}
                Presence::Present(PathKind::File(())) => {
                    self.copy_again(&path)?;
                    continue;
                }
                // The target of a link keeps its permissions.
                Presence::Present(PathKind::Link(())) | Presence::Absent => continue,
                Presence::Unknown => return Err(unknown()),
            }
            if self.tree.created_entry(&path).is_some() {
                self.copy_again(&path)?;
            }
            let Presence::Present(inside) = self.tree.inside(&path)? else {
                return Err(unknown());
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

    fn copy_again(&mut self, path: &ImagePath) -> Result<()> {
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
