//! HTTP as the catalog needs it: who may be spoken to without TLS, bounded answers, and no
//! redirect to elsewhere.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::LOCATION;
use reqwest::{Client, Request, Response, StatusCode, Url};

use crate::diagnose::{Blame, Diagnose};
use crate::net::{
    ClientError, Clients, InsecureHosts, NotAHost, Redirects, RetryPolicy, Trust, host_of,
    retry_after, shown,
};
use crate::progress::Progress;

/// Why an HTTP exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The client could not be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Not `HOST` or `HOST:PORT`.
    #[error(transparent)]
    InsecureHost(#[from] NotAHost),
    /// Plain HTTP to a host that is not listed for it.
    #[error("{url} is plain HTTP, which is allowed only to hosts listed as insecure")]
    PlainHttp {
        /// The address.
        url: String,
        /// Host and port, as the list takes them.
        host: String,
    },
    /// No connection, or one that broke.
    #[error("cannot reach {host} to {what}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// The transport's error.
        source: reqwest::Error,
    },
    /// An answer that is no success.
    #[error("{host} failed to {what}: {status}")]
    Status {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// The HTTP status.
        status: StatusCode,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// A redirect that leaves the host or TLS.
    #[error("{host} redirects elsewhere instead of answering the request to {what}: {target}")]
    Redirect {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// Where it points.
        target: String,
    },
    /// A page larger than any page.
    #[error("the answer of {host} to the request to {what} is larger than {limit} bytes")]
    TooLarge {
        /// Host and port.
        host: String,
        /// What was asked.
        what: String,
        /// The most that is read.
        limit: usize,
    },
}

impl Diagnose for HttpError {
    fn blame(&self) -> Blame {
        match self {
            Self::InsecureHost(_) => Blame::Request,
            _ => Blame::Circumstances,
        }
    }
}

impl HttpError {
    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            // A request that cannot be built or a certificate that is not trusted stays so.
            Self::Unreachable { source, .. } => !source.is_builder() && !is_certificate(source),
            Self::Status { status, .. } => {
                matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
            }
            _ => false,
        }
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// What vouches for the bytes that come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vouched {
    /// The connection: TLS, unless the user listed the host.
    ByConnection,
    /// A digest from elsewhere, so that anybody may have handled them.
    ByDigest,
}

/// Connections to the hosts that this process talks to.
pub struct Http {
    insecure: InsecureHosts,
    pub(super) retry: RetryPolicy,
    pub(super) progress: Arc<dyn Progress>,
    clients: Clients,
}

const USER_AGENT: &str = concat!("wincimg/", env!("CARGO_PKG_VERSION"));
/// The catalog takes its time for a search; a connection that is silent for longer is dead.
const IDLE: Duration = Duration::from_mins(1);
/// Real pages have a tenth of a megabyte.
const PAGE_LIMIT: usize = 16 << 20;

impl Http {
    /// `insecure` lists the hosts (`HOST` or `HOST:PORT`) that may speak plain HTTP or have a
    /// certificate that nobody vouches for.
    pub fn new(
        insecure: &[String],
        retry: RetryPolicy,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            insecure: InsecureHosts::parse(insecure)?,
            retry,
            progress,
            clients: Clients::new(USER_AGENT, Redirects::SameOrigin).with_read_timeout(IDLE),
        })
    }

    /// Whether the user listed the URL's host.
    pub(super) fn is_listed(&self, url: &Url) -> bool {
        self.insecure.allows(url)
    }

    /// The client that may fetch a URL.
    pub(super) fn client(&self, url: &Url, vouched: Vouched) -> Result<Client, HttpError> {
        let by_digest = url.scheme() == "http" && vouched == Vouched::ByDigest;
        let trust = Trust::of(url, &self.insecure).or(by_digest.then_some(Trust::PlainHttp));
        match trust {
            Some(trust) => Ok(self.clients.get(url, trust)?),
            None => Err(HttpError::PlainHttp {
                url: shown(url),
                host: host_of(url),
            }),
        }
    }

    /// Sends once and takes nothing but success for an answer. `what` reads well after "failed to".
    pub(super) async fn send(
        &self,
        what: &str,
        client: &Client,
        request: Request,
    ) -> Result<Response, HttpError> {
        let host = host_of(request.url());
        let response = client
            .execute(request)
            .await
            .map_err(|error| unreachable(&host, what, error))?;
        let status = response.status();
        tracing::debug!(url = %shown(response.url()), status = status.as_u16(), "answer");
        let what = what.to_owned();
        if status.is_success() {
            Ok(response)
        } else if let Some(target) = response.headers().get(LOCATION) {
            let target = String::from_utf8_lossy(target.as_bytes())
                .chars()
                .take(200)
                .collect();
            Err(HttpError::Redirect { host, what, target })
        } else {
            let retry_after = retry_after(response.headers(), SystemTime::now());
            Err(HttpError::Status {
                host,
                what,
                status,
                retry_after,
            })
        }
    }

    /// A whole page as text.
    pub(super) async fn page(
        &self,
        what: &str,
        client: &Client,
        request: Request,
    ) -> Result<String, HttpError> {
        let mut response = self.send(what, client, request).await?;
        let host = host_of(response.url());
        let mut page = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| unreachable(&host, what, error))?
        {
            if page.len() + chunk.len() > PAGE_LIMIT {
                let what = what.to_owned();
                return Err(HttpError::TooLarge {
                    host,
                    what,
                    limit: PAGE_LIMIT,
                });
            }
            page.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8(page)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

pub(super) fn unreachable(host: &str, what: &str, error: reqwest::Error) -> HttpError {
    HttpError::Unreachable {
        host: host.to_owned(),
        what: what.to_owned(),
        source: error.without_url(),
    }
}

/// Whether the TLS library refused the certificate; libraries in between wrap its error.
fn is_certificate(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return matches!(tls, rustls::Error::InvalidCertificate(_));
        }
        next = match error.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::progress::Silent;

    fn http(insecure: &[&str]) -> Http {
        let insecure: Vec<String> = insecure.iter().map(|&entry| entry.to_owned()).collect();
        Http::new(&insecure, RetryPolicy::default(), Arc::new(Silent)).unwrap()
    }

    #[test]
    fn plain_http_is_for_listed_hosts_and_for_bytes_that_a_digest_vouches_for() {
        let http = http(&["catalog.lan:8080"]);
        let allowed = |url: &str, vouched| http.client(&url.parse().unwrap(), vouched).is_ok();
        assert!(allowed("http://catalog.lan:8080/x", Vouched::ByConnection));
        assert!(!allowed("http://catalog.lan:8081/x", Vouched::ByConnection));
        assert!(!allowed("http://127.0.0.1/x", Vouched::ByConnection));
        assert!(allowed("http://elsewhere/x", Vouched::ByDigest));
        assert!(!allowed("ftp://elsewhere/x", Vouched::ByDigest));
    }

    #[test]
    fn the_error_names_the_host_as_the_list_takes_it() {
        let url = "http://user:secret@catalog.lan:8080/x?token=secret"
            .parse()
            .unwrap();
        let error = http(&[]).client(&url, Vouched::ByConnection).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(matches!(error, HttpError::PlainHttp { host, .. } if host == "catalog.lan:8080"));
    }
}
