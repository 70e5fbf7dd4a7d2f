//! HTTP: trust, retries, redirects, resumable downloads, and verification by digest.
//!
//! ```
//! use wincimg_http::{download_url, name_in, redacted};
//!
//! let url = download_url("https://files.example.com/tool-1.4.zip?token=secret")?;
//! assert_eq!(name_in(&url).as_deref(), Some("tool-1.4.zip"));
//! // Secrets in a URL are not displayed.
//! assert!(!redacted(&url).contains("secret"));
//! # Ok::<(), String>(())
//! ```

mod addresses;
mod blob_source;
mod certificates;
mod client;
mod clients;
mod downloads;
mod error;
mod exchange;
mod insecure_hosts;
mod partial_file;
mod proxy;
mod retry;
mod transfer;
mod urls;
mod verifier;

pub use addresses::{AddressPolicy, AddressScope};
pub use blob_source::{BlobReader, BlobSource, CachedReader};
pub use certificates::{CertificateFiles, certificates_in, read_certificates, read_private_key};
pub use client::{HttpClient, IDLE_TIMEOUT};
pub use downloads::{DownloadError, DownloadedFile, Downloads, Remote};
pub use error::{HttpError, file_error};
pub use exchange::{
    Exchange, Payload, RedirectPolicy, SourceRange, TrustSource, content_type, header_text,
    location,
};
pub use partial_file::PartialFile;
pub use reqwest::Url;
pub use retry::{RetryBudget, RetryPolicy, Transient, retry_after, wait_hint};
pub use transfer::{ProgressLine, Transfer, TransferError};
pub use urls::{download_url, host_of, is_metadata, name_in, redacted};
pub use verifier::{AcceptedCertificates, CertificateVerifier, PinnedCertificates};
