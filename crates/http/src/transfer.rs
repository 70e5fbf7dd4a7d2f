//! Downloads one file from a server, over as many connections as needed.

use std::sync::{Arc, OnceLock};

use futures_util::stream;
use reqwest::header::{
    CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::{Response, StatusCode, Url};
use wincimg_common::diagnose::Problem;
use wincimg_common::digest::Digest;
use wincimg_common::progress::{Progress, Task};

use super::addresses::AddressPolicy;
use super::client::HttpClient;
use super::error::HttpError;
use super::exchange::{Exchange, RedirectPolicy, TrustSource, content_type, header_text};
use super::partial_file::{Identity, PartialFile};

/// Error of a transfer.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The server failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The file could not be written.
    #[error(transparent)]
    File(#[from] Problem),
    /// The server's file has the wrong size.
    #[error("the file has {found} bytes, expected {expected}")]
    Size {
        /// Size on the server.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// The server's file is larger than this.
    #[error("the file has more than {0} bytes")]
    TooLarge(u64),
    /// The server sent a web page.
    #[error("the server sent a web page ({0})")]
    Page(String),
}

/// A file's line in the progress display, started when its size is known.
pub struct ProgressLine<'a> {
    progress: &'a dyn Progress,
    label: &'a str,
    task: OnceLock<Arc<dyn Task>>,
}

impl<'a> ProgressLine<'a> {
    /// Creates the line of a file.
    pub fn new(progress: &'a dyn Progress, label: &'a str) -> Self {
        Self {
            progress,
            label,
            task: OnceLock::new(),
        }
    }

    fn start_task(&self, size: Option<u64>, position: u64) {
        let task = self
            .task
            .get_or_init(|| self.progress.task(self.label, size));
        task.set_position(position);
    }

    fn advance(&self, bytes: u64) {
        if let Some(task) = self.task.get() {
            task.advance(bytes);
        }
    }

    /// Ends the line with an outcome.
    pub fn done(&self, outcome: &str) {
        self.task
            .get_or_init(|| self.progress.task(self.label, None))
            .done(outcome);
    }
}

/// A file to download.
pub struct Transfer<'a> {
    /// The client.
    pub http: &'a HttpClient,
    /// URL of the file.
    pub url: &'a Url,
    /// Its expected digest, which authenticates its content on any connection.
    pub digest: Option<&'a Digest>,
    /// The expected size, if known.
    pub size: Option<u64>,
    /// The maximum size of a file whose size is unknown, if it has one.
    pub limit: Option<u64>,
    /// Redirects that are followed.
    pub redirects: RedirectPolicy,
    /// Addresses that it may come from.
    pub addresses: AddressPolicy,
    /// True if the file may be a web page, which servers often send instead of a missing file.
    pub takes_pages: bool,
    /// Progress that counts its bytes.
    pub line: &'a ProgressLine<'a>,
}

/// Maximum size of a file of unknown size, far above those of installers: a server that sends bytes
/// without end would fill the disk.
const MAX_SIZE: u64 = 32 << 30;

/// Purpose of the request, to follow "failed to".
const WHAT: &str = "read the file";

