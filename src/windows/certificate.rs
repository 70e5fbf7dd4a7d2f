//! Certificates that an image trusts: what one says of itself, and the registry values that put it
//! into a store of the machine.
//!
//! A store is a key, and a certificate in it a subkey named by its SHA-1. Its value `Blob` is a list
//! of properties: a number, a 1, a length and bytes each.

mod der;

use std::fmt;

use jiff::civil::DateTime;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use sha1::{Digest, Sha1};

use super::registry::{KeyPath, RegistryData, RegistryEdit, Root};

/// The property with the SHA-1 of the certificate.
const SHA1_PROPERTY: u32 = 3;
/// The property with the certificate itself.
const CERTIFICATE_PROPERTY: u32 = 32;

/// An X.509 certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: String,
    is_self_issued: bool,
    not_before: DateTime,
    not_after: DateTime,
    signs_others: bool,
}

/// Bytes that are not an X.509 certificate in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not an X.509 certificate: its {part} cannot be read")]
pub struct CertificateError {
    part: &'static str,
}

/// A store of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// Those who are believed, and whom they vouch for.
    Root,
    /// Those between a root and a server, which not every server sends.
    Ca,
    /// Those whose signed scripts and programs run unasked.
    TrustedPublisher,
    /// Those who are believed for themselves alone.
    TrustedPeople,
}

impl Store {
    /// The name in recipes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Ca => "ca",
            Self::TrustedPublisher => "trusted_publisher",
            Self::TrustedPeople => "trusted_people",
        }
    }

    /// The name in the registry.
    const fn key(self) -> &'static str {
        match self {
            Self::Root => "ROOT",
            Self::Ca => "CA",
            Self::TrustedPublisher => "TrustedPublisher",
            Self::TrustedPeople => "TrustedPeople",
        }
    }
}

impl Certificate {
    /// Reads a certificate in DER; nothing may follow it.
    pub fn parse(der: impl Into<Vec<u8>>) -> Result<Self, CertificateError> {
        let der = der.into();
        let read = der::read(&der).map_err(|part| CertificateError { part })?;
        Ok(Self {
            subject: read.subject,
            is_self_issued: read.is_self_issued,
            not_before: read.not_before,
            not_after: read.not_after,
            signs_others: read.signs_others,
            der,
        })
    }

    /// Reads the certificates of a message of signed data, PKCS #7 in DER; none where the bytes are
    /// something else.
    pub fn in_message(der: &[u8]) -> Option<Result<Vec<Self>, CertificateError>> {
        let found = der::in_message(der)?;
        Some(found.into_iter().map(Self::parse).collect())
    }

    /// Its bytes.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Whose it is, such as `CN=Corp Root, O=Corp`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Its first second, in UTC.
    pub fn not_before(&self) -> DateTime {
        self.not_before
    }

    /// Its last second, in UTC.
    pub fn not_after(&self) -> DateTime {
        self.not_after
    }

    /// Whether it is a CA's. One of version 1 cannot say, and is taken for one.
    pub fn signs_others(&self) -> bool {
        self.signs_others
    }

    /// Whether its subject issued it, as a root does.
    pub fn is_self_issued(&self) -> bool {
        self.is_self_issued
    }

    /// The SHA-1 of its bytes, as Windows shows it and names it by.
    pub fn thumbprint(&self) -> String {
        hex::encode_upper(self.sha1())
    }

    /// The edit that puts it into a store.
    pub fn edit(&self, store: Store) -> RegistryEdit {
        let mut key = KeyPath::root_of(Root::Software);
        let thumbprint = self.thumbprint();
        for name in [
            "Microsoft",
            "SystemCertificates",
            store.key(),
            "Certificates",
            &thumbprint,
        ] {
            #[expect(
                clippy::expect_used,
                reason = "the names are sound; a test goes through them"
            )]
            key.push(name).expect("a sound key name");
        }
        RegistryEdit::SetValue {
            key,
            name: "Blob".to_owned(),
            data: RegistryData::binary(self.blob()),
        }
    }

    fn sha1(&self) -> [u8; 20] {
        Sha1::digest(&self.der).into()
    }

    fn blob(&self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(self.der.len() + 44);
        for (id, bytes) in [
            (SHA1_PROPERTY, &self.sha1()[..]),
            (CERTIFICATE_PROPERTY, &self.der),
        ] {
            let [a, b, c, d, ..] = bytes.len().to_le_bytes();
            blob.extend(id.to_le_bytes());
            blob.extend(1_u32.to_le_bytes());
            blob.extend([a, b, c, d]);
            blob.extend(bytes);
        }
        blob
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject.as_str() {
            "" => f.write_str(&self.thumbprint()),
            subject => f.write_str(subject),
        }
    }
}

/// What a person asks of it; its SHA-1 names the bytes.
impl Serialize for Certificate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Certificate", 4)?;
        fields.serialize_field("subject", &self.subject)?;
        fields.serialize_field("sha1", &self.thumbprint())?;
        fields.serialize_field("not_before", &format!("{}Z", self.not_before))?;
        fields.serialize_field("not_after", &format!("{}Z", self.not_after))?;
        fields.end()
    }
}

/// A certificate in a store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TrustedCertificate {
    /// The store.
    pub store: Store,
    /// The certificate.
    #[serde(flatten)]
    pub certificate: Certificate,
}

impl TrustedCertificate {
    /// The edit that makes it trusted.
    pub fn edit(&self) -> RegistryEdit {
        self.certificate.edit(self.store)
    }
}

impl fmt::Display for TrustedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (store, certificate) = (self.store.name(), &self.certificate);
        write!(f, "{store} {}", certificate.thumbprint())?;
        match certificate.subject() {
            "" => Ok(()),
            subject => write!(f, " {subject}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
