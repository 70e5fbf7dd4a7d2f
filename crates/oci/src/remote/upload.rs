//! Blob uploads: mounted from another repository, in one request, or in chunks that can resume.
//!
//! Registries and their proxies limit the size of requests, refuse chunks, or accept only chunks.
//! An upload refused in one [`UploadMode`] is retried in another.
//!
//! After a broken connection, the registry is asked for the upload's offset, and the upload resumes
//! there. `distribution` up to 2.8 discards an upload whose chunk was interrupted; then it starts
//! again, each chunk on a connection of its own: what cuts connections after some bytes then cuts
//! none. Between two chunks, it resumes with every registry.
//!
//! Progress resets the attempts only if the registry keeps enough of the bytes that were sent: one
//! that keeps little of each chunk would otherwise be sent the blob again and again.

use std::mem;

use reqwest::header::{CONNECTION, HeaderMap, HeaderValue, RANGE};
use reqwest::{Method, StatusCode, Url};
use wincimg_common::diagnose::Problem;
use wincimg_common::progress::Task;
use wincimg_http::{
    BlobSource, CachedReader, HttpError, Payload, SourceRange, Transient, header_text,
};

use super::capabilities::UploadMode;
use super::challenge::Scope;
use super::client::UploadKey;
use super::error::RegistryError;
use super::repository::Repository;
use super::request::Request;
use super::upload_session::{
    self, OffsetSource, Session, UploadStep, octets, range_headers, upload_location,
};
use crate::document::Digest;

const TOO_MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;
/// Bytes that may be sent for each byte that the registry keeps.
const MOST_SENT: u64 = 8;

/// A blob being uploaded.
struct Upload<'a> {
    repository: &'a Repository,
    digest: &'a Digest,
    size: u64,
    source: &'a dyn BlobSource,
    reader: CachedReader,
    task: &'a dyn Task,
    mode: UploadMode,
    refused: Vec<UploadMode>,
    /// True if each chunk has a connection of its own.
    separately: bool,
}

