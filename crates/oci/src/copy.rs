//! Copies images between stores: planned from the manifests alone, then executed with each blob
//! transferred once, however many images share it.
//!
//! A [`CopyPlan`] is the image as it will be published, with all content it references. A
//! [`Copier`] executes plans: it checks before it uploads, mounts blobs from other repositories of
//! the registry, and publishes a manifest only after all content it references exists. After the
//! first response, all requests are by digest, so a tag that moves meanwhile has no effect.

mod mount_sources;
mod plan;
mod platform;
mod referrers;
mod run;

pub use plan::{CopyOptions, CopyPlan, Foreign, PlannedBlob};
pub use platform::PlatformFilter;
pub use referrers::{ReferrerOutcome, ReferrerReport};
pub use run::{BlobAction, BlobReport, Copier, CopyReport, Watcher};
