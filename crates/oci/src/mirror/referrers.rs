//! Copies artifacts attached to images: SBOMs, provenance, signatures.
//!
//! Tools attach them in two ways: as artifacts whose manifests name the image, and, as cosign does,
//! under tags derived from its digest. Both refer to exact bytes: for an image that changed during
//! the copy, because foreign layers were made ordinary or platforms were omitted, they would be
//! wrong and are not copied.

use futures_util::future::BoxFuture;
use serde::Serialize;
use wincimg_common::diagnose::error_chain;

use crate::copy::{Copier, CopyOptions, CopyPlan};
use crate::document::{Descriptor, Digest};
use crate::remote::{Repository, tag_of};
use crate::store::{Sink, Source, StoreError};

/// Tag suffixes of cosign: signatures, attestations, SBOMs.
const ENDINGS: [&str; 3] = ["sig", "att", "sbom"];
/// Facts of `wincimg image base index`, which [`super::MirrorHook`] handles.
const FACTS: &str = "application/vnd.wincimg.base.v1";
/// The signature of an image's SBOM is two references away from the image.
const DEPTH: usize = 3;
/// Maximum number of artifacts attached to one image.
const MOST: usize = 200;

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
    /// The reason for failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Outcome for an attached artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferrerOutcome {
    /// The mirror already had it.
    Present,
    /// It was copied, or would be.
    Copied,
    /// It was not copied because the image changed.
    Left,
    /// It could not be copied.
    Failed,
    /// The source could not list its artifacts.
    Unknown,
}

/// Source and target of the copy.
pub(super) struct ReferrerCopier<'a> {
    pub from: &'a Repository,
    pub to: &'a Repository,
    pub copier: &'a Copier,
}

