//! A client of the OCI distribution specification: tags, manifests and blobs of a registry.
//!
//! Challenges come from `http-auth`, waits from `backon`, HTTP from `reqwest`; what is here is the
//! protocol between them, and the running of credential helpers, for which `docker_credential` 1.4
//! waits as long as they like. It replaces `oci-client` 0.18, whose transport cannot
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
//! A [`RegistryClient`] is made once per process; a [`Repository`] is one name on one host. All requests
//! are repeated while that is of use ([`RetryPolicy`]), blobs are streamed and never in memory.
//! How many run at once is the caller's decision.

mod auth;
mod blobs;
mod capabilities;
mod challenge;
mod client;
mod credentials;
mod document_cache;
mod error;
mod error_message;
mod helper;
mod host;
mod link;
mod login;
mod manifests;
mod ping;
mod prefetch;
mod referrers;
mod repository;
mod request;
mod secret;
mod streamed;
mod suggestion;
mod upload;
mod upload_session;

pub use blobs::RemoteBlob;
pub use client::{RegistryClient, RegistryOptions};
pub use credentials::docker_folder;
pub use error::RegistryError;
pub use login::{CredentialStore, Password, erase, store};
pub use manifests::RawManifest;
pub use ping::{AuthScheme, DaemonCredential, Ping, Protocol};
pub use referrers::tag_of;
pub use repository::Repository;
pub use streamed::PartialUpload;
pub use wincimg_http::{BlobReader, BlobSource, CertificateFiles, HttpError, RetryPolicy};
