//! Publishes an index whose tag others may publish too: read the tag, merge, publish, and verify.
//!
//! A layout is locked. A registry has no conditional publish, so a joining build reads the tag
//! again after a while, and merges again what another build published over.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::copy::CopyPlan;
use wincimg_oci::document::{Descriptor, Digest, Document, Index, ManifestFormat, Verbatim};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Sink, Source, StoreError};

use super::Delivery;
use super::destination_writer::DestinationImage;
use super::existing_tag::{self, ExistingTag, TagEntry, TagPolicy, lines};
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

/// Images to publish in the index of a tag that others may publish too.
pub struct IndexUpdate<'a> {
    location: &'a Location,
    registry: &'a RegistryClient,
    progress: &'a dyn Progress,
    /// Policy for the existing entries.
    existing: TagPolicy,
    /// The images, which were sent before.
    images: Vec<TagEntry>,
    /// Their documents.
    documents: Vec<Document>,
    /// Entries of other tags that it gets too: images, and attestations.
    carried: Vec<TagEntry>,
    /// Existing entries to keep, as they were reviewed.
    kept: Vec<PlannedTagEntry>,
    /// Other fields of an index whose tag has none to keep.
    fields: Option<&'a Map<String, Value>>,
    /// Review of the entries to keep, if they are others.
    review: &'a dyn Fn(&[PlannedTagEntry]) -> Result<(), Problem>,
}

/// Reads the current content of a tag.
pub(super) async fn read_tag(
    location: &Location,
    existing: TagPolicy,
    registry: &RegistryClient,
) -> Result<TagSnapshot, BoxError> {
    let asked = Instant::now();
    let standing = ExistingTag::read(location, existing, registry).await?;
    Ok((asked, standing))
}

impl Delivery<'_> {
    /// Publishes an index over existing images.
    pub(super) async fn publish_index(
        &self,
        publication: &Publication<'_>,
        expected: ExpectedIndex<'_>,
        location: &Location,
        sink: &Sink,
    ) -> Result<DeliveredIndex, BoxError> {
        let manifests = expected.images.iter().map(|it| it.image.manifest().clone());
        let update = IndexUpdate {
            location,
            registry: self.registry,
            progress: self.progress.as_ref(),
            existing: self.target.existing,
            images: published_entries(publication, expected.images),
            documents: manifests
                .map(|manifest| Document::Manifest(Box::new(manifest)))
                .collect(),
            carried: expected.carried.to_vec(),
            kept: expected.kept.to_vec(),
            fields: self.index_fields,
            review: &|kept| (self.target.review)(&publication.planned_tags(kept)),
        };
        update.publish(sink, expected.last).await
    }
}

impl<'a> IndexUpdate<'a> {
    /// The images of a copy, which join those of a tag. Rejects what cannot be in an index.
    pub async fn of_copy(
        location: &'a Location,
        source: &Source,
        plan: &'a CopyPlan,
        registry: &'a RegistryClient,
        progress: &'a dyn Progress,
    ) -> Result<Self, BoxError> {
        let entries = existing_tag::entries_of(source, &plan.root, &plan.children).await?;
        let (carried, images): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(TagEntry::is_attestation);
        if let Some(artifact) = images.iter().find(|entry| !entry.is_an_image()) {
            let problem = format!("{source} has {artifact}, which cannot be in an index");
            return Err(Problem::request("usage", problem)
                .hint("copy it under a tag of its own, without --join")
                .into());
        }
        let (fields, image) = match &plan.root {
            Document::Index(index) => (Some(&index.other), None),
            root @ Document::Manifest(_) => (None, Some(root)),
        };
        let update = Self {
            location,
            registry,
            progress,
            existing: TagPolicy::Join,
            documents: plan.children.iter().chain(image).cloned().collect(),
            images,
            carried,
            kept: Vec::new(),
            fields,
            review: &|_| Ok(()),
        };
        let (_, standing) = read_tag(location, update.existing, registry).await?;
        let new = lines(&update.images);
        if let Some(standing) = standing {
            standing.kept_entries(&new, update.existing, location)?;
            standing.note_replaced(&new, location, progress);
        }
        Ok(update)
    }

    /// Publishes the index at a sink that has the images of a copy.
    pub async fn join(&self, sink: &Sink) -> Result<DeliveredIndex, BoxError> {
        self.publish(sink, None).await
    }

