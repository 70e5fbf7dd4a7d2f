//! `COPY` and `ADD`: mapping of sources to targets.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use wincimg_common::untrusted::{QuotedText, UntrustedText};
use wincimg_inspect::ExtractedEntry;
use wincimg_layer::Whiteout;
use wincimg_layer::archive::{
    ArchiveError, ArchiveFormat, Archives, UnpackSelection, UnpackedEntry,
};
use wincimg_layer::dockerignore::IgnoreRules;
use wincimg_recipe::{ImageFiles, PlannedContent, PlannedEntry};
use wincimg_registry::Presence;
use wincimg_windows::path::{ImagePath, fold};

use super::drive::{PathKind, Tree, kind_of};
use super::files::{ExtractedFiles, Files, FoundFile, ImageSource, fixed_part};
use super::paths::{self, CopyTarget};
use super::state::StageState;
use crate::instruction::CopyInstruction;

/// Target of a `COPY` or `ADD` in a stage, as all builders take it.
pub(crate) fn target(state: &StageState, copy: &CopyInstruction) -> Result<CopyTarget, String> {
    match any_target(state, copy)? {
        (target, false) => Ok(target),
        (_, true) => Err(several_files(copy)),
    }
}

/// Target of a `COPY` or `ADD` in a stage; true if only `BuildKit` takes it: several files into a
/// folder of the image that is not written as one.
pub(super) fn any_target(
    state: &StageState,
    copy: &CopyInstruction,
) -> Result<(CopyTarget, bool), String> {
    let working_dir = state.working_dir()?;
    let mut target = paths::target(&working_dir, &copy.target)?;
    target.is_folder |= target.path.components().is_empty();
    if target.is_folder || copy.sources.len() + copy.documents.len() < 2 {
        return Ok((target, false));
    }
    let is_there = target.path.key() == working_dir.key()
        || state.tree.readable_kind(&target.path)? == Presence::Present(PathKind::Folder);
    if !is_there {
        return Err(several_files(copy));
    }
    target.is_folder = true;
    Ok((target, true))
}

fn several_files(copy: &CopyInstruction) -> String {
    let target = UntrustedText(&copy.target);
    format!(
        "several files are copied to \"{target}\": end it with a separator, as in \"{target}/\""
    )
}

/// Entries of one instruction under construction.
pub(super) struct Draft<'a> {
    tree: &'a Tree,
    target: CopyTarget,
    excluded: IgnoreRules,
    entries: BTreeMap<String, PlannedEntry>,
    /// The folder of the last entry, in which entries can be created.
    checked: Option<ImagePath>,
    /// Target of a file at which the base may have a folder, which then is the target.
    pub(super) unknown: Option<ImagePath>,
}

/// Refuses a file whose path is that of another file on Windows, as in an archive: only one of them
/// would be in the image.
fn add_source(known: &mut HashMap<String, String>, found: &FoundFile) -> Result<(), String> {
    if found.is_folder() {
        return Ok(());
    }
    let path = &found.path;
    let known = known.entry(fold(path)).or_insert_with(|| path.clone());
    if *known == *path {
        return Ok(());
    }
    Err(format!(
        "{known:?} and {path:?} are the same path on Windows"
    ))
}

impl<'a> Draft<'a> {
    pub(super) fn new(tree: &'a Tree, target: CopyTarget, excluded: IgnoreRules) -> Self {
        Self {
            tree,
            target,
            excluded,
            entries: BTreeMap::new(),
            checked: None,
            unknown: None,
        }
    }

    /// Entries, sorted by path.
    pub(super) fn into_entries(self) -> Vec<PlannedEntry> {
        self.entries.into_values().collect()
    }

    /// Returns true if a path is the target itself, and the target is not written as a folder.
    pub(super) fn is_target(&self, path: &ImagePath) -> bool {
        !self.target.is_folder && *path == self.target.path
    }

    /// Current kind of the entry at a path.
    fn kind(&self, path: &ImagePath) -> Result<Presence<PathKind>, String> {
        match self.entries.get(&path.key()) {
            Some(entry) => Ok(kind_of(&entry.content)),
            None => self.tree.readable_kind(path),
        }
    }

