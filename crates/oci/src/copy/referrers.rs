//! Copies artifacts attached to images: SBOMs, provenance, signatures.
//!
//! Tools attach them in two ways: as artifacts whose manifests name the image, and, as cosign does,
//! under tags derived from its digest. Both refer to exact bytes: for an image that changed during
//! the copy, because foreign layers were made ordinary or platforms were omitted, they would be
//! wrong and are not copied. The same applies to buildx's attestations in an index, which
//! [`CopyPlan`] leaves out.

use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use wincimg_common::diagnose::error_chain;

use super::plan::{CopyOptions, CopyPlan};
use super::run::Copier;
use crate::document::{Artifact, Descriptor, Digest, Document};
use crate::remote::{PARALLEL, cosign_tags};
use crate::store::{Sink, Source, StoreError};

/// The signature of an image's SBOM is two references away from the image. A registry could make up
/// any number of them.
const DEPTH: usize = 6;
const IN_ARCHIVE: &str = "a docker-archive cannot contain it";
const IN_TARGET: &str =
    "the target has another one, with content that would be lost: add --replace to replace it";
const TOO_DEEP: &str = "it is more than 6 documents away from the image";

/// An artifact attached to an image, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReferrerReport {
    /// Digest of its subject.
    pub about: String,
    /// Its type, or the suffix of its tag.
    pub kind: String,
    /// Its digest, where it has been read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Its outcome.
    pub outcome: ReferrerOutcome,
    /// The reason for failure, or for leaving it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Outcome for an attached artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferrerOutcome {
    /// The target already had it.
    Present,
    /// It was copied, or would be.
    Copied,
    /// It was not copied because the image changed, or for the stated problem.
    Left,
    /// It could not be copied.
    Failed,
    /// The source could not list its artifacts.
    Unknown,
}

/// An artifact that the source lists.
enum ListedReferrer {
    Present,
    Found(Box<Artifact>),
    /// The source lacks it.
    Missing,
    /// It is attached to another manifest.
    Other,
}

/// Source and target of the copy.
struct ReferrerCopier<'a> {
    copier: &'a Copier,
    source: &'a Source,
    sink: &'a Sink,
    /// The sink, to read what it has; an archive cannot have artifacts.
    target: Option<Source>,
    /// Type of artifacts to leave out.
    except: Option<&'a str>,
}

impl Copier {
    /// Copies the artifacts attached to the documents of a copied plan, except those of a type. For an
    /// archive, which cannot have them, they are reported.
    pub async fn copy_referrers(
        &self,
        plan: &CopyPlan,
        source: &Source,
        sink: &Sink,
        except: Option<&str>,
    ) -> Vec<ReferrerReport> {
        let copier = ReferrerCopier {
            copier: self,
            source,
            sink,
            target: sink.as_source(),
            except,
        };
        let left = plan.left.iter();
        let mut reports: Vec<_> = left.map(ReferrerReport::of_attestation).collect();
        let subjects = plan.children.iter().zip(&plan.sources);
        let subjects = subjects.map(|(published, source)| (Some(published.digest()), source));
        let is_left = plan.joins && matches!(plan.root, Document::Index(_));
        let root = (!is_left).then(|| plan.root.digest());
        let in_archive = copier.target.is_none().then_some(IN_ARCHIVE);
        for (published, source) in subjects.chain([(root, &plan.source_digest)]) {
            if published == Some(source) && in_archive.is_none() {
                copier.copy_referrers_of(source, 1, &mut reports).await;
            } else {
                copier
                    .report_not_copied(source, in_archive, &mut reports)
                    .await;
            }
        }
        if in_archive.is_some() {
            // A source that cannot list them is not a failure here.
            reports.retain(|it| it.outcome == ReferrerOutcome::Left);
        }
        reports
    }

    /// Copies an artifact, and attaches it to its subject in the target.
    async fn attach(
        &self,
        artifact: &Artifact,
        source: &Source,
        sink: &Sink,
    ) -> Result<(), StoreError> {
        let options = CopyOptions::default();
        let plan = CopyPlan::of(source, artifact.document().clone(), &options).await?;
        self.ensure_blobs(&plan, source, sink).await?;
        for child in &plan.children {
            sink.put_document(child).await?;
        }
        sink.attach(artifact).await
    }
}