impl ReferrerCopier<'_> {
    /// Copies the artifacts attached to the documents of a plan.
    pub(super) async fn copy_referrers(&self, plan: &CopyPlan) -> Vec<ReferrerReport> {
        let mut carried = Vec::new();
        let subjects = plan.children.iter().zip(&plan.sources);
        let subjects = subjects.map(|(published, source)| (published.digest(), source));
        for (published, source) in subjects.chain([(plan.root.digest(), &plan.source_digest)]) {
            if published == source {
                self.copy_referrers_of(source, 1, &mut carried).await;
            } else {
                self.report_not_copied(source, &mut carried).await;
            }
        }
        carried
    }

    /// Reports artifacts that are not copied.
    async fn report_not_copied(&self, about: &Digest, carried: &mut Vec<ReferrerReport>) {
        let Some(entries) = self.listed(about, carried).await else {
            return;
        };
        let entries = entries.into_iter();
        let mut left: Vec<_> = entries
            .map(|entry| (kind_of(&entry), entry.digest))
            .collect();
        for ending in ENDINGS {
            let found = self.from.head_manifest(&tag_with(about, ending)).await;
            if let Ok(Some(found)) = found {
                left.push((ending.to_owned(), found.digest));
            }
        }
        carried.extend(left.into_iter().filter_map(|(kind, digest)| {
            report(about, kind, Some(&digest), Ok(Some(ReferrerOutcome::Left)))
        }));
    }

    fn copy_referrers_of<'b>(
        &'b self,
        about: &'b Digest,
        depth: usize,
        carried: &'b mut Vec<ReferrerReport>,
    ) -> BoxFuture<'b, ()> {
        Box::pin(async move {
            let Some(entries) = self.listed(about, carried).await else {
                return;
            };
            // If the mirror cannot list its artifacts, all are copied.
            let there = if entries.is_empty() {
                Vec::new()
            } else {
                self.to.referrers(about, None).await.unwrap_or_default()
            };
            for entry in &entries {
                let is_there = there.iter().any(|it| it.digest == entry.digest);
                let done = if is_there {
                    Ok(Some(ReferrerOutcome::Present))
                } else {
                    self.copy_referrer(entry, about).await
                };
                let Some(reported) = report(about, kind_of(entry), Some(&entry.digest), done)
                else {
                    continue;
                };
                let goes_on = reported.outcome != ReferrerOutcome::Failed && depth < DEPTH;
                carried.push(reported);
                if goes_on {
                    self.copy_referrers_of(&entry.digest, depth + 1, carried)
                        .await;
                }
            }
            // Such tags exist only for images.
            if depth == 1 {
                for ending in ENDINGS {
                    let done = self.copy_tag(&tag_with(about, ending)).await;
                    let (digest, done) = match done {
                        Ok(Some((digest, outcome))) => (Some(digest), Ok(Some(outcome))),
                        Ok(None) => continue,
                        Err(error) => (None, Err(error)),
                    };
                    carried.extend(report(about, ending.to_owned(), digest.as_ref(), done));
                }
            }
        })
    }

    /// Returns the artifacts that the source lists; reports a failure and returns nothing.
    async fn listed(
        &self,
        about: &Digest,
        carried: &mut Vec<ReferrerReport>,
    ) -> Option<Vec<Descriptor>> {
        match self.from.referrers(about, None).await {
            Ok(mut entries) => {
                entries.retain(|entry| entry.artifact_type() != Some(FACTS));
                entries.truncate(MOST);
                Some(entries)
            }
            Err(error) => {
                carried.push(ReferrerReport {
                    about: about.to_string(),
                    kind: String::new(),
                    digest: None,
                    outcome: ReferrerOutcome::Unknown,
                    problem: Some(error_chain(&error)),
                });
                None
            }
        }
    }

    async fn copy_referrer(
        &self,
        entry: &Descriptor,
        about: &Digest,
    ) -> Result<Option<ReferrerOutcome>, StoreError> {
        // A listed artifact with another subject is attached to another manifest.
        let Some(artifact) = self.from.artifact(entry, about, None).await? else {
            return Ok(None);
        };
        if !self.copier.dry_run {
            let (source, sink) = self.stores();
            self.copier.attach(&artifact, &source, &sink).await?;
        }
        Ok(Some(ReferrerOutcome::Copied))
    }

    fn stores(&self) -> (Source, Sink) {
        (
            Source::Registry(self.from.clone()),
            Sink::Registry(self.to.clone()),
        )
    }

    /// Copies the manifest under a tag, if the tag exists.
    async fn copy_tag(&self, tag: &str) -> Result<Option<(Digest, ReferrerOutcome)>, StoreError> {
        let Some(found) = self.from.head_manifest(tag).await? else {
            return Ok(None);
        };
        let digest = found.digest.clone();
        let there = self.to.head_manifest(tag).await?;
        if there.is_some_and(|there| there.digest == digest) {
            return Ok(Some((digest, ReferrerOutcome::Present)));
        }
        let (source, sink) = self.stores();
        let options = CopyOptions::default();
        let plan = CopyPlan::new(&source, Some(digest.as_ref()), &options).await?;
        self.copier.copy(&plan, &source, &sink, Some(tag)).await?;
        Ok(Some((digest, ReferrerOutcome::Copied)))
    }
}

fn report(
    about: &Digest,
    kind: String,
    digest: Option<&Digest>,
    done: Result<Option<ReferrerOutcome>, StoreError>,
) -> Option<ReferrerReport> {
    let (outcome, problem) = match done {
        Ok(outcome) => (outcome?, None),
        Err(error) => (ReferrerOutcome::Failed, Some(error_chain(&error))),
    };
    Some(ReferrerReport {
        about: about.to_string(),
        kind,
        digest: digest.map(ToString::to_string),
        outcome,
        problem,
    })
}

fn kind_of(entry: &Descriptor) -> String {
    entry
        .artifact_type()
        .unwrap_or(&entry.media_type)
        .to_owned()
}

/// Returns a tag such as `sha256-….sig`.
fn tag_with(about: &Digest, ending: &str) -> String {
    format!("{}.{ending}", tag_of(about))
}
