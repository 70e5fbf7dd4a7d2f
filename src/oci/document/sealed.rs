//! A parsed value together with the exact bytes that carry it, so that what is only passed on keeps
//! its digest.

use std::ops::Deref;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Descriptor, Digest, DocumentError, Hasher, Index, Manifest, media_type, sha256};

/// A value, the bytes it was read from or written as, and their digest.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed<T> {
    value: T,
    bytes: Bytes,
    digest: Digest,
}

/// What kinds of values documents carry, for error messages.
pub trait Content: Serialize + DeserializeOwned {
    /// "image manifest", "image index", …
    const WHAT: &'static str;
}

impl<T: Content> Sealed<T> {
    /// Writes a new value.
    pub fn new(value: T) -> Result<Self, DocumentError> {
        let bytes = serde_json::to_vec(&value).map_err(|source| DocumentError::Write {
            what: T::WHAT,
            source,
        })?;
        let digest = sha256(&bytes);
        Ok(Self {
            value,
            bytes: bytes.into(),
            digest,
        })
    }

    /// Reads a value whose digest nobody has stated.
    pub fn parse(bytes: Bytes) -> Result<Self, DocumentError> {
        let digest = sha256(&bytes);
        Self::read(bytes, digest)
    }

    /// Reads a value that must have the digest given.
    pub fn verify(bytes: Bytes, expected: &Digest) -> Result<Self, DocumentError> {
        verify(&bytes, expected)?;
        Self::read(bytes, expected.clone())
    }

    fn read(bytes: Bytes, digest: Digest) -> Result<Self, DocumentError> {
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self {
                value,
                bytes,
                digest,
            }),
            Err(source) => Err(DocumentError::Shape {
                digest,
                what: T::WHAT,
                source,
            }),
        }
    }

    /// A new value made from a changed copy of this one; the same bytes where nothing changed.
    pub fn edit(&self, change: impl FnOnce(&mut T)) -> Result<Self, DocumentError>
    where
        T: Clone + PartialEq,
    {
        let mut value = self.value.clone();
        change(&mut value);
        if value == self.value {
            return Ok(self.clone());
        }
        Self::new(value)
    }
}

impl<T> Sealed<T> {
    /// The exact bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The digest of the bytes.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Sealed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Checks that the bytes have the digest given.
fn verify(bytes: &[u8], expected: &Digest) -> Result<(), DocumentError> {
    let mut hasher = Hasher::of(expected)?;
    hasher.update(bytes);
    hasher.check(expected)
}

/// What a reference leads to: one image, or an index of several.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// One image.
    Manifest(Box<Sealed<Manifest>>),
    /// Several, by platform.
    Index(Sealed<Index>),
}

/// The fields by which documents are told apart.
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
    /// Reads a document that must have the digest given.
    pub fn verify(announced: &str, bytes: Bytes, expected: &Digest) -> Result<Self, DocumentError> {
        verify(&bytes, expected)?;
        Self::read(announced, bytes, expected.clone())
    }

    fn read(announced: &str, bytes: Bytes, digest: Digest) -> Result<Self, DocumentError> {
        let outline: Outline = match serde_json::from_slice(&bytes) {
            Ok(outline) => outline,
            Err(source) => {
                return Err(DocumentError::Shape {
                    digest,
                    what: "manifest or index",
                    source,
                });
            }
        };
        if outline.schema_version == 1 {
            return Err(DocumentError::SchemaOne { digest });
        }
        if outline.is_index(announced, &digest)? {
            Ok(Self::Index(Sealed::<Index>::read(bytes, digest)?))
        } else {
            Ok(Self::Manifest(Box::new(Sealed::<Manifest>::read(
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

    /// The type under which the document is published.
    pub fn media_type(&self) -> &str {
        match self {
            Self::Manifest(manifest) => manifest.media_type(),
            Self::Index(index) => index.media_type(),
        }
    }

    /// A pointer to the document.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(
            self.media_type(),
            self.digest().clone(),
            self.bytes().len() as u64,
        )
    }
}

impl Outline {
    /// Whether this is an index; an error where the type stated inside, the type announced and the
    /// shape do not all say the same, which is how one digest could mean two images.
    fn is_index(&self, announced: &str, digest: &Digest) -> Result<bool, DocumentError> {
        let has_image = self.config.is_some() || self.layers.is_some();
        let has_entries = self.manifests.is_some();
        let ambiguous = |reason: String| DocumentError::Ambiguous {
            digest: digest.clone(),
            reason,
        };
        if has_image && has_entries {
            return Err(ambiguous("it has both layers and manifests".to_owned()));
        }
        let announced = known(announced);
        let stated = self.media_type.as_deref().unwrap_or_default();
        if !stated.is_empty() && known(stated).is_none() {
            return Err(DocumentError::UnknownType {
                digest: digest.clone(),
                media_type: stated.to_owned(),
            });
        }
        if let (Some(announced), Some(stated)) = (announced, known(stated))
            && announced != stated
        {
            return Err(ambiguous(format!(
                "it was announced as {announced} and says to be {stated}"
            )));
        }
        let is_index = match known(stated).or(announced) {
            Some(kind) => media_type::is_index(kind),
            None if has_entries => true,
            None if has_image => false,
            None => {
                return Err(DocumentError::UnknownType {
                    digest: digest.clone(),
                    media_type: String::new(),
                });
            }
        };
        if (is_index && has_image) || (!is_index && has_entries) {
            return Err(ambiguous("its type and its content differ".to_owned()));
        }
        Ok(is_index)
    }
}

/// The type, where it says what the document is; a registry may send `application/json`.
fn known(media_type: &str) -> Option<&str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    (media_type::is_index(essence) || media_type::is_manifest(essence)).then_some(essence)
}
