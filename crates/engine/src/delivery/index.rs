//! Publishing an index where others may publish too: read what the tag means, add to it, publish,
//! and look again whether it stayed.
//!
//! A layout is held still by its lock. A registry has no way to publish only in place of what was
//! read, so whoever joins looks again after a while: what another build published over in between is
//! added once more.

use std::time::{Duration, Instant};

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::document::{
    Descriptor, Digest, Document, DocumentError, Index, ManifestFormat, Verbatim,
};
use wincimg_oci::store::{Location, Sink};

use super::Delivery;
use super::existing_tag::{ExistingTag, TagEntry, TagPolicy};
use crate::publication::{PlannedTagEntry, Publication, sort_entries};

/// So often a build publishes anew what others published over, before it gives up.
const ATTEMPTS: u32 = 30;
/// The least and the longest time between publishing and looking again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What a tag meant at a moment; nothing where there was none.
pub(super) type TagSnapshot = (Instant, Option<ExistingTag>);

/// What is known of an index's tag before the index is published.
pub(super) struct ExpectedIndex<'a> {
    /// What was found that stays.
    pub(super) kept: &'a [PlannedTagEntry],
    /// What it meant a moment ago, where somebody looked.
    pub(super) last: Option<TagSnapshot>,
}

/// An index that was published.
pub(super) struct PublishedIndex {
    pub(super) digest: Digest,
    /// What it keeps of others.
    pub(super) kept: Vec<PlannedTagEntry>,
}

impl PublishedIndex {
    /// The platforms that it keeps; an attestation has none.
    pub(super) fn platforms(&self) -> Vec<String> {
        let platforms = self.kept.iter().map(|line| &line.platform);
        platforms
            .filter(|platform| !matches!(platform.os.as_str(), "" | "unknown"))
            .map(ToString::to_string)
            .collect()
    }
}

impl Delivery<'_> {
    /// What the index's tag means now.
    pub(super) async fn read_index(&self, location: &Location) -> Result<TagSnapshot, BoxError> {
        let asked = Instant::now();
        let standing = ExistingTag::read(location, self.target.existing, self.registry).await?;
        Ok((asked, standing))
    }

    /// Puts an index over images that are there.
    pub(super) async fn publish_index(
        &self,
        publication: &Publication<'_>,
        made: &[(PlannedTagEntry, Descriptor)],
        expected: ExpectedIndex<'_>,
        location: &Location,
        sink: &Sink,
    ) -> Result<PublishedIndex, BoxError> {
        let new: Vec<PlannedTagEntry> = made.iter().map(|(line, _)| line.clone()).collect();
        let joins = self.target.existing == TagPolicy::Join;
        let mut reviewed = expected.kept.to_vec();
        let mut last = expected.last;
        let mut is_published = false;
        for _ in 0..ATTEMPTS {
            let (asked, standing) = match last.take() {
                Some(seen) => seen,
                None => self.read_index(location).await?,
            };
            if let Some(standing) = standing.as_ref().filter(|it| is_published && it.has(&new)) {
                let kept = standing.kept_entries(&new, self.target.existing, location)?;
                return Ok(PublishedIndex {
                    digest: standing.digest.clone(),
                    kept: lines(&kept),
                });
            }
            let kept = match &standing {
                Some(standing) => standing.kept_entries(&new, self.target.existing, location)?,
                None => Vec::new(),
            };
            // Something else may be there than when the build began.
            if lines(&kept) != reviewed {
                reviewed = lines(&kept);
                (self.target.review)(&publication.planned_tags(&reviewed))?;
            }
            let standing_index = standing
                .as_ref()
                .and_then(|standing| standing.index.as_ref());
            let document = index_over(made, &kept, standing_index.filter(|_| joins));
            let document = document.map_err(|error| {
                Problem::new("output/write", "cannot write the index").source(error)
            })?;
            let before = standing.as_ref().map(|standing| &standing.digest);
            let published = PublishedIndex {
                digest: document.digest().clone(),
                kept: lines(&kept),
            };
            if before == Some(document.digest()) {
                return Ok(published);
            }
            if is_published {
                self.progress.note(&format!(
                    "another build published {location} meanwhile: adding to it again"
                ));
            }
            let is_there = sink
                .publish_if_unchanged(&document, location.tag(), before)
                .await?;
            if is_there && !(joins && sink.is_shared()) {
                return Ok(published);
            }
            if is_there {
                is_published = true;
                tokio::time::sleep(pause(asked.elapsed(), &document)).await;
            }
        }
        let problem = format!("gave up publishing {location}: other builds kept publishing it");
        Err(Problem::new("tag/contended", problem)
            .hint("run the same command again")
            .into())
    }
}

/// Long enough for another build that read before this one published to have published too, and not
/// the same for two that began at once.
fn pause(took: Duration, document: &Document) -> Duration {
    let (least, longest) = PAUSE;
    let byte = document.digest().digest().bytes().next_back();
    let apart = Duration::from_millis(u64::from(byte.unwrap_or_default()) * 4);
    (took * 4).clamp(least, longest) + apart
}

fn lines(entries: &[TagEntry]) -> Vec<PlannedTagEntry> {
    entries.iter().map(|entry| entry.line.clone()).collect()
}

/// The index over new entries and those that stay, with what the one before says besides.
fn index_over(
    made: &[(PlannedTagEntry, Descriptor)],
    kept: &[TagEntry],
    before: Option<&Index>,
) -> Result<Document, DocumentError> {
    let kept = kept
        .iter()
        .map(|entry| (entry.line.clone(), entry.descriptor.clone()));
    let mut entries: Vec<(PlannedTagEntry, Descriptor)> =
        made.iter().cloned().chain(kept).collect();
    sort_entries(&mut entries, |(line, _)| line);
    let entries: Vec<Descriptor> = entries.into_iter().map(|(_, entry)| entry).collect();
    // Only Docker's own manifests may stand in an index in Docker's words.
    let is_dockers = |entry: &Descriptor| {
        ManifestFormat::from_media_type(&entry.media_type) == ManifestFormat::Docker
    };
    let flavour = if entries.iter().all(is_dockers) {
        ManifestFormat::Docker
    } else {
        ManifestFormat::Oci
    };
    let mut index = Index::new(flavour, entries);
    if let Some(before) = before {
        index.other.clone_from(&before.other);
    }
    Ok(Document::Index(Verbatim::new(index)?))
}
