//! Compares files, folders and deletions of a layer with both bases.

use wincimg_inspect::LayerChange;
use wincimg_inspect::base::{BaseFacts, FactsError, ListedFile};
use wincimg_inspect::layer_diff::{ContentHash, FileDiff, LayerDiff};
use wincimg_registry::Presence;
use wincimg_windows::base_contents::{BaseContents as _, BaseFile, FileDigest, FileKind};
use wincimg_windows::path::{ImagePath, fold};

use super::{Comparison, FoundConflict, MAX_CONFLICTS};
use crate::listing::windows_path;
use crate::update::conflict::Conflict;

/// Folders where only servicing writes.
const SERVICED: [&str; 3] = [
    "windows/winsxs", "windows/servicing", "windows/system32/smi",
];
/// The folder of Windows' hives, and their names.
const HIVES: &str = "windows/system32/config/";
const HIVE_NAMES: [&str; 7] = [
    "components", "default", "drivers", "sam", "security", "software", "system",
];

/// State of the parent folders of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParentState {
    /// Neither base has the folder, and so nothing in it.
    Neither,
    /// At least one base has the folder.
    There,
    Blocked(Conflict),
}

impl Comparison<'_> {
    pub(super) fn files(
        &mut self,
        touched: &LayerDiff,
        found: &mut Vec<FoundConflict>,
    ) -> Result<(), FactsError> {
        for file in &touched.files {
            if !matches!(file.touch, LayerChange::Deleted) {
                self.own.insert(fold(&file.path));
            }
        }
        for file in &touched.files {
            if found.len() >= MAX_CONFLICTS {
                break;
            }
            if let Some(conflict) = self.file(file)? {
                found.push((windows_path(&file.path), conflict));
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &FileDiff) -> Result<Option<Conflict>, FactsError> {
        // An alternate data stream, such as `a.exe:Zone.Identifier`, is one of a file.
        let (name, _) = file.path.split_once(':').unwrap_or((&file.path, ""));
        let names: Vec<&str> = name.split('/').collect();
        let Ok(path) = ImagePath::drive().join_all(&names) else {
            let what = "it is not a valid Windows name, so it cannot be looked up".to_owned();
            return Ok(Some(Conflict::Strange(what)));
        };
        if !matches!(file.touch, LayerChange::Folder(_))
            && let Some(conflict) = of_servicing(&file.path)
        {
            return Ok(Some(conflict));
        }
        match self.parents_of(&path)? {
            ParentState::Neither => return self.own_file(file),
            ParentState::Blocked(conflict) => return Ok(Some(conflict)),
            ParentState::There => {}
        }
        let (old, new) = (at(self.old, &path)?, at(self.new, &path)?);
        if old.is_none() && new.is_none() {
            let is_new_in_store =
                matches!(file.touch, LayerChange::Folder(_)) && of_servicing(&file.path).is_some();
            if is_new_in_store {
                return Ok(Some(Conflict::Servicing));
            }
            return self.own_file(file);
        }
        Ok(match &file.touch {
            LayerChange::Folder(rights) => folder(rights.as_ref(), old.as_ref(), new.as_ref()),
            LayerChange::File(content) if new.as_ref().is_some_and(|new| has(new, content)) => None,
            // A folder there is hidden as if it were deleted.
            LayerChange::File(_)
            | LayerChange::HardLink(_)
            | LayerChange::Link(())
            | LayerChange::Deleted => match difference(old.as_ref(), new.as_ref()) {
                None => match self.below(&path)? {
                    None => self.target(file)?,
                    conflict => conflict,
                },
                conflict => conflict,
            },
        })
    }

    /// Conflict of a file that neither base has.
    fn own_file(&self, file: &FileDiff) -> Result<Option<Conflict>, FactsError> {
        match self.copies.conflict(file) {
            None => self.target(file),
            conflict => Ok(conflict),
        }
    }

    /// Checks the target of a hard link: a file of the image's own, or one that both bases have.
    fn target(&self, file: &FileDiff) -> Result<Option<Conflict>, FactsError> {
        let LayerChange::HardLink(target) = &file.touch else {
            return Ok(None);
        };
        if self.own.contains(&fold(target)) {
            return Ok(None);
        }
        let names: Vec<&str> = target.split('/').collect();
        let Ok(path) = ImagePath::drive().join_all(&names) else {
            let what = format!("it is another name of {target:?}, which cannot be looked up");
            return Ok(Some(Conflict::Strange(what)));
        };
        let (old, new) = (at(self.old, &path)?, at(self.new, &path)?);
        let is_same = difference(old.as_ref(), new.as_ref()).is_none() && new.is_some();
        let what = format!("it is another name of {path}, which is not the same in both bases");
        Ok((!is_same).then_some(Conflict::Strange(what)))
    }

    /// State of the parent folders of a path in both bases.
    fn parents_of(&mut self, path: &ImagePath) -> Result<ParentState, FactsError> {
        let mut way = ParentState::There;
        for names in 1..path.components().len() {
            let folder = path.up_to(names);
            let key = fold(&folder.components().join("/"));
            way = match self.folders.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let known = self.folder(&folder, &key)?;
                    self.folders.insert(key, known.clone());
                    known
                }
            };
            if way != ParentState::There {
                break;
            }
        }
        Ok(way)
    }

    fn folder(&self, folder: &ImagePath, key: &str) -> Result<ParentState, FactsError> {
        let (old, new) = (at(self.old, folder)?, at(self.new, folder)?);
        let is_folder = |file: &BaseFile| file.kind == FileKind::Folder;
        Ok(match (&old, &new) {
            (None, None) => ParentState::Neither,
            (Some(old), Some(new)) if is_folder(old) && is_folder(new) => ParentState::There,
            (None, Some(new)) if is_folder(new) => ParentState::There,
            (Some(old), None) if is_folder(old) && self.own.contains(key) => ParentState::There,
            (Some(old), None) if is_folder(old) => {
                let what = format!("its folder {folder} is not in the new base");
                ParentState::Blocked(Conflict::Strange(what))
            }
            _ => {
                let what = format!("{folder} is not a folder in both bases");
                ParentState::Blocked(Conflict::Strange(what))
            }
        })
    }

    /// The first difference between the bases below a path.
    fn below(&self, path: &ImagePath) -> Result<Option<Conflict>, FactsError> {
        let mut old = self.old.files_below(path)?;
        let mut new = self.new.files_below(path)?;
        loop {
            let (old, new) = (old.next().transpose()?, new.next().transpose()?);
            let place = |file: &ListedFile| format!(r"C:\{}", file.components.join(r"\"));
            match (&old, &new) {
                (None, None) => return Ok(None),
                (Some(old), Some(new))
                    if fold(&old.components.join("/")) == fold(&new.components.join("/"))
                        && difference(Some(&old.file), Some(&new.file)).is_none()
                        && old.target == new.target => {}
                (Some(file), _) | (None, Some(file)) => {
                    return Ok(Some(Conflict::ChangedBelow(place(file))));
                }
            }
        }
    }
}

/// The file at a path of a base with known files.
pub(super) fn at(facts: &BaseFacts, path: &ImagePath) -> Result<Option<BaseFile>, FactsError> {
    match facts.file(path) {
        Ok(Presence::Present(file)) => Ok(Some(file)),
        Ok(Presence::Absent | Presence::Unknown) => Ok(None),
        Err(error) => Err(FactsError::Io(std::io::Error::other(error))),
    }
}

/// The conflict if a path differs between the bases.
fn difference(old: Option<&BaseFile>, new: Option<&BaseFile>) -> Option<Conflict> {
    match (old, new) {
        (None, None) => None,
        (Some(_), None) => Some(Conflict::Gone),
        (None, Some(_)) => Some(Conflict::Came),
        (Some(old), Some(new)) => (old.kind != new.kind).then_some(Conflict::Changed),
    }
}

pub(super) fn has(file: &BaseFile, content: &ContentHash) -> bool {
    match file.kind {
        FileKind::File(FileDigest { sha256, .. }) => ContentHash::from_sha256(&sha256) == *content,
        FileKind::Folder | FileKind::Link(()) => false,
    }
}

/// Conflict of a folder of a layer with one of a base.
fn folder(
    rights: Option<&ContentHash>,
    old: Option<&BaseFile>,
    new: Option<&BaseFile>,
) -> Option<Conflict> {
    let is_folder = |file: &BaseFile| file.kind == FileKind::Folder;
    let of = |file: &BaseFile| file.security.as_deref().map(ContentHash::from_descriptor);
    match (old, new) {
        (_, Some(new)) if !is_folder(new) => Some(Conflict::Changed),
        (Some(old), _) if !is_folder(old) => Some(Conflict::Changed),
        // The layer creates it, with its parents.
        (_, None) => None,
        (old, Some(new)) => {
            let is_same = old.is_some_and(|old| of(old) == of(new));
            let is_the_new = rights.is_some_and(|rights| of(new).as_ref() == Some(rights));
            (!is_same && !is_the_new).then_some(Conflict::Rights)
        }
    }
}

/// Conflict of a path where only servicing writes.
pub(super) fn of_servicing(path: &str) -> Option<Conflict> {
    let path = path.to_ascii_lowercase();
    let is_below = |folder: &&str| {
        let below = path.strip_prefix(*folder);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    if SERVICED.iter().any(is_below) {
        return Some(Conflict::Servicing);
    }
    let name = path.strip_prefix(HIVES)?;
    let stem = name.split(['.', '{']).next().unwrap_or(name);
    HIVE_NAMES.contains(&stem).then_some(Conflict::HiveFile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_servicing_alone_writes_is_known_in_any_case_of_letters() {
        for path in [
            "Windows/WinSxS/amd64_x/a.dll",
            "windows/SERVICING/Packages/a.mum",
            "Windows/System32/SMI/Store/Machine/SCHEMA.DAT",
        ] {
            assert_eq!(of_servicing(path), Some(Conflict::Servicing), "{path}");
        }
        for path in [
            "Windows/System32/config/COMPONENTS",
            "Windows/System32/config/system.LOG1",
        ] {
            assert_eq!(of_servicing(path), Some(Conflict::HiveFile), "{path}");
        }
        for path in [
            "Windows/WinSxS2/a",
            "Windows/System32/config/systemprofile/a",
            "Windows/System32/drivers/etc/hosts",
        ] {
            assert_eq!(of_servicing(path), None, "{path}");
        }
    }
}
