//! Certificates that an image trusts: the registry values that add them to a store of the machine.
//!
//! A store is a key, and a certificate in it a subkey named by its SHA-1. Its value `Blob` is a
//! list of properties: a number, a 1, a length and bytes each.

use std::fmt;

use wincimg_common::Named;
use wincimg_common::x509::Certificate;
use wincimg_registry::{RegistryData, RegistryEdit, Root};

use crate::keys::{known_key, set_value};

const SHA1_PROPERTY: u32 = 3;
const CERTIFICATE_PROPERTY: u32 = 32;

/// A store of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, Named)]
#[serde(rename_all = "snake_case")]
pub enum CertificateStore {
    /// Trusted root CAs.
    Root,
    /// Intermediate CAs, which not every server sends.
    Ca,
    /// Trusted publishers: their signed scripts and programs run without a prompt.
    TrustedPublisher,
    /// Certificates that are trusted themselves, without a CA.
    TrustedPeople,
}

impl CertificateStore {
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

/// A certificate in a store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TrustedCertificate {
    /// The store.
    pub store: CertificateStore,
    /// The certificate.
    #[serde(flatten)]
    pub certificate: Certificate,
}

impl TrustedCertificate {
    /// The edit that adds it to its store.
    pub fn edit(&self) -> RegistryEdit {
        let (store, thumbprint) = (self.store.key(), self.certificate.thumbprint());
        let names = [
            "Microsoft", "SystemCertificates", store, "Certificates", &thumbprint,
        ];
        let key = known_key(Root::Software, &names);
        set_value(&key, "Blob", RegistryData::binary(self.blob()))
    }

    fn blob(&self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(self.certificate.der().len() + 44);
        for (id, bytes) in [
            (SHA1_PROPERTY, &self.certificate.sha1()[..]),
            (CERTIFICATE_PROPERTY, self.certificate.der()),
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
mod tests;
