//! Checks and paths of an archive's members below a Windows folder.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use wincimg_common::untrusted::QuotedText;
use wincimg_windows::base_contents::FileKind;
use wincimg_windows::path::{fold, name_problem};

use super::error::ArchiveError;
use super::format::ArchiveFormat;
use super::member::Member;
use super::{Archive, ArchiveEntry, ArchiveEntryKind, ArchiveSize};
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
    /// Path: names valid on Windows, joined by `/`.
    pub path: String,
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
            sum: ArchiveSize::new(&self.name, 0),
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
            return refused(r#"its path contains "..", which may lead out of the folder"#);
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
    /// Position of an entry, by the position of its folder and its folded name: a table of whole
    /// paths would contain the text of each folder again for each of its entries.
    places: HashMap<(Position, String), Position>,
    sum: ArchiveSize<'a>,
}

/// Index of an entry plus one; 0 for the folder that the archive is unpacked into.
type Position = usize;

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
                    "Windows does not accept the name {}: {problem}",
                    QuotedText(name)
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
        let mut folder = 0;
        for depth in 1..names.len() {
            folder = self.put(folder, &names[..depth], UnpackedContent::Folder, &refused)?;
        }
        self.put(folder, names, content, &refused).map(drop)
    }

    /// Adds the entry at `names`, whose folder is at a position.
    fn put(
        &mut self,
        folder: Position,
        names: &[&str],
        content: UnpackedContent,
        refused: &dyn Fn(String) -> ArchiveError,
    ) -> Result<Position, ArchiveError> {
        let key = (
            folder,
            names.last().map_or_else(String::new, |name| fold(name)),
        );
        let Some(position) = self.places.get(&key).copied() else {
            let path = names.join("/");
            self.sum.add(&path, 0)?;
            self.all.push(UnpackedEntry { path, content });
            self.places.insert(key, self.all.len());
            return Ok(self.all.len());
        };
        let known = &mut self.all[position - 1];
        let is_folder = |content: &UnpackedContent| *content == UnpackedContent::Folder;
        match (is_folder(&known.content), is_folder(&content)) {
            (true, true) => Ok(position),
            (false, false) if known.path.split('/').eq(names.iter().copied()) => {
                // In a tar a later version of a file replaces an earlier one.
                if !matches!(self.archive.format, ArchiveFormat::Tar(_)) {
                    return Err(refused("it is a duplicate".to_owned()));
                }
                known.content = content;
                Ok(position)
            }
            (true, false) => Err(refused(format!("{:?} is a folder too", names.join("/")))),
            (false, true) => Err(refused(format!("{:?} is not a folder", names.join("/")))),
            (false, false) => Err(refused(format!(
                "on Windows it is the same path as {:?}, which is in the archive too",
                known.path
            ))),
        }
    }

    fn done(mut self) -> Vec<UnpackedEntry> {
        let is_to_folder = |entry: &UnpackedEntry| {
            let UnpackedContent::Link(Symlink { target, .. }) = &entry.content else {
                return false;
            };
            let names: Vec<&str> = entry.path.split('/').collect();
            resolve(&names, target).is_some_and(|meant| self.is_folder(&meant))
        };
        let to_folders: Vec<usize> = (0..self.all.len())
            .filter(|index| is_to_folder(&self.all[*index]))
            .collect();
        for index in to_folders {
            if let UnpackedContent::Link(link) = &mut self.all[index].content {
                link.to = LinkTo::Directory;
            }
        }
        self.all
    }

    fn is_folder(&self, names: &[&str]) -> bool {
        let position = names.iter().try_fold(0, |folder, name| {
            self.places.get(&(folder, fold(name))).copied()
        });
        position.is_some_and(|position| {
            position == 0 || self.all[position - 1].content == UnpackedContent::Folder
        })
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
