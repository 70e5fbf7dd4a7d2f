//! A parsed value together with the exact bytes that carry it, so that what is only passed on keeps
//! its digest.

use std::ops::Deref;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::digest::{Digest, check, hasher_of, sha256};
use super::error::DocumentError;

/// A value, the bytes it was read from or written as, and their digest.
#[derive(Debug, Clone, PartialEq)]
pub struct Verbatim<T> {
    value: T,
    bytes: Bytes,
    digest: Digest,
}

/// A kind of document, named in error messages.
pub trait DocumentType: Serialize + DeserializeOwned {
    /// "image manifest", "image index", …
    const WHAT: &'static str;
}

impl<T: DocumentType> Verbatim<T> {
    /// Writes a new value.
    pub fn new(value: T) -> Result<Self, DocumentError> {
        let bytes = serde_json::to_vec(&value).map_err(|source| DocumentError::Write {
            what: T::WHAT,
            source,
        })?;
        let digest = sha256(&bytes);
        Ok(Self {
            value,
            bytes: bytes.into(),
            digest,
        })
    }

    /// Reads a value whose digest is not stated.
    pub fn parse(bytes: Bytes) -> Result<Self, DocumentError> {
        let digest = sha256(&bytes);
        Self::read(bytes, digest)
    }

    /// Reads a value that must have the digest given.
    pub fn verify(bytes: Bytes, expected: &Digest) -> Result<Self, DocumentError> {
        verify(&bytes, expected)?;
        Self::read(bytes, expected.clone())
    }

    pub(super) fn read(bytes: Bytes, digest: Digest) -> Result<Self, DocumentError> {
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self {
                value,
                bytes,
                digest,
            }),
            Err(source) => Err(DocumentError::Shape {
                digest,
                what: T::WHAT,
                source,
            }),
        }
    }

    /// A new value made from a changed copy of this one; the same bytes where nothing changed.
    pub fn edit(&self, change: impl FnOnce(&mut T)) -> Result<Self, DocumentError>
    where
        T: Clone + PartialEq,
    {
        let mut value = self.value.clone();
        change(&mut value);
        if value == self.value {
            return Ok(self.clone());
        }
        Self::new(value)
    }
}

impl<T> Verbatim<T> {
    /// The exact bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The digest of the bytes.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Verbatim<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Checks that the bytes have the digest given.
pub(super) fn verify(bytes: &[u8], expected: &Digest) -> Result<(), DocumentError> {
    let mut hasher = hasher_of(expected)?;
    hasher.update(bytes);
    check(hasher, expected)
}
