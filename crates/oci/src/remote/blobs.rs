//! Blob downloads: read in chunks, resumed by range requests after a broken connection, verified at
//! the end.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::task::spawn_blocking;
use tokio_util::io::StreamReader;
use wincimg_common::lock;
use wincimg_common::progress::Task;
use wincimg_http::{
    BlobReader, BlobSource, Exchange, HttpError, PartialFile, RedirectPolicy, RetryBudget,
    Transient, header_text, host_of,
};

use super::client::RegistryClient;
use super::error::{RegistryError, check};
use super::observer::{BlobObserver, Observation};
use super::repository::Repository;
use super::secret::SentSecrets;
use crate::document::{Descriptor, Digest, Hasher};
use crate::stream::contains_blob;

impl Repository {
    /// Returns true if the repository has a blob.
    pub async fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryError> {
        Ok(self.look_for_blob(digest).await?.is_some())
    }

    /// Returns true if the repository has a blob, unless the registry states another size: runtimes
    /// refuse a layer whose descriptor has a wrong one.
    pub async fn has_described_blob(&self, blob: &Descriptor) -> Result<bool, RegistryError> {
        let found = self.look_for_blob(&blob.digest).await?;
        Ok(found.is_some_and(|response| {
            let stated = header_text(response.headers(), CONTENT_LENGTH);
            let stated = stated.and_then(|text| text.parse::<u64>().ok());
            // Some proxies state 0 for HEAD.
            stated.is_none_or(|size| size == 0 || size == blob.size)
        }))
    }

    async fn look_for_blob(&self, digest: &Digest) -> Result<Option<Response>, RegistryError> {
        let what = format!("look for blob {digest} of {self}");
        // The body of a GET is not read.
        let request = self.request(Method::HEAD, &format!("blobs/{digest}"), what);
        let answer = self.head_or_get(request).await;
        self.found(answer)
    }

    /// Returns a blob to read or to copy.
    pub fn blob(&self, descriptor: &Descriptor) -> RemoteBlob {
        RemoteBlob {
            registry: self.registry.clone(),
            origin: BlobOrigin::Repository(self.clone()),
            descriptor: descriptor.clone(),
            observer: None,
        }
    }

