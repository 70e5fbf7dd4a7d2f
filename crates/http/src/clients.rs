//! HTTP clients, one for each way of trusting the other side, made when first needed.
//!
//! A client that verifies certificates loads the system's roots, some hundred files or a
//! 200 KiB bundle. A push to a plain-HTTP registry never needs them and does not pay for them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::{Client, Url, redirect};
use wincimg_common::lock;

use super::certificates::CertificateFiles;
use super::error::HttpError;
use super::insecure_hosts::InsecureHosts;
use super::urls::{host_of, is_loopback};

const CONNECT: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How the other side is known to be who it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trust {
    /// Not at all, and nothing is encrypted.
    PlainHttp,
    /// Encrypted, by whoever answers.
    AnyCertificate,
    /// By the roots of this machine (`SSL_CERT_FILE`, `SSL_CERT_DIR`) and what the user named.
    SystemRoots,
}

impl Trust {
    /// The trust that a URL needs; none where it has no TLS and its host is not listed.
    pub(super) fn for_url(url: &Url, insecure: &InsecureHosts) -> Option<Self> {
        match (url.scheme(), insecure.allows(url)) {
            ("https", false) => Some(Self::SystemRoots),
            ("https", true) => Some(Self::AnyCertificate),
            ("http", true) => Some(Self::PlainHttp),
            _ => None,
        }
    }
}

/// How the other side is known, whether no proxy is asked, and the host, where it is for one alone.
type ClientKey = (Trust, bool, Option<String>);

/// The clients made so far.
#[derive(Debug)]
pub(super) struct Clients {
    /// What requests say of who sends them.
    user_agent: &'static str,
    certificates: CertificateFiles,
    made: Mutex<HashMap<ClientKey, Client>>,
    /// True if a host has certificates of its own.
    special: Mutex<HashMap<String, bool>>,
}

impl Clients {
    /// Clients that trust these certificates besides the machine's.
    pub(super) fn new(user_agent: &'static str, certificates: CertificateFiles) -> Self {
        Self {
            user_agent,
            certificates,
            made: Mutex::default(),
            special: Mutex::default(),
        }
    }

    /// The same with other certificates.
    pub(super) fn with_certificates(self, certificates: CertificateFiles) -> Self {
        Self::new(self.user_agent, certificates)
    }

    /// The client for a URL. This machine's own address is never behind a proxy, as in Go's tools.
    pub(super) fn get(&self, url: &Url, trust: Trust) -> Result<Client, HttpError> {
        let direct = is_loopback(url);
        let host = self.special(url, trust)?.then(|| host_of(url));
        let key = (trust, direct, host);
        let mut made = lock(&self.made);
        if let Some(client) = made.get(&key) {
            return Ok(client.clone());
        }
        let client = self.make(trust, direct, key.2.is_some().then_some(url))?;
        made.insert(key, client.clone());
        Ok(client)
    }

    /// Returns true if a host needs a client of its own.
    fn special(&self, url: &Url, trust: Trust) -> Result<bool, HttpError> {
        if trust != Trust::SystemRoots {
            return Ok(false);
        }
        let host = host_of(url);
        let mut special = lock(&self.special);
        if let Some(known) = special.get(&host) {
            return Ok(*known);
        }
        let is_special = !self.certificates.for_host(url)?.is_empty();
        special.insert(host, is_special);
        Ok(is_special)
    }

    fn make(&self, trust: Trust, direct: bool, host: Option<&Url>) -> Result<Client, HttpError> {
        // A second installation fails and leaves the first, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(self.user_agent)
            // Every hop of a redirect is checked like a first request.
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEP_ALIVE);
        if direct {
            builder = builder.no_proxy();
        }
        builder = match (trust, host) {
            (Trust::PlainHttp, _) => builder.tls_certs_only([]),
            (Trust::AnyCertificate, _) => builder.tls_danger_accept_invalid_certs(true),
            (Trust::SystemRoots, None) => builder,
            (Trust::SystemRoots, Some(url)) => {
                builder.tls_backend_preconfigured(self.certificates.for_host(url)?.client()?)
            }
        };
        builder.build().map_err(HttpError::Setup)
    }
}