impl Repository {
    /// Asks the registry to mount a blob from another of its repositories. Returns false if it does
    /// not, for any reason: the blob can still be uploaded. If the registry opens an upload
    /// instead, the next [`Repository::put_blob`] uses it.
    pub async fn mount_blob(&self, digest: &Digest, from: &str) -> Result<bool, RegistryError> {
        let takes = &self.host.takes;
        if !takes.get().mounts {
            return Ok(false);
        }
        let what = format!("mount blob {digest} from {from} into {self}");
        let path = format!("blobs/uploads/?mount={digest}&from={from}");
        let mut request = self.request(Method::POST, &path, what.clone());
        request.scope = Scope::mount(self.name(), from);
        let inner = self.inner();
        let answer = inner.http.retry(async || match inner.once(&request).await {
            // Even a server error is not worth a retry, but too many requests are.
            Err(error) if error.response_status().is_some_and(|it| it != TOO_MANY) => {
                Ok(Err(error))
            }
            answer => answer.map(Ok),
        });
        let response = match answer.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) | Err(error) => match error.response_status() {
                Some(status) => {
                    tracing::debug!(%error, "not mounted");
                    let never = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
                    if never.contains(&status) {
                        takes.update(|known| known.mounts = false);
                    }
                    return Ok(false);
                }
                None => return Err(error),
            },
        };
        if response.status() == StatusCode::CREATED {
            return Ok(true);
        }
        if let Ok(session) = Session::from_response(&what, &response) {
            let key = self.upload_key(digest);
            inner.opened_uploads().insert(key, session);
        }
        Ok(false)
    }

    /// Uploads a blob of `size` bytes, without checking if it exists.
    pub async fn put_blob(
        &self,
        digest: &Digest,
        size: u64,
        source: &dyn BlobSource,
        task: &dyn Task,
    ) -> Result<(), RegistryError> {
        let mut upload = Upload::new(self, digest, size, source, task);
        let key = self.upload_key(digest);
        let mut session = self.inner().opened_uploads().remove(&key);
        let mut attempts = self.inner().http.attempts();
        let stands_at = |session: &Option<Session>| session.as_ref().map_or(0, |it| it.offset);
        // The offset that the registry confirmed at the last progress, the bytes sent since, and
        // whether a connection broke.
        let (mut kept, mut sent, mut has_broken) = (stands_at(&session), 0, false);
        loop {
            let before = stands_at(&session);
            let Err(error) = upload.run(&mut session).await else {
                return Ok(());
            };
            if let Some(open) = &session
                && let Some(mode) = upload.other_mode(open, &error)
                && let Some(open) = session.take()
            {
                session = upload.change(mode, open).await?;
                continue;
            }
            let error = upload.cancel_unless_transient(error, &mut session).await?;
            let sending = session.as_ref().filter(|open| open.is_sending());
            let (was_sending, is_broken) = (sending.is_some(), error.status().is_none());
            let had = stands_at(&session);
            sent += had - before + sending.map_or(0, |open| upload.next_length(open));
            attempts.backoff(error).await?;
            session = upload.resume(session).await?;
            let has = stands_at(&session);
            upload.separately |= was_sending && has < had;
            if has > kept && has - kept >= sent / MOST_SENT {
                attempts.advance(has - kept);
                (kept, sent, has_broken) = (has, 0, false);
            } else if was_sending
                && is_broken
                && mem::replace(&mut has_broken, true)
                && upload.shrink()
            {
                // The response of a proxy that refuses a size and closes the connection may be lost.
                (kept, sent) = (kept.max(has), 0);
            }
            // At offset 0 a new upload costs nothing, and Gitea accepts nothing more in an upload
            // whose request broke.
            if let Some(spoilt) = session.take_if(|open| open.offset == 0) {
                upload.cancel(spoilt.location).await;
            }
            // Only the response to the last request may have been lost.
            if session.is_none() && self.has_blob(digest).await? {
                return Ok(());
            }
        }
    }

    pub(super) fn upload_key(&self, digest: &Digest) -> UploadKey {
        (
            self.host().to_owned(),
            self.name().to_owned(),
            digest.clone(),
        )
    }
}

impl<'a> Upload<'a> {
    /// An upload in the mode that the host is known to take, or in chunks.
    fn new(
        repository: &'a Repository,
        digest: &'a Digest,
        size: u64,
        source: &'a dyn BlobSource,
        task: &'a dyn Task,
    ) -> Self {
        let pieces = UploadMode::Pieces(repository.inner().options.chunk_size.max(1));
        Self {
            repository,
            digest,
            size,
            source,
            reader: CachedReader::default(),
            task,
            mode: repository.host.takes.get().mode.unwrap_or(pieces),
            refused: Vec::new(),
            separately: false,
        }
    }

    /// Sends the missing bytes. The session records the progress.
    async fn run(&self, session: &mut Option<Session>) -> Result<(), RegistryError> {
        let open = match session {
            Some(open) => open,
            None => session.insert(self.start().await?),
        };
        let is_whole = self.next_length(open) == self.size;
        if is_whole && self.mode != UploadMode::Streamed {
            return self.finish(open, true).await;
        }
        while open.offset < self.size {
            let piece = self.piece(open.offset, self.next_length(open));
            open.send(self.repository, &self.name(), piece, self.headers(piece)?)
                .await?;
        }
        self.finish(open, false).await
    }

    fn next_length(&self, open: &Session) -> u64 {
        let chunk = match self.mode {
            UploadMode::Pieces(size) => size.max(open.least),
            UploadMode::Whole | UploadMode::Streamed => self.size,
        };
        chunk.min(self.size - open.offset)
    }

