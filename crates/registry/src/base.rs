//! What the layers below have, as those who write a hive over them ask about it.
//!
//! A key of a delta hive repeats the descriptor of the key below, and a link is followed: both take
//! knowledge of the base. Whoever has looked into one answers as [`BaseKeys`]; [`UnknownBase`] is a base
//! into which nobody has looked.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::data::RegistryData;
use crate::path::KeyPath;

/// What is known of something that a base or an image may have. Nothing of a base is known later:
/// `L` has no value there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence<T, L = Infallible> {
    /// Nobody has looked.
    Unknown,
    /// It is not there.
    Absent,
    /// It is there, and this is what it is.
    Present(T),
    /// It depends on what is downloaded.
    Later(L),
}

impl<T, L> Presence<T, L> {
    /// What it is, where it is known to be there.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Unknown | Self::Absent | Self::Later(_) => None,
        }
    }

    /// What is known of something else, where this is there.
    pub fn and_then<U>(self, of: impl FnOnce(T) -> Presence<U, L>) -> Presence<U, L> {
        match self {
            Self::Present(value) => of(value),
            Self::Unknown => Presence::Unknown,
            Self::Absent => Presence::Absent,
            Self::Later(later) => Presence::Later(later),
        }
    }

    /// Something of it.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Presence<U, L> {
        self.and_then(|value| Presence::Present(of(value)))
    }
}

impl<T> Presence<T> {
    /// The same of an image of which other things are known later.
    pub fn of_image<L>(self) -> Presence<T, L> {
        match self {
            Self::Present(value) => Presence::Present(value),
            Self::Unknown => Presence::Unknown,
            Self::Absent => Presence::Absent,
        }
    }
}

/// A key of a base's registry, with all its layers laid over each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseKey {
    /// The security descriptor in its self-relative form.
    pub security: Vec<u8>,
    /// The class name.
    pub class: Option<String>,
    /// Where the key leads, if it is a link to another key that layers can change.
    pub link: Option<KeyPath>,
    /// The values: names and data.
    pub values: Vec<(String, RegistryData)>,
}

/// The registry of a base, as far as somebody has looked into it.
pub trait BaseKeys: fmt::Debug + Send + Sync {
    /// The key at that path. Links on the way are not followed: they are keys.
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError>;
}

/// What somebody knows of a base cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read what is known of the base")]
pub struct BaseReadError(#[source] pub Arc<dyn Error + Send + Sync>);

/// A base into which nobody has looked.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownBase;

impl BaseKeys for UnknownBase {
    fn key(&self, _: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}
