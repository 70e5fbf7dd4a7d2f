//! Fetches manifests, indexes and configurations of images.

use std::collections::BTreeMap;
use std::error::Error;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use wincimg_common::diagnose::{Diagnose, error_chain};
use wincimg_oci::document::{
    self, Descriptor, Document, ENTRIES_AT_ONCE, EntryCount, Index, Manifest, Verbatim, media_type,
};
use wincimg_oci::reference::parse_reference;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, LocationError, Source, StoreError};

use super::image::{EntryContent, Image, ImageContent, Variant, is_host_process};

/// Images fetched at once. Each takes one or two small documents, so latency dominates.
pub(super) const PARALLEL: usize = 64;
/// Depth to which indexes in an index are read, as by `image inspect`.
const DEPTH: usize = 3;

/// An image to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRequest {
    /// Reference.
    pub reference: String,
    /// True if it may be a local directory or file, which a workload's image may not.
    pub is_local: bool,
}

impl ImageRequest {
    fn location(&self) -> Result<Location, LocationError> {
        if self.is_local {
            self.reference.parse()
        } else {
            Ok(Location::Registry(parse_reference(&self.reference)?))
        }
    }
}

/// Fetches every image once; the results are in the order of the requests.
///
/// An image that cannot be read becomes [`ImageContent::Unreadable`] and does not stop the others.
pub async fn fetch(wanted: &[ImageRequest], registry: &RegistryClient) -> Vec<Image> {
    let locations: Vec<_> = wanted.iter().map(ImageRequest::location).collect();
    // Two spellings of one location are one request.
    let known = locations.iter().flatten();
    let questions: BTreeMap<String, Location> = known
        .map(|location| (location.to_string(), location.clone()))
        .collect();
    let answers = stream::iter(questions)
        .map(async |(name, location)| {
            let content = fetch_content(&location, registry).await;
            let content = content.unwrap_or_else(|error| {
                let hint = error.diagnosis().hint;
                unreadable(&error, hint)
            });
            (name, content)
        })
        .buffer_unordered(PARALLEL);
    let answers: BTreeMap<String, ImageContent> = answers.collect().await;
    let images = wanted.iter().zip(&locations);
    images
        .map(|(image, location)| Image {
            reference: Some(image.reference.clone()),
            content: match location {
                Ok(location) => answers[&location.to_string()].clone(),
                Err(error) => unreadable(error, None),
            },
        })
        .collect()
}

fn unreadable(error: &dyn Error, hint: Option<String>) -> ImageContent {
    let reason = error_chain(error);
    ImageContent::Unreadable { reason, hint }
}

async fn fetch_content(
    location: &Location,
    registry: &RegistryClient,
) -> Result<ImageContent, StoreError> {
    let source = Source::open(location, registry).await?;
    match source.resolve(location.tag_or_digest()).await? {
        Document::Manifest(manifest) => single(&source, *manifest).await.map(ImageContent::Single),
        Document::Index(index) => {
            let reader = IndexReader {
                source: &source,
                read: EntryCount::default(),
            };
            reader.entries(&index, 1).await.map(ImageContent::Index)
        }
    }
}

async fn single(source: &Source, manifest: Verbatim<Manifest>) -> Result<Variant, StoreError> {
    if !source.is_image(&manifest).await? {
        // A chart or a signature has no operating system: its type is reported instead.
        let stated = manifest.other.get("artifactType");
        let stated = stated.and_then(|stated| stated.as_str());
        let kind = stated.filter(|stated| stated.contains('/'));
        return Ok(Variant {
            os: kind.unwrap_or(&manifest.config.media_type).to_owned(),
            manifest: Some(Box::new(manifest.descriptor(manifest.media_type()))),
            ..Variant::default()
        });
    }
    Ok(of_image(&source.image(manifest).await?))
}

