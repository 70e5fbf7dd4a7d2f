//! Checks and paths of an archive's members below a Windows folder.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use wincimg_windows::base_contents::FileKind;
use wincimg_windows::path::{fold, name_problem};

use super::error::ArchiveError;
use super::format::ArchiveFormat;
use super::member::Member;
use super::{Archive, ArchiveEntry, ArchiveEntryKind};
use crate::content::{LinkTo, Symlink};

/// Selection of an archive's members.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnpackSelection<'a> {
    /// Number of leading path components to strip; members with fewer are skipped.
    pub strip: usize,
    /// Paths to unpack, with everything below them; all if empty.
    pub only: &'a [String],
    /// Program that unpacks it.
    pub by: Unpacker,
}

/// Program that unpacks an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unpacker {
    /// This program.
    #[default]
    Native,
    /// .NET on Windows, which unpacks a link in a zip as a text file with the target.
    Dotnet,
    /// Another program on Windows.
    OtherOnWindows,
}

/// An entry of an unpacked archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedEntry {
    /// Path components, each valid on Windows.
    pub names: Vec<String>,
    /// Content.
    pub content: UnpackedContent,
}

/// Content of an unpacked entry.
pub type UnpackedContent = FileKind<Member, Symlink>;

impl Archive {
    /// Returns the selected entries: folders before their content, each path once.
    pub fn unpack(
        self: &Arc<Self>,
        selection: &UnpackSelection<'_>,
    ) -> Result<Vec<UnpackedEntry>, ArchiveError> {
        let mut draft = Draft {
            archive: self,
            all: Vec::new(),
            places: HashMap::new(),
        };
        let only: Vec<Vec<&str>> = selection.only.iter().map(|path| parts(path)).collect();
        let mut missing: BTreeSet<usize> = (0..only.len()).collect();
        for (index, entry) in self.entries.iter().enumerate() {
            let names = self.names(entry)?;
            if !only.is_empty() {
                let mut wanted = only.iter();
                let Some(place) = wanted.position(|wanted| names.starts_with(wanted)) else {
                    continue;
                };
                missing.remove(&place);
            }
            if let Some(names) = names
                .get(selection.strip..)
                .filter(|names| !names.is_empty())
            {
                draft.add(index, entry, names, selection.by)?;
            }
        }
        if let Some(missing) = missing.first() {
            let problem = format!("it has no {:?}", selection.only[*missing]);
            return Err(ArchiveError::whole(&self.name, problem));
        }
        Ok(draft.done())
    }

    /// Path components of an entry, which may not escape the folder. Programs on Windows accept
    /// both separators in any archive.
    fn names<'e>(&self, entry: &'e ArchiveEntry) -> Result<Vec<&'e str>, ArchiveError> {
        let path = entry.path.as_str();
        let refused = |problem| Err(ArchiveError::member(&self.name, path, problem));
        // Every tar drops a leading slash, and so did its reader.
        if path.starts_with(['/', '\\']) {
            return refused("its path escapes the folder: it starts with a drive");
        }
        let names = parts(path);
        if names.contains(&"..") {
            return refused("its path escapes the folder");
        }
        Ok(names)
    }
}

fn parts(path: &str) -> Vec<&str> {
    let names = path.split(['/', '\\']);
    names.filter(|name| !matches!(*name, "" | ".")).collect()
}

/// Entries unpacked so far.
struct Draft<'a> {
    archive: &'a Arc<Archive>,
    all: Vec<UnpackedEntry>,
    /// Index of an entry, by its folded path.
    places: HashMap<String, usize>,
}

