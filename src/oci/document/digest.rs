//! Which digests an image's content may have.

use super::error::DocumentError;

pub use crate::net::{Digest, Hasher, sha256};
use oci_spec::image::DigestAlgorithm;

impl Hasher {
    /// A hasher of the algorithm that `digest` was made with, if images may use it: SHA-2.
    pub fn of(digest: &Digest) -> Result<Self, DocumentError> {
        match digest.algorithm() {
            DigestAlgorithm::Sha256 | DigestAlgorithm::Sha384 | DigestAlgorithm::Sha512 => {
                Self::like(digest)
            }
            _ => None,
        }
        .ok_or_else(|| DocumentError::UnsupportedDigest {
            digest: digest.clone(),
        })
    }

    /// Ends the hash and compares it with the digest that the content should have.
    pub fn check(self, expected: &Digest) -> Result<(), DocumentError> {
        let found = self.finish();
        if found == *expected {
            Ok(())
        } else {
            Err(DocumentError::DigestMismatch {
                expected: expected.to_string(),
                found: found.to_string(),
            })
        }
    }
}
