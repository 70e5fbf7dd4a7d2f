//! Documents attached to an image by any tool: artifacts that name it, cosign's tags of its digest,
//! and buildx's attestations in its index.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wincimg_oci::document::{Descriptor, Digest, Document};
use wincimg_oci::remote::cosign_tags;
use wincimg_oci::store::{Source, StoreError};

use super::document::{IN_TOTO, PREDICATE_TYPE, SbomFormat};
use super::slsa::PREDICATE;

/// Limit on the size of a document.
const LARGEST: u64 = 256 << 20;
/// Limit on the size of a document that is read for its predicate type alone.
const LARGEST_UNNAMED: u64 = 32 << 20;
/// Limit on the size of a statement's list of subjects.
const LARGEST_SUBJECTS: usize = 1 << 20;
/// Media type of an envelope with a statement and signatures.
const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Media type of an envelope with the material for its verification.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
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
    #[serde(skip)]
    content: Option<Descriptor>,
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
    /// The statement that it is or comes from.
    statement: Option<Bytes>,
}

impl AttachedContent {
    /// Returns true if it is or comes from a statement, and no image with one of these digests is a
    /// subject of that.
    pub fn is_about_another(&self, digests: &[&Digest]) -> bool {
        let statement = self.statement.as_ref();
        statement.is_some_and(|statement| !has_subject(statement, digests))
    }
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
/// index with attestations, or with documents of its own.
pub async fn list_attached(
    place: &Source,
    image: &Digest,
    named: &Document,
) -> Result<Vec<AttachedDocument>, StoreError> {
    let mut found = attached_to(place, image).await?;
    if named.digest() != image {
        found.extend(attached_to(place, named.digest()).await?);
    }
    if let Document::Index(index) = named {
        for entry in &index.manifests {
            // Where a registry lists referrers, newer ones of buildx are among them.
            let digest: &str = entry.digest.as_ref();
            let is_found = found.iter().any(|it| it.digest == digest);
            if entry.attested() != Some(image.as_ref()) || is_found {
                continue;
            }
            let Document::Manifest(manifest) = place.document(entry).await? else {
                continue;
            };
            found.extend(documents(&manifest.layers, &entry.digest, None, None));
        }
    }
    Ok(found)
}

/// The documents of the artifacts and cosign's tags of a manifest.
async fn attached_to(
    place: &Source,
    subject: &Digest,
) -> Result<Vec<AttachedDocument>, StoreError> {
    let mut found: Vec<AttachedDocument> = Vec::new();
    for artifact in place.artifacts(subject, None).await? {
        let predicate = predicate_in(artifact.annotations());
        let media_type = Some(artifact.artifact_type());
        found.extend(documents(
            artifact.layers(),
            artifact.document().digest(),
            media_type,
            predicate,
        ));
    }
    for (_, tag) in cosign_tags(subject) {
        let Some(digest) = place.head(&tag).await? else {
            continue;
        };
        let Document::Manifest(manifest) = place.resolve(Some(digest.as_ref())).await? else {
            continue;
        };
        found.extend(documents(&manifest.layers, manifest.digest(), None, None));
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

fn predicate_in(annotations: &BTreeMap<String, String>) -> Option<&str> {
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
        let is_statement =
            inside.is_some() || content.media_type == IN_TOTO || self.is_provenance();
        let (bytes, is_signed) = inside.unwrap_or((bytes, false));
        let statement = is_statement.then(|| bytes.clone());
        let of_bill = statement.as_ref().filter(|_| self.what.is_sbom(None));
        let bill = of_bill.and_then(bill_in);
        Ok(Some(AttachedContent {
            bytes: bill.unwrap_or(bytes),
            is_signed,
            statement,
        }))
    }

    /// Adds the predicate type of a statement without an annotation for it, unless that is too
    /// large to be read for this.
    pub async fn with_predicate(mut self, place: &Source) -> Result<Self, StoreError> {
        let is_statement = self.is_enveloped || self.media_type == IN_TOTO;
        let content = self.content.as_ref();
        let is_small = content.is_some_and(|content| content.size <= LARGEST_UNNAMED);
        let is_unnamed = self.predicate_type.is_none() && self.what == DocumentKind::Other;
        if is_statement && is_small && is_unnamed {
            let read = self.read(place).await?;
            let named = read.and_then(|it| Statement::parse(&it.bytes)?.predicate_type);
            self.what = DocumentKind::from_media_type(&self.media_type, named.as_deref());
            self.predicate_type = named;
        }
        Ok(self)
    }

    /// Returns true if it is provenance in the same format as ours.
    pub fn is_provenance(&self) -> bool {
        self.what == DocumentKind::Provenance || self.predicate_type.as_deref() == Some(PREDICATE)
    }
}

/// An envelope. Of all documents, which anybody may have attached, only the fields that are needed
/// are kept: values of any content take many times its size.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    payload: Cow<'a, str>,
    signatures: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct Bundle<'a> {
    #[serde(borrow, rename = "dsseEnvelope")]
    envelope: Envelope<'a>,
}

#[derive(Deserialize)]
struct Statement<'a> {
    #[serde(borrow)]
    subject: Option<&'a RawValue>,
    #[serde(rename = "predicateType")]
    predicate_type: Option<String>,
    #[serde(borrow)]
    predicate: Option<&'a RawValue>,
}

