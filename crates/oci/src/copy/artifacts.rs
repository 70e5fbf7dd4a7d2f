//! Copies the artifacts attached to an image: SBOMs, provenance, signatures.

use super::plan::{Foreign, PlannedBlob};
use super::run::Copier;
use crate::document::{Artifact, Digest};
use crate::store::{Sink, Source, StoreError};

/// Copies the artifacts attached to a manifest that both stores have, and returns their number. An
/// archive can have none.
pub async fn copy_artifacts(
    copier: &Copier,
    subject: &Digest,
    source: &Source,
    sink: &Sink,
) -> Result<usize, StoreError> {
    let Some(target) = sink.as_source() else {
        return Ok(0);
    };
    let artifacts = source.artifacts(subject, None).await?;
    if artifacts.is_empty() {
        return Ok(0);
    }
    let known = target.artifacts(subject, None).await?;
    for artifact in &artifacts {
        let entry = artifact.entry();
        if known
            .iter()
            .any(|known| known.entry().digest == entry.digest)
        {
            continue;
        }
        copier.attach(artifact, source, sink).await?;
    }
    Ok(artifacts.len())
}

impl Copier {
    /// Copies an artifact, and attaches it to its subject in the target.
    pub(crate) async fn attach(
        &self,
        artifact: &Artifact,
        source: &Source,
        sink: &Sink,
    ) -> Result<(), StoreError> {
        let manifest = artifact.manifest();
        for blob in manifest.layers.iter().chain([&manifest.config]) {
            let blob = PlannedBlob::new(blob.clone(), Foreign::Keep);
            self.ensure_blob(&blob, source, sink).await?;
        }
        sink.attach(artifact).await
    }
}