/// An image by its own manifest and configuration.
pub(super) fn of_image(image: &document::Image) -> Variant {
    let platform = image.config().platform();
    let layers = &image.manifest().layers;
    let bottom = layers.first().map(|layer| layer.size);
    Variant {
        host_process: is_host_process(&platform.os, platform.os_version.as_deref(), bottom),
        manifest: Some(Box::new(image.index_entry())),
        size: Some(layers.iter().map(|layer| layer.size).sum()),
        ..Variant::of_platform(&platform)
    }
}

/// What is behind an entry that could not be read.
pub(super) fn unread(error: &StoreError) -> EntryContent {
    if error.is_not_found() {
        EntryContent::Missing
    } else {
        EntryContent::Unreadable(error_chain(error))
    }
}

/// An index that is read, with the indexes in it.
struct IndexReader<'a> {
    source: &'a Source,
    read: EntryCount,
}

impl IndexReader<'_> {
    /// The images of an index and of the indexes in it. The manifests of entries with a platform
    /// are read by [`super::Details`].
    fn entries<'a>(
        &'a self,
        index: &'a Verbatim<Index>,
        depth: usize,
    ) -> BoxFuture<'a, Result<Vec<Variant>, StoreError>> {
        Box::pin(async move {
            self.source.count_entries(index, &self.read)?;
            let mut reads = Vec::with_capacity(index.manifests.len());
            for entry in &index.manifests {
                reads.push(self.entry(entry, depth));
            }
            let found: Vec<Vec<Variant>> = stream::iter(reads)
                .buffered(ENTRIES_AT_ONCE)
                .try_collect()
                .await?;
            Ok(found.into_iter().flatten().collect())
        })
    }

    /// The images of an entry. One for an unknown platform is an attestation or another attachment,
    /// which no runtime selects.
    async fn entry(&self, entry: &Descriptor, depth: usize) -> Result<Vec<Variant>, StoreError> {
        match &entry.platform {
            Some(platform) if platform.os == "unknown" => Ok(Vec::new()),
            Some(platform) if !is_read_at_once(entry) => Ok(vec![Variant {
                manifest: Some(Box::new(entry.clone())),
                ..Variant::of_platform(platform)
            }]),
            _ => self.inside(entry, depth).await,
        }
    }

    /// The images behind an entry.
    async fn inside(&self, entry: &Descriptor, depth: usize) -> Result<Vec<Variant>, StoreError> {
        let read = async {
            match self.source.document(entry).await? {
                Document::Index(inner) if depth < DEPTH => {
                    self.entries(&inner, depth + 1).await.map(Err)
                }
                Document::Index(_) => Ok(Err(Vec::new())),
                Document::Manifest(manifest) => single(self.source, *manifest).await.map(Ok),
            }
        };
        let stated = entry.platform.as_ref().map(Variant::of_platform);
        let variant = match (stated, read.await) {
            (_, Ok(Err(mut variants))) => {
                for variant in &mut variants {
                    variant.without_platform = true;
                }
                return Ok(variants);
            }
            (Some(stated), Ok(Ok(own))) => stated.with_image(own),
            (Some(stated), Err(error)) => Variant {
                content: unread(&error),
                ..stated
            },
            // An attestation or an artifact.
            (None, Ok(Ok(own)))
                if matches!(own.os.as_str(), "" | "unknown") || own.artifact().is_some() =>
            {
                return Ok(Vec::new());
            }
            (None, Ok(Ok(own))) => Variant {
                without_platform: true,
                ..own
            },
            (None, Err(error)) => return Err(error),
        };
        Ok(vec![Variant {
            manifest: Some(Box::new(entry.clone())),
            ..variant
        }])
    }
}

/// Returns true if the index alone does not say what a runtime selects.
fn is_read_at_once(entry: &Descriptor) -> bool {
    entry.platform.as_ref().is_none_or(|platform| {
        let has_version = Variant::of_platform(platform).version.is_some();
        platform.os == "windows" && (!has_version || media_type::is_index(&entry.media_type))
    })
}
