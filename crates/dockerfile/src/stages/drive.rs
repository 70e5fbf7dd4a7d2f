//! The drive of a stage: entries of its instructions over the known contents of the base.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::{iter, ptr};

use wincimg_common::diagnose::error_chain;
use wincimg_common::sorted::remove_within;
use wincimg_inspect::bases::is_published_host_process;
use wincimg_recipe::{CopiedEntry, PlannedContent, PlannedEntry};
use wincimg_registry::{BaseReadError, Presence, UnknownBase};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::known_folders::is_known_folder;
use wincimg_windows::path::{ImagePath, fold};

use crate::lint::names_nano_server;

/// Possible names on the drive of a plain Windows base.
const PLAIN_WINDOWS_NAMES: [&str; 16] = [
    "$Recycle.Bin",
    "Boot",
    "bootmgr",
    "BOOTNXT",
    "Documents and Settings",
    "DumpStack.log.tmp",
    "inetpub",
    "License.txt",
    "pagefile.sys",
    "PerfLogs",
    "Program Files",
    "Program Files (x86)",
    "ProgramData",
    "System Volume Information",
    "Users",
    "Windows",
];

/// Microsoft's repositories of plain Windows images.
const PLAIN: [&str; 4] = [
    "windows", "windows/nanoserver", "windows/server", "windows/servercore",
];

/// Returns true for a plain Windows image, by its name, or the base for `HostProcess` containers, which
/// has no more.
fn is_plain_windows(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    let is_plain = PLAIN.iter().any(|known| {
        name.strip_suffix(known)
            .is_some_and(|rest| rest.ends_with("mcr.microsoft.com/"))
    });
    is_plain || is_published_host_process(image)
}

/// Changes of instructions.
#[derive(Debug, Clone, Default)]
struct DriveChanges {
    made: BTreeMap<String, PlannedEntry>,
    /// Folders created for their contents; the base may have them too.
    implied: BTreeSet<String>,
    /// Deleted paths: they hide what was there before, whatever was created there since.
    deleted: BTreeSet<String>,
    /// Attributes of moved and copied entries.
    attributes: BTreeMap<String, u32>,
}

/// What lines leave on a drive besides entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// Paths whose contents depend on downloads; the empty path means all.
    pub(super) later: BTreeSet<String>,
    /// Files that only Windows writes: they exist, and have no entry.
    pub(super) logs: BTreeSet<String>,
    /// Features of Chocolatey that lines turned on or off.
    pub(super) features: BTreeMap<&'static str, bool>,
}

#[derive(Debug, Clone)]
pub(super) struct Tree {
    changes: Rc<DriveChanges>,
    /// Changes of the current line; none outside of one.
    of_line: Option<DriveChanges>,
    pub(super) marks: Marks,
    base: Arc<dyn BaseContents>,
    pub(super) is_plain_windows: bool,
    pub(super) is_nano_server: bool,
}

pub(super) type PathKind = FileKind;

impl Tree {
    /// Drive of an image with this name.
    pub(super) fn over(base: Arc<dyn BaseContents>, image: &str) -> Self {
        Self {
            is_plain_windows: is_plain_windows(image),
            is_nano_server: is_plain_windows(image) && names_nano_server(image),
            changes: Rc::default(),
            of_line: None,
            marks: Marks::default(),
            base,
        }
    }

    /// Drive of an image of which only the name is known.
    pub(super) fn unknown(image: &str) -> Self {
        Self::over(Arc::new(UnknownBase), image)
    }

    /// The drive for a line, whose changes are kept apart: a copy of all others for each of thousands
    /// of lines would take too long.
    pub(super) fn for_line(&self) -> Self {
        Self {
            of_line: Some(DriveChanges::default()),
            ..self.clone()
        }
    }

    fn changes(&mut self) -> &mut DriveChanges {
        match &mut self.of_line {
            Some(of_line) => of_line,
            None => Rc::make_mut(&mut self.changes),
        }
    }

    fn all_changes(&self) -> impl Iterator<Item = &DriveChanges> {
        iter::once(&*self.changes).chain(&self.of_line)
    }

    /// The last change of a path.
    fn last_change<V>(
        &self,
        key: &str,
        map: fn(&DriveChanges) -> &BTreeMap<String, V>,
    ) -> Option<&V> {
        if let Some(of_line) = &self.of_line {
            let found = map(of_line).get(key);
            if found.is_some() || is_key_in(&of_line.deleted, key) {
                return found;
            }
        }
        map(&self.changes).get(key)
    }

    fn made(&self, key: &str) -> Option<&PlannedEntry> {
        self.last_change(key, |changes| &changes.made)
    }

