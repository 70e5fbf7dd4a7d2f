//! Files with certificates and keys, given by users.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use wincimg_common::files;

/// Four times the size of all CAs of a system.
const LARGEST_FILE: u64 = 1 << 20;
/// Reads the certificates of a file, in PEM or, as exported by Windows, in DER; returns a message
/// on failure.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates_in(read(path)?)
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
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = files::read(path, LARGEST_FILE).map_err(|error| error.to_string())?;
    Ok(files::without_mark(bytes))
}
