//! An upload that a registry keeps open.

use reqwest::{Response, Url};

use crate::net::{HttpError, location};

/// An upload that the registry has open for us.
pub(super) struct Session {
    pub(super) location: Url,
    pub(super) offset: u64,
    /// The smallest piece that it takes, besides the last one.
    pub(super) least: u64,
    pub(super) sending: Sending,
    pub(super) stands: Stands,
}

/// How it is known where an upload stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// It is as it was opened.
    Opened,
    /// The registry said so when it was asked.
    Asked,
    /// By the pieces that were taken.
    Counted,
}

/// What was being sent when an answer or an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    Nothing,
    Piece,
    Whole,
    /// The request that closes an upload in pieces.
    End,
}

impl Session {
    /// The upload that an answer opened.
    pub(super) fn opened(what: &str, response: &Response) -> Result<Self, HttpError> {
        let least = response.headers().get(LEAST_PIECE);
        let least = least.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Ok(Self {
            location: upload_location(what, response)?,
            offset: 0,
            least: least.unwrap_or(0),
            sending: Sending::Nothing,
            stands: Stands::Opened,
        })
    }

    /// Whether bytes were on their way when an answer or an error came.
    pub(super) fn is_sending(&self) -> bool {
        matches!(self.sending, Sending::Piece | Sending::Whole)
    }
}

/// The header by which a registry says how small a piece may be.
const LEAST_PIECE: &str = "oci-chunk-min-length";

/// The `Location` of an upload. A registry behind a proxy may not know that it is reached
/// by TLS; its own host is not left for plain HTTP because of that.
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
