//! The drive of another stage as a source of copies: the stage's entries over files extracted from
//! its base.

use wincimg_common::diagnose::error_chain;
use wincimg_recipe::{FileSource, PlannedContent};
use wincimg_registry::Presence;
use wincimg_windows::path::ImagePath;

use super::drive::{PathKind, Tree};
use super::files::{Files, FoundFile, ImageSource, join_path, names_of};
use super::paths;
use super::run::BaseFiles;

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
        match self
            .tree
            .kind(&place)
            .map_err(|error| error_chain(&error))?
        {
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
            if self
                .tree
                .created_entry(&self::place(&entry.path)?)
                .is_none()
            {
                found.push(entry);
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn list_paths(&self, folder: &str) -> Result<Vec<(String, bool)>, String> {
        let place = place(folder)?;
        match self
            .tree
            .list_known(&place)
            .map_err(|error| error_chain(&error))?
        {
            Presence::Present(inside) => {
                let inside = inside.into_iter();
                Ok(inside
                    .map(|(name, kind)| (join_path(folder, &name), kind == PathKind::Folder))
                    .collect())
            }
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
