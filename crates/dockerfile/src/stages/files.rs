//! Sources of copies: a folder on disk, or the drive of another stage or image.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::error_chain;
use wincimg_common::files::{FolderEntryKind, LeadsOut};
use wincimg_inspect::ExtractedEntry;
use wincimg_layer::dockerignore::{FILE_NAME, Glob, IgnoreRules};
use wincimg_layer::{DiskSource, link};
use wincimg_recipe::{FetchedFile, FileSource, PlannedContent};
use wincimg_registry::Presence;
use wincimg_windows::path::{ImagePath, fold};

use super::drive::{PathKind, Tree};
use super::paths;
use super::run::BaseFiles;

/// A file or folder that can be copied.
#[derive(Debug, Clone)]
pub(super) struct FoundFile {
    /// Path from the root, with slashes, in its spelling there.
    pub(super) path: String,
    pub(super) content: PlannedContent,
}

impl FoundFile {
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn is_folder(&self) -> bool {
        self.content == PlannedContent::Folder
    }
}

/// A source of copies; paths have slashes, and the root is empty.
pub(super) trait Files {
    /// Finds the entry at a path, following a link.
    fn find(&self, path: &str) -> Result<Option<FoundFile>, String>;

    /// Contents of a folder, sorted by name; links are kept, with targets in `root`.
    fn inside(&self, folder: &str, root: &str) -> Result<Vec<FoundFile>, String>;

    /// Paths in a folder like `inside`, each with true for a folder, without reading file contents.
    fn list_paths(&self, folder: &str) -> Result<Vec<(String, bool)>, String> {
        Ok(names_of(self.inside(folder, "")?))
    }

    /// Error message for a missing path.
    fn missing_message(&self, path: &str) -> String;

    /// Returns true if a path is excluded itself, while its contents may be included.
    fn excludes(&self, _path: &str) -> bool {
        false
    }

    /// All matches of a pattern, at least one, without the contents of matching folders.
    fn matching(&self, pattern: &str) -> Result<Vec<FoundFile>, String> {
        let found = self.search(pattern)?;
        if found.is_empty() {
            return Err(self.missing_message(pattern));
        }
        Ok(found)
    }

