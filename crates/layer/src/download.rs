//! Files of a layer that come from a server.

use serde::Serialize;
use wincimg_common::digest::Digest;
use wincimg_common::files::SpoolPart;

/// A file that a server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedDownload {
    /// Where it is.
    pub url: String,
    /// What it has to be, where that is said beside its URL; once it is here, what it is.
    pub digest: Option<Digest>,
    /// Its length, where that is known.
    pub size: Option<u64>,
    /// Its bytes, once they are here.
    #[serde(skip)]
    pub content: Option<SpoolPart>,
}

impl PlannedDownload {
    /// The file at a URL, of which nothing more is known.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            digest: None,
            size: None,
            content: None,
        }
    }

    /// Notes that it is here.
    pub fn set_content(&mut self, digest: Digest, size: u64, content: SpoolPart) {
        self.digest = Some(digest);
        self.size = Some(size);
        self.content = Some(content);
    }
}
