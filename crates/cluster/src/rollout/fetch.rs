//! Fetches manifests, indexes and configurations of images.

use std::collections::BTreeMap;
use std::error::Error;

use futures_util::{StreamExt, stream};
use wincimg_common::diagnose::{Diagnose, error_chain};
use wincimg_oci::document::{Document, Index, Manifest, Verbatim};
use wincimg_oci::reference::parse_reference;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, LocationError, Source, StoreError};

use super::image::{Image, ImageContent, Variant, is_host_process};

/// Images fetched at once. Each takes one or two small documents, so latency dominates.
const PARALLEL: usize = 64;

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
    // Two spellings of one location are one request.
    let mut questions: BTreeMap<String, Location> = BTreeMap::new();
    let mut contents: BTreeMap<String, ImageContent> = BTreeMap::new();
    let mut names = Vec::with_capacity(wanted.len());
    for image in wanted {
        match image.location() {
            Ok(location) => {
                let name = location.to_string();
                names.push(name.clone());
                questions.insert(name, location);
            }
            Err(error) => {
                names.push(image.reference.clone());
                contents.insert(image.reference.clone(), unreadable(&error, None));
            }
        }
    }
    let answers = stream::iter(questions)
        .map(async |(name, location)| {
            let content = fetch_content(&location, registry).await;
            (
                name,
                content.unwrap_or_else(|error| {
                    let hint = error.diagnosis().hint;
                    unreadable(&error, hint)
                }),
            )
        })
        .buffer_unordered(PARALLEL);
    contents.extend(answers.collect::<Vec<_>>().await);
    wanted
        .iter()
        .zip(names)
        .map(|(image, name)| Image {
            reference: Some(image.reference.clone()),
            content: contents
                .get(&name)
                .cloned()
                .unwrap_or(ImageContent::Index(Vec::new())),
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
        Document::Index(index) => entries(&source, &index).await.map(ImageContent::Index),
    }
}

async fn single(source: &Source, manifest: Verbatim<Manifest>) -> Result<Variant, StoreError> {
    if !manifest.is_image() {
        // A chart or a signature has no operating system: the media type is reported instead.
        return Ok(Variant {
            os: manifest.config.media_type.clone(),
            digest: Some(manifest.digest().clone()),
            ..Variant::default()
        });
    }
    let image = source.image(manifest).await?;
    let platform = image.config().platform();
    let layers = &image.manifest().layers;
    let bottom = layers.first().map(|layer| layer.size);
    Ok(Variant {
        host_process: is_host_process(&platform.os, platform.os_version.as_deref(), bottom),
        os: platform.os,
        architecture: platform.architecture,
        version: platform
            .os_version
            .as_deref()
            .and_then(|text| text.parse().ok()),
        os_version: platform.os_version,
        digest: Some(image.digest().clone()),
        size: Some(layers.iter().map(|layer| layer.size).sum()),
        stop_seconds: None,
    })
}

/// The images of an index. Entries without a known platform are attestations or other attachments,
/// which no runtime selects.
async fn entries(source: &Source, index: &Index) -> Result<Vec<Variant>, StoreError> {
    let mut variants = Vec::with_capacity(index.manifests.len());
    for entry in &index.manifests {
        let Some(platform) = &entry.platform else {
            continue;
        };
        if platform.os == "unknown" {
            continue;
        }
        let mut variant = Variant {
            os: platform.os.clone(),
            architecture: platform.architecture.clone(),
            os_version: platform.os_version.clone(),
            version: platform
                .os_version
                .as_deref()
                .and_then(|text| text.parse().ok()),
            digest: Some(entry.digest.clone()),
            size: None,
            stop_seconds: None,
            host_process: false,
        };
        if variant.os == "windows"
            && variant.version.is_none()
            && let Document::Manifest(manifest) = source.document(entry).await?
        {
            let own = single(source, *manifest).await?;
            variant.version = own.version;
            variant.host_process = own.host_process;
        }
        variants.push(variant);
    }
    Ok(variants)
}
