//! A client of the OCI distribution specification: tags, manifests and blobs of a registry.
//!
//! Challenges are parsed with `http-auth`, retries timed with `backon`, HTTP done with `reqwest`;
//! this module has the protocol between them. It runs credential helpers itself because
//! `docker_credential` 1.4 has no time limit. It replaces `oci-client` 0.18, whose transport cannot
//! - accept an unverified certificate from one host only (`accept_invalid_certificates` applies to
//!   the whole client), or detect a host's protocol;
//! - refuse a redirect, or a foreign layer's URL, that leaves HTTPS;
//! - retry after a broken connection, a 5xx or a 429, or honour `Retry-After`;
//! - resume an upload: it never queries an upload's state, and reads its source once;
//! - verify a resumed download (a partial stream is returned as received);
//! - page through tags (`list_tags` drops the `Link` header);
//! - handle a mount answered with 202, or request a token with the scope of the repository to mount
//!   from;
//! - exchange an identity token, read Docker's credentials, or report which one was refused;
//! - limit the size of a manifest or the total time.
//!
//! Create one [`RegistryClient`] per process; a [`Repository`] is one name on one host. All
//! requests are retried according to the [`RetryPolicy`]; blobs are streamed and never held in
//! memory. The caller decides on concurrency.

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
mod observer;
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
pub use login::{CredentialStore, erase, store};
pub use manifests::RawManifest;
pub use observer::BlobObserver;
pub use ping::{AuthScheme, DaemonCredential, Ping, Protocol};
pub use referrers::cosign_tags;
pub(crate) use referrers::{
    PARALLEL, is_cosign_tag, is_list_tag, none_if_refused, not_attached, tag_of,
};
pub use repository::Repository;
pub use secret::Secret;
pub use streamed::PartialUpload;
pub use wincimg_http::{BlobReader, BlobSource, CertificateFiles, HttpError, RetryPolicy};
