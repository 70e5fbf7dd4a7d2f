//! Carrying out plans: blobs in parallel, each once, then the manifests from the bottom up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use wincimg_common::lock;
use wincimg_common::progress::Progress;

use super::error::CopyError;
use super::mount_sources::MountSources;
use super::observer::Watcher;
use super::plan::{CopyPlan, PlannedBlob};
use crate::document::{Descriptor, Digest, media_type};
use crate::remote::{BlobSource, RegistryClient, Repository};
use crate::store::{Sink, Source, StoreError};
use crate::stream::BlobHandle;

/// Blobs at hand of up to this size go to a registry sooner than it says that it has them.
const SENT_UNASKED: u64 = 64 * 1024;
/// How many questions about blobs are under way at once for one image; they are small.
const QUESTIONS: usize = 16;

/// Carries out any number of plans at once, and moves what they share only once.
pub struct Copier {
    registry: RegistryClient,
    progress: Arc<dyn Progress>,
    transfers: Semaphore,
    dry_run: bool,
    neighbours: MountSources,
    watcher: Option<Arc<dyn Watcher>>,
    /// Where each blob has been put or found, by digest. Whoever deals with a blob holds its lock,
    /// so that the next one finds it done.
    placed: Mutex<HashMap<Digest, Arc<AsyncMutex<Vec<Sink>>>>>,
}

/// Outcome for a blob, also of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum BlobAction {
    /// The target has it already.
    Present,
    /// The target's registry has it in another repository and takes it from there.
    Mount {
        /// That repository.
        from: String,
    },
    /// It is copied from the source.
    Copy,
    /// The source does not have it: it is downloaded from where its `urls` say.
    Download {
        /// The first of them.
        from: String,
    },
    /// It stays where it is: a foreign layer that nodes fetch themselves.
    Skip,
}

/// One blob of a copied image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlobReport {
    /// Its digest.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// The type that the source's manifest gives it.
    pub media_type: String,
    /// The outcome.
    #[serde(flatten)]
    pub action: BlobAction,
}

/// Report of copying one image or index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CopyReport {
    /// The digest in the source.
    pub source_digest: String,
    /// The digest in the target; another one where foreign layers became ordinary or platforms were
    /// left out.
    pub digest: String,
    /// True if the target, a registry, had published just this under the tag before.
    pub up_to_date: bool,
    /// The platforms that the index names; empty for a single image.
    pub platforms: Vec<String>,
    /// The blobs, each once.
    pub blobs: Vec<BlobReport>,
}

impl Copier {
    /// A copier with at most `jobs` blobs on their way at once.
    pub fn new(registry: RegistryClient, progress: Arc<dyn Progress>, jobs: usize) -> Self {
        Self {
            registry,
            progress,
            transfers: Semaphore::new(jobs.max(1)),
            dry_run: false,
            neighbours: MountSources::default(),
            watcher: None,
            placed: Mutex::default(),
        }
    }

    /// The same, but it only looks and says what it would do.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// The same with somebody who reads along what is copied.
    #[must_use]
    pub(crate) fn with_observer(mut self, watcher: Arc<dyn Watcher>) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// Brings an image or index to the sink and publishes it under a tag, or by digest alone.
    pub async fn copy(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
        tag: Option<&str>,
    ) -> Result<CopyReport, CopyError> {
        let up_to_date = sink.is_published(&plan.root, tag).await?;
        let blobs = if up_to_date {
            self.all_present(plan, sink).await
        } else {
            self.ensure_blobs(plan, source, sink).await?
        };
        if !up_to_date && !self.dry_run {
            for child in &plan.children {
                sink.put_document(child).await?;
            }
            sink.publish(&plan.root, tag).await?;
        }
        Ok(CopyReport {
            source_digest: plan.source_digest.to_string(),
            digest: plan.root.digest().to_string(),
            up_to_date,
            platforms: plan.platforms.iter().map(ToString::to_string).collect(),
            blobs,
        })
    }

    /// A registry that has the manifest has what it names; other images may mount it from there.
    async fn all_present(&self, plan: &CopyPlan, sink: &Sink) -> Vec<BlobReport> {
        let mut reports = Vec::with_capacity(plan.blobs.len());
        for blob in &plan.blobs {
            let action = if skipped(blob, sink) {
                BlobAction::Skip
            } else {
                let places = self.places(&blob.descriptor.digest);
                places.lock().await.push(sink.clone());
                BlobAction::Present
            };
            reports.push(report(blob, action));
        }
        reports
    }

