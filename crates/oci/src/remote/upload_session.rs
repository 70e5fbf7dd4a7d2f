//! An open upload of a registry.

use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response, Url};
use wincimg_http::{HttpError, Payload, SourceRange, header_text, location};

use super::error::RegistryError;
use super::repository::Repository;
use super::request::{Request, RequestTarget};

pub(super) struct Session {
    pub(super) location: Url,
    pub(super) offset: u64,
    /// Minimum chunk size, except for the last chunk.
    pub(super) least: u64,
    pub(super) sending: UploadStep,
    pub(super) stands: OffsetSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetSource {
    Opened,
    /// Queried from the registry.
    Asked,
    /// Counted from accepted chunks.
    Counted,
}

/// The data in flight when a response or an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadStep {
    Nothing,
    Piece,
    Whole,
    /// The request that closes a chunked upload.
    End,
}

impl Session {
    /// Reads the upload opened by a response.
    pub(super) fn from_response(what: &str, response: &Response) -> Result<Self, HttpError> {
        let least = header_text(response.headers(), LEAST_PIECE);
        let least = least.and_then(|value| value.trim().parse().ok());
        Ok(Self {
            location: upload_location(what, response)?,
            offset: 0,
            least: least.unwrap_or(0),
            sending: UploadStep::Nothing,
            stands: OffsetSource::Opened,
        })
    }

    pub(super) fn open_request(repository: &Repository, what: String) -> Request<'_> {
        repository.request(Method::POST, "blobs/uploads/", what)
    }

    /// Sends the next bytes.
    pub(super) async fn send(
        &mut self,
        repository: &Repository,
        blob: &str,
        piece: SourceRange<'_>,
        headers: HeaderMap,
    ) -> Result<(), RegistryError> {
        let end = self.offset + piece.length;
        self.sending = UploadStep::Piece;
        let (place, doing) = (self.location.clone(), "upload a piece of");
        let mut request = request(repository, Method::PATCH, place, doing, blob);
        request.headers = headers;
        request.payload = Payload::Stream(piece);
        let response = repository.inner().once(&request).await?;
        // Without a location in the response, the current one stays valid.
        if response.headers().contains_key(LOCATION) {
            self.location = upload_location(&request.what, &response)?;
        }
        self.offset = end;
        self.sending = UploadStep::Nothing;
        self.stands = OffsetSource::Counted;
        Ok(())
    }

    /// Returns true if bytes were in flight when a response or an error came.
    pub(super) fn is_sending(&self) -> bool {
        matches!(self.sending, UploadStep::Piece | UploadStep::Whole)
    }
}

/// Cancels the upload, which the registry would otherwise expire days later.
pub(super) async fn cancel(repository: &Repository, location: Url, blob: &str) {
    let doing = "cancel the upload of";
    let request = request(repository, Method::DELETE, location, doing, blob);
    if let Err(error) = repository.inner().once(&request).await {
        tracing::debug!(%error, "the upload stays open");
    }
}

/// Creates a request to the upload's location.
pub(super) fn request<'a>(
    repository: &'a Repository,
    method: Method,
    location: Url,
    doing: &str,
    blob: &str,
) -> Request<'a> {
    let mut request = repository.request(method, "", format!("{doing} {blob}"));
    request.target = RequestTarget::Url(location);
    request
}

/// Headers for blob content.
pub(super) fn octets() -> HeaderMap {
    let octets = HeaderValue::from_static("application/octet-stream");
    HeaderMap::from_iter([(CONTENT_TYPE, octets)])
}

/// Headers for a chunk of a blob.
pub(super) fn range_headers(piece: &SourceRange<'_>) -> Result<HeaderMap, HttpError> {
    let range = format!("{}-{}", piece.offset, piece.offset + piece.length - 1);
    let mut headers = octets();
    headers.insert(CONTENT_RANGE, HeaderValue::from_str(&range)?);
    Ok(headers)
}

/// The header with the registry's minimum chunk size.
const LEAST_PIECE: &str = "oci-chunk-min-length";

/// Returns the `Location` of an upload. A registry behind a proxy may not know that it is reached
/// by TLS; an `http` URL of its own host is changed to `https`.
pub(super) fn upload_location(what: &str, response: &Response) -> Result<Url, HttpError> {
    let mut url = location(what, response)?;
    let here = response.url();
    let same_host = url.host_str() == here.host_str();
    if same_host && here.scheme() == "https" && url.scheme() == "http" {
        let port = url.port().or(here.port());
        // Neither can fail: both are http(s) URLs with a host.
        let _ = url.set_scheme("https");
        let _ = url.set_port(port);
    }
    Ok(url)
}
