//! Certificates that a line adds to the machine's stores.

use wincimg_recipe::certificates_in_file;
use wincimg_scripts::{ImageState as _, Lookup, PendingDownload, ScriptError};
use wincimg_windows::certificate::{CertificateStore, TrustedCertificate};
use wincimg_windows::path::ImagePath;

use super::{RunState, unknown_content};

impl RunState<'_> {
    /// Adds the certificates of a file to a store.
    pub(super) fn trust(&mut self, store: &str, file: &ImagePath) -> Result<(), ScriptError> {
        let store = match store {
            "ROOT" => CertificateStore::Root,
            "CA" => CertificateStore::Ca,
            "TrustedPublisher" => CertificateStore::TrustedPublisher,
            "TrustedPeople" => CertificateStore::TrustedPeople,
            other => {
                let why = format!("unsupported certificate store {other}");
                return Err(ScriptError::unclear(why)
                    .help("use Root, CA, TrustedPublisher or TrustedPeople"));
            }
        };
        let bytes = match self.content(file) {
            Lookup::Present(bytes) => bytes,
            Lookup::Deferred(PendingDownload) => return Ok(()),
            Lookup::Absent | Lookup::Unknown => return Err(unknown_content(file)),
        };
        let begins = b"-----BEGIN ";
        let parts = bytes.windows(begins.len()).filter(|it| it == begins);
        if parts.count() > 1 {
            let why =
                format!("{file} contains several certificates, of which Windows imports the first");
            return Err(ScriptError::unclear(why).help("put each certificate in a file of its own"));
        }
        let found = certificates_in_file(bytes, &file.to_string())
            .map_err(|unusable| ScriptError::unclear(unusable.to_string()))?;
        let trusted = found
            .into_iter()
            .map(|certificate| TrustedCertificate { store, certificate });
        self.registry.edit(trusted.map(|trusted| trusted.edit()));
        Ok(())
    }
}
