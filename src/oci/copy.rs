//! Copying images between places: planned from the manifests alone, then carried out with each blob
//! moved once however many images share it.
//!
//! A [`CopyPlan`] is the image as it will be published, with everything it names. A [`Copier`] makes
//! plans come true; it looks before it sends, mounts what the registry has elsewhere, and publishes
//! a manifest only after everything that it names is there. From the first answer on, everything is
//! asked for by digest, so a tag that moves in between changes nothing.

mod neighbours;
mod plan;
mod platform;
mod run;

pub use plan::{CopyPlan, PlannedBlob};
pub use platform::{PlatformError, PlatformFilter, Platforms};
pub use run::{Action, BlobReport, Copier, CopyReport};

use super::document::{Digest, DocumentError, Flavour};
use super::store::StoreError;

use crate::diagnose::Diagnose;

/// What is done with foreign layers, which older Windows base images have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Foreign {
    /// They stay foreign. As Docker does it, registries do not get their bytes; layouts and archives
    /// do, which could not be used without.
    #[default]
    Keep,
    /// They are copied, from their `urls` where the source does not have them, and get ordinary
    /// types. The digests of manifests and indexes follow; the configurations' stay.
    MakeOrdinary,
}

/// What is copied, and as what.
#[derive(Debug, Clone, Default)]
pub struct CopyOptions {
    /// Which images of an index.
    pub platforms: Platforms,
    /// What becomes of foreign layers.
    pub foreign: Foreign,
    /// The words in which manifests and indexes are written; those of the source where none is asked
    /// for. Skopeo, for one, reads layouts in OCI's words only.
    pub flavour: Option<Flavour>,
}

/// An image that could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A document could not be rewritten.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// No image is for the platforms asked for.
    #[error("{image} has no image for {wanted}: it has {available}")]
    NoPlatform {
        /// What was looked at.
        image: String,
        /// The platforms asked for.
        wanted: String,
        /// Those that exist.
        available: String,
    },
    /// An index names indexes that name indexes, and so on.
    #[error("{digest} is nested too deeply: expected an index of images")]
    TooDeep {
        /// The innermost index that was looked at.
        digest: Digest,
    },
    /// A foreign layer is nowhere.
    #[error("{place} does not have the foreign layer {digest}, and it names no url to get it from")]
    NowhereToBeFound {
        /// The source.
        place: String,
        /// The layer.
        digest: Digest,
    },
}

impl Diagnose for CopyError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }
}

impl CopyError {
    /// What to type or do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}
