//! Names of an archive's parts, and its `manifest.json`.

use std::collections::HashMap;
use std::io::Read;

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

/// The files of an archive by path, and links to them.
#[derive(Debug)]
pub(super) struct Members<T> {
    pub(super) files: HashMap<String, T>,
    /// Older archives store a layer that two images share once, and link to it.
    links: HashMap<String, String>,
}

/// Number of links to follow.
const MAX_LINKS: usize = 8;

impl<T> Members<T> {
    pub(super) fn new() -> Self {
        Self {
            files: HashMap::new(),
            links: HashMap::new(),
        }
    }

    /// Adds an entry that is a link; returns false for other entries.
    pub(super) fn add_link(&mut self, name: &str, entry: &tar::Entry<'_, impl Read>) -> bool {
        let kind = entry.header().entry_type();
        if !(kind.is_symlink() || kind.is_hard_link()) {
            return false;
        }
        let Some(target) = entry.link_name_bytes() else {
            return false;
        };
        let target = link_target(name, &target, kind.is_symlink());
        self.links.insert(name.to_owned(), target);
        true
    }

    /// The file of that name, or that it links to. Docker on Windows up to 18.03 names files with
    /// `\` in `manifest.json`.
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.find(normalised(name))
            .or_else(|| self.find(normalised(&name.replace('\\', "/"))))
    }

    fn find(&self, mut name: String) -> Option<&T> {
        for _ in 0..MAX_LINKS {
            if let Some(found) = self.files.get(&name) {
                return Some(found);
            }
            name.clone_from(self.links.get(&name)?);
        }
        None
    }
}

/// The path that a link of that name refers to.
fn link_target(name: &str, target: &[u8], is_symlink: bool) -> String {
    let target = String::from_utf8_lossy(target);
    match name.rsplit_once('/') {
        Some((dir, _)) if is_symlink && !target.starts_with('/') => {
            normalised(&format!("{dir}/{target}"))
        }
        _ => normalised(&target),
    }
}

/// A path without empty, `.` and `..` parts.
pub(super) fn normalised(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
