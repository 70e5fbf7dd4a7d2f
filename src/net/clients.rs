//! HTTP clients, one for each way of trusting the other side, made when first needed.
//!
//! A client that verifies certificates loads the system's roots, some hundred files or a
//! 200 KiB bundle. A push to a plain-HTTP registry never needs them and does not pay for them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Certificate, Client, Url, redirect};

use super::error::HttpError;
use super::insecure::InsecureHosts;
use super::urls::is_loopback;

const CONNECT: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// What requests say of who sends them.
const USER_AGENT: &str = concat!("wincimg/", env!("CARGO_PKG_VERSION"));

/// How the other side is known to be who it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trust {
    /// Not at all, and nothing is encrypted.
    PlainHttp,
    /// Encrypted, by whoever answers.
    AnyCertificate,
    /// By the roots of this machine (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
    SystemRoots,
}

impl Trust {
    /// The trust that a URL needs; none where it has no TLS and its host is not listed.
    pub(super) fn of(url: &Url, insecure: &InsecureHosts) -> Option<Self> {
        match (url.scheme(), insecure.allows(url)) {
            ("https", false) => Some(Self::SystemRoots),
            ("https", true) => Some(Self::AnyCertificate),
            ("http", true) => Some(Self::PlainHttp),
            _ => None,
        }
    }
}

/// The clients made so far.
#[derive(Debug)]
pub(super) struct Clients {
    extra_roots: Option<PathBuf>,
    made: Mutex<HashMap<(Trust, bool), Client>>,
}

impl Clients {
    /// Clients that trust the certificates in a PEM file besides the machine's.
    pub(super) fn new(extra_roots: Option<PathBuf>) -> Self {
        Self {
            extra_roots,
            made: Mutex::default(),
        }
    }

    /// The client for a URL. This machine's own address is never behind a proxy, as in Go's tools.
    pub(super) fn get(&self, url: &Url, trust: Trust) -> Result<Client, HttpError> {
        let direct = is_loopback(url);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&(trust, direct)) {
            return Ok(client.clone());
        }
        let client = self.make(trust, direct)?;
        made.insert((trust, direct), client.clone());
        Ok(client)
    }

    fn make(&self, trust: Trust, direct: bool) -> Result<Client, HttpError> {
        // A second installation fails and leaves the first, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(USER_AGENT)
            // Every hop of a redirect is checked like a first request.
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEP_ALIVE);
        if direct {
            builder = builder.no_proxy();
        }
        builder = match trust {
            Trust::PlainHttp => builder.tls_certs_only([]),
            Trust::AnyCertificate => builder.tls_danger_accept_invalid_certs(true),
            Trust::SystemRoots => builder.tls_certs_merge(self.read_extra_roots()?),
        };
        builder.build().map_err(HttpError::Setup)
    }

    fn read_extra_roots(&self) -> Result<Vec<Certificate>, HttpError> {
        let Some(path) = &self.extra_roots else {
            return Ok(Vec::new());
        };
        let pem = fs::read(path).map_err(|source| HttpError::Roots {
            path: path.clone(),
            source,
        })?;
        Certificate::from_pem_bundle(&pem).map_err(HttpError::Setup)
    }
}
