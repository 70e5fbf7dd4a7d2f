//! Certificates trusted in addition to the system's, and client certificates: files given by the
//! user, and the folders of Docker and containers' tools.
//!
//! A CA is trusted to sign other certificates. A certificate that is self-signed or no CA is
//! accepted by exact match: the library rejects a server certificate that is also a CA, which many
//! self-made certificates for registries are. One in the folder of a host is accepted for this host,
//! one of a file for the names in it. A server's signs no others: whoever has its key could pose as
//! any host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use reqwest::Url;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::Verifier;
use wincimg_common::diagnose::Problem;
use wincimg_common::files;
use wincimg_common::x509::Certificate;

use super::error::HttpError;
use super::urls::host_of;
use super::verifier::{AcceptedCertificates, CertificateVerifier, PinnedCertificates};

/// Four times the size of all CAs of a system.
const LARGEST_FILE: u64 = 1 << 20;

/// Files of certificates and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Certificates to trust for every host.
    pub files: Vec<PathBuf>,
    /// Folders with a subfolder for each host: `HOST[:PORT]/*.crt` to trust, `*.cert` with its
    /// `*.key` as the client certificate.
    pub folders: Vec<PathBuf>,
    /// True if the user gave the folders, which must then exist.
    pub is_named: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostCertificates {
    pinned: PinnedCertificates,
    /// A client certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Default for CertificateFiles {
    /// The folders of Docker and containers' tools.
    fn default() -> Self {
        let folders = if cfg!(windows) {
            let data = std::env::var_os("ProgramData").map(PathBuf::from);
            data.map(|data| data.join("docker").join("certs.d"))
                .into_iter()
                .collect()
        } else {
            let own = std::env::home_dir().map(|home| home.join(".config/containers/certs.d"));
            let system = ["/etc/containers/certs.d", "/etc/docker/certs.d"];
            own.into_iter().chain(system.map(PathBuf::from)).collect()
        };
        Self {
            files: Vec::new(),
            folders,
            is_named: false,
        }
    }
}

