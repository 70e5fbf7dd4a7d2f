//! An index, which Docker calls a manifest list: one image for each platform.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wincimg_common::diagnose::Problem;
use wincimg_common::json::or_default;

use super::descriptor::Descriptor;
use super::error::{damaged, unusable};
use super::image::annotations;
use super::media_type;
use super::media_type::ManifestFormat;
use super::verbatim::{DocumentType, Verbatim};

/// Several images under one name, distinguished by platform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub(crate) schema_version: u32,
    /// The document's media type; OCI writers may omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The entries, each with its platform.
    #[serde(default, deserialize_with = "or_default")]
    pub manifests: Vec<Descriptor>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Maximum number of entries that are read, of an index and of those in it: far above real ones,
/// and small enough that a request for each costs little.
const MAX_ENTRIES: usize = 1000;

/// Depth to which the indexes in an index are read. Real ones contain images; the specification
/// allows one more level, which some use.
pub(crate) const MAX_DEPTH: usize = 3;

/// Error for an index below [`MAX_DEPTH`].
pub(crate) fn too_deep(index: &Verbatim<Index>) -> Problem {
    let digest = index.digest();
    unusable(format!(
        "{digest} is nested too deeply: expected an index of images"
    ))
}

/// Entries of an index to read at once, as few indexes require.
pub const ENTRIES_AT_ONCE: usize = 8;

/// The entries that are read for one image, with those of nested indexes.
#[derive(Debug, Default)]
pub(crate) struct EntryCount(AtomicUsize);

impl EntryCount {
    /// Adds the entries of an index; fails if they are too many.
    pub(crate) fn add(&self, index: &Verbatim<Index>) -> Result<(), Problem> {
        let own = index.manifests.len();
        if self.0.fetch_add(own, Ordering::Relaxed).saturating_add(own) <= MAX_ENTRIES {
            return Ok(());
        }
        Err(damaged(format!(
            "the index {} has too many entries: expected at most {MAX_ENTRIES}, nested ones included",
            index.digest()
        )))
    }
}

impl DocumentType for Index {
    const WHAT: &'static str = "image index";
}

impl Index {
    /// Its annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        annotations(&self.other)
    }

    /// Creates an index; each entry should have its platform, including `os.version`.
    pub fn new(format: ManifestFormat, manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(format.index().to_owned()),
            manifests,
            other: Map::new(),
        }
    }

    /// The media type under which the index is published.
    pub fn media_type(&self) -> &str {
        match self.media_type.as_deref() {
            None | Some("") => media_type::OCI_INDEX,
            Some(stated) => stated,
        }
    }

    /// Converts the index to a format; the manifests it references must be converted too.
    pub fn convert(&mut self, format: ManifestFormat) {
        self.media_type = Some(format.index().to_owned());
        for entry in &mut self.manifests {
            entry.media_type = media_type::in_format(&entry.media_type, format);
        }
    }
}