    /// Returns true if an existing folder was created for its contents.
    fn is_implied(&self, key: &str) -> bool {
        let of_line = self.of_line.as_ref();
        let changes = of_line.filter(|of_line| of_line.made.contains_key(key));
        changes.unwrap_or(&self.changes).implied.contains(key)
    }

    pub(super) fn base(&self) -> &dyn BaseContents {
        &*self.base
    }

    /// Kind of the entry at a path, if known.
    pub(super) fn kind(&self, path: &ImagePath) -> Result<Presence<PathKind>, BaseReadError> {
        if path.components().is_empty() {
            return Ok(Presence::Present(PathKind::Folder));
        }
        let own = path.key();
        if let Some(entry) = self.made(&own) {
            return Ok(kind_of(&entry.content));
        }
        if self.hides_base(path) {
            return Ok(Presence::Absent);
        }
        // Nothing exists below a deleted entry or a file.
        for ancestor in keys_above(&own) {
            match self.made(ancestor).map(|entry| &entry.content) {
                None | Some(PlannedContent::Folder) => {}
                Some(_) => return Ok(Presence::Absent),
            }
        }
        let is_inetpub =
            matches!(path.components(), [only] if only.eq_ignore_ascii_case("inetpub"));
        Ok(match self.of_base(path)? {
            // Without IIS, there is no `inetpub`.
            Presence::Unknown if is_known_folder(path) && !is_inetpub => {
                Presence::Present(PathKind::Folder)
            }
            found => found.map(|file| file.kind.kind()),
        })
    }

    /// The same, or what cannot be read.
    pub(super) fn readable_kind(&self, path: &ImagePath) -> Result<Presence<PathKind>, String> {
        self.kind(path).map_err(|error| error_chain(&error))
    }

    /// Entry of the base at a path. The drive of a plain Windows base has no other names, also if
    /// the contents are unknown.
    fn of_base(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        let found = self.base.file(path)?;
        let is_strange = path.components().first().is_some_and(|top| {
            let mut known = PLAIN_WINDOWS_NAMES.iter();
            self.is_plain_windows && !known.any(|known| known.eq_ignore_ascii_case(top))
        });
        Ok(match found {
            Presence::Unknown if is_strange => Presence::Absent,
            found => found,
        })
    }

    pub(super) fn apply(&mut self, entries: &[PlannedEntry]) {
        // Most entries are in the folder of the previous one.
        let mut made_above = String::new();
        for entry in entries {
            let key = entry.path.key();
            let folder = key.rsplit_once('\0').map_or("", |(folder, _)| folder);
            if folder != made_above {
                self.make_above(&key, &entry.path);
                folder.clone_into(&mut made_above);
            }
            if entry.content == PlannedContent::Deleted {
                let below = format!("{key}\0");
                self.marks.logs.retain(|known| !known.starts_with(&below));
                let changes = self.changes();
                remove_path(&mut changes.made, &key);
                remove_path(&mut changes.attributes, &key);
                changes.deleted.insert(key.clone());
                made_above.clear();
            }
            self.marks.logs.remove(&key);
            let changes = self.changes();
            changes.implied.remove(&key);
            changes.made.insert(key, entry.clone());
        }
    }

    /// Creates the folders above a path.
    fn make_above(&mut self, key: &str, path: &ImagePath) {
        for (depth, above) in keys_above(key).enumerate() {
            let there = self.made(above);
            if there.is_none_or(|there| there.content == PlannedContent::Deleted) {
                let folder = PlannedEntry::folder(path.up_to(depth + 1));
                let changes = self.changes();
                changes.made.insert(above.to_owned(), folder);
                changes.implied.insert(above.to_owned());
            }
        }
    }

    /// Returns true if everything at and below a path was created by the stage.
    pub(super) fn is_own(&self, path: &ImagePath) -> Result<bool, BaseReadError> {
        if path.components().is_empty() || path.is_of_windows() {
            return Ok(false);
        }
        let key = path.key();
        if self.made(&key).is_none() {
            return Ok(false);
        }
        if self.hides_base(path) {
            return Ok(true);
        }
        Ok(match self.of_base(path)? {
            Presence::Present(_) => false,
            // So is an entry in a folder created by the stage.
            Presence::Unknown if self.is_implied(&key) => {
                self.is_own(&path.up_to(path.components().len() - 1))?
            }
            Presence::Absent | Presence::Unknown => true,
        })
    }

    /// Returns true if the base may have something at a path.
    pub(super) fn base_may_contain(&self, path: &ImagePath) -> Result<bool, BaseReadError> {
        if path.components().is_empty() {
            return Ok(true);
        }
        if self.hides_base(path) {
            return Ok(false);
        }
        let own = path.key();
        let places = keys_above(&own).chain([own.as_str()]);
        let mut made = places.filter_map(|place| self.made(place));
        if made.any(|entry| entry.content != PlannedContent::Folder) {
            return Ok(false);
        }
        Ok(self.of_base(path)? != Presence::Absent)
    }

