//! Manifests, indexes and configurations of images, and documents that are attached to them.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wincimg_inspect::provenance::fuzz::attached;
use wincimg_oci::document::{Artifact, Document, ImageConfig, Index, Manifest, Verbatim, sha256};

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::copy_from_slice(bytes);
    drop(Verbatim::<ImageConfig>::parse(bytes.clone()));
    drop(Verbatim::<Index>::parse(bytes.clone()));
    drop(Verbatim::<Manifest>::parse(bytes.clone()));
    attached(bytes.clone());
    let digest = sha256(&bytes);
    if let Ok(document) = Document::verify("", bytes.clone(), &digest) {
        assert_eq!(document.bytes(), &bytes);
        drop(Artifact::read(document));
    }
});
