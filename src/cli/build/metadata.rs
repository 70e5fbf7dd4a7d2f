//! `--metadata-file` and `--iidfile`, with the keys of `docker buildx build`.

use serde_json::Map;
use wincimg_engine::delivery::{DeliveredCopy, DeliveryReport};
use wincimg_engine::publication::PlannedTag;
use wincimg_oci::document::Digest;
use wincimg_oci::store::is_local_image;

use crate::cli::prelude::*;

/// Rejects several images without an index for a flag whose file is about one.
pub(super) fn check_single(flag: &str, tags: &[PlannedTag<'_>]) -> Result<(), Problem> {
    if tags.len() < 2 {
        return Ok(());
    }
    let count = tags.len();
    let problem = format!("{flag} is for one image: without an index, there are {count}");
    Err(Problem::request("usage", problem).hint(format!(
        "build for one host at a time, or remove --no-index or {flag}"
    )))
}

/// What a build made: its index, or its image.
pub(super) fn metadata(delivered: &DeliveryReport) -> Value {
    let mut fields = Map::new();
    let mut add = |key: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (key.to_owned(), value)));
    };
    let descriptor = |media_type: &Option<String>, digest: &str, size: Option<u64>| {
        let media_type = media_type.as_ref()?;
        Some(json!({"mediaType": media_type, "digest": digest, "size": size?}))
    };
    // As from buildx, the names of `-t` are separated by commas. One that joined another index has
    // another digest.
    let names = |reference: &str, digest: &str, copies: &[DeliveredCopy]| {
        let copies = copies.iter().filter(|copy| copy.digest == digest);
        let copies = copies.map(|copy| copy.reference.as_str());
        let mut names = vec![reference];
        names.extend(copies.filter(|name| !is_local_image(name)));
        Some(json!(names.join(",")))
    };
    match (&delivered.index, delivered.images.first()) {
        (Some(index), _) => {
            let found = descriptor(&index.media_type, &index.digest, index.size);
            add("containerimage.descriptor", found);
            add("containerimage.digest", Some(json!(index.digest)));
            add(
                "image.name",
                names(&index.reference, &index.digest, &index.copies),
            );
        }
        (None, Some(image)) => {
            let found = descriptor(&image.media_type, &image.digest, image.size);
            let config = image.config_digest.as_ref().map(|digest| json!(digest));
            add("containerimage.config.digest", config);
            add("containerimage.descriptor", found);
            add("containerimage.digest", Some(json!(image.digest)));
            add(
                "image.name",
                names(&image.reference, &image.digest, &image.copies),
            );
        }
        (None, None) => {}
    }
    Value::Object(fields)
}

/// Returns true for what a build, also of buildx, wrote to one of these files.
pub(super) fn is_metadata(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let is_id = text.starts_with("sha256:") && text.trim_end().parse::<Digest>().is_ok();
    let fields = serde_json::from_str::<Map<String, Value>>(&text);
    is_id || fields.is_ok_and(|fields| fields.contains_key("containerimage.digest"))
}

/// The image ID: the digest of the configuration, or of an index.
pub(super) fn image_id(delivered: &DeliveryReport) -> Option<&str> {
    match (&delivered.index, delivered.images.first()) {
        (Some(index), _) => Some(&index.digest),
        (None, Some(image)) => Some(image.config_digest.as_ref().unwrap_or(&image.digest)),
        (None, None) => None,
    }
}
