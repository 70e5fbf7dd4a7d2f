//! Blobs down: small ones into memory, large ones into a file that appears only when it is true.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use oci_spec::image::{Descriptor, Digest};
use reqwest::Method;

use super::part::Part;
use super::{RegistryError, RemoteBlob, Repository};
use crate::progress::Task;

impl Repository {
    /// Whether the repository has a blob.
    pub async fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryError> {
        let what = format!("look for blob {digest} of {self}");
        let request = self.request(Method::HEAD, &format!("blobs/{digest}"), what);
        match self.inner().call(&request).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A blob to read from, or to copy elsewhere.
    pub fn blob(&self, descriptor: &Descriptor) -> RemoteBlob {
        RemoteBlob::in_repository(self, descriptor)
    }

    /// A small blob in memory, verified.
    pub async fn get_blob(
        &self,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Bytes, RegistryError> {
        if descriptor.size() > limit {
            return Err(RegistryError::TooLarge {
                what: format!("blob {} of {self}", descriptor.digest()),
                limit,
            });
        }
        let mut pull = self.blob(descriptor).pull(0)?;
        let mut bytes = BytesMut::new();
        while let Some(chunk) = pull.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    /// A blob as a file. What is missing at its end is in `FILE.part` until it is complete and
    /// verified; an interrupted download goes on from there.
    pub async fn download_blob(
        &self,
        descriptor: &Descriptor,
        to: &Path,
        task: &dyn Task,
    ) -> Result<(), RegistryError> {
        self.blob(descriptor).download(to, task).await
    }
}

impl RemoteBlob {
    /// The same for a blob from anywhere.
    pub async fn download(&self, to: &Path, task: &dyn Task) -> Result<(), RegistryError> {
        let mut part = Part::open(to, self.descriptor()).await?;
        match self.fill(&mut part, task).await {
            // What an earlier run left may be at fault: once more, from the beginning.
            Err(RegistryError::Digest { .. }) if part.resumed => {
                part.restart().await?;
                match self.fill(&mut part, task).await {
                    Ok(()) => part.keep().await,
                    Err(error) => Err(part.fail(error)),
                }
            }
            Ok(()) => part.keep().await,
            Err(error) => Err(part.fail(error)),
        }
    }

    async fn fill(&self, part: &mut Part, task: &dyn Task) -> Result<(), RegistryError> {
        task.set_position(part.length);
        let mut pull = self.pull(part.length)?;
        if let Some(hasher) = part.hasher.take() {
            pull.continue_hash(hasher);
        }
        while let Some(chunk) = pull.next().await? {
            part.write(&chunk).await?;
            task.advance(chunk.len() as u64);
        }
        Ok(())
    }
}
