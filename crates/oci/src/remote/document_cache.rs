//! Cache of configurations on this machine: content under a digest never changes, so a
//! configuration need not be downloaded again.

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use wincimg_common::files::{CacheFileUse, FileCache};

use super::client::RegistryClient;
use super::error::RegistryError;
use crate::document::Descriptor;

/// Larger blobs are not cached; a configuration has a few thousand bytes.
const LARGEST: u64 = 256 * 1024;

#[derive(Debug)]
pub(super) struct Documents(FileCache);

impl RegistryClient {
    /// Caches configurations in a folder. One that is missing from the registry goes unnoticed, but
    /// not when it is copied.
    pub fn enable_document_cache(&self, folder: FileCache) {
        // The first call sets the folder.
        let _ = self.0.documents.set(Documents(folder));
    }

    /// Caches a document that was uploaded, as if it had been downloaded.
    pub fn cache_document(&self, blob: &Descriptor, bytes: &Bytes) {
        if let Some(documents) = self.0.documents.get() {
            documents.store(blob, bytes);
        }
    }
}

impl Documents {
    /// Returns the cached bytes of a blob if they are present and correct.
    pub(super) fn find(&self, blob: &Descriptor) -> Option<Bytes> {
        if blob.size > LARGEST {
            return None;
        }
        let path = self.path(blob);
        let mut bytes = Vec::new();
        let file = FileCache::open(&path).ok()?;
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let mut hasher = RegistryError::hasher_of(&blob.digest).ok()?;
        hasher.update(&bytes);
        let right = RegistryError::verify(&hasher.finish(), &blob.digest, "a cached document");
        if right.is_err() {
            FileCache::remove(&path);
            return None;
        }
        Some(bytes.into())
    }

    /// Caches verified bytes of a blob. On failure, they are downloaded again next time.
    pub(super) fn store(&self, blob: &Descriptor, bytes: &Bytes) {
        if bytes.len() as u64 > LARGEST {
            return;
        }
        let path = self.path(blob);
        if let Err(error) = self.0.write(&path, bytes) {
            tracing::debug!(%error, "cannot cache a document");
            return;
        }
        let use_of = |path: &Path, _| {
            if path.extension().is_some_and(|it| it == EXTENSION) {
                CacheFileUse::Counted
            } else {
                CacheFileUse::Uncounted
            }
        };
        self.0.evict(&path, use_of, FileCache::remove);
    }

    fn path(&self, blob: &Descriptor) -> PathBuf {
        let digest = &blob.digest;
        let name = format!("{}-{}.{EXTENSION}", digest.algorithm(), digest.digest());
        self.0.folder().join(name)
    }
}

const EXTENSION: &str = "json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::media_type::OCI_CONFIG;
    use crate::document::sha256;

    #[test]
    fn what_is_kept_is_what_its_digest_says() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents(FileCache::new(folder.path().join("deep"), 1 << 20));
        let bytes = Bytes::from_static(b"{}");
        let blob = Descriptor::new(OCI_CONFIG, sha256(&bytes), 2);
        assert_eq!(documents.find(&blob), None);
        documents.store(&blob, &bytes);
        assert_eq!(documents.find(&blob), Some(bytes));
        std::fs::write(documents.path(&blob), b"[]").unwrap();
        assert_eq!(documents.find(&blob), None);
        assert!(!documents.path(&blob).exists());
    }
}
