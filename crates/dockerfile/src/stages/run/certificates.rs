//! Certificates that a line adds to the machine's stores.

use wincimg_recipe::certificates_in_file;
use wincimg_scripts::{Image as _, Later, Seen, Trouble};
use wincimg_windows::certificate::{Store, TrustedCertificate};
use wincimg_windows::path::ImagePath;

use super::Running;

impl Running<'_> {
    /// The certificates of a file come into a store.
    pub(super) fn trust(&mut self, store: &str, file: &ImagePath) -> Result<(), Trouble> {
        let store = match store {
            "ROOT" => Store::Root,
            "CA" => Store::Ca,
            "TrustedPublisher" => Store::TrustedPublisher,
            "TrustedPeople" => Store::TrustedPeople,
            other => {
                let why = format!("the store {other} is not written to");
                return Err(
                    Trouble::unclear(why).help("use Root, CA, TrustedPublisher or TrustedPeople")
                );
            }
        };
        let bytes = match self.content(file) {
            Seen::Present(bytes) => bytes,
            Seen::Later(Later) => return Ok(()),
            Seen::Absent | Seen::Unknown => {
                let why = format!("the content of {file} is not known");
                return Err(Trouble::unknown(why));
            }
        };
        let begins = b"-----BEGIN ";
        let parts = bytes.windows(begins.len()).filter(|it| it == begins);
        if parts.count() > 1 {
            let why = format!("{file} has several certificates, of which Windows takes the first");
            return Err(Trouble::unclear(why).help("give each certificate a file of its own"));
        }
        let found = certificates_in_file(bytes, &file.to_string())
            .map_err(|unusable| Trouble::unclear(unusable.problem))?;
        let trusted = found
            .into_iter()
            .map(|certificate| TrustedCertificate { store, certificate });
        self.registry
            .edits
            .extend(trusted.map(|trusted| trusted.edit()));
        Ok(())
    }
}
