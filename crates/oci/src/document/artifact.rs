//! Artifacts attached to an image: facts, an SBOM, a signature.
//!
//! In the image specification, an artifact is an image manifest: `subject` is the manifest it
//! refers to, `artifactType` its type, its layers are its content, and its configuration is empty.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use wincimg_common::diagnose::Problem;

use super::descriptor::Descriptor;
use super::digest::sha256;
use super::manifest::Manifest;
use super::media_type::ManifestFormat;
use super::verbatim::Verbatim;

/// The content of an empty configuration.
pub const EMPTY: &[u8] = b"{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const ARTIFACT_TYPE: &str = "artifactType";
const SUBJECT: &str = "subject";
const ANNOTATIONS: &str = "annotations";

/// The manifest of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    manifest: Verbatim<Manifest>,
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
            manifest: Verbatim::new(manifest)?,
            kind: artifact_type.to_owned(),
            subject,
            annotations,
        })
    }

    /// Interprets a manifest as an artifact; `None` without a subject.
    pub fn read(manifest: Verbatim<Manifest>) -> Option<Self> {
        let field = |name: &str| manifest.other.get(name);
        let subject = Descriptor::deserialize(field(SUBJECT)?).ok()?;
        let stated = field(ARTIFACT_TYPE).and_then(Value::as_str);
        let artifact_type = stated.filter(|stated| !stated.is_empty());
        let annotations = field(ANNOTATIONS).and_then(|it| BTreeMap::deserialize(it).ok());
        Some(Self {
            kind: artifact_type
                .unwrap_or(&manifest.config.media_type)
                .to_owned(),
            subject,
            annotations: annotations.unwrap_or_default(),
            manifest,
        })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Verbatim<Manifest> {
        &self.manifest
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
        let manifest = &self.manifest;
        let mut entry = manifest.descriptor(manifest.media_type());
        entry.annotations.clone_from(&self.annotations);
        let kind = self.kind.as_str().into();
        entry.other.insert(ARTIFACT_TYPE.to_owned(), kind);
        entry
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
    use crate::document::{Platform, media_type};

    fn subject() -> Descriptor {
        Descriptor::new(media_type::DOCKER_MANIFEST, sha256(b"image"), 5)
    }

    #[test]
    fn an_artifact_reads_back_from_its_bytes_and_names_its_subject_alone() {
        let about = subject().with_platform(Platform::windows("10.0.17763.973"));
        let content = vec![Descriptor::new("application/x", sha256(b"content"), 7)];
        let annotations = BTreeMap::from([("format".to_owned(), "1".to_owned())]);
        let artifact = Artifact::new("application/t", &about, content, annotations).unwrap();
        let bytes = artifact.manifest().bytes().clone();
        let read = Artifact::read(Verbatim::parse(bytes).unwrap()).unwrap();
        assert_eq!(read, artifact);
        assert_eq!(read.subject(), &subject());
        assert_eq!(read.entry().artifact_type(), Some("application/t"));
        assert_eq!(read.entry().annotations["format"], "1");
        assert_eq!(read.manifest().is_image_by_type(), Some(false));
    }

    #[test]
    fn the_type_of_an_older_tools_artifact_is_its_configurations() {
        let text = json!({
            "schemaVersion": 2,
            "config": {"mediaType": "application/old", "digest": sha256(EMPTY), "size": 2},
            "layers": [],
            "subject": subject(),
        });
        let manifest = Verbatim::parse(Bytes::from(text.to_string())).unwrap();
        let artifact = Artifact::read(manifest).unwrap();
        assert_eq!(artifact.artifact_type(), "application/old");
    }

    #[test]
    fn an_image_is_about_nothing() {
        let config = Descriptor::new(media_type::OCI_CONFIG, sha256(EMPTY), 2);
        let manifest = Manifest::new(ManifestFormat::Oci, config, Vec::new());
        assert_eq!(Artifact::read(Verbatim::new(manifest).unwrap()), None);
    }
}
