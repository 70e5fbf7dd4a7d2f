//! Reading answers: success or the registry's own words, bodies within their bounds.

use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use tokio::time::timeout;

use super::transport::Exchange;
use super::{Inner, RegistryError};
use crate::net::{host_of, retry_after};

/// The most of an error's body that is read.
const ERROR_LIMIT: u64 = 64 * 1024;

impl Inner {
    /// Success as it is; anything else as an error with the registry's own words. `tried` says
    /// which credential went along.
    pub(super) async fn check(
        &self,
        exchange: &Exchange<'_>,
        response: Response,
        tried: &str,
    ) -> Result<Response, RegistryError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let host = host_of(response.url());
        let what = exchange.what.clone();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let body = self.read_body(response, &what, ERROR_LIMIT).await;
        let detail = body.map(|body| own_words(&body)).unwrap_or_default();
        let tried = tried.to_owned();
        Err(match status {
            StatusCode::UNAUTHORIZED => RegistryError::Unauthorized {
                host,
                what,
                tried,
                detail,
            },
            StatusCode::FORBIDDEN => RegistryError::Forbidden {
                host,
                what,
                tried,
                detail,
            },
            _ => RegistryError::Status {
                host,
                what,
                status,
                detail,
                retry_after,
            },
        })
    }

    /// A whole body in memory, if it is not larger than `limit`.
    pub(super) async fn read_body(
        &self,
        mut response: Response,
        what: &str,
        limit: u64,
    ) -> Result<Bytes, RegistryError> {
        let too_large = || RegistryError::TooLarge {
            what: format!("the answer to the request to {what}"),
            limit,
        };
        let announced = response.content_length();
        if announced.is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        loop {
            let at = body.len() as u64;
            let Some(chunk) = self.next_chunk(&mut response, what, at, announced).await? else {
                return Ok(body.freeze());
            };
            if at + chunk.len() as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// The next bytes of a body; `at` and `size` say where in the whole an error happened.
    pub(super) async fn next_chunk(
        &self,
        response: &mut Response,
        what: &str,
        at: u64,
        size: Option<u64>,
    ) -> Result<Option<Bytes>, RegistryError> {
        let idle = self.options.idle_timeout;
        let host = host_of(response.url());
        let next = self.bounded(what, async { Ok(timeout(idle, response.chunk()).await) });
        match next.await? {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(RegistryError::Interrupted {
                what: format!("the answer of {host}"),
                at,
                size: size.unwrap_or(at),
                source: Some(error.without_url().into()),
            }),
            Err(_) => Err(RegistryError::Stalled {
                host,
                what: what.to_owned(),
                after: idle,
            }),
        }
    }
}

/// The body of the specification's errors.
#[derive(Deserialize)]
struct ErrorAnswer {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// What a registry says about a failure, as one short line with a leading colon.
fn own_words(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<ErrorAnswer>(body) {
        Ok(answer) => {
            let said = answer.errors.iter().map(|entry| {
                match (entry.code.is_empty(), entry.message.is_empty()) {
                    (false, false) => format!("{} ({})", entry.message, entry.code),
                    (true, _) => entry.message.clone(),
                    (_, true) => entry.code.clone(),
                }
            });
            said.collect::<Vec<_>>().join("; ")
        }
        // An HTML page of a proxy says nothing in one line.
        Err(_) if body.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = words
        .chars()
        .filter(|c| !c.is_control())
        .take(300)
        .collect();
    if line.is_empty() {
        line
    } else {
        format!(": {line}")
    }
}
