//! Digests, and hashers that compute them.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use crate::Named;

/// A digest in OCI's format: `ALGORITHM:HASH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    text: Box<str>,
    colon: usize,
}

/// A text that is not a digest, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid digest: {0}")]
pub struct InvalidDigest(&'static str);

impl Digest {
    /// Creates a digest from an algorithm's hash.
    pub fn new(algorithm: &str, hash: &[u8]) -> Self {
        Self {
            text: format!("{algorithm}:{}", hex::encode(hash)).into(),
            colon: algorithm.len(),
        }
    }

    /// The algorithm's name, such as `sha256`.
    pub fn algorithm(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The hash; for SHA-2, in lowercase hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.text[self.colon + 1..]
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let (algorithm, hash) = text.split_once(':').ok_or(InvalidDigest("no colon"))?;
        let is_component = |it: &str| {
            let is_plain = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
            !it.is_empty() && it.bytes().all(is_plain)
        };
        if !algorithm.split(['+', '.', '_', '-']).all(is_component) {
            return Err(InvalidDigest("invalid algorithm"));
        }
        let is_encoded =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'=' | b'_' | b'-');
        if hash.is_empty() || !hash.bytes().all(is_encoded) {
            return Err(InvalidDigest("invalid hash"));
        }
        let digits = match algorithm {
            "sha256" => Some(64),
            "sha384" => Some(96),
            "sha512" => Some(128),
            _ => None,
        };
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.is_some_and(|digits| hash.len() != digits || !hash.bytes().all(is_digit)) {
            return Err(InvalidDigest(
                "the hash does not have the algorithm's number of lowercase hexadecimal digits",
            ));
        }
        Ok(Self {
            text: text.into(),
            colon: algorithm.len(),
        })
    }
}

impl AsRef<str> for Digest {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Digest algorithm. MD5 and SHA-1 do not resist forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "lowercase")]
pub enum Algorithm {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// The sha256 digest of some bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// The sha256 digest of the rest of a reader.
pub fn sha256_of(reader: &mut impl Read) -> io::Result<Digest> {
    let mut hasher = Hasher::default();
    hasher.read_all(reader)?;
    Ok(hasher.finish())
}

/// A hasher of content in chunks.
#[derive(Clone)]
pub struct Hasher(HashState);

#[derive(Clone)]
enum HashState {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(Sha256),
    Sha384(Box<Sha384>),
    Sha512(Box<Sha512>),
}

impl Default for Hasher {
    /// A hasher for sha256.
    fn default() -> Self {
        Self::new(Algorithm::Sha256)
    }
}

impl Hasher {
    /// A hasher for an algorithm.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Md5 => HashState::Md5(md5::Md5::new()),
            Algorithm::Sha1 => HashState::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => HashState::Sha256(Sha256::new()),
            Algorithm::Sha384 => HashState::Sha384(Box::new(Sha384::new())),
            Algorithm::Sha512 => HashState::Sha512(Box::new(Sha512::new())),
        })
    }

    /// A hasher for the algorithm of `digest`, if it is SHA-2 or SHA-1.
    pub fn matching(digest: &Digest) -> Option<Self> {
        let algorithm = Algorithm::from_name(digest.algorithm());
        let strong = algorithm.filter(|algorithm| *algorithm != Algorithm::Md5);
        strong.map(Self::new)
    }

    /// Adds a chunk.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HashState::Md5(hash) => hash.update(bytes),
            HashState::Sha1(hash) => hash.update(bytes),
            HashState::Sha256(hash) => hash.update(bytes),
            HashState::Sha384(hash) => hash.update(bytes),
            HashState::Sha512(hash) => hash.update(bytes),
        }
    }

    /// Adds the rest of a reader, and returns its length.
    pub fn read_all(&mut self, reader: &mut impl Read) -> io::Result<u64> {
        self.copy(reader, &mut io::sink())
    }

    /// Adds the rest of a reader while it is copied, and returns its length.
    pub fn copy(&mut self, reader: &mut impl Read, writer: &mut impl Write) -> io::Result<u64> {
        let mut buffer = vec![0; 256 * 1024];
        let mut total = 0;
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(total),
                Ok(count) => {
                    self.update(&buffer[..count]);
                    writer.write_all(&buffer[..count])?;
                    total += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the digest of all chunks.
    pub fn finish(self) -> Digest {
        match self.0 {
            HashState::Md5(hash) => Digest::new("md5", &hash.finalize()),
            HashState::Sha1(hash) => Digest::new("sha1", &hash.finalize()),
            HashState::Sha256(hash) => Digest::new("sha256", &hash.finalize()),
            HashState::Sha384(hash) => Digest::new("sha384", &hash.finalize()),
            HashState::Sha512(hash) => Digest::new("sha512", &hash.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_as_the_specification_says() {
        let hash = |digits: usize| "6c".repeat(digits / 2);
        for text in [
            "foo:bar".to_owned(),
            "xxhash:42".to_owned(),
            "multihash+base58:QmRZxt2b1FVZPNqd8hsiykDL3TdBDeTSPX9Kv46HmX4Gx8".to_owned(),
            "a.b_c-d:A=_-".to_owned(),
            format!("sha256:{}", hash(64)),
            format!("sha384:{}", hash(96)),
            format!("sha512:{}", hash(128)),
        ] {
            let digest: Digest = text.parse().unwrap();
            let (algorithm, hash) = text.split_once(':').unwrap();
            assert_eq!((digest.algorithm(), digest.digest()), (algorithm, hash));
            assert_eq!(digest.to_string(), text);
            let json = serde_json::to_string(&digest).unwrap();
            assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }
        for text in [
            "",
            "foo",
            ":",
            "blah+",
            "blah+:1",
            "_digest:somevalue",
            ":blah",
            "blah:",
            "blah:a:b",
            "FooBar:123abc",
            "^:foo",
            "bar^baz:blah",
            "sha256:123456*78",
            "sha384:x",
            &format!("sha256:{}zz", hash(62)),
            &format!("sha256:{}", hash(64).to_uppercase()),
            &format!("sha384:{}", hash(64)),
            &format!("sha512:{}", hash(64)),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_hasher_computes_the_kind_that_is_expected() {
        for expected in [
            "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ] {
            let expected: Digest = expected.parse().unwrap();
            let mut hasher = Hasher::matching(&expected).unwrap();
            assert_eq!(hasher.read_all(&mut b"abc".as_slice()).unwrap(), 3);
            assert_eq!(hasher.finish(), expected);
        }
        let md5 = "md5:900150983cd24fb0d6963f7d28e17f72".parse().unwrap();
        assert!(Hasher::matching(&md5).is_none());
    }
}
