//! The drive of another stage as a place that files are copied from: what the stage made itself lies
//! over what its base has, which is taken out of the base's layers.

use std::cell::RefCell;
use std::collections::BTreeSet;

use wincimg_common::diagnose::in_one_line;
use wincimg_recipe::{FileSource, PlannedContent};
use wincimg_registry::{InsideError, Known};
use wincimg_windows::path::ImagePath;

use super::files::{Files, Found, OfImage, joined, names_of};
use super::paths;
use super::run::Ground;
use super::tree::{Kind, Tree};

/// What a stage has on its drive.
pub(super) struct OfStage<'a> {
    pub(super) tree: &'a Tree,
    /// What the stage is called.
    pub(super) name: &'a str,
    /// What it is based on in the end.
    pub(super) base: Ground<'a>,
    /// What has to be taken out of the base first; what is found before is not all.
    pub(super) lacking: &'a RefCell<BTreeSet<String>>,
}

impl OfStage<'_> {
    /// What was taken out of the base; none where a path has to be first.
    fn taken(&self, path: &str) -> Option<OfImage<'_>> {
        if let Some(files) = self.base.files.filter(|files| files.knows(path)) {
            return Some(OfImage {
                files,
                name: self.base.image,
            });
        }
        self.lacking.borrow_mut().insert(path.to_owned());
        None
    }

    /// What a download may bring is not looked for in the base.
    fn check_known(&self, place: &ImagePath) -> Result<(), String> {
        if self.tree.is_later(place) {
            return Err(format!(
                "what the stage {:?} has at {place} depends on what it downloads",
                self.name
            ));
        }
        Ok(())
    }
}

impl Files for OfStage<'_> {
    fn find(&self, path: &str) -> Result<Option<Found>, String> {
        let place = place(path)?;
        let path = place.components().join("/");
        match self.tree.made(&place).map(|entry| &entry.content) {
            Some(PlannedContent::Deleted) => return Ok(None),
            Some(PlannedContent::Link(_)) => {
                return Err(format!("{place} is a link: copy the folder that it is in"));
            }
            Some(content) => {
                let content = content.clone();
                return Ok(Some(Found { path, content }));
            }
            None => {}
        }
        match self.tree.kind(&place).map_err(|error| failed(&error))? {
            Known::Absent => return Ok(None),
            Known::Present(Kind::Folder) => {
                let content = PlannedContent::Folder;
                return Ok(Some(Found { path, content }));
            }
            Known::Present(Kind::File(()) | Kind::Link(())) | Known::Unknown => {}
        }
        self.check_known(&place)?;
        match self.taken(&path) {
            Some(base) => base.find(&path),
            None => Ok(Some(Found {
                path,
                content: PlannedContent::File(FileSource::Text(String::new())),
            })),
        }
    }

    fn inside(&self, folder: &str, root: &str) -> Result<Vec<Found>, String> {
        let place = place(folder)?;
        let made = self.tree.made_in(&place).map(|(name, entry)| Found {
            path: joined(folder, name),
            content: entry.content.clone(),
        });
        let mut found: Vec<Found> = made.collect();
        let of_base = self.tree.base_shows(&place);
        if !of_base.map_err(|error| failed(&error))? {
            return Ok(found);
        }
        self.check_known(&place)?;
        let path = place.components().join("/");
        let Some(base) = self.taken(&path) else {
            return Ok(found);
        };
        if base.find(&path)?.is_none() && self.tree.made(&place).is_none() {
            return Err(self.missing(folder));
        }
        for entry in base.inside(folder, root)? {
            if self.tree.made(&self::place(&entry.path)?).is_none() {
                found.push(entry);
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn listed(&self, folder: &str) -> Result<Vec<(String, bool)>, String> {
        let place = place(folder)?;
        match self.tree.listed(&place).map_err(|error| failed(&error))? {
            Known::Present(inside) => {
                let inside = inside.into_iter();
                Ok(inside
                    .map(|(name, kind)| (joined(folder, &name), kind == Kind::Folder))
                    .collect())
            }
            Known::Absent => Ok(Vec::new()),
            Known::Unknown => Ok(names_of(self.inside(folder, "")?)),
        }
    }

    fn missing(&self, path: &str) -> String {
        format!(
            "{path:?} is not in the stage {:?}: no instruction makes it, and its base {} does not have it",
            self.name, self.base.image
        )
    }
}

fn place(path: &str) -> Result<ImagePath, String> {
    Ok(paths::target(&ImagePath::drive(), &format!("/{path}"))?.path)
}

fn failed(error: &InsideError) -> String {
    in_one_line(error)
}