impl Transfer<'_> {
    /// Downloads the rest of a file, and once more from the beginning if the digest is wrong after
    /// a resume.
    pub async fn run(&self, part: &mut PartialFile) -> Result<(), TransferError> {
        self.complete(part).await?;
        let is_wrong = self.digest.is_some_and(|it| *it != part.digest());
        if part.was_resumed() && is_wrong {
            // The bytes may be from two versions of the file.
            self.http.progress().note(&format!(
                "{} does not match the earlier partial download; starting again",
                self.line.label
            ));
            part.restart()?;
            self.complete(part).await?;
        }
        Ok(())
    }

    /// Downloads over as many connections as needed.
    async fn complete(&self, part: &mut PartialFile) -> Result<(), TransferError> {
        let mut attempts = self.http.attempts();
        loop {
            let before = part.written();
            match self.attempt(part).await {
                Err(TransferError::Http(error)) => {
                    attempts.advance(part.written().saturating_sub(before));
                    attempts.backoff(error).await?;
                }
                done => return done,
            }
        }
    }

    /// Downloads over one connection.
    async fn attempt(&self, part: &mut PartialFile) -> Result<(), TransferError> {
        if part.written() > 0 {
            match part.identity() {
                Some(identity) if identity.size == part.written() => return Ok(()),
                Some(_) => part.resume(),
                None => part.restart()?,
            }
        }
        let response = match self.ask(part).await {
            Err(HttpError::Status {
                status: StatusCode::RANGE_NOT_SATISFIABLE,
                ..
            }) if part.written() > 0 => {
                part.restart()?;
                self.ask(part).await?
            }
            answer => answer?,
        };
        self.check_kind(response.headers())?;
        let continues = continuation(&response).is_some_and(|(start, identity)| {
            start == part.written() && part.identity().is_some_and(|own| own.is_same(&identity))
        });
        if continues {
            return self.receive(part, response).await;
        }
        if part.written() > 0 {
            tracing::debug!("the server has another file now, or does not resume");
            part.restart()?;
        }
        let response = if response.status() == StatusCode::PARTIAL_CONTENT {
            self.ask(part).await?
        } else {
            response
        };
        let identity = identity(response.headers(), response.content_length());
        let found = identity.as_ref().map(|identity| identity.size);
        self.check_size(found)?;
        part.start(identity)?;
        self.receive(part, response).await
    }

    async fn ask(&self, part: &PartialFile) -> Result<Response, HttpError> {
        let mut exchange = Exchange::get(WHAT, self.url.clone());
        if self.digest.is_some() {
            exchange.vouched = TrustSource::ByDigest;
        }
        exchange.redirects = self.redirects;
        exchange.addresses = self.addresses;
        if let (Some(identity), 1..) = (part.identity(), part.written()) {
            let range = format!("bytes={}-", part.written());
            // Ranges require strong tags.
            let condition = identity
                .etag
                .as_ref()
                .filter(|etag| etag.starts_with('"'))
                .or(identity.last_modified.as_ref());
            for (name, value) in [(RANGE, Some(&range)), (IF_RANGE, condition)] {
                if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                    exchange.headers.insert(name, value);
                }
            }
        }
        self.http.send_checked(&exchange).await
    }

    fn check_kind(&self, headers: &HeaderMap) -> Result<(), TransferError> {
        let kind = content_type(headers).unwrap_or_default();
        let is_page = ["text/html", "application/xhtml+xml"]
            .iter()
            .any(|page| kind.eq_ignore_ascii_case(page));
        if is_page && !self.takes_pages {
            return Err(TransferError::Page(kind.to_ascii_lowercase()));
        }
        Ok(())
    }

    fn check_size(&self, found: Option<u64>) -> Result<(), TransferError> {
        match (found, self.size) {
            (Some(found), Some(expected)) if found != expected => {
                Err(TransferError::Size { found, expected })
            }
            (Some(found), _) if found > self.limit() => Err(TransferError::TooLarge(self.limit())),
            _ => Ok(()),
        }
    }

    fn limit(&self) -> u64 {
        self.size.or(self.limit).unwrap_or(MAX_SIZE)
    }

    /// Writes a body, up to its end, the maximum size or a broken connection.
    async fn receive(
        &self,
        part: &mut PartialFile,
        response: Response,
    ) -> Result<(), TransferError> {
        let size = part.identity().map(|identity| identity.size);
        let at = part.written();
        self.line.start_task(size.or(self.size), at);
        let chunks = stream::try_unfold((response, at), async |(mut response, at)| {
            let next = self.http.next_chunk(&mut response, WHAT, at, size).await?;
            let Some(chunk) = next else {
                return Ok(None);
            };
            let length = chunk.len() as u64;
            if at + length > self.limit() {
                return Err(TransferError::TooLarge(self.limit()));
            }
            self.line.advance(length);
            Ok::<_, TransferError>(Some((chunk, (response, at + length))))
        });
        let received = part.write_stream(chunks).await?;
        let done = received.and_then(|()| self.check_size(Some(part.written())));
        if let Err(TransferError::Size { .. } | TransferError::TooLarge(_)) = done {
            // What is there never becomes the file.
            part.restart()?;
        }
        done
    }
}

/// Reads the identification of the whole file from a response.
fn identity(headers: &HeaderMap, size: Option<u64>) -> Option<Identity> {
    let text = |name: HeaderName| header_text(headers, name).map(str::to_owned);
    Some(Identity {
        size: size?,
        etag: text(ETAG),
        last_modified: text(LAST_MODIFIED),
    })
}

/// Offset of a partial response, and the identification of its file.
fn continuation(response: &Response) -> Option<(u64, Identity)> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    let range = header_text(response.headers(), CONTENT_RANGE)?;
    let (start, total) = content_range(range)?;
    Some((start, identity(response.headers(), Some(total))?))
}

/// Parses `bytes 3-9/10` into the first position and the total size.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end): (u64, u64) = (start.trim().parse().ok()?, end.trim().parse().ok()?);
    let total = total.trim().parse().ok()?;
    // A range that ends before the file would be taken for the rest of it.
    (start <= end && end.checked_add(1) == Some(total)).then_some((start, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_range_to_the_end_of_a_known_whole_continues_a_file() {
        assert_eq!(content_range("bytes 3-9/10"), Some((3, 10)));
        for text in [
            "bytes 3-8/10",
            "bytes 3-9/*",
            "bytes */10",
            "bytes 9-3/10",
            "items 3-9/10",
            "bytes 3-18446744073709551615/10",
            "",
        ] {
            assert_eq!(content_range(text), None, "{text}");
        }
    }
}