    /// Headers of a chunk. If it is the whole blob, no range is needed.
    fn headers(&self, piece: SourceRange<'_>) -> Result<HeaderMap, RegistryError> {
        let mut headers = if piece.length < self.size {
            range_headers(&piece)?
        } else {
            octets()
        };
        if self.separately {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(headers)
    }

    /// Returns another mode for an upload refused in this one, if there is one.
    fn other_mode(&self, session: &Session, error: &RegistryError) -> Option<UploadMode> {
        let status = error.status()?.as_u16();
        let smaller = self.mode.smaller(session.least);
        let other = match (session.sending, status) {
            (UploadStep::Piece, 413) => smaller,
            // After counted chunks, 416 may mean a wrong offset, which is then queried.
            (UploadStep::Piece, 416) if session.stands != OffsetSource::Counted => smaller,
            // Chunks are refused; or were accepted, but do not add up to the blob.
            (UploadStep::Piece, 400 | 405 | 411 | 415 | 501) | (UploadStep::End, 400 | 416) => {
                Some(UploadMode::Whole)
            }
            // A new upload is not lost: the method is not supported.
            (UploadStep::Piece, 404) if session.stands == OffsetSource::Opened => {
                Some(UploadMode::Whole)
            }
            (UploadStep::Whole, 413) => smaller
                .filter(|smaller| matches!(smaller, UploadMode::Pieces(size) if *size < self.size)),
            // Artifactory has supported only the sequence of `docker push`.
            (UploadStep::Whole, 404 | 405 | 415 | 501) => Some(UploadMode::Streamed),
            _ => None,
        };
        other.filter(|mode| *mode != self.mode && !self.refused.contains(mode))
    }

    /// Continues in smaller chunks; returns false if that is not possible.
    fn shrink(&mut self) -> bool {
        let smaller = self.mode.smaller(0);
        let is_chunk =
            |mode: &UploadMode| matches!(mode, UploadMode::Pieces(size) if *size < self.size);
        let Some(smaller) = smaller.filter(is_chunk) else {
            return false;
        };
        tracing::debug!(blob = %self.digest, ?smaller, "the connection broke twice");
        self.mode = smaller;
        let takes = &self.repository.host.takes;
        takes.update(|known| known.mode = Some(smaller));
        true
    }

    /// Continues in another mode, in the same upload if possible, and sets it for all other uploads
    /// to this host.
    async fn change(
        &mut self,
        mode: UploadMode,
        session: Session,
    ) -> Result<Option<Session>, RegistryError> {
        tracing::debug!(blob = %self.digest, ?mode, "the registry refuses what was sent");
        self.refused.push(self.mode);
        self.mode = mode;
        // If the chunks were accepted but do not add up, the blob may be at fault.
        if session.sending != UploadStep::End {
            let takes = &self.repository.host.takes;
            takes.update(|known| known.mode = Some(mode));
        }
        let location = session.location.clone();
        let stands = match mode {
            UploadMode::Pieces(_) => match self.resume(Some(session)).await {
                // A registry that does not report an offset starts from the beginning.
                Err(error) if error.status().is_some() => None,
                stands => stands?,
            },
            UploadMode::Whole | UploadMode::Streamed => None,
        };
        if stands.is_none() {
            self.cancel(location).await;
        }
        Ok(stands)
    }

    async fn start(&self) -> Result<Session, RegistryError> {
        let what = format!("start the upload of {}", self.name());
        let request = Session::open_request(self.repository, what);
        let response = self.repository.inner().call(&request).await?;
        Ok(Session::from_response(&request.what, &response)?)
    }

    /// Closes the upload with its digest, and with the whole blob if nothing was sent before.
    async fn finish(&self, session: &mut Session, whole: bool) -> Result<(), RegistryError> {
        session.sending = if whole {
            UploadStep::Whole
        } else {
            UploadStep::End
        };
        let mut url = session.location.clone();
        url.query_pairs_mut()
            .append_pair("digest", self.digest.as_ref());
        let mut request = self.request(Method::PUT, url, "upload");
        request.headers = octets();
        if whole && self.size > 0 {
            request.payload = Payload::Stream(self.piece(0, self.size));
        }
        self.repository.inner().once(&request).await.map(drop)
    }

    /// Queries the offset of a broken upload; `None` if it must start again.
    async fn resume(&self, session: Option<Session>) -> Result<Option<Session>, RegistryError> {
        let (Some(session), UploadMode::Pieces(_)) = (session, self.mode) else {
            return Ok(None);
        };
        let (place, doing) = (session.location.clone(), "resume the upload of");
        let mut request = self.request(Method::GET, place, doing);
        request.scope = Scope::push(self.repository.name());
        let response = match self.repository.inner().call(&request).await {
            Ok(response) => response,
            // Lost, or in a state that the registry cannot handle.
            Err(error)
                if error
                    .status()
                    .is_some_and(|status| status.is_client_error()) =>
            {
                return match error {
                    RegistryError::Denied { .. } => Err(error),
                    _ => Ok(None),
                };
            }
            Err(error) => return Err(error),
        };
        let offset = match received(response.headers()) {
            // Gitea returns the length instead of the last byte's position.
            Some(offset) if offset == session.offset.saturating_add(1) => return Ok(None),
            Some(offset) if offset <= self.size => offset,
            _ => return Ok(None),
        };
        let location = upload_location(&request.what, &response).unwrap_or(session.location);
        tracing::debug!(blob = %self.digest, offset, "resuming the upload");
        Ok(Some(Session {
            location,
            offset,
            least: session.least,
            sending: UploadStep::Nothing,
            stands: OffsetSource::Asked,
        }))
    }

    /// Returns a transient error; any other ends the upload.
    async fn cancel_unless_transient(
        &self,
        error: RegistryError,
        session: &mut Option<Session>,
    ) -> Result<RegistryError, RegistryError> {
        let error = match session {
            Some(_) => self.lost(error),
            None => error,
        };
        if error.is_transient() {
            return Ok(error);
        }
        if let Some(session) = session.take() {
            self.cancel(session.location).await;
        }
        Err(error)
    }

    async fn cancel(&self, location: Url) {
        upload_session::cancel(self.repository, location, &self.name()).await;
    }

    fn request(&self, method: Method, location: Url, doing: &str) -> Request<'_> {
        upload_session::request(self.repository, method, location, doing, &self.name())
    }

