//! Executes copy plans: blobs in parallel, each once, then the manifests, children first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use wincimg_common::diagnose::Problem;
use wincimg_common::lock;
use wincimg_common::progress::Progress;

use super::mount_sources::MountSources;
use super::plan::{CopyPlan, PlannedBlob};
use crate::document::{Descriptor, Digest, Document, media_type};
use crate::remote::{BlobObserver, BlobSource, RegistryClient, Repository};
use crate::store::{Sink, Source, StoreError};
use crate::stream::BlobHandle;

/// Local blobs up to this size, as the layer of a pause image is, are uploaded without checking first
/// whether the registry has them.
const MAX_UNCHECKED_SIZE: u64 = 96 * 1024;
/// Existence checks in flight for one image.
const PARALLEL_QUERIES: usize = 16;
/// Maximum number of attempts to publish an image if its registry loses blobs.
const PUBLICATIONS: u32 = 5;
/// Delay before blobs are checked again, multiplied by the attempts so far.
const PAUSE: Duration = Duration::from_millis(100);

/// An observer of copied blobs, so that they need not be downloaded again.
pub trait Watcher: Send + Sync {
    /// Returns the observer of a blob, if there is one for it.
    fn watch(&self, blob: &Descriptor) -> Option<BlobObserver>;
}

/// Executes copy plans, also concurrently, and transfers shared blobs only once.
pub struct Copier {
    registry: RegistryClient,
    progress: Arc<dyn Progress>,
    transfers: Semaphore,
    /// Only checks, and reports what a run would do.
    pub(crate) dry_run: bool,
    /// Replaces tags of the target whatever others published under them.
    pub replace: bool,
    /// Digests of tags of the target when they were checked, by name: an image may wait for others
    /// before it is copied.
    pub(crate) checked: HashMap<String, Option<Digest>>,
    neighbours: MountSources,
    /// An observer of the copied bytes.
    pub(crate) watcher: Option<Arc<dyn Watcher>>,
    /// The sinks known to have each blob, by digest. The lock is held while a blob is handled, so
    /// that concurrent copies wait for the result.
    placed: Mutex<HashMap<Digest, Arc<AsyncMutex<Vec<Sink>>>>>,
}

/// Outcome for a blob, also of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum BlobAction {
    /// The target already has it.
    Present,
    /// The target's registry mounts it from another of its repositories.
    Mount {
        /// That repository.
        from: String,
    },
    /// It is copied from the source.
    Copy,
    /// The source lacks it: it is downloaded from its `urls`.
    Download {
        /// The first URL.
        from: String,
    },
    /// A foreign layer that the source lacks, too: nodes download it themselves.
    Skip,
}

/// One blob of a copied image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlobReport {
    /// Its digest.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type in the source's manifest.
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
    /// The digest in the target; differs if foreign layers became ordinary, layers lost their URLs, or
    /// platforms were omitted.
    pub digest: String,
    /// True if the target, a registry, already had the same content under the tag.
    pub up_to_date: bool,
    /// The platforms stated in the index; empty for a single image.
    pub platforms: Vec<String>,
    /// The blobs, each once.
    pub blobs: Vec<BlobReport>,
}

impl Copier {
    /// Creates a copier with at most `jobs` concurrent blob transfers.
    pub fn new(registry: RegistryClient, progress: Arc<dyn Progress>, jobs: usize) -> Self {
        Self {
            registry,
            progress,
            transfers: Semaphore::new(jobs.max(1)),
            dry_run: false,
            replace: false,
            checked: HashMap::new(),
            neighbours: MountSources::default(),
            watcher: None,
            placed: Mutex::default(),
        }
    }

    /// Copies an image or index to the sink and publishes it under a tag, or by digest alone. Images
    /// that join another index get no tag.
    pub async fn copy(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
        tag: Option<&str>,
    ) -> Result<CopyReport, StoreError> {
        let standing = match tag {
            Some(tag) => sink.published(tag).await?,
            None => None,
        };
        let is_published = match tag {
            Some(_) => standing.as_ref() == Some(plan.root.digest()),
            None => is_published(plan, sink).await?,
        };
        let blobs = if is_published {
            self.all_present(plan, source, sink).await?
        } else {
            let checked = tag.and_then(|tag| self.checked.get(&format!("{sink}:{tag}")));
            let before = checked.unwrap_or(&standing).as_ref();
            let tag = tag.map(|name| TargetTag { name, before });
            self.place(plan, source, sink, tag).await?
        };
        let is_there =
            |blob: &BlobReport| matches!(blob.action, BlobAction::Present | BlobAction::Skip);
        Ok(CopyReport {
            source_digest: plan.source_digest.to_string(),
            digest: plan.root.digest().to_string(),
            up_to_date: is_published && blobs.iter().all(is_there),
            platforms: plan.platforms.iter().map(ToString::to_string).collect(),
            blobs,
        })
    }

