//! Windows container layers: described, written as a tar stream with both digests in one pass, and
//! read.
//!
//! A [`Layer`] describes the content, [`Layer::write`] turns it into a blob on all cores with
//! bounded memory, and [`LayerReader`] reads any layer. The format is that of Windows' own layer
//! import (hcsshim): `Hives/` and `Files/` at the top, parents before children, Windows' attributes
//! and security descriptors in PAX records.
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

mod added_hives;
pub mod archive;
mod blob_buffer;
mod compress;
mod content;
mod descriptor;
mod diff_id;
mod diff_id_cache;
mod disk_source;
pub mod dockerignore;
mod error;
mod fit;
mod folder;
mod grant;
mod header;
mod order;
mod overlay;
mod path;
mod pipeline;
mod read_ahead;
mod sorted;
mod split;
mod tar_stream;
#[cfg(test)]
mod test_numbers;

pub use added_hives::{HiveFolder, recompress};
pub use blob_buffer::BlobBuffer;
pub use compress::Compression;
pub use content::{ContentSource, EntryContent, Layer, LinkTo, Symlink};
pub use descriptor::Security;
pub use diff_id::inputs;
pub use diff_id_cache::{DiffIdCache, LayerStamp};
pub use disk_source::{DiskSource, IgnoreFilter};
pub use error::LayerError;
pub use folder::link;
pub use grant::ON_WINDOWS;
pub use overlay::BaseOverlay;
pub use path::{LayerPath, PathError, Whiteout};
pub use pipeline::{WriteOptions, WrittenLayer};
pub use sorted::SortedLayer;
pub use split::LayerPart;
pub use wincimg_common::files::BufferedBlob;

pub use crate::archive::tar::{
    Limits, NO_SPARSE_FILES, TarEntry as LayerEntry, TarEntryKind, TarReadError,
    TarReader as LayerReader, decompress, detect_compression,
};

/// The example in the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;
