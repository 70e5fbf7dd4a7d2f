//! Facts collected while images are mirrored, from the transferred bytes.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use futures_util::{StreamExt, TryStreamExt, stream as futures};
use tokio::sync::{mpsc, oneshot, watch};
use wincimg_common::diagnose::{BoxError, Problem, error_chain};
use wincimg_common::files::PieceReader;
use wincimg_common::lock;
use wincimg_oci::copy::Watcher;
use wincimg_oci::document::{
    Descriptor, Digest, Document, ImageConfig, Manifest, Verbatim, media_type,
};
use wincimg_oci::mirror::{
    CompanionOutcome, CompanionReport, CompanionTask, MirrorHook, MirrorJob,
};
use wincimg_oci::remote::BlobObserver;
use wincimg_oci::store::Source;

use super::layers::{PARALLEL_LAYERS, read_layer};
use super::{BaseFactsProvider, NoRegistry};
use crate::base::{CollectedLayer, Extent, LayerPosition, collect_layer};
use crate::error::{LayerProblem, LayerReadError};
use crate::stream::Depth;

/// Number of pieces of a layer that may wait to be read.
const QUEUE_LENGTH: usize = 8;

/// Collects facts about Windows images while they are mirrored, and attaches them.
pub struct MirrorFactsCollector {
    library: BaseFactsProvider,
    /// The layers that are expected.
    layers: Mutex<HashMap<String, Weak<Slot>>>,
}

/// A layer that is read while it is transferred.
struct Slot {
    place: LayerPosition,
    /// State, sent once it is final.
    seen: watch::Sender<ObservedState>,
}

#[derive(Clone, Default)]
enum ObservedState {
    /// It was not transferred, or not to its end, or faster than it was read.
    #[default]
    Nothing,
    /// The transfer is running.
    Coming,
    /// It was transferred completely.
    Whole(Arc<CollectedLayer>),
    /// It cannot be read.
    Unreadable(Arc<LayerProblem>),
}

/// An image to collect facts about.
struct Subject {
    manifest: Descriptor,
    os_version: String,
    plan: FactsPlan,
}

enum FactsPlan {
    Present,
    Known(Bytes),
    /// The image could not be read; without a reason, it is not a base.
    Unreadable(String),
    /// They are collected from these layers.
    Make(Vec<ExpectedLayer>),
}

/// A layer of an image.
struct ExpectedLayer {
    blob: Descriptor,
    /// Digest of its uncompressed bytes, according to the configuration.
    diff_id: Option<Digest>,
    slot: Arc<Slot>,
}

impl MirrorFactsCollector {
    /// Creates a collector that uses the facts of a provider and adds to them.
    pub fn new(library: BaseFactsProvider) -> Self {
        Self {
            library,
            layers: Mutex::default(),
        }
    }

    /// Plans the facts for each Windows image of a copy.
    async fn subjects(&self, copying: &MirrorJob<'_>) -> Vec<Subject> {
        let documents = copying.plan.children.iter().chain([&copying.plan.root]);
        let manifests = documents.filter_map(|document| match document {
            Document::Manifest(manifest) if manifest.is_image_by_type() != Some(false) => {
                Some(manifest.as_ref())
            }
            _ => None,
        });
        let subjects = manifests.map(|manifest| self.subject(copying, manifest));
        join_all(subjects).await.into_iter().flatten().collect()
    }

    /// None if an image is not for Windows, or contains no Windows.
    async fn subject(
        &self,
        copying: &MirrorJob<'_>,
        manifest: &Verbatim<Manifest>,
    ) -> Option<Subject> {
        let from = Source::Registry(copying.from.clone());
        let config: Verbatim<ImageConfig> = from.read(&manifest.config).await.ok()?;
        let os_version = config.os_version.clone()?;
        if config.os != "windows" || manifest.layers.is_empty() {
            return None;
        }
        let base = manifest.digest();
        Some(Subject {
            manifest: Descriptor::new(manifest.media_type(), base.clone(), manifest.size()),
            os_version,
            plan: self.plan(copying, manifest, &config).await,
        })
    }

