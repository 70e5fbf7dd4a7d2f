//! All registries as one process knows them.

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
    /// A file like Docker's `config.json`; without it Docker's own, where there is one.
    pub config_file: Option<PathBuf>,
    /// The bound on everything that is done with this [`RegistryClient`], counted from its making.
    pub timeout: Option<Duration>,
    /// The longest time without a byte before a connection counts as broken.
    pub idle_timeout: Duration,
    /// True if credentials may be sent over plain HTTP.
    pub plain_credentials: bool,
    /// Retry policy for failed requests.
    pub retries: RetryPolicy,
    /// Blobs larger than this are uploaded in pieces of this size, so that an upload can resume
    /// between two of them even where the registry forgets a piece that broke.
    pub chunk_size: u64,
    /// Certificates to trust besides the system's, and to be known by.
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
            plain_credentials: false,
            retries: RetryPolicy::default(),
            chunk_size: 32 * 1024 * 1024,
            certificates: CertificateFiles::default(),
        }
    }
}

/// All registries, as one process knows them: connections, tokens, what each host has shown of
/// itself. Clones share it.
#[derive(Clone)]
pub struct RegistryClient(pub(super) Arc<Inner>);

/// State shared by all clones.
pub(super) struct Inner {
    pub(super) options: RegistryOptions,
    pub(super) http: HttpClient,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
    /// Uploads that a registry opened where a mount was asked for, or that have the beginning of a blob.
    opened_uploads: Mutex<HashMap<UploadKey, Session>>,
    pub(super) prefetch: Prefetch,
    pub(super) documents: OnceLock<Documents>,
    /// How often it was asked what was probably meant.
    pub(super) guesses: AtomicUsize,
}

/// Host, repository and digest.
pub(super) type UploadKey = (String, String, Digest);

impl RegistryClient {
    /// Makes the client; nothing is sent yet, and files are read when they are needed.
    pub fn new(
        options: RegistryOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<Self, RegistryError> {
        let http = HttpClient::new(
            options.user_agent,
            &options.insecure,
            options.retries,
            progress,
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
}

impl RegistryClient {
    /// The connections, for servers that are not registries and are reached in the same way.
    pub fn http(&self) -> &HttpClient {
        &self.0.http
    }
}

impl Inner {
    /// Known state of a host.
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