impl ReferrerCopier<'_> {
    async fn report_not_copied(
        &self,
        about: &Digest,
        problem: Option<&str>,
        reports: &mut Vec<ReferrerReport>,
    ) {
        let Some(entries) = self.listed(about, reports).await else {
            return;
        };
        let left = |kind, digest: &Digest| ReferrerReport {
            problem: problem.map(str::to_owned),
            ..ReferrerReport::new(about.as_ref(), kind, Some(digest), ReferrerOutcome::Left)
        };
        let mut missing = Vec::new();
        for batch in entries.chunks(PARALLEL) {
            for (entry, read) in self.read(batch, about, &[]).await {
                match read {
                    Ok(ListedReferrer::Missing) => missing.push(entry.digest.clone()),
                    Ok(ListedReferrer::Other) => {}
                    // Buildx's attestations may be artifacts, too.
                    _ if is_reported(&entry.digest, reports) => {}
                    _ => reports.push(left(kind_of(entry), &entry.digest)),
                }
            }
        }
        self.source.note_missing(&missing, about);
        for (suffix, tag) in cosign_tags(about) {
            if let Ok(Some(found)) = self.source.head(&tag).await {
                reports.push(left(suffix.to_owned(), &found));
            }
        }
    }

    fn copy_referrers_of<'b>(
        &'b self,
        about: &'b Digest,
        depth: usize,
        reports: &'b mut Vec<ReferrerReport>,
    ) -> BoxFuture<'b, ()> {
        Box::pin(async move {
            if depth > DEPTH {
                self.report_not_copied(about, Some(TOO_DEEP), reports).await;
                return;
            }
            let Some(entries) = self.listed(about, reports).await else {
                return;
            };
            // If the target cannot list its artifacts, all are copied.
            let there = match &self.target {
                Some(target) if !entries.is_empty() => {
                    target.referrers(about).await.unwrap_or_default()
                }
                _ => Vec::new(),
            };
            let mut missing = Vec::new();
            for batch in entries.chunks(PARALLEL) {
                for (entry, read) in self.read(batch, about, &there).await {
                    let done = match read {
                        Ok(ListedReferrer::Present) => Ok(ReferrerOutcome::Present),
                        Ok(ListedReferrer::Found(artifact)) => self.copy_referrer(&artifact).await,
                        Ok(ListedReferrer::Missing) => {
                            missing.push(entry.digest.clone());
                            continue;
                        }
                        Ok(ListedReferrer::Other) => continue,
                        Err(error) => Err(error),
                    };
                    let reported = report(about, kind_of(entry), Some(&entry.digest), done);
                    let is_copied = reported.outcome != ReferrerOutcome::Failed;
                    reports.push(reported);
                    if is_copied {
                        self.copy_referrers_of(&entry.digest, depth + 1, reports)
                            .await;
                    }
                }
            }
            self.source.note_missing(&missing, about);
            self.copy_tags(about, depth, reports).await;
        })
    }

    /// Copies what cosign attached under tags.
    async fn copy_tags(&self, about: &Digest, depth: usize, reports: &mut Vec<ReferrerReport>) {
        for (suffix, tag) in cosign_tags(about) {
            let (digest, done) = match self.copy_tag(&tag).await {
                Ok(Some((digest, outcome))) => (Some(digest), Ok(outcome)),
                Ok(None) => continue,
                Err(error) => (None, Err(error)),
            };
            // Anybody may set such a tag, even to the manifest that it is about.
            let is_new = digest.as_ref().is_some_and(|it| !is_reported(it, reports));
            let mut reported = report(about, suffix.to_owned(), digest.as_ref(), done);
            let is_left = reported.outcome == ReferrerOutcome::Left;
            if is_left {
                reported.problem = Some(IN_TARGET.to_owned());
            }
            reports.push(reported);
            if let Some(digest) = digest.filter(|_| is_new && !is_left) {
                self.copy_referrers_of(&digest, depth + 1, reports).await;
            }
        }
    }

    /// Returns the artifacts that the source lists; reports a failure and returns nothing.
    async fn listed(
        &self,
        about: &Digest,
        reports: &mut Vec<ReferrerReport>,
    ) -> Option<Vec<Descriptor>> {
        match self.source.referrers(about).await {
            Ok(mut entries) => {
                let except = self.except;
                entries.retain(|entry| except.is_none() || entry.artifact_type() != except);
                Some(entries)
            }
            Err(error) => {
                let unknown = ReferrerOutcome::Unknown;
                reports.push(ReferrerReport {
                    problem: Some(error_chain(&error)),
                    ..ReferrerReport::new(about.as_ref(), String::new(), None, unknown)
                });
                None
            }
        }
    }

    /// Reads entries of a list in parallel: a registry may list thousands that it lacks.
    async fn read<'e>(
        &self,
        batch: &'e [Descriptor],
        about: &Digest,
        there: &[Descriptor],
    ) -> Vec<(&'e Descriptor, Result<ListedReferrer, StoreError>)> {
        let reads = batch
            .iter()
            .map(|entry| self.read_entry(entry, about, there));
        batch.iter().zip(join_all(reads).await).collect()
    }

    /// Reads an entry, unless the target lists its artifact and has it.
    async fn read_entry(
        &self,
        entry: &Descriptor,
        about: &Digest,
        there: &[Descriptor],
    ) -> Result<ListedReferrer, StoreError> {
        let is_listed = there.iter().any(|it| it.digest == entry.digest);
        if is_listed && self.find_in_target(entry.digest.as_ref()).await?.is_some() {
            return Ok(ListedReferrer::Present);
        }
        match self.source.artifact(entry, about).await {
            Ok(Some(artifact)) => Ok(ListedReferrer::Found(Box::new(artifact))),
            Ok(None) => Ok(ListedReferrer::Other),
            Err(StoreError::Registry(error)) if error.is_not_found() => Ok(ListedReferrer::Missing),
            Err(error) => Err(error),
        }
    }

    async fn copy_referrer(&self, artifact: &Artifact) -> Result<ReferrerOutcome, StoreError> {
        if !self.copier.dry_run {
            let copying = self.copier.attach(artifact, self.source, self.sink);
            copying.await?;
        }
        Ok(ReferrerOutcome::Copied)
    }

    async fn find_in_target(&self, which: &str) -> Result<Option<Digest>, StoreError> {
        match &self.target {
            Some(target) => target.head(which).await,
            None => Ok(None),
        }
    }

    /// Copies the document under a tag, if the tag exists. Content that only the target has, such
    /// as signatures of the copy, is kept.
    async fn copy_tag(&self, tag: &str) -> Result<Option<(Digest, ReferrerOutcome)>, StoreError> {
        let (source, sink) = (self.source, self.sink);
        let Some(digest) = source.head(tag).await? else {
            return Ok(None);
        };
        let standing = self.find_in_target(tag).await?;
        if standing.as_ref() == Some(&digest) {
            return Ok(Some((digest, ReferrerOutcome::Present)));
        }
        let options = CopyOptions::default();
        let plan = CopyPlan::new(source, Some(digest.as_ref()), &options).await?;
        if let Some(standing) = standing.filter(|_| !self.copier.replace)
            && !self.is_older(&standing, &plan.root).await?
        {
            return Ok(Some((digest, ReferrerOutcome::Left)));
        }
        self.copier.copy(&plan, source, sink, Some(tag)).await?;
        Ok(Some((digest, ReferrerOutcome::Copied)))
    }

    /// Returns true if a document of the target has no other layers than a new one. Cosign adds a
    /// layer for each signature, whose annotations alone may tell it from others.
    async fn is_older(&self, standing: &Digest, new: &Document) -> Result<bool, StoreError> {
        let Some(target) = &self.target else {
            return Ok(true);
        };
        let standing = target.resolve(Some(standing.as_ref())).await?;
        let (Document::Manifest(standing), Document::Manifest(new)) = (&standing, new) else {
            return Ok(false);
        };
        let mut layers = standing.layers.iter();
        Ok(layers.all(|layer| new.layers.contains(layer)))
    }
}

