//! Delta hives: the registry changes of a container layer, written and read on any system.
//!
//! At container start Windows merges each layer's `Hives/*_Delta` over the base image's hive, key
//! by key. The effect of a delta's key on the keys of the same path below is in one byte of its
//! node:
//!
//! | byte | written for | what it does |
//! |------|-------------|--------------|
//! | `00` | the root    | merges with the root below |
//! | `80` | a key on the way to a change, or with one | merges; class name from below |
//! | `01` | a deleted key | hides the key below and everything under it |
//! | `02` | a key whose values are replaced | hides the values below, merges the subkeys |
//! | `03` | a key that is replaced, and every key in it | hides the key below and everything under it |
//!
//! A deleted value is a value of its own, with a flag that hides the one below. If it is unknown
//! whether the base has a key, an edit that adds to it writes `80`, which is right in both cases,
//! and only an edit with *replace* writes `03`. For a known base [`layer_hives`] writes `03` for
//! new keys.
//!
//! The format follows the public specification of registry files and a delta hive that Windows
//! itself wrote. The written hives were not loaded on a Windows host.
//!
//! The reader accepts primary and delta hives, verifies the file's metadata, and takes time linear
//! in the file's size. A hive that was not closed is refused: [`recover`] completes it from its logs.

mod bins;
mod builtin_descriptors;
mod cells;
mod changes;
mod delta;
mod descriptors;
mod existing;
mod fit;
mod format;
mod key;
mod layer;
mod links;
mod log;
#[cfg(any(test, feature = "testing"))]
pub mod log_writer;
mod marvin;
mod merge;
mod patch;
mod reader;
mod record;
mod recovery;
mod shared_descriptors;
mod tree;
mod writer;

pub use changes::edits;
pub use existing::exists;
pub use key::{Key, Value, ValueContent};
#[cfg(any(test, feature = "testing"))]
pub use layer::unfitted_hives;
pub use layer::{HiveFile, layer_hives, required_hives, unchanged_hives};
pub use links::follow_links;
pub use merge::{combine, merge};
pub use patch::set_value;
pub use reader::Hive;
pub use recovery::{HiveState, RecoveredHive, needs_logs, recover};
pub use writer::empty_hive;

use crate::base::BaseReadError;
use crate::security::SddlError;
use crate::{KeyPath, RegistryEdit};

/// A point in time as Windows counts: units of 100 nanoseconds since 1601.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime(pub u64);

impl FileTime {
    const UNIX_EPOCH_SECONDS: i64 = 11_644_473_600;
    const UNITS_PER_SECOND: u64 = 10_000_000;

    /// From seconds since 1970; times before 1601 become 1601.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        let since_1601 = seconds.saturating_add(Self::UNIX_EPOCH_SECONDS);
        let seconds = u64::try_from(since_1601).unwrap_or(0);
        Self(seconds.saturating_mul(Self::UNITS_PER_SECOND))
    }
}

/// Effect of a delta hive's key on the keys of the same path below.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// Adds to them.
    #[default]
    Merge,
    /// Hides them: the key is deleted.
    Tombstone,
    /// Hides their values.
    SupersedeLocal,
    /// Hides them with everything under them: the key is new.
    SupersedeTree,
}

impl Semantics {
    /// All of them, in the order of their numbers.
    const ALL: [Self; 4] = [
        Self::Merge,
        Self::Tombstone,
        Self::SupersedeLocal,
        Self::SupersedeTree,
    ];
}

/// The byte of a key node with its layer semantics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LayerSemantics {
    /// The class name is the one of the key below.
    pub inherit_class: bool,
    /// Effect on the keys below.
    pub semantics: Semantics,
}

impl LayerSemantics {
    const INHERIT_CLASS: u8 = 0x80;

    /// Reads the byte; bits without a meaning are ignored.
    pub(crate) fn from_byte(byte: u8) -> Self {
        Self {
            inherit_class: byte & Self::INHERIT_CLASS != 0,
            semantics: Semantics::ALL[usize::from(byte & 3)],
        }
    }

    /// The byte.
    pub fn to_byte(self) -> u8 {
        self.semantics as u8 | (u8::from(self.inherit_class) * Self::INHERIT_CLASS)
    }
}

/// Error of writing a hive.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// An edit is not possible on any base, through the base's links, or in this hive.
    #[error("{0}")]
    Refused(String),
    /// The hive to change cannot be read.
    #[error(transparent)]
    Read(#[from] HiveReadError),
    /// The edit deletes something in a key that may not exist.
    #[error(
        "cannot {edit} if the base may lack {holder}: without that key the edit would create it"
    )]
    UnknownHolder {
        /// The edit.
        edit: Box<RegistryEdit>,
        /// The key that may not exist.
        holder: KeyPath,
    },
    /// The base's recorded content cannot be read.
    #[error(transparent)]
    Inside(#[from] BaseReadError),
    /// The data exceeds the size of a hive.
    #[error("the registry edits exceed the size of a hive (2 GiB, 1 GiB for one value)")]
    HiveTooLarge,
    /// A built-in descriptor is invalid.
    #[error("a built-in security descriptor cannot be read")]
    Descriptor(#[from] SddlError),
}

/// Error of reading a hive that is invalid, or that Windows would not load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HiveReadError(String);

impl HiveReadError {
    /// The base block was not written completely.
    fn checksum(expected: u32, found: u32) -> Self {
        Self(format!(
            "registry hive with a torn base block: its checksum is {found:#010x}, expected {expected:#010x}"
        ))
    }

    /// Unsaved changes are in log files.
    fn unfinished() -> Self {
        Self("registry hive with unsaved changes in its log files".to_owned())
    }
}

/// Error for data that contradicts itself, at an offset from the end of the base block.
fn damaged(offset: usize, problem: &str) -> HiveReadError {
    HiveReadError(format!(
        "damaged registry hive: {problem}, at offset {offset:#x} of its data"
    ))
}

#[cfg(test)]
mod tests;
