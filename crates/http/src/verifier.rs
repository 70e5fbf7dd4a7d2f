//! Verification of a server's certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

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
#[derive(Debug, Default)]
pub struct PinnedCertificates {
    /// Accepted for the names in them.
    pub named: Vec<CertificateDer<'static>>,
    /// Accepted for the host, whatever their names.
    pub of_host: Vec<CertificateDer<'static>>,
}

impl PinnedCertificates {
    /// Returns true if a certificate is accepted for a name; an error if it is listed, but for
    /// other names.
    fn accepts(&self, shown: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<bool, Error> {
        if self.of_host.contains(shown) {
            return Ok(true);
        }
        if !self.named.contains(shown) {
            return Ok(false);
        }
        verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        Ok(true)
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
        let machine = match &self.accepted {
            AcceptedCertificates::Any => return Ok(ServerCertVerified::assertion()),
            AcceptedCertificates::These(pinned, machine) => {
                if pinned.accepts(end_entity, server_name)? {
                    return Ok(ServerCertVerified::assertion());
                }
                machine.as_ref()
            }
        };
        machine
            .ok_or(CertificateError::UnknownIssuer)?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
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