impl Draft<'_> {
    fn add(
        &mut self,
        index: usize,
        entry: &ArchiveEntry,
        names: &[&str],
        by: Unpacker,
    ) -> Result<(), ArchiveError> {
        let archive = self.archive;
        let refused = |problem: String| ArchiveError::member(&archive.name, &entry.path, problem);
        if let Some(problem) = &entry.problem {
            return Err(refused(problem.clone()));
        }
        if entry.is_by_code_page && by != Unpacker::Native {
            let problem = "it does not state the encoding of its name: on Windows that depends on \
                           the code page";
            return Err(refused(problem.to_owned()));
        }
        for name in names {
            if let Some(problem) = name_problem(name) {
                return Err(refused(format!(
                    "Windows does not accept the name {name:?}: {problem}"
                )));
            }
        }
        let file = |index| {
            UnpackedContent::File(Member {
                archive: Arc::clone(archive),
                index,
            })
        };
        let content = match &entry.kind {
            ArchiveEntryKind::Folder => UnpackedContent::Folder,
            ArchiveEntryKind::File => file(index),
            ArchiveEntryKind::Same(other) => file(*other),
            ArchiveEntryKind::Link(_)
                if by == Unpacker::Dotnet && archive.format == ArchiveFormat::Zip =>
            {
                file(index)
            }
            ArchiveEntryKind::Link(target) => UnpackedContent::Link(Symlink {
                target: link(names, target).ok_or_else(|| {
                    refused(format!("it is a link to {target:?}, outside the folder"))
                })?,
                to: LinkTo::File,
            }),
        };
        for depth in 1..names.len() {
            self.put(&names[..depth], UnpackedContent::Folder, &refused)?;
        }
        self.put(names, content, &refused)
    }

    fn put(
        &mut self,
        names: &[&str],
        content: UnpackedContent,
        refused: &dyn Fn(String) -> ArchiveError,
    ) -> Result<(), ArchiveError> {
        let path = names.join("/");
        let key = fold(&path);
        let Some(place) = self.places.get(&key) else {
            self.places.insert(key, self.all.len());
            self.all.push(UnpackedEntry {
                names: names.iter().map(|name| (*name).to_owned()).collect(),
                content,
            });
            return Ok(());
        };
        let known = &mut self.all[*place];
        let is_folder = |content: &UnpackedContent| *content == UnpackedContent::Folder;
        match (is_folder(&known.content), is_folder(&content)) {
            (true, true) => Ok(()),
            (false, false) if known.names == names => {
                // In a tar a later version of a file replaces an earlier one.
                if !matches!(self.archive.format, ArchiveFormat::Tar(_)) {
                    return Err(refused("it is a duplicate".to_owned()));
                }
                known.content = content;
                Ok(())
            }
            (true, false) => Err(refused(format!("{path:?} is a folder too"))),
            (false, true) => Err(refused(format!("{path:?} is not a folder"))),
            (false, false) => Err(refused(format!(
                "on Windows it is the same path as {:?}, which is in the archive too",
                known.names.join("/")
            ))),
        }
    }

    fn done(mut self) -> Vec<UnpackedEntry> {
        let folders: BTreeSet<String> = self
            .all
            .iter()
            .filter(|entry| entry.content == UnpackedContent::Folder)
            .map(|entry| fold(&entry.names.join("/")))
            .collect();
        for entry in &mut self.all {
            if let UnpackedContent::Link(Symlink { target, to }) = &mut entry.content {
                let names: Vec<&str> = entry.names.iter().map(String::as_str).collect();
                let meant = resolve(&names, target);
                if meant.is_some_and(|meant| {
                    meant.is_empty() || folders.contains(&fold(&meant.join("/")))
                }) {
                    *to = LinkTo::Directory;
                }
            }
        }
        self.all
    }
}

/// Target of a link, if it stays below the folder.
fn link(names: &[&str], target: &str) -> Option<String> {
    if target.starts_with(['/', '\\']) {
        return None;
    }
    let meant = resolve(names, target)?;
    if meant.iter().any(|name| name_problem(name).is_some()) {
        return None;
    }
    let parts = parts(target);
    if parts.is_empty() {
        return Some(".".to_owned());
    }
    Some(parts.join("/"))
}

/// Resolves a link's target by components.
fn resolve<'n>(names: &[&'n str], target: &'n str) -> Option<Vec<&'n str>> {
    let mut at = names[..names.len().saturating_sub(1)].to_vec();
    for name in parts(target) {
        match name {
            ".." => {
                at.pop()?;
            }
            name => at.push(name),
        }
    }
    Some(at)
}
