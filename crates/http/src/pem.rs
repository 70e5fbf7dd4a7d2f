//! Files of certificates and keys, which users name.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use wincimg_common::files;

/// All CAs of a machine have a quarter of that.
const LARGEST_FILE: u64 = 1 << 20;
/// The certificates of a file, in PEM or, as Windows exports one, in DER; else what is wrong with it.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates_in(read(path)?)
}

/// The certificates in a file's bytes.
pub fn certificates_in(bytes: Vec<u8>) -> Result<Vec<CertificateDer<'static>>, String> {
    // A SEQUENCE with a length of several bytes; no text begins so.
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

/// The private key of a file in PEM; else what is wrong with it.
pub fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, LARGEST_FILE).map_err(|error| error.to_string())
}
