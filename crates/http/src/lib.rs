//! HTTP for everything here that speaks it: whom to trust, when to try again, which redirects to
//! follow, files that come in pieces, and the digests that prove them.
//!
//! ```
//! use wincimg_http::{download_url, name_in, shown};
//!
//! let url = download_url("https://files.example.com/tool-1.4.zip?token=secret")?;
//! assert_eq!(name_in(&url).as_deref(), Some("tool-1.4.zip"));
//! // What is shown of a URL has no secrets.
//! assert!(!shown(&url).contains("secret"));
//! # Ok::<(), String>(())
//! ```

mod certificates;
mod clients;
mod downloads;
mod error;
mod exchange;
mod http;
mod insecure;
mod partial_file;
mod pem;
mod retry;
mod source;
mod transfer;
mod urls;
mod verifier;

pub use certificates::CertificateFiles;
pub use downloads::{DownloadError, Downloaded, Downloads, Remote};
pub use error::{FileError, HttpError};
pub use exchange::{Exchange, Payload, Piece, Redirects, Vouched, location};
pub use http::{Http, IDLE_TIMEOUT};
pub use partial_file::PartialFile;
pub use pem::{certificates_in, read_certificates, read_private_key};
pub use retry::{Attempts, RetryPolicy, Transient, retry_after};
pub use source::{BlobReader, BlobSource, KeptReader};
pub use transfer::{Line, Transfer, TransferError};
pub use urls::{download_url, host_of, name_in, shown};
pub use verifier::{Accepted, ServerCertificate};
