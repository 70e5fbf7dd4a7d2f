//! Diffs of layers above Windows, each computed once.

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;

use wincimg_layer::{Compression, HiveFolder, Layer, WriteOptions, WrittenLayer};
use wincimg_oci::document::Descriptor;
use wincimg_oci::store::Source;

use super::BaseFactsProvider;
use super::layers::open;
use crate::error::LayerProblem;
use crate::layer_diff::LayerDiff;
use crate::stream::read_blob;

impl BaseFactsProvider {
    /// The diff of a layer, from the cache or from its bytes, which are read to their end and
    /// checked against the digest.
    pub async fn layer_diff(
        &self,
        place: &Source,
        blob: &Descriptor,
    ) -> Result<Arc<LayerDiff>, LayerProblem> {
        if let Some(cache) = &self.cache
            && let Some(path) = cache.find_layer(&blob.digest)
        {
            if let Some(known) = fs::read(&path).ok().and_then(|it| LayerDiff::read(&it)) {
                return Ok(Arc::new(known));
            }
            cache.remove(&path);
        }
        let work = |input: &mut (dyn Read + Send)| Ok(LayerDiff::read_layer(input)?);
        let found = self.read_whole(place, blob, work).await?;
        self.update_cache(|cache| cache.store_layer(&blob.digest, &found.to_bytes()?));
        Ok(Arc::new(found))
    }

    /// Writes a layer again with the hives of `added`, besides its own in `folder`.
    pub async fn add_hives<W: Write + Send + 'static>(
        &self,
        (place, blob): (&Source, &Descriptor),
        folder: &HiveFolder,
        added: Layer,
        (mut sink, compression): (W, Compression),
    ) -> Result<(WrittenLayer, W), LayerProblem> {
        let folder = folder.clone();
        let work = move |input: &mut (dyn Read + Send)| {
            let options = WriteOptions {
                compression,
                ..WriteOptions::default()
            };
            let written = folder.write_with(input, &added, &mut sink, &options)?;
            Ok((written, sink))
        };
        self.read_whole(place, blob, work).await
    }

    /// Runs `work` on a layer's bytes, which are read to their end and checked.
    async fn read_whole<T: Send + 'static>(
        &self,
        place: &Source,
        blob: &Descriptor,
        work: impl FnOnce(&mut (dyn Read + Send)) -> Result<T, LayerProblem> + Send + 'static,
    ) -> Result<T, LayerProblem> {
        let reader = open(&self.registry, place, blob).await?;
        let label = format!("layer {}", blob.digest);
        let task = self.progress.task(&label, Some(blob.size));
        let found = read_blob(reader, task.as_ref(), work).await?;
        task.done("read");
        Ok(found)
    }
}