    /// Adds an entry; only a file replaces a file.
    pub(super) fn insert(
        &mut self,
        path: ImagePath,
        content: PlannedContent,
    ) -> Result<(), String> {
        if path.components().is_empty() {
            return match content {
                PlannedContent::Folder => Ok(()),
                _ => Err("a file cannot replace the drive itself".to_owned()),
            };
        }
        self.check_folder_of(&path)?;
        let is_folder = content == PlannedContent::Folder;
        if !is_folder && path.is_hive() {
            return Err(format!(
                "{path} is a file of the registry: change its keys with RUN reg"
            ));
        }
        let place = self.entries.entry(path.key());
        let kind = match &place {
            Entry::Occupied(known) => kind_of(&known.get().content),
            Entry::Vacant(_) => self.tree.readable_kind(&path)?,
        };
        match kind {
            Presence::Present(PathKind::Folder) if !is_folder => {
                return Err(format!("{path} is a folder, which a file cannot replace"));
            }
            Presence::Present(PathKind::File(())) if is_folder => {
                return Err(format!("{path} is a file, which a folder cannot replace"));
            }
            Presence::Present(PathKind::Link(())) if is_folder => {
                return Err(format!("{path} is a link, which a folder cannot replace"));
            }
            _ => {}
        }
        match place {
            Entry::Occupied(mut known) => known.get_mut().content = content,
            Entry::Vacant(place) => {
                place.insert(PlannedEntry { path, content });
            }
        }
        Ok(())
    }

    /// Refuses a path that a layer cannot have, or where something else than a folder is above it.
    fn check_folder_of(&mut self, path: &ImagePath) -> Result<(), String> {
        let names = path.components();
        if names.iter().any(|name| Whiteout::from_name(name).is_some()) {
            return Err(format!(
                "{path} would be a deletion in the layer, as its name begins with .wh.: leave it out \
                 with .dockerignore"
            ));
        }
        let folder = path.up_to(names.len() - 1);
        if self.checked.as_ref() != Some(&folder) {
            self.tree.check_folders_above(path)?;
            self.checked = Some(folder);
        }
        Ok(())
    }

    /// Target path of a file: inside the target if that is a folder, else the target itself.
    pub(super) fn file_target(&mut self, name: &str) -> Result<ImagePath, String> {
        let CopyTarget { path, is_folder } = &self.target;
        let inside = || path.join(name).map_err(|error| error.to_string());
        if *is_folder {
            return inside();
        }
        let kind = self.kind(path)?;
        match kind {
            Presence::Present(PathKind::Folder) => return inside(),
            // Docker copies to its target.
            Presence::Present(PathKind::Link(())) => {
                let of = self.tree.origin(path);
                return Err(format!("{path} is a link {of}: copy to its target"));
            }
            _ => {}
        }
        let extension = |name: &str| Some(name.rsplit_once('.')?.1.to_ascii_lowercase());
        let own = extension(path.name());
        // The same extension is that of a file.
        if kind == Presence::Unknown && (own.is_none() || own != extension(name)) {
            self.unknown.get_or_insert_with(|| path.clone());
        }
        Ok(path.clone())
    }

    /// Copies all matches of a pattern. Several files require a folder as target.
    pub(super) fn copy(
        &mut self,
        files: &dyn Files,
        pattern: &str,
        found: Vec<FoundFile>,
    ) -> Result<(), String> {
        if found.len() > 1 && !self.target.is_folder {
            return Err(format!(
                "{pattern:?} matches {} files and folders: end the target with a separator",
                found.len()
            ));
        }
        let mut sources = HashMap::new();
        for found in found {
            self.copy_found(files, found, &mut sources)?;
        }
        Ok(())
    }

    fn copy_found(
        &mut self,
        files: &dyn Files,
        found: FoundFile,
        sources: &mut HashMap<String, String>,
    ) -> Result<(), String> {
        if !found.is_folder() {
            if self.excluded.is_ignored(found.name()) {
                return Err(format!(
                    "--exclude applies only inside folders, and {:?} is copied by name",
                    found.path
                ));
            }
            add_source(sources, &found)?;
            let path = self.file_target(found.name())?;
            return self.insert(path, found.content);
        }
        self.insert(self.target.path.clone(), PlannedContent::Folder)?;
        let root = found.path;
        let mut pending = vec![root.clone()];
        while let Some(folder) = pending.pop() {
            for entry in files.inside(&folder, &root)? {
                let inside = entry
                    .path
                    .strip_prefix(root.as_str())
                    .unwrap_or(&entry.path);
                let inside = inside.trim_start_matches('/');
                if entry.is_folder() {
                    pending.push(entry.path.clone());
                }
                if self.excluded.is_ignored(inside) {
                    if entry.is_folder() && !self.excluded.may_reinclude() {
                        pending.pop();
                    }
                    continue;
                }
                add_source(sources, &entry)?;
                let path = self.target.path.join_all(inside.split('/'));
                let path = path.map_err(|error| error.to_string())?;
                // An excluded folder is created only for its included contents.
                if !(entry.is_folder() && files.excludes(&entry.path)) {
                    self.insert(path, entry.content)?;
                }
            }
        }
        Ok(())
    }