    async fn plan(
        &self,
        copying: &MirrorJob<'_>,
        manifest: &Verbatim<Manifest>,
        config: &ImageConfig,
    ) -> FactsPlan {
        let (library, base) = (&self.library, manifest.digest());
        match library.in_registry(copying.to, base, true).await {
            Ok(Some(_)) => return FactsPlan::Present,
            Ok(None) => {}
            Err(error) => tracing::info!("{}", error_chain(&error)),
        }
        if let Some(bytes) = library.cached_layer_facts(base) {
            return FactsPlan::Known(bytes);
        }
        // Facts of the source could be forged, and would be the mirror's own from then on.
        let cache = library.cache.as_ref();
        if let Some(reason) = cache.and_then(|it| it.find_unreadable(base)) {
            return FactsPlan::Unreadable(reason);
        }
        // The source's descriptors are used to look up layers and to find foreign ones.
        let sources = &copying.plan.blobs;
        let layers = manifest.layers.iter().enumerate().map(|(number, layer)| {
            let source = sources
                .iter()
                .find(|blob| blob.descriptor.digest == layer.digest);
            let blob = source.map_or(layer, |blob| &blob.descriptor);
            ExpectedLayer {
                blob: blob.clone(),
                diff_id: config.rootfs.diff_ids.get(number).cloned(),
                slot: self.slot(&layer.digest, LayerPosition::of(number)),
            }
        });
        FactsPlan::Make(layers.collect())
    }

