//! Errors of documents.

use wincimg_common::diagnose::Diagnose;
use wincimg_common::digest::Digest;

/// A manifest, index or configuration that cannot be used.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "image/document")]
pub enum DocumentError {
    /// The text is not JSON, or not of the expected form.
    #[error("{digest} is not a valid {what}")]
    #[diagnose(hint = "it is damaged or forged: build or mirror the image again")]
    Shape {
        /// Digest of the bytes that were read.
        digest: Digest,
        /// The expected kind: "image manifest", "image index", …
        what: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// HTML where a manifest or index is expected.
    #[error("the answer is a web page: expected a manifest or index")]
    #[diagnose(
        hint = "a proxy or another server answers in the registry's place: check its name, \
                       port and HTTPS_PROXY"
    )]
    WebPage,
    /// A value could not be written as JSON.
    #[error("cannot write the {what} as JSON")]
    Write {
        /// The kind of the document.
        what: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// The document's media type is not that of an image.
    #[error(
        "{digest} is a document of type {media_type:?}: expected a Docker or OCI manifest or index"
    )]
    UnknownType {
        /// Digest of the bytes that were read.
        digest: Digest,
        /// The stated or announced media type.
        media_type: String,
    },
    /// Docker's schema 1, which has no reliable digests.
    #[error("{digest} is a Docker schema 1 manifest, which is not supported: push the image again")]
    SchemaOne {
        /// Digest of the bytes that were read.
        digest: Digest,
    },
    /// The document's stated type, announced type or fields disagree.
    #[error("{digest} is ambiguous: {reason}")]
    Ambiguous {
        /// Digest of the bytes that were read.
        digest: Digest,
        /// The contradiction.
        reason: String,
    },
    /// An index that is not read, for its length.
    #[error(
        "the index {digest} has too many entries: expected at most {most}, nested ones included"
    )]
    #[diagnose(hint = "it is damaged or forged: build or mirror the image again")]
    TooManyEntries {
        /// Digest of the index.
        digest: Digest,
        /// The limit.
        most: usize,
    },
    /// The content does not match the digest.
    #[error("the content has digest {found}: expected {expected}")]
    DigestMismatch {
        /// The requested digest.
        expected: String,
        /// The digest of the received content.
        found: String,
    },
    /// The digest's algorithm cannot be checked.
    #[error("the digest {digest} cannot be checked: expected sha256, sha384 or sha512")]
    UnsupportedDigest {
        /// The digest in question.
        digest: Digest,
    },
    /// Manifest and configuration do not match.
    #[error("the image's manifest and configuration disagree: {reason}")]
    Inconsistent {
        /// The mismatch.
        reason: String,
    },
}
