//! Digests that are checked while bytes pass by, with this module's errors.

use crate::oci::document::{Digest, Hasher};

use super::RegistryError;

/// A hasher whose result can be compared with `expected`.
pub(super) fn hasher_like(expected: &Digest) -> Result<Hasher, RegistryError> {
    Hasher::of(expected).map_err(|_| RegistryError::DigestAlgorithm(expected.to_string()))
}

/// Ends the hash and compares it; `what` names the bytes in the error.
pub(super) fn verify(hasher: Hasher, expected: &Digest, what: &str) -> Result<(), RegistryError> {
    let actual = hasher.finish();
    if actual == *expected {
        Ok(())
    } else {
        Err(RegistryError::Digest {
            what: what.to_owned(),
            expected: expected.to_string(),
            actual: actual.to_string(),
        })
    }
}
