//! Documents of unknown kind, distinguished by media type and fields.

use bytes::Bytes;
use serde::Deserialize;
use wincimg_common::diagnose::Problem;

use super::descriptor::Descriptor;
use super::digest::Digest;
use super::error::{ambiguous, shape, unusable};
use super::index::{EntryCount, Index};
use super::manifest::Manifest;
use super::media_type;
use super::verbatim::{Verbatim, check_size, verify};

/// Hint for a web page in place of a registry's answer.
pub(crate) const WEB_PAGE_HINT: &str = "a proxy or another server answers in the registry's place: \
                                        check its name, port and HTTPS_PROXY";

/// Returns true if an answer is a web page.
pub(crate) fn is_web_page(answer: &[u8]) -> bool {
    answer.trim_ascii_start().starts_with(b"<")
}

/// Target of a reference: one image, or an index of several.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// One image.
    Manifest(Box<Verbatim<Manifest>>),
    /// Several, by platform.
    Index(Verbatim<Index>),
}

/// The fields that determine a document's kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    #[serde(default)]
    schema_version: u64,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    manifests: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    config: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    layers: Option<serde::de::IgnoredAny>,
}

impl Document {
    /// Parses a document and verifies its digest.
    pub fn verify(announced: &str, bytes: Bytes, expected: &Digest) -> Result<Self, Problem> {
        verify(&bytes, expected)?;
        Self::read(announced, bytes, expected.clone())
    }

    /// Parses the document that a descriptor refers to, and verifies all that the descriptor states:
    /// other programs refuse an image that contradicts it.
    pub fn of_entry(entry: &Descriptor, bytes: Bytes) -> Result<Self, Problem> {
        let document = Self::verify(&entry.media_type, bytes, &entry.digest)?;
        check_size(document.bytes(), entry)?;
        if entry.media_type.is_empty() || known(&entry.media_type).is_some() {
            return Ok(document);
        }
        let (announced, found) = (&entry.media_type, document.media_type());
        let reason = format!("it is announced as {announced:?} and is {found}");
        Err(ambiguous(&entry.digest, reason))
    }

    fn read(announced: &str, bytes: Bytes, digest: Digest) -> Result<Self, Problem> {
        let outline: Outline = match serde_json::from_slice(&bytes) {
            Ok(outline) => outline,
            Err(_) if is_web_page(&bytes) => {
                let problem = "the answer is a web page: expected a manifest or index";
                return Err(unusable(problem).hint(WEB_PAGE_HINT));
            }
            Err(error) => return Err(shape(&digest, "manifest or index", error)),
        };
        if outline.schema_version == 1 {
            return Err(unusable(format!(
                "{digest} is a Docker schema 1 manifest, which is not supported: push the image again"
            )));
        }
        if outline.is_index(announced, &digest)? {
            let index = Verbatim::<Index>::read(bytes, digest)?;
            EntryCount::default().add(&index)?;
            Ok(Self::Index(index))
        } else {
            Ok(Self::Manifest(Box::new(Verbatim::<Manifest>::read(
                bytes, digest,
            )?)))
        }
    }

    /// The exact bytes.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Manifest(manifest) => manifest.bytes(),
            Self::Index(index) => index.bytes(),
        }
    }

    /// The digest of the bytes.
    pub fn digest(&self) -> &Digest {
        match self {
            Self::Manifest(manifest) => manifest.digest(),
            Self::Index(index) => index.digest(),
        }
    }

    /// The media type under which the document is published.
    pub fn media_type(&self) -> &str {
        match self {
            Self::Manifest(manifest) => manifest.media_type(),
            Self::Index(index) => index.media_type(),
        }
    }

    /// A pointer to the document.
    pub fn descriptor(&self) -> Descriptor {
        match self {
            Self::Manifest(manifest) => manifest.descriptor(manifest.media_type()),
            Self::Index(index) => index.descriptor(index.media_type()),
        }
    }
}

impl Outline {
    /// Returns true if this is an index. Fails if the stated type, the announced type and the
    /// fields disagree, because one digest could then mean two images.
    fn is_index(&self, announced: &str, digest: &Digest) -> Result<bool, Problem> {
        let has_image = self.config.is_some() || self.layers.is_some();
        let has_entries = self.manifests.is_some();
        let ambiguous = |reason: &str| ambiguous(digest, reason);
        let unknown_type = |media_type: &str| {
            unusable(format!(
                "{digest} is a document of type {media_type:?}: expected a Docker or OCI manifest or index"
            ))
        };
        if has_image && has_entries {
            return Err(ambiguous("it has both layers and manifests"));
        }
        let announced = known(announced);
        let stated = self.media_type.as_deref().unwrap_or_default();
        if !stated.is_empty() && known(stated).is_none() {
            return Err(unknown_type(stated));
        }
        if let (Some(announced), Some(stated)) = (announced, known(stated))
            && announced != stated
        {
            return Err(ambiguous(&format!(
                "it was announced as {announced} and states {stated}"
            )));
        }
        let is_index = match known(stated).or(announced) {
            Some(kind) => media_type::is_index(kind),
            None if has_entries => true,
            None if has_image => false,
            None => return Err(unknown_type("")),
        };
        if (is_index && has_image) || (!is_index && has_entries) {
            return Err(ambiguous("its type and its content differ"));
        }
        Ok(is_index)
    }
}

/// Returns the media type if it determines the kind; a registry may send `application/json`.
fn known(media_type: &str) -> Option<&str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    (media_type::is_index(essence) || media_type::is_manifest(essence)).then_some(essence)
}
