//! Diffs of layers above Windows, each computed once.

use std::fs;
use std::sync::Arc;

use wincimg_oci::document::Descriptor;
use wincimg_oci::store::Source;

use super::BaseFactsProvider;
use super::layers::open;
use crate::error::LayerProblem;
use crate::layer_diff::LayerDiff;
use crate::stream;
use crate::stream::{BlobReadOutcome, Depth, Input};

impl BaseFactsProvider {
    /// The diff of a layer, from the cache or from its bytes, which are read to their end and
    /// checked against the digest.
    pub async fn layer_diff(
        &self,
        place: &Source,
        blob: &Descriptor,
    ) -> Result<Arc<LayerDiff>, LayerProblem> {
        let kept = self.cache.as_ref();
        let kept = kept.and_then(|cache| cache.find_layer(&blob.digest));
        if let Some(path) = kept {
            if let Some(known) = fs::read(&path).ok().and_then(|it| LayerDiff::read(&it)) {
                return Ok(Arc::new(known));
            }
            self.update_cache(|cache| {
                cache.remove(&path);
                Ok(())
            });
        }
        let reader = open(&self.registry, place, blob).await?;
        let label = format!("layer {}", blob.digest);
        let task = self.progress.task(&label, Some(blob.size));
        let work = |input: &mut Input| Ok(LayerDiff::read_layer(input)?);
        let found = match stream::read(reader, Depth::ToTheEnd, task.as_ref(), work).await? {
            BlobReadOutcome::Whole(found) | BlobReadOutcome::Part(found) => found,
            // Only if no more than a beginning is read.
            BlobReadOutcome::OutOfReach => return Err(LayerProblem::ForeignBase),
        };
        task.done("read");
        self.update_cache(|cache| cache.store_layer(&blob.digest, &found.to_bytes()?));
        Ok(Arc::new(found))
    }
}
