//! Uploads the beginning of a blob while the rest is still being generated.
//!
//! An upload is opened once a chunk is large enough to be worth a request, and
//! [`Repository::put_blob`] continues it. An upload that is not closed is invisible. Any error ends
//! it: the blob is then uploaded when it is complete.

use tokio::sync::watch;
use wincimg_common::progress::Silent;
use wincimg_http::{BlobSource, CachedReader, SourceRange};

use super::capabilities::UploadMode;
use super::error::RegistryError;
use super::repository::Repository;
use super::upload_session::{self, Session, range_headers};
use crate::document::Digest;

/// Minimum chunk worth a request. Registries that store blobs in S3 need 5 MiB in each chunk but
/// the last.
const MIN_CHUNK_SIZE: u64 = 8 * 1024 * 1024;

/// Name of a blob in messages while its digest is unknown.
const BEGINNING: &str = "the beginning of a blob";

/// An upload that contains the beginning of a blob.
pub struct PartialUpload {
    repository: Repository,
    session: Session,
}

impl Repository {
    /// Uploads a growing blob: `grown` has its current length, and closes when no more is to be
    /// uploaded this way.
    pub async fn stream_blob(
        &self,
        blob: &dyn BlobSource,
        mut grown: watch::Receiver<u64>,
    ) -> Option<PartialUpload> {
        let mut begun = None;
        let reader = CachedReader::default();
        while let Some(most) = self.most_at_once() {
            let (offset, least) = match &begun {
                Some(Session { offset, least, .. }) => (*offset, *least),
                None => (0, 0),
            };
            let wanted = MIN_CHUNK_SIZE.min(most).max(least);
            let is_enough = |size: &u64| size.saturating_sub(offset) >= wanted;
            let size = match grown.wait_for(is_enough).await {
                Ok(size) => *size,
                Err(_) => break,
            };
            if grown.has_changed().is_err() {
                break;
            }
            let piece = SourceRange {
                source: blob,
                reader: &reader,
                task: &Silent,
                offset,
                length: (size - offset).min(most.max(least)),
            };
            let done = match &mut begun {
                None => self.open().await.map(|session| begun = Some(session)),
                Some(session) => match range_headers(&piece) {
                    Ok(headers) => session.send(self, BEGINNING, piece, headers).await,
                    Err(error) => Err(error.into()),
                },
            };
            if let Err(error) = done {
                tracing::debug!(%error, "cannot upload the beginning of a blob");
                if let Some(session) = begun {
                    upload_session::cancel(self, session.location, BEGINNING).await;
                }
                return None;
            }
        }
        let session = begun?;
        let repository = self.clone();
        Some(PartialUpload {
            repository,
            session,
        })
    }

    /// Maximum chunk; `None` if the host is known to refuse chunks.
    fn most_at_once(&self) -> Option<u64> {
        match self.host.takes.get().mode {
            None => Some(self.inner().options.chunk_size.max(1)),
            Some(UploadMode::Pieces(size)) => Some(size),
            Some(UploadMode::Whole | UploadMode::Streamed) => None,
        }
    }

    async fn open(&self) -> Result<Session, RegistryError> {
        let request = Session::open_request(self, format!("start an upload to {self}"));
        let response = self.inner().once(&request).await?;
        Ok(Session::from_response(&request.what, &response)?)
    }

    /// Returns true if an upload has the beginning of the blob or waits for it.
    pub fn has_partial_upload(&self, digest: &Digest) -> bool {
        let key = self.upload_key(digest);
        self.inner().opened_uploads().contains_key(&key)
    }

    /// Cancels the unfinished upload of a blob.
    pub async fn cancel_partial_upload(&self, digest: &Digest) {
        let session = self
            .inner()
            .opened_uploads()
            .remove(&self.upload_key(digest));
        if let Some(session) = session {
            upload_session::cancel(self, session.location, BEGINNING).await;
        }
    }
}

impl PartialUpload {
    /// Keeps the upload for the next [`Repository::put_blob`] of the blob.
    pub fn keep(self, digest: &Digest) {
        let key = self.repository.upload_key(digest);
        let inner = self.repository.inner();
        inner.opened_uploads().insert(key, self.session);
    }

    /// Cancels the upload.
    pub async fn cancel(self) {
        upload_session::cancel(&self.repository, self.session.location, BEGINNING).await;
    }
}
