//! Configurations that were read before, kept on this machine: a digest means the same for ever, and
//! whoever has just read the manifest that names one need not wait for it again.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use wincimg_common::files::FileCache;

use super::client::RegistryClient;
use super::error::RegistryError;
use crate::document::Descriptor;

/// Larger blobs are not kept; a configuration has a few thousand bytes.
const LARGEST: u64 = 256 * 1024;

/// The folder of such documents.
#[derive(Debug)]
pub(super) struct Documents {
    kept: FileCache,
    /// True if room was made in this run.
    trimmed: AtomicBool,
}

impl RegistryClient {
    /// Has configurations kept in a folder, and taken from there. For those who want to know what an
    /// image is; whether the registry still has its configuration is not seen any more then.
    pub fn enable_document_cache(&self, folder: FileCache) {
        let trimmed = AtomicBool::new(false);
        let documents = Documents {
            kept: folder,
            trimmed,
        };
        // Whoever says so first decides where.
        let _ = self.0.documents.set(documents);
    }

    /// Remembers a document that was sent somewhere, as if it had been read.
    pub fn cache_document(&self, blob: &Descriptor, bytes: &Bytes) {
        if let Some(documents) = self.0.documents.get() {
            documents.store(blob, bytes);
        }
    }
}

impl Documents {
    /// The bytes of a blob, if they are here and right.
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
        let right = RegistryError::verify(&hasher.finish(), &blob.digest, "a kept document");
        if right.is_err() {
            FileCache::remove(&path);
            return None;
        }
        Some(bytes.into())
    }

    /// Keeps the bytes of a blob, which were verified. Where that fails, they are read again.
    pub(super) fn store(&self, blob: &Descriptor, bytes: &Bytes) {
        if bytes.len() as u64 > LARGEST {
            return;
        }
        let path = self.path(blob);
        let written = self.kept.write(&path, bytes);
        if let Err(error) = written {
            tracing::debug!(%error, "a document is not kept");
            return;
        }
        if !self.trimmed.swap(true, Ordering::Relaxed) {
            let is_document = |path: &Path| path.extension().is_some_and(|it| it == EXTENSION);
            self.kept.evict(&path, is_document, FileCache::remove);
        }
    }

    fn path(&self, blob: &Descriptor) -> PathBuf {
        let digest = &blob.digest;
        let name = format!("{}-{}.{EXTENSION}", digest.algorithm(), digest.digest());
        self.kept.folder().join(name)
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
        let documents = Documents {
            kept: FileCache::new(folder.path().join("deep"), 1 << 20),
            trimmed: AtomicBool::new(false),
        };
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