    /// The same, which may be none.
    fn search(&self, pattern: &str) -> Result<Vec<FoundFile>, String> {
        let has_wildcard = |name: &str| name.contains(['*', '?', '[']);
        let names: Vec<&str> = pattern.split('/').collect();
        let plain = names.iter().position(|name| has_wildcard(name));
        let Some(plain) = plain else {
            return Ok(self.find(pattern)?.into_iter().collect());
        };
        let glob = Glob::parse(pattern)
            .map_err(|problem| format!("invalid pattern {pattern:?}: {problem}"))?;
        let folder = names[..plain].join("/");
        let mut pending = match self.find(&folder)? {
            Some(found) if found.is_folder() => vec![found.path],
            _ => Vec::new(),
        };
        let mut found = Vec::new();
        // A pattern without classes matches paths of its own depth.
        let deepest = names.len() + 64 * usize::from(pattern.contains('['));
        while let Some(folder) = pending.pop() {
            for (path, is_folder) in self.list_paths(&folder)? {
                if glob.matches(&path) {
                    found.extend(self.find(&path)?);
                } else if is_folder && path.split('/').count() < deepest {
                    pending.push(path);
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

/// Paths of found entries, each with true for a folder.
fn names_of(found: Vec<FoundFile>) -> Vec<(String, bool)> {
    let names = found.into_iter().map(|entry| {
        let is_folder = entry.is_folder();
        (entry.path, is_folder)
    });
    names.collect()
}

/// A folder on disk: the context, or a folder that replaces a stage.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    root: DiskSource,
    ignore: IgnoreRules,
    /// File with the ignore rules.
    rules: PathBuf,
    /// What this program writes there.
    written: IgnoreRules,
}

impl Folder {
    pub(super) fn new(root: DiskSource, ignore: IgnoreRules, rules: PathBuf) -> Self {
        Self {
            root,
            ignore,
            rules,
            written: IgnoreRules::default(),
        }
    }

    /// Leaves out files and folders that this program writes.
    pub(super) fn leave_out(&mut self, written: &[PathBuf]) {
        let before = std::mem::take(&mut self.written);
        self.written = IgnoreRules::of_written(&self.root.path, written).after(before);
    }

    /// Returns true if something is there, also where a link leads out of the folder.
    fn has(&self, path: &str) -> bool {
        let found = self.source(path).metadata();
        found.map_or_else(|error| LeadsOut::is_cause_of(&error), |_| true)
    }

    /// Spelling of a path on disk: exact or, as on Windows, in another case.
    fn find_spelling(&self, path: &str) -> Result<Option<String>, String> {
        if self.has(path) {
            return Ok(Some(path.to_owned()));
        }
        let mut spelled = String::new();
        for name in path.split('/') {
            let exact = join_path(&spelled, name);
            if self.has(&exact) {
                spelled = exact;
                continue;
            }
            let folder = self.source(&spelled);
            let Ok(entries) = folder.list() else {
                return Ok(None);
            };
            let names = entries.into_iter();
            let names = names.filter_map(|entry| entry.name.into_string().ok());
            let lower = name.to_lowercase();
            let mut alike: Vec<String> = names.filter(|own| own.to_lowercase() == lower).collect();
            match (alike.pop(), alike.is_empty()) {
                (Some(own), true) => spelled = join_path(&spelled, &own),
                (Some(_), false) => {
                    return Err(format!(
                        "{} has several files that Windows treats as {name:?}",
                        folder.path.display()
                    ));
                }
                (None, _) => return Ok(None),
            }
        }
        Ok(Some(spelled))
    }

    /// Paths in a folder, each with its kind, except excluded ones below which nothing is included.
    fn entries(&self, folder: &str) -> Result<Vec<(String, FolderEntryKind)>, String> {
        let listed = self.source(folder);
        let entries = listed.list();
        let mut found = Vec::new();
        for entry in entries.map_err(|error| unreadable(&listed.path, &error))? {
            let name = entry.name.to_str().ok_or_else(|| {
                let source = listed.path.join(&entry.name);
                format!("the name of {} is not Unicode", source.display())
            })?;
            let path = join_path(folder, name);
            let is_folder = entry.kind == FolderEntryKind::Folder;
            if !self.is_excluded(&path) || is_folder && self.may_reinclude(&path) {
                found.push((path, entry.kind));
            }
        }
        Ok(found)
    }

    fn is_excluded(&self, path: &str) -> bool {
        !path.is_empty() && (self.ignore.is_ignored(path) || self.written.is_ignored(path))
    }

    /// Returns true if something in an excluded folder may be included.
    fn may_reinclude(&self, folder: &str) -> bool {
        self.ignore.may_reinclude() && !self.written.is_ignored(folder)
    }

    /// Returns true if the folder has something at a path that its own rules exclude, and not those of
    /// one file.
    pub(super) fn hides(&self, path: &str) -> bool {
        let is_there = matches!(self.find_spelling(path), Ok(Some(_)));
        is_there && self.rules.ends_with(FILE_NAME) && matches!(self.find(path), Ok(None))
    }

    pub(super) fn source(&self, path: &str) -> DiskSource {
        self.root.join(path)
    }
}

fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        return name.to_owned();
    }
    format!("{folder}/{name}")
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

impl Files for Folder {
    fn find(&self, path: &str) -> Result<Option<FoundFile>, String> {
        let Some(path) = self.find_spelling(path)? else {
            return Ok(None);
        };
        let is_excluded = self.is_excluded(&path);
        if is_excluded && !self.may_reinclude(&path) {
            return Ok(None);
        }
        let source = self.source(&path);
        let metadata = source.metadata();
        let metadata = metadata.map_err(|error| unreadable(&source.path, &error))?;
        if is_excluded && !metadata.is_dir() {
            return Ok(None);
        }
        let content = if metadata.is_dir() {
            PlannedContent::Folder
        } else if metadata.is_file() {
            PlannedContent::File(FileSource::Disk(source))
        } else {
            return Err(format!(
                "{} is neither a file nor a folder",
                source.path.display()
            ));
        };
        Ok(Some(FoundFile { path, content }))
    }

    fn inside(&self, folder: &str, root: &str) -> Result<Vec<FoundFile>, String> {
        let mut found = Vec::new();
        for (path, kind) in self.entries(folder)? {
            let source = self.source(&path);
            let content = match kind {
                FolderEntryKind::Folder => PlannedContent::Folder,
                FolderEntryKind::File => PlannedContent::File(FileSource::Disk(source)),
                FolderEntryKind::Link(target) => {
                    let inside = folder.strip_prefix(root).unwrap_or(folder);
                    let inside = inside.trim_start_matches('/');
                    let link = link(&self.source(root), inside, &source.path, &target);
                    PlannedContent::Link(link.map_err(|error| error_chain(&error))?)
                }
                FolderEntryKind::Special => {
                    return Err(format!(
                        "{} is neither a file, a folder nor a symbolic link",
                        source.path.display()
                    ));
                }
            };
            found.push(FoundFile { path, content });
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    // A link that a pattern does not match may lead anywhere.
    fn list_paths(&self, folder: &str) -> Result<Vec<(String, bool)>, String> {
        let entries = self.entries(folder)?.into_iter();
        let paths = entries.map(|(path, kind)| (path, kind == FolderEntryKind::Folder));
        Ok(paths.collect())
    }

    fn excludes(&self, path: &str) -> bool {
        self.is_excluded(path)
    }

    fn missing_message(&self, path: &str) -> String {
        let root = self.root.path.display();
        let is_there = self.find_spelling(path).ok().flatten();
        // Before the first build, what it writes does not exist.
        let written = is_there.as_deref().unwrap_or(path);
        if self.written.is_ignored(written) {
            return format!(
                "{written:?} is left out of {root}, because builds write it: give it another name"
            );
        }
        match is_there.filter(|path| self.is_excluded(path)) {
            Some(path) => format!(
                "{path:?} is excluded from {root} by {}",
                self.rules.display()
            ),
            None if self.root.path.ends_with(path) => {
                format!("{path:?} is not in {root}, which is where its path begins")
            }
            None => format!("{path:?} is not in {root}"),
        }
    }
}

/// Folders of a pattern before its first wildcard, or a whole path.
pub(super) fn fixed_part(pattern: &str) -> &str {
    let Some(wildcard) = pattern.find(['*', '?', '[']) else {
        return pattern;
    };
    pattern[..wildcard]
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
}

/// Files extracted from an image.
#[derive(Debug, Clone, Default)]
pub struct ExtractedFiles {
    /// Folded paths that were searched, including everything below.
    asked: BTreeSet<String>,
    /// Found entries by folded path, with their spelling.
    found: BTreeMap<String, (String, ExtractedEntry)>,
}

impl ExtractedFiles {
    /// Adds the entries at and below some paths.
    pub fn add(&mut self, asked: &BTreeSet<String>, found: BTreeMap<String, ExtractedEntry>) {
        self.asked.extend(asked.iter().map(|path| fold(path)));
        let found = found.into_iter();
        self.found
            .extend(found.map(|(path, taken)| (fold(&path), (path, taken))));
    }

    /// Returns true if a path was searched.
    pub(super) fn contains(&self, path: &str) -> bool {
        let key = fold(path);
        let ends = key.match_indices('\0').map(|(at, _)| &key[..at]);
        ends.chain([key.as_str()]).any(|it| self.asked.contains(it))
    }

    /// Entry at a path, with its spelling.
    pub(super) fn get(&self, path: &str) -> Option<&(String, ExtractedEntry)> {
        self.found.get(&fold(path))
    }
}

/// Files of an image as a source of copies.
pub(super) struct ImageSource<'a> {
    pub(super) files: &'a ExtractedFiles,
    pub(super) name: &'a str,
    /// True if it is for Windows, so that a recipe can name it.
    pub(super) is_windows: bool,
}

impl ImageSource<'_> {
    fn content(&self, path: &str, taken: &ExtractedEntry) -> Result<PlannedContent, String> {
        match taken {
            ExtractedEntry::Folder => Ok(PlannedContent::Folder),
            ExtractedEntry::File(part) => {
                Ok(PlannedContent::File(FileSource::Brought(FetchedFile {
                    part: part.clone(),
                    from: format!("{path} in {}", self.name),
                    image: self
                        .is_windows
                        .then(|| (self.name.to_owned(), path.to_owned())),
                })))
            }
            ExtractedEntry::Link(()) => Err(format!(
                "{path:?} in {} is a link, which cannot be copied",
                self.name
            )),
        }
    }
}

impl Files for ImageSource<'_> {
    fn find(&self, path: &str) -> Result<Option<FoundFile>, String> {
        let Some((path, taken)) = self.files.get(path) else {
            return Ok(None);
        };
        let content = self.content(path, taken)?;
        let path = path.clone();
        Ok(Some(FoundFile { path, content }))
    }

    fn inside(&self, folder: &str, _root: &str) -> Result<Vec<FoundFile>, String> {
        let below = format!("{}\0", fold(folder));
        let mut all = Vec::new();
        for (key, (path, taken)) in self.files.found.range(below.clone()..) {
            let Some(inside) = key.strip_prefix(&below) else {
                break;
            };
            if !inside.contains('\0') {
                all.push(FoundFile {
                    path: join_path(folder, path.rsplit('/').next().unwrap_or_default()),
                    content: self.content(path, taken)?,
                });
            }
        }
        Ok(all)
    }

    fn missing_message(&self, path: &str) -> String {
        format!("{path:?} is not in the image {}", self.name)
    }
}

/// Drive of a stage as a source of copies.
pub(super) struct StageSource<'a> {
    pub(super) tree: &'a Tree,
    pub(super) name: &'a str,
    /// Base image at its root. If files must be extracted from it first, results are incomplete.
    pub(super) base: BaseFiles<'a>,
}

impl StageSource<'_> {
    /// Files extracted from the base; `None` if a path must be extracted first.
    fn taken(&self, path: &str) -> Option<ImageSource<'_>> {
        Some(ImageSource {
            files: self.base.extracted(path)?,
            name: self.base.image,
            is_windows: true,
        })
    }

    /// Refuses a path that depends on a download.
    fn check_known(&self, place: &ImagePath) -> Result<(), String> {
        if self.tree.is_later(place) {
            return Err(format!(
                "the contents of the stage {:?} at {place} depend on its downloads",
                self.name
            ));
        }
        Ok(())
    }
}

