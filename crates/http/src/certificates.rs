//! Certificates that are trusted beside the machine's, and those by which this side is known: files
//! that the user names, and the folders in which Docker's and containers' tools look.
//!
//! A CA vouches for others. What is not a CA, or signed itself, is accepted exactly as it is: the library
//! takes no certificate for a server's that may sign others, and many that people make for a registry
//! of their own may.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use reqwest::Url;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use wincimg_common::x509::Certificate;

use super::error::HttpError;
use super::pem::{read_certificates, read_private_key};
use super::urls::host_of;
use super::verifier::{AcceptedCertificates, CertificateVerifier};

/// Files of certificates and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Files of certificates to trust, for every host.
    pub files: Vec<PathBuf>,
    /// Folders that have a folder for each host: `HOST[:PORT]/*.crt` to trust, `*.cert` with its
    /// `*.key` to be known by.
    pub folders: Vec<PathBuf>,
    /// True if the user named the folders: then they have to be there.
    pub is_named: bool,
}

/// What there is for one host.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HostCertificates {
    trusted: Vec<CertificateDer<'static>>,
    /// A certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Default for CertificateFiles {
    /// The folders of Docker and of containers' tools.
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
    /// What there is for a URL's host.
    pub(super) fn for_host(&self, url: &Url) -> Result<HostCertificates, HttpError> {
        let mut found = HostCertificates::default();
        for file in &self.files {
            found.trusted.extend(certificates(file)?);
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
            // Nobody asked for what others may not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !self.is_named => {
                tracing::debug!("left out {}: {error}", folder.display());
                return Ok(());
            }
            Err(error) => return Err(unusable(folder, &error)),
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            match file.extension().and_then(|ending| ending.to_str()) {
                Some("crt") => found.trusted.extend(certificates(&file)?),
                Some("cert") if found.identity.is_none() => {
                    let key = file.with_extension("key");
                    if !key.is_file() {
                        return Err(unusable(&file, &"it has no key beside it (.key)"));
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

    /// The configuration of a client that trusts these beside the machine's.
    pub(super) fn client(self) -> Result<ClientConfig, HttpError> {
        let provider = Arc::new(ring::default_provider());
        let named = self.trusted;
        let roots = named.iter().filter(|certificate| signs_others(certificate));
        let roots: Vec<_> = roots.cloned().collect();
        let has_roots = !roots.is_empty();
        let machine = match Verifier::new_with_extra_roots(roots, Arc::clone(&provider)) {
            Ok(machine) => Some(machine),
            // A machine may have none, and what is accepted as it is needs none.
            Err(_) if !has_roots && !named.is_empty() => None,
            Err(error) => return Err(HttpError::Roots(error)),
        };
        let verifier = CertificateVerifier {
            accepted: AcceptedCertificates::These(named, machine),
            provider: Arc::clone(&provider),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(HttpError::Roots)?
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

/// The names that a host's folder may have: with the port, and without the usual one.
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
        // A name there has no colon, so Docker leaves it out.
        for name in &mut names {
            name.retain(|c| c != ':');
        }
    }
    names
}

/// The certificates of a file, in PEM or, as Windows exports one, in DER.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    read_certificates(path).map_err(|problem| unusable(path, &problem))
}

fn unusable(path: &Path, problem: &dyn std::fmt::Display) -> HttpError {
    HttpError::CertificateFile {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

/// Returns true if a certificate is a CA's. One that is not would be believed everything all the
/// same if it were a root: roots are not asked what they may.
fn signs_others(certificate: &[u8]) -> bool {
    // What cannot be read is refused with the library's own words.
    Certificate::parse(certificate).map_or(true, |certificate| certificate.is_ca())
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
