//! What is copied, and as what.

use super::platform::Platforms;
use crate::document::Flavour;

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
