//! What the layers below have, as those who write a hive over them ask about it.
//!
//! A key of a delta hive repeats the descriptor of the key below, and a link is followed: both take
//! knowledge of the base. Whoever has looked into one answers as [`BaseKeys`]; [`Unseen`] is a base
//! into which nobody has looked.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::data::RegistryData;
use crate::path::KeyPath;

/// What is known of something that a base may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<T> {
    /// Nobody has looked.
    Unknown,
    /// The base does not have it.
    Absent,
    /// The base has it, and this is what it is.
    Present(T),
}

impl<T> Known<T> {
    /// What it is, where the base is known to have it.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Unknown | Self::Absent => None,
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
    fn key(&self, path: &KeyPath) -> Result<Known<BaseKey>, InsideError>;
}

/// What somebody knows of a base cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read what is known of the base")]
pub struct InsideError(#[source] pub Arc<dyn Error + Send + Sync>);

/// A base into which nobody has looked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unseen;

impl BaseKeys for Unseen {
    fn key(&self, _: &KeyPath) -> Result<Known<BaseKey>, InsideError> {
        Ok(Known::Unknown)
    }
}
