//! The Windows registry without Windows: keys and values, `.reg` files, security descriptors, hives
//! and the delta hives of container layers.
//!
//! [`hive::layer_hives`] writes the delta hives of [edits](RegistryEdit), [`hive::Hive`] reads
//! hives, [`regfile`] reads and writes `.reg` files, [`security`] the descriptors of keys. A
//! [`BaseKeys`] provides the content of the hives below (a key's descriptor, a link);
//! [`UnknownBase`] is the one without any.
//!
//! ```
//! use wincimg_registry::{RegistryEdit, regfile};
//!
//! let text = "Windows Registry Editor Version 5.00\r\n\r\n\
//!     [HKEY_LOCAL_MACHINE\\SOFTWARE\\Contoso]\r\n\
//!     \"Mode\"=\"fast\"\r\n";
//! let edits = regfile::import(text.as_bytes())?.edits;
//! assert!(matches!(&edits[..], [.., RegistryEdit::SetValue { name, .. }] if name == "Mode"));
//! # Ok::<(), regfile::RegFileError>(())
//! ```

mod base;
mod data;
mod edit;
pub mod hive;
mod link;
pub mod name_folding;
mod path;
pub mod regfile;
pub mod security;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;

pub use base::{BaseKey, BaseKeys, BaseReadError, Presence, UnknownBase};
pub use data::{DataType, ListError, RegistryData, TypedData};
pub use edit::{KeyMode, RegistryEdit};
pub use link::Link;
pub use path::{KeyPath, KeyPathError, Root};

/// The example in the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
