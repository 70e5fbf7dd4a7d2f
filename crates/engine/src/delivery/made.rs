//! What engines hand over.

use wincimg_oci::document::{Digest, Flavour};

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

    /// The digest that it has in a registry, in these words or else its own; none where a daemon
    /// decides that.
    pub(super) fn digest_in(&self, flavour: Option<Flavour>) -> Option<Digest> {
        let Self::Assembled(assembled) = self else {
            return None;
        };
        match flavour {
            None => Some(assembled.image.digest().clone()),
            Some(flavour) => {
                let image = assembled.image.in_flavour(flavour).ok()?;
                Some(image.digest().clone())
            }
        }
    }
}