    /// Contents of a folder like [`Self::inside`]; unknown if the base's part is uncertain.
    pub(super) fn list_known(
        &self,
        folder: &ImagePath,
    ) -> Result<Presence<Vec<(String, PathKind)>>, BaseReadError> {
        if self.base_may_contain(folder)? && self.base.read_dir(folder)? == Presence::Unknown {
            return Ok(Presence::Unknown);
        }
        self.inside(folder)
    }

    /// Returns true if the contents of a path depend on a download.
    pub(super) fn is_later(&self, path: &ImagePath) -> bool {
        self.marks.later.contains("") || is_in(&self.marks.later, path)
    }

    /// Marks a path and everything below it as known.
    pub(super) fn forget_later(&mut self, path: &ImagePath) {
        let own = path.key();
        let below = format!("{own}\0");
        self.marks
            .later
            .retain(|known| *known != own && !known.starts_with(&below));
    }

    /// Names and kinds of all entries in a folder, from the stage and the base.
    pub(super) fn inside(
        &self,
        folder: &ImagePath,
    ) -> Result<Presence<Vec<(String, PathKind)>>, BaseReadError> {
        match self.kind(folder)? {
            Presence::Present(PathKind::Folder) => {}
            Presence::Unknown => return Ok(Presence::Unknown),
            Presence::Present(_) | Presence::Absent => return Ok(Presence::Absent),
        }
        let made = self.created_in(folder);
        let mut found: Vec<(String, PathKind)> = made
            .filter_map(|(name, entry)| Some((name.to_owned(), kind_of(&entry.content).present()?)))
            .collect();
        if !self.is_own(folder)? && !self.hides_base(folder) {
            let of_base = match self.base.read_dir(folder)? {
                Presence::Unknown => return Ok(Presence::Unknown),
                Presence::Absent => Vec::new(),
                Presence::Present(of_base) => of_base,
            };
            let is_seen = |name: &str| {
                let path = folder.join(name);
                path.map_or(true, |path| self.made(&path.key()).is_none())
            };
            let seen = of_base.into_iter().filter(|file| is_seen(&file.name));
            found.extend(seen.map(|file| (file.name, file.kind.kind())));
        }
        found.sort_by_cached_key(|(name, _)| fold(name));
        Ok(Presence::Present(found))
    }

    /// Returns true if a path hides the base.
    fn hides_base(&self, path: &ImagePath) -> bool {
        let mut changes = self.all_changes();
        changes.any(|changes| is_in(&changes.deleted, path))
    }

    pub(super) fn created_entry(&self, path: &ImagePath) -> Option<&PlannedEntry> {
        self.made(&path.key())
    }

    /// Existing entries of the stage directly in a folder, by name; those of a line are last.
    pub(super) fn created_in<'a>(
        &'a self,
        folder: &ImagePath,
    ) -> impl Iterator<Item = (&'a str, &'a PlannedEntry)> {
        let depth = folder.components().len();
        let below = match folder.key() {
            key if key.is_empty() => String::new(),
            key => format!("{key}\0"),
        };
        let inside = self.all_changes();
        let inside = inside.flat_map(move |changes| {
            let (below, from) = (below.clone(), changes.made.range(below.clone()..));
            from.take_while(move |(key, _)| key.starts_with(&below))
        });
        let is_current = move |key: &str, entry: &PlannedEntry| {
            let is_made = || self.made(key).is_some_and(|made| ptr::eq(made, entry));
            self.of_line.is_none() || is_made()
        };
        inside.filter_map(move |(key, entry)| {
            let names = entry.path.components();
            let is_inside = names.len() == depth + 1;
            let is_there = is_inside && entry.content != PlannedContent::Deleted;
            (is_there && is_current(key, entry)).then(|| (names[depth].as_str(), entry))
        })
    }

    /// Records the attributes that a moved or copied entry keeps.
    pub(super) fn keep(&mut self, kept: &CopiedEntry) {
        if let Ok(Presence::Present(was)) = self.base.file(&kept.from) {
            let attributes = &mut self.changes().attributes;
            attributes.insert(kept.path.key(), was.attributes);
        }
    }

    /// Attributes of the entry at a path, as far as they are known. A file that replaces one of the
    /// base keeps them.
    pub(super) fn attributes(&self, path: &ImagePath) -> u32 {
        let kept = self.last_change(&path.key(), |changes| &changes.attributes);
        if let Some(kept) = kept {
            return *kept;
        }
        match self.base.file(path) {
            Ok(Presence::Present(file)) if !self.hides_base(path) => file.attributes,
            _ => 0,
        }
    }

    /// Refuses a path below a file or a link, where an instruction can create nothing.
    pub(super) fn check_folders_above(&self, path: &ImagePath) -> Result<(), String> {
        for depth in 1..path.components().len() {
            let above = path.up_to(depth);
            let (kind, instead) = match self.readable_kind(&above)? {
                Presence::Present(PathKind::File(())) => ("file", ", not a folder"),
                Presence::Present(PathKind::Link(())) => ("link", ": use its target"),
                Presence::Present(PathKind::Folder) | Presence::Absent | Presence::Unknown => {
                    continue;
                }
            };
            let of = self.origin(&above);
            return Err(format!("{above} is a {kind} {of}{instead}"));
        }
        Ok(())
    }

    /// Where an existing entry is from.
    pub(super) fn origin(&self, path: &ImagePath) -> &'static str {
        match self.created_entry(path) {
            Some(_) => "that an earlier instruction made",
            None => "of the base",
        }
    }
}

