//! A document about an image, as it is attached to one.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use sha1::{Digest as _, Sha1};
use wincimg_oci::document::{Artifact, Descriptor, Digest, DocumentError, sha256};

use super::inventory::Inventory;
use super::slsa::{BuildProvenance, is_equal_ignoring_times};
use super::{cyclonedx, slsa, spdx};

/// The annotation of registries for when something was made.
const CREATED: &str = "org.opencontainers.image.created";
/// The annotation by which tools find what a statement says, without reading it.
pub(crate) const PREDICATE_TYPE: &str = "in-toto.io/predicate-type";

/// A form of a bill of materials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SbomFormat {
    /// SPDX 2.3, as JSON.
    Spdx,
    /// `CycloneDX` 1.6, as JSON.
    #[cfg_attr(feature = "clap", value(name = "cyclonedx"))]
    CycloneDx,
}

impl SbomFormat {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spdx => "SPDX",
            Self::CycloneDx => "CycloneDX",
        }
    }

    /// The type of such a document.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Spdx => "application/spdx+json",
            Self::CycloneDx => "application/vnd.cyclonedx+json",
        }
    }
}

/// The type of a statement about how something was made.
pub(crate) const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A document about an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDocument {
    /// What people call it.
    pub name: &'static str,
    /// Its type, which is its artifact's too.
    pub media_type: &'static str,
    /// What is said of it beside it.
    pub annotations: BTreeMap<String, String>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl ImageDocument {
    /// The bill of materials of an image.
    pub fn sbom(
        form: SbomFormat,
        inventory: &Inventory,
        tool: Tool,
    ) -> Result<Self, serde_json::Error> {
        let bytes = match form {
            SbomFormat::Spdx => spdx::write(inventory, tool)?,
            SbomFormat::CycloneDx => cyclonedx::write(inventory, tool)?,
        };
        let created = inventory.created.to_string();
        Ok(Self {
            name: form.name(),
            media_type: form.media_type(),
            annotations: BTreeMap::from([(CREATED.to_owned(), created)]),
            bytes: bytes.into(),
        })
    }

    /// How an image came to be.
    pub fn provenance(
        name: &str,
        image: &Digest,
        build: &BuildProvenance,
        tool: Tool,
    ) -> Result<Self, serde_json::Error> {
        let predicate = (PREDICATE_TYPE.to_owned(), slsa::PREDICATE.to_owned());
        Ok(Self {
            name: "provenance",
            media_type: IN_TOTO,
            annotations: BTreeMap::from([predicate]),
            bytes: slsa::write(name, image, build, tool)?.into(),
        })
    }

    /// Returns true if two runs may make different ones of the same.
    pub(crate) fn depends_on_times(&self) -> bool {
        self.media_type == IN_TOTO
    }

    /// Returns true if one that is there already says the same: byte for byte, or but for a run's
    /// times.
    pub(crate) fn is_equivalent(&self, other: &[u8]) -> bool {
        self.bytes == other
            || (self.depends_on_times() && is_equal_ignoring_times(&self.bytes, other))
    }

    /// The blob that it is in a registry.
    pub fn blob(&self) -> Descriptor {
        let size = self.bytes.len() as u64;
        Descriptor::new(self.media_type, sha256(&self.bytes), size)
    }

    /// The manifest that says which image it is about.
    pub fn artifact(&self, subject: &Descriptor) -> Result<Artifact, DocumentError> {
        let annotations = self.annotations.clone();
        Artifact::new(self.media_type, subject, vec![self.blob()], annotations)
    }
}

/// A name for a document that is the same whenever it is made, and nobody else's: a UUID of
/// version 5 (RFC 9562) in the namespace of URLs.
pub(super) fn uuid_of(url: &str) -> String {
    const URLS: [u8; 16] = [
        0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30,
        0xc8,
    ];
    let mut hash = Sha1::new();
    hash.update(URLS);
    hash.update(url);
    let mut bytes: [u8; 20] = hash.finalize().into();
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(&bytes[..16]);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// The program that makes a document, as documents name their tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Where it comes from: a URL, below which documents have their names.
    pub home: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_documents_name_is_what_others_make_of_the_same_url() {
        // python3 -c 'import uuid; print(uuid.uuid5(uuid.NAMESPACE_URL, "http://example.org/"))'
        let expected = "715d503b-5f95-5532-9100-00663eb45ade";
        assert_eq!(uuid_of("http://example.org/"), expected);
    }
}
