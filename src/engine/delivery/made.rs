//! What engines hand over.

use crate::engine::direct::Assembled;
use crate::engine::docker::DaemonImage;

/// An image that an engine made.
pub enum Made<'a> {
    /// Its documents and its own layer are here, its base's layers where the base is.
    Assembled(Box<Assembled>),
    /// All of it is in a daemon.
    InDaemon(Box<DaemonImage<'a>>),
}
