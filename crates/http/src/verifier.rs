//! Verification of a server's certificate.

use std::iter;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::Offset;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_platform_verifier::Verifier;
use wincimg_common::x509::Certificate;

/// Verifies a server's certificate. A proof of possession of its key is always required, so that
/// all data come from one peer.
#[derive(Debug)]
pub struct CertificateVerifier {
    /// The accepted certificates.
    pub accepted: AcceptedCertificates,
    /// Verifier of signatures.
    pub provider: Arc<CryptoProvider>,
}

/// The certificates that are accepted.
#[derive(Debug)]
pub enum AcceptedCertificates {
    /// Any certificate.
    Any,
    /// These by exact match, and those trusted by the system.
    These(PinnedCertificates, Option<Verifier>),
}

/// Certificates that are accepted by exact match.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PinnedCertificates {
    /// Accepted for the names in them.
    pub named: Vec<CertificateDer<'static>>,
    /// Accepted for the host, whatever their names.
    pub of_host: Vec<CertificateDer<'static>>,
}

impl PinnedCertificates {
    /// Returns true if a certificate is accepted for a name; an error if it is listed, but for
    /// other names or another time.
    fn accepts(
        &self,
        shown: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<bool, Error> {
        if !self.of_host.contains(shown) {
            if !self.named.contains(shown) {
                return Ok(false);
            }
            verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        }
        check_dates(shown, now)?;
        Ok(true)
    }

    /// Returns the pinned CA that issued one of the certificates of a chain.
    fn issuer<'c>(&self, chain: impl Iterator<Item = &'c CertificateDer<'c>>) -> Option<PinnedCa> {
        let parse = |certificate: &CertificateDer<'_>| Certificate::parse(certificate).ok();
        let chain: Vec<Certificate> = chain.filter_map(parse).collect();
        let is_issuer = |ca: &Certificate| {
            let mut issued = chain.iter().filter(|it| !it.is_self_issued());
            ca.is_ca() && ca.is_of_server() && issued.any(|it| it.issuer() == ca.subject())
        };
        let mut listed = self.named.iter().filter_map(parse);
        let subject = listed.find(is_issuer)?.to_string();
        Some(PinnedCa { subject })
    }
}

/// A listed CA that counts for the names in its certificate alone.
#[derive(Debug, thiserror::Error)]
#[error(
    "its CA, {subject}, is in --ca-file, but has names of servers and no key usage keyCertSign, so it \
     counts for these names alone"
)]
pub(super) struct PinnedCa {
    subject: String,
}

fn check_dates(shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let certificate = Certificate::parse(shown).map_err(|_| CertificateError::BadEncoding)?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let now = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    let now = Offset::UTC.to_datetime(now);
    if now > certificate.not_after() {
        Err(CertificateError::Expired)
    } else if now < certificate.not_before() {
        Err(CertificateError::NotValidYet)
    } else {
        Ok(())
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let AcceptedCertificates::These(pinned, machine) = &self.accepted else {
            return Ok(ServerCertVerified::assertion());
        };
        if pinned.accepts(end_entity, server_name, now)? {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let verified = match machine {
            Some(machine) => machine
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now),
            None => Err(unknown.clone()),
        };
        verified.map_err(|error| {
            let chain = iter::once(end_entity).chain(intermediates);
            match pinned.issuer(chain).filter(|_| error == unknown) {
                Some(ca) => CertificateError::Other(OtherError(Arc::new(ca))).into(),
                None => error,
            }
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wincimg_common::x509::sample::sample;

    use super::*;

    #[test]
    fn a_listed_certificate_counts_in_its_time_alone() {
        let shown = CertificateDer::from(sample("200101000000Z", "210101000000Z", true));
        let pinned = PinnedCertificates {
            named: Vec::new(),
            of_host: vec![shown.clone()],
        };
        let name = ServerName::try_from("repo.lan").unwrap();
        let accepted = |date: &str| {
            let now: Timestamp = date.parse().unwrap();
            let seconds = now.as_second().unsigned_abs();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            pinned.accepts(&shown, &name, now)
        };
        assert_eq!(accepted("2020-06-01T00:00:00Z"), Ok(true));
        assert_eq!(accepted("2021-01-01T00:00:00Z"), Ok(true));
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        assert_eq!(accepted("2021-01-01T00:00:01Z"), Err(expired));
        let early = Error::InvalidCertificate(CertificateError::NotValidYet);
        assert_eq!(accepted("2019-12-31T23:59:59Z"), Err(early));
    }
}
