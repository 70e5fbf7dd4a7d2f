//! A base with layers over it that are not written anywhere yet: the next layer is fitted to both.

use std::collections::{BTreeMap, BTreeSet};

use crate::windows::inside::{BaseFile, BaseFileKind, BaseKey, Inside, InsideError, Known};
use crate::windows::path::ImagePath;
use crate::windows::registry::KeyPath;

use super::content::{Content, Layer, arrange, is_below};
use super::descriptor::{self, Security};
use super::error::LayerError;
use super::path::{LayerPath, WHITEOUT_PREFIX, fold};

/// What is inside a base, with the files of layers laid over it. Its registry is the base's.
#[derive(Debug)]
pub struct Laid<'a> {
    base: &'a dyn Inside,
    files: BTreeMap<String, BaseFile>,
    /// What of the base is gone, with all that is in it.
    deleted: BTreeSet<String>,
}

impl<'a> Laid<'a> {
    /// A base without any layer over it.
    pub fn over(base: &'a dyn Inside) -> Self {
        Self {
            base,
            files: BTreeMap::new(),
            deleted: BTreeSet::new(),
        }
    }

    /// Lays a layer over, once it is settled.
    pub fn lay(&mut self, layer: &Layer) -> Result<(), LayerError> {
        if self.base.file(&ImagePath::drive())? == Known::Unknown {
            return Ok(());
        }
        let mut items = Vec::with_capacity(layer.files.len());
        arrange("Files", &layer.files, Some(&layer.secured), &mut items)?;
        for item in &items[1..] {
            let path = item.name.strip_prefix("Files/").unwrap_or_default();
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (kind, attributes, usual) = match item.content {
                Content::Directory => (BaseFileKind::Folder, 0x10, &descriptor::DIRECTORY),
                Content::Symlink { .. } => (BaseFileKind::Link, 0x400, &descriptor::FILE),
                Content::File(_) => {
                    // A layer is fitted to what is there, whatever is in it.
                    let (size, sha256) = (0, [0; 32]);
                    let kind = BaseFileKind::File { size, sha256 };
                    (kind, 0x20, &descriptor::FILE)
                }
                Content::Deletion => {
                    let name = name.strip_prefix(WHITEOUT_PREFIX).unwrap_or(name);
                    let key = fold(format!("{folder}/{name}").trim_start_matches('/'));
                    self.files
                        .retain(|own, _| *own != key && !is_below(own, &key));
                    self.deleted.insert(key);
                    continue;
                }
            };
            let file = BaseFile {
                name: name.to_owned(),
                kind,
                attributes: item.attributes.unwrap_or(attributes),
                security: Some(item.security.map_or_else(|| usual.bytes(), Security::bytes)),
            };
            self.files.insert(fold(path), file);
        }
        Ok(())
    }
}

impl Inside for Laid<'_> {
    fn key(&self, path: &KeyPath) -> Result<Known<BaseKey>, InsideError> {
        self.base.key(path)
    }

    fn file(&self, path: &ImagePath) -> Result<Known<BaseFile>, InsideError> {
        let Ok(own) = LayerPath::try_from(path) else {
            return self.base.file(path);
        };
        let key = fold(own.as_str());
        if let Some(file) = self.files.get(&key) {
            return Ok(Known::Present(file.clone()));
        }
        let mut above = Some(key.as_str());
        while let Some(folder) = above {
            if self.deleted.contains(folder) {
                return Ok(Known::Absent);
            }
            above = folder.rsplit_once('\0').map(|(above, _)| above);
        }
        self.base.file(path)
    }

    fn folders_below(
        &self,
        path: &ImagePath,
    ) -> Result<Known<Vec<(ImagePath, BaseFile)>>, InsideError> {
        self.base.folders_below(path)
    }

    fn content(&self, path: &ImagePath) -> Result<Known<Vec<u8>>, InsideError> {
        self.base.content(path)
    }
}
