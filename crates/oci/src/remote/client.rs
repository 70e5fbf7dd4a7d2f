//! The client for all registries of a process.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_http::{CertificateFiles, HttpClient, IDLE_TIMEOUT, RetryPolicy};

use super::document_cache::Documents;
use super::error::RegistryError;
use super::host::Host;
use super::prefetch::Prefetch;
use super::upload_session::Session;
use crate::document::Digest;

/// Connection options for registries.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// User agent of requests.
    pub user_agent: &'static str,
    /// `HOST[:PORT]` entries where plain HTTP and unverified certificates are allowed.
    pub insecure: Vec<String>,
    /// A file in the format of Docker's `config.json`; `None` for Docker's own.
    pub config_file: Option<PathBuf>,
    /// Time limit for everything done with this [`RegistryClient`], from its creation.
    pub timeout: Option<Duration>,
    /// Maximum time without a byte before a connection counts as broken.
    pub idle_timeout: Duration,
    /// Token servers (`HOST[:PORT]`) of other sites that may get the credentials of a registry.
    pub token_servers: Vec<String>,
    /// True if credentials may be sent over plain HTTP.
    pub plain_credentials: bool,
    /// Retry policy for failed requests.
    pub retries: RetryPolicy,
    /// Larger blobs are uploaded in chunks of this size, so that an upload can resume between two
    /// chunks even if the registry discards an interrupted one.
    pub chunk_size: u64,
    /// Certificates to trust in addition to the system's, and client certificates.
    pub certificates: CertificateFiles,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            user_agent: concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")),
            insecure: Vec::new(),
            config_file: None,
            timeout: None,
            idle_timeout: IDLE_TIMEOUT,
            token_servers: Vec::new(),
            plain_credentials: false,
            retries: RetryPolicy::default(),
            chunk_size: 32 * 1024 * 1024,
            certificates: CertificateFiles::default(),
        }
    }
}

/// Client for all registries of a process: connections, tokens and the known capabilities of each
/// host. Clones share state.
#[derive(Clone)]
pub struct RegistryClient(pub(super) Arc<Inner>);

/// State shared by all clones.
pub(super) struct Inner {
    pub(super) options: RegistryOptions,
    pub(super) http: HttpClient,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    /// Uploads that a registry opened in response to a mount, or that contain the beginning of a
    /// blob.
    opened_uploads: Mutex<HashMap<UploadKey, Session>>,
    pub(super) prefetch: Prefetch,
    pub(super) documents: OnceLock<Documents>,
    /// Number of suggestions made.
    pub(super) guesses: AtomicUsize,
}

/// Host, repository and digest.
pub(super) type UploadKey = (String, String, Digest);

impl RegistryClient {
    /// Creates the client; sends nothing, and reads files when they are needed.
    pub fn new(
        options: RegistryOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, RegistryError> {
        let http = HttpClient::new(
            options.user_agent, &options.insecure, options.retries, progress,
        )?
        .with_idle_timeout(options.idle_timeout)
        .with_time_limit(options.timeout)
        .with_certificates(options.certificates.clone());
        Ok(Self(Arc::new(Inner {
            options,
            http,
            hosts: Mutex::default(),
            opened_uploads: Mutex::default(),
            prefetch: Prefetch::default(),
            documents: OnceLock::new(),
            guesses: AtomicUsize::new(0),
        })))
    }

    /// The HTTP client, for servers that are not registries but use the same settings.
    pub fn http(&self) -> &HttpClient {
        &self.0.http
    }
}

impl Inner {
    pub(super) fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = lock(&self.hosts);
        hosts
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Host::new(name)))
            .clone()
    }

    pub(super) fn opened_uploads(&self) -> MutexGuard<'_, HashMap<UploadKey, Session>> {
        lock(&self.opened_uploads)
    }
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}
