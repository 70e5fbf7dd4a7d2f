//! Files of Windows among the image's own: copies of the old base's, and files of other images.

use std::collections::HashMap;

use wincimg_inspect::LayerChange;
use wincimg_inspect::base::{BaseFacts, FactsError};
use wincimg_inspect::layer_diff::{ContentHash, FileDiff, LayerDiff};
use wincimg_windows::base_contents::{FileDigest, FileKind};
use wincimg_windows::path::ImagePath;
use wincimg_windows::version::WindowsVersion;

use super::files::{at, has, of_servicing};
use super::independent::is_of_windows;
use crate::update::conflict::Conflict;

/// Files of the old base with the content of one of the image's own.
#[derive(Default)]
pub(super) struct BaseCopies {
    /// The first path of each content, and none if the new base has the same content at one.
    changed: HashMap<ContentHash, Option<String>>,
    version: Option<WindowsVersion>,
}

impl BaseCopies {
    /// Looks for the content of the image's own files in the old base.
    pub(super) fn find<'l>(
        old: &BaseFacts,
        new: &BaseFacts,
        own: impl Iterator<Item = &'l LayerDiff>,
    ) -> Result<Self, FactsError> {
        let files = own.flat_map(|layer| &layer.files);
        let mut wanted: HashMap<ContentHash, Vec<ImagePath>> = files
            .filter_map(|file| match &file.touch {
                LayerChange::File(content) => Some((content.clone(), Vec::new())),
                _ => None,
            })
            .collect();
        let mut found = Self {
            version: old.os_version().and_then(|text| text.parse().ok()),
            ..Self::default()
        };
        if wanted.is_empty() || !old.has_files() || !new.has_files() {
            return Ok(found);
        }
        for file in old.files_below(&ImagePath::drive())? {
            let file = file?;
            let FileKind::File(FileDigest { size, sha256 }) = file.file.kind else {
                continue;
            };
            let places = wanted.get_mut(&ContentHash::from_sha256(&sha256));
            if let Some(places) = places.filter(|_| size > 0)
                && of_servicing(&file.components.join("/")).is_none()
                && let Ok(path) = ImagePath::drive().join_all(&file.components)
            {
                places.push(path);
            }
        }
        for (content, places) in wanted {
            let mut is_same = false;
            for path in &places {
                is_same |= at(new, path)?.is_some_and(|new| has(&new, &content));
            }
            if let Some(first) = places.first() {
                let path = (!is_same).then(|| first.to_string());
                found.changed.insert(content, path);
            }
        }
        Ok(found)
    }

    /// Conflict of a file that a build would take from elsewhere.
    pub(super) fn conflict(&self, file: &FileDiff) -> Option<Conflict> {
        let LayerChange::File(content) = &file.touch else {
            return None;
        };
        match self.changed.get(content) {
            Some(path) => path.clone().map(Conflict::Copied),
            None => is_of_windows(file, self.version).then(|| {
                let version = file.windows.as_deref().unwrap_or_default();
                Conflict::OfWindows(version.to_owned())
            }),
        }
    }
}
