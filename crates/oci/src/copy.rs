//! Copying images between places: planned from the manifests alone, then carried out with each blob
//! moved once however many images share it.
//!
//! A [`CopyPlan`] is the image as it will be published, with everything it names. A [`Copier`] makes
//! plans come true; it looks before it sends, mounts what the registry has elsewhere, and publishes
//! a manifest only after everything that it names is there. From the first answer on, everything is
//! asked for by digest, so a tag that moves in between changes nothing.

mod error;
mod mount_sources;
mod observer;
mod plan;
mod platform;
mod run;

pub use error::CopyError;
pub(crate) use observer::ObservedBlob;
pub use observer::Watcher;
pub use plan::{CopyOptions, CopyPlan, Foreign, PlannedBlob};
pub use platform::{PlatformError, PlatformFilter, Platforms};
pub use run::{BlobAction, BlobReport, Copier, CopyReport};
