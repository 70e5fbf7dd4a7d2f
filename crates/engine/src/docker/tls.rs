//! TLS as in Docker's CLI: a private CA, a client certificate, or encryption alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, Error, RootCertStore};
use wincimg_common::diagnose::Problem;
use wincimg_http::{
    AcceptedCertificates, CertificateVerifier, read_certificates, read_private_key,
};

use super::error::unusable;

/// Verification of a daemon's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVerification {
    /// The CA in the file, and no other.
    Authority,
    /// A CA that the system trusts.
    System,
    /// None.
    Anyone,
}

/// TLS files of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The CA's certificate.
    pub authority: PathBuf,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Verification of the daemon's certificate.
    pub trust: TlsVerification,
}

impl TlsFiles {
    /// The files under Docker's names; the client certificate is optional.
    pub(super) fn in_folder(folder: &Path, trust: TlsVerification) -> Self {
        let identity = (folder.join("cert.pem"), folder.join("key.pem"));
        Self {
            authority: folder.join("ca.pem"),
            identity: (identity.0.is_file() && identity.1.is_file()).then_some(identity),
            trust,
        }
    }

    pub(super) fn client(&self) -> Result<ClientConfig, Problem> {
        let provider = Arc::new(ring::default_provider());
        let refused = |error: Error| unusable(&self.authority, &error);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(provider)?);
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let private = read_private_key(key).map_err(|problem| unusable(key, &problem))?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| unusable(certificate, &error))
            }
        }
    }

    fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, Problem> {
        match self.trust {
            // As Docker does if `DOCKER_TLS` is set without `DOCKER_TLS_VERIFY`.
            TlsVerification::Anyone => Ok(Arc::new(CertificateVerifier {
                accepted: AcceptedCertificates::Any,
                provider,
            })),
            TlsVerification::System => rustls_platform_verifier::Verifier::new(provider)
                .map(|verifier| Arc::new(verifier) as _)
                .map_err(|error| unusable(&self.authority, &error)),
            TlsVerification::Authority => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(&self.authority)? {
                    roots
                        .add(certificate)
                        .map_err(|error| unusable(&self.authority, &error))?;
                }
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let verifier = verifier.map_err(|error| unusable(&self.authority, &error))?;
                Ok(verifier)
            }
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Problem> {
    read_certificates(path).map_err(|problem| unusable(path, &problem))
}
