//! Documents attached to an image by any tool: artifacts that name it, cosign's tags of its digest,
//! and buildx's attestations in its index.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use wincimg_oci::document::{Descriptor, Digest, Document};
use wincimg_oci::remote::tag_of;
use wincimg_oci::store::{Source, StoreError};

use super::document::{IN_TOTO, PREDICATE_TYPE, SbomFormat};
use super::slsa::PREDICATE;

/// Limit on the size of a document.
const LARGEST: u64 = 512 << 20;
/// Media type of an envelope with a statement and signatures.
const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Media type of an envelope with the material for its verification.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// Suffixes of the digest in cosign's tags.
const TAG_SUFFIXES: [&str; 3] = ["sbom", "att", "sig"];
/// Annotations that name the predicate of a statement.
const PREDICATE_ANNOTATIONS: [&str; 3] = [
    PREDICATE_TYPE,
    "predicateType",
    "dev.sigstore.bundle.predicateType",
];

/// A document attached to an image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttachedDocument {
    /// Kind.
    pub what: DocumentKind,
    /// Media type.
    pub media_type: String,
    /// Type of its predicate, if it is a statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicate_type: Option<String>,
    /// The digest of its manifest.
    pub digest: String,
    /// Its content.
    #[serde(skip)]
    content: Option<Descriptor>,
    /// True if it is in an envelope.
    #[serde(skip)]
    is_enveloped: bool,
}

/// The content of an attached document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedContent {
    /// Its bytes.
    pub bytes: Bytes,
    /// True if its envelope has a signature, which is not verified.
    pub is_signed: bool,
}

/// Kind of an attached document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// A bill of materials in SPDX.
    Spdx,
    /// A bill of materials in `CycloneDX`.
    CycloneDx,
    /// Build provenance.
    Provenance,
    /// A signature.
    Signature,
    /// Anything else.
    Other,
}

impl DocumentKind {
    /// Returns true if it is a bill of materials, of the given format or of any.
    pub fn is_sbom(self, form: Option<SbomFormat>) -> bool {
        match form {
            Some(SbomFormat::Spdx) => self == Self::Spdx,
            Some(SbomFormat::CycloneDx) => self == Self::CycloneDx,
            None => matches!(self, Self::Spdx | Self::CycloneDx),
        }
    }

    fn from_media_type(media_type: &str, predicate: Option<&str>) -> Self {
        let has =
            |word: &str| media_type.contains(word) || predicate.is_some_and(|it| it.contains(word));
        if has("spdx") {
            Self::Spdx
        } else if has("cyclonedx") {
            Self::CycloneDx
        } else if predicate.is_some_and(|it| it.contains("slsa.dev/provenance")) {
            Self::Provenance
        } else if has("signature") || has("simplesigning") || has("notary") {
            Self::Signature
        } else {
            Self::Other
        }
    }
}

/// Lists the documents attached to an image; `named` is the requested manifest, which may be an
/// index with attestations.
pub async fn list_attached(
    place: &Source,
    image: &Digest,
    named: &Document,
) -> Result<Vec<AttachedDocument>, StoreError> {
    let mut found = Vec::new();
    for artifact in place.artifacts(image, None).await? {
        let manifest = artifact.manifest();
        let predicate = predicate_in(artifact.annotations());
        let media_type = Some(artifact.artifact_type());
        found.extend(documents(
            &manifest.layers,
            manifest.digest(),
            media_type,
            predicate,
        ));
    }
    if let Source::Registry(repository) = place {
        for ending in TAG_SUFFIXES {
            let tag = format!("{}.{ending}", tag_of(image));
            if repository.head_manifest(&tag).await?.is_none() {
                continue;
            }
            let Document::Manifest(manifest) = place.resolve(Some(&tag)).await? else {
                continue;
            };
            found.extend(documents(&manifest.layers, manifest.digest(), None, None));
        }
    }
    if let Document::Index(index) = named {
        let is_about = |entry: &&Descriptor| entry.attested() == Some(image.as_ref());
        for entry in index.manifests.iter().filter(is_about) {
            let Document::Manifest(manifest) = place.document(entry).await? else {
                continue;
            };
            found.extend(documents(&manifest.layers, &entry.digest, None, None));
        }
    }
    Ok(found)
}