    /// Publishes the index; `last` is a recent snapshot of the tag, if there is one.
    async fn publish(
        &self,
        sink: &Sink,
        mut last: Option<TagSnapshot>,
    ) -> Result<DeliveredIndex, BoxError> {
        let Self {
            location, existing, ..
        } = *self;
        let new = lines(&self.images);
        let joins = existing == TagPolicy::Join;
        let mut reviewed = self.kept.clone();
        let mut sent: Option<Descriptor> = None;
        for _ in 0..ATTEMPTS {
            let (asked, standing) = match last.take() {
                Some(seen) => seen,
                None => read_tag(location, existing, self.registry).await?,
            };
            let kept = kept_with(&self.carried, standing.as_ref(), &new, existing, location)?;
            let is_sent = sent.is_some();
            if let Some(standing) = standing.as_ref().filter(|it| is_sent && it.has(&new)) {
                let own = sent.filter(|own| own.digest == standing.digest);
                return Ok(DeliveredIndex::new(location, &standing.digest, own, &kept));
            }
            // The tag may have changed since the build began.
            if lines(&kept) != reviewed {
                reviewed = lines(&kept);
                (self.review)(&reviewed)?;
            }
            let images = [self.images.as_slice(), &kept].concat();
            let document = self.index_over(&images, standing.as_ref())?;
            let before = standing.as_ref().map(|standing| &standing.digest);
            let own = document.descriptor();
            let published = DeliveredIndex::new(location, document.digest(), Some(own), &kept);
            if before == Some(document.digest()) {
                return Ok(published.up_to_date());
            }
            let joined = standing.as_ref().filter(|_| joins);
            if let Some(standing) = joined.filter(|it| it.has_entries_of(&document)) {
                let index = DeliveredIndex::new(location, &standing.digest, None, &kept);
                return Ok(index.up_to_date());
            }
            if is_sent {
                self.note_repetition(standing.is_some());
            }
            let is_there = self.put_index(&document, before, sink).await?;
            if is_there && !(joins && sink.is_shared()) {
                return Ok(published);
            }
            if is_there {
                sent = Some(document.descriptor());
                tokio::time::sleep(pause(asked.elapsed(), &document)).await;
            }
        }
        let problem = format!("gave up publishing {location}: other builds kept publishing it");
        Err(Problem::new("tag/contended", problem)
            .hint("run the same command again")
            .into())
    }

    /// Says why an index is published again.
    fn note_repetition(&self, exists: bool) {
        let location = self.location;
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
    ) -> Result<Document, Problem> {
        let attestations = standing.into_iter().flat_map(ExistingTag::attestations);
        let carried = self.carried.iter().filter(|it| it.is_attestation());
        let joined = standing.filter(|_| self.existing == TagPolicy::Join);
        let joined = joined.and_then(|standing| standing.index.as_ref());
        let fields = joined.map(|index| &index.other).or(self.fields);
        index_over(images, attestations.chain(carried), fields)
            .map_err(|error| Problem::new("output/write", "cannot write the index").source(error))
    }

    /// Publishes an index if its tag still refers to `before`. A cleaner may delete images that no
    /// tag refers to yet: those are published again.
    async fn put_index(
        &self,
        document: &Document,
        before: Option<&Digest>,
        sink: &Sink,
    ) -> Result<bool, StoreError> {
        let location = self.location;
        let put = || sink.publish_if_unchanged(document, location.tag(), before);
        for _ in 0..RESTORATIONS {
            match put().await {
                Err(error) if error.is_part_missing() => {}
                put => return put,
            }
            self.progress.note(&format!(
                "an image of {location} was deleted meanwhile: publishing it again"
            ));
            for image in &self.documents {
                sink.put_document(image).await?;
            }
        }
        put().await
    }
}

fn published_entries(publication: &Publication<'_>, arrived: &[DestinationImage]) -> Vec<TagEntry> {
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
    // The images whose platforms and builds the tag does not have.
    let is_missing = |image: &&TagEntry| {
        let mut entries = kept.iter();
        !image.is_attestation() && !entries.any(|entry| entry.is_replaced_by(&image.line, false))
    };
    let missing: Vec<TagEntry> = carried.iter().filter(is_missing).cloned().collect();
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
    let format = if entries.iter().all(is_dockers) {
        ManifestFormat::Docker
    } else {
        ManifestFormat::Oci
    };
    let mut index = Index::new(format, entries);
    if let Some(fields) = fields {
        index.other.clone_from(fields);
    }
    Ok(Document::Index(Verbatim::new(index)?))
}
