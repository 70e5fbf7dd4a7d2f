//! Bytes that can be read again from any offset: what lets an upload resume.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use oci_spec::image::Descriptor;
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeekExt};
use tokio_util::io::StreamReader;

use super::pull::{Origin, Pull};
use super::{Registry, RegistryError, Repository};

/// A reader of a source, from some offset to its end.
pub type BlobReader = Pin<Box<dyn AsyncRead + Send>>;

/// Bytes that can be read more than once.
pub trait BlobSource: Send + Sync {
    /// Begins to read at `offset`.
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>>;
}

impl BlobSource for Bytes {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        let at = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let rest = io::Cursor::new(self.slice(at..));
        Box::pin(async { Ok(Box::pin(rest) as BlobReader) })
    }
}

/// The file at a path.
impl BlobSource for PathBuf {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(open_file(self, offset))
    }
}

/// The same for a file that goes away with its path.
impl BlobSource for TempPath {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(open_file(self, offset))
    }
}

async fn open_file(path: &Path, offset: u64) -> io::Result<BlobReader> {
    let mut file = File::open(path).await?;
    file.seek(io::SeekFrom::Start(offset)).await?;
    Ok(Box::pin(file))
}

/// A blob somewhere on the network. Reading it resumes after broken connections, and a reader
/// that began at offset 0 verifies the digest before it reports the end.
#[derive(Clone)]
pub struct RemoteBlob {
    registry: Registry,
    origin: Origin,
    descriptor: Descriptor,
}

impl RemoteBlob {
    pub(super) fn in_repository(repository: &Repository, descriptor: &Descriptor) -> Self {
        Self {
            registry: repository.registry.clone(),
            origin: Origin::Repository(repository.clone()),
            descriptor: descriptor.clone(),
        }
    }

    pub(super) fn at_urls(registry: Registry, urls: &[String], descriptor: &Descriptor) -> Self {
        Self {
            registry,
            origin: Origin::Urls(urls.into()),
            descriptor: descriptor.clone(),
        }
    }

    /// What is read.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The bytes from an offset on; verified where that is the beginning.
    pub(super) fn pull(&self, offset: u64) -> Result<Pull, RegistryError> {
        Pull::new(
            self.registry.clone(),
            self.origin.clone(),
            &self.descriptor,
            offset,
        )
    }
}

impl BlobSource for RemoteBlob {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(async move {
            let pull = self.pull(offset).map_err(io::Error::other)?;
            let chunks = stream::try_unfold(pull, |mut pull| async {
                let next = pull.next().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>(next.map(|chunk| (chunk, pull)))
            });
            Ok(Box::pin(StreamReader::new(Box::pin(chunks))) as BlobReader)
        })
    }
}
