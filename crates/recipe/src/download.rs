//! Files that come from a server.

use serde::{Serialize, Serializer};
use wincimg_common::digest::Digest;
use wincimg_common::files::SpoolPart;
use wincimg_common::untrusted::public_url;
use wincimg_layer::ContentSource;

/// Name of the lock file next to a recipe or a Dockerfile.
pub const LOCK_FILE: &str = "wincimg.lock";

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedDownload {
    /// URL.
    #[serde(serialize_with = "as_public_url")]
    pub url: String,
    /// Expected digest, if given; the actual one after the download.
    pub digest: Option<Digest>,
    /// Length, if known.
    pub size: Option<u64>,
    /// Content, after the download.
    #[serde(skip)]
    pub content: Option<SpoolPart>,
}

/// Plans are printed in logs of CI.
fn as_public_url<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&public_url(url))
}

impl PlannedDownload {
    /// Creates a download of a URL.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            digest: None,
            size: None,
            content: None,
        }
    }

    /// Sets the downloaded content.
    pub fn set_content(&mut self, digest: Digest, size: u64, content: SpoolPart) {
        self.digest = Some(digest);
        self.size = Some(size);
        self.content = Some(content);
    }
}

impl From<&PlannedDownload> for ContentSource {
    fn from(download: &PlannedDownload) -> Self {
        match &download.content {
            Some(part) => Self::Part(part.clone()),
            None => Self::NotDownloaded {
                url: download.url.clone(),
                size: download.size,
            },
        }
    }
}
