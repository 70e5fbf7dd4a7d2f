//! Attaches documents to images in a registry or a layout.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::document::{BASE_DIGEST, BASE_NAME, Descriptor, Image};
use wincimg_oci::store::{Sink, Source};

use super::document::ImageDocument;
use super::inventory::{Inventory, InventoryBase};
use super::layer::{LayerContents, scan_layer};
use crate::error::LayerProblem;
use crate::extract::unreadable;
use crate::layers::lacks_bytes;
use crate::own_contents::windows_layers;
use crate::stream::read_blob;

/// Bytes by which documents may differ in size that are equal apart from their times.
const TIMESTAMP_BYTES: u64 = 256;

/// Result of attaching a document to an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachmentReport {
    /// SPDX, `CycloneDX` or provenance.
    pub document: &'static str,
    /// Media type of the document and of its artifact.
    pub media_type: &'static str,
    /// The digest of the artifact's manifest.
    pub digest: String,
    /// The digest of the document.
    pub content: String,
    /// Its size in bytes.
    pub size: u64,
    /// True if it was attached before.
    pub up_to_date: bool,
}

/// Attaches a document to an image, unless an equivalent one is attached.
pub async fn attach(
    sink: &Sink,
    image: &Descriptor,
    document: &ImageDocument,
    progress: &dyn Progress,
) -> Result<AttachmentReport, BoxError> {
    let artifact = document.artifact(image);
    let artifact = artifact.map_err(|error| Problem::from_error("image/document", error))?;
    let blob = document.blob();
    let reported = |artifact: &Descriptor, content: &Descriptor, up_to_date| AttachmentReport {
        document: document.name,
        media_type: document.media_type,
        digest: artifact.digest.to_string(),
        content: content.digest.to_string(),
        size: content.size,
        up_to_date,
    };
    if let Some(place) = sink.as_source() {
        for known in place
            .artifacts(&image.digest, Some(document.media_type))
            .await?
        {
            let [content] = known.layers() else {
                continue;
            };
            // A statement of another kind or size is not compared: anybody may attach one.
            let is_alike = known.annotations().keys().eq(document.annotations.keys())
                && content.size.abs_diff(blob.size) <= TIMESTAMP_BYTES;
            let is_same = content.digest == blob.digest
                || is_alike
                    && document.depends_on_times()
                    && document.is_equivalent(&place.bytes(content, content.size).await?);
            if is_same {
                return Ok(reported(&known.entry(), content, true));
            }
        }
    }
    if !sink.has_blob(&blob).await? {
        let label = format!("{sink} {} of {}", document.name, image.digest);
        let task = progress.task(&label, Some(blob.size));
        sink.put_blob(&blob, &document.bytes, task.as_ref()).await?;
        task.done("attached");
    }
    sink.attach(&artifact).await?;
    Ok(reported(&artifact.entry(), &blob, false))
}

/// The inventory of any Windows image, from its own layers: those above Windows, which is at the
/// bottom. Also returns the numbers of foreign layers whose bytes are not stored with the image.
pub async fn read_inventory(
    place: &Source,
    image: &Image,
    name: &str,
    progress: &Arc<dyn Progress>,
) -> Result<(Inventory, Vec<usize>), Problem> {
    let windows = windows_layers(place, image, progress).await?;
    let below = windows.iter().take_while(|is_windows| **is_windows).count();
    let mut contents = Vec::new();
    let mut unread = Vec::new();
    for (number, blob) in (1..).zip(&image.manifest().layers).skip(below) {
        let failed = |problem| unreadable(&blob.digest, problem);
        if lacks_bytes(place, blob).await.map_err(failed)? {
            unread.push(number);
            contents.push(Arc::default());
            continue;
        }
        let scanned = scan_blob(place, blob, progress.as_ref()).await;
        contents.push(Arc::new(scanned.map_err(failed)?));
    }
    let base = base_of(image);
    Ok((
        Inventory::new(name.to_owned(), image, base, contents),
        unread,
    ))
}

/// The base that the labels name.
fn base_of(image: &Image) -> Option<InventoryBase> {
    let labels = &image.config().config.labels;
    let name = labels.get(BASE_NAME)?;
    let digest = labels.get(BASE_DIGEST)?.parse().ok()?;
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag.to_owned())),
        _ => (name, None),
    };
    Some(InventoryBase {
        name: name.to_owned(),
        tag,
        digest,
    })
}

/// Contents of a layer in a registry or a layout.
pub async fn scan_blob(
    place: &Source,
    blob: &Descriptor,
    progress: &dyn Progress,
) -> Result<LayerContents, LayerProblem> {
    let reader = place.open_blob(blob).await?;
    let task = progress.task(&format!("layer {}", blob.digest), Some(blob.size));
    let work = |bytes: &mut (dyn Read + Send)| {
        // The reading ends by itself when the result is not awaited.
        let found = scan_layer(bytes, &AtomicBool::new(false));
        found.map_err(|error| LayerProblem::Read(io::Error::other(error)))
    };
    let found = read_blob(reader, task.as_ref(), work).await?;
    task.done("read");
    Ok(found)
}
