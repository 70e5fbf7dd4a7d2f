//! Images as engines return them.

use wincimg_inspect::provenance::SourceFile;

use crate::direct::AssembledImage;
use crate::docker::DaemonImage;
use crate::hybrid::HYBRID;
use crate::plans::PlannedImage;

/// An image that an engine made.
pub(crate) enum BuiltImage<'a> {
    /// Its documents and added layers are here, the base's layers where the base is.
    Assembled(Box<AssembledImage>),
    /// All of it is in a daemon.
    InDaemon(Box<DaemonImage<'a>>),
}

impl BuiltImage<'_> {
    /// The image that an update made it from.
    pub(super) fn updated(&self) -> Option<&SourceFile> {
        match self {
            Self::Assembled(assembled) => assembled.carried.as_ref().map(|reused| &reused.of),
            Self::InDaemon(_) => None,
        }
    }

    /// Name of the engine that made it.
    pub(super) fn engine(&self, planned: &PlannedImage) -> &'static str {
        match self {
            _ if planned.windows.is_some() => HYBRID,
            Self::Assembled(_) if self.updated().is_some() => "update",
            Self::Assembled(_) => "direct",
            Self::InDaemon(_) => "docker",
        }
    }
}
