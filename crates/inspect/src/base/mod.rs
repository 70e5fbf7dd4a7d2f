//! Contents of a base in one compact file: its registry, its files with their access rights, and
//! the contents of some files.
//!
//! [`collect_layer`] reads one layer, [`assemble`] merges the layers and writes the file, and
//! [`BaseFacts`] answers queries and reads only the parts that they require.
//!
//! The file has four sorted tables: keys, files, security descriptors (each once, by number), and
//! contents. A table is a sequence of blocks of 48 KiB, each compressed with a checksum. The
//! directory at the end identifies the base and has the first key of each block. Keys and files are
//! sorted by their names folded as Windows compares them, so that everything below a path follows
//! it.
//!
//! A file of facts comes from the base's registry, and can be damaged or forged. Reading any bytes
//! returns a result or an error, and what it unpacks at once is bounded.

mod assemble;
mod collect;
mod error;
mod facts;
mod fields;
mod file;
mod hives;
mod packed_hive;
mod record;
pub(crate) mod sort_key;
mod stored_content;
mod table;
#[cfg(test)]
mod tests;

pub use assemble::assemble;
pub use collect::{CollectedLayer, Extent, LayerPosition, collect_layer};
pub(crate) use error::FORMAT;
pub use error::FactsError;
pub use facts::{ListedFile, ListedKey};
pub use file::{BaseFacts, BaseProblem};
pub(crate) use hives::HivePart;
pub use hives::{BaseHive, BaseKeyPath};
pub(crate) use packed_hive::HiveParts;
