//! The Windows registry without Windows: keys and values, `.reg` files, security descriptors, hives
//! and the delta hives of container layers.

mod base;
mod data;
mod edit;
pub mod hive;
mod link;
mod path;
pub mod regfile;
pub mod security;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod upcase;

pub use base::{BaseKey, BaseKeys, InsideError, Known, Unseen};
pub use data::{DataType, ListError, RegistryData, Typed};
pub use edit::{KeyMode, MAX_VALUE_NAME, RegistryEdit};
pub use link::Link;
pub use path::{KeyPath, KeyPathError, MAX_COMPONENTS, MAX_KEY_NAME, Root};
