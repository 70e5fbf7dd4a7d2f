//! Documents about an image, in the form in which they are attached.

use std::collections::BTreeMap;
use std::io::Write;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use sha1::{Digest as _, Sha1};
use wincimg_common::diagnose::Problem;
use wincimg_common::json::EscapingWriter;
use wincimg_oci::document::{Artifact, Descriptor, Digest, sha256};

use super::inventory::Inventory;
use super::slsa::{BuildProvenance, is_equal_ignoring_times};
use super::{cyclonedx, slsa, spdx};

/// Registry annotation with a creation time.
const CREATED: &str = "org.opencontainers.image.created";
/// Annotation by which tools find a statement's predicate type without reading it.
pub(crate) const PREDICATE_TYPE: &str = "in-toto.io/predicate-type";

/// Format of a bill of materials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SbomFormat {
    /// SPDX 2.3, as JSON.
    Spdx,
    /// CycloneDX 1.6, as JSON.
    #[cfg_attr(feature = "clap", value(name = "cyclonedx"))]
    CycloneDx,
}

impl SbomFormat {
    /// Usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spdx => "SPDX",
            Self::CycloneDx => "CycloneDX",
        }
    }

    /// Media type of such a document.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Spdx => "application/spdx+json",
            Self::CycloneDx => "application/vnd.cyclonedx+json",
        }
    }
}

/// Media type of an in-toto statement.
pub(crate) const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A document about an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageDocument {
    /// Usual name.
    pub name: &'static str,
    /// Media type of the document and of its artifact.
    pub media_type: &'static str,
    /// Annotations of its artifact.
    pub annotations: BTreeMap<String, String>,
    /// Its bytes.
    pub bytes: Bytes,
}

impl ImageDocument {
    /// Creates the bill of materials of an image.
    pub fn sbom(
        form: SbomFormat,
        inventory: &Inventory,
        tool: Tool,
    ) -> Result<Self, serde_json::Error> {
        let mut bytes = Vec::new();
        write_sbom(form, inventory, tool, &mut bytes)?;
        let created = inventory.created.to_string();
        Ok(Self {
            name: form.name(),
            media_type: form.media_type(),
            annotations: BTreeMap::from([(CREATED.to_owned(), created)]),
            bytes: bytes.into(),
        })
    }

    /// Creates the provenance of an image.
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

    /// Returns true if the document of the same image may differ between runs.
    pub(crate) fn depends_on_times(&self) -> bool {
        self.media_type == IN_TOTO
    }

    /// Returns true if an existing document has the same content, apart from the times of a run.
    pub(crate) fn is_equivalent(&self, other: &[u8]) -> bool {
        self.bytes == other
            || (self.depends_on_times() && is_equal_ignoring_times(&self.bytes, other))
    }

    /// Descriptor of its blob.
    pub fn blob(&self) -> Descriptor {
        let size = self.bytes.len() as u64;
        Descriptor::new(self.media_type, sha256(&self.bytes), size)
    }

    /// Artifact manifest for the image.
    pub fn artifact(&self, subject: &Descriptor) -> Result<Artifact, Problem> {
        let annotations = self.annotations.clone();
        Artifact::new(self.media_type, subject, vec![self.blob()], annotations)
    }
}

/// Writes the bill of materials of an image, which is larger than its inventory.
pub fn write_sbom(
    form: SbomFormat,
    inventory: &Inventory,
    tool: Tool,
    out: &mut dyn Write,
) -> Result<(), serde_json::Error> {
    let out = EscapingWriter(out);
    match form {
        SbomFormat::Spdx => spdx::write(inventory, tool, out),
        SbomFormat::CycloneDx => cyclonedx::write(inventory, tool, out),
    }
}

/// An object without the fields that are absent or empty lists.
pub(super) fn present(mut object: Value) -> Value {
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && !is_empty(value));
    }
    object
}

/// A unique name for a document that is the same whenever it is created: a UUID of version 5 (RFC
/// 9562) in the namespace of URLs.
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

/// The program that creates a document, as documents name their tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Homepage: the base URL of its documents' names.
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
