//! Moves the bytes of one file from a server into its part, over as many connections as it takes.

use std::io;
use std::sync::{Arc, OnceLock};

use futures_util::TryStreamExt;
use reqwest::header::{
    CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::{Client, Method, Request, Response, StatusCode, Url};

use super::http::{Http, HttpError, unreachable};
use super::part::{Identity, Part};
use crate::net::{host_of, pause};
use crate::progress::{Progress, Task};

/// Why a file did not come.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("cannot write the part")]
    File(#[from] io::Error),
    #[error("the file has {found} bytes, expected {expected}")]
    Size { found: u64, expected: u64 },
}

/// A file's line in the progress display, which begins when its size is known.
pub(super) struct Line<'a> {
    progress: &'a dyn Progress,
    label: &'a str,
    task: OnceLock<Arc<dyn Task>>,
}

impl<'a> Line<'a> {
    pub(super) fn new(progress: &'a dyn Progress, label: &'a str) -> Self {
        Self {
            progress,
            label,
            task: OnceLock::new(),
        }
    }

    fn begin(&self, size: Option<u64>, position: u64) {
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

    /// Ends the line with a word on the outcome.
    pub(super) fn done(&self, outcome: &str) {
        self.task
            .get_or_init(|| self.progress.task(self.label, None))
            .done(outcome);
    }
}

/// A file to move.
pub(super) struct Transfer<'a> {
    pub(super) http: &'a Http,
    pub(super) client: Client,
    pub(super) url: &'a Url,
    /// How long it has to be, where that is known.
    pub(super) size: Option<u64>,
    pub(super) line: &'a Line<'a>,
}

/// What the request is for, after "failed to".
const WHAT: &str = "send the file";
/// Bytes that are worth starting the count of attempts again; less would let a connection that
/// breaks at every byte go on for ever.
const HEADWAY: u64 = 64 * 1024;

impl Transfer<'_> {
    /// Brings a part to its whole length.
    pub(super) async fn run(&self, part: &mut Part) -> Result<(), TransferError> {
        let policy = self.http.retry;
        let mut waits = policy.waits();
        loop {
            let before = part.written();
            let Err(error) = self.attempt(part).await? else {
                return Ok(());
            };
            if part.written() >= before + HEADWAY {
                waits = policy.waits();
            }
            let wait = error
                .is_transient()
                .then(|| policy.wait(waits.next(), error.retry_after()))
                .flatten();
            let Some(wait) = wait else {
                return Err(error.into());
            };
            pause(&error.to_string(), wait, self.line.progress).await;
        }
    }

    /// One connection.
    async fn attempt(&self, part: &mut Part) -> Result<Result<(), HttpError>, TransferError> {
        if part.written() > 0 {
            match part.identity() {
                Some(identity) if identity.size == part.written() => {
                    return Ok(Ok(()));
                }
                Some(_) => part.resume(),
                None => part.restart()?,
            }
        }
        let response = match self.ask(part).await {
            Ok(response) => response,
            Err(HttpError::Status {
                status: StatusCode::RANGE_NOT_SATISFIABLE,
                ..
            }) if part.written() > 0 => {
                part.restart()?;
                match self.ask(part).await {
                    Ok(response) => response,
                    Err(error) => return Ok(Err(error)),
                }
            }
            Err(error) => return Ok(Err(error)),
        };
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
            match self.ask(part).await {
                Ok(response) => response,
                Err(error) => return Ok(Err(error)),
            }
        } else {
            response
        };
        let identity = identity(response.headers(), response.content_length());
        let found = identity.as_ref().map(|identity| identity.size);
        self.check_size(found)?;
        part.begin(identity)?;
        self.receive(part, response).await
    }

    async fn ask(&self, part: &Part) -> Result<Response, HttpError> {
        let mut request = Request::new(Method::GET, self.url.clone());
        if let (Some(identity), 1..) = (part.identity(), part.written()) {
            let headers = request.headers_mut();
            let range = format!("bytes={}-", part.written());
            // Weak tags are not for ranges.
            let condition = identity
                .etag
                .as_ref()
                .filter(|etag| etag.starts_with('"'))
                .or(identity.last_modified.as_ref());
            for (name, value) in [(RANGE, Some(&range)), (IF_RANGE, condition)] {
                if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                    headers.insert(name, value);
                }
            }
        }
        self.http.send(WHAT, &self.client, request).await
    }

    fn check_size(&self, found: Option<u64>) -> Result<(), TransferError> {
        match (found, self.size) {
            (Some(found), Some(expected)) if found != expected => {
                Err(TransferError::Size { found, expected })
            }
            _ => Ok(()),
        }
    }

    /// Takes in a body, whole or up to where the connection broke.
    async fn receive(
        &self,
        part: &mut Part,
        response: Response,
    ) -> Result<Result<(), HttpError>, TransferError> {
        let size = part.identity().map(|identity| identity.size);
        self.line.begin(size.or(self.size), part.written());
        let chunks = response
            .bytes_stream()
            .inspect_ok(|chunk| self.line.advance(chunk.len() as u64))
            .map_err(|error| unreachable(&host_of(self.url), WHAT, error));
        let end = part.take_in(chunks).await?;
        if end.is_ok() {
            self.check_size(Some(part.written()))?;
        }
        Ok(end)
    }
}

/// What an answer says about the state of the whole file.
fn identity(headers: &HeaderMap, size: Option<u64>) -> Option<Identity> {
    let text = |name: HeaderName| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    Some(Identity {
        size: size?,
        etag: text(ETAG),
        last_modified: text(LAST_MODIFIED),
    })
}

/// Where a partial answer begins, and which file it is a part of.
fn continuation(response: &Response) -> Option<(u64, Identity)> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (start, total) = content_range(range)?;
    Some((start, identity(response.headers(), Some(total))?))
}

/// `bytes 3-9/10` → where it begins and the size of the whole.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end): (u64, u64) = (start.trim().parse().ok()?, end.trim().parse().ok()?);
    let total = total.trim().parse().ok()?;
    // A piece that stops before the end of the file would pass for the rest of it.
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
