//! Images as immutable values: manifests, indexes and configurations with their exact bytes, and
//! pure functions that derive new values.
//!
//! The types are this crate's own because those of oci-spec write a platform's `os.version` as
//! `os_version`, order annotations at random, and drop `Shell` and every unknown field.

mod any;
mod artifact;
mod config;
mod descriptor;
mod digest;
mod error;
mod image;
mod index;
mod manifest;
pub mod media_type;
#[cfg(test)]
mod tests;
mod verbatim;

pub use any::Document;
pub(crate) use any::{WEB_PAGE_HINT, is_web_page};
pub(crate) use artifact::subject_in;
pub use artifact::{Artifact, EMPTY};
pub use config::{ContainerConfig, History, ImageConfig, RootFs};
pub use descriptor::{Descriptor, Platform, needed_variant};
pub(crate) use digest::hasher_of;
pub use digest::{Digest, Hasher, check, sha256};
pub use image::{Image, NewStep};
pub use index::{ENTRIES_AT_ONCE, Index};
pub(crate) use index::{EntryCount, MAX_DEPTH, too_deep};
pub use manifest::Manifest;
pub use media_type::ManifestFormat;
pub use verbatim::{DocumentType, Verbatim};

/// Annotation for the name of an image's base.
pub const BASE_NAME: &str = "org.opencontainers.image.base.name";
/// Annotation for the digest of the base's manifest.
pub const BASE_DIGEST: &str = "org.opencontainers.image.base.digest";

/// Annotation for the time of the image's content.
pub const CREATED: &str = "org.opencontainers.image.created";
/// Annotation for the URL of the repository with the image's definition.
pub const SOURCE: &str = "org.opencontainers.image.source";
/// Annotation for the commit of the definition.
pub const REVISION: &str = "org.opencontainers.image.revision";

/// Maximum size of a manifest, index or configuration that is read: far above real ones, which stay
/// below a megabyte, and small enough for a hostile one to cost little.
pub const MAX_DOCUMENT: u64 = 8 * 1024 * 1024;
