//! Tests a push to a repository that the user named for it. A missing feature is a problem only if
//! the program has no alternative.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use wincimg_common::diagnose::BoxError;
use wincimg_common::progress::Silent;
use wincimg_layer::{Layer, LayerError, WriteOptions};
use wincimg_oci::document::{Descriptor, Digest, History, Image, Platform, sha256};
use wincimg_oci::reference::DOCKER_HUB;
use wincimg_oci::remote::{RegistryError, Repository};

use super::{Check, failed};
use crate::cli::prelude::*;

/// Size of the file in the test layer, which compression halves: the layer is small, but larger than
/// one piece.
const FILE: usize = 128 * 1024;
/// Size of a piece, so that the layer has two.
pub(super) const PIECE: u64 = 48 * 1024;

/// The repository in a `--registry`; none if it names only a host, or Docker Hub and a user.
pub(super) fn repository_of(target: &RegistryPrefix) -> Result<Reference> {
    let text = target.to_string();
    let parts = text.split('/').count();
    let on_hub = target.host() == DOCKER_HUB;
    let named = (parts > if on_hub { 2 } else { 1 }).then(|| parse_reference(&text));
    match named {
        Some(Ok(reference)) => Ok(reference),
        _ => {
            let place = if on_hub && parts == 1 {
                format!("{text}/USER")
            } else {
                text.clone()
            };
            let problem = format!("--push requires a repository: {text} is not one");
            Err(Failure::usage(problem).hint(format!(
                "name one: --registry {place}/wincimg-doctor --push"
            )))
        }
    }
}

/// Tests a push and reports the results; deletes everything that can be deleted.
pub(super) async fn check(registry: &RegistryClient, reference: &Reference) -> Vec<Check> {
    let repository = registry.repository(reference).for_push();
    let subject = repository.to_string();
    let mut checks = vec![tags(&repository, &subject).await];
    let trial = match TestImage::new() {
        Ok(trial) => trial,
        Err(error) => {
            let fix = "free some memory";
            checks.push(Check::problem("upload", &subject, error.to_string(), fix));
            return checks;
        }
    };
    match trial.upload(&repository).await {
        Ok(()) => checks.push(Check::ok("upload", &subject, uploads(&repository))),
        Err(error) => {
            checks.push(failed("upload", &subject, &error));
            return checks;
        }
    }
    checks.push(trial.mount(&repository, &subject).await);
    checks.extend(trial.publish(&repository, &subject).await);
    checks
}

async fn tags(repository: &Repository, subject: &str) -> Check {
    let finding = match repository.tags().await {
        Ok(tags) => format!("found tags: {}", tags.len()),
        Err(error) if error.is_not_found() => {
            "the repository does not exist yet; many registries create it on the first push"
                .to_owned()
        }
        Err(error) => format!(
            "cannot list tags ({}); base images are selected by tag, so this registry cannot \
             provide them",
            error_chain(&error)
        ),
    };
    Check::ok("tags", subject, finding)
}

fn uploads(repository: &Repository) -> &'static str {
    if repository.supports_chunks() {
        "accepted a small blob in two pieces"
    } else {
        "accepted a small blob in one request, but not in two pieces; if large blobs are rejected \
         in pieces too, they are sent in one request"
    }
}

/// The test image, in both manifest formats.
struct TestImage {
    tag: String,
    layer: Bytes,
    docker: Image,
    oci: Image,
}

impl TestImage {
    /// A unique image, because it contains the current time.
    fn new() -> Result<Self, BoxError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let seed = sha256(format!("{now} {}", std::process::id()).as_bytes());
        let mut noise = Vec::with_capacity(FILE);
        let mut block = seed.clone();
        while noise.len() < FILE {
            noise.extend_from_slice(block.digest().as_bytes());
            block = sha256(block.digest().as_bytes());
        }
        let mut layer = Layer::new(0);
        let name = "wincimg-doctor".parse().map_err(LayerError::from)?;
        layer.file(name, Bytes::from(noise));
        let mut blob = Vec::new();
        let written = layer.write(&mut blob, &WriteOptions::default())?;
        let image = |format: ManifestFormat| {
            let (digest, diff_id) = (written.digest.clone(), written.diff_id.clone());
            let blob = Descriptor::new(format.layer_gzip(), digest, written.size);
            let below = Image::empty(format, Platform::windows("10.0.17763.0"))?;
            below.append_layer(blob, diff_id, History::default())
        };
        Ok(Self {
            tag: format!("wincimg-doctor-{}", &seed.digest()[..12]),
            layer: blob.into(),
            docker: image(ManifestFormat::Docker)?,
            oci: image(ManifestFormat::Oci)?,
        })
    }

    async fn upload(&self, repository: &Repository) -> Result<(), RegistryError> {
        // Both formats have the same configuration.
        for bytes in [&self.layer, self.oci.config().bytes()] {
            let size = bytes.len() as u64;
            let digest = sha256(bytes);
            let put = repository.put_blob(&digest, size, bytes, &Silent);
            put.await?;
        }
        Ok(())
    }

    async fn mount(&self, repository: &Repository, subject: &str) -> Check {
        let mounted = repository
            .mount_blob(&sha256(&self.layer), repository.name())
            .await;
        let finding = match mounted {
            Ok(true) => "mounts blobs from other repositories",
            Ok(false) => "does not mount blobs from other repositories; they are copied",
            Err(error) => return failed("mount", subject, &error),
        };
        Check::ok("mount", subject, finding)
    }

    /// Publishes the image in both manifest formats, and deletes it.
    async fn publish(&self, repository: &Repository, subject: &str) -> Vec<Check> {
        let docker = self.put(repository, &self.docker, "docker").await;
        let oci = self.put(repository, &self.oci, "oci").await;
        let refused = |error: &RegistryError| error_chain(error);
        let check = match (&docker, &oci) {
            (Ok(_), Ok(_)) => Check::ok("manifest", subject, "accepts Docker and OCI manifests"),
            (Ok(_), Err(error)) => {
                let finding = format!(
                    "accepts Docker manifests, the format of Microsoft's bases, but no OCI \
                     manifests ({})",
                    refused(error)
                );
                Check::ok("manifest", subject, finding)
            }
            (Err(error), Ok(_)) => {
                let error = refused(error);
                let finding = format!("accepts OCI manifests, but no Docker manifests ({error})");
                Check::problem(
                    "manifest",
                    subject,
                    finding,
                    "build and mirror with --manifest-format oci",
                )
            }
            (Err(error), Err(_)) => failed("manifest", subject, error),
        };
        let mut checks = vec![check];
        let mut left = Vec::new();
        let mut reason = String::new();
        for (tag, digest) in docker.into_iter().chain(oci) {
            if let Err(error) = repository.delete_manifest(digest.as_ref()).await {
                reason = error_chain(&error);
                left.push(tag);
            }
        }
        if !left.is_empty() {
            let left = left.join(", ");
            let finding = format!("cannot delete {left} ({reason}); nothing uses it");
            checks.push(Check::ok("left behind", subject, finding));
        }
        checks
    }

    async fn put(
        &self,
        repository: &Repository,
        image: &Image,
        format: &str,
    ) -> Result<(String, Digest), RegistryError> {
        let manifest = image.manifest();
        let tag = format!("{}-{format}", self.tag);
        let bytes = manifest.bytes().clone();
        let put = repository.put_manifest(&tag, manifest.media_type(), bytes);
        let digest = put.await?;
        Ok((tag, digest))
    }
}
