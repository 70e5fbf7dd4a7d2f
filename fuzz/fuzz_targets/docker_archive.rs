//! Archives of `docker save`, old and new: the manifests that they have or need, and their blobs.

#![no_main]

use std::io::Write as _;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use wincimg_oci::archive::DockerArchive;
use wincimg_oci::document::Document;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    RUNTIME.block_on(async {
        let Ok(archive) = DockerArchive::open(file.path()).await else {
            return;
        };
        if let Ok(Document::Manifest(manifest)) = archive.resolve(None).await {
            drop(archive.read(&manifest.config.digest).await);
            for layer in &manifest.layers {
                drop(archive.blob(layer));
            }
        }
    });
});
