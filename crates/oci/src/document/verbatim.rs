//! A parsed value together with its exact bytes, so that unchanged documents keep their digest.

use std::ops::Deref;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wincimg_common::diagnose::Problem;

use super::descriptor::Descriptor;
use super::digest::{Digest, check, hasher_of, sha256};
use super::error::{ambiguous, shape, unusable};

/// A value, its serialized bytes and their digest.
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
    /// Serializes a new value.
    pub fn new(value: T) -> Result<Self, Problem> {
        let unwritable = || unusable(format!("cannot write the {} as JSON", T::WHAT));
        let bytes = serde_json::to_vec(&value).map_err(|error| unwritable().source(error))?;
        let digest = sha256(&bytes);
        Ok(Self {
            value,
            bytes: bytes.into(),
            digest,
        })
    }

    /// Parses a value without verifying a digest.
    pub fn parse(bytes: Bytes) -> Result<Self, Problem> {
        let digest = sha256(&bytes);
        Self::read(bytes, digest)
    }

    /// Parses a value and verifies its digest.
    pub fn verify(bytes: Bytes, expected: &Digest) -> Result<Self, Problem> {
        verify(&bytes, expected)?;
        Self::read(bytes, expected.clone())
    }

    /// Parses the value that a descriptor refers to, and verifies digest and size.
    pub(crate) fn of_blob(blob: &Descriptor, bytes: Bytes) -> Result<Self, Problem> {
        let value = Self::verify(bytes, &blob.digest)?;
        check_size(&value.bytes, blob)?;
        Ok(value)
    }

    pub(super) fn read(bytes: Bytes, digest: Digest) -> Result<Self, Problem> {
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self {
                value,
                bytes,
                digest,
            }),
            Err(error) => Err(shape(&digest, T::WHAT, error)),
        }
    }

    /// Returns a changed copy; the bytes stay the same if nothing changed.
    pub fn edit(&self, change: impl FnOnce(&mut T)) -> Result<Self, Problem>
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

    /// A pointer to the document.
    pub fn descriptor(&self, media_type: &str) -> Descriptor {
        Descriptor::new(media_type, self.digest.clone(), self.size())
    }

    /// Returns the value without its bytes.
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

pub(super) fn check_size(bytes: &[u8], stated: &Descriptor) -> Result<(), Problem> {
    let size = bytes.len() as u64;
    if stated.size == size {
        return Ok(());
    }
    let reason = format!("it is announced with {} bytes and has {size}", stated.size);
    Err(ambiguous(&stated.digest, reason))
}

pub(super) fn verify(bytes: &[u8], expected: &Digest) -> Result<(), Problem> {
    let mut hasher = hasher_of(expected)?;
    hasher.update(bytes);
    check(hasher, expected)
}
