//! Certificates that a line adds to the machine's stores.

use super::{Running, trouble};
use crate::dockerfile::run::{Image as _, Seen, Trouble, TroubleKind};
use crate::recipe::certificates_in_file;
use crate::windows::certificate::Store;
use crate::windows::path::ImagePath;

impl Running<'_> {
    /// The certificates of a file come into a store.
    pub(super) fn trust(&mut self, store: &str, file: &ImagePath) -> Result<(), Trouble> {
        let not_understood = |why: String| trouble(TroubleKind::NotUnderstood, why);
        let store = match store {
            "ROOT" => Store::Root,
            "CA" => Store::Ca,
            "TrustedPublisher" => Store::TrustedPublisher,
            "TrustedPeople" => Store::TrustedPeople,
            other => {
                let why = format!("the store {other} is not written to");
                return Err(
                    not_understood(why).help("use Root, CA, TrustedPublisher or TrustedPeople")
                );
            }
        };
        let bytes = match self.content(file) {
            Seen::There(bytes) => bytes,
            Seen::Later => return Ok(()),
            Seen::Missing | Seen::Unknown => {
                let why = format!("the content of {file} is not known");
                return Err(trouble(TroubleKind::NotKnown, why));
            }
        };
        let begins = b"-----BEGIN ";
        let parts = bytes.windows(begins.len()).filter(|it| it == begins);
        if parts.count() > 1 {
            let why = format!("{file} has several certificates, of which Windows takes the first");
            return Err(not_understood(why).help("give each certificate a file of its own"));
        }
        let found = certificates_in_file(bytes, &file.to_string())
            .map_err(|unusable| not_understood(unusable.problem))?;
        let edits = found.iter().map(|certificate| certificate.edit(store));
        self.edits.extend(edits);
        Ok(())
    }
}
