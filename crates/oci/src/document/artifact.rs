//! Artifacts attached to an image: facts, an SBOM, a signature.
//!
//! In the image specification, an artifact is a manifest or an index: `subject` is the manifest it
//! refers to, `artifactType` its type. The layers of a manifest are its content, and its
//! configuration is empty.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use wincimg_common::diagnose::Problem;

use super::any::Document;
use super::descriptor::Descriptor;
use super::digest::{Digest, sha256};
use super::manifest::Manifest;
use super::media_type::ManifestFormat;
use super::verbatim::Verbatim;

/// The content of an empty configuration.
pub const EMPTY: &[u8] = b"{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const ARTIFACT_TYPE: &str = "artifactType";
const SUBJECT: &str = "subject";
const ANNOTATIONS: &str = "annotations";

/// An artifact: its manifest, or an index of several.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    document: Document,
    kind: String,
    subject: Descriptor,
    annotations: BTreeMap<String, String>,
}

impl Artifact {
    /// Creates an artifact of a type attached to `subject`, with separate content.
    pub fn new(
        artifact_type: &str,
        subject: &Descriptor,
        content: Vec<Descriptor>,
        annotations: BTreeMap<String, String>,
    ) -> Result<Self, Problem> {
        let subject = bare(subject);
        let config = Descriptor::new(EMPTY_TYPE, sha256(EMPTY), EMPTY.len() as u64);
        let mut manifest = Manifest::new(ManifestFormat::Oci, config, content);
        let mut say = |name: &str, value: Value| manifest.other.insert(name.to_owned(), value);
        say(ARTIFACT_TYPE, artifact_type.into());
        say(SUBJECT, json!(subject));
        if !annotations.is_empty() {
            say(ANNOTATIONS, json!(annotations));
        }
        Ok(Self {
            document: Document::Manifest(Box::new(Verbatim::new(manifest)?)),
            kind: artifact_type.to_owned(),
            subject,
            annotations,
        })
    }

    /// Interprets a document as an artifact; `None` without a subject.
    pub fn read(document: Document) -> Option<Self> {
        let (fields, unstated) = match &document {
            Document::Manifest(manifest) => (&manifest.other, &*manifest.config.media_type),
            Document::Index(index) => (&index.other, index.media_type()),
        };
        let subject = Descriptor::deserialize(fields.get(SUBJECT)?).ok()?;
        let stated = fields.get(ARTIFACT_TYPE).and_then(Value::as_str);
        let artifact_type = stated.filter(|stated| !stated.is_empty());
        let kind = artifact_type.unwrap_or(unstated).to_owned();
        let annotations = fields.get(ANNOTATIONS);
        let annotations = annotations.and_then(|it| BTreeMap::deserialize(it).ok());
        Some(Self {
            kind,
            subject,
            annotations: annotations.unwrap_or_default(),
            document,
        })
    }

    /// The manifest or index.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Its content; that of an index is in its entries.
    pub fn layers(&self) -> &[Descriptor] {
        match &self.document {
            Document::Manifest(manifest) => &manifest.layers,
            Document::Index(_) => &[],
        }
    }

    pub(crate) fn has_empty_config(&self) -> bool {
        match &self.document {
            Document::Manifest(manifest) => manifest.config.digest == sha256(EMPTY),
            Document::Index(_) => false,
        }
    }

    /// Its artifact type.
    pub fn artifact_type(&self) -> &str {
        &self.kind
    }

    /// The manifest that it is attached to.
    pub fn subject(&self) -> &Descriptor {
        &self.subject
    }

    /// Its annotations.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.annotations
    }

    /// Returns the artifact's entry in a list of referrers.
    pub fn entry(&self) -> Descriptor {
        let mut entry = self.document.descriptor();
        entry.annotations.clone_from(&self.annotations);
        let kind = self.kind.as_str().into();
        entry.other.insert(ARTIFACT_TYPE.to_owned(), kind);
        entry
    }
}

/// Returns the digest of the manifest that a document is attached to, if any, also of a document
/// whose type is not supported.
pub(crate) fn subject_in(document: &[u8]) -> serde_json::Result<Option<Digest>> {
    #[derive(Deserialize)]
    struct Subject {
        digest: Digest,
    }
    #[derive(Deserialize)]
    struct Referrer {
        subject: Option<Subject>,
    }
    let referrer: Referrer = serde_json::from_slice(document)?;
    Ok(referrer.subject.map(|subject| subject.digest))
}

