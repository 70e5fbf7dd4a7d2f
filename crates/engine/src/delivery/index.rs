//! Publishes an index whose tag others may publish too: read the tag, merge, publish, and verify.
//!
//! A layout is locked. A registry has no conditional publish, so a joining build reads the tag
//! again after a while, and merges again what another build published over.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::document::{Descriptor, Digest, Document, Index, ManifestFormat, Verbatim};
use wincimg_oci::store::{Location, Sink, StoreError};

use super::Delivery;
use super::destination_writer::DestinationImage;
use super::existing_tag::{self, ExistingTag, TagEntry, TagPolicy};
use super::report::DeliveredIndex;
use crate::publication::{PlannedTagEntry, Publication, sort_entries};

/// Maximum number of attempts if other builds overwrite the tag.
const ATTEMPTS: u32 = 30;
/// Maximum number of attempts if images that were pushed are deleted before the index is.
const RESTORATIONS: usize = 3;
/// Shortest and longest delay between publishing and verifying.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Content of a tag at a moment; none if it did not exist.
pub(super) type TagSnapshot = (Instant, Option<ExistingTag>);

/// State of an index's tag before the index is published.
pub(super) struct ExpectedIndex<'a> {
    /// Existing entries to keep.
    pub(super) kept: &'a [PlannedTagEntry],
    /// Existing images of the repository that it gets too.
    pub(super) carried: &'a [TagEntry],
    /// A recent snapshot of the tag, if there is one.
    pub(super) last: Option<TagSnapshot>,
    /// The images that were published for it.
    pub(super) images: &'a [DestinationImage],
}

