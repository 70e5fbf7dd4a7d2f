//! What a file's bytes have to hash to, as the catalog says it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest as _;

/// The hash of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// SHA-1, which is all that older entries have.
    Sha1([u8; 20]),
    /// SHA-256.
    Sha256([u8; 32]),
}

/// Every digest that the catalog gives for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digests {
    sha256: Option<[u8; 32]>,
    sha1: Option<[u8; 20]>,
}

/// Digests that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestsError {
    /// A text of the wrong length or alphabet.
    #[error("{0:?} is no base64 of a digest of its kind")]
    Unreadable(String),
    /// The SHA-1 in the file's name is another one.
    #[error("the digest says SHA-1 {digest}, the file's name {name}")]
    Contradiction {
        /// From the entry's digest.
        digest: String,
        /// From its file name.
        name: String,
    },
}

impl Digests {
    /// Reads the base64 texts of an entry and the SHA-1 that ends the stem of its file's name.
    pub fn read(
        sha256: Option<&str>,
        sha1: Option<&str>,
        name: &str,
    ) -> Result<Self, DigestsError> {
        let sha256 = sha256.map(decode).transpose()?;
        let sha1: Option<[u8; 20]> = sha1.map(decode).transpose()?;
        let in_name = sha1_in_name(name);
        if let (Some(sha1), Some(in_name)) = (sha1, in_name)
            && sha1 != in_name
        {
            return Err(DigestsError::Contradiction {
                digest: hex::encode(sha1),
                name: hex::encode(in_name),
            });
        }
        Ok(Self {
            sha256,
            sha1: sha1.or(in_name),
        })
    }

    /// The one to verify with.
    pub fn best(&self) -> Option<Digest> {
        self.sha256
            .map(Digest::Sha256)
            .or(self.sha1.map(Digest::Sha1))
    }
}

impl From<Digest> for Digests {
    fn from(digest: Digest) -> Self {
        match digest {
            Digest::Sha1(bytes) => Self {
                sha256: None,
                sha1: Some(bytes),
            },
            Digest::Sha256(bytes) => Self {
                sha256: Some(bytes),
                sha1: None,
            },
        }
    }
}

fn decode<const N: usize>(text: &str) -> Result<[u8; N], DigestsError> {
    STANDARD
        .decode(text)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| DigestsError::Unreadable(text.chars().take(100).collect()))
}

/// `windows10.0-kb4549949-x64_90e8805e69944530b8d4d4877c7609b9a9e68d81.msu` ends in one.
fn sha1_in_name(name: &str) -> Option<[u8; 20]> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (_, digits) = stem.rsplit_once('_')?;
    hex::decode(digits).ok()?.try_into().ok()
}

impl Digest {
    /// The hash's name, as PowerShell's `Get-FileHash` spells it.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha1(_) => "SHA1",
            Self::Sha256(_) => "SHA256",
        }
    }

    /// Lower-case hex digits.
    pub fn hex(&self) -> String {
        match self {
            Self::Sha1(bytes) => hex::encode(bytes),
            Self::Sha256(bytes) => hex::encode(bytes),
        }
    }

    /// The SHA-256 of what is in a file.
    pub fn sha256_of(path: &Path) -> io::Result<Self> {
        let mut hasher = Hasher::like(None);
        hasher.read_all(&mut File::open(path)?)?;
        Ok(hasher.finish())
    }

    /// The same kind of digest of what is in a file.
    pub fn of_same_kind(&self, path: &Path) -> io::Result<Self> {
        let mut hasher = Hasher::like(Some(self));
        hasher.read_all(&mut File::open(path)?)?;
        Ok(hasher.finish())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Sha1(_) => "SHA-1",
            Self::Sha256(_) => "SHA-256",
        };
        write!(f, "{name} {}", self.hex())
    }
}

/// Hashes bytes as they come, with the algorithm that an expected digest needs; with SHA-256 where
/// none is expected.
#[derive(Clone)]
pub(super) enum Hasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Hasher {
    pub(super) fn like(expected: Option<&Digest>) -> Self {
        match expected {
            Some(Digest::Sha1(_)) => Self::Sha1(sha1::Sha1::default()),
            Some(Digest::Sha256(_)) | None => Self::Sha256(sha2::Sha256::default()),
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    /// Takes in everything that is left to read; answers with how much that was.
    pub(super) fn read_all(&mut self, reader: &mut impl Read) -> io::Result<u64> {
        let mut buffer = vec![0; 256 * 1024];
        let mut total = 0;
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(total),
                Ok(count) => {
                    self.update(&buffer[..count]);
                    total += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn finish(self) -> Digest {
        match self {
            Self::Sha1(hasher) => Digest::Sha1(hasher.finalize().into()),
            Self::Sha256(hasher) => Digest::Sha256(hasher.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    const NAME: &str = "oart-x-none_e3fa9c9103bc509dcdf7e971ca3cbea0c18a7b0d.cab";
    const SHA1: &str = "4/qckQO8UJ3N9+lxyjy+oMGKew0=";

    #[test]
    fn the_sha1_of_the_name_stands_in_for_a_missing_one() {
        let from_name = Digests::read(None, None, NAME).unwrap();
        assert_eq!(from_name, Digests::read(None, Some(SHA1), "a.cab").unwrap());
        assert_eq!(Digests::read(None, None, "a_b.cab").unwrap().best(), None);
    }

    #[test]
    fn a_name_that_contradicts_the_digest_is_an_error() {
        let error = Digests::read(None, Some("2jmj7l5rSw0yVb/vlWAYkK/YBwk="), NAME).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the digest says SHA-1 da39a3ee5e6b4b0d3255bfef95601890afd80709, \
             the file's name e3fa9c9103bc509dcdf7e971ca3cbea0c18a7b0d"
        );
    }

    #[test]
    fn a_digest_of_the_wrong_length_is_an_error() {
        assert!(Digests::read(Some(SHA1), None, "a.cab").is_err());
        assert!(Digests::read(None, Some("%%%"), "a.cab").is_err());
    }

    #[test]
    fn a_hasher_computes_the_kind_that_is_expected() {
        for (sha256, expected) in [
            (None, "SHA-1 a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                Some("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
                "SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            let digest = Digests::read(sha256, Some(SHA1), "a").unwrap().best();
            let mut hasher = Hasher::like(digest.as_ref());
            assert_eq!(hasher.read_all(&mut b"abc".as_slice()).unwrap(), 3);
            assert_eq!(hasher.finish().to_string(), expected);
        }
    }
}