impl Document {
    /// Returns true for an artifact, which Docker's format does not have.
    pub(crate) fn is_artifact(&self) -> bool {
        let fields = match self {
            Self::Manifest(manifest) => &manifest.other,
            Self::Index(index) => &index.other,
        };
        [ARTIFACT_TYPE, SUBJECT]
            .iter()
            .any(|field| fields.contains_key(*field))
    }
}

impl Descriptor {
    /// Returns the artifact type of an entry, if it has one.
    pub fn artifact_type(&self) -> Option<&str> {
        self.other.get(ARTIFACT_TYPE)?.as_str()
    }
}

/// Returns a descriptor with only the required fields: an index's entry also has a platform.
fn bare(subject: &Descriptor) -> Descriptor {
    let media_type = subject.media_type.as_str();
    Descriptor::new(media_type, subject.digest.clone(), subject.size)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::document::{Index, Platform, media_type};

    fn subject() -> Descriptor {
        Descriptor::new(media_type::DOCKER_MANIFEST, sha256(b"image"), 5)
    }

    /// The document of this text, which states its type.
    fn document(text: &Value) -> Document {
        let bytes = Bytes::from(text.to_string());
        let digest = sha256(&bytes);
        Document::verify("", bytes, &digest).unwrap()
    }

    #[test]
    fn an_artifact_reads_back_from_its_bytes_and_names_its_subject_alone() {
        let about = subject().with_platform(Platform::windows("10.0.17763.973"));
        let content = vec![Descriptor::new("application/x", sha256(b"content"), 7)];
        let annotations = BTreeMap::from([("format".to_owned(), "1".to_owned())]);
        let artifact = Artifact::new("application/t", &about, content, annotations).unwrap();
        let bytes = artifact.document().bytes().clone();
        let again = Document::verify("", bytes, artifact.document().digest()).unwrap();
        assert!(again.is_artifact());
        let read = Artifact::read(again).unwrap();
        assert_eq!(read, artifact);
        assert_eq!(read.subject(), &subject());
        assert_eq!(read.layers().len(), 1);
        assert!(read.has_empty_config());
        assert_eq!(read.entry().artifact_type(), Some("application/t"));
        assert_eq!(read.entry().annotations["format"], "1");
        let Document::Manifest(manifest) = read.document() else {
            panic!("it is an index");
        };
        assert_eq!(manifest.is_image_by_type(), Some(false));
    }

    #[test]
    fn an_index_with_a_subject_is_an_artifact_too() {
        let read = Artifact::read(document(&json!({
            "schemaVersion": 2,
            "mediaType": media_type::OCI_INDEX,
            "artifactType": "application/list",
            "manifests": [],
            "subject": subject(),
        })));
        let read = read.unwrap();
        assert_eq!(read.subject(), &subject());
        let entry = read.entry();
        assert_eq!(entry.artifact_type(), Some("application/list"));
        assert_eq!(entry.media_type, media_type::OCI_INDEX);
        assert!(read.layers().is_empty());
    }

    #[test]
    fn the_type_of_an_older_tools_artifact_is_its_configurations() {
        let artifact = Artifact::read(document(&json!({
            "schemaVersion": 2,
            "config": {"mediaType": "application/old", "digest": sha256(EMPTY), "size": 2},
            "layers": [],
            "subject": subject(),
        })));
        assert_eq!(artifact.unwrap().artifact_type(), "application/old");
    }

    #[test]
    fn an_image_is_about_nothing() {
        let config = Descriptor::new(media_type::OCI_CONFIG, sha256(EMPTY), 2);
        let manifest = Manifest::new(ManifestFormat::Oci, config, Vec::new());
        let manifest = Document::Manifest(Box::new(Verbatim::new(manifest).unwrap()));
        assert_eq!(Artifact::read(manifest), None);
        let index = Index::new(ManifestFormat::Oci, Vec::new());
        let index = Document::Index(Verbatim::new(index).unwrap());
        assert_eq!(Artifact::read(index), None);
    }
}
