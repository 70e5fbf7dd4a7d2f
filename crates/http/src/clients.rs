//! HTTP clients, one for each kind of trust, created on first use.
//!
//! A client that verifies certificates loads the system's roots, some hundred files or a 200 KiB
//! bundle, which a push to a plain-HTTP registry does not need.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::{Client, Url, redirect};
use wincimg_common::diagnose::Problem;
use wincimg_common::lock;

use super::addresses::{AddressPolicy, CheckingResolver};
use super::certificates::CertificateFiles;
use super::error::HttpError;
use super::proxy;
use super::urls::{host_of, is_loopback};

const CONNECT: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Authentication of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trust {
    /// Not at all, and without encryption.
    PlainHttp,
    /// Encrypted, with any certificate.
    AnyCertificate,
    /// By the system's roots (`SSL_CERT_FILE`, `SSL_CERT_DIR`) and the user's certificates.
    SystemRoots,
}

/// Trust, addresses, whether to bypass the proxy, and the host if it needs its own client. Clients do
/// not share connections, so none goes to an address that was checked for another request.
type ClientKey = (Trust, AddressPolicy, bool, Option<String>);

/// The clients created so far.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) user_agent: &'static str,
    pub(super) certificates: CertificateFiles,
    made: Mutex<HashMap<ClientKey, Client>>,
    /// Hosts by whether they have certificates of their own.
    special: Mutex<HashMap<String, bool>>,
}

impl Clients {
    /// Creates clients that also trust these certificates.
    pub(super) fn new(user_agent: &'static str, certificates: CertificateFiles) -> Self {
        Self {
            user_agent,
            certificates,
            made: Mutex::default(),
            special: Mutex::default(),
        }
    }

    /// Returns the client for a URL. As in Go's tools, loopback addresses bypass the proxy.
    pub(super) fn get(
        &self,
        url: &Url,
        trust: Trust,
        addresses: AddressPolicy,
    ) -> Result<Client, HttpError> {
        let direct = is_loopback(url);
        let host = self.special(url, trust)?.then(|| host_of(url));
        let key = (trust, addresses, direct, host);
        let mut made = lock(&self.made);
        if let Some(client) = made.get(&key) {
            return Ok(client.clone());
        }
        let client = self.make(&key, url)?;
        made.insert(key, client.clone());
        Ok(client)
    }

    /// Returns true if a host needs its own client.
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

    fn make(&self, key: &ClientKey, url: &Url) -> Result<Client, HttpError> {
        let (trust, addresses, direct, host) = key;
        // A second installation fails and keeps the first, which is identical.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(self.user_agent)
            // Each hop of a redirect is checked like a first request.
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(CheckingResolver::new(*addresses))
            .connect_timeout(CONNECT)
            .tcp_keepalive(KEEP_ALIVE);
        if *direct {
            builder = builder.no_proxy();
        } else {
            proxy::check(url)?;
        }
        builder = match (trust, host) {
            (Trust::PlainHttp, _) => builder.tls_certs_only([]),
            (Trust::AnyCertificate, _) => builder.tls_danger_accept_invalid_certs(true),
            (Trust::SystemRoots, None) => builder,
            (Trust::SystemRoots, Some(_)) => {
                builder.tls_backend_preconfigured(self.certificates.for_host(url)?.client()?)
            }
        };
        builder.build().map_err(|error| {
            Problem::new("network/answer", "cannot set up the HTTP client")
                .source(error)
                .into()
        })
    }
}
