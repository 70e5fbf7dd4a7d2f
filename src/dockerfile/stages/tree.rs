//! The drive of a stage: what the instructions so far made, over what is known of the base.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::layer::fold;
use crate::recipe::{PlannedContent, PlannedEntry};
use crate::windows::inside::{BaseFileKind, Inside, InsideError, Known};
use crate::windows::path::{ImagePath, TOP_FOLDERS};

/// Folders that are there in Windows although nobody has looked.
const WELL_KNOWN: [&str; 12] = [
    r"inetpub\wwwroot",
    r"ProgramData\Microsoft",
    r"Users\ContainerAdministrator",
    r"Users\ContainerUser",
    r"Users\Default",
    r"Users\Public",
    r"Windows\Fonts",
    r"Windows\Microsoft.NET",
    r"Windows\System32",
    r"Windows\SysWOW64",
    r"Windows\System32\drivers\etc",
    r"Windows\Temp",
];

/// A stage's drive.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    made: BTreeMap<String, PlannedEntry>,
    /// Folders that are there for what is in them; the base may have them already.
    implied: BTreeSet<String>,
    base: Arc<dyn Inside>,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
}

impl Tree {
    pub(super) fn over(base: Arc<dyn Inside>) -> Self {
        Self {
            made: BTreeMap::new(),
            implied: BTreeSet::new(),
            base,
        }
    }

    /// What it lies over.
    pub(super) fn base(&self) -> &dyn Inside {
        &*self.base
    }

    /// What is at a path, as far as it is known.
    pub(super) fn kind(&self, path: &ImagePath) -> Result<Known<Kind>, InsideError> {
        if path.components().is_empty() {
            return Ok(Known::Present(Kind::Folder));
        }
        if let Some(entry) = self.made.get(&key(path)) {
            return Ok(match &entry.content {
                PlannedContent::Folder => Known::Present(Kind::Folder),
                PlannedContent::File(_) => Known::Present(Kind::File),
                PlannedContent::Link { .. } => Known::Present(Kind::Link),
                PlannedContent::Deleted => Known::Absent,
            });
        }
        // What is below something that is gone, or no folder, is not there.
        for ancestor in ancestors(path) {
            match self.made.get(&key(&ancestor)).map(|entry| &entry.content) {
                None | Some(PlannedContent::Folder) => {}
                Some(_) => return Ok(Known::Absent),
            }
        }
        Ok(match self.base.file(path)? {
            Known::Absent => Known::Absent,
            Known::Present(file) => Known::Present(match file.kind {
                BaseFileKind::Folder => Kind::Folder,
                BaseFileKind::File { .. } => Kind::File,
                BaseFileKind::Link => Kind::Link,
            }),
            Known::Unknown if is_well_known(path) => Known::Present(Kind::Folder),
            Known::Unknown => Known::Unknown,
        })
    }

    /// Lays what an instruction does over it.
    pub(super) fn apply(&mut self, entries: &[PlannedEntry]) {
        for entry in entries {
            for ancestor in ancestors(&entry.path) {
                let there = self.made.get(&key(&ancestor));
                let is_there = there.is_some_and(|there| there.content != PlannedContent::Deleted);
                if !is_there {
                    let folder = PlannedEntry {
                        path: ancestor.clone(),
                        content: PlannedContent::Folder,
                    };
                    self.made.insert(key(&ancestor), folder);
                    self.implied.insert(key(&ancestor));
                }
            }
            let key = key(&entry.path);
            if entry.content == PlannedContent::Deleted {
                let below = format!("{key}\0");
                self.made.retain(|known, _| !known.starts_with(&below));
            }
            self.implied.remove(&key);
            self.made.insert(key, entry.clone());
        }
    }

    /// Whether all that is at a path and below it was made here: it lies in a folder of its own.
    pub(super) fn is_own(&self, path: &ImagePath) -> Result<bool, InsideError> {
        if path.components().is_empty() || path.is_of_windows() {
            return Ok(false);
        }
        let key = key(path);
        if !self.made.contains_key(&key) {
            return Ok(false);
        }
        Ok(match self.base.file(path)? {
            Known::Present(_) => false,
            // What lies in a folder of its own is too.
            Known::Unknown if self.implied.contains(&key) => match ancestors(path).last() {
                Some(folder) => self.is_own(folder)?,
                None => false,
            },
            Known::Absent | Known::Unknown => true,
        })
    }

    /// What was made at a path.
    pub(super) fn made(&self, path: &ImagePath) -> Option<&PlannedEntry> {
        self.made.get(&key(path))
    }

    /// What was made directly in a folder and is there, by its name.
    pub(super) fn made_in<'a>(
        &'a self,
        folder: &ImagePath,
    ) -> impl Iterator<Item = (&'a str, &'a PlannedEntry)> {
        let depth = folder.components().len();
        let below = match key(folder) {
            key if key.is_empty() => String::new(),
            key => format!("{key}\0"),
        };
        let from = self.made.range(below.clone()..);
        let inside = from.take_while(move |(key, _)| key.starts_with(&below));
        inside.filter_map(move |(_, entry)| {
            let names = entry.path.components();
            let is_there = entry.content != PlannedContent::Deleted;
            (is_there && names.len() == depth + 1).then(|| (names[depth].as_str(), entry))
        })
    }

    /// Whether a working directory has to be made: not where it is, nor in Windows' own folders where
    /// nobody has looked.
    pub(super) fn lacks_folder(&self, path: &ImagePath) -> Result<bool, InsideError> {
        Ok(match self.kind(path)? {
            Known::Present(_) => false,
            Known::Absent => true,
            Known::Unknown => !path.components().is_empty() && !path.is_of_windows(),
        })
    }
}

fn is_well_known(path: &ImagePath) -> bool {
    let inside = path.components().join("\\");
    let mut known = TOP_FOLDERS[1..].iter().chain(&WELL_KNOWN);
    known.any(|known| known.eq_ignore_ascii_case(&inside))
}

/// The folders on the way to a path, the topmost first.
fn ancestors(path: &ImagePath) -> Vec<ImagePath> {
    let mut names = path.components().iter();
    names.next_back();
    let mut folder = ImagePath::drive();
    let mut all = Vec::new();
    for name in names {
        // They are names of a path already.
        if let Ok(next) = folder.join(name) {
            all.push(next.clone());
            folder = next;
        }
    }
    all
}

/// What spellings of one path have in common; a folder's content follows it.
pub(super) fn key(path: &ImagePath) -> String {
    fold(&path.components().join("/"))
}
