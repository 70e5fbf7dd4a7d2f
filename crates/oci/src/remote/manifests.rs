//! Manifests and indexes: small documents, preserved byte for byte.

use std::str::FromStr;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};
use wincimg_http::{HttpError, Payload, content_type, header_text};

use super::challenge::Scope;
use super::error::RegistryError;
use super::repository::Repository;
use crate::document::media_type::OCI_MANIFEST;
use crate::document::{Descriptor, Digest, sha256};

/// The supported formats, so that a registry does not convert to another one.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json";
/// The distribution specification's recommended maximum size of a manifest.
const LIMIT: u64 = 4 * 1024 * 1024;
const CONTENT_DIGEST: &str = "docker-content-digest";
const SUBJECT: &str = "oci-subject";

/// A manifest or an index as stored in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawManifest {
    /// The document, byte for byte.
    pub bytes: Bytes,
    /// Its media type, from the header or else from the document.
    pub media_type: String,
    /// The digest of the bytes.
    pub digest: Digest,
}

impl RawManifest {
    /// The document's descriptor.
    pub fn descriptor(&self) -> Descriptor {
        let size = self.bytes.len() as u64;
        Descriptor::new(self.media_type.as_str(), self.digest.clone(), size)
    }
}

impl Repository {
    /// Returns the descriptor for a tag or digest; `None` if not found.
    pub async fn head_manifest(&self, which: &str) -> Result<Option<Descriptor>, RegistryError> {
        let what = format!("look for manifest {which} of {self}");
        let mut request = self.request(Method::HEAD, &format!("manifests/{which}"), what);
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        let answer = self.head_or_get(request).await;
        let answer = answer.map(|response| described(which, response.headers()));
        match self.found(answer)? {
            // The digest header is optional: without it, the body is read.
            Some(None) => {
                let found = self.find_manifest(which).await?;
                Ok(found.map(|manifest| manifest.descriptor()))
            }
            found => Ok(found.flatten()),
        }
    }

    /// Returns the document for a tag or digest, verified.
    pub async fn get_manifest(&self, which: &str) -> Result<RawManifest, RegistryError> {
        if let Some(answer) = self.prefetched_manifest(which).await {
            return answer;
        }
        let http = &self.inner().http;
        http.retry(|| self.fetch_manifest_once(which)).await
    }

    /// A single attempt of [`Repository::get_manifest`].
    pub(super) async fn fetch_manifest_once(
        &self,
        which: &str,
    ) -> Result<RawManifest, RegistryError> {
        let what = format!("read manifest {which} of {self}");
        let mut request = self.request(Method::GET, &format!("manifests/{which}"), what);
        let accepted = HeaderValue::from_static(ACCEPTED);
        request.headers.insert(ACCEPT, accepted);
        let (headers, _, bytes) = self.inner().fetch_once(&request, LIMIT).await?;
        let promised = match Digest::from_str(which) {
            Ok(asked_for) => Some(asked_for),
            Err(_) => promised_digest(&headers),
        };
        let digest = verified(promised, &bytes, &format!("manifest {which} of {self}"))?;
        let media_type = content_type(&headers)
            .filter(|value| !value.is_empty() && *value != "application/json")
            .map(str::to_owned)
            .or_else(|| own_media_type(&bytes))
            .unwrap_or_else(|| OCI_MANIFEST.to_owned());
        Ok(RawManifest {
            bytes,
            media_type,
            digest,
        })
    }

    /// Returns the document for a tag or digest, with one request; `None` if not found.
    pub async fn find_manifest(&self, which: &str) -> Result<Option<RawManifest>, RegistryError> {
        let answer = self.get_manifest(which).await;
        self.found(answer)
    }

    /// Deletes the manifest of a digest and its tags, or a tag alone, if the registry supports it.
    pub async fn delete_manifest(&self, which: &str) -> Result<(), RegistryError> {
        let what = format!("delete manifest {which} of {self}");
        let mut request = self.request(Method::DELETE, &format!("manifests/{which}"), what);
        request.scope = Scope::delete(self.name());
        self.inner().call(&request).await.map(drop)
    }

    /// Publishes a document under a tag or its digest, and returns its digest.
    pub async fn put_manifest(
        &self,
        which: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<Digest, RegistryError> {
        let published = self.publish(which, media_type, bytes).await?;
        Ok(published.digest)
    }

    /// Publishes a document, and returns the registry's response.
    pub(super) async fn publish(
        &self,
        which: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<PublishResponse, RegistryError> {
        let what = format!("publish manifest {which} of {self}");
        let named = format!("manifest {which} for {self}");
        let digest = verified(Digest::from_str(which).ok(), &bytes, &named)?;
        let mut request = self.request(Method::PUT, &format!("manifests/{which}"), what);
        let content_type = HeaderValue::from_str(media_type).map_err(HttpError::from)?;
        request.headers.insert(CONTENT_TYPE, content_type);
        request.payload = Payload::Bytes(bytes);
        let answer = self.inner().call(&request).await;
        let response = answer.map_err(|error| {
            if error.is_format_rejected() {
                RegistryError::Manifest {
                    repository: self.to_string(),
                    media_type: media_type.to_owned(),
                    source: Box::new(error),
                }
            } else {
                error
            }
        })?;
        match promised_digest(response.headers()) {
            Some(taken) if taken != digest && taken.algorithm() == digest.algorithm() => {
                Err(RegistryError::Digest {
                    what: format!("manifest {which} as stored by {self}"),
                    expected: digest.to_string(),
                    actual: taken.to_string(),
                })
            }
            _ => Ok(PublishResponse {
                digest,
                knows_subject: response.headers().contains_key(SUBJECT),
            }),
        }
    }
}

/// Result of publishing a document.
pub(super) struct PublishResponse {
    digest: Digest,
    /// True if the registry recorded the document's subject.
    pub(super) knows_subject: bool,
}

/// Returns digest, type and size from the headers, if they have all three.
fn described(which: &str, headers: &HeaderMap) -> Option<Descriptor> {
    let digest = Digest::from_str(which)
        .ok()
        .or_else(|| promised_digest(headers))?;
    let size = header_text(headers, CONTENT_LENGTH)?.parse().ok()?;
    let media_type = content_type(headers)?;
    (media_type != "application/json").then(|| Descriptor::new(media_type, digest, size))
}

/// Verifies the bytes with the algorithm of the promised digest, and returns the digest.
fn verified(promised: Option<Digest>, bytes: &[u8], what: &str) -> Result<Digest, RegistryError> {
    let Some(promised) = promised else {
        return Ok(sha256(bytes));
    };
    let mut hasher = RegistryError::hasher_of(&promised)?;
    hasher.update(bytes);
    RegistryError::verify(&hasher.finish(), &promised, what).map(|()| promised)
}

fn promised_digest(headers: &HeaderMap) -> Option<Digest> {
    Digest::from_str(header_text(headers, CONTENT_DIGEST)?).ok()
}

/// The `mediaType` field, which newer documents contain.
fn own_media_type(bytes: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct MediaTypeField {
        media_type: Option<String>,
    }
    serde_json::from_slice::<MediaTypeField>(bytes)
        .ok()?
        .media_type
}