    fn slot(&self, digest: &Digest, place: LayerPosition) -> Arc<Slot> {
        let mut layers = lock(&self.layers);
        let known = layers.get(digest.as_ref()).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.place == place) {
            return known;
        }
        let slot = Arc::new(Slot {
            place,
            seen: watch::Sender::default(),
        });
        layers.insert(digest.to_string(), Arc::downgrade(&slot));
        slot
    }

    /// Carries out the plan of one image, which is now in the mirror.
    async fn conclude(&self, copying: &MirrorJob<'_>, subject: Subject) -> Option<CompanionReport> {
        let image = subject.manifest.digest.clone();
        let mut report = CompanionReport {
            image: image.to_string(),
            outcome: CompanionOutcome::Failed,
            size: None,
            problem: None,
            defect: None,
        };
        match self.finish(copying, subject).await {
            Ok((outcome, size)) => (report.outcome, report.size) = (outcome, size),
            Err(error) if is_defect(&error) => report.defect = Some(error_chain(error.as_ref())),
            Err(error) => {
                let mut problem = error_chain(error.as_ref());
                if error.downcast_ref::<NoRegistry>().is_some() {
                    // An image that claims to be for Windows, but is not a base.
                    tracing::info!("{problem}");
                    problem.clear();
                }
                if is_lasting(&error) {
                    let library = &self.library;
                    library.update_cache(|it| it.store_unreadable(&image, &problem));
                }
                if problem.is_empty() {
                    return None;
                }
                report.problem = Some(problem);
            }
        }
        Some(report)
    }

    async fn finish(
        &self,
        copying: &MirrorJob<'_>,
        subject: Subject,
    ) -> Result<(CompanionOutcome, Option<u64>), BoxError> {
        let base = &subject.manifest.digest;
        let bytes = match subject.plan {
            FactsPlan::Present => return Ok((CompanionOutcome::Present, None)),
            FactsPlan::Known(bytes) => bytes,
            FactsPlan::Unreadable(reason) => {
                return Err(Problem::new("base/unreadable", reason).into());
            }
            FactsPlan::Make(layers) => {
                let found = self.layers(copying, layers).await?;
                let (version, everything) = (Some(&*subject.os_version), Extent::Everything);
                let made = self
                    .library
                    .assemble_and_store(base, version, &everything, found)
                    .await;
                made?.1
            }
        };
        self.library
            .push(copying.to, &subject.manifest, &bytes)
            .await?;
        Ok((CompanionOutcome::Made, Some(bytes.len() as u64)))
    }

    /// The contents of layers: as collected during the transfer, or else read back from the mirror.
    async fn layers(
        &self,
        copying: &MirrorJob<'_>,
        layers: Vec<ExpectedLayer>,
    ) -> Result<Vec<CollectedLayer>, LayerReadError> {
        let mut observed = Vec::with_capacity(layers.len());
        for (number, layer) in layers.into_iter().enumerate() {
            let ExpectedLayer {
                blob,
                diff_id,
                slot,
            } = layer;
            let seen = slot.last_state().await;
            if let ObservedState::Unreadable(problem) = seen {
                return Err(LayerProblem::Observed(problem).in_layer(number, &blob.digest));
            }
            // The slot ends here: with it, the contents would be copied.
            observed.push((number, blob, diff_id, slot.place, seen));
        }
        let reads = observed
            .into_iter()
            .map(|(number, blob, diff_id, place, seen)| async move {
                let found = match seen {
                    ObservedState::Whole(layer) => Ok(Arc::unwrap_or_clone(layer)),
                    _ => self.read_back(copying, &blob, place).await,
                };
                let checked = found.and_then(|found| {
                    if let Some(diff_id) = &diff_id {
                        LayerProblem::check_diff_id(found.diff_id.as_ref(), diff_id)?;
                    }
                    Ok(found)
                });
                checked.map_err(|problem| problem.in_layer(number, &blob.digest))
            });
        futures::iter(reads.collect::<Vec<_>>())
            .buffered(PARALLEL_LAYERS)
            .try_collect()
            .await
    }

    async fn read_back(
        &self,
        copying: &MirrorJob<'_>,
        blob: &Descriptor,
        place: LayerPosition,
    ) -> Result<CollectedLayer, LayerProblem> {
        // In the mirror no layer is foreign.
        let mut here = blob.clone();
        here.media_type = media_type::distributable(&blob.media_type);
        let mirror = Source::Registry(copying.to.clone());
        let library = &self.library;
        // Facts that cannot be collected are not worth the rest of the layer.
        let wanted = (&Extent::Everything, Depth::WhileReadable);
        let progress = library.progress.as_ref();
        read_layer(&library.registry, &mirror, &here, place, wanted, progress).await
    }
}

/// Returns true if no runtime can unpack the image.
fn is_defect(error: &BoxError) -> bool {
    let layer = error.downcast_ref::<LayerReadError>();
    layer.is_some_and(|it| matches!(it.source, LayerProblem::DiffId { .. }))
}

/// Returns true if the same image will fail again: bytes that match their digest are the reason.
fn is_lasting(error: &BoxError) -> bool {
    let layer = error.downcast_ref::<LayerReadError>();
    layer.is_some_and(|it| matches!(it.source, LayerProblem::Observed(_)))
        || error.downcast_ref::<NoRegistry>().is_some()
}

impl Slot {
    /// The state once the transfer is over.
    async fn last_state(&self) -> ObservedState {
        let mut seen = self.seen.subscribe();
        let over = seen.wait_for(|seen| !matches!(seen, ObservedState::Coming));
        over.await
            .map_or(ObservedState::Nothing, |seen| seen.clone())
    }
}