    /// Adds unpacked entries to the target, which is a folder.
    pub(super) fn unpack(&mut self, entries: Vec<UnpackedEntry>) -> Result<(), String> {
        self.insert(self.target.path.clone(), PlannedContent::Folder)?;
        for entry in entries {
            let path = self.target.path.join_all(entry.path.split('/'));
            let path = path.map_err(|error| error.to_string())?;
            self.insert(path, entry.content.into())?;
        }
        Ok(())
    }
}

/// Contents of a file that `ADD` unpacks: a tar with any compression. Like Docker, it copies a zip.
pub(super) fn unpacked(
    archives: &Archives,
    content: &PlannedContent,
) -> Result<Option<Vec<UnpackedEntry>>, ArchiveError> {
    let PlannedContent::File(source) = content else {
        return Ok(None);
    };
    match source.archive(archives)? {
        Some(archive) if matches!(archive.format(), ArchiveFormat::Tar(_)) => {
            archive.unpack(&UnpackSelection::default()).map(Some)
        }
        _ => Ok(None),
    }
}

/// A copy from another image.
pub struct ImageCopy<'a> {
    image: &'a str,
    /// Path or pattern in the image.
    pattern: String,
    target: CopyTarget,
}

impl<'a> ImageCopy<'a> {
    /// Reads the path in the image.
    pub fn new(files: &'a ImageFiles, target: &ImagePath) -> Result<Self, String> {
        let pattern = paths::source(&files.from)?;
        if fixed_part(&pattern).is_empty() {
            return Err(format!(
                "{} is the whole drive of {}: specify a folder or file",
                QuotedText(&files.from),
                files.image
            ));
        }
        Ok(Self {
            image: &files.image,
            pattern,
            target: CopyTarget {
                path: target.clone(),
                is_folder: files.into_folder || target.components().is_empty(),
            },
        })
    }

    /// The path to extract.
    pub fn required_path(&self) -> &str {
        fixed_part(&self.pattern)
    }

    /// The entries that it makes of extracted files.
    pub fn entries(
        &self,
        paths: &BTreeSet<String>,
        extracted: BTreeMap<String, ExtractedEntry>,
    ) -> Result<Vec<PlannedEntry>, String> {
        let mut files = ExtractedFiles::default();
        files.add(paths, extracted);
        let source = ImageSource {
            files: &files,
            name: self.image,
            is_windows: true,
        };
        let tree = Tree::unknown(self.image);
        let mut draft = Draft::new(&tree, self.target.clone(), IgnoreRules::default());
        draft.copy(&source, &self.pattern, source.matching(&self.pattern)?)?;
        Ok(draft.into_entries())
    }
}

// Other file systems cannot hold two such files.
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use wincimg_layer::DiskSource;

    use super::super::files::Folder;
    use super::*;

    /// Copies the matches of a pattern in a folder with these files, and counts the files.
    fn copied(files: &[&str], pattern: &str) -> Result<usize, String> {
        let context = tempfile::tempdir().unwrap();
        for file in files {
            let path = context.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let root = DiskSource::folder(context.path());
        let folder = Folder::new(root, IgnoreRules::default(), PathBuf::new());
        let tree = Tree::unknown("base");
        let target = CopyTarget {
            path: r"C:\x".parse().unwrap(),
            is_folder: true,
        };
        let mut draft = Draft::new(&tree, target, IgnoreRules::default());
        draft.copy(&folder, pattern, folder.matching(pattern)?)?;
        let entries = draft.into_entries().into_iter();
        Ok(entries
            .filter(|entry| entry.content != PlannedContent::Folder)
            .count())
    }

    #[test]
    fn files_of_one_path_on_windows_are_refused_by_both_names() {
        for (files, pattern) in [
            (["d/A", "d/a"], "d"),
            (["d/B/x", "d/b/X"], "d"),
            (["A.txt", "a.txt"], "*.txt"),
        ] {
            let error = copied(&files, pattern).unwrap_err();
            let [one, other] = files.map(|file| format!("{file:?}"));
            assert!(error.contains(&one) && error.contains(&other), "{error}");
        }
    }

    #[test]
    fn nothing_is_read_through_a_link_out_of_the_context() {
        let (context, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("S3CRET"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), context.path().join("out")).unwrap();
        let root = DiskSource::folder(context.path());
        let folder = Folder::new(root, IgnoreRules::default(), PathBuf::new());
        let mut refused = ["out", "out/*", "out/S3CRET"]
            .map(|pattern| folder.matching(pattern).unwrap_err())
            .to_vec();
        refused.push(folder.inside("out", "").unwrap_err());
        for error in refused {
            assert!(error.contains("leads out of"), "{error}");
        }
    }

    #[test]
    fn folders_of_one_path_on_windows_are_merged_and_later_files_replace_earlier_ones() {
        assert_eq!(copied(&["d/B/x", "d/b/y"], "d"), Ok(2));
        assert_eq!(copied(&["d/A", "e/a"], "?/?"), Ok(1));
    }
}
