//! X.509 certificates: names, validity and CA flag.

mod der;
#[cfg(any(test, feature = "testing"))]
pub mod sample;

use std::fmt;

use jiff::civil::DateTime;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use sha1::{Digest, Sha1};

/// An X.509 certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: String,
    issuer: String,
    is_self_issued: bool,
    not_before: DateTime,
    not_after: DateTime,
    signs_others: bool,
    is_of_server: bool,
}

/// Bytes that are not an X.509 certificate in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not an X.509 certificate: invalid {part}")]
pub struct CertificateError {
    part: &'static str,
}

impl Certificate {
    /// Parses a certificate in DER without trailing data.
    pub fn parse(der: impl AsRef<[u8]>) -> Result<Self, CertificateError> {
        der::read(der.as_ref()).map_err(|part| CertificateError { part })
    }

    /// Parses the certificates of a PKCS #7 signed-data message in DER; `None` if the bytes are
    /// something else.
    pub fn in_message(der: &[u8]) -> Option<Result<Vec<Self>, CertificateError>> {
        let found = der::in_message(der)?;
        Some(found.into_iter().map(Self::parse).collect())
    }

    /// Its bytes.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its subject, such as `CN=Corp Root, O=Corp`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Subject of the certificate that signed it.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Start of its validity, in UTC.
    pub fn not_before(&self) -> DateTime {
        self.not_before
    }

    /// End of its validity, in UTC.
    pub fn not_after(&self) -> DateTime {
        self.not_after
    }

    /// Returns true if it is a CA's. Version 1 has no such flag and counts as a CA.
    pub fn is_ca(&self) -> bool {
        self.signs_others
    }

    /// Returns true if it has a DNS name or an IP address, and does not say that its key signs
    /// certificates. Kubernetes' CA has a DNS name, too, but says so.
    pub fn is_of_server(&self) -> bool {
        self.is_of_server
    }

    /// Returns true if issuer and subject are equal, as in a root.
    pub fn is_self_issued(&self) -> bool {
        self.is_self_issued
    }

    /// Its SHA-1 thumbprint as shown by Windows.
    pub fn thumbprint(&self) -> String {
        hex::encode_upper(self.sha1())
    }

    /// Its SHA-1.
    pub fn sha1(&self) -> [u8; 20] {
        Sha1::digest(&self.der).into()
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

/// Serializes its main fields; the SHA-1 identifies it.
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

#[cfg(test)]
mod tests;