    /// Copies the blobs, then publishes the documents.
    async fn place(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
        tag: Option<TargetTag<'_>>,
    ) -> Result<Vec<BlobReport>, StoreError> {
        let blobs = self.ensure_blobs(plan, source, sink).await?;
        if self.dry_run {
            return Ok(blobs);
        }
        let parts: Vec<&Descriptor> = plan.blobs.iter().map(|blob| &blob.descriptor).collect();
        let mut attempts = 0;
        while let Err(error) = self.publish(plan, sink, tag).await {
            attempts += 1;
            let forgotten = self.forget_lost(error, attempts, &parts, sink).await;
            forgotten.map_err(|error| match error {
                StoreError::Registry(error) if plan.has_urls() && error.is_blob_missing() => {
                    StoreError::RefusedUrls(error)
                }
                error => error,
            })?;
            self.ensure_blobs(plan, source, sink).await?;
        }
        Ok(blobs)
    }

    /// Publishes the documents of a plan, children first.
    async fn publish(
        &self,
        plan: &CopyPlan,
        sink: &Sink,
        tag: Option<TargetTag<'_>>,
    ) -> Result<(), StoreError> {
        for child in &plan.children {
            sink.put_document(child).await?;
        }
        match &plan.root {
            Document::Index(_) if plan.joins => Ok(()),
            image if plan.joins => sink.put_document(image).await,
            root => {
                if let Some(tag) = tag.filter(|_| !self.replace) {
                    tag.check_unchanged(sink, root.digest()).await?;
                }
                sink.publish(root, tag.map(|tag| tag.name)).await
            }
        }
    }

    /// Forgets that the sink has an image's blobs, for another attempt to publish it, if the last
    /// one failed because of a missing blob: a registry may lose one that another client pushes
    /// too. Returns any other error, and that of the last attempt.
    pub async fn forget_lost(
        &self,
        error: StoreError,
        attempts: u32,
        blobs: &[&Descriptor],
        sink: &Sink,
    ) -> Result<(), StoreError> {
        if !error.is_part_missing() || attempts >= PUBLICATIONS {
            return Err(error);
        }
        for blob in blobs {
            let places = self.places(&blob.digest);
            places.lock().await.retain(|place| place != sink);
        }
        tokio::time::sleep(PAUSE * attempts).await;
        Ok(())
    }

    /// Records that the registry has all content of a published manifest; other images may mount
    /// it. Foreign layers may be missing, as after a push of Docker's.
    async fn all_present(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
    ) -> Result<Vec<BlobReport>, StoreError> {
        let mut reports = Vec::with_capacity(plan.blobs.len());
        for blob in &plan.blobs {
            let action = if is_optional(blob, sink) {
                Box::pin(self.ensure_blob(blob, source, sink)).await?
            } else {
                let places = self.places(&blob.descriptor.digest);
                places.lock().await.push(sink.clone());
                BlobAction::Present
            };
            reports.push(report(blob, action));
        }
        Ok(reports)
    }

    /// Ensures that the sink has the blobs of a plan.
    pub(super) async fn ensure_blobs(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
    ) -> Result<Vec<BlobReport>, StoreError> {
        // The largest first: started last, it would run alone at the end.
        let mut order: Vec<usize> = (0..plan.blobs.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(plan.blobs[at].descriptor.size));
        let work: Vec<_> = order
            .into_iter()
            .map(|at| async move {
                let blob = &plan.blobs[at];
                let action = self.ensure_blob(blob, source, sink).await?;
                Ok::<_, StoreError>((at, report(blob, action)))
            })
            .collect();
        let mut done: Vec<_> = stream::iter(work)
            .buffer_unordered(PARALLEL_QUERIES)
            .try_collect()
            .await?;
        done.sort_by_key(|(at, _)| *at);
        Ok(done.into_iter().map(|(_, report)| report).collect())
    }

    /// Ensures that the sink has a blob, by the cheapest means.
    pub async fn ensure_blob(
        &self,
        blob: &PlannedBlob,
        source: &Source,
        sink: &Sink,
    ) -> Result<BlobAction, StoreError> {
        let descriptor = &blob.descriptor;
        let places = self.places(&descriptor.digest);
        let mut places = places.lock().await;
        if exists(descriptor, sink, &mut places).await? {
            return Ok(BlobAction::Present);
        }
        let foreign = media_type::is_foreign(&descriptor.media_type);
        let in_source = !foreign || source.has_blob(descriptor).await?;
        if !in_source && is_optional(blob, sink) {
            return Ok(BlobAction::Skip);
        }
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

    /// Ensures that the sink has a blob whose bytes are local, with one upload for all images that
    /// share it.
    pub async fn ensure_bytes(
        &self,
        descriptor: &Descriptor,
        bytes: &dyn BlobSource,
        sink: &Sink,
    ) -> Result<BlobAction, StoreError> {
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
            task.done(match sink {
                Sink::Registry(_) => "pushed",
                Sink::Layout(_) | Sink::Archive(_) => "written",
            });
        }
        places.push(sink.clone());
        Ok(BlobAction::Copy)
    }

