//! Windows container layers: what one holds, written as a tar stream with both digests in one pass,
//! and read back.
//!
//! A [`Layer`] describes the content, [`Layer::write`] turns it into a blob on all cores with
//! bounded memory, and [`LayerReader`] walks through the layers of others. The form is the one
//! that Windows' own layer import (hcsshim) reads: `Hives/` and `Files/` at the top, parents before
//! children, Windows' attributes and security descriptors in PAX records.
//!
//! ```
//! use wincimg_layer::{Layer, LayerReader, Limits, WriteOptions};
//!
//! let mut layer = Layer::new(1_580_256_000);
//! layer.file("app/settings.json".parse()?, b"{}".to_vec());
//! layer.delete("app/old.json".parse()?);
//! let mut blob = Vec::new();
//! let written = layer.write(&mut blob, &WriteOptions::default())?;
//! println!("{} of {} bytes", written.digest, written.size);
//!
//! let mut reader = LayerReader::new(blob.as_slice(), Limits::default())?;
//! let mut paths = Vec::new();
//! while let Some(entry) = reader.next_entry()? {
//!     paths.push(entry.path);
//! }
//! let app = [
//!     "Files/app",
//!     "Files/app/.wh.old.json",
//!     "Files/app/settings.json",
//! ];
//! assert!(paths.ends_with(&app.map(String::from)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod archive;
mod arranged;
mod blob_buffer;
mod compress;
mod content;
mod descriptor;
pub mod dockerignore;
mod download;
mod error;
mod folder;
mod granted;
mod header;
mod laid;
mod on_disk;
mod order;
mod path;
mod pipeline;
mod reading;
mod remembered;
mod settle;
mod split;
mod tar_stream;
mod unwritten;

/// Numbers that look like chance, the same in every run.
#[cfg(test)]
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |number| {
        let next = number.wrapping_mul(6_364_136_223_846_793_005);
        Some(next.wrapping_add(1))
    })
    .skip(1)
}

pub use arranged::Arranged;
pub use blob_buffer::{BlobBuffer, BufferedBlob};
pub use compress::Compression;
pub use content::{Content, Layer, LinkTo, Source, Symlink};
pub use descriptor::Security;
pub use download::Download;
pub use error::LayerError;
pub use folder::link;
pub use granted::GrantError;
pub use laid::{Laid, Without};
pub use on_disk::{LeftOut, OnDisk};
pub use path::{LayerPath, PathError};
pub use pipeline::{WriteOptions, Written};
pub use remembered::{Remembered, Stamp};
pub use split::LayerPart;
pub use unwritten::inputs;

pub use crate::archive::tar::{
    EntryKind, Limits, ReadError, TarEntry as LayerEntry, TarReader as LayerReader, decompressed,
};

/// The example in the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
