//! Digests, and the running hashes that make them.

use std::io::{self, Read};

pub use oci_spec::image::Digest;
use oci_spec::image::DigestAlgorithm;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

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
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
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
    /// A hasher for MD5, which anybody can make fit.
    pub fn md5() -> Self {
        Self(State::Md5(md5::Md5::new()))
    }

    /// A hasher for SHA-1, with which nobody should promise anything any more.
    pub fn sha1() -> Self {
        Self(State::Sha1(sha1::Sha1::new()))
    }

    /// A hasher for SHA-384.
    pub fn sha384() -> Self {
        Self(State::Sha384(Box::new(Sha384::new())))
    }

    /// A hasher for SHA-512.
    pub fn sha512() -> Self {
        Self(State::Sha512(Box::new(Sha512::new())))
    }

    /// A hasher of the algorithm that `digest` was made with, if that is known: SHA-2 or SHA-1.
    pub fn like(digest: &Digest) -> Option<Self> {
        match digest.algorithm() {
            DigestAlgorithm::Sha256 => Some(Self::default()),
            DigestAlgorithm::Sha384 => Some(Self::sha384()),
            DigestAlgorithm::Sha512 => Some(Self::sha512()),
            other if other.as_ref() == "sha1" => Some(Self::sha1()),
            _ => None,
        }
    }

    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Md5(hash) => hash.update(bytes),
            State::Sha1(hash) => hash.update(bytes),
            State::Sha256(hash) => hash.update(bytes),
            State::Sha384(hash) => hash.update(bytes),
            State::Sha512(hash) => hash.update(bytes),
        }
    }

    /// Takes everything that is left to read, and says how much that was.
    pub fn read_all(&mut self, reader: &mut impl Read) -> io::Result<u64> {
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

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Md5(hash) => digest("md5", &hash.finalize()),
            State::Sha1(hash) => digest("sha1", &hash.finalize()),
            State::Sha256(hash) => digest("sha256", &hash.finalize()),
            State::Sha384(hash) => digest("sha384", &hash.finalize()),
            State::Sha512(hash) => digest("sha512", &hash.finalize()),
        }
    }
}

/// The digest that an algorithm's hash is.
#[expect(
    clippy::expect_used,
    reason = "the hex digits of a hash are a valid digest of its algorithm"
)]
pub fn digest(algorithm: &str, hash: &[u8]) -> Digest {
    Digest::try_from(format!("{algorithm}:{}", hex::encode(hash))).expect("a valid digest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hasher_computes_the_kind_that_is_expected() {
        for expected in [
            "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ] {
            let expected: Digest = expected.parse().unwrap();
            let mut hasher = Hasher::like(&expected).unwrap();
            assert_eq!(hasher.read_all(&mut b"abc".as_slice()).unwrap(), 3);
            assert_eq!(hasher.finish(), expected);
        }
        let md5 = "md5:900150983cd24fb0d6963f7d28e17f72".parse().unwrap();
        assert!(Hasher::like(&md5).is_none());
    }
}