impl Delivery<'_> {
    /// Current content of the index's tag.
    pub(super) async fn read_index(&self, location: &Location) -> Result<TagSnapshot, BoxError> {
        let asked = Instant::now();
        let standing = ExistingTag::read(location, self.target.existing, self.registry).await?;
        Ok((asked, standing))
    }

    /// Publishes an index over existing images.
    pub(super) async fn publish_index(
        &self,
        publication: &Publication<'_>,
        expected: ExpectedIndex<'_>,
        location: &Location,
        sink: &Sink,
    ) -> Result<DeliveredIndex, BoxError> {
        let made = entries_of(publication, expected.images);
        let new = lines(&made);
        let joins = self.target.existing == TagPolicy::Join;
        let mut reviewed = expected.kept.to_vec();
        let mut last = expected.last;
        let mut is_published = false;
        for _ in 0..ATTEMPTS {
            let (asked, standing) = match last.take() {
                Some(seen) => seen,
                None => self.read_index(location).await?,
            };
            let (existing, carried) = (self.target.existing, expected.carried);
            let kept = kept_with(carried, standing.as_ref(), &new, existing, location)?;
            if let Some(standing) = standing.as_ref().filter(|it| is_published && it.has(&new)) {
                return Ok(DeliveredIndex::new(location, &standing.digest, None, &kept));
            }
            // The tag may have changed since the build began.
            if lines(&kept) != reviewed {
                reviewed = lines(&kept);
                (self.target.review)(&publication.planned_tags(&reviewed))?;
            }
            let images = [made.as_slice(), &kept].concat();
            let document = self.index_over(&images, standing.as_ref(), carried)?;
            let before = standing.as_ref().map(|standing| &standing.digest);
            let own = document.descriptor();
            let published = DeliveredIndex::new(location, document.digest(), Some(own), &kept);
            if before == Some(document.digest()) {
                return Ok(published);
            }
            let joined = standing.as_ref().filter(|_| joins);
            if let Some(standing) = joined.filter(|it| it.has_entries_of(&document)) {
                return Ok(DeliveredIndex::new(location, &standing.digest, None, &kept));
            }
            if is_published {
                self.note_repetition(standing.is_some(), location);
            }
            let is_there = self
                .put_index(&document, before, expected.images, location, sink)
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

    /// Says why an index is published again.
    fn note_repetition(&self, exists: bool, location: &Location) {
        let why = if exists {
            format!("another build published {location} meanwhile: adding to it again")
        } else {
            format!("{location} was deleted or is not visible yet: publishing it again")
        };
        self.progress.note(&why);
    }

    /// The index over images, with the other fields of the tag's or of the updated one.
    fn index_over(
        &self,
        images: &[TagEntry],
        standing: Option<&ExistingTag>,
        carried: &[TagEntry],
    ) -> Result<Document, Problem> {
        let attestations = standing.into_iter().flat_map(ExistingTag::attestations);
        let attestations = attestations.chain(carried.iter().filter(|it| it.is_attestation()));
        let joined = standing.filter(|_| self.target.existing == TagPolicy::Join);
        let joined = joined.and_then(|standing| standing.index.as_ref());
        let fields = joined.map(|index| &index.other).or(self.index_fields);
        index_over(images, attestations, fields)
            .map_err(|error| Problem::new("output/write", "cannot write the index").source(error))
    }

    /// Publishes an index if its tag still refers to `before`. A cleaner may delete images that no
    /// tag refers to yet: those are published again.
    async fn put_index(
        &self,
        document: &Document,
        before: Option<&Digest>,
        images: &[DestinationImage],
        location: &Location,
        sink: &Sink,
    ) -> Result<bool, StoreError> {
        let put = || sink.publish_if_unchanged(document, location.tag(), before);
        for _ in 0..RESTORATIONS {
            match put().await {
                Err(error) if error.is_part_missing() => {}
                put => return put,
            }
            self.progress.note(&format!(
                "an image of {location} was deleted meanwhile: publishing it again"
            ));
            for image in images {
                let manifest = image.image.manifest().clone();
                sink.put_document(&Document::Manifest(Box::new(manifest)))
                    .await?;
            }
        }
        put().await
    }
}

fn entries_of(publication: &Publication<'_>, arrived: &[DestinationImage]) -> Vec<TagEntry> {
    let images = arrived.iter().zip(&publication.images);
    let entries = images.zip(publication.entries());
    let entries = entries.map(|((arrived, image), line)| {
        let mut descriptor = arrived.image.index_entry();
        let annotations = &mut descriptor.annotations;
        annotations.clone_from(&image.planned.annotations);
        TagEntry { descriptor, line }
    });
    entries.collect()
}

/// The images of a tag to keep beside new ones, and the carried ones. Those stand for what the tag
/// has of their platforms and builds, unless the new ones join it: then it keeps its own.
pub(super) fn kept_with(
    carried: &[TagEntry],
    standing: Option<&ExistingTag>,
    new: &[PlannedTagEntry],
    existing: TagPolicy,
    place: &Location,
) -> Result<Vec<TagEntry>, Problem> {
    let mut new = new.to_vec();
    if existing != TagPolicy::Join {
        let images = carried.iter().filter(|entry| !entry.is_attestation());
        new.extend(images.map(|entry| entry.line.clone()));
    }
    let mut kept = match standing {
        Some(standing) => standing.kept_entries(&new, existing, place)?,
        None => Vec::new(),
    };
    let missing = existing_tag::missing(carried, &kept);
    kept.extend(missing);
    Ok(kept)
}

/// Long enough for a build that read before this one published to have published too, and different
/// for two that started together.
fn pause(took: Duration, document: &Document) -> Duration {
    let (least, longest) = PAUSE;
    let byte = document.digest().digest().bytes().next_back();
    let apart = Duration::from_millis(u64::from(byte.unwrap_or_default()) * 4);
    (took * 4).clamp(least, longest) + apart
}

fn lines(entries: &[TagEntry]) -> Vec<PlannedTagEntry> {
    entries.iter().map(|entry| entry.line.clone()).collect()
}

/// The index over images, with the other fields of a previous one. Attestations stay with their
/// image and, as BuildKit writes them, follow all images.
fn index_over<'e>(
    images: &[TagEntry],
    attestations: impl Iterator<Item = &'e TagEntry>,
    fields: Option<&Map<String, Value>>,
) -> Result<Document, Problem> {
    let mut images = images.to_vec();
    sort_entries(&mut images, |entry| &entry.line);
    let images: Vec<Descriptor> = images.into_iter().map(|it| it.descriptor).collect();
    let attestations: Vec<&Descriptor> = attestations.map(|it| &it.descriptor).collect();
    let mut entries = images.clone();
    for image in &images {
        for attestation in &attestations {
            let is_about = attestation.attested() == Some(image.digest.as_ref());
            if is_about && !entries.contains(attestation) {
                entries.push((*attestation).clone());
            }
        }
    }
    // An index in Docker's format may only have manifests in Docker's format.
    let is_dockers = |entry: &Descriptor| {
        ManifestFormat::from_media_type(&entry.media_type) == ManifestFormat::Docker
    };
    let flavour = if entries.iter().all(is_dockers) {
        ManifestFormat::Docker
    } else {
        ManifestFormat::Oci
    };
    let mut index = Index::new(flavour, entries);
    if let Some(fields) = fields {
        index.other.clone_from(fields);
    }
    Ok(Document::Index(Verbatim::new(index)?))
}