    /// Downloads a small blob into memory and verifies it.
    pub async fn get_blob(
        &self,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Bytes, RegistryError> {
        if descriptor.size > limit {
            let what = format!("blob {} of {self}", descriptor.digest);
            return Err(HttpError::too_large(&what, limit).into());
        }
        let documents = self.inner().documents.get();
        if let Some(kept) = documents.and_then(|documents| documents.find(descriptor)) {
            return Ok(kept);
        }
        let mut pull = self.blob(descriptor).verified(0)?;
        let mut bytes = BytesMut::new();
        while let Some(chunk) = pull.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        let bytes = bytes.freeze();
        if let Some(documents) = documents {
            documents.store(descriptor, &bytes);
        }
        Ok(bytes)
    }
}

impl RegistryClient {
    /// Returns a blob from a foreign layer's `urls`, tried in order and without credentials.
    pub fn url_source(&self, urls: &[String], descriptor: &Descriptor) -> RemoteBlob {
        RemoteBlob {
            registry: self.clone(),
            origin: BlobOrigin::Urls(urls.into()),
            descriptor: descriptor.clone(),
            observer: None,
        }
    }
}

/// A blob on the network. Reads resume after broken connections; a reader that starts at offset 0
/// verifies the digest before it returns the last bytes.
#[derive(Clone)]
pub struct RemoteBlob {
    registry: RegistryClient,
    origin: BlobOrigin,
    descriptor: Descriptor,
    /// Taken by the first reader.
    observer: Option<Arc<Mutex<Option<BlobObserver>>>>,
}

impl RemoteBlob {
    /// Descriptor of the blob.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Shows what the first reader reads to an observer, if it starts at offset 0: no other is
    /// verified.
    pub(crate) fn observed_by(self, observer: BlobObserver) -> Self {
        Self {
            observer: Some(Arc::new(Mutex::new(Some(observer)))),
            ..self
        }
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Downloads the blob to a file, by way of `FILE.part`, which is renamed once complete and
    /// verified. An interrupted download is resumed, and one of another process waited for.
    pub async fn download(&self, to: &Path, task: &dyn Task) -> Result<(), RegistryError> {
        let (http, blob) = (&self.registry.0.http, self.descriptor.clone());
        let hasher = RegistryError::hasher_of(&blob.digest)?;
        let opened = PartialFile::open_for_digest::<RegistryError>(http, to, &hasher, blob.size);
        let mut partial = opened.await?;
        // Another process may have finished first.
        let path = to.to_owned();
        let is_there = spawn_blocking(move || contains_blob(&path, &blob)).await;
        if matches!(is_there, Ok(Ok(true))) {
            return Ok(partial.discard()?);
        }
        let filled = match self.fill(&mut partial, task).await {
            // The part from an earlier run may be wrong: retry from the beginning.
            Err(RegistryError::Digest { .. }) if partial.was_resumed() => {
                partial.restart()?;
                self.fill(&mut partial, task).await
            }
            filled => filled,
        };
        match filled {
            Ok(()) => Ok(partial.commit().await?),
            Err(error @ (RegistryError::Digest { .. } | RegistryError::Length { .. })) => {
                // The wrong bytes are useless. If they cannot be deleted, the next run detects
                // them.
                let _ = partial.discard();
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn fill(&self, partial: &mut PartialFile, task: &dyn Task) -> Result<(), RegistryError> {
        task.set_position(partial.written());
        // The file also hashes the bytes of an earlier run.
        let chunks = self.pull(partial.written(), None).chunks();
        partial
            .write_stream(chunks.inspect_ok(|chunk| task.advance(chunk.len() as u64)))
            .await??;
        let name = self.origin.name_of(&self.descriptor);
        RegistryError::verify(&partial.digest(), &self.descriptor.digest, &name)
    }

    /// Reads from an offset; verified if that is 0.
    fn verified(&self, offset: u64) -> Result<Pull, RegistryError> {
        let hasher = match offset {
            0 => Some(RegistryError::hasher_of(&self.descriptor.digest)?),
            _ => None,
        };
        Ok(self.pull(offset, hasher))
    }

    fn pull(&self, position: u64, hasher: Option<Hasher>) -> Pull {
        Pull {
            attempts: self.registry.0.http.attempts(),
            registry: self.registry.clone(),
            origin: self.origin.clone(),
            descriptor: self.descriptor.clone(),
            position,
            response: None,
            hasher,
            observation: None,
        }
    }
}

impl BlobSource for RemoteBlob {
    fn open(&self, offset: u64) -> BoxFuture<'_, io::Result<BlobReader>> {
        Box::pin(async move {
            let mut pull = self.verified(offset).map_err(io::Error::other)?;
            let observer = self.observer.as_ref().and_then(|it| lock(it).take());
            pull.observation = observer.filter(|_| offset == 0).map(Observation::new);
            let chunks = pull.chunks().map_err(io::Error::other);
            Ok(Box::pin(StreamReader::new(chunks)) as BlobReader)
        })
    }
}

#[derive(Clone)]
enum BlobOrigin {
    Repository(Repository),
    /// A foreign layer's `urls`, the preferred first.
    Urls(Arc<[String]>),
}

impl BlobOrigin {
    /// Returns the name of a blob for error messages.
    fn name_of(&self, blob: &Descriptor) -> String {
        match self {
            Self::Repository(repository) => format!("blob {} of {repository}", blob.digest),
            Self::Urls(urls) => {
                let urls = urls.iter().filter_map(|url| Url::parse(url).ok());
                let hosts: Vec<String> = urls.map(|url| host_of(&url)).collect();
                format!("layer {} of {}", blob.digest, hosts.join(", "))
            }
        }
    }
}

/// A blob being read.
struct Pull {
    registry: RegistryClient,
    origin: BlobOrigin,
    descriptor: Descriptor,
    position: u64,
    /// The current response, and the number of its first bytes to skip.
    response: Option<(Response, u64)>,
    /// `None` unless reading began at 0; nothing can be verified then.
    hasher: Option<Hasher>,
    observation: Option<Observation>,
    attempts: RetryBudget,
}

impl Pull {
    fn chunks(self) -> BoxStream<'static, Result<Bytes, RegistryError>> {
        let chunks = stream::try_unfold(self, |mut pull| async {
            let next = pull.next().await?;
            if let (Some(chunk), Some(observation)) = (&next, &mut pull.observation) {
                observation.send(chunk).await;
            }
            if pull.hasher.is_none()
                && let Some(verified) = pull.observation.take()
            {
                verified.confirm();
            }
            Ok(next.map(|chunk| (chunk, pull)))
        });
        chunks.boxed()
    }

    /// Returns the next bytes; `None` at the end, once they are verified.
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            match self.advance().await {
                Ok(Some(chunk)) => return Ok(Some(chunk)),
                Ok(None) => return self.verify().map(|()| None),
                Err(error) => {
                    self.response = None;
                    self.attempts.backoff(error).await?;
                }
            }
        }
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, RegistryError> {
        let size = self.descriptor.size;
        if self.position == size && self.response.is_none() {
            return Ok(None);
        }
        let (mut response, mut skip) = match self.response.take() {
            Some(progress_text) => progress_text,
            None => self.request().await?,
        };
        loop {
            let what = format!("read {}", self.name());
            let next = self
                .registry
                .0
                .http
                .next_chunk(&mut response, &what, self.position, Some(size))
                .await?;
            let Some(mut chunk) = next else {
                if self.position == size {
                    return Ok(None);
                }
                let problem = HttpError::interrupted(&self.name(), self.position, size);
                return Err(HttpError::Passing(problem).into());
            };
            let known = skip.min(chunk.len() as u64);
            skip -= known;
            let chunk = chunk.split_off(usize::try_from(known).unwrap_or(chunk.len()));
            if chunk.is_empty() {
                continue;
            }
            let end = self.position + chunk.len() as u64;
            if end > size {
                return Err(self.wrong_length(end));
            }
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&chunk);
            }
            if end == size {
                // A caller that knows the size may stop here.
                self.verify()?;
            }
            self.position = end;
            self.attempts.advance(chunk.len() as u64);
            self.response = Some((response, skip));
            return Ok(Some(chunk));
        }
    }