    /// Returns true if a blob is uploaded without checking first whether the registry has it.
    fn is_sent_unasked(&self, blob: &Descriptor, sink: &Sink) -> bool {
        let skips_check = |to: &Repository| {
            blob.size <= MAX_UNCHECKED_SIZE || to.has_partial_upload(&blob.digest)
        };
        !self.dry_run && matches!(sink, Sink::Registry(to) if skips_check(to))
    }

    /// Tries to mount the blob from another repository of the sink's registry.
    async fn mount(
        &self,
        blob: &Descriptor,
        sink: &Sink,
        candidates: impl Iterator<Item = &Sink>,
    ) -> Result<Option<String>, StoreError> {
        let Sink::Registry(target) = sink else {
            return Ok(None);
        };
        for place in candidates {
            if let Sink::Registry(from) = place
                && from.host() == target.host()
                && from.name() != target.name()
                && self.mounted(target, blob, from.name()).await?
            {
                return Ok(Some(from.name().to_owned()));
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
    ) -> Result<bool, StoreError> {
        if self.dry_run {
            return Ok(true);
        }
        Ok(target.mount_blob(&blob.digest, from).await?)
    }

    async fn transfer(
        &self,
        blob: &Descriptor,
        bytes: BlobHandle,
        sink: &Sink,
    ) -> Result<(), StoreError> {
        if self.dry_run {
            return Ok(());
        }
        // The semaphore is never closed; without a permit, only the limit would be exceeded.
        let _permit = self.transfers.acquire().await.ok();
        let label = format!("{sink} {}", short(&blob.digest));
        let task = self.progress.task(&label, Some(blob.size));
        let observer = self.watcher.as_ref().and_then(|it| it.watch(blob));
        let bytes = match observer {
            Some(observer) => bytes.observed_by(observer),
            None => bytes,
        };
        sink.copy_blob(blob, &bytes, task.as_ref()).await?;
        task.done("copied");
        Ok(())
    }

    /// Returns a foreign layer's source and its first URL.
    fn download_source(
        &self,
        blob: &Descriptor,
        source: &Source,
    ) -> Result<(BlobHandle, String), StoreError> {
        let Some(first) = blob.urls.first() else {
            let problem = format!(
                "{source} does not have the foreign layer {}, and the manifest has no URL for it",
                blob.digest
            );
            return Err(Problem::new("image/document", problem).into());
        };
        let bytes = self.registry.url_source(&blob.urls, blob);
        Ok((BlobHandle::Remote(Box::new(bytes)), first.clone()))
    }

    fn places(&self, digest: &Digest) -> Arc<AsyncMutex<Vec<Sink>>> {
        let mut placed = lock(&self.placed);
        placed.entry(digest.clone()).or_default().clone()
    }
}

/// A tag to publish, with the digest that it had before the copy.
#[derive(Clone, Copy)]
struct TargetTag<'a> {
    name: &'a str,
    before: Option<&'a Digest>,
}

impl TargetTag<'_> {
    /// Fails if others published the tag since, which the copy would remove. A registry cannot be
    /// locked, so they still can until the next request.
    async fn check_unchanged(&self, sink: &Sink, new: &Digest) -> Result<(), StoreError> {
        let standing = sink.published(self.name).await?;
        let known = [self.before, Some(new), None];
        if known.contains(&standing.as_ref()) {
            return Ok(());
        }
        let problem = format!("{sink}:{} was published by others meanwhile", self.name);
        Err(Problem::new("tag/contended", problem)
            .hint("run the same command again")
            .into())
    }
}

/// Returns true if the sink already has what a copy without a tag would publish.
async fn is_published(plan: &CopyPlan, sink: &Sink) -> Result<bool, StoreError> {
    if !plan.joins || matches!(plan.root, Document::Manifest(_)) {
        return sink.is_published(&plan.root).await;
    }
    for child in &plan.children {
        if !sink.is_published(child).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if the sink has the blob; a positive answer is remembered.
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

fn is_optional(blob: &PlannedBlob, sink: &Sink) -> bool {
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

fn short(digest: &Digest) -> &str {
    digest.digest().get(..12).unwrap_or(digest.digest())
}
