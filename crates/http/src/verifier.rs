//! Verification of a server's certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// Judges the certificate that a server shows. That the server has its key is always asked for, so
/// that the connection is with one and the same peer, whoever that is.
#[derive(Debug)]
pub struct CertificateVerifier {
    /// What will do.
    pub accepted: AcceptedCertificates,
    /// Whose signatures are known.
    pub provider: Arc<CryptoProvider>,
}

/// The certificates that are accepted.
#[derive(Debug)]
pub enum AcceptedCertificates {
    /// Every one.
    Any,
    /// These exactly as they are, and what the machine trusts.
    These(Vec<CertificateDer<'static>>, Option<Verifier>),
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
            AcceptedCertificates::These(accepted, _) if accepted.contains(end_entity) => {
                return Ok(ServerCertVerified::assertion());
            }
            AcceptedCertificates::These(_, machine) => machine.as_ref(),
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
