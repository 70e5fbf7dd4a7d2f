//! The HTTP clients: one for each way of trusting the other side, made when first needed.
//!
//! A client that verifies certificates loads the system's roots, some hundred files or a
//! 200 KiB bundle. A push to a plain-HTTP registry never needs them and does not pay for them.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Certificate, Client, Url, redirect};

use super::RegistryError;
use super::hosts::InsecureHosts;
use super::urls::{host_of, shown};

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
    /// The trust that a URL needs; an error where it has no TLS and its host is not listed.
    pub(super) fn of(url: &Url, insecure: &InsecureHosts) -> Result<Self, RegistryError> {
        match (url.scheme(), insecure.allows(url)) {
            ("https", false) => Ok(Self::SystemRoots),
            ("https", true) => Ok(Self::AnyCertificate),
            ("http", true) => Ok(Self::PlainHttp),
            _ => Err(RegistryError::InsecureUrl {
                url: shown(url),
                host: host_of(url),
            }),
        }
    }
}

/// The clients made so far.
pub(super) struct Clients {
    user_agent: String,
    extra_roots: Option<PathBuf>,
    made: Mutex<HashMap<(Trust, bool), Client>>,
}

impl Clients {
    pub(super) fn new(user_agent: String, extra_roots: Option<PathBuf>) -> Self {
        Self {
            user_agent,
            extra_roots,
            made: Mutex::default(),
        }
    }

    /// The client for a URL. This machine's own address is never behind a proxy, as in Go's tools.
    pub(super) fn get(&self, url: &Url, trust: Trust) -> Result<Client, RegistryError> {
        let direct = is_loopback(url);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&(trust, direct)) {
            return Ok(client.clone());
        }
        let client = self.make(trust, direct)?;
        made.insert((trust, direct), client.clone());
        Ok(client)
    }

    fn make(&self, trust: Trust, direct: bool) -> Result<Client, RegistryError> {
        // A second installation fails and leaves the first, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(&self.user_agent)
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(Duration::from_secs(30))
            .tcp_keepalive(Duration::from_secs(30));
        if direct {
            builder = builder.no_proxy();
        }
        builder = match trust {
            Trust::PlainHttp => builder.tls_certs_only([]),
            Trust::AnyCertificate => builder.tls_danger_accept_invalid_certs(true),
            Trust::SystemRoots => builder.tls_certs_merge(self.read_extra_roots()?),
        };
        builder
            .build()
            .map_err(|error| RegistryError::Client(error.into()))
    }

    fn read_extra_roots(&self) -> Result<Vec<Certificate>, RegistryError> {
        let Some(path) = &self.extra_roots else {
            return Ok(Vec::new());
        };
        let pem = fs::read(path).map_err(|source| RegistryError::File {
            action: "read",
            path: path.clone(),
            source,
        })?;
        Certificate::from_pem_bundle(&pem).map_err(|error| RegistryError::Client(error.into()))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
