//! Layers that are in no store, above an image that is in one.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::Source;
use crate::document::Digest;
use crate::remote::BlobSource;

/// Layers in this process, above an image in a store.
#[derive(Clone)]
pub struct LooseLayers {
    blobs: HashMap<Digest, Arc<dyn BlobSource>>,
    pub(super) below: Box<Source>,
}

impl LooseLayers {
    /// Layers by the digests of their blobs; all others are in `below`.
    pub fn new(blobs: HashMap<Digest, Arc<dyn BlobSource>>, below: Source) -> Self {
        Self {
            blobs,
            below: Box::new(below),
        }
    }

    pub(super) fn get(&self, digest: &Digest) -> Option<&Arc<dyn BlobSource>> {
        self.blobs.get(digest)
    }
}

impl fmt::Debug for LooseLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LooseLayers")
            .field("blobs", &self.blobs.keys())
            .field("below", &self.below)
            .finish()
    }
}