    /// Verifies the digest once; later calls do nothing.
    fn verify(&mut self) -> Result<(), RegistryError> {
        match self.hasher.take() {
            Some(hasher) => {
                RegistryError::verify(&hasher.finish(), &self.descriptor.digest, &self.name())
            }
            None => Ok(()),
        }
    }

    /// Requests the bytes from the position on.
    async fn request(&self) -> Result<(Response, u64), RegistryError> {
        let mut headers = HeaderMap::new();
        if self.position > 0 {
            let range = format!("bytes={}-", self.position);
            let range = HeaderValue::from_str(&range).map_err(HttpError::from)?;
            headers.insert(RANGE, range);
        }
        match &self.origin {
            BlobOrigin::Repository(repository) => {
                let path = format!("blobs/{}", &self.descriptor.digest);
                let what = format!("read {}", self.name());
                let mut request = repository.request(Method::GET, &path, what);
                request.headers = headers;
                let response = self.registry.0.once(&request).await;
                self.check_range(response.map_err(RegistryError::of_blob)?)
            }
            BlobOrigin::Urls(urls) => self.request_urls(urls, &headers).await,
        }
    }

    /// Returns the response of the first foreign URL that has the blob, by its length.
    async fn request_urls(
        &self,
        urls: &[String],
        headers: &HeaderMap,
    ) -> Result<(Response, u64), RegistryError> {
        let what = format!("read foreign layer {}", self.descriptor.digest);
        let mut failure: Option<RegistryError> = None;
        for text in urls {
            let response = self.request_url(text, &what, headers).await;
            match response.and_then(|response| self.check_range(response)) {
                Ok(found) => return Ok(found),
                // A transient failure takes precedence because it makes a retry worthwhile.
                Err(error) if failure.as_ref().is_none_or(|known| !known.is_transient()) => {
                    failure = Some(error);
                }
                Err(_) => {}
            }
        }
        Err(failure
            .unwrap_or_else(|| RegistryError::protocol("the image", &what, "it has no URL for it")))
    }

    async fn request_url(
        &self,
        text: &str,
        what: &str,
        headers: &HeaderMap,
    ) -> Result<Response, RegistryError> {
        let url = Url::parse(text).map_err(|error| {
            RegistryError::protocol(text, what, format!("invalid URL: {error}"))
        })?;
        let mut exchange = Exchange::get(what, url);
        exchange.headers = headers.clone();
        exchange.redirects = RedirectPolicy::Anywhere;
        let http = &self.registry.0.http;
        let response = http.send_following(&exchange).await?;
        let unsent = SentSecrets::default();
        let checked = check(
            http,
            host_of(response.url()),
            what,
            response,
            "no credential (foreign URLs get none)",
            &unsent,
        );
        checked.await.map_err(RegistryError::of_foreign_layer)
    }

    /// Checks the response's range and returns the number of bytes to skip: a server may ignore a
    /// range and send everything.
    fn check_range(&self, response: Response) -> Result<(Response, u64), RegistryError> {
        let size = self.descriptor.size;
        let known = if response.status() == StatusCode::PARTIAL_CONTENT {
            let start = range_start(response.headers());
            if start != Some(self.position) {
                return Err(RegistryError::protocol(
                    host_of(response.url()),
                    &format!("read {}", self.name()),
                    format!("it is not the range from byte {} on", self.position),
                ));
            }
            0
        } else {
            self.position
        };
        let offset = self.position - known;
        match response.content_length() {
            Some(length) if offset.checked_add(length) != Some(size) => {
                Err(self.wrong_length(offset.saturating_add(length)))
            }
            _ => Ok((response, known)),
        }
    }

    fn wrong_length(&self, actual: u64) -> RegistryError {
        RegistryError::Length {
            what: self.name(),
            expected: self.descriptor.size,
            actual,
        }
    }

    fn name(&self) -> String {
        self.origin.name_of(&self.descriptor)
    }
}

/// Returns the first position in `Content-Range: bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = header_text(headers, CONTENT_RANGE)?;
    let (start, _) = text.strip_prefix("bytes")?.trim().split_once('-')?;
    start.parse().ok()
}
