//! Delta hives: the registry changes of a container layer, written and read on any system.
//!
//! At container start Windows lays each layer's `Hives/*_Delta` over the base image's hive, key by
//! key. What a key of a delta does to the keys of the same path below is in one byte of its node:
//!
//! | byte | written for | what it does |
//! |------|-------------|--------------|
//! | `00` | the root    | merges with the root below |
//! | `80` | a key on the way to a change, or with one | merges; class name from below |
//! | `01` | a deleted key | hides the key below and everything under it |
//! | `02` | a key whose values are replaced | hides the values below, merges the subkeys |
//! | `03` | a key that is replaced, and every key in it | hides the key below and everything under it |
//!
//! A deleted value is a value of its own, with a flag that hides the one below. Where it is not known
//! whether the base has a key, an edit that adds to it writes `80`, which is
//! right in both cases, and only an edit that says *replace* writes `03`. [`layer_hives`] writes for a
//! base into which somebody has looked: `03` for what is new there.
//!
//! The format follows the public specification of registry files and a delta hive that Windows
//! itself wrote. No Windows host was at hand to load what is written here.
//!
//! The reader takes primary and delta hives alike, checks all that a file says about itself, and
//! works in proportion to the file's size at most. A hive that was not written out cleanly
//! (its changes are in log files beside it) is refused.

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
mod merge;
mod reader;
mod record;
mod shared_descriptors;
mod tree;
mod writer;

pub use changes::edits;
pub use existing::exists;
pub use key::{Key, Value, ValueContent};
#[cfg(any(test, feature = "testing"))]
pub use layer::unsettled;
pub use layer::{HiveFile, layer_hives, required_hives};
pub use merge::merge;
pub use reader::Hive;
pub use writer::empty_hive;

use crate::base::BaseReadError;
use crate::security::SddlError;
use crate::{KeyPath, RegistryEdit, Root};

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

/// What a key of a delta hive does to the keys of the same path below.
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

/// The byte of a key node that says how the key takes part in layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct LayerSemantics {
    /// The class name is the one of the key below.
    pub inherit_class: bool,
    /// What the key does to those below.
    pub semantics: Semantics,
}

impl LayerSemantics {
    const INHERIT_CLASS: u8 = 0x80;

    /// Reads the byte; bits without a meaning are ignored.
    pub fn from_byte(byte: u8) -> Self {
        Self {
            inherit_class: byte & Self::INHERIT_CLASS != 0,
            semantics: match byte & 3 {
                0 => Semantics::Merge,
                1 => Semantics::Tombstone,
                2 => Semantics::SupersedeLocal,
                _ => Semantics::SupersedeTree,
            },
        }
    }

    /// The byte.
    pub fn to_byte(self) -> u8 {
        let semantics = match self.semantics {
            Semantics::Merge => 0,
            Semantics::Tombstone => 1,
            Semantics::SupersedeLocal => 2,
            Semantics::SupersedeTree => 3,
        };
        semantics
            | if self.inherit_class {
                Self::INHERIT_CLASS
            } else {
                0
            }
    }
}

/// Edits that no delta hive can hold.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The edit is about the root key of a hive.
    #[error("{} is a whole hive and can be neither deleted nor replaced", .root.short_name())]
    WholeHive {
        /// The hive.
        root: Root,
    },
    /// The name of a value is longer than Windows allows.
    #[error("a value name of {length} UTF-16 units in {key} is too long, 16383 is the most")]
    ValueNameTooLong {
        /// The key with the value.
        key: KeyPath,
        /// The length.
        length: usize,
    },
    /// The edit deletes something in a key of which nobody knows whether it is there.
    #[error(
        "cannot {edit} without knowing whether the base has {holder}: on a base that has not, that would create it"
    )]
    UnknownHolder {
        /// The edit.
        edit: Box<RegistryEdit>,
        /// The key in which it deletes something.
        holder: KeyPath,
    },
    /// The way to a key leads through a link of the base that cannot be followed.
    #[error("cannot follow a link of the base on the way to {key}: {problem}")]
    Link {
        /// The key.
        key: KeyPath,
        /// Why not.
        problem: &'static str,
    },
    /// What is known of the base cannot be read.
    #[error(transparent)]
    Inside(#[from] BaseReadError),
    /// There is more data than a hive can address.
    #[error("the registry edits are more than one hive can hold (2 GiB, 1 GiB for one value)")]
    HiveTooLarge,
    /// A descriptor in this program's own table is wrong.
    #[error("a built-in security descriptor cannot be read")]
    Descriptor(#[from] SddlError),
}

/// A file that is not a hive, or one that Windows would not load as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HiveReadError {
    /// The file does not start as a hive does.
    #[error("not a registry hive: expected \"regf\" and a base block of 4096 bytes")]
    NotAHive,
    /// A hive of a version that Windows gave up long ago, or no primary hive but a log.
    #[error(
        "registry hive of version {major}.{minor} or of another kind: expected a primary hive of version 1.3 to 1.6"
    )]
    Version {
        /// The first number.
        major: u32,
        /// The second number.
        minor: u32,
    },
    /// The base block was not written completely.
    #[error(
        "registry hive with a torn base block: its checksum is {found:#010x}, expected {expected:#010x}"
    )]
    Checksum {
        /// What the block adds up to.
        expected: u32,
        /// What it says.
        found: u32,
    },
    /// The latest changes are in log files.
    #[error(
        "registry hive that was not written out: its latest changes are in log files, load and unload it on Windows first"
    )]
    Unfinished,
    /// The file ends before its bins do.
    #[error(
        "registry hive that is cut off: {actual} bytes of its {declared} bytes of data are there"
    )]
    Short {
        /// How much data there should be.
        declared: u32,
        /// How much there is.
        actual: usize,
    },
    /// The data contradicts itself.
    #[error("damaged registry hive: {problem}, at offset {offset:#x} of its data")]
    Damaged {
        /// Where, counted from the end of the base block.
        offset: u32,
        /// What is wrong there.
        problem: &'static str,
    },
}

#[cfg(test)]
mod tests;
