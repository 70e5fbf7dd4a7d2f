//! What engines hand over.

use crate::direct::Assembled;
use crate::docker::DaemonImage;

/// An image that an engine made.
pub enum Made<'a> {
    /// Its documents and its own layer are here, its base's layers where the base is.
    Assembled(Box<Assembled>),
    /// All of it is in a daemon.
    InDaemon(Box<DaemonImage<'a>>),
}

impl Made<'_> {
    /// Who made it.
    pub(super) fn engine(&self) -> &'static str {
        match self {
            Self::Assembled(assembled) if assembled.carried.is_some() => "update",
            Self::Assembled(_) => "direct",
            Self::InDaemon(_) => "docker",
        }
    }
}
