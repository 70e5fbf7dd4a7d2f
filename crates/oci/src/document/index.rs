//! An index, which Docker calls a manifest list: one image for each platform.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::descriptor::{Descriptor, or_default};
use super::image::annotations;
use super::media_type;
use super::media_type::ManifestFormat;
use super::verbatim::DocumentType;

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

impl DocumentType for Index {
    const WHAT: &'static str = "image index";
}

impl Index {
    /// Its annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        annotations(&self.other)
    }

    /// Creates an index; each entry should have its platform, including `os.version`.
    pub fn new(flavour: ManifestFormat, manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(flavour.index().to_owned()),
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
    pub fn convert(&mut self, flavour: ManifestFormat) {
        self.media_type = Some(flavour.index().to_owned());
        for entry in &mut self.manifests {
            entry.media_type = media_type::in_flavour(&entry.media_type, flavour);
        }
    }
}