impl CertificateFiles {
    /// The flags that name them.
    pub(super) fn to_words(&self) -> Vec<String> {
        let files = self.files.iter().map(|file| ("--ca-file", file));
        let folders = self.folders.iter().filter(|_| self.is_named);
        let folders = folders.map(|folder| ("--certs-dir", folder));
        let words = files.chain(folders);
        words
            .flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()])
            .collect()
    }

    pub(super) fn for_host(&self, url: &Url) -> Result<HostCertificates, HttpError> {
        let mut found = HostCertificates::default();
        for file in &self.files {
            found.pinned.named.extend(certificates(file)?);
        }
        for folder in &self.folders {
            for name in names(url) {
                self.read_folder(&folder.join(name), &mut found)?;
            }
        }
        Ok(found)
    }

    fn read_folder(&self, folder: &Path, found: &mut HostCertificates) -> Result<(), HttpError> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Default folders may be unreadable.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !self.is_named => {
                tracing::debug!("skipped {}: {error}", folder.display());
                return Ok(());
            }
            Err(error) => return Err(unusable(folder, &error)),
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            match file.extension().and_then(|ending| ending.to_str()) {
                Some("crt") => found.pinned.of_host.extend(certificates(&file)?),
                Some("cert") if found.identity.is_none() => {
                    let key = file.with_extension("key");
                    if !key.is_file() {
                        return Err(unusable(
                            &file,
                            &"its private key (.key) was not found in the same folder",
                        ));
                    }
                    found.identity = Some((file, key));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl HostCertificates {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Creates the configuration of a client that also trusts these.
    pub(super) fn client(self) -> Result<ClientConfig, HttpError> {
        let provider = Arc::new(ring::default_provider());
        let pinned = self.pinned;
        let named = pinned.named.iter().filter(|it| signs_for_all(it));
        let of_host = pinned.of_host.iter().filter(|it| signs_others(it));
        let roots: Vec<_> = named.chain(of_host).cloned().collect();
        let is_pinned = !pinned.named.is_empty() || !pinned.of_host.is_empty();
        let has_roots = !roots.is_empty();
        let machine = match Verifier::new_with_extra_roots(roots, Arc::clone(&provider)) {
            Ok(machine) => Some(machine),
            // A system may have no roots; certificates accepted by exact match need none.
            Err(_) if !has_roots && is_pinned => None,
            Err(error) => return Err(untrusted(error)),
        };
        let verifier = CertificateVerifier {
            accepted: AcceptedCertificates::These(pinned, machine),
            provider: Arc::clone(&provider),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(untrusted)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let Some((certificate, key)) = self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let private = read_private_key(&key).map_err(|problem| unusable(&key, &problem))?;
        builder
            .with_client_auth_cert(certificates(&certificate)?, private)
            .map_err(|error| unusable(&certificate, &error))
    }
}

/// The possible names of a host's folder: with the port, and without the default port.
fn names(url: &Url) -> Vec<String> {
    let host = host_of(url);
    let mut names = match url.port() {
        Some(_) => vec![host],
        None => vec![format!("{host}:443"), host],
    };
    if url.host_str() == Some("registry-1.docker.io") {
        names.push("docker.io".to_owned());
    }
    if cfg!(windows) {
        // Windows does not allow colons in names, so Docker omits them.
        for name in &mut names {
            name.retain(|c| c != ':');
        }
    }
    names
}

/// Reads the certificates of a file, in PEM or, as exported by Windows, in DER.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    read_certificates(path).map_err(|problem| unusable(path, &problem))
}

fn unusable(path: &Path, problem: &dyn std::fmt::Display) -> HttpError {
    let problem = format!("cannot use {}: {problem}", path.display());
    Problem::new("usage/certificate-file", problem)
        .hint("--ca-file requires certificates in PEM; --certs-dir requires HOST[:PORT]/*.crt, or *.cert with its *.key")
        .into()
}

fn untrusted(error: rustls::Error) -> HttpError {
    Problem::new("network/answer", "cannot trust the given certificates")
        .source(error)
        .into()
}

/// Returns true if a certificate is a CA's. As a root, any other would be trusted as a CA too: the
/// constraints of roots are not checked.
fn signs_others(certificate: &[u8]) -> bool {
    // The library rejects what cannot be parsed.
    Certificate::parse(certificate).map_or(true, |certificate| certificate.is_ca())
}

/// Returns true if a certificate is a CA's for all hosts, not that of a server.
fn signs_for_all(certificate: &[u8]) -> bool {
    Certificate::parse(certificate).map_or(true, |it| it.is_ca() && !it.is_of_server())
}

/// Reads the certificates of a file, in PEM or, as exported by Windows, in DER; returns a message
/// on failure.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates_in(read_file(path)?)
}

/// Parses the certificates in a file's bytes.
pub fn certificates_in(bytes: Vec<u8>) -> Result<Vec<CertificateDer<'static>>, String> {
    // A SEQUENCE with a length of several bytes, with which no text begins.
    if matches!(bytes.as_slice(), [0x30, 0x81..=0x84, ..]) {
        return Ok(vec![CertificateDer::from(bytes)]);
    }
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    Ok(found)
}

/// Reads the private key of a PEM file; returns a message on failure.
pub fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(&read_file(path)?).map_err(|error| error.to_string())
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = files::read(path, LARGEST_FILE).map_err(|error| error.to_string())?;
    Ok(files::without_mark(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_folder_has_its_port_unless_that_is_the_usual_one() {
        let names = |url: &str| names(&url.parse().unwrap()).join(" ");
        assert_eq!(names("https://repo.lan:5000/v2/"), "repo.lan:5000");
        assert_eq!(names("https://repo.lan/v2/"), "repo.lan:443 repo.lan");
        assert_eq!(names("https://[::1]:5000/"), "[::1]:5000");
        let hub = names("https://registry-1.docker.io/v2/");
        assert!(hub.ends_with(" docker.io"), "{hub}");
    }
}
