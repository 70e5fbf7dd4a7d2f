//! Digests supported for an image's content.

use wincimg_common::diagnose::Problem;
pub use wincimg_common::digest::{Digest, Hasher, sha256};

use super::error::unusable;

/// Returns a hasher for the digest's algorithm, which must be SHA-2.
pub(crate) fn hasher_of(digest: &Digest) -> Result<Hasher, Problem> {
    match digest.algorithm() {
        "sha256" | "sha384" | "sha512" => Hasher::matching(digest),
        _ => None,
    }
    .ok_or_else(|| {
        unusable(format!(
            "the digest {digest} cannot be checked: expected sha256, sha384 or sha512"
        ))
    })
}

/// Finishes a hash and compares it with the expected digest.
pub fn check(hasher: Hasher, expected: &Digest) -> Result<(), Problem> {
    let found = hasher.finish();
    if found == *expected {
        Ok(())
    } else {
        let problem = format!("the content has digest {found}: expected {expected}");
        Err(unusable(problem))
    }
}
