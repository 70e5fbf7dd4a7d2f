//! Reading a blob: chunk by chunk, resumed by range after a broken connection, verified at the end.

use std::sync::Arc;

use bytes::Bytes;
use oci_spec::image::Descriptor;
use reqwest::header::{CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Method, Response, StatusCode, Url};

use super::digest::{hasher_like, verify};
use super::retry::Attempts;
use super::transport::{Exchange, Payload};
use super::urls::header;
use super::{Registry, RegistryError, Repository};
use crate::net::host_of;
use crate::oci::document::Hasher;

/// Where a blob is read from.
#[derive(Clone)]
pub(super) enum Origin {
    Repository(Repository),
    /// A foreign layer's `urls`, the preferred first.
    Urls(Arc<[String]>),
}

/// A blob that is being read.
pub(super) struct Pull {
    registry: Registry,
    origin: Origin,
    descriptor: Descriptor,
    position: u64,
    /// The answer under way, and how many of its first bytes are known already.
    response: Option<(Response, u64)>,
    /// Absent where the beginning was not read and nothing can be verified.
    hasher: Option<Hasher>,
    attempts: Attempts,
}

impl Pull {
    pub(super) fn new(
        registry: Registry,
        origin: Origin,
        descriptor: &Descriptor,
        position: u64,
    ) -> Result<Self, RegistryError> {
        let hasher = match position {
            0 => Some(hasher_like(descriptor.digest())?),
            _ => None,
        };
        Ok(Self {
            attempts: registry.0.attempts(),
            registry,
            origin,
            descriptor: descriptor.clone(),
            position,
            response: None,
            hasher,
        })
    }

    /// Verifies in spite of a later beginning: `hasher` has seen all bytes before it.
    pub(super) fn continue_hash(&mut self, hasher: Hasher) {
        self.hasher = Some(hasher);
    }

    /// The next bytes; nothing after the last one, and only if all of them are what they should be.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            match self.advance().await {
                Ok(Some(chunk)) => return Ok(Some(chunk)),
                Ok(None) => return self.finish().map(|()| None),
                Err(error) => {
                    self.response = None;
                    self.attempts.pause(&self.registry.0, error).await?;
                }
            }
        }
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, RegistryError> {
        let size = self.descriptor.size();
        if self.position == size && self.response.is_none() {
            return Ok(None);
        }
        let (mut response, mut skip) = match self.response.take() {
            Some(under_way) => under_way,
            None => self.request().await?,
        };
        loop {
            let what = format!("read {}", self.name());
            let next = self
                .registry
                .0
                .next_chunk(&mut response, &what, self.position, Some(size))
                .await?;
            let Some(mut chunk) = next else {
                return self.ended().map(|()| None);
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
            self.position = end;
            self.attempts.advance(chunk.len() as u64);
            self.response = Some((response, skip));
            return Ok(Some(chunk));
        }
    }

    /// The body is over; it may be so before the blob is.
    fn ended(&self) -> Result<(), RegistryError> {
        if self.position == self.descriptor.size() {
            return Ok(());
        }
        Err(RegistryError::Interrupted {
            what: self.name(),
            at: self.position,
            size: self.descriptor.size(),
            source: None,
        })
    }

    fn finish(&mut self) -> Result<(), RegistryError> {
        match self.hasher.take() {
            Some(hasher) => verify(hasher, self.descriptor.digest(), &self.name()),
            None => Ok(()),
        }
    }

    /// Asks for the bytes from the position on.
    async fn request(&self) -> Result<(Response, u64), RegistryError> {
        let mut headers = HeaderMap::new();
        if self.position > 0 {
            headers.insert(RANGE, header(&format!("bytes={}-", self.position))?);
        }
        let response = match &self.origin {
            Origin::Repository(repository) => {
                let path = format!("blobs/{}", self.descriptor.digest());
                let what = format!("read {}", self.name());
                let mut request = repository.request(Method::GET, &path, what);
                request.headers = headers;
                self.registry.0.once(&request).await?
            }
            Origin::Urls(urls) => self.request_urls(urls, &headers).await?,
        };
        self.check_range(response)
    }

    /// The first of the foreign URLs that gives the blob.
    async fn request_urls(
        &self,
        urls: &[String],
        headers: &HeaderMap,
    ) -> Result<Response, RegistryError> {
        let mut failure: Option<RegistryError> = None;
        for text in urls {
            let what = format!("read foreign {}", self.name());
            let url = Url::parse(text).map_err(|error| RegistryError::Protocol {
                host: text.clone(),
                what: what.clone(),
                reason: format!("it is no URL: {error}"),
            });
            let outcome = match url {
                Ok(url) => self.request_url(url, what, headers).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(response) => return Ok(response),
                // A failure that may pass is kept, because it makes another attempt worth while.
                Err(error) if failure.as_ref().is_none_or(|known| !known.is_transient()) => {
                    failure = Some(error);
                }
                Err(_) => {}
            }
        }
        Err(failure.unwrap_or_else(|| RegistryError::Protocol {
            host: "the image".to_owned(),
            what: format!("read foreign {}", self.name()),
            reason: "it has no URL to fetch it from".to_owned(),
        }))
    }

    async fn request_url(
        &self,
        url: Url,
        what: String,
        headers: &HeaderMap,
    ) -> Result<Response, RegistryError> {
        let exchange = Exchange {
            what,
            method: Method::GET,
            url,
            headers: headers.clone(),
            payload: Payload::Empty,
        };
        let inner = &self.registry.0;
        let response = inner.follow(&exchange).await?;
        inner
            .check(&exchange, response, "no credential (foreign URLs get none)")
            .await
    }

    /// Whether the answer is what was asked for, and how many of its bytes are known already:
    /// a server may ignore a range and send everything.
    fn check_range(&self, response: Response) -> Result<(Response, u64), RegistryError> {
        let size = self.descriptor.size();
        let known = if response.status() == StatusCode::PARTIAL_CONTENT {
            let start = range_start(response.headers());
            if start != Some(self.position) {
                return Err(RegistryError::Protocol {
                    host: host_of(response.url()),
                    what: format!("read {}", self.name()),
                    reason: format!("it is not the range from byte {} on", self.position),
                });
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
            expected: self.descriptor.size(),
            actual,
        }
    }

    fn name(&self) -> String {
        match &self.origin {
            Origin::Repository(repository) => {
                format!("blob {} of {repository}", self.descriptor.digest())
            }
            Origin::Urls(_) => format!("layer {}", self.descriptor.digest()),
        }
    }
}

/// The first byte's number in `Content-Range: bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (start, _) = text.strip_prefix("bytes")?.trim().split_once('-')?;
    start.parse().ok()
}