impl Files for StageSource<'_> {
    fn find(&self, path: &str) -> Result<Option<FoundFile>, String> {
        let place = place(path)?;
        let path = place.components().join("/");
        match self.tree.created_entry(&place).map(|entry| &entry.content) {
            Some(PlannedContent::Deleted) => return Ok(None),
            Some(PlannedContent::Link(_)) => {
                return Err(format!(
                    "{place} is a link: copy the folder that contains it"
                ));
            }
            Some(content) => {
                let content = content.clone();
                return Ok(Some(FoundFile { path, content }));
            }
            None => {}
        }
        match self.tree.readable_kind(&place)? {
            Presence::Absent => return Ok(None),
            Presence::Present(PathKind::Folder) => {
                let content = PlannedContent::Folder;
                return Ok(Some(FoundFile { path, content }));
            }
            Presence::Present(PathKind::File(()) | PathKind::Link(())) | Presence::Unknown => {}
        }
        self.check_known(&place)?;
        match self.taken(&path) {
            Some(base) => base.find(&path),
            None => Ok(Some(FoundFile {
                path,
                content: PlannedContent::File(FileSource::Text("".into())),
            })),
        }
    }

    fn inside(&self, folder: &str, root: &str) -> Result<Vec<FoundFile>, String> {
        let place = place(folder)?;
        let made = self.tree.created_in(&place).map(|(name, entry)| FoundFile {
            path: join_path(folder, name),
            content: entry.content.clone(),
        });
        let mut found: Vec<FoundFile> = made.collect();
        let of_base = self.tree.base_may_contain(&place);
        if !of_base.map_err(|error| error_chain(&error))? {
            return Ok(found);
        }
        self.check_known(&place)?;
        let path = place.components().join("/");
        let Some(base) = self.taken(&path) else {
            return Ok(found);
        };
        if base.find(&path)?.is_none() && self.tree.created_entry(&place).is_none() {
            return Err(self.missing_message(folder));
        }
        for entry in base.inside(folder, root)? {
            let own = self::place(&entry.path)?;
            if self.tree.created_entry(&own).is_none() {
                found.push(entry);
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn list_paths(&self, folder: &str) -> Result<Vec<(String, bool)>, String> {
        let place = place(folder)?;
        let listed = self.tree.list_known(&place);
        match listed.map_err(|error| error_chain(&error))? {
            Presence::Present(inside) => Ok(inside
                .into_iter()
                .map(|(name, kind)| (join_path(folder, &name), kind == PathKind::Folder))
                .collect()),
            Presence::Absent => Ok(Vec::new()),
            Presence::Unknown => Ok(names_of(self.inside(folder, "")?)),
        }
    }

    fn missing_message(&self, path: &str) -> String {
        format!(
            "{path:?} is not in the stage {:?}: no instruction creates it, and its base {} does not contain it",
            self.name, self.base.image
        )
    }
}

fn place(path: &str) -> Result<ImagePath, String> {
    Ok(paths::target(&ImagePath::drive(), &format!("/{path}"))?.path)
}