    async fn ensure_blobs(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
    ) -> Result<Vec<BlobReport>, CopyError> {
        // The largest first: a large one that begins last would run alone at the end.
        let mut order: Vec<usize> = (0..plan.blobs.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(plan.blobs[at].descriptor.size));
        let work: Vec<_> = order
            .into_iter()
            .map(|at| async move {
                let blob = &plan.blobs[at];
                let action = self.ensure_blob(blob, source, sink).await?;
                Ok::<_, CopyError>((at, report(blob, action)))
            })
            .collect();
        let mut done: Vec<_> = stream::iter(work)
            .buffer_unordered(QUESTIONS)
            .try_collect()
            .await?;
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, report)| report).collect())
    }

    /// Sees to it that the sink has one blob, in the cheapest way there is.
    pub async fn ensure_blob(
        &self,
        blob: &PlannedBlob,
        source: &Source,
        sink: &Sink,
    ) -> Result<BlobAction, CopyError> {
        if skipped(blob, sink) {
            return Ok(BlobAction::Skip);
        }
        let descriptor = &blob.descriptor;
        let places = self.places(&descriptor.digest);
        let mut places = places.lock().await;
        if exists(descriptor, sink, &mut places).await? {
            return Ok(BlobAction::Present);
        }
        let foreign = media_type::is_foreign(&descriptor.media_type);
        let in_source = !foreign || source.has_blob(descriptor).await?;
        let own = match source {
            Source::Registry(repository) if in_source => Some(Sink::Registry(repository.clone())),
            _ => None,
        };
        let candidates = places.iter().chain(&own);
        let action = match self.mount(descriptor, sink, candidates).await? {
            Some(from) => BlobAction::Mount { from },
            None if in_source => {
                let bytes = source.blob(descriptor)?;
                self.transfer(descriptor, bytes, sink).await?;
                BlobAction::Copy
            }
            None => {
                let (bytes, from) = self.download_source(descriptor, source)?;
                self.transfer(descriptor, bytes, sink).await?;
                BlobAction::Download { from }
            }
        };
        places.push(sink.clone());
        Ok(action)
    }

    /// Sees to it that the sink has a blob whose bytes are at hand, once however many images that
    /// are on their way have it.
    pub async fn ensure_bytes(
        &self,
        descriptor: &Descriptor,
        bytes: &dyn BlobSource,
        sink: &Sink,
    ) -> Result<BlobAction, CopyError> {
        let places = self.places(&descriptor.digest);
        let mut places = places.lock().await;
        let is_there = if self.is_sent_unasked(descriptor, sink) {
            places.contains(sink)
        } else {
            exists(descriptor, sink, &mut places).await?
        };
        if is_there {
            return Ok(BlobAction::Present);
        }
        if !self.dry_run {
            let label = format!("{sink} {}", short(&descriptor.digest));
            let task = self.progress.task(&label, Some(descriptor.size));
            sink.put_blob(descriptor, bytes, task.as_ref()).await?;
            task.done("copied");
        }
        places.push(sink.clone());
        Ok(BlobAction::Copy)
    }

    /// Returns true if a blob goes to a registry without a question whether that has it.
    fn is_sent_unasked(&self, blob: &Descriptor, sink: &Sink) -> bool {
        let is_worth_it = blob.size <= SENT_UNASKED || sink.has_partial_upload(blob);
        !self.dry_run && matches!(sink, Sink::Registry(_)) && is_worth_it
    }

    /// Tries to take the blob from another repository of the sink's registry.
    async fn mount(
        &self,
        blob: &Descriptor,
        sink: &Sink,
        candidates: impl Iterator<Item = &Sink>,
    ) -> Result<Option<String>, CopyError> {
        let Sink::Registry(target) = sink else {
            return Ok(None);
        };
        for from in candidates.filter_map(|place| place.mountable_into(sink)) {
            if self.mounted(target, blob, from).await? {
                return Ok(Some(from.to_owned()));
            }
        }
        match self.neighbours.find_mount_source(target, blob).await {
            Some(from) if self.mounted(target, blob, &from).await? => Ok(Some(from)),
            _ => Ok(None),
        }
    }

    async fn mounted(
        &self,
        target: &Repository,
        blob: &Descriptor,
        from: &str,
    ) -> Result<bool, CopyError> {
        if self.dry_run {
            return Ok(true);
        }
        let mounted = target.mount_blob(&blob.digest, from).await;
        Ok(mounted.map_err(StoreError::from)?)
    }

    async fn transfer(
        &self,
        blob: &Descriptor,
        bytes: BlobHandle,
        sink: &Sink,
    ) -> Result<(), CopyError> {
        if self.dry_run {
            return Ok(());
        }
        // The semaphore is never closed; without a permit there would only be more at once.
        let _permit = self.transfers.acquire().await.ok();
        let label = format!("{sink} {}", short(&blob.digest));
        let task = self.progress.task(&label, Some(blob.size));
        let receiver = self.watcher.as_ref().and_then(|it| it.watch(blob));
        let bytes = match receiver {
            Some(receiver) => bytes.watched_by(receiver),
            None => bytes,
        };
        sink.copy_blob(blob, &bytes, task.as_ref()).await?;
        task.done("copied");
        Ok(())
    }

    /// A foreign layer's bytes and the first place that they are looked for.
    fn download_source(
        &self,
        blob: &Descriptor,
        source: &Source,
    ) -> Result<(BlobHandle, String), CopyError> {
        let Some(first) = blob.urls.first() else {
            return Err(CopyError::NowhereToBeFound {
                place: source.to_string(),
                digest: blob.digest.clone(),
            });
        };
        let bytes = self.registry.url_source(&blob.urls, blob);
        Ok((bytes.into(), first.clone()))
    }

    fn places(&self, digest: &Digest) -> Arc<AsyncMutex<Vec<Sink>>> {
        let mut placed = lock(&self.placed);
        placed.entry(digest.clone()).or_default().clone()
    }
}

/// Returns true if the sink has the blob: known from before, or asked now and remembered.
async fn exists(
    blob: &Descriptor,
    sink: &Sink,
    places: &mut Vec<Sink>,
) -> Result<bool, StoreError> {
    if places.contains(sink) {
        return Ok(true);
    }
    let there = sink.has_blob(blob).await?;
    if there {
        places.push(sink.clone());
    }
    Ok(there)
}

fn skipped(blob: &PlannedBlob, sink: &Sink) -> bool {
    blob.optional_in_registries && matches!(sink, Sink::Registry(_))
}

fn report(blob: &PlannedBlob, action: BlobAction) -> BlobReport {
    BlobReport {
        digest: blob.descriptor.digest.to_string(),
        size: blob.descriptor.size,
        media_type: blob.descriptor.media_type.clone(),
        action,
    }
}

/// The part of a digest that people recognise.
fn short(digest: &Digest) -> &str {
    digest.digest().get(..12).unwrap_or(digest.digest())
}