/// A predicate of cosign 1 for any document.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct CosignPredicate<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(rename = "Timestamp")]
    _timestamp: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Subject {
    /// Hashes by their algorithms.
    digest: BTreeMap<String, String>,
}

impl<'a> Statement<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Payload of an envelope, or of one in a bundle, and whether it is signed.
pub(super) fn unwrap_envelope(bytes: &[u8]) -> Option<(Bytes, bool)> {
    let bundle = serde_json::from_slice::<Bundle<'_>>(bytes);
    let envelope = bundle.map(|bundle| bundle.envelope);
    let envelope = envelope.or_else(|_| serde_json::from_slice(bytes)).ok()?;
    let payload = STANDARD.decode(envelope.payload.as_bytes()).ok()?;
    let signatures = envelope.signatures;
    let is_signed = signatures.is_some_and(|all| !all.is_empty());
    Some((payload.into(), is_signed))
}

/// The bill of materials that a statement has as its predicate: cosign writes SPDX as a string of
/// JSON or of tag-value, and earlier versions wrap the bill.
pub(super) fn bill_in(statement: &Bytes) -> Option<Bytes> {
    let predicate = Statement::parse(statement)?.predicate?;
    let wrapped = serde_json::from_str::<CosignPredicate<'_>>(predicate.get());
    let bill = wrapped.map_or(predicate, |wrapped| wrapped.data);
    Some(match serde_json::from_str::<String>(bill.get()) {
        Ok(text) => text.into(),
        Err(_) => statement.slice_ref(bill.get().as_bytes()),
    })
}

pub(super) fn has_subject(statement: &[u8], digests: &[&Digest]) -> bool {
    let listed = Statement::parse(statement).and_then(|it| it.subject);
    let listed = listed.filter(|listed| listed.get().len() <= LARGEST_SUBJECTS);
    let subjects = listed.and_then(|listed| serde_json::from_str(listed.get()).ok());
    let subjects: Vec<Subject> = subjects.unwrap_or_default();
    let is_own = |subject: &Subject, own: &Digest| {
        let stated = subject.digest.get(own.algorithm());
        stated.is_some_and(|stated| stated == own.digest())
    };
    let mut subjects = subjects.iter();
    subjects.any(|subject| digests.iter().any(|&own| is_own(subject, own)))
}

#[cfg(test)]
mod tests {
    use wincimg_oci::document::sha256;

    use super::*;

    #[test]
    fn a_subject_is_named_by_its_digest() {
        let image = sha256(b"image");
        let names = |subjects: &str| {
            let text = format!(r#"{{"subject": {subjects}, "predicate": [[0]]}}"#);
            has_subject(text.as_bytes(), &[&sha256(b"index"), &image])
        };
        let subject =
            |algorithm: &str, hash: &str| format!(r#"{{"digest": {{"{algorithm}": "{hash}"}}}}"#);
        let own = subject("sha256", image.digest());
        assert!(names(&format!("[{own}]")));
        let other = subject("sha256", sha256(b"other").digest());
        assert!(names(&format!("[{other}, {own}]")));
        assert!(!names(&format!("[{other}]")));
        // Anything but a list of subjects names none.
        let of_other_kind = subject("sha512", image.digest());
        let twice = format!(r#"[{other}], "subject": [{own}]"#);
        let long = format!("[{own}{}]", format!(", {other}").repeat(20_000));
        let of_other_kind = format!("[{of_other_kind}]");
        for subjects in ["[]", "0", "[0]", &own, &of_other_kind, &twice, &long] {
            assert!(!names(subjects), "{subjects:.100}");
        }
        assert!(!has_subject(b"[0, 0]", &[&image]));
    }

    #[test]
    fn a_bill_is_taken_out_as_it_is_written() {
        let bill = r#"{ "a":[1,  2] }"#;
        let quoted = serde_json::to_string(bill).unwrap();
        for predicate in [
            bill,
            &quoted,
            &format!(r#"{{"Data": {bill}, "Timestamp": "x"}}"#),
            &format!(r#"{{"Data": {quoted}, "Timestamp": "x"}}"#),
        ] {
            let statement = format!(r#"{{"predicate": {predicate} , "predicateType": "x"}}"#);
            assert_eq!(bill_in(&statement.into()).unwrap(), bill, "{predicate}");
        }
        let own = r#"{"Data": {}, "bomFormat": "CycloneDX"}"#;
        let statement = format!(r#"{{"predicate": {own}}}"#);
        assert_eq!(bill_in(&statement.into()).unwrap(), own);
        assert_eq!(bill_in(&Bytes::from_static(b"{}")), None);
    }

    #[test]
    fn an_envelope_is_unwrapped_also_in_a_bundle() {
        let envelope = r#"{"payload": "e30=", "signatures": [{"sig": "x"}]}"#;
        let bundle = format!(r#"{{"dsseEnvelope": {envelope}}}"#);
        for text in [envelope, &bundle] {
            let (payload, is_signed) = unwrap_envelope(text.as_bytes()).unwrap();
            assert_eq!((&payload[..], is_signed), (&b"{}"[..], true), "{text}");
        }
        for unsigned in [
            r#"{"payload": "e30="}"#,
            r#"{"payload": "e30=", "signatures": []}"#,
        ] {
            let (_, is_signed) = unwrap_envelope(unsigned.as_bytes()).unwrap();
            assert!(!is_signed, "{unsigned}");
        }
        assert_eq!(unwrap_envelope(b"[0, 0]"), None);
    }
}
