//! A client of the OCI distribution specification: tags, manifests and blobs of a registry.
//!
//! Types come from `oci-spec`, challenges from `http-auth`, credentials from `docker_credential`,
//! waits from `backon`, HTTP from `reqwest`; what is here is the protocol between them. It
//! replaces `oci-client` 0.18, whose transport cannot
//! - accept an unverified certificate from one host only (`accept_invalid_certificates` is for its
//!   one HTTP client), or find out which protocol a host speaks;
//! - refuse a redirect, or a foreign layer's URL, that leaves HTTPS;
//! - repeat a request: not after a broken connection, a 5xx or a 429, and `Retry-After` is not read;
//! - resume an upload: it never asks for an upload's state, and reads its source once;
//! - verify a download that was resumed (a partial stream is handed over as it comes);
//! - page through tags (`list_tags` drops the `Link` header);
//! - survive a mount that the registry answers with 202, or ask for a token with the scope of
//!   the repository that is mounted from;
//! - exchange an identity token, read Docker's credentials, say which one was refused;
//! - bound the size of a manifest or the time of the whole.
//!
//! A [`Registry`] is made once per process; a [`Repository`] is one name on one host. All requests
//! are repeated while that is of use ([`RetryPolicy`]), blobs are streamed and never in memory.
//! How many run at once is the caller's decision.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oci_spec::image::Descriptor;
use reqwest::Url;
use tokio::time::Instant;

use super::reference::Reference;
use crate::net::{Clients, InsecureHosts, Redirects};
use crate::progress::Progress;

mod answer;
mod auth;
mod catalog;
mod credentials;
mod daemon;
mod digest;
mod download;
mod error;
mod host;
mod manifests;
mod part;
mod ping;
mod pull;
mod repository;
mod request;
mod retry;
mod source;
mod tags;
mod transport;
mod upload;
mod urls;

pub use crate::net::RetryPolicy;
pub use daemon::DaemonCredential;
pub use error::RegistryError;
pub use manifests::RawManifest;
pub use ping::{Connection, Login, Ping};
pub use repository::Repository;
pub use source::{BlobReader, BlobSource, RemoteBlob};

use host::Host;

/// How registries are reached.
#[derive(Debug, Clone)]
pub struct Options {
    /// `HOST[:PORT]` entries where plain HTTP and unverified certificates are allowed.
    pub insecure: Vec<String>,
    /// A file like Docker's `config.json`; without it Docker's own, where there is one.
    pub config_file: Option<PathBuf>,
    /// The bound on everything that is done with this [`Registry`], counted from its making.
    pub timeout: Option<Duration>,
    /// The longest time without a byte before a connection counts as broken.
    pub idle_timeout: Duration,
    /// Whether credentials may be sent over plain HTTP.
    pub plain_credentials: bool,
    /// How often a failed request is repeated.
    pub retries: RetryPolicy,
    /// Blobs larger than this are uploaded in pieces of this size, so that an upload can resume
    /// between two of them even where the registry forgets a piece that broke.
    pub chunk_size: u64,
    /// A PEM file of CAs to trust besides the system's.
    pub extra_roots: Option<PathBuf>,
    /// What requests say of who sends them.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            insecure: Vec::new(),
            config_file: None,
            timeout: None,
            idle_timeout: Duration::from_mins(1),
            plain_credentials: false,
            retries: RetryPolicy::default(),
            chunk_size: 32 * 1024 * 1024,
            extra_roots: None,
            user_agent: concat!("wincimg/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// All registries, as one process knows them: connections, tokens, what each host has shown of
/// itself. Clones share it.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

/// What all clones share.
struct Inner {
    options: Options,
    insecure: InsecureHosts,
    clients: Clients,
    deadline: Option<Instant>,
    progress: Arc<dyn Progress>,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    /// Uploads that a registry opened where a mount was asked for.
    opened_uploads: Mutex<HashMap<UploadKey, Url>>,
}

/// Host, repository and digest.
type UploadKey = (String, String, String);

impl Registry {
    /// Makes the client; nothing is sent yet, and files are read when they are needed.
    pub fn new(options: Options, progress: Arc<dyn Progress>) -> Result<Self, RegistryError> {
        Ok(Self(Arc::new(Inner {
            insecure: InsecureHosts::parse(&options.insecure)?,
            clients: Clients::new(&options.user_agent, Redirects::HandBack)
                .with_extra_roots(options.extra_roots.clone()),
            deadline: options
                .timeout
                .and_then(|limit| Instant::now().checked_add(limit)),
            progress,
            hosts: Mutex::default(),
            opened_uploads: Mutex::default(),
            options,
        })))
    }

    /// The repository that a reference names.
    pub fn repository(&self, reference: &Reference) -> Repository {
        Repository::new(
            self.clone(),
            self.0.host(reference.registry()),
            reference.repository(),
        )
    }

    /// The bytes behind a foreign layer's `urls`, tried in their order and without credentials.
    pub fn url_source(&self, urls: &[String], descriptor: &Descriptor) -> RemoteBlob {
        RemoteBlob::at_urls(self.clone(), urls, descriptor)
    }
}

impl Inner {
    fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Host::new(name)))
            .clone()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}