    /// Converts an error after which the upload's state is queried before giving up: the registry no
    /// longer knows the upload, or its offset.
    fn lost(&self, error: RegistryError) -> RegistryError {
        let gone = [StatusCode::NOT_FOUND, StatusCode::RANGE_NOT_SATISFIABLE];
        if !error.status().is_some_and(|status| gone.contains(&status)) {
            return error;
        }
        let (host, what) = (self.repository.host(), self.name());
        let problem = format!("{host} lost the upload of {what}");
        HttpError::Passing(Problem::new("registry/answer", problem).source(error)).into()
    }

    fn piece(&self, offset: u64, length: u64) -> SourceRange<'_> {
        SourceRange {
            source: self.source,
            reader: &self.reader,
            task: self.task,
            offset,
            length,
        }
    }

    fn name(&self) -> String {
        format!("blob {} to {}", self.digest, self.repository)
    }
}

/// Returns the number of received bytes from `Range: 0-LAST`. `0-0` means an empty upload or a
/// single byte, so it counts as empty.
fn received(headers: &HeaderMap) -> Option<u64> {
    let text = header_text(headers, RANGE)?;
    let text = text.strip_prefix("bytes=").unwrap_or(text);
    let last: u64 = text.strip_prefix("0-")?.trim().parse().ok()?;
    if last == 0 {
        Some(0)
    } else {
        last.checked_add(1)
    }
}
