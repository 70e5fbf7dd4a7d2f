//! Images as engines return them.

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
    /// Name of the engine that made it.
    pub(super) fn engine(&self, planned: &PlannedImage) -> &'static str {
        match self {
            _ if planned.windows.is_some() => HYBRID,
            Self::Assembled(assembled) if assembled.carried.is_some() => "update",
            Self::Assembled(_) => "direct",
            Self::InDaemon(_) => "docker",
        }
    }
}
