//! Fetches manifests, indexes and configurations of images.

use std::collections::BTreeMap;
use std::error::Error;

use futures_util::{StreamExt, stream};
use wincimg_common::diagnose::{Diagnose, error_chain};
use wincimg_oci::document::{Descriptor, Document, Manifest, Verbatim, media_type};
use wincimg_oci::reference::parse_reference;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{EntryReader, EntryTarget, Location, LocationError, Source, StoreError};

use super::image::{EntryContent, Image, ImageContent, Variant};

/// Images fetched at once. Each takes one or two small documents, so latency dominates.
pub(super) const PARALLEL: usize = 64;

/// Hint for an invalid reference.
const VALID_NAME: &str = "use a name that `docker pull` accepts";

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

    /// The image if its reference is not valid, so that nothing can pull it.
    pub fn invalid(&self) -> Option<Image> {
        let error = self.location().err()?;
        Some(Image {
            reference: Some(self.reference.clone()),
            content: unreadable(&error, Some(VALID_NAME.to_owned())),
        })
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
                Err(error) => unreadable(error, Some(VALID_NAME.to_owned())),
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
            let variants = source.entries(&index, &VariantReader(&source)).await;
            variants.map(ImageContent::Index)
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
    Ok(Variant::of_image(&source.image(manifest).await?))
}

/// What is behind an entry that could not be read.
pub(super) fn unread(error: &StoreError) -> EntryContent {
    if error.is_not_found() {
        EntryContent::Missing
    } else {
        EntryContent::Unreadable(error_chain(error))
    }
}

/// Reads the images of an index. The manifests of entries with a platform are read by
/// [`super::Details`].
struct VariantReader<'a>(&'a Source);

impl EntryReader for VariantReader<'_> {
    type Item = Variant;

    /// An entry for an unknown platform is an attestation or another attachment, which no runtime
    /// selects.
    async fn read(
        &self,
        entry: &Descriptor,
        is_nested: bool,
    ) -> Result<EntryTarget<Variant>, StoreError> {
        let variant = match &entry.platform {
            Some(platform) if platform.os == "unknown" => None,
            Some(platform) if !is_read_at_once(entry) => Some(Variant::of_platform(platform)),
            stated => {
                let own = match self.0.document(entry).await {
                    Ok(Document::Index(inner)) => return Ok(EntryTarget::Index(inner)),
                    Ok(Document::Manifest(manifest)) => single(self.0, *manifest).await,
                    Err(error) => Err(error),
                };
                inside(stated.as_ref().map(Variant::of_platform), own)?
            }
        };
        let variant = variant.map(|variant| Variant {
            manifest: Some(Box::new(entry.clone())),
            without_platform: is_nested || entry.platform.is_none(),
            ..variant
        });
        Ok(EntryTarget::Items(variant.into_iter().collect()))
    }
}

/// The image of an entry that is read; none for an attestation or an artifact.
fn inside(
    stated: Option<Variant>,
    own: Result<Variant, StoreError>,
) -> Result<Option<Variant>, StoreError> {
    match (stated, own) {
        (Some(stated), Ok(own)) => Ok(Some(stated.with_image(own))),
        (Some(stated), Err(error)) => Ok(Some(Variant {
            content: unread(&error),
            ..stated
        })),
        (None, Ok(own)) => {
            let is_image = !matches!(own.os.as_str(), "" | "unknown") && own.artifact().is_none();
            Ok(Some(own).filter(|_| is_image))
        }
        (None, Err(error)) => Err(error),
    }
}

/// Returns true if the index alone does not say what a runtime selects.
fn is_read_at_once(entry: &Descriptor) -> bool {
    entry.platform.as_ref().is_none_or(|platform| {
        let has_version = Variant::of_platform(platform).version.is_some();
        platform.os == "windows" && (!has_version || media_type::is_index(&entry.media_type))
    })
}