impl Watcher for MirrorFactsCollector {
    fn watch(&self, blob: &Descriptor) -> Option<BlobObserver> {
        let layers = lock(&self.layers);
        let slot = layers.get(blob.digest.as_ref()).and_then(Weak::upgrade)?;
        drop(layers);
        if matches!(
            *slot.seen.borrow(),
            ObservedState::Coming | ObservedState::Whole(_) | ObservedState::Unreadable(_)
        ) {
            return None;
        }
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        let (verified, is_verified) = oneshot::channel();
        slot.seen.send_replace(ObservedState::Coming);
        let digest = blob.digest.clone();
        let size = blob.size;
        tokio::task::spawn_blocking(move || {
            let (found, ended_early) = collect_observed(receiver, size, slot.place);
            let seen = if ended_early || is_verified.blocking_recv().is_err() {
                tracing::info!("layer {digest} was not read to its end during its transfer");
                ObservedState::Nothing
            } else {
                found.map_or_else(
                    |problem| ObservedState::Unreadable(Arc::new(problem)),
                    |layer| ObservedState::Whole(Arc::new(layer)),
                )
            };
            slot.seen.send_replace(seen);
        });
        Some(BlobObserver {
            bytes: sender,
            verified,
        })
    }
}

impl MirrorHook for MirrorFactsCollector {
    fn start_image<'a>(&'a self, copying: MirrorJob<'a>) -> BoxFuture<'a, CompanionTask<'a>> {
        Box::pin(async move {
            let subjects = self.subjects(&copying).await;
            CompanionTask(Box::pin(async move {
                let mut recorded = Vec::with_capacity(subjects.len());
                // Sequential, because each holds the contents of its layers.
                for subject in subjects {
                    recorded.extend(self.conclude(&copying, subject).await);
                }
                recorded
            }))
        })
    }
}

/// Collects a layer to the end of its transferred bytes; also returns true if these ended early. After
/// the first error nothing more is taken: the copy continues alone.
fn collect_observed(
    mut receiver: mpsc::Receiver<Bytes>,
    size: u64,
    place: LayerPosition,
) -> (Result<CollectedLayer, LayerProblem>, bool) {
    let mut left = size;
    let mut ended_early = false;
    let mut bytes = PieceReader::new(|| -> io::Result<Option<Bytes>> {
        if left == 0 {
            return Ok(None);
        }
        let piece = receiver.blocking_recv();
        ended_early = piece.is_none();
        let piece = piece.ok_or(io::ErrorKind::UnexpectedEof)?;
        left = left.saturating_sub(piece.len() as u64);
        Ok(Some(piece))
    });
    let found = collect_layer(&mut bytes, place, &Extent::Everything);
    let found = found.map_err(LayerProblem::from).and_then(|found| {
        // The layer's archive may end before its bytes.
        io::copy(&mut bytes, &mut io::sink())?;
        Ok(found)
    });
    drop(bytes);
    (found, ended_early)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;
    use wincimg_common::progress::Silent;
    use wincimg_oci::document::sha256;
    use wincimg_oci::remote::{RegistryClient, RegistryOptions};

    use super::*;

    #[tokio::test]
    async fn a_layer_that_cannot_be_read_is_not_read_to_its_end() {
        let registry = RegistryClient::new(RegistryOptions::default(), Arc::new(Silent)).unwrap();
        let maker =
            MirrorFactsCollector::new(BaseFactsProvider::new(registry, None, Arc::new(Silent)));
        let chunk = Bytes::from(vec![7; 64 << 10]);
        let blob = Descriptor::new(media_type::OCI_LAYER, sha256(&chunk), 1 << 40);
        let slot = maker.slot(&blob.digest, LayerPosition::of(0));
        let observer = maker.watch(&blob).unwrap();
        let sends = async {
            let mut sent: u64 = 0;
            while observer.bytes.send(chunk.clone()).await.is_ok() {
                sent += chunk.len() as u64;
                assert!(sent < 64 << 20, "all of it is read");
            }
        };
        timeout(Duration::from_secs(20), sends).await.unwrap();
        assert!(matches!(*slot.seen.borrow(), ObservedState::Coming));
        observer.verified.send(()).unwrap();
        let last = slot.last_state().await;
        assert!(matches!(last, ObservedState::Unreadable(_)));
    }
}