/// Removes what is at and below a key.
pub(super) fn remove_path<V>(map: &mut BTreeMap<String, V>, key: &String) {
    remove_within(map, key, |known| {
        let below = known.strip_prefix(key.as_str());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('\0'))
    });
}

/// Returns true if a path is in one of these places or equal to one.
fn is_in(places: &BTreeSet<String>, path: &ImagePath) -> bool {
    !places.is_empty() && is_key_in(places, &path.key())
}

fn is_key_in(places: &BTreeSet<String>, key: &str) -> bool {
    let mut places_above = keys_above(key);
    !places.is_empty() && (places.contains(key) || places_above.any(|above| places.contains(above)))
}

/// Keys of the parent folders, the topmost first.
fn keys_above(key: &str) -> impl Iterator<Item = &str> {
    key.match_indices('\0').map(|(at, _)| &key[..at])
}

/// Kind of the content; absent for a deletion.
pub(super) fn kind_of(content: &PlannedContent) -> Presence<PathKind> {
    match content {
        PlannedContent::Folder => Presence::Present(PathKind::Folder),
        PlannedContent::File(_) => Presence::Present(PathKind::File(())),
        PlannedContent::Link(_) => Presence::Present(PathKind::Link(())),
        PlannedContent::Deleted => Presence::Absent,
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use proptest::prelude::*;
    use wincimg_recipe::FileSource;
    use wincimg_registry::UnknownBase;

    use super::*;

    const PATHS: [&str; 6] = [
        r"C:\a", r"C:\a\b", r"C:\a\b\c", r"C:\a\d", r"C:\ab", r"C:\Windows\a",
    ];

    fn entry((path, kind): (usize, u8)) -> PlannedEntry {
        let content = match kind {
            0 => PlannedContent::Deleted,
            1 => PlannedContent::Folder,
            _ => PlannedContent::File(FileSource::Text(kind.to_string().into())),
        };
        let path = PATHS[path].parse().unwrap();
        PlannedEntry { path, content }
    }

    fn drive() -> Tree {
        let name = "mcr.microsoft.com/windows/nanoserver:ltsc2022";
        Tree::over(Arc::new(UnknownBase), name)
    }

    proptest! {
        #[test]
        fn changes_that_are_kept_apart_show_the_same_drive(
            before in proptest::collection::vec((0..6_usize, 0..4_u8), 0..8),
            line in proptest::collection::vec((0..6_usize, 0..4_u8), 0..8),
        ) {
            let mut copy = drive();
            for it in before {
                copy.apply(&[entry(it)]);
            }
            let mut apart = copy.for_line();
            for entry in line.into_iter().map(entry) {
                copy.apply(slice::from_ref(&entry));
                apart.apply(slice::from_ref(&entry));
            }
            for path in PATHS.iter().map(|path| path.parse::<ImagePath>().unwrap()) {
                let show = |drive: &Tree| {
                    (
                        drive.created_entry(&path).cloned(),
                        drive.kind(&path).unwrap(),
                        drive.is_own(&path).unwrap(),
                        drive.base_may_contain(&path).unwrap(),
                        drive.inside(&path).unwrap(),
                    )
                };
                prop_assert_eq!(show(&apart), show(&copy), "{}", path);
            }
        }
    }

    #[test]
    fn a_line_copies_nothing_of_thousands_before_it() {
        let mut drive = drive();
        for number in 0..10_000 {
            let path = format!(r"C:\a{number}").parse().unwrap();
            let entry = PlannedEntry::folder(path);
            let mut line = drive.for_line();
            line.apply(slice::from_ref(&entry));
            assert_eq!(line.created_entry(&entry.path), Some(&entry));
            assert_eq!(drive.created_entry(&entry.path), None);
            drop(line);
            drive.apply(slice::from_ref(&entry));
        }
        assert_eq!(drive.created_in(&ImagePath::drive()).count(), 10_000);
    }
}
