//! Digests and the running hashes that check them.

use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::DocumentError;

pub use oci_spec::image::Digest;
use oci_spec::image::DigestAlgorithm;

/// The sha256 digest of some bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// A running hash over content that arrives in pieces.
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Sha256(Sha256),
    Sha384(Box<Sha384>),
    Sha512(Box<Sha512>),
}

impl Default for Hasher {
    /// A hasher for sha256.
    fn default() -> Self {
        Self(State::Sha256(Sha256::new()))
    }
}

impl Hasher {
    /// A hasher of the algorithm that `digest` was made with.
    pub fn of(digest: &Digest) -> Result<Self, DocumentError> {
        match digest.algorithm() {
            DigestAlgorithm::Sha256 => Ok(Self::default()),
            DigestAlgorithm::Sha384 => Ok(Self(State::Sha384(Box::new(Sha384::new())))),
            DigestAlgorithm::Sha512 => Ok(Self(State::Sha512(Box::new(Sha512::new())))),
            _ => Err(DocumentError::UnsupportedDigest {
                digest: digest.clone(),
            }),
        }
    }

    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(hash) => hash.update(bytes),
            State::Sha384(hash) => hash.update(bytes),
            State::Sha512(hash) => hash.update(bytes),
        }
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha256(hash) => digest("sha256", &hash.finalize()),
            State::Sha384(hash) => digest("sha384", &hash.finalize()),
            State::Sha512(hash) => digest("sha512", &hash.finalize()),
        }
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

#[expect(
    clippy::expect_used,
    reason = "the hex digits of a finished hash are a valid digest of its algorithm"
)]
fn digest(algorithm: &str, hash: &[u8]) -> Digest {
    Digest::try_from(format!("{algorithm}:{}", hex::encode(hash))).expect("a valid digest")
}
