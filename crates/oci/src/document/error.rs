//! Errors of documents.

use wincimg_common::digest::Digest;

/// A manifest, index or configuration that cannot be used as one.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text is not JSON of the expected shape.
    #[error("{digest} is not a valid {what}")]
    Shape {
        /// Digest of the bytes that were read.
        digest: Digest,
        /// The expected kind: "image manifest", "image index", …
        what: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A value could not be written as JSON.
    #[error("could not write the {what} as json")]
    Write {
        /// The kind of the document.
        what: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// The document is of a type that is not an image's.
    #[error(
        "{digest} is a document of type {media_type:?}: expected a docker or oci manifest or index"
    )]
    UnknownType {
        /// Digest of the bytes that were read.
        digest: Digest,
        /// The type it has or was announced with.
        media_type: String,
    },
    /// Docker's schema 1, which has no digests to rely on.
    #[error("{digest} is a docker schema 1 manifest, which is not supported: push the image again")]
    SchemaOne {
        /// Digest of the bytes that were read.
        digest: Digest,
    },
    /// The document says to be one thing and was announced as another, or looks like both.
    #[error("{digest} is ambiguous: {reason}")]
    Ambiguous {
        /// Digest of the bytes that were read.
        digest: Digest,
        /// The contradiction.
        reason: String,
    },
    /// The bytes are not those that the digest names.
    #[error("the content has digest {found}: expected {expected}")]
    DigestMismatch {
        /// The digest that was asked for.
        expected: String,
        /// The digest of what came.
        found: String,
    },
    /// The digest's algorithm cannot be checked.
    #[error("the digest {digest} cannot be checked: expected sha256, sha384 or sha512")]
    UnsupportedDigest {
        /// The digest in question.
        digest: Digest,
    },
    /// Manifest and configuration do not belong together.
    #[error("the image's manifest and configuration disagree: {reason}")]
    Inconsistent {
        /// The mismatch.
        reason: String,
    },
}
