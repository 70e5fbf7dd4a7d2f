//! Names of an archive's parts, and its `manifest.json`.

use serde::{Deserialize, Serialize};

use crate::document::Digest;

/// One image in an archive's `manifest.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SavedImage {
    /// The entry that holds the configuration.
    pub(super) config: String,
    /// Names with tags, such as `app:1.4`.
    #[serde(default)]
    pub(super) repo_tags: Option<Vec<String>>,
    /// The entries that hold the layers, the base first.
    #[serde(default)]
    pub(super) layers: Option<Vec<String>>,
    /// Descriptors of foreign layers by `diff_id`, so that `docker load` keeps them foreign.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) layer_sources: serde_json::Map<String, serde_json::Value>,
}

/// Path of a blob of a layout inside an archive.
pub(super) fn blob_member(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm(), digest.digest())
}
