//! What is inside a base: its registry, its files, who may do what with them, and the contents of
//! some, in one compact file.
//!
//! [`collect_layer`] looks through one layer, [`assemble`] lays the layers over each other and writes
//! the file, [`BaseFacts`] answers from it and reads no more than the answer takes.
//!
//! The file has four sorted tables: keys, files, security descriptors (each once, by number), and
//! contents. A table is a row of blocks of 48 KiB, each compressed with a checksum. The directory at
//! the end says what the file is about and with which key each block begins. Keys and files stand
//! under their names folded as Windows compares them, so that what is below something follows it.
//!
//! A file of facts comes from the registry that the base comes from, and can be damaged or forged.
//! Whatever its bytes, reading it ends in an answer or an error; what it unpacks at once is bounded.

mod assemble;
mod collect;
mod error;
mod facts;
mod fields;
mod file;
mod hives;
mod record;
mod sort_key;
mod stored_content;
mod table;
#[cfg(test)]
mod tests;

pub use assemble::assemble;
pub use collect::{CollectedLayer, Extent, LayerPosition, collect_layer};
pub use error::{FORMAT, FactsError};
pub use facts::{BaseFacts, ListedFile, ListedKey};
pub use file::BaseProblem;
pub use hives::{BaseHive, BaseKeyPath};
