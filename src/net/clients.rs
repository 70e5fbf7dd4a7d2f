//! HTTP clients, one for each way of trusting the other side, made when first needed.
//!
//! A client that verifies certificates loads the system's roots, some hundred files or a
//! 200 KiB bundle. A push to a plain-HTTP registry never needs them and does not pay for them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Certificate, Client, Url, redirect};

use super::InsecureHosts;
use super::urls::is_loopback;

const CONNECT: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;

/// How the other side is known to be who it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Not at all, and nothing is encrypted.
    PlainHttp,
    /// Encrypted, by whoever answers.
    AnyCertificate,
    /// By the roots of this machine (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
    SystemRoots,
}

impl Trust {
    /// The trust that a URL needs; none where it has no TLS and its host is not listed.
    pub fn of(url: &Url, insecure: &InsecureHosts) -> Option<Self> {
        match (url.scheme(), insecure.allows(url)) {
            ("https", false) => Some(Self::SystemRoots),
            ("https", true) => Some(Self::AnyCertificate),
            ("http", true) => Some(Self::PlainHttp),
            _ => None,
        }
    }
}

/// What is done with an answer that points elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// It is handed back as it is.
    HandBack,
    /// It is followed while it stays on its host, port and scheme.
    SameOrigin,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file with further roots cannot be read.
    #[error("cannot read {}", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The client could not be made.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] reqwest::Error),
}

/// The clients made so far.
#[derive(Debug)]
pub struct Clients {
    user_agent: String,
    redirects: Redirects,
    read_timeout: Option<Duration>,
    extra_roots: Option<PathBuf>,
    made: Mutex<HashMap<(Trust, bool), Client>>,
}

impl Clients {
    /// Clients that say this of themselves and treat redirects so.
    pub fn new(user_agent: impl Into<String>, redirects: Redirects) -> Self {
        Self {
            user_agent: user_agent.into(),
            redirects,
            read_timeout: None,
            extra_roots: None,
            made: Mutex::default(),
        }
    }

    /// The same, but a connection that is silent for longer is given up.
    #[must_use]
    pub fn with_read_timeout(mut self, timeout: Duration) -> Self {
        self.read_timeout = Some(timeout);
        self
    }

    /// The same, but the certificates in this PEM file are trusted besides the machine's.
    #[must_use]
    pub fn with_extra_roots(mut self, file: Option<PathBuf>) -> Self {
        self.extra_roots = file;
        self
    }

    /// The client for a URL. This machine's own address is never behind a proxy, as in Go's tools.
    pub fn get(&self, url: &Url, trust: Trust) -> Result<Client, ClientError> {
        let direct = is_loopback(url);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&(trust, direct)) {
            return Ok(client.clone());
        }
        let client = self.make(trust, direct)?;
        made.insert((trust, direct), client.clone());
        Ok(client)
    }

    fn make(&self, trust: Trust, direct: bool) -> Result<Client, ClientError> {
        // A second installation fails and leaves the first, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(&self.user_agent)
            .redirect(self.redirects.policy())
            .referer(false)
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEP_ALIVE);
        if let Some(timeout) = self.read_timeout {
            builder = builder.read_timeout(timeout);
        }
        if direct {
            builder = builder.no_proxy();
        }
        builder = match trust {
            Trust::PlainHttp => builder.tls_certs_only([]),
            Trust::AnyCertificate => builder.tls_danger_accept_invalid_certs(true),
            Trust::SystemRoots => builder.tls_certs_merge(self.read_extra_roots()?),
        };
        builder.build().map_err(ClientError::Setup)
    }

    fn read_extra_roots(&self) -> Result<Vec<Certificate>, ClientError> {
        let Some(path) = &self.extra_roots else {
            return Ok(Vec::new());
        };
        let pem = fs::read(path).map_err(|source| ClientError::Roots {
            path: path.clone(),
            source,
        })?;
        Certificate::from_pem_bundle(&pem).map_err(ClientError::Setup)
    }
}

impl Redirects {
    fn policy(self) -> redirect::Policy {
        match self {
            Self::HandBack => redirect::Policy::none(),
            Self::SameOrigin => redirect::Policy::custom(|attempt| {
                let stays = attempt
                    .previous()
                    .last()
                    .is_some_and(|from| from.origin() == attempt.url().origin());
                if stays && attempt.previous().len() <= MOST_REDIRECTS {
                    attempt.follow()
                } else {
                    attempt.stop()
                }
            }),
        }
    }
}
