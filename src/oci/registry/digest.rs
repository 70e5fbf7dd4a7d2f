//! Digests computed while bytes pass by.

use std::fmt;
use std::str::FromStr;

use oci_spec::image::{Digest, DigestAlgorithm};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::RegistryError;

/// A running digest in the algorithm of the one it will be compared with.
#[derive(Clone)]
pub struct Hasher(Algorithm);

#[derive(Clone)]
enum Algorithm {
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    /// A hasher in the algorithm that everybody uses.
    pub fn sha256() -> Self {
        Self(Algorithm::Sha256(Sha256::new()))
    }

    /// A hasher whose result can be compared with `expected`.
    pub fn like(expected: &Digest) -> Result<Self, RegistryError> {
        let algorithm = match expected.algorithm() {
            DigestAlgorithm::Sha256 => Algorithm::Sha256(Sha256::new()),
            DigestAlgorithm::Sha384 => Algorithm::Sha384(Sha384::new()),
            DigestAlgorithm::Sha512 => Algorithm::Sha512(Sha512::new()),
            _ => return Err(RegistryError::DigestAlgorithm(expected.to_string())),
        };
        Ok(Self(algorithm))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Algorithm::Sha256(hash) => hash.update(bytes),
            Algorithm::Sha384(hash) => hash.update(bytes),
            Algorithm::Sha512(hash) => hash.update(bytes),
        }
    }

    /// The digest of all bytes so far.
    pub fn digest(self) -> Result<Digest, RegistryError> {
        let text = self.finish();
        Digest::from_str(&text).map_err(|_| RegistryError::DigestAlgorithm(text))
    }

    fn finish(self) -> String {
        match self.0 {
            Algorithm::Sha256(hash) => format!("sha256:{}", hex::encode(hash.finalize())),
            Algorithm::Sha384(hash) => format!("sha384:{}", hex::encode(hash.finalize())),
            Algorithm::Sha512(hash) => format!("sha512:{}", hex::encode(hash.finalize())),
        }
    }

    /// Ends the digest and compares it; `what` names the bytes in the error.
    pub fn verify(self, expected: &Digest, what: &str) -> Result<(), RegistryError> {
        let actual = self.finish();
        if actual == expected.as_ref() {
            Ok(())
        } else {
            Err(RegistryError::Digest {
                what: what.to_owned(),
                expected: expected.to_string(),
                actual,
            })
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}