/// The documents of a manifest, one for each of its contents, or one without content if there are
/// none. They have the given type, or that of their content.
fn documents(
    layers: &[Descriptor],
    manifest: &Digest,
    media_type: Option<&str>,
    predicate: Option<&str>,
) -> impl Iterator<Item = AttachedDocument> {
    let none = layers.is_empty().then_some(None);
    let contents = layers.iter().map(Some).chain(none);
    contents.map(move |content| AttachedDocument::new(media_type, manifest, content, predicate))
}

fn predicate_in(annotations: &std::collections::BTreeMap<String, String>) -> Option<&str> {
    let mut names = PREDICATE_ANNOTATIONS.iter();
    names
        .find_map(|name| annotations.get(*name))
        .map(String::as_str)
}

impl AttachedDocument {
    fn new(
        media_type: Option<&str>,
        manifest: &Digest,
        content: Option<&Descriptor>,
        predicate: Option<&str>,
    ) -> Self {
        let own = content.and_then(|content| predicate_in(&content.annotations));
        let predicate = own.or(predicate);
        let of_content = content.map_or("", |content| &content.media_type);
        let media_type = media_type.unwrap_or(of_content);
        Self {
            what: match DocumentKind::from_media_type(media_type, predicate) {
                DocumentKind::Other => DocumentKind::from_media_type(of_content, predicate),
                what => what,
            },
            media_type: media_type.to_owned(),
            predicate_type: predicate.map(str::to_owned),
            digest: manifest.to_string(),
            is_enveloped: of_content == ENVELOPE || of_content.starts_with(BUNDLE),
            content: content.cloned(),
        }
    }

    /// Reads the document and checks its digest; unwraps its envelope and, for a bill of materials
    /// in a statement, the statement.
    pub async fn read(&self, place: &Source) -> Result<Option<AttachedContent>, StoreError> {
        let Some(content) = &self.content else {
            return Ok(None);
        };
        let bytes = place.bytes(content, LARGEST).await?;
        let inside = if self.is_enveloped {
            unwrap_envelope(&bytes)
        } else {
            None
        };
        let is_statement = inside.is_some() || content.media_type == IN_TOTO;
        let mut found = inside.unwrap_or(AttachedContent {
            bytes,
            is_signed: false,
        });
        if is_statement
            && self.what.is_sbom(None)
            && let Some(bill) = predicate_of(&found.bytes)
        {
            found.bytes = bill;
        }
        Ok(Some(found))
    }

    /// Adds the predicate type of a statement without an annotation for it.
    pub async fn with_predicate(mut self, place: &Source) -> Result<Self, StoreError> {
        let is_statement = self.is_enveloped || self.media_type == IN_TOTO;
        if is_statement && self.predicate_type.is_none() && self.what == DocumentKind::Other {
            let printed = self.read(place).await?;
            let printed = printed.and_then(|it| serde_json::from_slice::<Value>(&it.bytes).ok());
            let printed =
                printed.and_then(|it| Some(it.get("predicateType")?.as_str()?.to_owned()));
            self.what = DocumentKind::from_media_type(&self.media_type, printed.as_deref());
            self.predicate_type = printed;
        }
        Ok(self)
    }

    /// Returns true if it is provenance in the same format as ours.
    pub fn is_provenance(&self) -> bool {
        self.what == DocumentKind::Provenance || self.predicate_type.as_deref() == Some(PREDICATE)
    }
}

/// Payload of an envelope, or of one in a bundle.
fn unwrap_envelope(bytes: &[u8]) -> Option<AttachedContent> {
    let envelope: Value = serde_json::from_slice(bytes).ok()?;
    let envelope = envelope.get("dsseEnvelope").unwrap_or(&envelope);
    let payload = envelope.get("payload")?.as_str()?;
    let signatures = envelope.get("signatures").and_then(Value::as_array);
    Some(AttachedContent {
        bytes: STANDARD.decode(payload).ok()?.into(),
        is_signed: signatures.is_some_and(|all| !all.is_empty()),
    })
}

/// Bill of materials in a statement.
fn predicate_of(bytes: &[u8]) -> Option<Bytes> {
    let statement: Value = serde_json::from_slice(bytes).ok()?;
    let predicate = statement.get("predicate")?;
    Some(serde_json::to_vec(predicate).ok()?.into())
}
