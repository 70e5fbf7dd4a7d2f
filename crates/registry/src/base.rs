//! Access to the registry of the layers below a delta hive.
//!
//! A key of a delta hive repeats the descriptor of the key below, and links are followed: both
//! require the content of the base. [`BaseKeys`] provides it; [`UnknownBase`] is a base of unknown
//! content.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::data::{DataType, RegistryData};
use crate::name_folding::eq_ignore_case;
use crate::path::KeyPath;

/// Knowledge of something that a base or an image may contain. For a base nothing is known later:
/// `L` has no value there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence<T, L = Infallible> {
    /// Unknown.
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists, with this value.
    Present(T),
    /// It depends on a download.
    Deferred(L),
}

impl<T, L> Presence<T, L> {
    /// Returns the value, if it is known to exist.
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Unknown | Self::Absent | Self::Deferred(_) => None,
        }
    }

    /// Chains a lookup that depends on an existing value.
    pub fn and_then<U>(self, of: impl FnOnce(T) -> Presence<U, L>) -> Presence<U, L> {
        match self {
            Self::Present(value) => of(value),
            Self::Unknown => Presence::Unknown,
            Self::Absent => Presence::Absent,
            Self::Deferred(later) => Presence::Deferred(later),
        }
    }

    /// Maps an existing value.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Presence<U, L> {
        self.and_then(|value| Presence::Present(of(value)))
    }
}

impl<T> Presence<T> {
    /// Converts to the type for an image.
    pub fn of_image<L>(self) -> Presence<T, L> {
        match self {
            Self::Present(value) => Presence::Present(value),
            Self::Unknown => Presence::Unknown,
            Self::Absent => Presence::Absent,
        }
    }
}

/// A key of a base's registry, merged over all its layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseKey {
    /// Its name, in its original spelling.
    pub name: String,
    /// The security descriptor in its self-relative form.
    pub security: Vec<u8>,
    /// The class name.
    pub class: Option<String>,
    /// Target, if the key is a link to another key that layers can change.
    pub link: Option<KeyPath>,
    /// The values: names and data.
    pub values: Vec<(String, RegistryData)>,
}

impl BaseKey {
    /// Target that a link's values name, if layers can change it.
    pub fn link_target(values: &[(String, RegistryData)]) -> Option<KeyPath> {
        let (_, data) = values
            .iter()
            .find(|(name, _)| eq_ignore_case(name, "SymbolicLinkValue"))?;
        if data.kind() != DataType::LINK {
            return None;
        }
        let target = data.text()?;
        let below = |prefix: &str| {
            let start = target.get(..prefix.len())?;
            start
                .eq_ignore_ascii_case(prefix)
                .then(|| &target[prefix.len()..])
        };
        let path = match (below(r"\Registry\Machine\"), below(r"\Registry\User\")) {
            (Some(rest), _) => format!(r"HKLM\{rest}"),
            (None, Some(rest)) => format!(r"HKU\{rest}"),
            (None, None) => return None,
        };
        path.parse().ok()
    }
}

/// The known registry of a base.
pub trait BaseKeys: fmt::Debug + Send + Sync {
    /// The key at that path. Links on the path are not followed: they are keys.
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError>;
}

/// Error of reading the recorded content of a base.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read the recorded content of the base")]
pub struct BaseReadError(#[source] pub Arc<dyn Error + Send + Sync>);

/// A base of unknown content.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownBase;

impl BaseKeys for UnknownBase {
    fn key(&self, _: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}