impl ReferrerReport {
    fn new(about: &str, kind: String, digest: Option<&Digest>, outcome: ReferrerOutcome) -> Self {
        Self {
            about: about.to_owned(),
            kind,
            digest: digest.map(ToString::to_string),
            outcome,
            problem: None,
        }
    }

    /// An attestation that an index lost, because its image changed.
    fn of_attestation(entry: &Descriptor) -> Self {
        let about = entry.attested().unwrap_or_default();
        let kind = "attestation".to_owned();
        Self::new(about, kind, Some(&entry.digest), ReferrerOutcome::Left)
    }
}

fn report(
    about: &Digest,
    kind: String,
    digest: Option<&Digest>,
    done: Result<ReferrerOutcome, StoreError>,
) -> ReferrerReport {
    let (outcome, problem) = match done {
        Ok(outcome) => (outcome, None),
        Err(error) => (ReferrerOutcome::Failed, Some(error_chain(&error))),
    };
    ReferrerReport {
        problem,
        ..ReferrerReport::new(about.as_ref(), kind, digest, outcome)
    }
}

fn is_reported(digest: &Digest, reports: &[ReferrerReport]) -> bool {
    let digest: &str = digest.as_ref();
    let mut reported = reports.iter().filter_map(|it| it.digest.as_deref());
    reported.any(|reported| reported == digest)
}

fn kind_of(entry: &Descriptor) -> String {
    entry
        .artifact_type()
        .unwrap_or(&entry.media_type)
        .to_owned()
}
